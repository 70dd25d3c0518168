"""Candidates: unseen points of a region, and what is known of their acquisition.

The invariant: candidates lie in the region, or in the smallest wider one that holds an unseen point.

Shapes: z (m, d) latent codes; v (n + p, m) whitened cross-covariances with n data and p fixed points.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bounce.acquisition import Acquisition, deviation
from bounce.linalg import Array, product, solve_lower
from bounce.parameters import Codes
from bounce.region import Region, around, ball, ball_size, moved_reals, sample, wider
from bounce.surrogate import GP

FEWEST, MOST, PER_BIN = 2000, 5000, 200  # candidates: min(5000, max(2000, 200·d))
RAW_SAMPLES = 512  # where all bins are real; in a mixed space, as many that leave the other bins as they are
TRIES = 8  # pools drawn before a region counts as empty
CHUNK = 64  # points whose keys are made at once
AT_ONCE = 256  # candidates whose acquisition is brought up to date together

Keys = Callable[[Codes], list[bytes]]


@dataclass(eq=False)
class Seen:
    """The points that must not be proposed, by their keys in the input space."""

    keys: Keys
    known: Container[bytes]
    taken: set[bytes] = field(default_factory=set)

    def take(self, z: Codes) -> None:
        """Add the points of a batch as they are chosen."""
        self.taken.update(self.keys(z))

    def fresh(self, z: Codes) -> NDArray[np.bool_]:
        """Say which points are unseen."""
        return np.array([key not in self.known and key not in self.taken for key in self.keys(z)], dtype=bool)

    def first_fresh(self, z: Codes, n: int) -> NDArray[np.intp]:
        """Return the first n unseen and different rows, without looking further than needed."""
        rows: list[int] = []
        found: set[bytes] = set()
        for start in range(0, len(z), CHUNK):
            for i, key in enumerate(self.keys(z[start : start + CHUNK]), start):
                if key not in self.known and key not in self.taken and key not in found:
                    found.add(key)
                    rows.append(i)
                    if len(rows) == n:
                        return np.array(rows, dtype=np.intp)
        return np.array(rows, dtype=np.intp)


class Pool:
    """Candidates of one ask, with what is known of their acquisition.

    A further fixed point adds one row to the whitened cross-covariances v, from which means and variances follow.
    Since it can only lower what a candidate is worth, values from before are upper bounds: only candidates whose
    bound reaches the best are looked at again.
    """

    def __init__(self, gp: GP, z: Codes, *, complete: bool, most_fixed: int) -> None:
        self.complete = complete
        """Whether these are all unseen points of the region, so that no search is needed."""
        self._reserve = most_fixed
        self._fill(gp, z)

    def _fill(self, gp: GP, z: Codes) -> None:
        self.z, self._known = z, len(gp.z)
        self._v = np.empty((len(gp.z) + self._reserve, len(z)))
        self._v[: self._known] = gp.whitened(gp.kernel(z, gp.z))
        v = self._v[: self._known]
        self._variance = gp.kernel.prior - np.einsum("nm,nm->m", v, v)
        self._mean: Array | None = None
        self.values = np.full(len(z), np.inf)

    def add(self, gp: GP, z: Codes) -> None:
        """Take in more candidates, found on the way, instead of the least valuable ones."""
        self.z = self.z.copy()
        least = np.argsort(self.values, kind="stable")
        fresh = least[: len(z)]
        self.z[fresh] = z[: len(fresh)]
        self._v[: self._known, fresh] = gp.whitened(gp.kernel(self.z[fresh], gp.z))
        columns = self._v[: self._known, fresh]
        self._variance[fresh] = gp.kernel.prior - np.einsum("nm,nm->m", columns, columns)
        self._mean = None
        self.values[fresh] = np.inf

    def _extend(self, gp: GP) -> None:
        """Add the rows of points that were fixed since."""
        known, n = self._known, len(gp.z)
        if known < n:
            cross = gp.kernel(self.z, gp.z[known:]).T - product(gp.factor[known:, :known], self._v[:known])
            self._v[known:n] = solve_lower(np.asfortranarray(gp.factor[known:, known:]), cross)
            self._variance -= np.einsum("nm,nm->m", self._v[known:n], self._v[known:n])
            self._known = n

    def forget(self) -> None:
        """Drop all values, where what is to be improved upon has changed."""
        self.values = np.full(len(self.z), np.inf)

    def best(self, acquisition: Acquisition, n: int) -> NDArray[np.intp]:
        """Return candidates in descending order of value, right for the first n at least."""
        gp, n_data = acquisition.gp, len(acquisition.beta)
        self._extend(gp)
        if self._mean is None:
            self._mean = np.einsum("n,nm->m", acquisition.beta, self._v[:n_data])
        order = np.argsort(-self.values, kind="stable")
        best = np.full(min(n, len(order)), -np.inf)
        done = 0
        while done < len(order) and self.values[order[done]] >= best[0]:
            block = order[done : done + AT_ONCE]
            fixed = self._v[n_data : self._known, block]
            mean = self._mean[block, None] + product(fixed.T, acquisition.epsilon)
            values = acquisition.of_moments(mean, deviation(self._variance[block], gp.kernel.prior))
            self.values[block] = values
            best = np.sort(np.concatenate([best, values]))[-len(best) :]
            done += len(block)
        looked_at = order[:done]
        return np.concatenate([looked_at[np.argsort(-self.values[looked_at], kind="stable")], order[done:]])


def _candidates(region: Region, seen: Seen, *, rng: np.random.Generator) -> tuple[Codes, bool]:
    """Return candidates with an unseen one among them, and whether they are the whole region; or none."""
    space = region.space
    n = min(MOST, max(FEWEST, PER_BIN * len(space)))
    if not len(space.reals) and ball_size(region) <= n:
        z = ball(region)
        return z[seen.fresh(z)], True
    for _ in range(TRIES):
        z = sample(region, n if len(space.combinatorial) else RAW_SAMPLES, rng=rng)
        if len(space.combinatorial):
            z = np.concatenate([z, around(region, n, rng=rng)])
            if len(space.reals):
                z = np.concatenate([z, moved_reals(region, RAW_SAMPLES, rng=rng)])
        if len(seen.first_fresh(z, 1)):
            return z, False
    return z[:0], False


def pool_of(
    gp: GP,
    region: Region,
    seen: Seen,
    everything: Callable[[], Codes],
    most_fixed: int,
    *,
    rng: np.random.Generator,
) -> tuple[Region, Pool | None]:
    """Return candidates of the region, or of the smallest wider one with an unseen point (notes, decision 9)."""
    larger: Region | None = region
    while larger is not None:
        region = larger
        z, complete = _candidates(region, seen, rng=rng)
        if len(z):
            return region, Pool(gp, z, complete=complete, most_fixed=most_fixed)
        larger = wider(region)
    z = everything()
    z = z[seen.fresh(z)]
    return region, Pool(gp, z, complete=True, most_fixed=most_fixed) if len(z) else None
