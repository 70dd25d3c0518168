"""Casmopolitan: local Bayesian optimisation of categories and reals in two trust regions.

Nouns. The *centre* is the best point since the last restart. The *reach* of a region is the Hamming distance from the
centre that categories may have, its *side* is the width of the box around the centre for numbers (reals and ordinals).
The model is a Gaussian process on rank-standardised values. A search climbs augmented expected improvement by random
neighbours of the categories and by gradient steps of the numbers. When a region has shrunk to nothing, a second
process, on the best points of all regions so far, says where the next one starts.

The invariant: every point that the search proposes lies within the reach and the box of the centre.

Wan, Nguyen, Ha, Ru, Lu and Osborne: Think Global and Act Local: Bayesian Optimisation over High-Dimensional
Categorical and Mixed Search Spaces, ICML 2021. "Published" below means the authors' code of that paper.

Shapes: rows (n, c + r) of c codes of categories and then r places of numbers in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.gaussian import Covariance, Gaussian, Matern52
from bounce.baselines.rivals.overlap import Mixture, TransformedOverlap
from bounce.baselines.rivals.rival import Rival, from_unit, standardised, unit
from bounce.gp.linalg import Array, cholesky, inverse
from bounce.optimizer.options import whole
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

Flags = NDArray[np.bool_]
SUCCESSES, FAILURES, FACTOR = 3, 40, 1.5  # in a row, and what the region then grows or shrinks by
SIDE, LEAST_SIDE, LARGEST_SIDE = 0.8, 0.5**7, 1.6
REACH, LEAST_REACH, LARGEST_REACH = 20, 1, 30
CHAINS, STEPS, PATIENCE = 3, 200, 100  # searches, their steps, and neighbours outside the region that a step may draw
STRIDE, EPSILON = 0.1, 1e-8  # of Adam on the numbers, and what keeps it from a division by zero
OVERLAP, MIXED = (0.01, 2.5), (1e-300, np.inf)  # lengthscales of categories alone, and in a mixed space: no bounds
START_OVERLAP, START_MIXED = float(np.sqrt(0.01 * 0.5)), float(np.log(2.0))
SIGNALS, NOISES, START_SIGNAL, START_NOISE = (0.5, 5.0), (1e-6, 0.1), 1.0, 5e-3
TRAINING, RATE, DECAYS = 300, 0.03, (0.9, 0.999)  # steps of Adam on the model, their size, its averages
CANDIDATES, KAPPA = 5000, 1.96  # for the centre after a restart, and the weight of the deviation there


def copula(y: Array) -> Array:
    """Return the normal quantiles of rank/(n + 1); equal values share their highest rank."""
    return np.asarray(ndtri(np.searchsorted(np.sort(y), y, side="right") / (len(y) + 1)))


def trained(covariance: Covariance, x: Array, y: Array) -> Gaussian:
    """Return the process after 300 steps of Adam on the mean log likelihood of its parameters and a constant mean.

    Bounded parameters are sigmoids and free ones softpluses of what Adam moves. The steps end long before they
    converge (docs), so that they are part of the method. The constant is subtracted from the targets.
    """
    low, high = np.exp(np.concatenate([covariance.bounds, np.log([SIGNALS, NOISES])])).T
    start = np.append(np.exp(covariance.start), [START_SIGNAL, START_NOISE])
    free = np.isinf(high)
    width = np.where(free, 2.0 * start, high - low)
    raw = np.append(np.where(free, np.log(np.expm1(start)), logit((start - low) / width)), 0.0)
    first, second = np.zeros_like(raw), np.zeros_like(raw)

    def at(raw: Array) -> tuple[Array, Array]:
        """Return the parameters and their derivatives."""
        share = expit(raw)
        value = np.where(free, np.logaddexp(0.0, raw), low + width * share)
        return value, np.where(free, share, width * share * (1.0 - share))

    for step in range(1, TRAINING + 1):
        value, by_raw = at(raw[:-1])
        theta, signal, noise = np.log(value[:-2]), value[-2], value[-1]
        k = covariance(theta, x, x)
        total = signal * k
        total[np.diag_indices(len(x))] += noise
        inverted = inverse(cholesky(total))
        alpha = inverted @ (y - raw[-1])
        weights = 0.5 * (inverted - np.outer(alpha, alpha))  # ∂loss/∂K
        by_theta = signal * covariance.slopes(theta, x, weights) / value[:-2]
        by_value = np.append(by_theta, [np.einsum("ij,ij->", weights, k), np.trace(weights)])
        gradient = np.append(by_value * by_raw, -alpha.sum()) / len(y)
        first = DECAYS[0] * first + (1.0 - DECAYS[0]) * gradient
        second = DECAYS[1] * second + (1.0 - DECAYS[1]) * gradient**2
        size = np.sqrt(second / (1.0 - DECAYS[1] ** step)) + EPSILON
        raw = raw - RATE * first / (1.0 - DECAYS[0] ** step) / size
    value = at(raw[:-1])[0]
    return Gaussian(covariance, np.log(value[:-2]), float(value[-2]), float(value[-1]), x, y - raw[-1], constant=False)


@dataclass(frozen=True)
class Region:
    """How far the search may go, and what the last values say about it."""

    reach: int = REACH
    side: float = SIDE
    largest: int = LARGEST_REACH
    successes: int = 0
    failures: int = 0

    def after(self, value: float, best: float) -> Region:
        """Return the region after the lowest value of a round: a success improves the best by a thousandth."""
        if value <= best - 1e-3 * abs(best):
            if self.successes + 1 < SUCCESSES:
                return replace(self, successes=self.successes + 1, failures=0)
            grown = int(min(self.reach * FACTOR, self.largest))
            return replace(self, reach=grown, side=min(self.side * FACTOR, LARGEST_SIDE), successes=0, failures=0)
        if self.failures + 1 < FAILURES:
            return replace(self, successes=0, failures=self.failures + 1)
        shrunk = max(self.side / FACTOR, LEAST_SIDE)
        return replace(self, reach=int(self.reach / FACTOR), side=shrunk, successes=0, failures=0)


def augmented_ei(gp: Gaussian, z: Array, best: float) -> Array:
    """Return EI below `best` times 1 − √(τ/(τ + s²)) at rows, where τ is the noise and s² the posterior variance."""
    mean, sd = gp.posterior(z)
    u = (best - mean) / sd
    density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    return np.asarray(sd * (density + u * ndtr(u)) * (1.0 - np.sqrt(gp.noise / (gp.noise + sd**2))))


def augmented_slope(gp: Gaussian, z: Array, best: float) -> Array:
    """Return the gradient of augmented EI at one row."""
    mean, sd, by_mean, by_sd = gp.slope(z)
    u, total = (best - mean) / sd, gp.noise + sd**2
    density = float(np.exp(-0.5 * u**2)) / np.sqrt(2.0 * np.pi)
    ei = sd * (density + u * ndtr(u))
    by_factor = np.sqrt(gp.noise) * sd / total**1.5
    return np.asarray(
        (1.0 - np.sqrt(gp.noise / total)) * (density * by_sd - ndtr(u) * by_mean) + ei * by_factor * by_sd
    )


class Casmopolitan(Rival):
    """Casmopolitan with its published defaults: no relevance per variable, augmented expected improvement."""

    name = "casmopolitan"

    def __init__(
        self,
        space: Space,
        budget: int,
        seed: int,
        initial: int = INITIAL,
        *,
        reach: int = REACH,
        largest: int = LARGEST_REACH,
    ) -> None:
        super().__init__(space, budget, seed, initial)
        self._categories = space.of_kind(Kind.BINARY, Kind.CATEGORICAL)
        self._numbers = space.of_kind(Kind.REAL, Kind.ORDINAL)
        self._sizes = space.cardinalities[self._categories]
        self._order = np.concatenate([self._categories, self._numbers])
        self._has_ordinals = Kind.ORDINAL in space.kinds
        self._first = self._region = Region(reach=whole("reach", reach, 2), largest=whole("largest", largest, 2))
        self._since, self._seen = 0, 0  # values before this region, and values that the region took note of
        self._bests: list[int] = []  # the best value of each earlier region
        self._queue: list[Codes] = []  # first points of a region

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        self._take_note(x, y, rng=rng)
        if self._queue:
            return np.asarray(self._queue.pop(0))
        if self._since == len(y):
            return np.asarray(self.space.sample(1, rng=rng)[0])
        rows = self._arranged(x[self._since :])
        gp = trained(self._covariance(), rows, copula(y[self._since :])).believing(self._arranged(pending))
        centre = rows[np.argmin(y[self._since :])]
        search = self._interleave if len(self._numbers) else self._climb
        return np.asarray(self._codes(search(gp, centre, rng=rng)))

    def _take_note(self, x: Codes, y: Array, *, rng: np.random.Generator) -> None:
        """Resize the region by the lowest of the new values, after those of its first points; restart if it is over."""
        firsts = max(self._seen, min(self._since + len(self._initial), len(y)))
        if firsts < len(y):
            self._region = self._region.after(float(y[firsts:].min()), float(y[self._since : firsts].min()))
        self._seen = len(y)
        reach, side = self._region.reach, self._region.side
        if (len(self._categories) and reach <= LEAST_REACH) or (len(self._numbers) and side <= LEAST_SIDE):
            self._bests.append(self._since + int(np.argmin(y[self._since :])))
            self._queue = list(self._codes(self._restarted(x[self._bests], standardised(y)[self._bests], rng=rng)))
            self._since, self._region = len(y), self._first

    def _restarted(self, x: Codes, y: Array, *, rng: np.random.Generator) -> Array:
        """Return the first rows of a region around the lowest confidence bound given the best point of each region."""
        gp = trained(self._covariance(), self._arranged(x), y)
        candidates = self._arranged(self.space.sample(min(100 * len(self.space), CANDIDATES), rng=rng))
        mean, sd = gp.posterior(candidates)
        n, centre = len(self._initial), candidates[np.argmin(mean - KAPPA * sd)]
        rows = np.tile(centre, (n, 1))
        c, r = len(self._categories), len(self._numbers)
        if not r:
            rows[1:] = self._scattered(centre, self._first.reach, n - 1, rng=rng)  # the first is the centre itself
            return rows
        rows[:, :c] = self._scattered(centre[:c], self._first.reach, n, rng=rng)
        low, high = self._box(centre)  # of the side that is left: the published code resets it only after this
        moved = rng.random((n, r)) <= min(20.0 / r, 1.0)
        still = np.flatnonzero(~moved.any(axis=1))
        moved[still, rng.integers(r, size=len(still))] = True
        rows[:, c:][moved] = (low + (high - low) * sobol(n, r, rng=rng))[moved]
        return rows

    def _climb(self, gp: Gaussian, centre: Array, *, rng: np.random.Generator) -> Array:
        """Climb from the centre to better random neighbours, never back to it; a chain without neighbours ends."""
        best = float(gp.posterior(centre[None])[0][0])
        rows = np.tile(centre, (CHAINS, 1))
        values, alive = augmented_ei(gp, rows, best), np.ones(CHAINS, dtype=bool)
        for _ in range(STEPS):
            neighbours, found = self._neighbours(rows, centre, 1, rng=rng)
            alive &= found
            new = augmented_ei(gp, neighbours, best)
            better = alive & (new > values)
            rows[better], values[better] = neighbours[better], new[better]
        return np.asarray(rows[np.argmax(values)])

    def _interleave(self, gp: Gaussian, centre: Array, *, rng: np.random.Generator) -> Array:
        """Alternate a gradient step of the numbers with a random neighbour of the categories.

        As published: Adam is new at every step, which makes it a step of 0.1 along the gradient's signs, and the value
        to beat is that of the last neighbour taken, though the numbers have moved since.
        """
        best, c = float(gp.posterior(centre[None])[0][0]), len(self._categories)
        low, high = self._box(centre)
        rows = np.tile(centre, (CHAINS, 1))
        rows[:, :c] = self._scattered(centre[:c], self._region.reach, CHAINS, rng=rng)
        rows[:, c:] = low + (high - low) * sobol(CHAINS, len(low), rng=rng)
        values = augmented_ei(gp, self._placed(rows), best)
        kept = rows.copy()
        for _ in range(STEPS + 1):
            for row, placed in zip(rows, self._placed(rows), strict=True):
                slope = augmented_slope(gp, placed, best)[c:]
                row[c:] = np.clip(row[c:] + STRIDE * slope / (np.abs(slope) + EPSILON), low, high)
            neighbours, found = self._neighbours(rows, centre, 0, rng=rng)
            new = augmented_ei(gp, self._placed(neighbours), best)
            better = found & (new > values)
            rows[better], values[better] = neighbours[better], new[better]
            kept[better] = rows[better]
        return np.asarray((rows if c else kept)[np.argmax(values)])

    def _neighbours(self, rows: Array, centre: Array, least: int, *, rng: np.random.Generator) -> tuple[Array, Flags]:
        """Return a neighbour of each row at a Hamming distance from the centre of `least` to the reach.

        The published code draws a category and another value of it until they are inside, and ends a step after 100
        that are not; the same is done here with 101 draws at once. Returned too is whether there was one.
        """
        c, m = len(self._categories), np.arange(len(rows))
        neighbours = rows.copy()
        if not c:
            return neighbours, np.ones(len(rows), dtype=bool)
        column = rng.integers(c, size=(len(rows), PATIENCE + 1))
        old, size = rows[m[:, None], column], self._sizes[column]
        new = (old + rng.integers(1, size)) % size
        away = (rows[:, :c] != centre[:c]).sum(axis=1)[:, None]
        distance = away - (old != centre[column]) + (new != centre[column])
        inside = (distance >= least) & (distance <= self._region.reach)
        first = inside.argmax(axis=1)
        neighbours[m, column[m, first]] = new[m, first]
        return neighbours, inside.any(axis=1)

    def _scattered(self, centre: Array, reach: int, n: int, *, rng: np.random.Generator) -> Array:
        """Return n rows of categories, of which as many as the reach have a new random value each."""
        c = len(self._sizes)
        rows = np.tile(centre, (n, 1))
        columns = rng.permuted(np.tile(np.arange(c), (n, 1)), axis=1)[:, :reach]
        rows[np.arange(n)[:, None], columns] = rng.integers(0, self._sizes[columns])
        return rows

    def _box(self, centre: Array) -> tuple[Array, Array]:
        """Return the least and the largest places of the numbers."""
        place = centre[len(self._categories) :]
        return np.clip(place - 0.5 * self._region.side, 0, 1), np.clip(place + 0.5 * self._region.side, 0, 1)

    def _covariance(self) -> Covariance:
        c, r = len(self._categories), len(self._numbers)
        if not r:
            return TransformedOverlap(OVERLAP, START_OVERLAP)
        numbers = Matern52(r, MIXED, shared=True, start=START_MIXED)
        return Mixture(c, TransformedOverlap(MIXED, START_MIXED), numbers, (0.5, 0.5)) if c else numbers

    def _arranged(self, codes: Codes) -> Array:
        rows = codes[:, self._order]
        rows[:, len(self._categories) :] = unit(self.space, codes)[:, self._numbers]
        return np.asarray(rows)

    def _codes(self, rows: Array) -> Codes:
        places = np.empty_like(rows)
        places[..., self._order] = rows
        codes = from_unit(self.space, places)
        codes[..., self._categories] = rows[..., : len(self._categories)]
        return codes

    def _placed(self, rows: Array) -> Array:
        """Round ordinals to the places of their values; gradients are taken there and pass through the rounding."""
        return self._arranged(self._codes(rows)) if self._has_ordinals else rows


def sobol(n: int, d: int, *, rng: np.random.Generator) -> Array:
    """Return n scrambled Sobol points in the unit cube."""
    from scipy.stats import qmc  # slow to import

    if d > qmc.Sobol.MAXDIM:
        return rng.random((n, d))
    return np.asarray(qmc.Sobol(d, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(max(n, 2)))))[:n])
