"""Does the way in which TuRBO's samples are drawn change what it finds? Hartmann6 in 100 dimensions.

    python bench/lanczos.py exact --seeds 0-7
    python bench/lanczos.py lanczos --seeds 0-7

Above 2,000 candidates the published code draws Thompson samples from a Lanczos root of the covariance, of rank 100.
This runs our TuRBO with 1,200 candidates and 10 initial points, and draws from the posterior or from such a root.
Each line is a seed and its lowest values after 20, 50, 100, 150 and 200 evaluations. docs/rivals.md has the result.
"""

from __future__ import annotations

import os
from typing import Annotated

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np
import typer

from bounce import Real, Space
from bounce.baselines.rivals import thompson, turbo
from bounce.benchmarks.hartmann import Hartmann6
from bounce.gp.linalg import Array, solve

CANDIDATES, RANK = 1200, 100
VARIABLES, ACTIVE = 100, (19, 14, 43, 37, 66, 3)
INITIAL, EVALUATIONS, MARKS = 10, 200, (20, 50, 100, 150, 200)


def lanczos_root(covariance: Array, start: Array, rank: int) -> Array:
    """Return R (m, k) with R·Rᵀ near a covariance (m, m): k steps of Lanczos, orthogonalised twice."""
    q = start / np.linalg.norm(start)
    basis, diagonal, beside = np.zeros((len(q), rank)), np.zeros(rank), np.zeros(rank)
    k = rank
    for i in range(rank):
        basis[:, i] = q
        w = covariance @ q
        diagonal[i] = q @ w
        for _ in range(2):
            w = w - basis[:, : i + 1] @ (basis[:, : i + 1].T @ w)
        beside[i] = np.linalg.norm(w)
        if beside[i] < 1e-6:
            k = i + 1
            break
        q = w / beside[i]
    tridiagonal = np.diag(diagonal[:k]) + np.diag(beside[: k - 1], 1) + np.diag(beside[: k - 1], -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    return np.asarray(basis[:, :k] @ (vectors * np.sqrt(np.clip(values, 0.0, None))))


def sample(model: thompson.Model, z: Array, *, rng: np.random.Generator) -> Array:
    """Draw the values that would be observed at candidates (m,), from a Lanczos root."""
    gp = model.process
    across = gp.signal * gp.covariance(gp.theta, z, gp.x)
    mean = gp.mean + across @ solve(gp.factor, (gp.y - gp.mean)[:, None])[:, 0]
    covariance = gp.signal * gp.covariance(gp.theta, z, z) - across @ solve(gp.factor, across.T)
    covariance[np.diag_indices(len(z))] += gp.noise
    root = lanczos_root(covariance, rng.standard_normal(len(z)), RANK)
    return np.asarray(model.mean + mean + root @ rng.standard_normal(root.shape[1]))


def run(seed: int) -> list[float]:
    """Return the lowest values after the marks."""
    hartmann = Hartmann6()
    names = [parameter.name for parameter in hartmann.space.parameters]
    optimizer = turbo.Turbo(Space([Real(f"x{i}", 0.0, 1.0) for i in range(VARIABLES)]), EVALUATIONS, seed, INITIAL)
    values = []
    while not optimizer.done:
        (trial,) = optimizer.ask()
        value = hartmann({name: trial.point[f"x{i}"] for name, i in zip(names, ACTIVE, strict=True)})
        optimizer.tell(trial, value)
        values.append(value)
    return [min(values[:mark]) for mark in MARKS]


def main(
    draws: Annotated[str, typer.Argument(help="exact or lanczos")],
    seeds: Annotated[str, typer.Option(metavar="A-B", help="From the first seed to the last.")] = "0-7",
) -> None:
    """Run TuRBO with one way of drawing."""
    if draws not in ("exact", "lanczos"):
        raise typer.BadParameter(f"draws must be exact or lanczos, not {draws}")
    every = turbo.candidates

    def fewer(centre: Array, low: Array, high: Array, *, rng: np.random.Generator) -> Array:
        return every(centre, low, high, rng=rng)[:CANDIDATES]

    turbo.candidates = fewer
    if draws == "lanczos":
        thompson.Model.sample = sample  # type: ignore[assignment, method-assign]
    first, _, last = seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        print(draws, seed, *(f"{value:.4f}" for value in run(seed)), flush=True)


if __name__ == "__main__":
    typer.run(main)
