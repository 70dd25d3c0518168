"""Importance: whether the parameters that do not matter are found, on problems whose answer is known.

Each problem has parameters that its function ignores. Bounce runs for 100 evaluations, and `Bounce.importance` says
which parameters are inert. Precision: the share of those called inert that are. Found: the share of the inert ones that
are called inert. Top: how many of the k most important ones, by the model and by the data alone, are among the k
parameters that matter.

    python bench/importance.py [--seeds 5] [--first 0] [--evaluations 100] [--problem NAME]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounce import Binary, Bounce, Categorical, Integer, Real, Space
from bounce.benchmarks.hartmann import Hartmann6
from bounce.optimizer.importance import Importance

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """A problem with the parameters that matter."""

    space: Space
    matter: frozenset[str]
    function: Callable[[Point], float]


def _reals(n: int, low: float = 0.0, high: float = 1.0) -> Space:
    return Space([Real(f"x{i}", low, high) for i in range(1, n + 1)])


def friedman(point: Point) -> float:
    """Return Friedman's first function (1991): two parameters interact, one is quadratic, two are linear."""
    x1, x2, x3, x4, x5 = (point[f"x{i}"] for i in range(1, 6))
    return float(10 * math.sin(math.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5)


def g_function(point: Point) -> float:
    """Return Sobol's g-function with a = 0, 0.5, 1, 2: a product of kinks."""
    factors = ((abs(4 * point[f"x{i}"] - 2) + a) / (1 + a) for i, a in enumerate((0.0, 0.5, 1.0, 2.0), 1))
    return float(math.prod(factors))


def hartmann(point: Point) -> float:
    """Return Hartmann's function of six parameters."""
    return float(Hartmann6().evaluate(np.array([[point[f"x{i}"] for i in range(1, 7)]]))[0])


def switches(point: Point) -> float:
    """Return a loss of five of twenty bits: three count alone, two only together."""
    b = {name: float(value) for name, value in point.items()}
    return 3 * b["b1"] - 2 * b["b2"] + 2 * b["b3"] + 4 * (b["b4"] != b["b5"])


def recipe(point: Point) -> float:
    """Return a loss whose best dose depends on a choice, and that ignores most parameters."""
    best = {"a": 0.2, "b": 0.5, "c": 0.8}[point["solvent"]]
    return float(
        20 * (point["dose"] - best) ** 2
        + 0.4 * (point["steps"] - 6) ** 2 / 4
        + 2 * (point["stirred"] is False)
        + (2.0 if point["solvent"] == "b" else 0.0)
    )


PROBLEMS = {
    "friedman": Known(_reals(15), frozenset(f"x{i}" for i in range(1, 6)), friedman),
    "g-function": Known(_reals(12), frozenset(f"x{i}" for i in range(1, 5)), g_function),
    "hartmann": Known(_reals(20), frozenset(f"x{i}" for i in range(1, 7)), hartmann),
    "switches": Known(
        Space([Binary(f"b{i}") for i in range(1, 21)]), frozenset(f"b{i}" for i in range(1, 6)), switches
    ),
    "recipe": Known(
        Space(
            [
                Real("dose", 0, 1),
                Integer("steps", 1, 10),
                Categorical("solvent", ["a", "b", "c"]),
                Binary("stirred"),
                *(Real(f"r{i}", 0, 1) for i in range(4)),
                *(Integer(f"n{i}", 0, 7) for i in range(3)),
                *(Categorical(f"c{i}", ["x", "y", "z"]) for i in range(3)),
                *(Binary(f"b{i}") for i in range(3)),
            ]
        ),
        frozenset(["dose", "steps", "solvent", "stirred"]),
        recipe,
    ),
}


def examined(problem: Known, seed: int, evaluations: int) -> Importance:
    """Run Bounce on a problem, and return what it says about the parameters."""
    optimizer = Bounce(problem.space, budget=evaluations, seed=seed)
    while not optimizer.done:
        for trial in optimizer.ask():
            optimizer.tell(trial, problem.function(trial.point))
    found = optimizer.importance()
    assert found is not None
    return found


@dataclass(frozen=True)
class Score:
    """What one run says, against the truth."""

    called: int
    right: int
    inert: int
    top_model: float
    top_data: float
    quality: float

    @classmethod
    def of(cls, problem: Known, found: Importance) -> Score:
        """Compare."""
        called = [each.name for each in found.parameters if each.verdict == "inert"]
        k = len(problem.matter)
        by_model = [each.name for each in found.parameters[:k]]
        by_data = [each.name for each in sorted(found.parameters, key=lambda each: -each.data)[:k]]
        return cls(
            len(called),
            sum(name not in problem.matter for name in called),
            len(problem.space) - k,
            len(problem.matter.intersection(by_model)) / k,
            len(problem.matter.intersection(by_data)) / k,
            found.quality,
        )


def line(name: str, scores: list[Score]) -> str:
    """Return a row of the table."""
    called, right, inert = (sum(getattr(score, key) for score in scores) for key in ("called", "right", "inert"))
    precision = f"{right / called:.3f}" if called else "none"
    means = [float(np.mean([getattr(score, key) for score in scores])) for key in ("top_model", "top_data", "quality")]
    return f"{name:<12} {called:>6} {precision:>9} {right / inert:>6.2f} " + " ".join(f"{x:>9.2f}" for x in means)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    given = parser.parse_args()
    print(
        f"{'problem':<12} {'called':>6} {'precision':>9} {'found':>6} {'top model':>9} {'top data':>9} {'quality':>9}"
    )
    everything: list[Score] = []
    for name in given.problem or PROBLEMS:
        start = time.perf_counter()
        runs = [
            examined(PROBLEMS[name], seed, given.evaluations) for seed in range(given.first, given.first + given.seeds)
        ]
        scores = [Score.of(PROBLEMS[name], found) for found in runs]
        everything += scores
        print(line(name, scores), f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    print(line("all", everything))


if __name__ == "__main__":
    main()
