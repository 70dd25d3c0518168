"""Measure evaluations per second of every problem, in one process.

`calls` goes through `__call__` with native values, `rows` through `evaluate` with 100 points at a time.

    OMP_NUM_THREADS=1 BOUNCE_DATA=FOLDER python bench/throughput.py [NAME]...
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from bounce import benchmarks
from bounce.errors import BounceError

SECONDS = 1.0  # per measurement, or one evaluation if that takes longer
TARGETS = {"labs50": 2000, "maxsat60": 2000, "contamination25": 2000, "pest25": 500, "cluster60": 1000}
SLOW = 10.0  # evaluations a second, below which whole batches are not measured


def rate(function: Callable[..., object], arguments: Sequence[object], size: int) -> float:
    function(arguments[0])  # tables and imports
    start = time.perf_counter()
    for done, argument in enumerate(itertools.cycle(arguments), start=1):
        function(argument)
        elapsed = time.perf_counter() - start
        if elapsed >= SECONDS:
            return done * size / elapsed
    raise AssertionError("there is nothing to evaluate")


def main(names: list[str]) -> None:
    print(f"{'problem':<28}{'variables':>10}{'calls/s':>12}{'rows/s':>12}{'target':>8}")
    for name, randomized in itertools.product(names, (False, True)):
        try:
            problem = benchmarks.load(name, randomized=randomized)
        except BounceError as error:
            if not randomized:
                print(f"{name:<28}{error}")
            continue
        codes = problem.space.sample(100, rng=np.random.default_rng(0))
        calls = rate(problem, problem.space.decode(codes), 1)
        rows = rate(problem.evaluate, [codes], len(codes)) if calls > SLOW else calls
        target = TARGETS.get(name, "")
        print(f"{problem.name:<28}{len(problem.space):>10}{calls:>12.1f}{rows:>12.1f}{target:>8}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or benchmarks.names())
