"""Auditions: another value of a choice that decides much gets a turn, with a model of its own.

The lengthscales of a run fit the value that it mostly evaluates. For another value, other variables may matter, and
after a few poor points the model seldom looks there again. So now and then a point is chosen among those with another
value, by a model that sees only them.

The invariant: the point has another value of the choice than the centre.

Shapes: z (n, d) latent codes; centre (d,).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.candidates import Seen
from bounce.acquire.improvement import SAMPLES, Acquisition
from bounce.acquire.neighbourhood import Neighbourhood
from bounce.gp.fit import cold, fit_and_value
from bounce.gp.kernels import Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.spaces.kinds import Codes, Kind, on_grid

DECISIVE = 0.9  # a choice decides much if two points that differ in it alone are correlated by at most this
FEW = 3  # choices, of which each may decide much; where more do, none of them does alone
ENOUGH = 20  # observations before the model is believed that one of many choices decides much ...
SURE = 40  # ... and before it is believed that none of a few choices does
FEWEST = 3  # values of such a choice: two are compared by moves of the local search
LEAST = 4  # points with a value before they have a model; until then, points with it are drawn at random
MOST = 100  # points of that model, the newest: a bound on its time
DRAWN = 4096  # points of the whole space, of which those with the value become candidates
MIXED = (0.1, 0.6)  # the share of the variables that a candidate near the best one takes from another
STEP = 0.1  # the standard deviation of steps of reals


def decisive(gp: GP, region: Neighbourhood) -> int | None:
    """Return the categorical bin whose change alone makes the largest difference, if that decides much."""
    space, centre = region.space, region.centre
    bins = space.of_kind(Kind.CATEGORICAL)
    bins = np.setdiff1d(bins[space.cardinalities[bins] >= FEWEST], region.asleep)
    few, n = len(bins) <= FEW, len(gp.points)
    if not len(bins) or not (few or n >= ENOUGH):
        return None
    changed = np.tile(centre, (len(bins), 1))
    changed[np.arange(len(bins)), bins] = (centre[bins] + 1) % space.cardinalities[bins]
    correlation = gp.kernel(Points(changed), Points(centre[None]))[:, 0] / gp.kernel.prior
    known = 0 < np.count_nonzero(correlation <= DECISIVE) <= FEW
    return int(bins[correlation.argmin()]) if known or (few and n < SURE) else None


def turn(codes: Array, y: Array, pending: Array, own: int, count: int) -> int:
    """Return the value whose turn it is, of `count` values of a choice: never that of the centre, `own`.

    The others are ordered by their best points, and the k-th gets points in proportion to 1/(k + 1). So none is given
    up, and those that look good get more. `codes` and `pending` are the values of the choice at the observations, with
    targets y, and at points without a value yet.
    """
    best = np.array([y[codes == value].min(initial=np.inf) for value in range(count)])
    tried = np.bincount(np.concatenate([codes, pending]).astype(np.intp), minlength=count)
    others = np.delete(np.arange(count), own)
    others = others[np.argsort(best[others], kind="stable")]
    return int(others[np.argmin(tried[others] * (2 + np.arange(len(others))))])


def auditioned(
    gp: GP, y: Array, region: Neighbourhood, seen: Seen, pending: Points, *, rng: np.random.Generator
) -> Codes | None:
    """Return an unseen point with another value of a decisive choice; None if there is no such choice or point."""
    choice = decisive(gp, region)
    if choice is None:
        return None
    space, z = region.space, gp.points.z
    value = turn(z[:, choice], y, pending.z[:, choice], int(region.centre[choice]), int(space.cardinalities[choice]))
    drawn = space.sample(DRAWN, rng=rng)
    if seen.rules is not None:
        drawn = seen.rules.drawn(drawn, rng=rng)
    drawn = drawn[drawn[:, choice] == value]
    mine = np.flatnonzero(z[:, choice] == value)[-MOST:]
    order = np.arange(len(drawn))
    if len(mine) >= LEAST and len(drawn):
        worth = _own_model(gp.points[mine], y[mine], region, pending[pending.z[:, choice] == value], rng=rng)
        near = _near(z[mine[int(y[mine].argmin())]], drawn, space.reals, rng=rng)
        drawn = near if seen.rules is None else seen.rules.proper(near)
        order = np.argsort(-worth(drawn), kind="stable") if len(drawn) else order[:0]
    rows = seen.first_fresh(drawn, 1, order)
    return drawn[rows[0]] if len(rows) else None


def _own_model(
    points: Points, y: Array, region: Neighbourhood, pending: Points, *, rng: np.random.Generator
) -> Callable[[Codes], Array]:
    """Return the log expected improvement over the best of some points, by a model that is fitted to them alone."""
    space = region.space
    targets = standardized(y)
    hyper, _ = fit_and_value(space, points, targets, [cold(space)], region.method)
    gp = GP.at(Kernel(space, hyper), points)
    targets = targets - gp.mean(targets)
    return Acquisition.of(gp, targets, pending, rng.standard_normal((len(pending), SAMPLES)))


def _near(best: Codes, drawn: Codes, reals: NDArray[np.intp], *, rng: np.random.Generator) -> Codes:
    """Return random points, as many between them and the best one, and as many of these with its reals moved."""
    taken = rng.random(drawn.shape) < rng.uniform(*MIXED, (len(drawn), 1))
    between = np.where(taken, drawn, best)
    stepped = between.copy()
    step = rng.normal(0.0, STEP, (len(drawn), len(reals)))
    stepped[:, reals] = on_grid(np.clip(best[reals] + step, 0.0, 1.0))
    return np.concatenate([drawn, between, stepped])
