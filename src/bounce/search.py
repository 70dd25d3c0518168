"""Maximise an acquisition inside a region of the latent space.

The steps are those of the appendix "Optimization of the acquisition function". One function, `propose`, chooses
a batch greedily. For each point: a pool of candidates (sampled around the centre, or all unseen points where they
are few), the best of them as starts, then local search over the combinatorial bins, L-BFGS over the reals, or both
in turn. All starts advance together as one array.

The invariant: whatever is proposed is unseen, and lies in the region, or in the smallest wider one that holds an
unseen point.

Shapes: z (n, d) latent codes; centre (d,); box (2, n_cont).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bounce.acquisition import SAMPLES, Acquisition, deviation
from bounce.linalg import Array, product, solve_lower
from bounce.parameters import Codes, Kind, on_grid
from bounce.space import Space
from bounce.surrogate import GP

FEWEST, MOST, PER_BIN = 2000, 5000, 200  # candidates: min(5000, max(2000, 200·d))
COMB_STARTS = 20
RAW_SAMPLES, CONT_STARTS = 512, 10
ROUNDS = 5  # interleaved steps of a mixed search
CONT_ITERATIONS = 50
# A further point of a batch starts from what the points before it found, so fewer and shorter searches do.
NEXT_COMB_STARTS, NEXT_CONT_STARTS, NEXT_CONT_ITERATIONS = 3, 2, 20
BLOCK = 2**21  # entries of a matrix computed at once
AT_ONCE = 256  # candidates whose acquisition is brought up to date together
MOVES = 2**14  # neighbours looked at per start and step; beyond it, a random part of them
TRIES = 8  # pools drawn before a region counts as empty
SPARSE = 8  # a region that changes at most one bin in so many is sampled with replacement
CHUNK = 64  # points whose keys are made at once

Keys = Callable[[Codes], list[bytes]]


@dataclass(frozen=True, eq=False)
class Region:
    """Where proposals may lie: at most `radius` changed bins, and reals inside `box`."""

    space: Space
    centre: Codes
    radius: int
    box: Array

    def distance(self, z: Codes) -> NDArray[np.intp]:
        """Return how many combinatorial bins differ from the centre."""
        comb = self.space.combinatorial
        return np.asarray(np.count_nonzero(z[:, comb] != self.centre[comb], axis=1))


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


@dataclass(frozen=True)
class Proposal:
    """A chosen point and the log of the improvement expected of it."""

    z: Codes
    value: float


def ball_size(region: Region) -> int:
    """Return how many combinatorial codes lie in a region."""
    counts = [1] + [0] * region.radius  # points at each distance so far
    for c in region.space.cardinalities[region.space.combinatorial].tolist():
        for r in range(region.radius, 0, -1):
            counts[r] += counts[r - 1] * (c - 1)
    return sum(counts)


def _ball(region: Region) -> Codes:
    """Return every combinatorial code of a small region, with the centre's reals."""
    comb = region.space.combinatorial
    cards = region.space.cardinalities
    rows = [region.centre]
    for r in range(1, region.radius + 1):
        for columns in itertools.combinations(comb.tolist(), r):
            others = [[c for c in range(cards[j]) if c != region.centre[j]] for j in columns]
            for codes in itertools.product(*others):
                row = region.centre.copy()
                row[list(columns)] = codes
                rows.append(row)
    return np.array(rows)


def _sample(region: Region, n: int, *, rng: np.random.Generator) -> Codes:
    """Draw points: `radius` bins at random take random codes, the reals are uniform in the box."""
    comb, reals = region.space.combinatorial, region.space.reals
    z = np.tile(region.centre, (n, 1))
    if len(comb) > SPARSE * region.radius:
        # Few of many: drawing with replacement is cheap, and now and then changes a bin or two fewer.
        columns = comb[rng.integers(0, len(comb), (n, region.radius))]
        codes = rng.integers(0, region.space.cardinalities[columns])
        z[np.arange(n)[:, None], columns] = codes
    elif len(comb):
        codes = rng.integers(0, region.space.cardinalities[comb], (n, len(comb))).astype(np.float64)
        if region.radius < len(comb):
            drawn = np.tile(np.arange(len(comb)) < region.radius, (n, 1))
            codes = np.where(rng.permuted(drawn, axis=1, out=drawn), codes, region.centre[comb])
        z[:, comb] = codes
    if len(reals):
        low, high = region.box
        z[:, reals] = on_grid(low + rng.random((n, len(reals))) * (high - low))
    return z


