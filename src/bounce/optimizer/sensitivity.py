"""Sensitivity: how much of the variance of functions is due to which variables, by sampling (Sobol indices).

With independent and uniform inputs, the *first-order* index of some variables is the share of the variance that they
explain alone, and the *total* index the share that disappears if they are known last: it includes all that they do
together with others. A and B are two samples; C is A with some columns of B. The estimators are those of Saltelli et
al. (2010), table 2 (b) and (f), and of Liu and Owen (2006) for pairs. Those of totals and pairs are exactly 0 where
there is no effect.

Shapes: codes (n, D); a function returns (n, s), one column for each of s functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, on_grid
from bounce.spaces.space import Space

Functions = Callable[[Codes], Array]
Columns = NDArray[np.intp]
TINY = 1e-300  # the variance of constant functions, which then have indices of 0


def design(space: Space, n: int, *, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Return two samples of n points each, n a power of 2, that fill the space evenly."""
    from scipy.stats import qmc  # slow to import

    sampler = qmc.Sobol(2 * len(space), rng=rng)
    u = np.asarray(sampler.random(n))
    return tuple(codes_at(space, part) for part in (u[:, : len(space)], u[:, len(space) :]))  # type: ignore[return-value]


def codes_at(space: Space, u: Array) -> Codes:
    """Return the codes at places u in [0, 1), in which every code has an equal part."""
    others = space.combinatorial
    codes: Codes = on_grid(u)
    codes[:, others] = np.floor(u[:, others] * space.cardinalities[others])
    return codes


class Sample:
    """Functions at the points of a design."""

    def __init__(self, functions: Functions, a: Codes, b: Codes) -> None:
        self.functions, self.a, self.b = functions, a, b
        values = functions(np.concatenate([a, b]))
        self.of_a = values[: len(a)]
        values = values - values.mean(axis=0)
        self.of_b = values[len(a) :]  # without their mean, which makes the first-order indices more exact
        self.variance = np.maximum(values.var(axis=0), TINY)

    def exchanged(self, columns: Columns) -> Array:
        """Return the functions where some columns are those of B."""
        c = self.a.copy()
        c[:, columns] = self.b[:, columns]
        return self.functions(c)

    def indices(self, groups: Sequence[Columns]) -> tuple[Array, Array]:
        """Return the first-order and the total indices (groups, s) of some variables each."""
        first, total = (np.empty((len(groups), len(self.variance))) for _ in range(2))
        for i, columns in enumerate(groups):
            change = self.exchanged(columns) - self.of_a
            first[i] = (self.of_b * change).mean(axis=0) / self.variance
            total[i] = 0.5 * (change**2).mean(axis=0) / self.variance
        total = np.minimum(total, 1.0)
        return np.clip(first, 0.0, total), total  # two estimates: what is alone cannot be more than the total

    def together(self, pairs: Sequence[tuple[int, int]]) -> Array:
        """Return the shares (pairs, s) of the variance that two variables have only together, also with others."""
        shares = np.empty((len(pairs), len(self.variance)))
        alone = {i: self.exchanged(np.array([i])) for pair in pairs for i in pair}
        for at, (i, j) in enumerate(pairs):
            mixed = self.exchanged(np.array([i, j])) - alone[i] - alone[j] + self.of_a
            shares[at] = 0.25 * (mixed**2).mean(axis=0) / self.variance
        return np.minimum(shares, 1.0)


def averaged(functions: Functions, others: Codes, columns: Columns, codes: Codes) -> Array:
    """Return the functions (g, s) at g codes of some columns, averaged over what the other columns have."""
    points = np.repeat(others[None], len(codes), axis=0)
    points[:, :, columns] = codes[:, None, :]
    values = functions(points.reshape(-1, others.shape[1]))
    return np.asarray(values.reshape(len(codes), len(others), -1).mean(axis=1))
