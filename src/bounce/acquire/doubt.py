"""Doubt: a point that changes everything the model believes not to matter.

A model that considers a variable irrelevant never tries it again, and a search on a plateau moves along directions in
which nothing changes. Such a point tests many of these beliefs at once: if one of them is wrong, the value changes.

The invariant: the posterior mean at the point is at most a tolerance above that at the centre. The tolerance grows
while such points cost nothing (`Method.tolerance`), as on a plateau. One in four points has no limit: a random point.

Shapes: z (n, d) latent codes; centre (d,).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.rules import Rules
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space

TOLERANCE = 0.1  # in standard deviations of the targets
GROWTH = 4.0  # of the tolerance, for each doubting point that cost nothing
MOST = 6  # times the tolerance grows; targets differ by less
RANDOM = 4  # one point in this number has no tolerance
PATIENCE = 6  # evaluations without progress before the first doubt
PROGRESS = 0.01  # of the distance from the best value to the median: what is less is not progress


def doubted(
    gp: GP,
    y: Array,
    space: Space,
    centre: Codes,
    rules: Rules | None = None,
    *,
    earned: int = 0,
    rng: np.random.Generator,
) -> Codes | None:
    """Return a point that takes random values in the bins whose change costs nothing, as far as the model knows.

    Bins are changed in the order of what their change alone would cost, as many of them as stay within the tolerance
    together. None if not even one does. The tolerance is multiplied by `GROWTH` as often as was earned.
    """
    other = space.sample(1, rng=rng)[0]
    if rules is not None:
        other = rules.drawn(other[None], rng=rng)[0]
    d = len(centre)
    alone = np.tile(centre, (d + 1, 1))
    alone[np.arange(d), np.arange(d)] = other
    mean, _ = gp.posterior(Points(alone), y)
    order = np.argsort(mean[:d], kind="stable")
    counts = np.unique(np.geomspace(1, d, 24).round().astype(np.intp))
    several = np.tile(centre, (len(counts), 1))
    for row, count in zip(several, counts.tolist(), strict=True):
        row[order[:count]] = other[order[:count]]
    if rules is not None:
        several = rules.proper(np.concatenate([several, other[None]]))
        if not len(several):
            return None
    together, _ = gp.posterior(Points(several), y)
    tolerance = np.inf if rng.integers(RANDOM) == 0 else TOLERANCE * GROWTH**earned
    good = np.flatnonzero(together <= mean[d] + tolerance)
    return several[good[-1]] if len(good) else None


def since_progress(values: Array) -> int:
    """Return how many values, in the order of their trials, came after the first one that is about as good as the best.

    Values to be minimised; NaN for a trial without one.
    """
    good = _good(values)
    return len(values) - 1 - int(np.flatnonzero(good)[0]) if good.any() else 0


def earned(values: Array, doubting: NDArray[np.bool_]) -> int:
    """Return how often doubting points have earned a larger tolerance since the last progress.

    One more for each that is about as good as the best value, one less for each that is not.
    """
    since = len(values) - since_progress(values)
    power = 0
    for good in _good(values)[since:][doubting[since:]]:
        power = power + 1 if good else max(power - 1, 0)
    return min(power, MOST)


def _good(values: Array) -> NDArray[np.bool_]:
    """Return which values are about as good as the best."""
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return np.zeros(len(values), dtype=np.bool_)
    best, median = float(known[0]), float(known[(len(known) - 1) // 2])  # the lower one, which no sum can overflow
    return np.asarray(values <= best + (PROGRESS * median - PROGRESS * best))
