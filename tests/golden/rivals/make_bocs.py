"""Write bocs.json: moments of the Gibbs chain of the published BOCS, and how low its annealing comes.

The tests only read the JSON and need none of this. To make it again, in an environment of its own:

    pip install numpy==2.4.6
    git clone https://github.com/baptistar/BOCS && git -C BOCS checkout fef0d4e
    PYTHONPATH=BOCS/BOCSpy python tests/golden/rivals/make_bocs.py

Nothing of the published code is changed; its import of cvxpy, which annealing does not need, finds an empty module. It
draws from numpy's own generator, whose seed is set here.
"""

# mypy: ignore-errors
# The published code has no types, and is not there when types are checked.

from __future__ import annotations

import json
import platform
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.modules["cvxpy"] = ModuleType("cvxpy")
from bhs import bhs  # noqa: E402
from BOCS import simulated_annealing  # noqa: E402

BURN_IN = 500
BATCHES = 25  # of steps, for the standard errors of means of a chain


def problem(bits: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their features and their values."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2, (n, bits)).astype(float)
    x[0] = 1.0  # no feature is zero at all points
    pairs = [x[:, j] * x[:, k] for j, k in combinations(range(bits), 2)]
    y = 2.0 * x[:, 0] - 1.5 * x[:, 1] * x[:, 2] + 0.5 * rng.standard_normal(n)
    y = np.round((y - y.mean()) / y.std(), 6)
    return x, np.concatenate([x, np.stack(pairs, axis=1)], axis=1), y - y.mean()


def long_chain(bits: int, n: int, steps: int) -> dict[str, Any]:
    """Means and mean squares along a long chain, with standard errors by batches."""
    x, design, y = problem(bits, n)
    np.random.seed(n)  # noqa: NPY002
    alpha, _, noise, shared, local = bhs(design, y, steps, BURN_IN, 1)
    drawn = np.concatenate([alpha, np.log(noise), np.log(shared), np.log(local)[:3]]).T
    statistics = {}
    for power in (1, 2):
        batches = (drawn**power).reshape(BATCHES, -1, drawn.shape[1]).mean(axis=1)
        statistics[f"mean of power {power}"] = batches.mean(axis=0).tolist()
        statistics[f"error of power {power}"] = (batches.std(axis=0, ddof=1) / BATCHES**0.5).tolist()
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "columns": "the coefficients of the bits and of their pairs, log of noise, of shared, of the first three local",
        "steps": steps,
        **statistics,
    }


def short_chains(bits: int, n: int, steps: int, repeats: int) -> dict[str, Any]:
    """The last states of many short chains: with more features than points, a chain moves too slowly for averages."""
    x, design, y = problem(bits, n)
    np.random.seed(n)  # noqa: NPY002
    last = []
    for _ in range(repeats):
        alpha, _, noise, shared, local = bhs(design, y, steps, 0, 1)
        end = alpha[:, -1]
        last.append([np.log(noise[0, -1]), np.log(shared[0, -1]), np.log(local[0, -1]), *end[:3], *(design[:3] @ end)])
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "columns": "log of noise, of shared, of the first local; the first three coefficients and predictions",
        "steps": steps,
        "last": np.round(last, 6).tolist(),
    }


def annealing(bits: int, steps: int, repeats: int = 400) -> dict[str, Any]:
    """The mean of the lowest value of five runs on a random quadratic function, with its standard error."""
    rng = np.random.default_rng(bits)
    linear, pairs = np.round(rng.standard_normal(bits), 3), np.triu(np.round(rng.standard_normal((bits, bits)), 3), 1)
    np.random.seed(bits)  # noqa: NPY002

    def value(x: Any) -> float:
        return float(x[0] @ linear + x[0] @ pairs @ x[0])

    inputs = {"n_vars": bits, "evalBudget": steps}
    lowest = [min(float(simulated_annealing(value, inputs)[1][-1]) for _ in range(5)) for _ in range(repeats)]
    return {
        "linear": linear.tolist(),
        "pairs": pairs.tolist(),
        "steps": steps,
        "mean": float(np.mean(lowest)),
        "error": float(np.std(lowest, ddof=1) / repeats**0.5),
    }


def main() -> None:
    document = {
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "commit": "fef0d4e",
        "annealing": [annealing(12, 30), annealing(20, 100)],
        "long chain": long_chain(5, 30, 20_000),
        "short chains": short_chains(20, 20, 100, 150),
    }
    file = Path(__file__).with_name("bocs.json")
    file.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
