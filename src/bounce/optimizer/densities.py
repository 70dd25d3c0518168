"""Densities: how much each parameter matters, from the data alone (PED-ANOVA, Watanabe et al. 2023).

For one parameter, p is the density of its values in all trials and q that in the best of them. Its importance is the
Pearson divergence of the two, E_p[(q/p − 1)²]. This is their measure with all trials as the base. A parameter that does
not matter has the same values everywhere. Reals have kernel densities on a grid, other kinds smoothed counts.

A search drifts: later trials are better and closer together, also in parameters that do not matter. So the best are
those of each window of consecutive trials. On five problems with known answers, 100 evaluations of Bounce and 3 seeds,
the k parameters of the largest importance hold 76 % of the k that matter with windows of 25 trials, and 58 % without.

By chance alone the divergence is not 0. It is computed again for random choices of as many trials of each window, and
what is expected by chance is taken off.

Shapes: n trials, g cells.
"""

from __future__ import annotations

import numpy as np

from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

CELLS = 32  # of the grid of a real
WINDOW = 25  # consecutive trials, about
SHUFFLES = 200  # random choices of trials
SMALLEST = 4  # trials among the best


def importances(
    space: Space, codes: Codes, values: Array, share: float, *, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return per parameter (D,) its share of the importance, and how often chance alone reaches as much.

    The best are this share of all trials, which come in their order; `values` are to be minimised. Without enough
    trials all shares are 0.
    """
    n = len(values)
    divergence, chance = np.zeros(len(space)), np.ones(len(space))
    windows = np.array_split(np.arange(n), max(1, round(n / WINDOW)))
    numbers = [round(share * len(window)) for window in windows]
    best = sum(numbers)
    if best < SMALLEST:
        return divergence, chance
    chosen = np.zeros((1 + SHUFFLES, n))
    for window, number in zip(windows, numbers, strict=True):
        chosen[0, window[np.argsort(values[window], kind="stable")[:number]]] = 1.0 / best
        for row in chosen[1:]:
            row[rng.choice(window, number, replace=False)] = 1.0 / best
    for i in range(len(space)):
        cells = _cells(space, i, codes[:, i], best)
        p = cells.mean(axis=0)
        found = (((chosen @ cells) / p - 1.0) ** 2) @ p
        divergence[i] = max(found[0] - found[1:].mean(), 0.0)
        chance[i] = (1 + np.count_nonzero(found[1:] >= found[0])) / (1 + SHUFFLES)
    total = divergence.sum()
    return divergence / total if total > 0 else divergence, chance


def _cells(space: Space, i: int, codes: Array, best: int) -> Array:
    """Return the density (n, g) of each trial's value over the cells of a parameter, each with sum 1."""
    if space.kinds[i] is Kind.REAL:
        middles = (np.arange(CELLS) + 0.5) / CELLS
        width = max(float(codes.std()) * best**-0.2, 0.5 / CELLS)  # Scott's rule
        far = np.stack([codes, -codes, 2.0 - codes])[:, :, None] - middles  # mirrored at both ends
        cells = np.exp(-0.5 * (far / width) ** 2).sum(axis=0)
    else:
        size = int(space.cardinalities[i])
        cells = np.full((len(codes), size), 1.0 / (best * size))  # one value in each best set is spread over all
        cells[np.arange(len(codes)), codes.astype(np.intp)] += 1.0
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))
