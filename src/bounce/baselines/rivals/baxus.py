"""BAxUS: TuRBO in a subspace that grows, in nested steps, until it is the input space.

Nouns: an embedding puts every input variable into one bin, with a sign; a latent point has one coordinate in [−1, 1]
per bin, and each variable is that of its bin, times its sign. Bins have equal sizes, as nearly as that is possible.
When the trust region becomes too small, every bin splits into up to four; a budget for each number of bins says how
many failures the region stands, so that the input space is reached in time.

The invariant: after a split, every point asked for so far has the same value in the new embedding as in the old one,
so no observation is lost.

Papenmeier, Nardi, Poloczek: Increasing the Scope as You Learn: Adaptive Bayesian Optimization in Nested Subspaces,
NeurIPS 2022.

Shapes: x (n, D) codes in [0, 1], z (n, d) latent points in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.thompson import NOISE, SIGNAL, START, centred, fit, loss
from bounce.baselines.rivals.turbo import LENGTH, SHORTEST, Region, Turbo, candidates, latin_hypercube
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, on_grid
from bounce.spaces.space import Space

NEW_BINS = 3  # b: a bin splits into b + 1
LENGTHSCALES = (0.005, 10.0)
SAMPLES, STARTS = 50, 5  # parameters drawn, and how many of the best are starts of a fit


@dataclass(frozen=True, eq=False)
class Embedding:
    """Which bin (D,) each variable is in, and with which sign (D,)."""

    bins: NDArray[np.intp]
    signs: Array

    @classmethod
    def random(cls, input_dim: int, bins: int, *, rng: np.random.Generator) -> Embedding:
        """Draw balanced bins and signs; the identity if there is a bin for each variable."""
        of = np.arange(input_dim)
        if bins >= input_dim:
            return cls(of, np.ones(input_dim))
        for j, members in enumerate(np.array_split(rng.permutation(input_dim), bins)):
            of[members] = j
        return cls(of, rng.choice([-1.0, 1.0], input_dim))

    @property
    def d(self) -> int:
        """The number of bins."""
        return int(self.bins.max()) + 1

    def up(self, z: Array) -> Codes:
        """Return the codes of latent points."""
        return np.asarray(0.5 * (1.0 + z[:, self.bins] * self.signs))

    def down(self, x: Codes) -> Array:
        """Return the latent points of codes that lie in the subspace: any variable of a bin tells its coordinate."""
        any_of = np.unique(self.bins, return_index=True)[1]
        return np.asarray((2.0 * x[:, any_of] - 1.0) * self.signs[any_of])

    def split(self, lengthscales: Array, *, rng: np.random.Generator) -> Embedding | None:
        """Return an embedding with up to (b + 1)·d bins, shares for short lengthscales first; None if all are single.

        Bins that cannot be split leave their shares to the others.
        """
        sizes = np.bincount(self.bins)
        order = [j for j in np.argsort(lengthscales, kind="stable") if sizes[j] > 1]
        if not order:
            return None
        total = (NEW_BINS + 1) * self.d
        parts = np.minimum(total // len(order), sizes[order])
        bins, last = self.bins.copy(), self.d
        for j, count in zip(order, parts[np.cumsum(parts) <= total], strict=False):
            members = rng.permutation(np.flatnonzero(self.bins == j))
            for part in np.array_split(members, count)[1:]:  # the first part stays
                bins[part] = last
                last += 1
        return Embedding(bins, self.signs)


def first_bins(input_dim: int) -> int:
    """Return the d_init of 1, …, b whose last number of bins d_init·(b + 1)^n comes closest to D."""

    def miss(d: int) -> int:
        return abs(d * int((NEW_BINS + 1) ** splits(input_dim, d)) - input_dim)

    return min(range(1, min(NEW_BINS, input_dim) + 1), key=miss)


def splits(input_dim: int, first: int) -> int:
    """Return n, the number of splits from d_init bins to D."""
    return round(math.log(input_dim / first, NEW_BINS + 1))


def tolerance(d: int, input_dim: int, first: int, budget: int) -> int:
    """Return the failures until a region of d bins halves, if `budget` evaluations shall lead to the input space."""
    most = max(4, d)
    if d == input_dim:
        return most
    share: float = NEW_BINS * d / (first * ((NEW_BINS + 1) ** (splits(input_dim, first) + 1) - 1))
    halvings = math.log2(LENGTH / SHORTEST)
    return max(1, min(most, math.ceil(budget * share / (2.0 * halvings))))


class Baxus(Turbo):
    """BAxUS: TuRBO-1 in nested subspaces."""

    name = "baxus"
    why = ", which a signed bin cannot hold"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        rng = np.random.default_rng([seed, len(space)])
        self._first = first_bins(len(space))
        self._embedding = Embedding.random(len(space), self._first, rng=rng)
        self._initial = on_grid(self._latin(rng=rng))  # the common initial points lie outside of the subspace

    def _tolerance(self) -> int:
        return tolerance(self._embedding.d, len(self.space), self._first, self.budget - len(self._initial))

    def _latin(self, *, rng: np.random.Generator) -> Codes:
        return self._embedding.up(2.0 * latin_hypercube(len(self._initial), self._embedding.d, rng=rng) - 1.0)

    def _draw(self, number: int, x: Codes, y: Array, *, rng: np.random.Generator) -> tuple[Array, Array]:
        z, (t, _, _) = self._embedding.down(x), centred(y)
        if self._models.get(number, (0, None))[0] != len(y):
            self._models[number] = len(y), fit(z, t, LENGTHSCALES, starts(z, t, rng=rng))
        model = self._models[number][1]
        centre, half = z[y.argmin()], model.weights * self._regions[number].length
        low, high = np.clip(centre - half, -1.0, 1.0), np.clip(centre + half, -1.0, 1.0)
        found = candidates(centre, low, high, rng=rng)
        drawn = model.sample(found, rng=rng)
        best = int(drawn.argmin())
        return self._embedding.up(found[best : best + 1]), drawn[best : best + 1]

    def _collapse(self, number: int, *, rng: np.random.Generator) -> None:
        """Split the bins and keep all values; in the input space, start again."""
        split = self._embedding.split(self._models[number][1].weights, rng=rng)
        if split is None:
            super()._collapse(number, rng=rng)
            return
        self._embedding = split
        self._regions[number] = Region()
        self._models.pop(number)


def starts(z: Array, t: Array, *, rng: np.random.Generator) -> list[Any]:
    """Return the best few of a Latin hypercube of parameters (lengthscale, signal, noise) and the usual start."""
    low, high = np.array([LENGTHSCALES, SIGNAL, NOISE]).T
    drawn = [START, *(low + (high - low) * latin_hypercube(SAMPLES - 1, 3, rng=rng)).tolist()]
    lost = [loss(z, t, np.log([*[start[0]] * z.shape[1], *start[1:]]))[0] for start in drawn]
    return [drawn[i] for i in np.argsort(lost, kind="stable")[:STARTS]]
