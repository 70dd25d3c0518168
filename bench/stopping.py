"""Measure how often `stop_when="no improvement expected above X"` ends a run too early, and what it saves.

X is a share of the standard deviation of the values of 1,000 random points. Each run goes on to its whole budget, so
that one can see what a run that was stopped has missed.

    python bench/stopping.py                      # every problem, 8 seeds; about half an hour
    python bench/stopping.py --problems branin,pest25 --seeds 100-103

*Above X*: the best value at the stop is worse than the optimum by more than X. *Missed*: the rest of the budget gained
more than X.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from statistics import mean
from typing import Annotated

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np
import typer

from bounce import Bounce
from bounce.benchmarks import Labs, Padded, Problem, load
from bounce.benchmarks.branin import Branin
from bounce.benchmarks.hartmann import Hartmann6

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "branin": Branin,
    "hartmann6": Hartmann6,
    "branin20": lambda: Padded(Branin(), 20, title="branin20"),
    "labs20": lambda: Labs(20),
    "pest25": lambda: load("pest25"),
    "contamination25": lambda: load("contamination25"),
    "ackley53": lambda: load("ackley53"),
}
BUDGET = 150
SHARES = (0.1, 0.01)


def measured(problem: Problem, seed: int, gains: list[float]) -> tuple[list[int | None], list[float]]:
    """Return after how many trials each condition holds, and the best value after each trial."""
    optimizer = Bounce(problem.space, budget=BUDGET, seed=seed)
    stops: list[int | None] = [None] * len(gains)
    best: list[float] = []
    while not optimizer.done:
        for trial in optimizer.ask():
            optimizer.tell(trial, problem(trial.point))
        found = optimizer.best
        assert found is not None
        assert found.value is not None
        best.append(found.value)
        for place, gain in enumerate(gains):
            if stops[place] is None and optimizer.reached(f"no improvement expected above {gain!r}") is not None:
                stops[place] = len(best)
    return stops, best


def main(
    problems: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(PROBLEMS),
    seeds: Annotated[str, typer.Option(help="The first and the last seed.")] = "100-107",
) -> None:
    """Print a row for each problem and share."""
    first, last = map(int, seeds.split("-"))
    print("| problem | X | stopped | after | above X | missed |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in problems.split(","):
        problem = PROBLEMS[name]()
        assert problem.optimum is not None
        random = problem.evaluate(problem.space.sample(1000, rng=np.random.default_rng(0)))
        gains = [share * float(np.std(random)) for share in SHARES]
        runs = [measured(problem, seed, gains) for seed in range(first, last + 1)]
        for place, (share, gain) in enumerate(zip(SHARES, gains, strict=True)):
            ended = [(stops[place], best) for stops, best in runs]
            found = [(at, best) for at, best in ended if at is not None]
            above = sum(best[at - 1] - problem.optimum > gain for at, best in found)
            missed = sum(best[at - 1] - best[-1] > gain for at, best in found)
            after = f"{mean(at for at, _ in found):.0f}" if found else "-"
            print(
                f"| {name} | {share:g} σ = {gain:.3g} | {len(found)} of {len(runs)} | {after} | {above} | {missed} |",
                flush=True,
            )


if __name__ == "__main__":
    typer.run(main)
