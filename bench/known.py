"""Measure what people's knowledge is worth: starts near a good point, and past results.

    python bench/known.py --seeds 20 starts
    python bench/known.py --seeds 10 results
    python bench/known.py --seeds 3 latency

`starts` begins 2, 4 and 8 changes away from the best known point of a problem, and counts the evaluations until that
point's value is reached again, beside a cold run. `results` gives 100 random results to a run of 50 evaluations, beside
cold runs of 50 and of 100. `latency` measures asks in a stage of 12 bins with 300 observations, 200 of them or none
outside the embedding. Each prints a table; nothing is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from bounce import Binary, Bounce, Categorical, Ordinal, Real, Space, benchmarks
from bounce.benchmarks import Problem
from bounce.spaces.parameters import Parameter

BUDGET = 200
FLIPS = (2, 4, 8)
PAST = 100
DIMS, OBSERVED, OUTSIDE, ASKS = 50, 300, 200, 40  # of the latency
LABS50 = "10010111101000010110011110100110000100010001010001"  # energy 153, the lowest known
SMOOTH = ("branin500", "hartmann500", "lasso-dna")  # without a randomised version
PROBLEMS = ("labs50", "maxsat60", "cluster60", "pest25", "contamination25", "ackley53", *SMOOTH)


Past = tuple[list[dict[str, Any]], np.ndarray]
"""Points and their values."""


class What(StrEnum):
    """What is measured."""

    starts = "starts"
    results = "results"
    latency = "latency"


def best_known() -> dict[str, np.ndarray]:
    """Return codes of the best known points of some problems, in their original versions."""
    pest = np.full(25, 4.0)
    pest[-1] = 0.0
    return {"labs50": np.array([float(bit) for bit in LABS50]), "maxsat60": np.zeros(60), "pest25": pest}


def run(
    problem: Problem, budget: int, seed: int, *, start: Sequence[dict[str, Any]] = (), known: Past | None = None
) -> list[float]:
    """Return the best value of a run after each evaluation, what was known before it left out."""
    optimizer = Bounce(problem.space, budget, seed=seed)
    optimizer.enqueue(start)
    if known is not None:
        optimizer.add(*known)
    values: list[float] = []
    while not optimizer.done:
        for trial in optimizer.ask():
            values.append(problem(trial.point))
            optimizer.tell(trial, values[-1])
    return list(np.minimum.accumulate(values))


def changed(problem: Problem, codes: np.ndarray, n: int, seed: int) -> dict[str, Any]:
    """Return a point that differs from another one in n variables."""
    rng = np.random.default_rng([seed, n])
    moved = codes.copy()
    columns = rng.choice(len(codes), n, replace=False)
    cardinalities = problem.space.cardinalities[columns]
    moved[columns] = (moved[columns] + rng.integers(1, cardinalities)) % cardinalities
    return problem.space.decode(moved[None])[0]


def starts(seeds: int) -> Table:
    """Count the evaluations that starts near the best known point need, beside cold runs."""
    table = Table(
        "problem", "start", "reached", "evaluations, median", "best, mean", title=f"{seeds} seeds, {BUDGET} evaluations"
    )
    for name, codes in best_known().items():
        problem = benchmarks.load(name)
        goal = float(problem.evaluate(codes[None])[0])
        for n in (*FLIPS, None):
            points = [[] if n is None else [changed(problem, codes, n, seed)] for seed in range(seeds)]
            curves = [run(problem, BUDGET, seed, start=start) for seed, start in enumerate(points)]
            ends = [next((i + 1 for i, v in enumerate(c) if v <= goal + 1e-9), None) for c in curves]
            reached = [end for end in ends if end is not None]
            median = np.median([end or np.inf for end in ends])
            label = "cold" if n is None else f"{n} changes away"
            best = f"{np.mean([c[-1] for c in curves]):.4g} (goal {goal:.4g})"
            table.add_row(name, label, f"{len(reached)} of {seeds}", f"{median:g}", best)
    return table


def results(seeds: int, names: list[str]) -> Table:
    """Compare runs that know past results with cold ones."""
    table = Table("problem", "past results, best", "50 with them", "cold 50", "cold 100", "better than cold 50")
    for name in names:
        problem = benchmarks.load(name, name not in SMOOTH)
        rows = []
        for seed in range(seeds):
            x = problem.space.sample(PAST, rng=np.random.default_rng([seed, PAST]))
            values = problem.evaluate(x)
            warm = run(problem, 50, seed, known=(problem.space.decode(x), values))
            rows.append(
                (values.min(), min(warm[-1], values.min()), run(problem, 50, seed)[-1], run(problem, 100, seed)[-1])
            )
        means, wins = np.mean(rows, axis=0), sum(row[1] < row[2] for row in rows)
        table.add_row(name, *(f"{mean:.6g}" for mean in means), f"{wins} of {seeds}")
    return table


def asks(space: Space, outside: int, seed: int) -> list[float]:
    """Return the CPU seconds of asks, some of whose observations lie outside the embedding."""
    weights = np.random.default_rng(1).normal(size=len(space))

    def values(points: list[dict[str, Any]]) -> np.ndarray:
        sums = space.encode(points) @ weights
        return np.asarray(np.sin(sums) + 0.1 * sums)

    optimizer = Bounce(space, 10**5, seed=seed, initial_dims=12, initial_points=OBSERVED, budget_to_input=9 * 10**4)
    past = space.decode(space.sample(outside, rng=np.random.default_rng(seed)))
    optimizer.add(past, values(past))
    times = []
    for n in (OBSERVED - outside, *[1] * ASKS):
        start = time.process_time()
        trials = optimizer.ask(n)
        times.append(time.process_time() - start)
        optimizer.tell(trials, values([trial.point for trial in trials]))
    return times[1:]


def latency(seeds: int) -> Table:
    """Measure what observations outside the embedding cost."""
    kinds: dict[str, Callable[[int], Parameter]] = {
        "binary": lambda i: Binary(f"b{i}"),
        "categorical": lambda i: Categorical(f"c{i}", list("vwxyz")),
        "ordinal": lambda i: Ordinal(f"o{i}", range(5)),
        "real": lambda i: Real(f"x{i}", 0.0, 1.0),
    }
    spaces = {kind: Space([make(i) for i in range(DIMS)]) for kind, make in kinds.items()}
    mixed = [list(kinds.values())[i % 4](i) for i in range(DIMS)]
    table = Table("50 variables", "ms, none outside", "ms, 200 outside", "ratio", title=f"means of {seeds * ASKS} asks")
    for kind, space in {**spaces, "mixed": Space(mixed)}.items():
        none, some = (np.mean([asks(space, outside, seed) for seed in range(seeds)]) for outside in (0, OUTSIDE))
        table.add_row(kind, f"{1e3 * none:.1f}", f"{1e3 * some:.1f}", f"{some / none:.2f}")
    return table


def main(
    what: Annotated[What, typer.Argument(help="starts, results or latency.")],
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs of each sort.")] = 10,
    problems: Annotated[str, typer.Option(help="Names for results, with commas between them.")] = ",".join(PROBLEMS),
) -> None:
    """Print a table."""
    if what is What.results:
        table = results(seeds, problems.split(","))
    else:
        table = starts(seeds) if what is What.starts else latency(seeds)
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
