"""Random projections: combinations become points of a convex polytope by a random linear map.

The nouns: the `Mapping` φ sends a combination to the mean of the random vectors that its values stand for; the polytope
is the convex hull of all images, inside the unit cube; a Gaussian process and its upper confidence bound live there;
the left inverse sends a point of the polytope to the combination with the nearest image.

The invariant: images lie in the unit cube, and two combinations have one image with probability zero.

Kim, Choi and Cho (2022), Combinatorial Bayesian optimization with random mapping functions to convex polytopes, UAI.

Shapes: codes (n, D), images (n, d); one row of `vectors` (M, d) per value of each variable, M = Σ cardinalities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.baseline import INITIAL, SEEDS
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

TARGET = 20  # dimensions of the cube
LENGTHSCALES = (1e-2, 1e3)
FIRST, SECOND = 1.0, 0.1  # where fits start: from the published 1 many end at white noise, as images lie close together
SIGNAL = (1e-4, 1e6)
NOISE = 1.1e-4  # the variance: 0.01² and a jitter of 1e-5, never fitted
KAPPA = 2.0  # deviations in the bound, times ln(n + 1)
STARTS = 128  # points at which the bound is computed
CLIMBS = 16  # of these, from which it is maximised
TABLE = 2**16  # combinations, up to which all images are looked at
DESCENTS = 8  # towards the nearest image in a larger space
PAIRS = 256  # changes of one value, of which all pairs are looked at

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Mapping:
    """φ(c) = Σ_i v_i(c_i)/D, where a value's vector v_i is random (uniform in the cube).

    A bit or an ordinal has one random vector, times its place in [0, 1]; every category has a vector of its own.
    """

    space: Space
    vectors: Array

    @classmethod
    def drawn(cls, space: Space, d: int = TARGET, *, rng: np.random.Generator) -> Mapping:
        """Draw the vectors of all values."""
        rows = []
        for kind, c in zip(space.kinds, space.cardinalities.tolist(), strict=True):
            if kind is Kind.CATEGORICAL:
                rows.append(rng.random((c, d)))
            else:
                rows.append(np.linspace(0.0, 1.0, c)[:, None] * rng.random(d))
        return cls(space, np.concatenate(rows) / len(space))

    @cached_property
    def first(self) -> Indices:
        """The row of each variable's value 0."""
        return np.asarray(np.cumsum(self.space.cardinalities) - self.space.cardinalities)

    @cached_property
    def owner(self) -> Indices:
        """The variable of each row."""
        return np.repeat(np.arange(len(self.space)), self.space.cardinalities)

    def __call__(self, codes: Codes) -> Array:
        """Return the images of combinations."""
        places = self.first + codes.astype(np.intp)
        image = np.zeros((len(codes), self.vectors.shape[1]))
        for column in places.T:
            image += self.vectors[column]
        return image

    def nearer(self, codes: Codes, z: Array) -> Codes:
        """Move each combination to the one with the nearest image among its neighbours, until none is nearer."""
        places, moving = self.first + codes.astype(np.intp), np.arange(len(codes))
        residual = self(codes) - z
        lengths = np.einsum("md,md->m", self.vectors, self.vectors)
        while len(moving):
            own = places[moving][:, self.owner]  # the row in place of which each row would come
            towards = residual[moving] @ self.vectors.T
            change = 2.0 * (towards - np.take_along_axis(towards, own, axis=1)) + lengths + lengths[own]
            change -= 2.0 * np.einsum("md,smd->sm", self.vectors, self.vectors[own])
            best = change.argmin(axis=1)
            moving, best = (part[change.min(axis=1) < -1e-12] for part in (moving, best))
            residual[moving] += self.vectors[best] - self.vectors[places[moving, self.owner[best]]]
            places[moving, self.owner[best]] = best
        return np.asarray(places - self.first, dtype=np.float64)

    def exchanged(self, row: Codes, z: Array) -> Codes:
        """Move one combination on in the same way, now by the best change of one or two values."""
        places = self.first + row.astype(np.intp)
        residual = self(row[None])[0] - z
        while True:
            step = self.vectors - self.vectors[places[self.owner]]
            change = 2.0 * step @ residual + np.einsum("md,md->m", step, step)
            best = np.argsort(change, kind="stable")[:PAIRS]
            both = change[best, None] + change[best] + 2.0 * step[best] @ step[best].T
            both[self.owner[best, None] == self.owner[best]] = np.inf
            both[np.diag_indices(len(best))] = change[best]
            one, two = best[list(np.unravel_index(both.argmin(), both.shape))]
            if not both.min() < -1e-12:
                return np.asarray(places - self.first, dtype=np.float64)
            places[self.owner[one]], places[self.owner[two]] = one, two
            residual = self.vectors[places].sum(axis=0) - z

    def beside(self, row: Codes) -> Codes:
        """Return all combinations that differ from one in one value."""
        rows = np.tile(row, (len(self.owner), 1))
        rows[np.arange(len(rows)), self.owner] = np.arange(len(rows)) - self.first[self.owner]
        return rows

    def nearest(self, z: Array, known: Collection[bytes], *, rng: np.random.Generator) -> Codes:
        """Return the combination that is not known whose image is nearest to a point (the left inverse)."""
        if self.space.size <= TABLE:
            rows, images = self._table
        else:  # the images of a sample, and from the nearest of these down
            rows = self.space.sample(TABLE // 16, rng=rng)
            start = np.argsort(self._distance(self(rows), z))[:DESCENTS]
            rows = np.array([self.exchanged(row, z) for row in self.nearer(rows[start], z)])
            rows = np.concatenate([rows, *(self.beside(row) for row in rows)])
            images = self(rows)
        order = np.argsort(self._distance(images, z), kind="stable")
        for i in order:
            if self.space.keys(rows[i : i + 1])[0] not in known:
                return np.asarray(rows[i])
        return np.asarray(rows[order[0]])

    def shares(self, logits: Array) -> Array:
        """Return weights (s, M) of all values that sum to one for each variable."""
        weights = np.exp(logits - np.maximum.reduceat(logits, self.first, axis=1)[:, self.owner])
        return np.asarray(weights / np.add.reduceat(weights, self.first, axis=1)[:, self.owner])

    @cached_property
    def _table(self) -> tuple[Codes, Array]:
        rows = self.space.grid()
        return rows, self(rows)

    @staticmethod
    def _distance(images: Array, z: Array) -> Array:
        return np.asarray(np.square(images - z).sum(axis=1))


Loss = Callable[[Array], tuple[float, Array]]
"""A function to minimise, and its gradient."""


def descended(loss: Loss, starts: Array, bounds: list[tuple[float, float]] | None) -> Array:
    """Return the lowest point that L-BFGS-B finds from starts."""
    from scipy.optimize import minimize  # slow to import

    found = [minimize(loss, z, jac=True, method="L-BFGS-B", bounds=bounds) for z in starts]
    return np.asarray(min(found, key=lambda result: float(result.fun)).x)


class RandomProjections(Rival):
    """Bayesian optimization of combinations in the polytope that a random map sends them to."""

    name: ClassVar[str] = "random-projections"
    takes: ClassVar[tuple[Kind, ...]] = (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
    why: ClassVar[str] = ": its map is defined for combinations of finitely many values"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._mapping = Mapping.drawn(space, rng=np.random.default_rng([self.seed, SEEDS]))

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        gp = fitted(self._mapping(x), standardised(y)).believing(self._mapping(pending))
        return self._mapping.nearest(self._highest(gp, rng=rng), self._keys, rng=rng)

    def _highest(self, gp: Gaussian, *, rng: np.random.Generator) -> Array:
        """Return the point of the polytope with the highest −mean + κ·deviation.

        A point of the polytope is the image of a relaxed combination, whose variables have shares of all their values.
        The descent moves their logits, from points uniform in the relaxation.
        """
        phi, kappa = self._mapping, bound_weight(gp)
        starts = np.log(rng.standard_exponential((STARTS, len(phi.owner))))
        mean, sd = gp.posterior(phi.shares(starts) @ phi.vectors)

        def loss(logits: Array) -> tuple[float, Array]:
            shares = phi.shares(logits[None])[0]
            m, s, by_mean, by_sd = gp.slope(shares @ phi.vectors)
            each = phi.vectors @ (by_mean - kappa * by_sd)
            middle = np.add.reduceat(shares * each, phi.first)
            return m - kappa * s, shares * (each - middle[phi.owner])

        best = np.argsort(mean - kappa * sd, kind="stable")[:CLIMBS]
        return np.asarray(phi.shares(descended(loss, starts[best], None)[None])[0] @ phi.vectors)


class RandomProjectionsPublished(RandomProjections):
    """The method as its published scripts run it: the bound is maximised over all of the unit cube."""

    name: ClassVar[str] = "random-projections-published"

    def _highest(self, gp: Gaussian, *, rng: np.random.Generator) -> Array:
        """Return the point of the unit cube with the highest −mean + κ·deviation: L-BFGS-B from Sobol points."""
        from scipy.stats import qmc  # slow to import

        d, kappa = gp.x.shape[1], bound_weight(gp)
        starts = qmc.Sobol(d, seed=rng).random(STARTS)
        mean, sd = gp.posterior(starts)

        def loss(z: Array) -> tuple[float, Array]:
            m, s, by_mean, by_sd = gp.slope(z)
            return m - kappa * s, by_mean - kappa * by_sd

        best = np.argsort(mean - kappa * sd, kind="stable")[:CLIMBS]
        return np.clip(descended(loss, starts[best], [(0.0, 1.0)] * d), 0.0, 1.0)


def fitted(z: Array, y: Array) -> Gaussian:
    """Return the process of the highest likelihood given images (n, d) and values, from two starts."""
    d = z.shape[1]
    fit = Fit(
        signal=SIGNAL,
        noise=(NOISE, NOISE),
        start_noise=NOISE,
        constant=False,
        starts=[np.full(d, np.log(SECOND))],
    )
    return fit(Matern52(d, LENGTHSCALES, start=FIRST), z, y)


def bound_weight(gp: Gaussian) -> float:
    """Return κ = 2·ln(n + 1)."""
    return KAPPA * float(np.log(len(gp.y) + 1))
