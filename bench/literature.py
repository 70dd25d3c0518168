"""Compare all optimizers of the literature on the problems of the paper: randomised, and those of reals as they are.

    BOUNCE_DATA=FOLDER python bench/literature.py run --seeds 5 --evaluations 100 --methods leaf,pr --jobs 2
    bounce paper keep --kept docs/paper/runs.csv
    python bench/literature.py table
    python bench/literature.py paper
    python bench/literature.py speed

The runs are those of `bounce paper run`, in the same folder: what a figure of the paper shows, or what was kept, is not
run again. `table` renews the tables of docs/rivals.md from the kept runs. `paper` renews those of docs/paper.md: what
was kept, the method of the paper beside the default, and the claims. `speed` measures what an ask costs each rival, and
renews the table of that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

import grid
import report
from bounce import baselines, benchmarks
from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.catalogue import RIVALS
from bounce.cli.verdicts import as_table
from bounce.errors import BounceError, DataError, InvalidInput, InvalidSpace
from bounce.paper.claims import LEVEL, MISSING, check, paired
from bounce.paper.figures import VERSIONS, Curve, Figure, Method, figures
from bounce.paper.kept import Kept, Key, fullest, read
from bounce.paper.runs import Run, make_all, processes, seen, wanted

ROOT = Path(__file__).parent.parent
KEPT, DOCUMENT = ROOT / "docs" / "paper" / "runs.csv", ROOT / "docs" / "rivals.md"
PAGE = ROOT / "docs" / "paper.md"
PROBLEMS = ("pest25", "ackley53", "contamination25", "maxsat60", "labs50", "cluster60", "svm53")
REALS = ("branin500", "hartmann500", "svm388", "lasso-dna", "lasso-hard", "mopta08")
MARKS = (50, 100, 200)
LEAST, MOST = 2, 50  # seeds of a number in the tables
LARGE = 1e5  # values that are shown without decimals
KINDS = ("binary", "categorical", "mixed", "real")  # of the 50 variables of the table of speeds
OBSERVED, SHORT, LONG = 200, 5, 25  # and how many asks are measured
OWN_DESIGN = ("turbo-m", "hesbo", "rembo", "alebo", "gtbo", "la-mcts", "mcts-vs")  # learn from points of their own only

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
Names = Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")]


def comparisons() -> tuple[Figure, Figure]:
    """Return all methods on all problems, as two figures that the paper does not have: the second has those of reals.

    Methods of the paper's figures have the names and the budgets that they have there, and so the same runs.
    """
    shown = {method.key: method for figure in figures().values() for method in figure.methods}
    known = {method.method for method in shown.values()}
    names = [name for name in baselines.names() if name not in known and not name.startswith("bounce")]
    others = [Method(f"{name}-fixed" if name in shown else name, name, name, {}) for name in names]
    mixed = Figure(0, "all methods", PROBLEMS, ("randomized",), (*shown.values(), *others))
    return mixed, replace(mixed, problems=REALS, versions=("original",), evaluations=figures()[11].evaluations)


def possible(runs: Iterable[Run]) -> list[Run]:
    """Return the runs of methods that take the problem, where its data and the method's package are here."""
    fine: dict[tuple[str, str], bool] = {}
    chosen = []
    for run in runs:
        key = (run.setup.name, run.setup.method)
        if key not in fine:
            try:
                run.setup.optimizer(benchmarks.load(run.setup.name, run.setup.randomized).space, 0)
                fine[key] = True
            except (DataError, InvalidInput):
                fine[key] = False
        if fine[key]:
            chosen.append(run)
    return chosen


def _separate(text: str | None, known: Sequence[str], what: str) -> list[str] | None:
    names = None if text is None else [name.strip() for name in text.split(",")]
    for name in names or ():
        if name not in known:
            raise InvalidInput(f"there is no {what} {name!r}; the names are {', '.join(known)}")
    return names


