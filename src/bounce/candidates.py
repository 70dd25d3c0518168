"""Candidates: unseen points of a region, and what is known of their acquisition.

The invariant: candidates lie in the region, or in the smallest wider one that holds an unseen point.

Shapes: z (m, d) latent codes; cross (m, n) covariances with n data.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bounce.acquisition import Acquisition
from bounce.linalg import Array
from bounce.parameters import Codes
from bounce.region import Region, around, ball, ball_size, moved_reals, sample, wider

FEWEST, MOST, PER_BIN = 2000, 5000, 200  # candidates: min(5000, max(2000, 200·d))
RAW_SAMPLES = 512  # where all bins are real; in a mixed space, as many that leave the other bins as they are
TRIES = 8  # pools drawn before a region counts as empty
CHUNK = 64  # points whose keys are made at once
AT_ONCE = 128  # candidates whose acquisition is brought up to date together

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

    def first_fresh(self, z: Codes, n: int, order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the first n unseen and different rows, in some order, without looking further than needed."""
        order = np.arange(len(z)) if order is None else order
        rows: list[int] = []
        found: set[bytes] = set()
        for start in range(0, len(order), CHUNK):
            part = order[start : start + CHUNK]
            for i, key in zip(part.tolist(), self.keys(z[part]), strict=True):
                if key not in self.known and key not in self.taken and key not in found:
                    found.add(key)
                    rows.append(i)
                    if len(rows) == n:
                        return np.array(rows, dtype=np.intp)
        return np.array(rows, dtype=np.intp)


class Pool:
    """Candidates of one ask, with what is known of their acquisition.

    A variance is costly, so it is taken only where it matters: with one that knows of a few observations only, a
    candidate is worth at least as much, and a further fixed point can only lower what it is worth. So values are
    upper bounds until they are looked at, and only candidates whose bound reaches the best are.
    """

    def __init__(self, acquisition: Acquisition, z: Codes, *, complete: bool) -> None:
        self.complete = complete
        """Whether these are all unseen points of the region, so that no search is needed."""
        self.z = z
        self._cross = self._with_data(acquisition, z)
        self._screen = acquisition.screen()  # of the data alone: the same for all points of a batch
        self.forget(acquisition)

    @staticmethod
    def _with_data(acquisition: Acquisition, z: Codes) -> Array:
        return acquisition.gp.kernel(z, acquisition.gp.z[: len(acquisition.beta)])

    def forget(self, acquisition: Acquisition) -> None:
        """Begin with the bounds again, where what is to be improved upon has changed."""
        self.values = acquisition.bound(self._cross, self._screen)

    def add(self, acquisition: Acquisition, z: Codes) -> None:
        """Take in more candidates, found on the way, instead of the least valuable ones."""
        z = z[: len(self.z)]
        least = np.argpartition(self.values, len(z) - 1)[: len(z)]
        self.z[least], self._cross[least] = z, self._with_data(acquisition, z)
        self.values[least] = acquisition.bound(self._cross[least], self._screen)

    def best(self, acquisition: Acquisition, n: int) -> NDArray[np.intp]:
        """Return candidates in descending order of value, right for the first n at least."""
        gp, n_data = acquisition.gp, len(acquisition.beta)
        order = np.argsort(-self.values, kind="stable")
        best = np.full(min(n, len(order)), -np.inf)
        done = 0
        while done < len(order) and self.values[order[done]] >= best[0]:
            block = order[done : done + AT_ONCE]
            beside = gp.kernel(self.z[block], gp.z[n_data:])
            values = acquisition.of_whitened(gp.whitened(np.concatenate([self._cross[block], beside], axis=1)))
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
    acquisition: Acquisition,
    region: Region,
    seen: Seen,
    everything: Callable[[], Codes],
    *,
    rng: np.random.Generator,
) -> tuple[Region, Pool | None]:
    """Return candidates of the region, or of the smallest wider one with an unseen point (notes, decision 9)."""
    larger: Region | None = region
    while larger is not None:
        region = larger
        z, complete = _candidates(region, seen, rng=rng)
        if len(z):
            return region, Pool(acquisition, z, complete=complete)
        larger = wider(region)
    z = everything()
    z = z[seen.fresh(z)]
    return region, Pool(acquisition, z, complete=True) if len(z) else None
