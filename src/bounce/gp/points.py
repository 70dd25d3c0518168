"""Points: what a process is conditioned on, as one stage sees it.

A point of the embedding is its latent code z. Any other input point is foreign: the variables of a bin do not agree on
one code. Every variable i of a bin j with |M_j| variables has a position v_i in the bin's codes, the code that its
value comes from, and squared distances are means over the variables of a bin:

    d²(z, x) = Σ_j 1/|M_j| · Σ_{i in M_j} (z_j − v_i)² = Σ_j (z_j − v̄_j)² + s_j²

with the mean v̄_j and the variance s_j² of the positions. So a foreign point is a latent point with fractional codes and
an offset, as cheap as any other. Categories have one-hot positions: a bin's mean is the share of its variables that
vote for each code. Between two foreign points the covariance of their positions within the bins counts too.

The invariant: all of this is the squared Euclidean distance of one feature vector per point, so a kernel of it is
positive definite for any mix of points. Points of the embedding have the distances of their latent codes.

Shapes: z (n, d) latent codes; f foreign points; D input variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

NO_CODE = 65535.0  # the code of a category on which the variables of a bin do not agree: equal to no code


@dataclass(frozen=True, eq=False)
class Foreign:
    """What is known about points outside the embedding, beside the means over their bins."""

    rows: NDArray[np.intp]
    """Which points (f,), ascending."""
    variance: Array
    """The variance of the positions within each bin (f, d), in codes; for categories, the mean squared norm."""
    votes: Array
    """For each code of each categorical bin, one after the other, the share of the variables that vote for it (C, f);
    the last row, of no code, is 0."""
    first_vote: NDArray[np.intp]
    """Per bin (d,), where its codes begin in `votes`."""
    positions: Array
    """The positions (f, D) of binary, ordinal and real variables, in codes of their bins; 0 for categories."""
    choices: Array
    """For each variable and each code of its categorical bin, whether it votes for the code (f, ...), shared among the
    codes that stand for its category: inner products are the mean agreements of two foreign points."""
    choice_bins: NDArray[np.intp]
    """The bin of each column of `choices`."""
    bins: NDArray[np.intp]
    """The bin of each variable (D,)."""
    grain: int | None
    """Squared distances of binary and categorical variables are multiples of 1/grain; None: they can be any number."""

    @cached_property
    def columns(self) -> slice | NDArray[np.intp]:
        """Which points, as a slice if they follow each other: slices are faster."""
        first, last = int(self.rows[0]), int(self.rows[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.rows) else self.rows

    def taken(self, rows: NDArray[np.intp], places: NDArray[np.intp]) -> Foreign:
        """Return some of them, at other places."""
        return replace(
            self,
            rows=places,
            variance=self.variance[rows],
            votes=self.votes[:, rows],
            positions=self.positions[rows],
            choices=self.choices[rows],
        )

    def joined(self, other: Foreign | None, shift: int) -> Foreign:
        """Return these and others, whose places are shifted."""
        if other is None:
            return self
        return replace(
            self,
            rows=np.concatenate([self.rows, other.rows + shift]),
            variance=np.concatenate([self.variance, other.variance]),
            votes=np.concatenate([self.votes, other.votes], axis=1),
            positions=np.concatenate([self.positions, other.positions]),
            choices=np.concatenate([self.choices, other.choices]),
        )

    def residuals(self, z: Codes, steps: Array) -> Array:
        """Return features (f, D) whose inner products are the covariances within the bins that are lines.

        `z` (f, d) are the means over the bins, `steps` (d,) the length of one code in each, 0 if it is no line.
        """
        sizes = np.bincount(self.bins, minlength=len(steps))
        return (self.positions - z[:, self.bins]) * (steps / np.sqrt(sizes))[self.bins]


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one stage: latent codes, and what is foreign about some of them."""

    z: Codes
    """Latent codes; of a foreign point, the means over its bins, and `NO_CODE` for categories without agreement."""
    foreign: Foreign | None = None

    def __len__(self) -> int:
        return len(self.z)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Points:
        if self.foreign is None:
            return Points(self.z[rows])
        index = np.arange(len(self.z))[rows]
        where = np.searchsorted(self.foreign.rows, index).clip(max=len(self.foreign.rows) - 1)
        places = np.flatnonzero(self.foreign.rows[where] == index)
        if not len(places):
            return Points(self.z[rows])
        return Points(self.z[rows], self.foreign.taken(where[places], places))

    def reals(self, space: Space) -> tuple[Array, NDArray[np.intp]]:
        """Return centred coordinates (n, ...) of the reals, and the place of each coordinate's bin among real bins.

        Sums of squared differences over coordinates are squared distances, which the lengthscales of the bins divide.
        """
        x, bins = self._lines(space, space.reals)
        return x, np.searchsorted(space.reals, bins)

    def combinatorial(self, space: Space) -> tuple[Array, NDArray[np.intp]]:
        """Return the same of combinatorial bins: a column per binary and ordinal, one per category of the others."""
        lines, bins = self._lines(space, space.of_kind(Kind.BINARY, Kind.ORDINAL))
        lines /= space.cardinalities[bins] - 1
        hot, hot_bins = self._categories(space, space.of_kind(Kind.CATEGORICAL))
        both = np.concatenate([lines, hot], axis=1), np.concatenate([bins, hot_bins])
        return both[0], np.searchsorted(space.combinatorial, both[1])

    def _lines(self, space: Space, columns: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        """Return the coordinates of bins whose codes lie on a line, and the bin of each coordinate."""
        if self.foreign is None:
            return self.z[:, columns] - 0.5, columns
        variables = np.flatnonzero(np.isin(self.foreign.bins, columns))
        own = self.foreign.bins[variables]
        x = self.z[:, own]
        x[self.foreign.rows] = self.foreign.positions[:, variables]
        weights = 1.0 / np.sqrt(np.bincount(self.foreign.bins, minlength=len(space))[own])
        return (x - 0.5) * weights, own

    def _categories(self, space: Space, columns: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        """Return one-hot coordinates of categorical bins, and the bin of each coordinate."""
        foreign = self.foreign
        own = np.repeat(columns, space.cardinalities[columns]) if foreign is None else foreign.choice_bins
        first = np.searchsorted(own, own)
        codes = (np.arange(len(own)) - first) % np.maximum(space.cardinalities[own], 1)
        hot = (self.z[:, own] == codes).astype(np.float64)
        if foreign is not None:
            hot /= np.sqrt(np.bincount(foreign.bins, minlength=len(space))[own])
            hot[foreign.rows] = foreign.choices
        return hot, own

    def joined(self, other: Points) -> Points:
        """Return these points and then others."""
        z = np.concatenate([self.z, other.z])
        if self.foreign is not None:
            return Points(z, self.foreign.joined(other.foreign, len(self)))
        if other.foreign is not None:
            return Points(z, replace(other.foreign, rows=other.foreign.rows + len(self)))
        return Points(z)
