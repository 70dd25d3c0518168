"""Measure what an ask costs, in units of dense linear algebra.

The unit is the time plain numpy takes to score 5,000 candidates of 50 binary variables against 200 observations
once: distances, Matérn-5/2, posterior mean and variance. Run `python bench/latency.py`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg
from rich.console import Console
from rich.table import Table

from bounce import Binary, Bounce, Categorical, Ordinal, Real, Space
from bounce.parameters import Parameter

REPEATS = 9


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median time of some work, the first go left out."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def dense_scoring() -> Callable[[], object]:
    rng = np.random.default_rng(0)
    x, candidates = rng.integers(0, 2, (200, 50)) * 1.0, rng.integers(0, 2, (5000, 50)) * 1.0

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        d2 = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2.0 * a @ b.T
        s = np.sqrt(5.0 * np.maximum(d2, 0.0)) / 3.0
        return np.asarray((1.0 + s + s**2 / 3.0) * np.exp(-s))

    factor = scipy.linalg.cholesky(kernel(x, x) + 1e-2 * np.eye(200), lower=True)
    alpha = scipy.linalg.cho_solve((factor, True), rng.normal(size=200))

    def score() -> object:
        k = kernel(candidates, x)
        v = scipy.linalg.solve_triangular(factor, k.T, lower=True)
        return k @ alpha, 1.0 - (v**2).sum(axis=0)

    return score


def spaces() -> dict[str, tuple[Space, int]]:
    """Return the measured spaces with their numbers of observations."""
    mixed: list[Parameter] = [
        *(Binary(f"b{i}") for i in range(20)),
        *(Categorical(f"c{i}", list("vwxyz")) for i in range(10)),
        *(Ordinal(f"o{i}", list(range(5))) for i in range(10)),
        *(Real(f"x{i}", 0.0, 1.0) for i in range(10)),
    ]
    return {
        "50 binary, 200 observations": (Space([Binary(f"b{i}") for i in range(50)]), 200),
        "50 mixed, 200 observations": (Space(mixed), 200),
        "500 real, 500 observations": (Space([Real(f"x{i}", 0.0, 1.0) for i in range(500)]), 500),
    }


def prepared(space: Space, n: int) -> Bounce:
    """Return an optimizer in the input space that has observed n random points."""
    opt = Bounce(space, 100_000, seed=0, initial_dims=len(space), initial_points=5, budget_to_input=50_000)
    trials = opt.ask(n)
    weights = np.random.default_rng(1).normal(size=len(space))
    codes = space.encode([t.point for t in trials])
    opt.tell(trials, np.sin(codes @ weights) + 0.1 * codes @ weights)
    return opt


def ask_again(opt: Bounce, n: int, *, fit: bool) -> Callable[[], object]:
    """Return an ask that can be repeated: its trials fail, and the hyperparameters are fitted each time or not."""

    def ask() -> object:
        if fit:
            opt._head = replace(opt._head, fitted=0)
        trials = opt.ask(n)
        opt.fail(trials)
        return trials

    return ask


def main() -> None:
    table = Table("what", "milliseconds", "units", "target")
    unit = seconds(dense_scoring())
    table.add_row("the unit", f"{1e3 * unit:.1f}", "1.0", "")

    def row(what: str, time: float, target: str) -> None:
        table.add_row(what, f"{1e3 * time:.1f}", f"{time / unit:.1f}", target)

    for (name, (space, n)), target in zip(spaces().items(), (3, 10, 30), strict=True):
        opt = prepared(space, n)
        start = time.perf_counter()
        opt.fail(opt.ask())
        row(f"{name}: first ask, cold fit", time.perf_counter() - start, "")
        row(f"{name}: ask with a fit", seconds(ask_again(opt, 1, fit=True)), f"≤ {target} units")
        one = seconds(ask_again(opt, 1, fit=False))
        row(f"{name}: ask without a fit", one, "")
        with_fit = seconds(ask_again(opt, 1, fit=True))
        batch = seconds(ask_again(opt, 20, fit=True), 3)
        row(f"{name}: batch of 20, {batch / with_fit:.1f} times one", batch, "≤ 4 times one")
        unit = seconds(dense_scoring())
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import bounce; bounce.Bounce"], check=True)
    table.add_row("import of everything", f"{1e3 * (time.perf_counter() - start):.0f}", "", "≤ 500 ms")
    prepared(Space([Real(f"x{i}", 0.0, 1.0) for i in range(500)]), 1000).ask()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row("memory, 500 real, 1,000 observations", f"{peak:.0f} MiB", "", "≤ 1024 MiB")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