@app.command()
def run(
    *,
    methods: Names = None,
    problems: Names = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each method.")] = 10,
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations of each run.")] = 200,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    folder: Annotated[Path, typer.Option(help="The folder of the runs.")] = Path("paper-runs"),
    kept: Annotated[Path, typer.Option(help="Runs that are not made again.")] = KEPT,
) -> None:
    """Make the runs, or what is missing of them."""
    both = comparisons()
    every = wanted(
        both,
        folder,
        repetitions=seeds,
        evaluations=evaluations,
        methods=_separate(methods, [method.key for method in both[0].methods], "method"),
        problems=_separate(problems, (*PROBLEMS, *REALS), "problem"),
    )
    earlier = read(kept)
    left = [own for own in every if own.key not in earlier or earlier[own.key].evaluations < own.length]
    missing = [own for own in possible(left) if own.finished < own.length]
    if missing:
        with processes(jobs) as executor, Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bar:
            task = bar.add_task("evaluations", total=sum(own.length for own in missing))
            failed = make_all(missing, executor, progress=lambda count: bar.update(task, completed=count))
        if failed:
            raise InvalidInput("; ".join(failed))
    print(f"{len(missing)} runs were made")


def baseline(kept: Mapping[Key, Kept], problem: str) -> tuple[str, float]:
    """Return how a problem is called in a table, and the number that is subtracted from its values.

    The values of cluster60 agree in nine digits where runs end, so it is the lowest one; for others it is 0.
    """
    values = [float(own.best[-1]) for (name, _), own in kept.items() if name.startswith(f"{problem}-")]
    least = min(values, default=0.0)
    return (f"{problem}, above the lowest value", least) if abs(least) >= LARGE else (problem, 0.0)


def number(runs: Sequence[Kept], mark: int, above: float = 0.0) -> tuple[float, str]:
    """Return the mean best value after some evaluations, and with its standard error and seeds as a text."""
    values = np.array([float(own.best[mark - 1]) - above for own in runs if own.evaluations >= mark])
    if len(values) < LEAST:
        return math.inf, "–"
    mean, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5
    digits = 3 if error < 0.1 else 2 if error < 1.0 else 1
    text = f"{mean:.2g} ± {error:.1g}" if abs(mean) >= LARGE else f"{mean:.{digits}f} ± {error:.{digits}f}"
    return mean, f"{text} ({len(values)})"


def tables(kept: Mapping[Key, Kept]) -> str:
    """Return a table for each problem with runs; the best method after 100 evaluations comes first."""
    curves, parts = [curve for figure in comparisons() for curve in figure.curves()], []
    for problem in (*PROBLEMS, *REALS):
        rows, (shown, above) = [], baseline(kept, problem)
        for curve in curves:
            if curve.problem == problem:
                runs = [own for seed in range(MOST) if (own := kept.get((curve.name, seed))) is not None]
                found = [number(runs, mark, above) for mark in MARKS]
                means, texts = [mean for mean, _ in found], [text for _, text in found]
                if min(means) < math.inf:
                    rows.append(((means[1], means[2], means[0]), f"| `{curve.method.key}` | {' | '.join(texts)} |"))
        if rows:
            head = f"| {shown} | {' | '.join(map(str, MARKS))} |\n|{' --- |' * (1 + len(MARKS))}"
            parts.append("\n".join([head, *(line for _, line in sorted(rows))]))
    return "\n\n".join(parts)


@app.command()
def table(
    *,
    kept: Annotated[Path, typer.Option(help="The file of kept runs.")] = KEPT,
    into: Annotated[Path, typer.Option(help="The document whose tables are replaced.")] = DOCUMENT,
) -> None:
    """Renew the tables of the document, and print them."""
    text = tables(read(kept))
    report.renew(into, "literature", text)
    print(text)


