"""Slice sampling of one number: an interval doubled around the point, then shrunk until a point on the slice is found.

The invariant: a draw leaves the density unchanged, whatever the width at the start.

Neal, Slice sampling, Annals of Statistics 2003, figures 4 (doubling), 5 (shrinkage) and 6 (the test that makes doubling
reversible).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

WIDTHS = (
    0.9,
    0.8,
    0.7,
    0.6,
    0.4,
    0.3,
    0.2,
    0.1,
)  # of the first interval; the next one if an interval shrank to nothing
DOUBLINGS = 10


def slice_sample(log_density: Callable[[float], float], at: float, *, rng: np.random.Generator) -> float:
    """Return the next state of a chain that is at a point; the point itself if every width fails."""
    known: dict[float, float] = {}

    def height(x: float) -> float:
        if x not in known:
            known[x] = log_density(x)
        return known[x]

    for width in WIDTHS:
        level = height(at) + math.log(1.0 - rng.random())
        low = at - width * rng.random()
        high = low + width
        for _ in range(DOUBLINGS):
            if not (height(low) > level or height(high) > level):
                break
            if rng.random() < 0.5:
                low -= high - low
            else:
                high += high - low
        left, right = low, high
        while not math.isclose(left, right, rel_tol=1e-5, abs_tol=1e-8):
            x = left + (right - left) * rng.random()
            if height(x) > level and _reversible(height, level, (at, x), (low, high), width):
                return x
            if x < at:
                left = x
            else:
                right = x
    return at


def _reversible(
    height: Callable[[float], float],
    level: float,
    points: tuple[float, float],
    interval: tuple[float, float],
    width: float,
) -> bool:
    """Return whether doubling from the second point could have reached the interval that came from the first."""
    (at, x), (low, high) = points, interval
    apart = False
    while high - low > 1.1 * width:
        middle = 0.5 * (low + high)
        apart = apart or (at < middle) != (x < middle)
        if x < middle:
            high = middle
        else:
            low = middle
        if apart and height(low) <= level and height(high) <= level:
            return False
    return True
