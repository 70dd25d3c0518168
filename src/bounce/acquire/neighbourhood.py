"""A neighbourhood in the latent space: the points near a centre, how to draw and list them, and their neighbours.

The invariant: whatever is drawn or listed differs from the centre in at most `changes` bins, its reals in the box.

Shapes: z (n, d) latent codes; centre (d,); box (2, n_real).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.method import Method
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

STRIDE = 64  # an ordinal moves 1, 64, 4,096 levels at once (`Method.strides`)
SPARSE = 8  # where at most one bin in this many changes, the bins are drawn with replacement (`Method.sampling`)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Where proposals may lie: at most `changes` changed bins, and reals inside `box`."""

    space: Space
    centre: Codes
    changes: int
    box: Array
    method: Method = field(default_factory=Method)
    asleep: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The bins of variables that are inactive at the centre: it has no values of them, so any are as near."""

    def distance(self, z: Codes) -> NDArray[np.intp]:
        """Return how many combinatorial bins differ from the centre."""
        columns = self.space.combinatorial
        if len(self.asleep):
            columns = np.setdiff1d(columns, self.asleep)
        return np.asarray(np.count_nonzero(z[:, columns] != self.centre[columns], axis=1))


def ball_size(region: Neighbourhood) -> int:
    """Return how many combinatorial codes lie in a region."""
    counts = [1] + [0] * region.changes  # points at each distance so far
    for c in region.space.cardinalities[region.space.combinatorial].tolist():
        for r in range(region.changes, 0, -1):
            counts[r] += counts[r - 1] * (c - 1)
    return sum(counts)


def ball(region: Neighbourhood) -> Codes:
    """Return every combinatorial code of a small region, with the centre's reals."""
    bins = region.space.combinatorial
    cards = region.space.cardinalities
    rows = [region.centre]
    for r in range(1, region.changes + 1):
        for columns in itertools.combinations(bins.tolist(), r):
            others = [[c for c in range(cards[j]) if c != region.centre[j]] for j in columns]
            for codes in itertools.product(*others):
                row = region.centre.copy()
                row[list(columns)] = codes
                rows.append(row)
    return np.array(rows)


def sample(region: Neighbourhood, n: int, *, rng: np.random.Generator) -> Codes:
    """Draw points: `changes` bins at random take random codes, the reals are uniform in the box."""
    bins, reals = region.space.combinatorial, region.space.reals
    z = np.tile(region.centre, (n, 1))
    if len(bins) > SPARSE * region.changes and region.method.sampling == "fast":
        # Few of many: drawing with replacement is cheap, and now and then changes a bin or two fewer.
        columns = bins[rng.integers(0, len(bins), (n, region.changes))]
        codes = rng.integers(0, region.space.cardinalities[columns])
        z[np.arange(n)[:, None], columns] = codes
    elif len(bins):
        codes = np.floor(rng.random((n, len(bins))) * region.space.cardinalities[bins])
        if region.changes < len(bins):
            drawn = np.tile(np.arange(len(bins)) < region.changes, (n, 1))
            codes = np.where(rng.permuted(drawn, axis=1, out=drawn), codes, region.centre[bins])
        z[:, bins] = codes
    if len(reals):
        low, high = region.box
        z[:, reals] = on_grid(low + rng.random((n, len(reals))) * (high - low))
    return z


def neighbours(region: Neighbourhood, z: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return all moves (row, column, new code) that change one combinatorial bin of one row.

    A binary flips, a category becomes any other, an ordinal moves one level up or down, or also by larger strides:
    one level at a time, a long one would take long to cross.
    """
    space = region.space
    binary, ordinal, categorical = (space.of_kind(k) for k in (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL))
    n = len(z)
    rows, columns, codes = [], [], []

    def add(row: NDArray[np.intp], column: NDArray[np.intp], code: Array, keep: NDArray[np.bool_]) -> None:
        rows.append(row[keep])
        columns.append(column[keep])
        codes.append(code[keep])

    row, column = np.repeat(np.arange(n), len(binary)), np.tile(binary, n)
    add(row, column, 1.0 - z[row, column], np.ones(len(row), dtype=bool))
    row, column = np.repeat(np.arange(n), len(ordinal)), np.tile(ordinal, n)
    stride, levels = 1, space.cardinalities[ordinal].max(initial=0)
    while stride < levels:
        for step in (-stride, stride):
            code = z[row, column] + step
            add(row, column, code, (code >= 0) & (code < space.cardinalities[column]))
        stride *= STRIDE if region.method.strides else levels
    cards = space.cardinalities[categorical]
    each_column = np.repeat(categorical, cards)
    each_code = np.concatenate([np.arange(c) for c in cards], dtype=np.float64) if len(cards) else np.empty(0)
    row, column, code = (
        np.repeat(np.arange(n), len(each_column)),
        np.tile(each_column, n),
        np.tile(each_code, n),
    )
    add(row, column, code, code != z[row, column])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(codes)


def around(region: Neighbourhood, most: int, *, rng: np.random.Generator) -> Codes:
    """Return the neighbours of the centre, or a random part of them if they are many."""
    _, column, code = neighbours(region, region.centre[None])
    if len(column) > most:
        part = np.sort(rng.choice(len(column), most, replace=False))
        column, code = column[part], code[part]
    z = np.tile(region.centre, (len(column), 1))
    z[np.arange(len(column)), column] = code
    return z


def moved_reals(region: Neighbourhood, n: int, *, rng: np.random.Generator) -> Codes:
    """Return points that differ from the centre in reals alone, each of which moves with probability 1/2."""
    reals = region.space.reals
    low, high = region.box
    drawn = on_grid(low + rng.random((n, len(reals))) * (high - low))
    keep = rng.random((n, len(reals))) < 0.5
    keep[np.arange(n), rng.integers(0, len(reals), n)] = False
    z = np.tile(region.centre, (n, 1))
    z[:, reals] = np.where(keep, z[:, reals], drawn)
    return z


def wider(region: Neighbourhood) -> Neighbourhood | None:
    """Return the next larger region, first by one more bin, then by a box twice as wide; None at the end."""
    if region.changes < len(region.space.combinatorial):
        return replace(region, changes=region.changes + 1)
    low, high = region.box
    if (low <= 0.0).all() and (high >= 1.0).all():
        return None
    return replace(region, box=np.clip([low - 0.5 * (high - low), high + 0.5 * (high - low)], 0.0, 1.0))
