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

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from bounce.acquisition import SAMPLES, Acquisition
from bounce.candidates import Pool, Seen, pool_of
from bounce.climb import CONTENDERS, best_half, climb, first_of_each
from bounce.linalg import Array
from bounce.parameters import Codes, on_grid
from bounce.region import Region, around, neighbours
from bounce.surrogate import GP

COMB_STARTS = 20
CONT_STARTS = 10
ROUNDS = 5  # interleaved steps of a mixed search
CONT_ITERATIONS, MIXED_ITERATIONS = 50, 20  # of L-BFGS, the latter in each round
# A further point of a batch starts beside what the points before it found, so one short search does.
NEXT_MOVES = 200  # neighbours of a chosen point that become candidates for the next
NEXT_COMB_STARTS, NEXT_CONT_STARTS, NEXT_ROUNDS = 1, 2, 1
NEXT_CONT_ITERATIONS, NEXT_MIXED_ITERATIONS = 20, 10
SCAN = 2**20  # covariances in the first step of all local searches; where one takes many, fewer are begun
CAUTION = 1.4  # by which standard deviations are too small where nothing is real
HOPELESS = -15.0  # a log EI so low that the model holds the best value for luck


@dataclass(frozen=True)
class Proposal:
    """A chosen point and the log of the improvement expected of it."""

    z: Codes
    value: float


def _climb_reals(
    acquisition: Acquisition, region: Region, z: Codes, values: Array, iterations: int
) -> tuple[Codes, Array]:
    """Move the reals of all rows uphill together by L-BFGS inside the box; bins stay as they are."""
    from scipy.optimize import minimize  # slow to import, so not before the first search

    reals = region.space.reals
    shape = (len(z), len(reals))
    low, high = region.box
    kernel, points = acquisition.gp.kernel, acquisition.gp.z
    k_c = kernel.comb(kernel.metric(z, points)) if len(region.space.combinatorial) else None

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


def _search(
    acquisition: Acquisition,
    region: Region,
    z: Codes,
    values: Array,
    seen: Seen,
    rounds: int,
    iterations: int,
    *,
    rng: np.random.Generator,
) -> tuple[Codes, Array]:
    """Improve the starts: bins by local search, reals by gradients, both in turn where there are both."""
    comb, reals = len(region.space.combinatorial), len(region.space.reals)
    for _ in range(rounds if comb and reals else 1):
        before = float(values.max())
        if reals:
            moved, gained = _climb_reals(acquisition, region, z, values, iterations)
            free = seen.fresh(moved)
            z, values = np.where(free[:, None], moved, z), np.where(free, gained, values)
        if comb:
            z, values = climb(acquisition, region, z, values, seen, rng=rng)
        if float(values.max()) <= before + 1e-6:
            break
        rows = best_half(values, first_of_each(z, np.arange(len(z))))
        z, values = z[rows], values[rows]
    return z, values


def _normals(p: int, *, rng: np.random.Generator) -> Array:
    """Return standard normals (p, S), quasi-random over the samples."""
    if p <= 0:
        return np.empty((0, SAMPLES))
    from scipy.stats import qmc  # slow to import, and of no use to one point at a time

    # A generator of its own: Sobol spawns from what it is given, which a generator's state does not record.
    own = np.random.default_rng(int(rng.integers(2**63)))
    uniform = qmc.Sobol(p, scramble=True, rng=own).random_base2(int(math.log2(SAMPLES)))
    return np.asarray(ndtri(np.clip(uniform, 1e-9, 1.0 - 1e-9)).T)


def _comb_starts(gp: GP, region: Region) -> int:
    """Return how many local searches to begin: what `SCAN` allows, from `CONTENDERS` to `COMB_STARTS`."""
    moves = len(neighbours(region.space, region.centre[None])[0])
    return int(np.clip(SCAN // max(1, moves * len(gp.z)), CONTENDERS, COMB_STARTS))


def _beside(region: Region, z: Codes, *, rng: np.random.Generator) -> Codes:
    """Return neighbours of a point of the region that lie in it too, their bins changed and their reals not."""
    near = around(replace(region, centre=z), NEXT_MOVES, rng=rng)
    return near[region.distance(near) <= region.radius]


def propose(
    gp: GP,
    y: Array,
    pending: Codes,
    region: Region,
    n: int,
    seen: Seen,
    everything: Callable[[], Codes],
    *,
    robust: bool = True,
    rng: np.random.Generator,
) -> list[Proposal]:
    """Choose up to n unseen points greedily; fewer, or none, where the target space runs out of them.

    `everything` lists all points of the target space if they can be listed, and is called only in need.
    A robust search for an improvement on a best value that the model disbelieves goes by the model's belief.
    Where nothing is real, it takes the model for too sure of itself.
    """
    chosen: list[Proposal] = []
    fixed = pending
    normals = _normals(len(pending) + n - 1, rng=rng)
    pool: Pool | None = None
    combinatorial = bool(len(region.space.combinatorial))
    starts = _comb_starts(gp, region) if combinatorial else CONT_STARTS
    rounds, iterations = ROUNDS, MIXED_ITERATIONS if combinatorial else CONT_ITERATIONS
    caution = CAUTION if robust and not len(region.space.reals) else 1.0
    y = y / caution  # in these units the standard deviations are the model's own
    best = float(y.min())
    while len(chosen) < n:
        acquisition = Acquisition.of(gp, y, fixed, normals, best)
        if pool is None:
            region, pool = pool_of(acquisition, region, seen, everything, rng=rng)
            if pool is None:
                break
        order = pool.best(acquisition, starts)
        if robust and combinatorial and not chosen and pool.values[order[0]] < HOPELESS:
            # The model takes the best value for luck and sees no way to beat it. What it believes can be beaten.
            best = max(best, gp.believed_best(y))
            acquisition = Acquisition.of(gp, y, fixed, normals, best)
            pool.forget(acquisition)
            order = pool.best(acquisition, starts)
        order = seen.first_fresh(pool.z, 1 if pool.complete else starts, order)
        if not len(order):
            pool = None  # every candidate is taken: draw again
            continue
        z, values = pool.z[order], pool.values[order]
        if not pool.complete:
            z, values = _search(acquisition, region, z, values, seen, rounds, iterations, rng=rng)
        top = int(values.argmax())
        if not pool.complete and len(chosen) + 1 < n:
            others = np.delete(z, top, axis=0)
            pool.add(acquisition, np.concatenate([others, _beside(region, z[top], rng=rng)]))
        chosen.append(Proposal(z[top], float(values[top]) + math.log(caution)))
        fixed = np.concatenate([fixed, z[top : top + 1]])
        seen.take(z[top : top + 1])
        starts = NEXT_COMB_STARTS if combinatorial else NEXT_CONT_STARTS
        rounds, iterations = NEXT_ROUNDS, NEXT_MIXED_ITERATIONS if combinatorial else NEXT_CONT_ITERATIONS
    return chosen
