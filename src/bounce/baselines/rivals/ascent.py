"""Ascent: expected improvement over features and reals, and the searches by which BODi maximises it.

A *climb* moves a point to its best neighbour as long as that one is better; a neighbour differs in one combinatorial
variable. With reals, climbs alternate with CMA-ES on the reals. *Spray points* are the neighbours of the best point
with perturbed reals, as further candidates to start from.

The invariant: a search never lowers the expected improvement of its point.

Shapes: n observations, p pending points, N = n + p; m anchors, r reals; k candidates; R searches side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.improvement import log_h
from bounce.baselines.rivals.dictionaries import Embedding
from bounce.baselines.rivals.evolution import evolve
from bounce.baselines.rivals.gaussian import Gaussian
from bounce.gp.kernels import matern52, squared_distance
from bounce.gp.linalg import Array, cholesky, solve_lower
from bounce.spaces.kinds import Codes, on_grid

CANDIDATES = 2000  # random points among which searches find their starts
SEARCHES, MIXED_SEARCHES = 20, 10  # the published mixed search keeps its own default of 10
CLIMB, ROUNDS, GAIN = 50, 50, 1e-6  # steps of a climb; alternations, as long as each gains this much
SPRAYS, SPREAD = 200, 1 / 8  # perturbations of the best point's reals, and their deviation
SIGMA, POPULATION, GENERATIONS = 0.1, 50, 50  # of CMA-ES
SAMPLES = 128  # of values at pending points
ROWS = 4096  # candidates that are evaluated at once


class Improvement:
    """Expected improvement below the best value, beside pending points whose values are sampled (greedy q-EI).

    Squared distances to the data and the pending points (k, N) are sums of those of features and those of reals, so
    that a search which moves one sort computes the other once.
    """

    def __init__(self, gp: Gaussian, embedding: Embedding, pending: Codes, *, rng: np.random.Generator) -> None:
        m, n, p = len(embedding.dictionary.anchors), len(gp.x), len(pending)
        self.embedding, self.signal, self.mean = embedding, gp.signal, gp.mean
        self._shrink, self._shrink_reals = np.exp(-gp.theta[:m]), np.exp(-gp.theta[m:])
        x = np.concatenate([gp.x, embedding(pending)])
        self._features, self._reals = x[:, :m] * self._shrink, x[:, m:] * self._shrink_reals
        k = gp.signal * gp.covariance(gp.theta, x, x)
        np.fill_diagonal(k, gp.signal + np.append(np.full(n, gp.noise), np.full(p, 1e-8 * gp.signal)))
        self._factor = cholesky(k)
        white = solve_lower(np.asfortranarray(self._factor[:n, :n]), (gp.y - gp.mean)[:, None])
        normal = rng.standard_normal((p, SAMPLES if p else 1))
        self._white = np.concatenate([np.repeat(white, normal.shape[1], axis=1), normal])  # (N, samples)
        sampled = gp.mean + self._factor[n:] @ self._white
        self.thresholds = np.minimum(gp.y.min(), sampled.min(axis=0, initial=np.inf))

    def by_features(self, features: Array) -> Array:
        """Return the squared distances (k, N) of features (k, m)."""
        return squared_distance(features * self._shrink, self._features)

    def by_reals(self, u: Codes) -> Array:
        """Return the squared distances (k, N) of reals (k, r)."""
        return squared_distance(self.embedding.scaled(u) * self._shrink_reals, self._reals)

    def __call__(self, r2: Array) -> Array:
        """Return the expected improvement (k,) at squared distances (k, N)."""
        v = solve_lower(self._factor, self.signal * matern52(r2).T)
        variance = self.signal - np.einsum("nk,nk->k", v, v)
        sd = np.sqrt(np.maximum(variance, 1e-12))[:, None]
        below = (self.thresholds - self.mean - v.T @ self._white) / sd
        return np.asarray((sd * np.exp(log_h(below))).mean(axis=1))

    def at(self, codes: Codes) -> Array:
        """Return the expected improvement (k,) at points."""
        space, parts = self.embedding.space, []
        for start in range(0, len(codes), ROWS):
            some = codes[start : start + ROWS]
            parts.append(self(self.by_features(self.embedding.features(some)) + self.by_reals(some[:, space.reals])))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Search:
    """Points (R, D) that climb side by side, and their expected improvements (R,)."""

    improvement: Improvement
    codes: Codes
    values: Array

    def climbed(self, active: NDArray[np.bool_]) -> Search:
        """Return the search after its active points (R,) moved to their best neighbours as long as these are better."""
        space, dictionary = self.improvement.embedding.space, self.improvement.embedding.dictionary
        combinatorial, reals = space.combinatorial, space.reals
        codes, values = self.codes.copy(), self.values.copy()
        together = max(1, ROWS // max(1, len(dictionary.table) - len(combinatorial)))
        climbing = np.flatnonzero(active)
        for _ in range(CLIMB if len(combinatorial) else 0):
            better = [climbing[:0]]
            for start in range(0, len(climbing), together):
                some = climbing[start : start + together]
                here = codes[some][:, combinatorial]
                moves, added = dictionary.moves(here)
                features = dictionary(here)[:, None] + added
                r2 = self.improvement.by_features(features.reshape(-1, features.shape[-1]))
                r2 += np.repeat(self.improvement.by_reals(codes[some][:, reals]), moves.shape[1], axis=0)
                found = self.improvement(r2).reshape(moves.shape)
                best = np.arange(len(some)), found.argmax(axis=1)
                up = found[best] > values[some]
                codes[np.ix_(some[up], combinatorial)] = dictionary.moved(here, moves[best])[up]
                values[some[up]] = found[best][up]
                better.append(some[up])
            climbing = np.concatenate(better)
            if not len(climbing):
                break
        return replace(self, codes=codes, values=values)

    def evolved(self, active: NDArray[np.bool_], *, rng: np.random.Generator) -> Search:
        """Return the search after the reals of its active points (R,) moved by CMA-ES, where it found better ones."""
        codes, values, reals = self.codes.copy(), self.values.copy(), self.improvement.embedding.space.reals
        some = np.flatnonzero(active)
        fixed = self.improvement.by_features(self.improvement.embedding.features(codes[some]))[:, None]

        def negative(u: Array) -> Array:
            r2 = self.improvement.by_reals(u.reshape(-1, len(reals))).reshape(*u.shape[:2], -1)
            r2 += fixed
            return -self.improvement(r2.reshape(-1, r2.shape[-1])).reshape(u.shape[:2])

        start = codes[np.ix_(some, reals)]
        u, lowest = evolve(negative, start, sigma=SIGMA, population=POPULATION, steps=GENERATIONS, rng=rng)
        up = -lowest > values[some]
        codes[np.ix_(some[up], reals)] = u[up]
        values[some[up]] = -lowest[up]
        return replace(self, codes=codes, values=values)

    def alternated(self, *, rng: np.random.Generator) -> Search:
        """Return the search after it climbed and evolved in turns, each point until a round gained too little."""
        search, active = self, np.full(len(self.codes), True)
        for _ in range(ROUNDS if len(self.improvement.embedding.space.combinatorial) else 1):  # no turns without both
            after = search.climbed(active).evolved(active, rng=rng)
            active = active & (after.values - search.values >= GAIN)
            search = after
            if not active.any():
                break
        return search


def neighbours(embedding: Embedding, point: Codes) -> Codes:
    """Return all points (K, D) that differ from a point in one combinatorial variable."""
    dictionary, columns = embedding.dictionary, embedding.space.combinatorial
    moves = np.flatnonzero(dictionary.codes != point[columns][dictionary.columns])
    near = np.tile(point, (len(moves), 1))
    near[:, columns] = dictionary.moved(near[:, columns], moves)
    return near


def sprayed(improvement: Improvement, point: Codes, keep: int, *, rng: np.random.Generator) -> tuple[Codes, Array]:
    """Return the best of all neighbours of a point, each with all perturbations of its reals, and their values."""
    space = improvement.embedding.space
    near = neighbours(improvement.embedding, point) if len(space.combinatorial) else point[None]
    u = np.clip(point[space.reals] + SPREAD * rng.standard_normal((SPRAYS, len(space.reals))), 0.0, 1.0)
    fixed = np.concatenate(
        [improvement.by_features(improvement.embedding.features(near[i : i + ROWS])) for i in range(0, len(near), ROWS)]
    )
    values = np.empty((SPRAYS, len(near)))
    together = max(1, ROWS // len(near))
    for start in range(0, SPRAYS, together):
        r2 = improvement.by_reals(u[start : start + together])[:, None] + fixed
        values[start : start + together] = improvement(r2.reshape(-1, r2.shape[-1])).reshape(r2.shape[:2])
    best = np.argsort(-values, axis=None, kind="stable")[:keep]
    spray, neighbour = np.unravel_index(best, values.shape)
    codes = near[neighbour]
    codes[:, space.reals] = u[spray]
    return codes, values.ravel()[best]


def maximise(improvement: Improvement, incumbent: Codes, *, rng: np.random.Generator) -> Codes:
    """Return the point (D,) of the highest expected improvement that the searches find."""
    space = improvement.embedding.space
    codes = space.sample(CANDIDATES, rng=rng)
    if len(space.reals):
        values, keep = improvement.at(codes), MIXED_SEARCHES
        near, near_values = sprayed(improvement, incumbent, keep, rng=rng)
        codes, values = np.concatenate([codes, near]), np.concatenate([values, near_values])
    else:
        codes, keep = np.concatenate([codes, neighbours(improvement.embedding, incumbent)]), SEARCHES
        values = improvement.at(codes)
    top = np.argsort(-values, kind="stable")[:keep]
    search = Search(improvement, codes[top], values[top])
    search = search.alternated(rng=rng) if len(space.reals) else search.climbed(np.full(len(top), True))
    best: Codes = search.codes[np.argmax(search.values)]
    best[space.reals] = on_grid(best[space.reals])
    return best
