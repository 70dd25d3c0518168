"""Doubt: a point that changes everything the model believes not to matter.

A model that considers a variable irrelevant never tries it again, and a search on a plateau moves along directions in
which nothing changes. Such a point tests many of these beliefs at once: if one of them is wrong, the value changes.

The invariant: the posterior mean at the point is at most a tolerance above that at the centre. One in four points has
no tolerance: a random point.

Shapes: z (n, d) latent codes; centre (d,).
"""

from __future__ import annotations

import numpy as np

from bounce.acquire.rules import Rules
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space

TOLERANCES = (0.1, 0.1, 0.1, np.inf)  # in standard deviations of the targets; one is drawn for each point
PATIENCE = 6  # evaluations without progress before the first doubt
PROGRESS = 0.01  # of the distance from the best value to the median: what is less is not progress


def doubted(
    gp: GP, y: Array, space: Space, centre: Codes, rules: Rules | None = None, *, rng: np.random.Generator
) -> Codes | None:
    """Return a point that takes random values in the bins whose change costs nothing, as far as the model knows.

    Bins are changed in the order of what their change alone would cost, as many of them as stay within the tolerance
    together. None if not even one does.
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
    good = np.flatnonzero(together <= mean[d] + rng.choice(TOLERANCES))
    return several[good[-1]] if len(good) else None


def since_progress(values: Array) -> int:
    """Return how many values, in the order of their trials, came after the first one that is about as good as the best.

    Values to be minimised; NaN for a trial without one.
    """
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return 0
    best, median = float(known[0]), float(known[(len(known) - 1) // 2])  # the lower one, which no sum can overflow
    enough = best + (PROGRESS * median - PROGRESS * best)
    return len(values) - 1 - int(np.flatnonzero(values <= enough)[0])
