"""Paper: commands that repeat the experiments of the paper and check its claims."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bounce.cli.help import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bounce.paper.figures import Curve
    from bounce.paper.runs import Run
    from bounce.paper.traces import Seen

FOLDER = Path("paper-runs")
KEPT = Path("paper-kept.csv")

paper = typer.Typer(help="Repeat the experiments of the paper, and check its claims.", no_args_is_help=True)

Figures = Annotated[
    list[int] | None, typer.Argument(metavar="FIGURE", help="Numbers of figures. The default is all of them.")
]
Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of the runs.")]


def _there(kept: Path) -> Path:
    """Refuse a file of kept runs that does not exist, unless it is the one that nobody has to name."""
    from bounce.errors import InvalidInput

    if kept != KEPT and not kept.exists():
        raise InvalidInput(f"the file of kept runs {str(kept)!r} does not exist")
    return kept


KeptFile = Annotated[
    Path, typer.Option("--kept", metavar="FILE", callback=_there, help="The file of kept runs, if there is one.")
]
NewFile = Annotated[Path, typer.Option("--kept", metavar="FILE", help="The file of kept runs; a new one is made.")]


@paper.command("list", cls=Command, epilog="Example: bounce paper list")
def show() -> None:
    """List the figures, with what they run."""
    from bounce.paper.figures import figures
    from bounce.paper.runs import wanted

    for figure in figures().values():
        print(f"{figure.number:>2}  {figure.title}")
        if figure.problems:
            runs = wanted([figure], FOLDER)
            print(f"    problems  {', '.join(figure.problems)} ({' and '.join(figure.versions)})")
            print(f"    methods   {', '.join(method.key for method in figure.methods)}")
            print(f"    runs      {len(runs):,}, {sum(run.length for run in runs):,} evaluations")
        for old, new in figure.replaced.items():
            print(f"    note      the data of {old} are missing, so {new} is run instead")


@paper.command("run", cls=Command, epilog="Example: bounce paper run 4 8 --quick --jobs 2")
def run(
    figures: Figures = None,
    *,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Seeds of each method. The default is the paper's number, 50 for most."),
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Make only the first N evaluations of each run.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Run only these methods, such as bounce,casmopolitan.")
    ] = None,
    problems: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Run only these problems, such as labs50,pest25.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="5 repetitions and at most 100 evaluations, unless you say otherwise.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Make this many runs at the same time.")] = 1,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler, which see the same files."),
    ] = None,
    folder: Folder = FOLDER,
    kept: KeptFile = KEPT,
) -> None:
    """Make the missing runs of figures.

    It can be stopped at any time: start it again to continue. Runs that were made with --quick are continued too. Kept
    runs are not made again, unless they are too short.
    """
    from bounce.errors import StudyLocked
    from bounce.paper.figures import chosen
    from bounce.paper.kept import read
    from bounce.paper.runs import QUICK_EVALUATIONS, QUICK_REPETITIONS, damage, wanted
    from bounce.study.lock import Lock

    if quick:
        repetitions, evaluations = repetitions or QUICK_REPETITIONS, evaluations or QUICK_EVALUATIONS
    selected = chosen(figures or [])
    place = folder if dask is None else folder.resolve()  # workers have working folders of their own
    every = wanted(
        selected,
        place,
        repetitions=repetitions,
        evaluations=evaluations,
        methods=_named(methods, "method", [method.key for figure in selected for method in figure.methods]),
        problems=_named(problems, "problem", [problem for figure in selected for problem in figure.problems]),
    )
    earlier = read(kept)
    new = [
        own
        for own in every
        if own.key not in earlier or earlier[own.key].evaluations < own.length or damage(own.path) is not None
    ]
    if len(new) < len(every):
        print(f"{len(every) - len(new)} of {len(every)} runs are in {kept}")
    runs, left_out = _possible(new)
    for reason in left_out:
        print(f"left out: {reason}")
    damaged = {own.path: wrong for own in runs if (wrong := damage(own.path)) is not None}
    for wrong in damaged.values():
        print(f"damaged: {wrong}. What comes before is kept, and the rest is made again")
    missing = [own for own in runs if own.path in damaged or own.finished < own.length]
    print(f"{len(runs)} runs, {len(runs) - len(missing)} finished")
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder / "runs")
    if not lock.acquire():
        raise StudyLocked(f"another process is making runs in {folder}: wait for it, or use another --folder")
    try:
        failed = _made(missing, jobs, dask)
    finally:
        lock.close()
    print(f"{len(runs)} runs, {sum(own.finished >= own.length for own in runs)} finished")
    if failed:
        raise typer.Exit(1)


def _named(words: str | None, what: str, known: Sequence[str], who: str = "these figures have") -> list[str] | None:
    """Return the names in a list of words; refuse one that is not known."""
    from difflib import get_close_matches

    from bounce.errors import InvalidInput

    if words is None:
        return None
    names = [word.strip() for word in words.split(",")]
    for name in names:
        if name not in known:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            every = ", ".join(sorted(set(known)))
            raise InvalidInput(f"{who} no {what} {name!r}{hint} They have {every}")
    return names


def _possible(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return the runs that can be made here, and why others cannot: a package or data that are missing."""
    from bounce import benchmarks
    from bounce.errors import DataError, InvalidInput

    reasons: dict[tuple[str, str], str | None] = {}
    for own in runs:
        key = (own.setup.name, own.setup.method)
        if key not in reasons:
            try:
                own.setup.optimizer(benchmarks.load(own.setup.name, own.setup.randomized).space, 0)
                reasons[key] = None
            except (DataError, InvalidInput) as error:
                reasons[key] = f"{own.setup.method} on {own.setup.name}: {error}"
    kept = [own for own in runs if reasons[own.setup.name, own.setup.method] is None]
    return kept, [reason for reason in reasons.values() if reason is not None]


