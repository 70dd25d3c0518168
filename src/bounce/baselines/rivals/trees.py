"""Boosted regression trees, grown as LightGBM grows them with the settings of LEAF-GP.

The nouns: a tree splits the space at up to seven nodes into up to eight leaves; `Trees` are an ensemble; the `Grower`
finds the best splits of a level of nodes by histograms; a cell is a box in which no tree tells points apart.

The invariant: every point lies in one leaf of every tree, and which one depends on the splits alone.

Ke and others (2017), LightGBM: a highly efficient gradient boosting decision tree, NIPS. What is not a setting of
LEAF-GP is LightGBM's default.

Shapes: x (n, D) codes, y (n,); T trees with 7 nodes (of node i the children are 2i + 1 and 2i + 2) and 8 leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

ROUNDS, DEPTH = 50, 3  # LEAF-GP's; a leaf may have a single point
NODES, LEAVES = 2**DEPTH - 1, 2**DEPTH
RATE = 0.1  # the learning rate
BIN = 3  # the fewest points between two thresholds
BINS = 254  # the most thresholds of a variable
ONE_HOT = 3  # up to this many categories, one is split off; beyond, a group of them
SMOOTH, PENALTY, GROUP = 10, 10.0, 32  # of groups: points per category, ridge on the leaves, largest group

Indices = NDArray[np.intp]
Split = tuple[int, float, Indices, float]
"""A feature, a threshold, the categories that go left, and the ridge on the leaves."""


def split_values(column: Array) -> Array:
    """Return where a number may be split: after zero, and between values with at least three points between them."""
    values, counts = np.unique(column[column > 0], return_counts=True)
    fewest = max(BIN, -(-len(column) // BINS))
    found, points = [0.0] if len(values) and (column <= 0).any() else [], 0
    for i in range(len(values) - 1):
        points += counts[i]
        if points >= fewest:
            found.append(0.5 * (values[i] + values[i + 1]))
            points = 0
    return np.array(found)


def by_frequency(column: Codes) -> tuple[Indices, int]:
    """Return the categories, most frequent first, and how many splits may single out: two, or all of three points."""
    values, counts = np.unique(column, return_counts=True)
    order = np.lexsort((values, -counts))
    return np.asarray(values[order], dtype=np.intp), max(min(2, len(values)), int((counts >= BIN).sum()))


@dataclass(frozen=True, eq=False)
class Trees:
    """An ensemble: node i of tree t sends x left if x[feature] is at most the threshold, or in the group."""

    space: Space
    feature: Indices
    """(T, 7)"""
    threshold: Array
    """(T, 7); infinite where a node does not split."""
    group: NDArray[np.bool_]
    """(T, 7, C): the categories that go left."""

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Whether each variable is a category."""
        return np.array([kind is Kind.CATEGORICAL for kind in self.space.kinds])

    def left(self, z: Codes, t: Indices, node: Indices) -> NDArray[np.bool_]:
        """Return whether nodes (m, T) of trees t send the rows of z (m, D) left."""
        feature = self.feature[t, node]
        values = np.take_along_axis(z, feature, axis=1)
        low = values <= self.threshold[t, node]
        if not self.categorical.any():
            return np.asarray(low)
        grouped = self.categorical[feature]
        codes = np.where(grouped, values, 0.0).astype(np.intp)
        return np.where(grouped, self.group[t, node, codes] | np.isinf(self.threshold[t, node]), low)

    def leaves(self, z: Codes) -> Indices:
        """Return the leaf (m, T) of rows in each tree, 0 to 7."""
        t = np.arange(len(self.feature))
        node = np.zeros((len(z), len(t)), dtype=np.intp)
        for _ in range(DEPTH):
            node = 2 * node + np.where(self.left(z, t, node), 1, 2)
        return np.asarray(node - NODES)

    def choices(self) -> dict[int, Codes]:
        """Return, for each variable that a tree splits on, one value in each of its intervals."""
        found = {}
        split = np.isfinite(self.threshold)
        for j in np.unique(self.feature[split]).tolist():
            cuts = np.unique(self.threshold[split & (self.feature == j)])
            if self.categorical[j]:
                found[j] = np.arange(float(self.space.cardinalities[j]))
            elif self.space.kinds[j] is Kind.REAL:
                ends = np.concatenate([[0.0], cuts, [1.0]])
                found[j] = 0.5 * (ends[1:] + ends[:-1])
            else:
                found[j] = np.append(np.floor(cuts), float(self.space.cardinalities[j] - 1))
        return found

    def middle(self, row: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the middle of the cell of a point; where a cell has several middles or no order, one of them."""
        low, high = np.full(len(row), -np.inf), np.full(len(row), np.inf)
        allowed = np.ones((len(row), self.group.shape[2]), dtype=bool)
        t, node = np.arange(len(self.feature)), np.zeros((1, len(self.feature)), dtype=np.intp)
        for _ in range(DEPTH):
            left = self.left(row[None], t, node)
            for tree in np.flatnonzero(np.isfinite(self.threshold[t, node[0]])).tolist():
                place, goes = int(node[0, tree]), bool(left[0, tree])
                j, cut = int(self.feature[tree, place]), float(self.threshold[tree, place])
                if self.categorical[j]:
                    allowed[j] &= self.group[tree, place] == goes
                elif goes:
                    high[j] = min(high[j], cut)
                else:
                    low[j] = max(low[j], cut)
            node = 2 * node + np.where(left, 1, 2)
        point = row.copy()
        for j, (kind, c) in enumerate(zip(self.space.kinds, self.space.cardinalities.tolist(), strict=True)):
            if kind is Kind.REAL:
                point[j] = on_grid(0.5 * (np.clip(low[j], 0.0, 1.0) + np.clip(high[j], 0.0, 1.0)))
            elif kind is Kind.CATEGORICAL:
                point[j] = rng.choice(np.flatnonzero(allowed[j, :c]))
            else:
                ends = max(0.0, np.floor(low[j]) + 1.0), min(c - 1.0, np.floor(high[j]))
                point[j] = rng.choice([np.floor(0.5 * sum(ends)), np.ceil(0.5 * sum(ends))])
        return point

    @classmethod
    def grown(cls, space: Space, x: Codes, y: Array, rounds: int = ROUNDS) -> Trees:
        """Boost trees on centred values: least squares, each tree on what the trees before it left over."""
        grower = Grower(space, x)
        widest = grower.width
        trees, residual = [], y - y.mean()
        least = 1e-9 * float(residual @ residual)
        for _ in range(rounds):
            feature = np.zeros(NODES, dtype=np.intp)
            threshold = np.full(NODES, np.inf)
            group = np.zeros((NODES, widest), dtype=bool)
            node, ridge = np.zeros(len(x), dtype=np.intp), np.zeros(2 * NODES + 1)
            for level in range(DEPTH):
                first = 2**level - 1
                for place, split in enumerate(grower.best(node - first, 2**level, residual, least)):
                    if split is not None:
                        i = first + place
                        feature[i], threshold[i] = split[0], split[1]
                        group[i, split[2]] = True
                        ridge[[2 * i + 1, 2 * i + 2]] = split[3]
                    else:
                        ridge[2 * (first + place) + 1] = ridge[first + place]
                one = cls(space, feature[None], threshold[None], group[None])
                node = 2 * node + np.where(one.left(x, np.zeros(1, dtype=np.intp), node[:, None])[:, 0], 1, 2)
            if np.isinf(threshold).all():
                break
            trees.append((feature, threshold, group))
            sums, counts = np.bincount(node, residual, 2 * NODES + 1), np.bincount(node, minlength=2 * NODES + 1)
            residual = residual - RATE * (sums / np.maximum(counts + ridge, 1e-300))[node]
        features, thresholds, groups = (np.array([tree[part] for tree in trees]) for part in range(3))
        shape = (-1, NODES)
        return cls(
            space,
            features.astype(np.intp).reshape(shape),
            thresholds.reshape(shape),
            groups.astype(bool).reshape(*shape, widest),
        )


class Grower:
    """The best splits of the nodes of one level, by histograms over all variables at once."""

    def __init__(self, space: Space, x: Codes) -> None:
        self.numbers = space.of_kind(Kind.REAL, Kind.BINARY, Kind.ORDINAL)
        self.categories = space.of_kind(Kind.CATEGORICAL)
        self.cuts = [split_values(x[:, j]) for j in self.numbers]
        places = [np.searchsorted(cuts, x[:, j], side="left") for j, cuts in zip(self.numbers, self.cuts, strict=True)]
        self.bins = 1 + max((len(cuts) for cuts in self.cuts), default=0)
        self.places = np.array(places, dtype=np.intp).reshape(-1, len(x)).T
        self.codes = x[:, self.categories].astype(np.intp)  # to be ranks by frequency
        self.width = max(1, int(space.cardinalities[self.categories].max(initial=0)))
        self.known, self.names = np.zeros((len(self.categories), self.width), dtype=bool), []
        for k, codes in enumerate(self.codes.T):
            names, singled = by_frequency(codes)
            self.known[k, :singled] = True
            self.names.append(names)
            codes[:] = np.argsort(np.append(names, np.setdiff1d(np.arange(self.width), names)))[codes]

    def best(self, node: Indices, nodes: int, residual: Array, least: float) -> list[Split | None]:
        """Return the split of the highest gain of each node; None where there is none."""
        total, n = (np.bincount(node, weights, nodes).astype(np.float64) for weights in (residual, np.ones(len(node))))
        gains, last = self._thresholds(node, residual, total, n)
        grouped, groups = self._groups(node, residual, total, n)
        highest = np.concatenate([gains, grouped], axis=1)
        owner = np.concatenate([self.numbers, self.categories])
        found: list[Split | None] = []
        for i, row in enumerate(highest):
            k = int(np.lexsort((owner, -row))[0])  # of equal gains the first variable
            if not row[k] > least:
                found.append(None)
            elif k < len(self.numbers):
                found.append((int(owner[k]), float(self.cuts[k][last[i, k]]), np.zeros(0, dtype=np.intp), 0.0))
            else:
                k -= len(self.numbers)
                ridge = 0.0 if self.known[k].sum() <= ONE_HOT else PENALTY
                found.append((int(self.categories[k]), 0.0, self.names[k][np.flatnonzero(groups[i, k])], ridge))
        return found

    def _thresholds(self, node: Indices, residual: Array, total: Array, n: Array) -> tuple[Array, Indices]:
        """Return the best gain (nodes, numbers), and of equal ones the highest threshold."""
        sums, counts = (h.cumsum(axis=2) for h in histograms(node, len(n), self.places, self.bins, residual))
        gain = gains_of(sums, counts, total, n, 0.0)
        last = self.bins - 1 - gain[:, :, ::-1].argmax(axis=2)
        return gain.max(axis=2), last

    def _groups(self, node: Indices, residual: Array, total: Array, n: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the best gain (nodes, categories), and the group that goes left (nodes, categories, codes).

        One of few categories; of many, those with enough points and the lowest or the highest means, at most half.
        """
        sums, counts = histograms(node, len(n), self.codes, self.width, residual)
        each = gains_of(sums, np.where(self.known, counts, 0), total, n, 0.0)
        group = np.arange(self.width) == each.argmax(axis=2)[:, :, None]
        best = each.max(axis=2)
        many = self.known.sum(axis=1) > ONE_HOT
        best[:, many] = -np.inf
        enough = self.known & (counts >= SMOOTH)
        most = np.minimum(GROUP, (enough.sum(axis=2, keepdims=True) + 1) // 2)
        for sign in (1.0, -1.0):
            order = np.argsort(np.where(enough, sign * sums / (counts + SMOOTH), np.inf), axis=2, kind="stable")
            left, points = (np.take_along_axis(part, order, axis=2).cumsum(axis=2) for part in (sums, counts))
            each = np.where(np.arange(self.width) < most, gains_of(left, points, total, n, PENALTY), -np.inf)
            better = (each.max(axis=2) > best) & many
            rank = np.argsort(order, axis=2)
            group = np.where(better[:, :, None], rank <= each.argmax(axis=2)[:, :, None], group)
            best = np.where(better, each.max(axis=2), best)
        return best, group


def histograms(node: Indices, nodes: int, places: Indices, width: int, residual: Array) -> tuple[Array, Array]:
    """Return sums of residuals and counts of points (nodes, variables, width) by places (n, variables)."""
    shape = nodes, places.shape[1], width
    index = (places + width * (np.arange(shape[1]) + shape[1] * node[:, None])).ravel()
    sums = np.bincount(index, np.repeat(residual, shape[1]), nodes * shape[1] * width)
    counts = np.bincount(index, minlength=len(sums)).astype(np.float64)
    return np.asarray(sums, dtype=np.float64).reshape(shape), counts.reshape(shape)


def gains_of(sums: Array, counts: Array, total: Array, n: Array, ridge: float) -> Array:
    """Return Σ_left²/(n_left + ridge) + Σ_right²/(n_right + ridge) − Σ²/n; −∞ where a side has no point."""
    total, n = total[:, None, None], n[:, None, None]
    inside = (counts > 0) & (counts < n)
    left, right = np.where(inside, counts, 1) + ridge, np.where(inside, n - counts, 1) + ridge
    return np.where(inside, sums**2 / left + (total - sums) ** 2 / right - total**2 / np.maximum(n, 1), -np.inf)
