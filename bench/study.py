"""Measure what a study costs on top of its optimizer, and how busy it keeps its workers.

Run `python bench/study.py`. The overhead is the time of ask and tell in a study file, less the time of the optimizer
itself, with 50 binary variables. The optimizer only draws initial points, so thousands of trials take seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from bounce import Binary, Bounce, Space, Study

EVERY = 1000
TRIALS = 5000
WORKERS, EVALUATION, ASK = 64, 2.0, 0.010


@contextmanager
def timed() -> Iterator[list[float]]:
    """Collect the seconds of every ask and tell of an optimizer."""
    spent: list[float] = []

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                spent.append(time.perf_counter() - start)

        return call

    with patch.object(Bounce, "ask", watched(Bounce.ask)), patch.object(Bounce, "tell", watched(Bounce.tell)):
        yield spent


def overhead(folder: Path) -> Table:
    """Return the overhead per trial, by the number of trials before it."""
    table = Table(
        "trials", "ms per trial on top of the optimizer", "ms of the optimizer", title="the overhead of a study"
    )
    space = Space([Binary(f"b{i}") for i in range(50)])
    options: dict[str, Any] = {"space": space, "budget": 2 * TRIALS, "seed": 0, "initial_points": TRIALS}
    with timed() as spent, Study.open(folder / "overhead.db", **options) as study:
        for first in range(0, TRIALS, EVERY):
            spent.clear()
            start = time.perf_counter()
            for _ in range(EVERY):
                (trial,) = study.ask()
                study.tell(trial, 1.0)
            total, own = time.perf_counter() - start, sum(spent)
            cells = (f"{1000 * seconds / EVERY:.2f}" for seconds in (total - own, own))
            table.add_row(f"{first} to {first + EVERY}", *cells)
    return table


def slow(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return an ask that takes a given time, and computes all the while."""

    def call(*args: Any, **kwargs: Any) -> Any:
        end = time.perf_counter() + ASK
        trials = ask(*args, **kwargs)
        while time.perf_counter() < end:
            pass
        return trials

    return call


def busy(folder: Path) -> float:
    """Return the share of time that workers spend evaluating, from the first outcome to the last ask."""
    spans: list[tuple[float, float]] = []

    def objective(point: dict[str, Any]) -> float:
        start = time.perf_counter()
        time.sleep(EVALUATION)
        spans.append((start, time.perf_counter()))
        return 1.0

    space = Space([Binary(f"b{i}") for i in range(50)])
    budget = 8 * WORKERS
    with (
        patch.object(Bounce, "ask", slow(Bounce.ask)),
        Study.open(folder / "busy.db", space=space, budget=budget, seed=0, initial_points=budget) as study,
        ThreadPoolExecutor(WORKERS) as executor,
    ):
        study.run(objective, executor=executor, workers=WORKERS, batch_size=1)
    starts, ends = np.array(sorted(spans)).T
    first, last = ends.min(), starts.max()
    inside = np.minimum(ends, last) - np.maximum(starts, first)
    return float(np.maximum(inside, 0.0).sum() / (WORKERS * (last - first)))


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        console.print(overhead(Path(folder)))
        console.print(f"{WORKERS} workers, {EVALUATION} s each, asks of {ASK} s: {100 * busy(Path(folder)):.1f} % busy")


if __name__ == "__main__":
    main()