def neighbours(space: Space, z: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return all moves (row, column, new code) that change one combinatorial bin of one row.

    A binary flips, a category becomes any other, an ordinal goes one step up or down.
    """
    binary, ordinal, categorical = (space.of_kind(k) for k in (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL))
    n = len(z)
    rows, columns, codes = [], [], []

    def add(row: NDArray[np.intp], column: NDArray[np.intp], code: Array, keep: NDArray[np.bool_]) -> None:
        rows.append(row[keep])
        columns.append(column[keep])
        codes.append(code[keep])

    row, column = np.repeat(np.arange(n), len(binary)), np.tile(binary, n)
    add(row, column, 1.0 - z[row, column], np.ones(len(row), dtype=bool))
    row, column = np.repeat(np.arange(n), len(ordinal)), np.tile(ordinal, n)
    for step in (-1.0, 1.0):
        code = z[row, column] + step
        add(row, column, code, (code >= 0) & (code < space.cardinalities[column]))
    cards = space.cardinalities[categorical]
    each_column = np.repeat(categorical, cards)
    each_code = np.concatenate([np.arange(c) for c in cards], dtype=np.float64) if len(cards) else np.empty(0)
    row, column, code = (
        np.repeat(np.arange(n), len(each_column)),
        np.tile(each_column, n),
        np.tile(each_code, n),
    )
    add(row, column, code, code != z[row, column])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(codes)


def _local_search(
    acquisition: Acquisition, region: Region, z: Codes, values: Array, seen: Seen, *, rng: np.random.Generator
) -> tuple[Codes, Array]:
    """Climb from every row to its best unseen neighbour until none is better; reals stay as they are."""
    gp = acquisition.gp
    kernel, space = gp.kernel, region.space
    z, values = z.copy(), values.copy()
    cont = _cont_kernel(acquisition, z)
    d2 = kernel.metric(z, gp.z)
    distance = region.distance(z)
    active = np.arange(len(z))
    while len(active):
        row, column, code = neighbours(space, z[active])
        row = active[row]
        changed = z[row, column] != region.centre[column]
        inside = distance[row] - changed + (code != region.centre[column]) <= region.radius
        row, column, code = row[inside], column[inside], code[inside]
        if len(row) > MOVES * len(active):
            part = np.sort(rng.choice(len(row), MOVES * len(active), replace=False))
            row, column, code = row[part], column[part], code[part]
        gains = np.empty(len(row))
        for block in _blocks(len(row), len(gp.z)):
            old = z[row[block], column[block]]
            moved = kernel.metric.moved(d2[row[block]], column[block], old, code[block], gp.z)
            cross = kernel.mix(kernel.comb(moved), None if cont is None else cont[row[block]])
            gains[block] = acquisition.of_whitened(gp.whitened(cross))
        still = _step(z, values, active, row, column, code, gains, seen)
        active = _first_of_each(z, still)
        if len(active):
            d2[active] = kernel.metric(z[active], gp.z)
            distance[active] = region.distance(z[active])
    return z, values


def _step(
    z: Codes,
    values: Array,
    active: NDArray[np.intp],
    row: NDArray[np.intp],
    column: NDArray[np.intp],
    code: Array,
    gains: Array,
    seen: Seen,
) -> NDArray[np.intp]:
    """Move active rows, in place, to their best unseen neighbours where these are better; return which moved."""
    moved = [np.empty(0, dtype=np.intp)]
    waiting = active
    while len(waiting):
        # The best move of each row: the last one in ascending order of gain.
        order = np.argsort(gains, kind="stable")
        best = np.full(len(z), -1)
        best[row[order]] = order
        waiting = waiting[best[waiting] >= 0]
        waiting = waiting[gains[best[waiting]] > values[waiting]]
        moves = best[waiting]
        targets = z[waiting]
        targets[np.arange(len(waiting)), column[moves]] = code[moves]
        fresh = seen.fresh(targets)
        z[waiting[fresh]], values[waiting[fresh]] = targets[fresh], gains[moves[fresh]]
        moved.append(waiting[fresh])
        gains[moves] = -np.inf
        waiting = waiting[~fresh]
    return np.sort(np.concatenate(moved))


def _first_of_each(z: Codes, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Drop rows whose point another row already stands on."""
    if len(rows) < 2:
        return rows
    return rows[np.sort(np.unique(z[rows], axis=0, return_index=True)[1])]


def _cont_kernel(acquisition: Acquisition, z: Codes) -> Array | None:
    """Return k_r between rows and the GP's points, which stays fixed while bins change."""
    kernel = acquisition.gp.kernel
    return kernel.cont(z, acquisition.gp.z) if len(kernel.space.reals) else None


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _climb_reals(
    acquisition: Acquisition, region: Region, z: Codes, values: Array, iterations: int
) -> tuple[Codes, Array]:
    """Move the reals of all rows uphill together by L-BFGS inside the box; bins stay as they are."""
    from scipy.optimize import minimize  # slow to import, so not before the first search

    reals = region.space.reals
    shape = (len(z), len(reals))
    low, high = region.box

    def loss(flat: Array) -> tuple[float, Array]:
        moved = z.copy()
        moved[:, reals] = flat.reshape(shape)
        value, gradient = acquisition.with_gradient(moved)
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


class _Pool:
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
        keep = np.argsort(-self.values, kind="stable")[: len(self.values) - len(z)]
        fresh = np.argsort(-self.values, kind="stable")[len(keep) :]
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

    def best(self, acquisition: Acquisition, n: int) -> NDArray[np.intp]:
        """Return candidates in descending order of value, right for the first n at least."""
        gp, n_data = acquisition.gp, len(acquisition.beta)
        self._extend(gp)
        if self._mean is None:
            self._mean = np.einsum("n,nm->m", acquisition.beta, self._v[:n_data])
        order = np.argsort(-self.values, kind="stable")
        best = np.full(min(n, len(order)), -np.inf)
        for block in (order[i : i + AT_ONCE] for i in range(0, len(order), AT_ONCE)):
            if self.values[block[0]] < best[0]:
                break
            fixed = self._v[n_data : self._known, block]
            mean = self._mean[block, None] + product(fixed.T, acquisition.epsilon)
            values = acquisition.of_moments(mean, deviation(self._variance[block], gp.kernel.prior))
            self.values[block] = values
            best = np.sort(np.concatenate([best, values]))[-len(best) :]
        return np.argsort(-self.values, kind="stable")


def _candidates(region: Region, seen: Seen, *, rng: np.random.Generator) -> tuple[Codes, bool]:
    """Return candidates with an unseen one among them, and whether they are the whole region; or none."""
    space = region.space
    n = min(MOST, max(FEWEST, PER_BIN * len(space)))
    if not len(space.reals) and ball_size(region) <= n:
        z = _ball(region)
        return z[seen.fresh(z)], True
    for _ in range(TRIES):
        z = _sample(region, n if len(space.combinatorial) else RAW_SAMPLES, rng=rng)
        if len(space.combinatorial):
            z = np.concatenate([z, _around(region, n, rng=rng)])
        if len(seen.first_fresh(z, 1)):
            return z, False
    return z[:0], False


def _around(region: Region, most: int, *, rng: np.random.Generator) -> Codes:
    """Return the neighbours of the centre, or a random part of them if they are many."""
    _, column, code = neighbours(region.space, region.centre[None])
    if len(column) > most:
        part = np.sort(rng.choice(len(column), most, replace=False))
        column, code = column[part], code[part]
    z = np.tile(region.centre, (len(column), 1))
    z[np.arange(len(column)), column] = code
    return z


def _wider(region: Region) -> Region | None:
    """Return the next larger region, first by one more bin, then by a box twice as wide; None at the end."""
    if region.radius < len(region.space.combinatorial):
        return replace(region, radius=region.radius + 1)
    low, high = region.box
    if (low <= 0.0).all() and (high >= 1.0).all():
        return None
    return replace(region, box=np.clip([low - 0.5 * (high - low), high + 0.5 * (high - low)], 0.0, 1.0))


def _pool(
    gp: GP,
    region: Region,
    seen: Seen,
    everything: Callable[[], Codes],
    most_fixed: int,
    *,
    rng: np.random.Generator,
) -> tuple[Region, _Pool | None]:
    """Return candidates of the region, or of the smallest wider one with an unseen point (notes, decision 9)."""
    wider: Region | None = region
    while wider is not None:
        region = wider
        z, complete = _candidates(region, seen, rng=rng)
        if len(z):
            return region, _Pool(gp, z, complete=complete, most_fixed=most_fixed)
        wider = _wider(region)
    z = everything()
    z = z[seen.fresh(z)]
    return region, _Pool(gp, z, complete=True, most_fixed=most_fixed) if len(z) else None


def _search(
    acquisition: Acquisition,
    region: Region,
    z: Codes,
    values: Array,
    seen: Seen,
    iterations: int,
    *,
    rng: np.random.Generator,
) -> tuple[Codes, Array]:
    """Improve the starts: bins by local search, reals by gradients, both in turn where there are both."""
    comb, reals = len(region.space.combinatorial), len(region.space.reals)
    for _ in range(ROUNDS if comb and reals else 1):
        before = float(values.max())
        if reals:
            moved, gained = _climb_reals(acquisition, region, z, values, iterations)
            free = seen.fresh(moved)
            z, values = np.where(free[:, None], moved, z), np.where(free, gained, values)
        if comb:
            z, values = _local_search(acquisition, region, z, values, seen, rng=rng)
            z, values = _distinct(z, values)
        if float(values.max()) <= before + 1e-6:
            break
    return z, values


def _distinct(z: Codes, values: Array) -> tuple[Codes, Array]:
    rows = _first_of_each(z, np.arange(len(z)))
    return z[rows], values[rows]


def _normals(p: int, *, rng: np.random.Generator) -> Array:
    """Return standard normals (p, S), quasi-random over the samples."""
    if p <= 0:
        return np.empty((0, SAMPLES))
    from scipy.stats import qmc  # slow to import, and of no use to one point at a time

    # A generator of its own: Sobol spawns from what it is given, which a generator's state does not record.
    own = np.random.default_rng(int(rng.integers(2**63)))
    uniform = qmc.Sobol(p, scramble=True, rng=own).random_base2(int(math.log2(SAMPLES)))
    return np.asarray(ndtri(np.clip(uniform, 1e-9, 1.0 - 1e-9)).T)


def propose(
    gp: GP,
    y: Array,
    pending: Codes,
    region: Region,
    n: int,
    seen: Seen,
    everything: Callable[[], Codes],
    *,
    rng: np.random.Generator,
) -> list[Proposal]:
    """Choose up to n unseen points greedily; fewer, or none, where the target space runs out of them.

    `everything` lists all points of the target space if they can be listed, and is called only in need.
    """
    chosen: list[Proposal] = []
    fixed = pending
    most_fixed = len(pending) + n - 1
    normals = _normals(most_fixed, rng=rng)
    pool: _Pool | None = None
    combinatorial = bool(len(region.space.combinatorial))
    starts, iterations = COMB_STARTS if combinatorial else CONT_STARTS, CONT_ITERATIONS
    while len(chosen) < n:
        acquisition = Acquisition.of(gp, y, fixed, normals)
        if pool is None:
            region, pool = _pool(gp, region, seen, everything, most_fixed, rng=rng)
            if pool is None:
                break
        order = pool.best(acquisition, starts)
        order = order[seen.first_fresh(pool.z[order], 1 if pool.complete else starts)]
        if not len(order):
            pool = None  # every candidate is taken: draw again
            continue
        z, values = pool.z[order], pool.values[order]
        if not pool.complete:
            z, values = _search(acquisition, region, z, values, seen, iterations, rng=rng)
            if len(chosen) + 1 < n:
                pool.add(acquisition.gp, z)
        best = int(values.argmax())
        chosen.append(Proposal(z[best], float(values[best])))
        fixed = np.concatenate([fixed, z[best : best + 1]])
        seen.take(z[best : best + 1])
        starts = NEXT_COMB_STARTS if combinatorial else NEXT_CONT_STARTS
        iterations = NEXT_CONT_ITERATIONS
    return chosen
