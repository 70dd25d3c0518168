"""Measure what a study costs on top of its optimizer, and how busy it keeps its workers.

Run `python bench/study.py`. The overhead is the time of ask and tell in a file less the time the optimizer itself
takes, with 50 binary variables; the optimizer only draws initial points, so that thousands of trials take seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bounce import Binary, Bounce, Space, Study, Trial

EVERY = 1000
TRIALS = 5000
WORKERS, EVALUATION, ASK = 64, 2.0, 0.010


class Timed(Bounce):
    """An optimizer that adds up the time its asks and tells take."""

    spent = 0.0

    def ask(self, n: int | None = None) -> list[Trial]:
        start = time.perf_counter()
        try:
            return super().ask(n)
        finally:
            Timed.spent += time.perf_counter() - start

    def tell(self, *args: Any, **kwargs: Any) -> None:
        start = time.perf_counter()
        super().tell(*args, **kwargs)
        Timed.spent += time.perf_counter() - start


def overhead(folder: Path) -> Table:
    """Return the overhead per trial, by the number of trials before it."""
    import bounce.study.study as module

    module.Bounce = Timed  # type: ignore[attr-defined]
    table = Table(
        "trials", "ms per trial on top of the optimizer", "ms of the optimizer", title="the overhead of a study"
    )
    space = Space([Binary(f"b{i}") for i in range(50)])
    with Study.open(folder / "overhead.db", space=space, budget=2 * TRIALS, seed=0, initial_points=TRIALS) as study:
        for first in range(0, TRIALS, EVERY):
            Timed.spent, start = 0.0, time.perf_counter()
            for _ in range(EVERY):
                (trial,) = study.ask()
                study.tell(trial, 1.0)
            total = time.perf_counter() - start
            table.add_row(
                f"{first} to {first + EVERY}",
                f"{1000 * (total - Timed.spent) / EVERY:.2f}",
                f"{1000 * Timed.spent / EVERY:.2f}",
            )
    module.Bounce = Bounce  # type: ignore[attr-defined]
    return table


class Slow(Bounce):
    """An optimizer whose asks take a given time."""

    def ask(self, n: int | None = None) -> list[Trial]:
        end = time.perf_counter() + ASK
        trials = super().ask(n)
        while time.perf_counter() < end:
            pass
        return trials


def busy(folder: Path) -> float:
    """Return the share of time that workers spend evaluating, from the first outcome to the last ask."""
    import bounce.study.study as module

    module.Bounce = Slow  # type: ignore[attr-defined]
    spans: list[tuple[float, float]] = []

    def objective(point: dict[str, Any]) -> float:
        start = time.perf_counter()
        time.sleep(EVALUATION)
        spans.append((start, time.perf_counter()))
        return 1.0

    space = Space([Binary(f"b{i}") for i in range(50)])
    budget = 8 * WORKERS
    with (
        Study.open(folder / "busy.db", space=space, budget=budget, seed=0, initial_points=budget) as study,
        ThreadPoolExecutor(WORKERS) as executor,
    ):
        study.run(objective, executor=executor, workers=WORKERS, batch_size=1)
    module.Bounce = Bounce  # type: ignore[attr-defined]
    starts, ends = np.array(sorted(spans)).T
    first, last = ends.min(), starts.max()
    inside = np.minimum(ends, last) - np.maximum(starts, first)
    return float(np.maximum(inside, 0.0).sum() / (WORKERS * (last - first)))


def help_seconds() -> float:
    """Return how long `bounce --help` takes, the median of nine."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "bounce", "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        console.print(overhead(Path(folder)))
        console.print(f"{WORKERS} workers, {EVALUATION} s each, asks of {ASK} s: {100 * busy(Path(folder)):.1f} % busy")
    console.print(f"bounce --help: {help_seconds():.3f} s")


if __name__ == "__main__":
    main()
