"""The outlook: how much a run can still gain, as far as the model can tell.

The model is that of the recommendation: built from all results, in the codes of the input space. The gain is the best
value known minus the lowest value of the function. The outlook is an upper bound on the expectation of the gain over a
finite set of points: by the union bound, gain > t has at most the probability Σᵢ P(best − fᵢ > t), however the
values of the points depend on each other, and the expectation is the integral of that over t. Points whose value is
known exactly are left out.

The invariant: nothing changes, and the same trials give the same answer, whether or not the run was resumed.

Shapes: x (n, D) input codes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bounce.acquire.improvement import log_ei
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import Scale
from bounce.optimizer.data import Data, data_of
from bounce.optimizer.options import Options
from bounce.optimizer.recommendation import conditioned
from bounce.optimizer.state import Record, observations
from bounce.spaces.kinds import Codes, on_grid
from bounce.spaces.space import Space

DRAWN = 2000  # random points of the space
LISTED = 4096  # a space of at most this many points is looked at whole
PARENTS, CHILDREN, ROUNDS = 20, 50, 8  # of the search that starts from the best of them
STEPS = (1.0, 0.3, 0.1, 0.03, 0.01)  # how far a child's reals move towards those of a random point
GRID = 200  # values of t for the integral
FAR = 8.0  # standard deviations beyond which a value is impossible


def improvement_expected(space: Space, records: Sequence[Record], options: Options, tells: int) -> float | None:
    """Return an upper bound on what can still be gained after the first `tells` tells, in the user's units.

    None before two values that differ: the model then knows nothing about how values vary. None, too, if the space has
    limits: better points that break them say nothing about what can be gained.
    """
    if space.limits:
        return None
    told = [record for record in records if record.told is not None and record.told < tells]
    if not observations(told, None):
        return None
    data, _ = data_of(space, told, options)
    rows = data.nearest(np.arange(len(data.values)), options.method.nearest)
    scale = Scale.of(data.values[rows], options.method)
    if scale.deviation == 0:
        return None
    gp, y, _ = conditioned(data, rows, options)
    rng = np.random.default_rng([options.seed or 0, tells])
    best = gp.believed_best(y)
    good = data.points[rows].z[np.argsort(y, kind="stable")[:PARENTS]]
    x = _candidates(space, gp, y, best, good, rng=rng)
    x = x[~_exact(data, x, options)]
    mean, sigma = _moments(gp, y, x)
    caution = 1.0 if len(space.reals) else options.method.caution  # as in an ask
    return scale.deviation * _gain(mean, caution * sigma, best)


def _moments(gp: GP, y: Array, x: Codes) -> tuple[Array, Array]:
    """Return posterior means and standard deviations."""
    mean, variance = gp.posterior(Points(x), y)
    return mean, np.sqrt(np.maximum(variance, 1e-12 * gp.kernel.prior))


def _candidates(space: Space, gp: GP, y: Array, best: float, good: Codes, *, rng: np.random.Generator) -> Codes:
    """Return points that might be better than the best one: the whole space, or the outcome of a search in it."""
    if space.structure is None and space.size <= LISTED:
        return space.grid()
    x = np.vstack([good, space.sample(DRAWN, rng=rng)])
    value = log_ei(*_moments(gp, y, x), best)
    for _ in range(ROUNDS):
        parents = x[np.argsort(-value, kind="stable")[:PARENTS]]
        children = _children(space, np.repeat(parents, CHILDREN, axis=0), rng=rng)
        x = np.vstack([x, children])
        value = np.append(value, log_ei(*_moments(gp, y, children), best))
    return np.unique(x, axis=0)


def _exact(data: Data, x: Codes, options: Options) -> NDArray[np.bool_]:
    """Return which points have a value that is known exactly, so that nothing can be gained there."""
    known = data.errors == 0
    if options.noise == "none":
        known |= np.isnan(data.errors)
    codes = {row.tobytes() for row in data.points.z[data.done & known]}
    return np.array([row.tobytes() in codes for row in x], dtype=bool)


def _children(space: Space, parents: Codes, *, rng: np.random.Generator) -> Codes:
    """Return points of which some variables differ from their parents': reals by a step, others by a random code."""
    n, d = parents.shape
    other = space.sample(n, rng=rng)
    changed = rng.random((n, d)) < rng.uniform(0.0, 1.0, (n, 1)) ** 2
    changed[np.arange(n), rng.integers(0, d, n)] = True
    reals = space.reals
    step = rng.choice(STEPS, (n, 1))
    other[:, reals] = on_grid(parents[:, reals] + step * (other[:, reals] - parents[:, reals]))
    children = np.where(changed, other, parents)
    if space.structure is None:
        return children
    children = space.structure.canonical(children)
    return children[space.structure.allowed(children, exact=False)]


def _gain(mean: Array, sigma: Array, best: float) -> float:
    """Return ∫ min(1, Σᵢ P(best − fᵢ > t)) dt from 0: an upper bound on the expectation of the largest gain."""
    possible = best - mean > -FAR * sigma
    if not possible.any():
        return 0.0
    mean, sigma = mean[possible], sigma[possible]
    t = np.linspace(0.0, 1.0, GRID) ** 3 * float(np.max(best - mean + FAR * sigma))  # finer near 0
    total = ndtr((best - t[:-1, None] - mean) / sigma).sum(axis=1)  # it falls: the left ends keep it an upper bound
    return float(np.minimum(total, 1.0) @ np.diff(t))
