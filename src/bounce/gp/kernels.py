"""Covariance of latent points: Matérn-5/2 and the CoCaBo mixture (appendix "Kernel choice").

    k(z, z') = σ² ( ρ·k_c·k_r + (1 − ρ)·(k_c + k_r) )

k_c: Matérn-5/2 of the combinatorial bins with one lengthscale (paper), one for each kind of them, or one for each bin
(`Method.lengthscales`). k_r: Matérn-5/2 of the reals with one lengthscale per bin. A space with only one sort of bins
uses that kernel alone. Squared distances of combinatorial codes are those of one-hot columns: 1 per binary mismatch, 2
per categorical mismatch, ((i − j)/(c − 1))² per ordinal (notes, decision 6).

Shapes: A (m, d), B (n, d) latent codes; every kernel matrix and squared distance is (m, n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array, blocks, product
from bounce.gp.points import NO_CODE, Foreign, Points
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

SQRT5 = math.sqrt(5.0)


def matern52(r2: Array) -> Array:
    """Return (1 + s + s²/3)·exp(−s) with s² = 5·r²."""
    s = np.sqrt(r2)
    s *= SQRT5
    k = s / 3.0
    k += 1.0
    k *= s
    k += 1.0
    np.negative(s, out=s)
    k *= np.exp(s, out=s)
    return k


def matern52_and_slope(r2: Array) -> tuple[Array, Array]:
    """Return the kernel and its derivative with respect to r²: −5/6·(1 + s)·exp(−s)."""
    s = np.sqrt(r2)
    s *= SQRT5
    decay = np.exp(-s)
    slope = s + 1.0
    k = s * s
    k *= 1.0 / 3.0
    k += slope
    k *= decay
    slope *= decay
    slope *= -5.0 / 6.0
    return k, slope


def squared_distance(a: Array, b: Array) -> Array:
    """Return the squared Euclidean distances between rows, by one matrix product."""
    d2 = product(a, b.T, times=-2.0)
    d2 += np.einsum("ij,ij->i", a, a)[:, None]
    d2 += np.einsum("ij,ij->i", b, b)
    return np.maximum(d2, 0.0, out=d2)


@dataclass(frozen=True)
class Hyper:
    """The hyperparameters, in the units of standardised targets."""

    combinatorial_lengthscales: Array
    """One for all combinatorial bins, one per kind (`Space.combinatorial_kinds`), or one per bin."""
    real_lengthscales: Array
    """One per real bin."""
    signal: float
    """The signal variance σ²."""
    noise: float
    """The noise variance."""
    rho: float
    """The weight of the product in the mixture."""
    per_bin: bool = False
    """Whether each combinatorial bin has its own lengthscale."""

    def stretch(self, space: Space) -> Array | None:
        """Return per bin (d,) what turns its distances into those of a bin with the first lengthscale; None for 1."""
        lengthscales = self.combinatorial_lengthscales
        if len(lengthscales) < 2:
            return None
        stretch = np.ones(len(space))
        if self.per_bin:
            stretch[space.combinatorial] = lengthscales[0] / lengthscales
        else:
            for kind, lengthscale in zip(space.combinatorial_kinds, lengthscales, strict=True):
                stretch[space.of_kind(kind)] = lengthscales[0] / lengthscale
        return stretch


@dataclass(frozen=True)
class Kernel:
    """The covariance function of one latent space."""

    space: Space
    hyper: Hyper
    grain: int | None = 1
    """Where squared distances of binary and categorical codes are integers, those of foreign points are multiples of
    1/grain; None if they can be any number."""

    @cached_property
    def metric(self) -> Metric:
        """The combinatorial distance of the space, stretched so that all bins have the first lengthscale."""
        return Metric(self.space, self.hyper.stretch(self.space))

    @property
    def prior(self) -> float:
        """The variance of one point: σ²(2 − ρ) for the mixture."""
        return self.hyper.signal * (2.0 - self.hyper.rho if self.space.is_mixed else 1.0)

    def scaled(self, z: Codes) -> Array:
        """Return the reals of codes, divided by their lengthscales."""
        return (z[:, self.space.reals] - 0.5) / self.hyper.real_lengthscales

    def combinatorial(self, d2: Array) -> Array:
        """Return k_c of squared combinatorial distances."""
        inverse = 1.0 / self.hyper.combinatorial_lengthscales[0] ** 2
        largest, grain = self.metric.largest, self.grain
        if largest is None or grain is None or d2.size <= largest * grain:
            return matern52(d2 * inverse)
        # The squared distances take few values: look them up.
        table = matern52(np.arange(largest * grain + 1.0) * (inverse / grain))
        return table.take((d2 if grain == 1 else np.rint(d2 * grain)).astype(np.intp))

    def mix(self, k_c: Array | None, k_r: Array | None) -> Array:
        """Combine the kernels of the two sorts of bins; None for a sort that the space does not have."""
        if k_c is None or k_r is None:
            alone = k_r if k_c is None else k_c
            assert alone is not None
            return self.hyper.signal * alone
        rho = self.hyper.rho
        mixed = rho * k_c
        mixed *= k_r
        total = k_c + k_r
        total *= 1.0 - rho
        mixed += total
        mixed *= self.hyper.signal
        return mixed

    @cached_property
    def _real_steps(self) -> Array:
        """Per bin, the length of one code in lengthscales; 0 for a bin that is not real."""
        steps = np.zeros(len(self.space))
        steps[self.space.reals] = 1.0 / self.hyper.real_lengthscales
        return steps

    def real_distance(self, a: Points, b: Points) -> Array:
        """Return the squared distances of the reals, in lengthscales."""
        r2 = squared_distance(self.scaled(a.z), self.scaled(b.z))
        if a.foreign is None and b.foreign is None:
            return r2
        return add_foreign(r2, a, b, self._real_steps)

    def real_offset(self, points: Points) -> Array | None:
        """Return what foreign points add to the squared distances (n,) of their reals; None if no point is foreign."""
        if points.foreign is None:
            return None
        offset = np.zeros(len(points))
        offset[points.foreign.rows] = points.foreign.variance @ self._real_steps**2
        return offset

    def real(self, a: Points, b: Points) -> Array:
        """Return k_r of two sets of points."""
        return matern52(self.real_distance(a, b))

    def __call__(self, a: Points, b: Points) -> Array:
        """Return the covariance matrix of two sets of points."""
        covariance = np.empty((len(a), len(b)))
        for rows in blocks(*covariance.shape):
            some = a[rows]
            k_c = self.combinatorial(self.metric(some, b)) if len(self.space.combinatorial) else None
            k_r = self.real(some, b) if len(self.space.reals) else None
            covariance[rows] = self.mix(k_c, k_r)
        return covariance


def add_foreign(d2: Array, a: Points, b: Points, steps: Array) -> Array:
    """Add what foreign points have beside the means over their bins to squared distances of lines, in place.

    `steps` (d,) is the length of one code in each bin, 0 for a bin that does not count.
    """
    if b.foreign is not None:
        d2[:, b.foreign.columns] += b.foreign.variance @ steps**2
    if a.foreign is not None:
        d2[a.foreign.rows] += (a.foreign.variance @ steps**2)[:, None]
        if b.foreign is not None:
            left = a.foreign.residuals(a.z[a.foreign.rows], steps)
            right = b.foreign.residuals(b.z[b.foreign.rows], steps)
            d2[np.ix_(a.foreign.rows, b.foreign.rows)] -= 2.0 * product(left, right.T)
            np.maximum(d2, 0.0, out=d2)
    return d2


@dataclass(frozen=True, eq=False)
class Metric:
    """Squared distances of combinatorial codes, without one-hot columns unless categories differ in their weight."""

    space: Space
    stretch: Array | None = None
    """Per bin (d,), what its distances are multiplied by; None for 1."""
    only: tuple[Kind, ...] = (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
    """The kinds that count."""

    @cached_property
    def lines(self) -> NDArray[np.intp]:
        """The columns whose codes lie on a line: binary and ordinal."""
        columns = [self.space.of_kind(kind) for kind in (Kind.BINARY, Kind.ORDINAL) if kind in self.only]
        return np.sort(np.concatenate([np.empty(0, dtype=np.intp), *columns]))

    @cached_property
    def categorical(self) -> NDArray[np.intp]:
        """The columns without an order."""
        return self.space.of_kind(Kind.CATEGORICAL)[: None if Kind.CATEGORICAL in self.only else 0]

    @cached_property
    def steps(self) -> Array:
        """Per column, the length of one step on its line, or 0 where there is no line."""
        steps = np.zeros(len(self.space))
        steps[self.lines] = 1.0 / (self.space.cardinalities[self.lines] - 1)
        return steps if self.stretch is None else steps * self.stretch

    @cached_property
    def jumps(self) -> Array:
        """Per column (d,), the squared distance of two categories, or 0 where there are none."""
        jumps = np.zeros(len(self.space))
        jumps[self.categorical] = 2.0 if self.stretch is None else 2.0 * self.stretch[self.categorical] ** 2
        return jumps

    @cached_property
    def largest(self) -> int | None:
        """The largest squared distance if all of them are integers."""
        if self.stretch is not None or len(self.space.of_kind(Kind.ORDINAL)):
            return None
        return len(self.space.of_kind(Kind.BINARY)) + 2 * len(self.space.of_kind(Kind.CATEGORICAL))

    def __call__(self, a: Points, b: Points) -> Array:
        """Return the squared distances between points."""
        lines, categorical = self.lines, self.categorical
        if len(lines):
            d2 = squared_distance(a.z[:, lines] * self.steps[lines], b.z[:, lines] * self.steps[lines])
            add_foreign(d2, a, b, self.steps)
        else:
            d2 = np.zeros((len(a), len(b)))
        if len(categorical):
            jumps = self.jumps[categorical]
            d2 += jumps[0] * self._mismatches(a, b) if (jumps == jumps[0]).all() else self._weighted(a, b)
            self._vote(d2, a, b)
        return d2

    def _mismatches(self, a: Points, b: Points) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """Return in how many categories points differ."""
        categorical = self.categorical
        narrow = self.space.cardinalities[categorical].max() < 256
        dtype, most = (np.uint8, 255.0) if narrow else (np.uint16, NO_CODE)  # NO_CODE becomes the largest
        count = np.zeros((len(a), len(b)), dtype=np.uint8 if len(categorical) < 256 else np.uint16)
        differs = np.empty(count.shape, dtype=bool)
        codes_a, codes_b = (np.minimum(z[:, categorical].T, most).astype(dtype) for z in (a.z, b.z))
        for column_a, column_b in zip(codes_a, codes_b, strict=True):
            np.not_equal(column_a[:, None], column_b, out=differs)
            count += differs
        return count

    def _weighted(self, a: Points, b: Points) -> Array:
        """Return the sum of the jumps of the categories in which points differ, by one matrix product."""
        weights = np.repeat(self.jumps[self.categorical], self.space.cardinalities[self.categorical])
        agreed = product(self.one_hot(a) * weights, self.one_hot(b).T, times=-1.0)
        agreed += float(self.jumps.sum())
        if a.foreign is not None and b.foreign is not None:
            agreed[np.ix_(a.foreign.rows, b.foreign.rows)] = 0.0  # neither has a code, as if they were equal
        return np.maximum(agreed, 0.0, out=agreed)

    def one_hot(self, points: Points) -> Array:
        """Return a column per category of every categorical bin; a point without a code has zeros there."""
        categorical = self.categorical
        sizes = self.space.cardinalities[categorical]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        codes = points.z[:, categorical]
        known = codes != NO_CODE
        hot = np.zeros((len(points), starts[-1]))
        row, column = np.nonzero(known)
        hot[row, starts[column] + codes[known].astype(np.intp)] = 1.0
        return hot

    def _vote(self, d2: Array, a: Points, b: Points) -> None:
        """Replace the mismatches of foreign points in their categories by the votes of their variables."""
        categorical = self.categorical
        jumps = self.jumps[categorical]
        for distances, others, foreign in ((d2, a.z, b.foreign), (d2.T, b.z, a.foreign)):
            if foreign is not None:
                cast = np.zeros((len(others), len(foreign.votes)))
                cast[np.arange(len(others))[:, None], _vote_rows(foreign, categorical, others[:, categorical])] = jumps
                cast[:, -1] = 0.0
                agreed = product(cast, foreign.votes)
                norm = (foreign.variance[:, categorical] - 1.0) @ jumps
                distances[:, foreign.columns] += 0.5 * norm - agreed
        if a.foreign is not None and b.foreign is not None:
            weights = self.jumps[a.foreign.choice_bins]
            agreed = product(a.foreign.choices * weights, b.foreign.choices.T)
            d2[np.ix_(a.foreign.rows, b.foreign.rows)] += jumps.sum() - agreed
        if a.foreign is not None or b.foreign is not None:
            np.maximum(d2, 0.0, out=d2)

    def moved(self, d2: Array, columns: NDArray[np.intp], old: Array, new: Array, points: Points) -> Array:
        """Return squared distances d2 (moves, n) to points after one code of each row changes, O(n) per row."""
        change = np.empty(d2.shape)
        steps = self.steps[columns]
        on, off = np.flatnonzero(steps != 0), np.flatnonzero(steps == 0)
        if len(on):
            # (c − x)² − (z − x)² = (c − z)(c + z − 2x), in steps
            size = (new[on] - old[on]) * steps[on] ** 2
            along = points.z.T[columns[on]]
            along *= (-2.0 * size)[:, None]
            along += (size * (new[on] + old[on]))[:, None]
            change[on] = along
        if len(off):
            change[off] = self._jumps(columns[off], old[off], new[off], points)
        change += d2
        return np.maximum(change, 0.0, out=change)

    def _jumps(self, columns: NDArray[np.intp], old: Array, new: Array, points: Points) -> Array:
        """Return what a changed category adds to squared distances (moves, n) to points."""
        same, jumps = points.z.T[columns], self.jumps[columns][:, None]
        change: Array = jumps * ((same == old[:, None]).view(np.int8) - (same == new[:, None]).view(np.int8))
        foreign = points.foreign
        if foreign is not None:
            before, after = (foreign.votes[_vote_rows(foreign, columns, code)] for code in (old, new))
            before -= after
            before *= jumps
            change[:, foreign.columns] = before
        return change


def _vote_rows(foreign: Foreign, bins: NDArray[np.intp], codes: Array) -> NDArray[np.intp]:
    """Return the rows of `votes` of codes in bins; the last one, of no votes, for a point without a code."""
    return np.where(codes == NO_CODE, len(foreign.votes) - 1, foreign.first_vote[bins] + codes.astype(np.intp))
