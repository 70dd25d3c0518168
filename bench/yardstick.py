"""Yardstick: the time that plain numpy takes for a well-known piece of work on this machine, now."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.linalg

REPEATS = 9


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median time of some work, without the first call."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def dense_scoring() -> Callable[[], object]:
    """Return work: 5,000 candidates of 50 binary variables scored against 200 observations.

    Distances, Matérn-5/2, posterior mean and variance, once.
    """
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
