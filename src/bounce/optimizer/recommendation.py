"""The recommendation: which evaluated point the model believes to be the best.

The model is built from all results, in the codes of the input space, so it depends neither on the stage of the
search nor on what the search has cached. The invariant: nothing changes, and the same trials give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bounce.gp.fit import cold, fit, noise_of
from bounce.gp.kernels import Kernel
from bounce.gp.linalg import Array
from bounce.gp.posterior import GP
from bounce.gp.targets import Scale, targets
from bounce.optimizer.data import Data, data_of
from bounce.optimizer.options import Options
from bounce.optimizer.state import Record, best_of
from bounce.spaces.space import Space
from bounce.trial import Recommendation

Rows = NDArray[np.intp]
EQUAL = 1e-9  # bounds that differ by less, of a deviation of 1, are equal up to rounding


def recommended(space: Space, records: Sequence[Record], options: Options) -> Recommendation | None:
    """Return the evaluated point whose value is the best for sure; None if no trial has a value.

    That is the one with the best bound: the posterior mean, worsened by one standard deviation. A mean that rests on
    one lucky value has a wide deviation. Of equal bounds, it is that of the best value, the earliest of several. Where
    the space has limits, only points that keep them count, or before there is one, the one that breaks them least.
    """
    sign, method = options.sign, options.method
    best = best_of(records, sign, space.limits)
    if best is None:
        return None
    data, found = data_of(space, records, options)
    values = data.values
    if options.noise == "none" and not (data.errors > 0).any():
        return Recommendation(best.trial, best.value, 0.0)
    rows = data.nearest(np.arange(len(found)), method.nearest)
    scale = Scale.of(values[rows], method)
    if scale.deviation == 0:  # all values are equal, and nothing is known about how they vary
        error = best.trial.sem if best.trial.sem is not None else _deviation(options.noise)
        return Recommendation(best.trial, best.value, error)
    done = rows[data.done[rows]]
    if data.held is not None:  # of those that keep the limits, or the one that breaks them least
        done = done[data.held[done]] if best.trial.feasible else np.array([found.index(best)])
    mean, variance = _belief(data, rows, done, options)
    bound = mean + np.sqrt(variance)
    equal = [found[i] for i in done[bound <= bound.min() + EQUAL]]
    chosen = best_of(equal, sign)
    assert chosen is not None
    place = int(np.flatnonzero(done == found.index(chosen))[0])
    return Recommendation(
        chosen.trial,
        sign * (scale.centre + scale.deviation * float(mean[place])),
        scale.deviation * math.sqrt(float(variance[place])),
    )


def _deviation(noise: str | float) -> float:
    return 0.0 if isinstance(noise, str) else noise


def _belief(data: Data, rows: Rows, done: Rows, options: Options) -> tuple[Array, Array]:
    """Return posterior mean and variance of some observations, in a model of others, in units of their targets."""
    gp, y, centre = conditioned(data, rows, options)
    # Repeats of a point get the same belief, bit for bit.
    _, first, of = np.unique(data.points[done].z, axis=0, return_index=True, return_inverse=True)
    mean, variance = gp.posterior(data.points[done[first]], y)
    return mean[of.ravel()] + centre, variance[of.ravel()]


def conditioned(data: Data, rows: Rows, options: Options) -> tuple[GP, Array, float]:
    """Return a model of some observations, their targets with the prior mean subtracted, and that mean."""
    space, method = data.latent, options.method
    y = targets(data.values[rows], method)
    known, fixed = data.noise(rows, method, options.noise)
    few = np.searchsorted(rows, data.nearest(rows, method.nearest_fit if len(space.reals) else method.nearest))
    own = None if known is None else known[few]
    hyper = fit(space, data.points[rows[few]], y[few], [cold(space)], method, known=own, fixed=fixed)
    gp = GP.at(Kernel(space, hyper), data.points[rows], None if known is None else noise_of(hyper, known))
    centre = gp.mean(y) if method.mean == "constant" else 0.0
    return gp, y - centre, centre
