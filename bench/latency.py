"""Measure what an ask costs, in units of dense linear algebra.

The unit is the time plain numpy takes to score 5,000 candidates of 50 binary variables against 200 observations
once: distances, Matérn-5/2, posterior mean and variance.

    python bench/latency.py                       # a summary of Bounce
    python bench/latency.py --grid                # Bounce and its alternatives, by sizes and kinds; or --full
    python bench/latency.py --grid --methods bounce,reference --reference CHECKOUT --reference-python PYTHON

Each row of the grid is added to a table when it is measured; rows that already exist are not measured again.
Everything runs with one thread for linear algebra, unless OPENBLAS_NUM_THREADS says otherwise. `imports.py` measures
what imports cost.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Annotated

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

import grid
import report
from bounce import Binary, Bounce, Categorical, Ordinal, Real, Space, baselines
from bounce.errors import BounceError, InvalidInput
from bounce.spaces.parameters import Parameter
from reference import check
from yardstick import dense_scoring, seconds

STATES, REPEATS = 4, 3  # a row of the summary is a mean over states, in each the median of some asks


def spaces() -> dict[str, tuple[Space, int, str]]:
    """Return the measured spaces, each with its number of observations and the target for an ask with a fit."""
    mixed: list[Parameter] = [
        *(Binary(f"b{i}") for i in range(20)),
        *(Categorical(f"c{i}", list("vwxyz")) for i in range(10)),
        *(Ordinal(f"o{i}", list(range(5))) for i in range(10)),
        *(Real(f"x{i}", 0.0, 1.0) for i in range(10)),
    ]
    return {
        "50 binary, 200 observations": (Space([Binary(f"b{i}") for i in range(50)]), 200, "3 units"),
        "50 mixed, 200 observations": (Space(mixed), 200, "10 units"),
        "500 real, 500 observations": (grid.space_of("real", 500), 500, "30 units"),
        "100 mixed, 2,000 observations": (grid.space_of("mixed", 100), 2000, "1 s"),
        "1,000 real, 1,000 observations": (grid.space_of("real", 1000), 1000, "2 s"),
    }


def told(opt: Bounce, n: int) -> float:
    """Ask for n points and tell their values; return the seconds of the ask."""
    start = time.perf_counter()
    trials = opt.ask(n)
    taken = time.perf_counter() - start
    codes = opt.space.encode([t.point for t in trials])
    sums = codes @ np.random.default_rng(1).normal(size=len(opt.space))
    opt.tell(trials, np.sin(sums) + 0.1 * sums)
    return taken


def prepared(space: Space, n: int, seed: int = 0) -> Bounce:
    """Return an optimizer in the input space that has observed n random points."""
    opt = Bounce(space, 100_000, seed=seed, initial_dims=len(space), initial_points=5, budget_to_input=50_000)
    told(opt, n)
    return opt


def again(opts: Sequence[Bounce], n: int, *, fit: bool) -> float:
    """Return the seconds of an ask for n points from the same states, with a fit or without."""
    times = np.empty((len(opts), REPEATS))
    for place in np.ndindex(times.shape):
        opt = deepcopy(opts[place[0]])
        if fit:
            assert opt._head.fit is not None
            opt._head = replace(opt._head, fit=replace(opt._head.fit, tells=0))  # as if it were long ago
        times[place] = told(opt, n)
    return float(np.median(times, axis=1).mean())


def summary() -> None:
    """Print the cost of Bounce and its targets."""
    table = Table("what", "milliseconds", "units", "target")
    unit = seconds(dense_scoring())
    table.add_row("the unit", f"{1e3 * unit:.1f}", "1.0", "")

    def row(what: str, time: float, target: str) -> None:
        table.add_row(what, f"{1e3 * time:.1f}", f"{time / unit:.1f}", target)

    for name, (space, n, target) in spaces().items():
        opts = [prepared(space, n, seed) for seed in range(STATES)]
        row(f"{name}: first ask, cold fit", float(np.mean([told(opt, 1) for opt in opts])), "")
        with_fit = again(opts, 1, fit=True)
        row(f"{name}: ask with a fit", with_fit, f"≤ {target}")
        row(f"{name}: ask without a fit", again(opts, 1, fit=False), "")
        batch = again(opts, 20, fit=True)
        row(f"{name}: batch of 20, {batch / with_fit:.1f} times one", batch, "≤ 4 times one")
        unit = seconds(dense_scoring())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row("peak memory of this process", f"{peak:.0f} MiB", "", "≤ 1024 MiB")
    Console(width=110).print(table)


def measure_grid(
    methods: list[str],
    table: Path,
    console: Console,
    *,
    full: bool,
    reference: tuple[Path, Path] | None,
    patience: float,
) -> dict[grid.Case, grid.Cost]:
    """Measure the missing rows of a grid, and return all rows."""
    wanted = grid.cases(methods, full=full)
    known = grid.read(table)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(wanted))
        for case in wanted:
            what = f"{case.method}, {case.dims} {case.kind}, {case.observed} observations, {case.batch} at a time"
            progress.update(task, description=what)
            if case not in known:
                if grid.hopeless(case, known):
                    known[case] = grid.Cost(note="not tried: a smaller case was stopped")
                else:
                    known[case] = grid.run(case, reference, patience)
                grid.write(table, case, known[case])
            progress.advance(task)
    return {case: known[case] for case in wanted}


METHODS = list(dict.fromkeys(["bounce", *baselines.names()]))


def main(
    *,
    over_grid: Annotated[bool, typer.Option("--grid", help="Measure over sizes, kinds and methods.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The whole grid instead of a part of it.")] = False,
    methods: Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")] = None,
    table: Annotated[Path, typer.Option(help="The rows of the grid.")] = Path("bench/traces/latency.csv"),
    reference: Annotated[Path | None, typer.Option(help="A checkout of the authors' code.")] = None,
    reference_python: Annotated[Path | None, typer.Option(help="The Python that has its packages.")] = None,
    patience: Annotated[float, typer.Option(min=1.0, help="Seconds that a case may take.")] = grid.PATIENCE,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Measure nothing; show the rows of the table.")
    ] = False,
    results: Annotated[Path | None, typer.Option(help="The document whose table is replaced.")] = None,
) -> None:
    """Measure what an ask costs."""
    if not (over_grid or full or only_report or methods or reference or results):  # these are for the grid
        summary()
        return
    report.check(results, "latency", out=table.parent, files=[table] if only_report else [])
    names = METHODS if methods is None else [name.strip() for name in methods.split(",")]
    if reference is not None and grid.REFERENCE not in names:
        names = [*names, grid.REFERENCE]
    for name in names:
        if name not in (*METHODS, grid.REFERENCE):
            raise InvalidInput(f"there is no method {name!r}; the names are {', '.join(METHODS)}, {grid.REFERENCE}")
    if grid.REFERENCE in names:
        check(reference, reference_python)
    where = None if reference is None else (reference, reference_python or Path(sys.executable))
    if only_report:
        found = grid.read(table)
    else:
        found = measure_grid(names, table, Console(stderr=True), full=full, reference=where, patience=patience)
    text = grid.markdown(found)
    table.with_suffix(".md").write_text(text, encoding="utf-8")
    if results is not None:
        report.renew(results, "latency", text)
    print(text)


if __name__ == "__main__":
    try:
        typer.run(main)
    except BounceError as error:
        raise SystemExit(f"latency: {error}") from None
