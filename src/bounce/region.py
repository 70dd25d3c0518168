"""A region of the latent space: the points near a centre, how to draw and to list them, and their neighbours.

Shapes: z (n, d) latent codes; centre (d,); box (2, n_cont).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bounce.linalg import Array
from bounce.parameters import Codes, Kind, on_grid
from bounce.space import Space

STRIDE = 64  # an ordinal goes 1, 64, 4096 levels at once
SPARSE = 8  # a region that changes at most one bin in so many is sampled with replacement


@dataclass(frozen=True, eq=False)
class Region:
    """Where proposals may lie: at most `radius` changed bins, and reals inside `box`."""

    space: Space
    centre: Codes
    radius: int
    box: Array

    def distance(self, z: Codes) -> NDArray[np.intp]:
        """Return how many combinatorial bins differ from the centre."""
        comb = self.space.combinatorial
        return np.asarray(np.count_nonzero(z[:, comb] != self.centre[comb], axis=1))


def ball_size(region: Region) -> int:
    """Return how many combinatorial codes lie in a region."""
    counts = [1] + [0] * region.radius  # points at each distance so far
    for c in region.space.cardinalities[region.space.combinatorial].tolist():
        for r in range(region.radius, 0, -1):
            counts[r] += counts[r - 1] * (c - 1)
    return sum(counts)


def ball(region: Region) -> Codes:
    """Return every combinatorial code of a small region, with the centre's reals."""
    comb = region.space.combinatorial
    cards = region.space.cardinalities
    rows = [region.centre]
    for r in range(1, region.radius + 1):
        for columns in itertools.combinations(comb.tolist(), r):
            others = [[c for c in range(cards[j]) if c != region.centre[j]] for j in columns]
            for codes in itertools.product(*others):
                row = region.centre.copy()
                row[list(columns)] = codes
                rows.append(row)
    return np.array(rows)


def sample(region: Region, n: int, *, rng: np.random.Generator) -> Codes:
    """Draw points: `radius` bins at random take random codes, the reals are uniform in the box."""
    comb, reals = region.space.combinatorial, region.space.reals
    z = np.tile(region.centre, (n, 1))
    if len(comb) > SPARSE * region.radius:
        # Few of many: drawing with replacement is cheap, and now and then changes a bin or two fewer.
        columns = comb[rng.integers(0, len(comb), (n, region.radius))]
        codes = rng.integers(0, region.space.cardinalities[columns])
        z[np.arange(n)[:, None], columns] = codes
    elif len(comb):
        codes = np.floor(rng.random((n, len(comb))) * region.space.cardinalities[comb])
        if region.radius < len(comb):
            drawn = np.tile(np.arange(len(comb)) < region.radius, (n, 1))
            codes = np.where(rng.permuted(drawn, axis=1, out=drawn), codes, region.centre[comb])
        z[:, comb] = codes
    if len(reals):
        low, high = region.box
        z[:, reals] = on_grid(low + rng.random((n, len(reals))) * (high - low))
    return z


def neighbours(space: Space, z: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return all moves (row, column, new code) that change one combinatorial bin of one row.

    A binary flips, a category becomes any other, an ordinal goes one level up or down, or `STRIDE` of them, or
    more where it has more: one level at a time it would take long to cross.
    """
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
        stride *= STRIDE
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


def around(region: Region, most: int, *, rng: np.random.Generator) -> Codes:
    """Return the neighbours of the centre, or a random part of them if they are many."""
    _, column, code = neighbours(region.space, region.centre[None])
    if len(column) > most:
        part = np.sort(rng.choice(len(column), most, replace=False))
        column, code = column[part], code[part]
    z = np.tile(region.centre, (len(column), 1))
    z[np.arange(len(column)), column] = code
    return z


def moved_reals(region: Region, n: int, *, rng: np.random.Generator) -> Codes:
    """Return points that differ from the centre in reals alone, each of which moves with probability 1/2."""
    reals = region.space.reals
    low, high = region.box
    drawn = on_grid(low + rng.random((n, len(reals))) * (high - low))
    keep = rng.random((n, len(reals))) < 0.5
    keep[np.arange(n), rng.integers(0, len(reals), n)] = False
    z = np.tile(region.centre, (n, 1))
    z[:, reals] = np.where(keep, z[:, reals], drawn)
    return z


def wider(region: Region) -> Region | None:
    """Return the next larger region, first by one more bin, then by a box twice as wide; None at the end."""
    if region.radius < len(region.space.combinatorial):
        return replace(region, radius=region.radius + 1)
    low, high = region.box
    if (low <= 0.0).all() and (high >= 1.0).all():
        return None
    return replace(region, box=np.clip([low - 0.5 * (high - low), high + 0.5 * (high - low)], 0.0, 1.0))
