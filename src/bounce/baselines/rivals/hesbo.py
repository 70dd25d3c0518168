"""HeSBO: Bayesian optimization in a random subspace that a hash function makes.

The nouns: an `Embedding` maps latent points z in a box [−b, b]^d to the cube [−1, 1]^D, and clips what leaves it. That
of HeSBO is a count sketch: each of the D variables belongs to a random one of d bins, with a random sign, so nothing is
ever clipped. A Gaussian process (Matérn-5/2, a lengthscale for each bin, maximum likelihood) sees latent points alone,
and the next point is the best of 2,000 of a Latin hypercube by expected improvement.

The invariant: after the common initial points, every proposed point is the image of a latent point, and the model knows
exactly the points that are. The common initial points are no such images: they are evaluated, and the model ignores
them, since their values are not those of any latent point.

A. Nayebi, A. Munteanu, M. Poloczek. A Framework for Bayesian Optimization in Embedded Subspaces. ICML 2019.

Shapes: x (n, D) in the cube, z (n, d) latent, y (n,) values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bounce.acquire.improvement import log_ei
from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52
from bounce.baselines.rivals.rival import Rival, from_unit, standardised
from bounce.gp.linalg import Array
from bounce.optimizer.options import whole
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

CANDIDATES = 2000  # of expected improvement
LOOK = 32  # ranked points among which one with a new image is sought
EARLY, OFTEN, RARELY = 25, 5, 20  # up to 25 values a fit at every 5th proposal, then at every 20th
# The published fit has no bounds; these are far from where it ends.
LENGTHSCALES, SIGNALS, NOISES = (1e-2, 1e3), (1e-4, 1e4), (1e-8, 1e1)


@dataclass(frozen=True, eq=False)
class Embedding:
    """A linear map from a latent box to the cube, clipped."""

    matrix: Array
    """The map (D, d)."""
    half: float
    """The box is [−half, half]^d."""

    def up(self, z: Array) -> Array:
        """Return the points (n, D) of the cube [−1, 1]^D for latent points."""
        return np.clip(z @ self.matrix.T, -1.0, 1.0)

    def latin(self, n: int, *, rng: np.random.Generator) -> Array:
        """Draw a Latin hypercube of n points in the box."""
        cells = rng.permuted(np.tile(np.arange(n)[:, None], (1, self.matrix.shape[1])), axis=0)
        return np.asarray(self.half * (2.0 * (cells + rng.random(cells.shape)) / n - 1.0))


def count_sketch(variables: int, d: int, *, rng: np.random.Generator) -> Embedding:
    """Draw HeSBO's map: a random bin h(i) and a random sign s(i) for each variable, x_i = s(i)·z_h(i)."""
    matrix = np.zeros((variables, d))
    matrix[np.arange(variables), rng.integers(d, size=variables)] = rng.choice([-1.0, 1.0], size=variables)
    return Embedding(matrix, 1.0)


def refits(proposal: int, known: int) -> bool:
    """Return whether the published code fits the model before a proposal (from 0) of the model, given known values."""
    return proposal % (OFTEN if known <= EARLY else RARELY) == 0


