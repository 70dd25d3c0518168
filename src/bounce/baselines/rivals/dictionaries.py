"""Dictionaries of BODi: anchors in a combinatorial space, and the features that they give to a point.

An anchor is a point drawn so that anchors differ in their sequency, the number of changes along their entries. A
feature is the share of entries in which a point agrees with an anchor. There are two samplers: the one that the paper
describes, and the one of the published code.

The invariant: the feature of a point is the sum of one number per variable, so that a move of one variable adds the
difference of two rows of a table.

Shapes: anchors (m, D) codes of D combinatorial variables with sizes (D,); features (n, m); table (Σ sizes, m).

Deshwal, Ament, Balandat, Bakshy, Doppa, Eriksson: Bayesian Optimization over High-Dimensional Combinatorial Spaces via
Dictionary-based Embeddings. AISTATS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array, blocks, product
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space

Sizes = NDArray[np.intp]
"""The number of codes of each combinatorial variable (D,)."""


def described(sizes: Sizes, m: int, *, rng: np.random.Generator) -> Codes:
    """Draw anchors as the paper describes: θ uniform in the simplex for each anchor, then every entry from θ.

    A variable with fewer codes than the largest one uses as many elements of θ, drawn for itself and normalised
    (algorithm 5 of the paper). On bits, the number of ones is uniform in 0..D.
    """
    largest = int(sizes.max())
    theta = rng.dirichlet(np.ones(largest), size=m)
    uniform = rng.random((m, len(sizes)))
    anchors = np.empty((m, len(sizes)))
    for j, size in enumerate(sizes.tolist()):
        own = theta if size == largest else rng.permuted(theta, axis=1)[:, :size]
        steps = np.cumsum(own, axis=1)
        anchors[:, j] = (uniform[:, j, None] * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
    return anchors


def published(sizes: Sizes, m: int, *, rng: np.random.Generator) -> Codes:
    """Draw anchors as the published code does, with one draw of numbers for all variables of the same size.

    Bits: the number of ones is uniform in 1..D−2, so that no anchor has zero sequency. Categories: ⌊D·θ_i⌋ entries have
    category i, and what remains goes to the last category, which therefore comes more often than the others.
    """
    anchors = np.empty((m, len(sizes)))
    for size in np.unique(sizes).tolist():
        columns = np.flatnonzero(sizes == size)
        d = len(columns)
        if size == 2:
            ones = rng.integers(1, max(2, d - 1), size=m)
            ends = np.stack([d - ones, np.full(m, d)], axis=1)
        else:
            counts = np.floor(rng.dirichlet(np.ones(size), size=m) * d).astype(np.intp)
            ends = np.cumsum(counts, axis=1)
        ranks = rng.permuted(np.tile(np.arange(d), (m, 1)), axis=1)
        for i in range(m):  # the entry of rank r has the code of the range that r lies in; the last range is the rest
            anchors[i, columns] = np.searchsorted(ends[i, :-1], ranks[i], side="right")
    return anchors


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Anchors, and how codes are compared with them."""

    anchors: Codes
    sizes: Sizes
    levels: Array | None = None
    """The number as which each code of each variable is compared (Σ sizes,); None for the code itself."""

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The row of the table for code 0 of each variable (D,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The variable of each row of the table."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def codes(self) -> Codes:
        """The code of each row of the table."""
        return np.asarray(np.arange(len(self.columns)) - self.starts[self.columns], dtype=np.float64)

    @cached_property
    def table(self) -> Array:
        """What each code of each variable adds to the features: 1/D where it agrees with the anchor."""
        levels = self.codes if self.levels is None else self.levels
        agrees = levels[:, None] == self.anchors[:, self.columns].T
        return np.asarray(agrees / len(self.sizes), dtype=np.float64)

    def __call__(self, codes: Codes) -> Array:
        """Return the features (n, m) of points."""
        features = np.empty((len(codes), len(self.anchors)))
        rows = self.starts + codes.astype(np.intp)
        for some in blocks(len(codes), len(self.table)):
            hot = np.zeros((some.stop - some.start, len(self.table)))
            np.put_along_axis(hot, rows[some], 1.0, axis=1)
            features[some] = product(hot, self.table)
        return features

    def moves(self, codes: Codes) -> tuple[NDArray[np.intp], Array]:
        """Return for points (R, D) the moves to their neighbours (R, K) as rows of the table, and what they add.

        A neighbour differs in one variable; K = Σ (sizes − 1). What a move adds to the features is (R, K, m).
        """
        others = self.codes != codes[:, self.columns]
        moves = np.nonzero(others)[1].reshape(len(codes), -1)
        columns = self.columns[moves]
        current = self.starts[columns] + np.take_along_axis(codes, columns, axis=1).astype(np.intp)
        return moves, self.table[moves] - self.table[current]

    def moved(self, codes: Codes, moves: NDArray[np.intp]) -> Codes:
        """Return points (R, D) after one move each (R,)."""
        after = codes.copy()
        after[np.arange(len(codes)), self.columns[moves]] = self.codes[moves]
        return after


def normalised_levels(sizes: Sizes, seen: Codes) -> Array:
    """Return each code on the scale on which the codes seen in its column span [0, 1] (the published code's quirk).

    A column with one code is left as it is. Anchors stay on the scale of codes, so that of all codes between the least
    and the largest seen only these two can agree with an anchor: the least with code 0, the largest with code 1.
    """
    low, high = seen.min(axis=0), seen.max(axis=0)
    varies = high > low
    shift, width = np.where(varies, low, 0.0), np.where(varies, high - low, 1.0)
    return np.concatenate([(np.arange(size) - shift[j]) / width[j] for j, size in enumerate(sizes.tolist())])


@dataclass(frozen=True, eq=False)
class Embedding:
    """What the model sees of a point: its features, then its reals on a scale of their own."""

    space: Space
    dictionary: Dictionary
    low: Array
    width: Array

    def features(self, codes: Codes) -> Array:
        """Return the features (n, m)."""
        return self.dictionary(codes[:, self.space.combinatorial])

    def scaled(self, u: Codes) -> Array:
        """Return reals (n, r) on their scale."""
        return np.asarray((u - self.low) / self.width)

    def __call__(self, codes: Codes) -> Array:
        """Return features and reals (n, m + r)."""
        return np.concatenate([self.features(codes), self.scaled(codes[:, self.space.reals])], axis=1)
