"""Measure methods on problems that the algorithm was not tuned to.

    python bench/suites.py list
    python bench/suites.py run --group choose --methods bounce,tpe,cmaes,nevergrad,random --seeds 0-4 --jobs 2
    python bench/suites.py run --group choose --methods bounce:initial_dims=15,bounce:method.caution=1.0
    python bench/suites.py run --group choose --methods bounce --method early=budget_to_input=50
    python bench/suites.py table --group choose
    python bench/suites.py plot --group choose --picture regret.png
    python bench/suites.py compare early bounce --group choose
    python bench/suites.py keep --methods bounce,tpe,random

The problems are in two groups: `choose`, on which a change of the algorithm may be judged, and `report`, on which
nothing is chosen (bench/tasks/__init__.py). `paper` has the problems of the paper, and `noise` some of the others with
noise. A run is a small file in --out. A run that exists is not repeated, so everything can be interrupted and
continued; delete the files of a label, or use a new one, after a change of the code. Only `run` measures.

`keep` writes the values of runs at some evaluations to bench/data/suites.csv, so that measurements of several machines
add up. `table`, `plot` and `compare` read these runs beside those of --out, which take precedence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import report
import standings
import tasks
from bounce.errors import BounceError, InvalidInput
from cells import LIMIT, Cell, available, read_all
from crew import run_all
from kept import read as read_kept
from kept import united
from kept import write as write_kept
from labels import Label, labels
from quality import numbers
from regret import MARKS, RANDOM, Board

HERE = Path(__file__).parent
OUT = HERE / "traces" / "suites"
KEPT = HERE / "data" / "suites.csv"
RESULTS = HERE / "RESULTS.md"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Group = Annotated[str | None, typer.Option(help="choose, report, paper or noise; all by default.")]
Names = Annotated[str | None, typer.Option(help="Comma-separated names of problems; all of the group by default.")]
Out = Annotated[Path, typer.Option(help="The folder of the runs.")]
Kept = Annotated[Path, typer.Option(help="The file of the kept runs.")]
Evaluations = Annotated[int, typer.Option(min=1, help="Evaluations per run.")]
Methods = Annotated[str | None, typer.Option(help="Comma-separated labels; all that have runs by default.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Also replace the part of the document.")]
Document = Annotated[Path, typer.Option(help="The document for --markdown.")]


def all_cells(
    problems: Sequence[str],
    methods: Sequence[Label],
    seeds: Sequence[int],
    out: Path,
    *,
    evaluations: int,
    limit: float = LIMIT,
) -> list[Cell]:
    """Return the runs to make, all problems and methods of one seed before the next seed."""
    return [
        Cell(out, problem, label, seed, evaluations, limit)
        for seed in seeds
        for problem in problems
        for label in methods
    ]


@app.command()
def run(
    *,
    methods: Annotated[str, typer.Option(help="Labels, such as bounce,tpe,bounce:initial_dims=15.")] = "bounce,random",
    method: Annotated[list[str] | None, typer.Option(help="A label of your own: NAME=FIELD=VALUE.")] = None,
    group: Group = None,
    problems: Names = None,
    seeds: Annotated[str, typer.Option(help="Such as 0-4 or 0,1,5.")] = "0-4",
    evaluations: Evaluations = 200,
    limit: Annotated[float, typer.Option(min=0.1, help="Seconds of CPU time after which a run is stopped.")] = LIMIT,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    out: Out = OUT,
) -> None:
    """Make the runs that are missing."""
    chosen = labels(methods, method or ())
    usable, reasons = available([entry.name for entry in tasks.chosen(group, problems)])
    wanted = all_cells(usable, chosen, numbers(seeds), out, evaluations=evaluations, limit=limit)
    for name, reason in reasons.items():
        print(f"{name} is skipped: {reason}")
    missing = [cell for cell in wanted if cell.missing()]
    print(f"{len(wanted)} runs, {len(wanted) - len(missing)} exist")
    failed = run_all(missing, jobs) if missing else []
    if failed:
        print(f"{len(failed)} runs failed:", *failed, sep="\n")
        raise typer.Exit(1)


def board_of(
    group: str | None, problems: str | None, methods: str | None, out: Path, *, kept: Path, evaluations: int
) -> Board:
    """Return the runs that exist on some problems, the files of `out` before the kept ones."""
    names = [entry.name for entry in tasks.chosen(group, problems)]
    earlier = [run for run in read_kept(kept) if run.problem in names and run.evaluations == evaluations]
    runs = united(earlier, read_all(out, names, evaluations))
    return Board(sorted(runs, key=lambda run: names.index(run.problem)), _separate(methods))


def _separate(names: str | None) -> list[str] | None:
    return None if names is None else list(dict.fromkeys(name.strip() for name in names.split(",")))


@app.command()
def keep(
    *,
    group: Group = None,
    problems: Names = None,
    methods: Methods = None,
    forget: Annotated[str | None, typer.Option(help="Labels whose kept runs are removed first.")] = None,
    evaluations: Evaluations = 200,
    out: Out = OUT,
    kept: Kept = KEPT,
) -> None:
    """Write what the tables need of the runs in --out to one file, beside what it has; a run replaces an older one."""
    wanted, gone = _separate(methods), _separate(forget) or []
    names = [entry.name for entry in tasks.chosen(group, problems)]
    before = read_kept(kept)
    left = [run for run in before if run.label not in gone or run.problem not in names]
    found = [run for run in read_all(out, names, evaluations) if wanted is None or run.label in wanted]
    runs = united(left, found)
    write_kept(kept, runs)
    print(f"{kept}: {len(before)} runs before, {len(before) - len(left)} removed, {len(found)} read, {len(runs)} now")


@app.command()
def table(
    *,
    group: Group = None,
    problems: Names = None,
    methods: Methods = None,
    evaluations: Evaluations = 200,
    out: Out = OUT,
    kept: Kept = KEPT,
    markdown: Markdown = False,
    document: Document = RESULTS,
) -> None:
    """Print ranks, regrets and means; --markdown also puts them into the part suites-GROUP of the document."""
    part = f"suites-{group or 'all'}"
    report.check(document if markdown else None, part)
    board = board_of(group, problems, methods, out, kept=kept, evaluations=evaluations)
    left_out = len(tasks.chosen(group, problems)) - len(board.problems)
    text = standings.document(board, board.marks(MARKS), left_out)
    if markdown:
        out.mkdir(parents=True, exist_ok=True)
        standings.picture(board, evaluations, out / f"{part}.png")
        report.renew(document, part, text, out / f"{part}.png")
    print(text)


@app.command()
def plot(
    *,
    group: Group = None,
    problems: Names = None,
    methods: Methods = None,
    evaluations: Evaluations = 200,
    out: Out = OUT,
    kept: Kept = KEPT,
    picture: Annotated[Path, typer.Option(help="The picture to write.")] = Path("regret.png"),
) -> None:
    """Draw the mean regret of every method."""
    standings.picture(board_of(group, problems, methods, out, kept=kept, evaluations=evaluations), evaluations, picture)
    print(picture)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="A label.")],
    second: Annotated[str, typer.Argument(help="Another label.")],
    *,
    group: Group = None,
    problems: Names = None,
    evaluations: Evaluations = 200,
    out: Out = OUT,
    kept: Kept = KEPT,
) -> None:
    """Compare two labels by the seeds that both have."""
    if first == second:
        raise InvalidInput(f"two different labels are needed, not {first!r} twice")
    board = board_of(group, problems, f"{first},{second}", out, kept=kept, evaluations=evaluations)
    if not board.problems:
        raise InvalidInput(f"{first!r} and {second!r} have no problem in common")
    if not any(board.values(problem, RANDOM, 1) for problem in board.problems):
        print("There are no runs of random search: regrets are relative to the worst value.\n")
    print(standings.comparison(board, board.marks(MARKS)))


@app.command(name="list")
def show(
    *,
    group: Group = None,
    markdown: Markdown = False,
    document: Document = RESULTS,
) -> None:
    """Print the problems; --markdown also replaces the table of the split in the document."""
    report.check(document if markdown else None, "split")
    for entry in tasks.chosen(group):
        reason = entry.missing()
        about = f"skipped: {reason}" if reason else f"{len(entry.make(0).space)} variables"
        print(f"{entry.group:8}{entry.family:10}{entry.name:30}{about}")
    if markdown:
        report.renew(document, "split", tasks.split())


if __name__ == "__main__":
    try:
        app()
    except BounceError as error:
        raise SystemExit(f"suites: {error}") from None