def _made(runs: Sequence[Run], jobs: int, dask: str | None) -> bool:
    """Make runs behind a progress bar; return whether some failed."""
    from contextlib import ExitStack

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as ToGo

    from bounce.cli.running import cluster
    from bounce.paper.runs import make_all, processes

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("to go"))
    with ExitStack() as stack:
        executor = stack.enter_context(processes(min(jobs, len(runs))) if dask is None else cluster(dask))
        progress = stack.enter_context(Progress(*columns, ToGo(), console=Console(stderr=True)))
        task = progress.add_task("evaluations", total=sum(own.length for own in runs))
        failed = make_all(runs, executor, progress=lambda count: progress.update(task, completed=count))
    for reason in failed:
        print(reason)
    return bool(failed)


@paper.command("plot", cls=Command, epilog="Example: bounce paper plot 4 8 --out docs/paper")
def plot(
    figures: Figures = None,
    *,
    folder: Folder = FOLDER,
    kept: KeptFile = KEPT,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the figures.")] = Path("paper-figures"),
) -> None:
    """Draw figures from the runs that exist.

    It writes PNG and SVG files, and the means and errors of the curves as JSON. A curve shows its runs until the end of
    the shortest one; runs that have just begun are left out.
    """
    from bounce.paper.figures import chosen
    from bounce.report.figures import draw

    damaged: dict[Path, str] = {}
    runs = _reader(folder, kept, damaged)
    for figure in chosen(figures or []):
        paths = draw(figure, runs, out)
        print(
            "\n".join(map(str, paths))
            if paths
            else f"figure {figure.number} has no runs in {folder}: bounce paper run {figure.number} --quick"
        )
    _report(damaged)


def _reader(folder: Path, kept: Path, damaged: dict[Path, str]) -> Callable[[Curve], Sequence[Seen]]:
    """Return what reads the runs of a curve from a folder and a file of kept runs."""
    from bounce.paper.kept import read
    from bounce.paper.runs import seen, traces

    earlier = read(kept)
    return lambda curve: seen(curve, traces(curve, folder, damaged=damaged), earlier)


def _report(damaged: Mapping[Path, str]) -> None:
    """Say which traces were left out."""
    for wrong in damaged.values():
        print(f"left out, since it is damaged: {wrong}. Make it again with bounce paper run", file=sys.stderr)


@paper.command("check", cls=Command, epilog="Example: bounce paper check 4 8")
def check(
    figures: Figures = None,
    *,
    folder: Folder = FOLDER,
    kept: KeptFile = KEPT,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """Check the claims of the text about figures, on the runs that exist."""
    from bounce.cli.verdicts import as_table, as_text
    from bounce.paper.claims import MISSING
    from bounce.paper.claims import check as judge
    from bounce.paper.figures import chosen

    damaged: dict[Path, str] = {}
    runs = _reader(folder, kept, damaged)
    selected = chosen(figures or [])
    found = [row for figure in selected for row in judge(figure, runs)]
    run = [row for row in found if row.verdict != MISSING]
    if markdown:
        print("\n".join(f"| {' | '.join(cells)} |" for cells in as_table(run)))
    elif run:
        print("\n".join(as_text(run, {figure.number: figure.title for figure in selected}, _width())))
    if len(run) < len(found):
        where = f"{folder} and {kept}" if kept.exists() else f"{folder}"
        if run:
            print()
        print(f"{len(found) - len(run)} of {len(found)} claims have no verdict: too few of their runs are in {where}")
    _report(damaged)


def _width() -> int | None:
    """Return the columns of the terminal; None for a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@paper.command("keep", cls=Command, epilog="Example: bounce paper keep --kept docs/paper/runs.csv")
def keep(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Other files of kept runs, such as another machine's.")
    ] = None,
    *,
    folder: Folder = FOLDER,
    kept: NewFile = KEPT,
    forget: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods whose kept runs are removed first.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Which code made the runs of the folder. The default is the version."),
    ] = None,
) -> None:
    """Keep what figures and claims need of runs in one small file.

    The runs are added to those that the file has. If a run comes twice, the longer one is kept. The file is text
    and sorted, so it can be under version control. Use --forget for a method that has changed: its kept runs are not
    those of today.
    """
    from bounce import __version__
    from bounce.errors import InvalidInput
    from bounce.paper.kept import method_of, read, united, without, write
    from bounce.paper.runs import keep_all

    for file in files or []:
        if not file.exists():
            raise InvalidInput(f"the file {str(file)!r} does not exist")
    before = list(read(kept).values())
    gone = _named(forget, "method", [method_of(run.name) for run in before], who=f"the runs in {kept} have") or []
    left = without(before, gone)
    damaged: dict[Path, str] = {}
    found = keep_all(folder, __version__ if revision is None else revision, damaged)
    after = united(left, *(read(file).values() for file in files or []), found)
    if after or kept.exists():
        write(kept, after)
    removed = f", {len(before) - len(left)} removed" if forget else ""
    print(f"{kept}: {len(before)} runs before{removed}, {len(found)} in {folder}, {len(after)} now")
    _report(damaged)
