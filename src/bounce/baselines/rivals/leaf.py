"""LEAF-GP: a Gaussian process with a tree ensemble's kernel, the share of trees in which two points have one leaf.

The nouns: new trees are boosted for every point; `SameLeaf` is their kernel; the `Bound` is the lower confidence
bound of the process, constant on each cell of the trees; the search goes from cell to cell, and the point to evaluate
is the middle of the best cell.

The invariant: the search compares cells only, so that where in its cell a point lies changes nothing.

Thebelt, Tsay, Lee, Sudermann-Merx, Walz, Shafei and Misener (2022), Tree ensemble kernels for Bayesian optimization
with known constraints over mixed-feature spaces, NeurIPS.

Shapes: x (n, D) codes; leaves (n, T) of T trees.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bounce.baselines.rivals.gaussian import Covariance, Fit, Gaussian
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.baselines.rivals.trees import LEAVES, Indices, Trees
from bounce.gp.linalg import Array, product, solve_lower
from bounce.spaces.kinds import Codes

KAPPA = 1.96
SAMPLES = 2000  # random points to start from, besides the known ones
STARTS, SWEEPS = 10, 10  # of the search


class SameLeaf(Covariance):
    """The share of trees in which two rows have one leaf; rows are leaves (n, T), and there is nothing to fit."""

    def __init__(self) -> None:
        self.bounds, self.start = np.zeros((0, 2)), np.zeros(0)

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows of leaves."""
        return product(one_hot(a), one_hot(b).T, times=1.0 / a.shape[1])

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return nothing: there are no parameters."""
        return np.zeros(0)


def one_hot(leaves: Array | Indices) -> Array:
    """Return a column per leaf of every tree (m, 8·T)."""
    m, trees = leaves.shape
    hot = np.zeros((m, trees * LEAVES))
    hot[np.arange(m)[:, None], LEAVES * np.arange(trees) + leaves.astype(np.intp)] = 1.0
    return hot


class Bound:
    """The lower confidence bound mean − κ·deviation at codes; the deviation includes the noise, as published."""

    def __init__(self, trees: Trees, gp: Gaussian) -> None:
        self.trees, self.gp = trees, gp
        each = gp.signal / gp.x.shape[1] * one_hot(gp.x)
        self.white = solve_lower(gp.factor, np.asfortranarray(each))  # (n, 8·T): a column per leaf
        target = solve_lower(gp.factor, (gp.y - gp.mean)[:, None])[:, 0]
        self.means = self.white.T @ target

    def __call__(self, z: Codes) -> Array:
        """Return the bound (m,) at rows of codes."""
        hot = one_hot(self.trees.leaves(z))
        v = product(hot, self.white.T)
        variance = self.gp.signal - np.einsum("mn,mn->m", v, v) + self.gp.noise
        return np.asarray(self.gp.mean + hot @ self.means - KAPPA * np.sqrt(np.maximum(variance, self.gp.noise)))


def lowest(bound: Bound, starts: Codes, choices: dict[int, Codes]) -> Codes:
    """Descend from the best starts, one variable at a time over all its intervals, until no variable helps."""
    values = bound(starts)
    order = np.argsort(values, kind="stable")[:STARTS]
    rows, values = starts[order].copy(), values[order]
    for _ in range(SWEEPS):
        before = values.copy()
        for j, choice in choices.items():
            moved = np.repeat(rows, len(choice), axis=0)
            moved[:, j] = np.tile(choice, len(rows))
            each = bound(moved).reshape(len(rows), -1)
            place = each.argmin(axis=1)
            least = each[np.arange(len(rows)), place]
            better = least < values - 1e-12
            rows[better, j], values[better] = choice[place[better]], least[better]
        going = values < before
        rows, values = rows[going | (values == values.min())], values[going | (values == values.min())]
        if not going.any():
            break
    return np.asarray(rows[values.argmin()])


class Leaf(Rival):
    """A Gaussian process with the kernel of boosted trees."""

    name: ClassVar[str] = "leaf"

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        targets = standardised(y)
        trees = Trees.grown(self.space, x, targets)
        samples = self.space.sample(SAMPLES, rng=rng)
        if not len(trees.feature):  # nothing tells points apart
            return np.asarray(samples[0])
        gp = Fit()(SameLeaf(), trees.leaves(x).astype(np.float64), targets)
        gp = gp.believing(trees.leaves(pending).astype(np.float64))
        row = lowest(Bound(trees, gp), np.concatenate([x, samples]), trees.choices())
        return trees.middle(row, rng=rng)