def against_default(kept: Mapping[Key, Kept]) -> str:
    """Return the table of the method of the paper and of the default, on both versions of the problems.

    A value is bold where it is lower than the other one by the paired test over the seeds that both have.
    """
    curves = [curve for curve in _both_versions() if curve.method.key in ("bounce", "bounce-default")]
    lines = [f"| problem | version | method | {' | '.join(map(str, MARKS))} |", f"|{' --- |' * (3 + len(MARKS))}"]
    for problem, version in dict.fromkeys((curve.problem, curve.version) for curve in curves):
        found = {
            curve.method.key: [own for seed in range(MOST) if (own := kept.get((curve.name, seed))) is not None]
            for curve in curves
            if (curve.problem, curve.version) == (problem, version)
        }
        if all(number(runs, MARKS[0])[0] < math.inf for runs in found.values()):
            shown, above = baseline(kept, problem)
            for key, runs in found.items():
                (other,) = (theirs for name, theirs in found.items() if name != key)
                cells = [_bold(runs, other, mark, above) for mark in MARKS]
                lines.append(f"| {shown} | {version} | `{key}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _both_versions() -> list[Curve]:
    """Return the curves of all methods on both versions of the problems; those of reals have one."""
    mixed, reals = comparisons()
    return [*replace(mixed, versions=VERSIONS).curves(), *reals.curves()]


def _bold(runs: Sequence[Kept], other: Sequence[Kept], mark: int, above: float) -> str:
    """Return the number of some runs, bold if it is lower than that of others."""
    both = [
        {own.seed: float(own.best[mark - 1]) for own in group if own.evaluations >= mark} for group in (runs, other)
    ]
    seeds = sorted(both[0].keys() & both[1].keys())
    a, b = (np.array([values[seed] for seed in seeds]) for values in both)
    _, text = number(runs, mark, above)
    return f"**{text}**" if len(seeds) >= LEAST and paired(a, b) < LEVEL else text


def coverage(kept: Mapping[Key, Kept]) -> str:
    """Return how many runs there are of each method on each problem, and how long the shortest of them is.

    Runs that are shorter than what most have are left out, as in the figures (`fullest`). Problems of reals have a
    table of their own.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for curve in _both_versions():
        runs = fullest([own for seed in range(MOST) if (own := kept.get((curve.name, seed))) is not None])
        shortest = min((len(own.best) for own in runs), default=0)
        text = f"{len(runs)} × {shortest}" if runs else "–"
        found.setdefault((curve.method.key, curve.problem), []).append(text)
    parts = []
    for group in (PROBLEMS, REALS):
        some = {pair: texts for pair, texts in found.items() if pair[1] in group and set(texts) != {"–"}}
        problems = [name for name in group if name in {problem for _, problem in some}]
        methods = [key for key in dict.fromkeys(key for key, _ in found) if key in {method for method, _ in some}]
        lines = [f"| method | {' | '.join(problems)} |", f"|{' --- |' * (1 + len(problems))}"]
        for key in methods:
            lines.append(f"| `{key}` | {' | '.join(' / '.join(found[key, problem]) for problem in problems)} |")
        if methods:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def claimed(kept: Mapping[Key, Kept]) -> str:
    """Return the table of claims about runs of which enough were kept: that of `bounce paper check --markdown`."""
    found = [row for figure in figures().values() for row in check(figure, lambda curve: seen(curve, [], kept))]
    run = [row for row in found if row.verdict != MISSING]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in as_table(run))


@app.command()
def paper(
    *,
    kept: Annotated[Path, typer.Option(help="The file of kept runs.")] = KEPT,
    into: Annotated[Path, typer.Option(help="The document whose tables are replaced.")] = PAGE,
) -> None:
    """Renew the tables of runs, of the default beside the method of the paper and of claims, and print them."""
    runs = read(kept)
    tables = {"kept": coverage(runs), "versions": against_default(runs), "claims": claimed(runs)}
    for name, text in tables.items():
        report.renew(into, name, text)
        print(text)


def cost(name: str, kind: str, observed: int = OBSERVED) -> float | None:
    """Return the processor time of the slowest of the last asks up to some observations; None if the kind is refused.

    Most methods start with random points, and one ask that is not counted, since samplers burn in then. A method with
    designs of its own asks for all points.
    """
    space = grid.space_of(kind, 50)
    initial, asks = (INITIAL, LONG) if name in OWN_DESIGN else (observed - SHORT - 1, SHORT)
    try:
        optimizer = baselines.make(name, space, observed, 0, initial=initial)
    except InvalidSpace:
        return None
    values, times = grid.objective(space), []
    while not optimizer.done:
        start = time.process_time()
        trials = optimizer.ask(1)
        times.append(time.process_time() - start)
        optimizer.tell(trials, values(trial.point for trial in trials))
    return max(times[-asks:])


@app.command()
def speed(
    *,
    methods: Names = None,
    into: Annotated[Path | None, typer.Option(help="The document whose table is replaced.")] = None,
) -> None:
    """Measure an ask of each rival with 50 variables at 200 observations, in processor time."""
    names = _separate(methods, list(RIVALS), "rival") or list(RIVALS)
    lines = [f"| seconds per ask | {' | '.join(KINDS)} |", f"|{' --- |' * (1 + len(KINDS))}"]
    for name in names:
        found = [cost(name, kind) for kind in KINDS]
        lines.append(f"| `{name}` | {' | '.join('–' if own is None else f'{own:.2f}' for own in found)} |")
        print(lines[-1], flush=True)
    if into is not None:
        report.renew(into, "speed", "\n".join(lines))


if __name__ == "__main__":
    try:
        app()
    except BounceError as error:
        raise SystemExit(f"literature: {error}") from None