class Embedded(Rival):
    """Bayesian optimization in one random embedding, or in several by turns."""

    takes: ClassVar[Sequence[Kind]] = (Kind.REAL,)
    why: ClassVar[str] = ": a linear embedding needs real numbers"
    dims: ClassVar[int] = 10
    """The number d of latent dimensions; no more than the space has."""
    embeddings: ClassVar[int] = 1
    """The number of embeddings, each with its own data and model; proposals take turns."""
    design: ClassVar[int] = 10
    """The number of random points in each embedding before its model is used."""

    def __init__(
        self, space: Space, budget: int, seed: int, initial: int = INITIAL, *, dims: int | None = None
    ) -> None:
        super().__init__(space, budget, seed, initial)
        d = min(whole("dims", self.dims if dims is None else dims, 1), len(space))
        rng = np.random.default_rng([self.seed, len(space), d])
        self._maps = [self._embedding(d, rng=rng) for _ in range(self.embeddings)]
        self._designs = [self._first(i, rng=rng) for i in range(self.embeddings)]
        self._latent: dict[bytes, tuple[int, Array]] = {}
        self._asked = [0] * self.embeddings

    @abstractmethod
    def _embedding(self, d: int, *, rng: np.random.Generator) -> Embedding:
        """Draw an embedding."""

    def _first(self, i: int, *, rng: np.random.Generator) -> Array:
        """Draw the first latent points (design, d) of an embedding."""
        return self._maps[i].latin(self.design, rng=rng)

    @abstractmethod
    def _ranked(self, i: int, z: Array, y: Array, pending: Array, *, rng: np.random.Generator) -> Array:
        """Return latent points of an embedding, the best first, given its data (y standardised)."""

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        i = sum(self._asked) % self.embeddings
        places, z = self._own(i, x)
        if self._asked[i] < self.design:
            ranked = self._designs[i][self._asked[i] :]
        elif len(z) < 2:  # the values of the design are still pending
            ranked = self._first(i, rng=rng)
        else:
            ranked = self._ranked(i, z, standardised(y[places]), self._own(i, pending)[1], rng=rng)
        self._asked[i] += 1
        return self._new(i, ranked)

    def _own(self, i: int, x: Codes) -> tuple[list[int], Array]:
        """Return the places of the rows that are images of latent points of an embedding, and these points."""
        found = [self._latent.get(key, (-1, None)) for key in self.space.keys(x)]
        places = [place for place, (own, _) in enumerate(found) if own == i]
        return places, np.array([found[place][1] for place in places]).reshape(-1, self._maps[i].matrix.shape[1])

    def _new(self, i: int, z: Array) -> Codes:
        """Return the codes of the first latent point whose image is a new point, or else of the first one."""
        z = z[:LOOK]
        rows = from_unit(self.space, 0.5 * (self._maps[i].up(z) + 1.0))
        keys = self.space.keys(rows)
        place = next((place for place, key in enumerate(keys) if key not in self._keys), 0)
        self._latent.setdefault(keys[place], (i, z[place]))
        return np.asarray(rows[place])


class Sampled(Embedded):
    """The model and the acquisition of the published HeSBO and REMBO: EI on a Latin hypercube."""

    noise: ClassVar[float]
    """Where the first fit of the noise variance starts."""

    def __init__(
        self, space: Space, budget: int, seed: int, initial: int = INITIAL, *, dims: int | None = None
    ) -> None:
        super().__init__(space, budget, seed, initial, dims=dims)
        self._fitted: dict[int, Gaussian] = {}

    def _ranked(self, i: int, z: Array, y: Array, pending: Array, *, rng: np.random.Generator) -> Array:
        if i not in self._fitted or refits(self._asked[i] - self.design, len(y)):
            self._fitted[i] = self._fit(z, y, self._fitted.get(i))
        old = self._fitted[i]  # between fits only the data are new
        gp = Gaussian(old.covariance, old.theta, old.signal, old.noise, z, y, constant=False).believing(pending)
        candidates = self._maps[i].latin(CANDIDATES, rng=rng)
        mean, sd = gp.posterior(candidates)
        # The published prediction is of a value, not of f: its variance has the noise.
        return np.asarray(candidates[np.argsort(-log_ei(mean, np.hypot(sd, np.sqrt(gp.noise)), float(y.min())))])

    def _fit(self, z: Array, y: Array, old: Gaussian | None) -> Gaussian:
        """Return the model of the highest likelihood near the last one, or near unit variance and lengthscales."""
        covariance = Matern52(z.shape[1], LENGTHSCALES, start=1.0)
        signal, noise = (1.0, self.noise) if old is None else (old.signal, old.noise)
        if old is not None:
            covariance.start = old.theta
        fit = Fit(SIGNALS, NOISES, start_signal=signal, start_noise=noise, constant=False)
        return fit(covariance, z, y)


class Hesbo(Sampled):
    """HeSBO with expected improvement."""

    name: ClassVar[str] = "hesbo"
    noise: ClassVar[float] = 1e-3

    def _embedding(self, d: int, *, rng: np.random.Generator) -> Embedding:
        return count_sketch(len(self.space), d, rng=rng)
