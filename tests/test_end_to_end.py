"""Whole runs: a hundred evaluations of Bounce against a thousand random ones, medians over three seeds.

On bits, and on bits with reals, test_quality.py asks for more than a thousand random evaluations reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Categorical, Integer, Ordinal, Real, Space, minimize

pytestmark = pytest.mark.slow

Objective = Callable[[dict[str, Any]], float]
SEEDS = range(3)


def categories() -> tuple[Space, Objective]:
    rng = np.random.default_rng(5)
    alone, pairs = rng.random((25, 5)), 0.3 * rng.normal(size=(24, 5, 5))

    def objective(point: dict[str, Any]) -> float:
        x = ["abcde".index(c) for c in point.values()]
        return float(sum(alone[i, c] for i, c in enumerate(x)) + sum(pairs[i, x[i], x[i + 1]] for i in range(24)))

    return Space([Categorical(f"c{i}", list("abcde")) for i in range(25)]), objective


def ordinal_sphere() -> tuple[Space, Objective]:
    target = np.random.default_rng(2).integers(0, 9, 20)

    def objective(point: dict[str, Any]) -> float:
        return float(np.sum((np.array(list(point.values())) - target) ** 2))

    return Space([Ordinal(f"o{i}", list(range(9))) for i in range(20)]), objective


def embedded_branin() -> tuple[Space, Objective]:
    def objective(point: dict[str, Any]) -> float:
        x, y = 15 * point["x17"] - 5, 15 * point["x71"]
        return float(
            (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x)
            + 10
        )

    return Space([Real(f"x{i}", 0, 1) for i in range(100)]), objective


@pytest.mark.parametrize("problem", [categories, ordinal_sphere, embedded_branin], ids=lambda f: f.__name__)
def test_a_hundred_evaluations_beat_a_thousand_random_ones(problem: Callable[[], tuple[Space, Objective]]) -> None:
    space, objective = problem()
    # Branin has two active variables of a hundred: stay in small spaces. Everything else runs on the defaults.
    options: dict[str, Any] = {"budget_to_input": 600} if problem is embedded_branin else {}
    found, random = [], []
    for seed in SEEDS:
        best = minimize(objective, space, budget=100, seed=seed, **options).best
        assert best is not None
        assert best.value is not None
        found.append(best.value)
        points = space.decode(space.sample(1000, rng=np.random.default_rng(1000 + seed)))
        random.append(min(map(objective, points)))
    assert np.median(found) < np.median(random)


def test_a_part_of_the_space_where_evaluations_fail_is_left_alone() -> None:
    """The best values lie beside it, so a model that hears nothing of failures walks into it for ever."""
    space = Space([Integer("layers", 1, 12), Real("rate", 0, 1), *(Binary(f"b{i}") for i in range(8))])

    def objective(point: dict[str, Any]) -> float:
        if point["layers"] > 10:
            raise MemoryError
        return float(-point["layers"] + (point["rate"] - 0.3) ** 2 + sum(point[f"b{i}"] for i in range(8)))

    for seed in SEEDS:
        trials = minimize(objective, space, budget=60, seed=seed).trials
        assert sum(trial.state == "failed" for trial in trials) < 20
