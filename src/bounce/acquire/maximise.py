"""Maximise the acquisition in a neighbourhood of the latent space.

The steps are those of the appendix "Optimization of the acquisition function". One function, `propose`, chooses
a batch greedily. For each point: candidates (drawn around the centre, or all unseen points where they are few), the
best of them as starts, then local search over the combinatorial bins, L-BFGS over the reals, or both in turn. All
starts advance together as one array.

The invariant: whatever is proposed is unseen, and lies in the neighbourhood, or in the smallest wider one that holds an
unseen point. A point that doubts the model (`Method.doubt`), or gives another value of a choice a turn
(`Method.auditions`), is unseen too, but may lie anywhere.

Shapes: z (n, d) latent codes; centre (d,); box (2, n_real).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bounce.acquire.audition import auditioned
from bounce.acquire.candidates import Candidates, Seen, candidates_of
from bounce.acquire.doubt import PATIENCE, doubted
from bounce.acquire.feasibility import Constrained, Limits
from bounce.acquire.improvement import SAMPLES, Acquisition
from bounce.acquire.local_search import CONTENDERS, contenders, first_of_each, local_search
from bounce.acquire.neighbourhood import Neighbourhood, around, neighbours
from bounce.acquire.rules import Rules
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes, on_grid

STARTS, REAL_STARTS = 20, 10  # with and without combinatorial bins (paper, appendix)
ROUNDS = 5  # interleaved steps of a mixed search (paper, appendix)
REAL_ITERATIONS = 50  # of L-BFGS: enough to converge on the paper's continuous problems
MIXED_ITERATIONS = 20  # of L-BFGS in each round of a mixed search, which later rounds continue (`Method.search`)
SCAN = 2**20  # covariances in the first step of all local searches; where one needs many, fewer begin (`Method.search`)
# A further point of a batch starts beside what the points before it found, so one short search does (`Method.batches`).
NEXT_MOVES = 200  # neighbours of a chosen point that become candidates for the next
NEXT_STARTS, NEXT_REAL_STARTS, NEXT_ROUNDS = 1, 2, 1
NEXT_REAL_ITERATIONS, NEXT_MIXED_ITERATIONS = 20, 10
HOPELESS = -15.0  # a log EI below which the best value is assumed to be lucky noise (`Method.doubt_best`)
CONVERGED = 1e-6  # a round that gains less in log EI is the last one

Starts = tuple[Codes, Array]
"""Points (n, d) and their values (n,)."""


@dataclass(frozen=True, eq=False)
class Search:
    """One search for proposals: what is believed, where to look, and which points are taken."""

    gp: GP
    y: Array
    """The targets, with the prior mean subtracted."""
    region: Neighbourhood
    seen: Seen
    stalled: int = 0
    """How many trials there have been without progress."""
    asked: int | None = None
    """How many trials there have been; None where no other value gets a turn."""
    earned: int = 0
    """How often the doubting points among them have earned a larger tolerance."""
    limits: Limits | None = None
    """What is known about limits on outcomes, if there are any."""
    believes: bool = False
    """Whether to improve on the lowest posterior mean instead of the lowest value (`Method.incumbent`)."""

    @property
    def combinatorial(self) -> bool:
        """Whether there are combinatorial bins."""
        return bool(len(self.region.space.combinatorial))

    @property
    def caution(self) -> float:
        """What the standard deviations are multiplied by (`Method.caution`)."""
        return 1.0 if len(self.region.space.reals) else self.region.method.caution


@dataclass(frozen=True)
class Proposal:
    """A chosen point and the log of the improvement expected of it."""

    z: Codes
    value: float | None
    """None for a point that was chosen to test the model (`Method.doubt`, `Method.auditions`)."""


class Effort(NamedTuple):
    """How long to look for one point."""

    starts: int
    rounds: int
    iterations: int

    @classmethod
    def first(cls, search: Search) -> Effort:
        """Return the effort for a point that is chosen alone, or first in a batch."""
        if not search.combinatorial:
            return cls(REAL_STARTS, ROUNDS, REAL_ITERATIONS)
        if search.region.method.search == "full":
            return cls(STARTS, ROUNDS, REAL_ITERATIONS)
        moves = len(neighbours(search.region, search.region.centre[None])[0])
        starts = int(np.clip(SCAN // max(1, moves * len(search.gp.points)), CONTENDERS, STARTS))
        return cls(starts, ROUNDS, MIXED_ITERATIONS)

    def next(self, search: Search) -> Effort:
        """Return the effort for a further point of a batch."""
        if search.region.method.batches == "full":
            return self
        if search.combinatorial:
            return Effort(NEXT_STARTS, NEXT_ROUNDS, NEXT_MIXED_ITERATIONS)
        return Effort(NEXT_REAL_STARTS, NEXT_ROUNDS, NEXT_REAL_ITERATIONS)


def _move_reals(acquisition: Acquisition, region: Neighbourhood, starts: Starts, iterations: int) -> Starts:
    """Move the reals of all rows uphill together by L-BFGS inside the box; bins stay as they are."""
    from scipy.optimize import minimize  # slow to import, so not before the first search

    z, values = starts
    reals = region.space.reals
    shape = (len(z), len(reals))
    low, high = region.box
    kernel, points = acquisition.gp.kernel, acquisition.gp.points
    k_c = kernel.combinatorial(kernel.metric(Points(z), points)) if len(region.space.combinatorial) else None

    def loss(flat: Array) -> tuple[float, Array]:
        moved = z.copy()
        moved[:, reals] = flat.reshape(shape)
        value, gradient = acquisition.with_gradient(moved, k_c)
        return -float(value.sum()), -gradient.ravel()

    run = minimize(
        loss,
        z[:, reals].ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=np.tile(region.box, len(z)).T,
        options={"maxiter": iterations},
    )
    moved = z.copy()
    moved[:, reals] = on_grid(np.clip(np.asarray(run.x).reshape(shape), low, high))
    new = acquisition(moved)
    better = new > values
    return np.where(better[:, None], moved, z), np.where(better, new, values)


def _pulled_back(acquisition: Acquisition, rules: Rules, starts: Starts, moved: Codes) -> Starts:
    """Return the rows after a step of the reals, back where the structure allows them."""
    z, values = starts
    back = rules.canonical(rules.pulled_back(z, rules.canonical(moved)))
    gained = acquisition(back)
    better = gained > values
    return np.where(better[:, None], back, z), np.where(better, gained, values)


def _improved(
    acquisition: Acquisition, search: Search, starts: Starts, effort: Effort, *, rng: np.random.Generator
) -> Starts:
    """Improve the starts: bins by local search, reals by gradients, both in turn where there are both."""
    region, seen = search.region, search.seen
    z, values = starts
    for _ in range(effort.rounds if region.space.is_mixed else 1):
        before = float(values.max())
        if len(region.space.reals):
            moved, gained = _move_reals(acquisition, region, (z, values), effort.iterations)
            if seen.rules is not None:
                moved, gained = _pulled_back(acquisition, seen.rules, (z, values), moved)
            free = seen.fresh(moved)
            z, values = np.where(free[:, None], moved, z), np.where(free, gained, values)
        if search.combinatorial:
            z, values = local_search(acquisition, region, (z, values), seen, rng=rng)
        if float(values.max()) <= before + CONVERGED:
            break
        rows = contenders(region, values, first_of_each(z, np.arange(len(z))))
        z, values = z[rows], values[rows]
    return z, values


def _normals(p: int, *, rng: np.random.Generator) -> Array:
    """Return standard normals (p, S), quasi-random over the samples."""
    if p <= 0:
        return np.empty((0, SAMPLES))
    from scipy.stats import qmc  # slow to import, and not needed for one point at a time

    # A generator of its own: Sobol spawns from what it is given, which a generator's state does not record.
    own = np.random.default_rng(int(rng.integers(2**63)))
    uniform = qmc.Sobol(p, scramble=True, rng=own).random_base2(int(math.log2(SAMPLES)))
    return np.asarray(ndtri(np.clip(uniform, 1e-9, 1.0 - 1e-9)).T)


def _beside(region: Neighbourhood, z: Codes, rules: Rules | None = None, *, rng: np.random.Generator) -> Codes:
    """Return neighbours of a point of the region that lie in it too, with the same reals."""
    near = around(replace(region, centre=z), NEXT_MOVES, rng=rng)
    if rules is not None:
        near = rules.proper(np.concatenate([near, rules.moves(z, rng=rng)]))
    return near[region.distance(near) <= region.changes]


def propose(search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> list[Proposal]:
    """Choose up to n unseen points greedily; fewer, or none, where the target space runs out of them."""
    batch = _Batch(search, pending, n, rng=rng)
    while len(batch.chosen) < n and batch.choose():
        pass
    return batch.chosen


class _Batch:
    """A batch while it is chosen."""

    def __init__(self, search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> None:
        self.search, self.n, self.rng = search, n, rng
        self.chosen: list[Proposal] = []
        self.fixed = pending
        self.normals = _normals(len(pending) + n - 1, rng=rng)
        self.candidates: Candidates | None = None
        self.effort = Effort.first(search)
        self.y = search.y / search.caution  # in these units the standard deviations are the model's own
        if search.limits is not None:
            self.best = search.limits.best / search.caution
        else:
            self.best = search.gp.believed_best(self.y) if search.believes else float(self.y.min())

    def _acquisition(self) -> Acquisition:
        plain = Acquisition.of(self.search.gp, self.y, self.fixed, self.normals, self.best)
        return plain if self.search.limits is None else Constrained.beside(plain, self.search.limits, self.fixed)

    def choose(self) -> bool:
        """Choose one more point; False where there is none."""
        if self._tests():
            return True
        acquisition = self._acquisition()
        if self.candidates is None:
            region, self.candidates = candidates_of(acquisition, self.search.region, self.search.seen, rng=self.rng)
            self.search = replace(self.search, region=region)
            if self.candidates is None:
                return False
        candidates, starts = self.candidates, self.effort.starts
        order = candidates.best(acquisition, starts)
        method = self.search.region.method
        hopeless = not self.chosen and self.search.combinatorial and candidates.values[order[0]] < HOPELESS
        if hopeless and method.doubt_best and self.search.limits is None:
            # No candidate promises to beat the best value: assume that it was lucky noise, and beat the lowest mean.
            self.best = max(self.best, self.search.gp.believed_best(self.y))
            acquisition = self._acquisition()
            candidates.forget(acquisition)
            order = candidates.best(acquisition, starts)
        order = self.search.seen.first_fresh(candidates.z, 1 if candidates.complete else starts, order)
        if not len(order):
            self.candidates = None  # every candidate is taken: draw again
            return True
        self._take(acquisition, candidates, (candidates.z[order], candidates.values[order]))
        return True

    def _tests(self) -> bool:
        """Choose a point that tests the model, if it is time for one and there is an unseen one."""
        search, chosen = self.search, len(self.chosen)
        region, seen, method = search.region, search.seen, search.region.method
        stalled, every = search.stalled + chosen, method.auditions
        doubts = method.doubt is not None and stalled >= PATIENCE and stalled % method.doubt == 0
        auditions = False
        if every is not None and search.asked is not None and search.limits is None and seen.embedding.is_input:
            turns, rest = divmod(search.asked + chosen, every)
            auditions = rest == 0 and (turns % 2 == 1 or not doubts)  # if both are due, they take turns
        z = None
        if auditions:
            z = auditioned(search.gp, search.y, region, seen, self.fixed, rng=self.rng)
        if z is None and doubts:
            z = doubted(
                search.gp, search.y, region.space, region.centre, seen.rules, earned=search.earned, rng=self.rng
            )
        if z is None or not seen.fresh(z[None])[0]:
            return False
        if search.limits is not None and not search.limits.allow(z, region.centre):
            return False
        self.chosen.append(Proposal(z, None))
        self.fixed = self.fixed.joined(Points(z[None]))
        seen.take(z[None])
        return True

    def _take(self, acquisition: Acquisition, candidates: Candidates, starts: Starts) -> None:
        """Improve the starts, and take the best point that comes of it."""
        z, values = starts
        if not candidates.complete:
            z, values = _improved(acquisition, self.search, starts, self.effort, rng=self.rng)
        top = int(values.argmax())
        more = len(self.chosen) + 1 < self.n and not candidates.complete
        if more and self.search.region.method.batches == "beside":
            others = np.delete(z, top, axis=0)
            near = _beside(self.search.region, z[top], self.search.seen.rules, rng=self.rng)
            candidates.add(acquisition, np.concatenate([others, near]))
        self.chosen.append(Proposal(z[top], float(values[top]) + math.log(self.search.caution)))
        self.fixed = self.fixed.joined(Points(z[top : top + 1]))
        self.search.seen.take(z[top : top + 1])
        self.effort = self.effort.next(self.search)
