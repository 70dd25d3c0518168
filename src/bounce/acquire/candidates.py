"""Candidates: unseen points of a neighbourhood, and what is known about their acquisition.

The invariant: candidates lie in the neighbourhood, or in the smallest wider one that holds an unseen point.

Shapes: z (m, d) latent codes; cross (m, n) covariances with n data.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.improvement import Acquisition
from bounce.acquire.neighbourhood import Neighbourhood, around, ball, ball_size, moved_reals, sample, wider
from bounce.acquire.rules import Rules
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.spaces.kinds import Codes
from bounce.subspace.embedding import Embedding

FEWEST, MOST, PER_BIN = 2000, 5000, 200  # candidates: min(5000, max(2000, 200·d)) (paper, appendix)
RAW_SAMPLES = 512  # where all bins are real (paper, appendix); in a mixed space, as many that keep the other bins
LISTED = 100_000  # a target space of at most this many points is listed when sampling finds no unseen point
SCARCE = 0.1  # the share of allowed candidates below which walks from the centre yield more of them
WALKS = 256  # of these walks
TRIES = 8  # sets drawn before a neighbourhood counts as empty
CHUNK = 64  # points whose keys are made at once
AT_ONCE = 128  # candidates whose acquisition is brought up to date together


@dataclass(frozen=True, eq=False)
class Seen:
    """The points of an embedding that must not be proposed: by their keys in the input space, or by its structure."""

    embedding: Embedding
    known: Container[bytes]
    taken: set[bytes] = field(default_factory=set)

    @cached_property
    def rules(self) -> Rules | None:
        """What the structure of the space asks of points; None if it has none."""
        return Rules.of(self.embedding)

    def within(self, embedding: Embedding) -> Seen:
        """Return the same points, as seen from another embedding."""
        return replace(self, embedding=embedding)

    def keys(self, z: Codes) -> list[bytes]:
        """Return one key per latent point: equal exactly where the input points are equal."""
        return self.embedding.inputs.keys(self.embedding.up(z))

    def unseen(self) -> Codes:
        """Return all unseen points of the target space, or none where they cannot be listed."""
        points = self.embedding.points(LISTED)
        points = np.empty((0, len(self.embedding.members))) if points is None else points
        if self.rules is not None:
            points = self.rules.canonical(points)
        return points[self.fresh(points)]

    def take(self, z: Codes) -> None:
        """Add the points of a batch as they are chosen."""
        self.taken.update(self.keys(z))

    def fresh(self, z: Codes) -> NDArray[np.bool_]:
        """Return which points may be proposed: unseen ones, and such as the structure allows."""
        unseen = np.array([key not in self.known and key not in self.taken for key in self.keys(z)], dtype=bool)
        if self.rules is not None:
            rows = np.flatnonzero(unseen)
            rows = rows[self.rules.allowed(z[rows], exact=False)]
            unseen[:] = False
            unseen[rows] = self.rules.allowed(z[rows])
        return unseen

    def first_fresh(self, z: Codes, n: int, order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the first n unseen and different rows, in some order, without looking further than needed."""
        order = np.arange(len(z)) if order is None else order
        rows: list[int] = []
        found: set[bytes] = set()
        for start in range(0, len(order), CHUNK):
            part = order[start : start + CHUNK]
            if self.rules is not None:
                part = part[self.rules.allowed(z[part], exact=False)]
            for i, key in zip(part.tolist(), self.keys(z[part]), strict=True):
                if key not in self.known and key not in self.taken and key not in found:
                    if self.rules is not None and not self.rules.allowed(z[i : i + 1])[0]:
                        continue
                    found.add(key)
                    rows.append(i)
                    if len(rows) == n:
                        return np.array(rows, dtype=np.intp)
        return np.array(rows, dtype=np.intp)


class Candidates:
    """The candidates of one ask, with what is known about their acquisition.

    A variance is costly, so it is computed only where it matters. A variance that takes only a few observations into
    account is too large, which makes the acquisition an upper bound. A further fixed point lowers the acquisition on
    average. So values are bounds until they are computed, and only candidates whose bound reaches the best are.
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
        return acquisition.gp.kernel(Points(z), acquisition.gp.points[: len(acquisition.beta)])

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
            beside = gp.kernel(Points(self.z[block]), gp.points[n_data:])
            whitened = gp.whitened(np.concatenate([self._cross[block], beside], axis=1))
            values = acquisition.of_whitened(whitened, partial(self.z.__getitem__, block))
            self.values[block] = values
            best = np.sort(np.concatenate([best, values]))[-len(best) :]
            done += len(block)
        looked_at = order[:done]
        return np.concatenate([looked_at[np.argsort(-self.values[looked_at], kind="stable")], order[done:]])


def _drawn(region: Neighbourhood, seen: Seen, *, rng: np.random.Generator) -> tuple[Codes, bool]:
    """Return candidates with an unseen one among them, and whether they are the whole region; or none."""
    space = region.space
    n = min(MOST, max(FEWEST, PER_BIN * len(space)))
    rules = seen.rules
    if not len(space.reals) and ball_size(region) <= n:
        z = ball(region) if rules is None else rules.canonical(ball(region))
        return z[seen.fresh(z)], True
    for _ in range(TRIES):
        z = sample(region, n if len(space.combinatorial) else RAW_SAMPLES, rng=rng)
        if len(space.combinatorial):
            z = np.concatenate([z, around(region, n, rng=rng)])
            if len(space.reals) and region.method.real_moves:
                z = np.concatenate([z, moved_reals(region, RAW_SAMPLES, rng=rng)])
        if rules is not None:
            z = _proper(z, region, rules, rng=rng)
        if len(seen.first_fresh(z, 1)):
            return z, False
    return z[:0], False


def _proper(z: Codes, region: Neighbourhood, rules: Rules, *, rng: np.random.Generator) -> Codes:
    """Return candidates that the structure allows: some with other composites, and moves of several variables."""
    if len(region.asleep):
        z[:, region.asleep] = region.space.sample(len(z), rng=rng)[:, region.asleep]
    varied = rules.varied(z, region.centre, rng=rng) if rules.structure.composites else z[:0]
    found = rules.proper(np.concatenate([z, varied, rules.moves(region.centre, rng=rng)]))
    if rules.structure.constraints and len(found) < SCARCE * len(z):
        found = np.concatenate([found, rules.wandered(region, WALKS, rng=rng)])
    return found[region.distance(found) <= region.changes][: len(z)]


def candidates_of(
    acquisition: Acquisition, region: Neighbourhood, seen: Seen, *, rng: np.random.Generator
) -> tuple[Neighbourhood, Candidates | None]:
    """Return candidates of the region, or of the smallest wider one with an unseen point (notes, decision 9)."""
    larger: Neighbourhood | None = region
    while larger is not None:
        region = larger
        z, complete = _drawn(region, seen, rng=rng)
        if len(z):
            return region, Candidates(acquisition, z, complete=complete)
        larger = wider(region)
    z = seen.unseen()
    if not len(z) and seen.rules is not None:
        z = seen.rules.drawn(np.tile(region.centre, (RAW_SAMPLES, 1)), rng=rng)
        z = z[seen.first_fresh(z, len(z))]
    return region, Candidates(acquisition, z, complete=True) if len(z) else None
