"""Measure what constraints add to the time of an ask: 50 variables, three constraints, CPU time.

    python bench/asks.py [--evaluations 130] [--seeds 1] [--case NAME]

Variables that a constraint names never share a bin, so the more are named, the more dimensions the first stages have.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np

from bounce import Binary, Bounce, Categorical, Ordinal, Real, Space
from bounce.spaces.parameters import Parameter


def _listed(stem: str, first: int, stop: int) -> str:
    return ", ".join(f"{stem}{i}" for i in range(first, stop))


REALS: list[Parameter] = [Real(f"x{i}", 0, 1) for i in range(50)]
BITS: list[Parameter] = [Binary(f"b{i}") for i in range(50)]
MIXED: list[Parameter] = [
    *BITS[:20],
    *(Categorical(f"c{i}", list("vwxyz")) for i in range(10)),
    *(Ordinal(f"o{i}", list(range(5))) for i in range(10)),
    *REALS[:10],
]
CASES: dict[str, tuple[list[Parameter], list[str]]] = {
    "mixed, few named": (
        MIXED,
        ["not (c0 == 'v' and c1 in ['w', 'x'])", "2 * x0 + x1 <= 1.5", "count(b0, b1, b2) <= 2"],
    ),
    "mixed, most named": (
        MIXED,
        [
            f"sum({_listed('x', 0, 10)}) <= 6",
            f"count({_listed('b', 0, 20)}) <= 12",
            f"sum({_listed('o', 0, 10)}) <= 25",
        ],
    ),
    "reals, few named": (REALS, ["x0 + x1 <= 1.5", "x2 * x3 <= 0.6", "x4 >= x5"]),
    "reals, all named": (
        REALS,
        [f"sum({_listed('x', 0, 50)}) <= 28", f"sum({_listed('x', 0, 20)}) >= 8", f"sum({_listed('x', 20, 50)}) >= 12"],
    ),
    "binary, few named": (BITS, ["not (b0 and b1)", "count(b2, b3, b4, b5) <= 2", "b6 or b7"]),
    "binary, all named": (
        BITS,
        [
            f"count({_listed('b', 0, 50)}) <= 28",
            f"count({_listed('b', 0, 20)}) >= 8",
            f"count({_listed('b', 20, 50)}) >= 10",
        ],
    ),
}


def asks(space: Space, evaluations: int, seed: int) -> list[float]:
    """Return the seconds of each ask of a run on a sum of squares with a product."""
    optimizer = Bounce(space, evaluations, seed=seed)
    weights = np.random.default_rng(5).normal(size=len(space))
    seconds = []
    while not optimizer.done:
        start = time.process_time()
        (trial,) = optimizer.ask()
        seconds.append(time.process_time() - start)
        x = space.encode([trial.point])[0] / np.maximum(space.cardinalities - 1, 1)
        optimizer.tell(trial, float((x - 0.3) ** 2 @ np.abs(weights) + np.sin(3 * x[:8]).prod()))
    return seconds


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--evaluations", type=int, default=130)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--case", choices=CASES, action="append")
    given = parser.parse_args()
    print("| space | without, ms | with, ms | times |\n|---|---|---|---|")
    for name in given.case or CASES:
        parameters, constraints = CASES[name]
        free, bound = (
            1e3 * np.mean([asks(space, given.evaluations, seed) for seed in range(given.seeds)])
            for space in (Space(parameters), Space(parameters, constraints=constraints))
        )
        print(f"| {name} | {free:.1f} | {bound:.1f} | {bound / free:.2f} |", flush=True)


if __name__ == "__main__":
    main()
