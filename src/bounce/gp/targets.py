"""Targets: what the model is told of the values, in units of their standard deviation.

Shapes: values (n,), to be minimised.
"""

from __future__ import annotations

import math

import numpy as np

from bounce.gp.linalg import Array
from bounce.method import Method

OUTLIER = 10.0  # times as far above the median as the best is below it; far beyond the tails of the paper's problems
OUTLIER_ROOM = 0.25  # of the range of the other values, in which outliers keep their order (docs/ablations.md)


def targets(values: Array, method: Method) -> Array:
    """Return the values as the model sees them: outliers lowered (`Method.targets`), then standardised."""
    return standardized(clipped(values) if method.targets == "clipped" else values)


def standardized(values: Array) -> Array:
    """Return values with mean 0 and population standard deviation 1 (or 0, if all are equal)."""
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values  # keeps squares from overflowing
    centred = scaled - scaled.mean()
    deviation = centred.std()
    # Rounding alone makes the deviation of equal values a tiny number.
    return centred / deviation if deviation > 1e-14 else np.zeros_like(values)


def clipped(values: Array) -> Array:
    """Return values with the outliers on the bad side lowered to just above the worst ordinary value.

    A value is an outlier if it lies more than `OUTLIER` times as far above the median as the best lies below it. How
    bad it is says little about where the good points are, but it would set the scale: beside a penalty of 1e6 all
    other values look equal. Outliers keep their order, on a log scale: if every point breaks some rules, the model
    still learns which points break fewer.
    """
    best = float(values.min())
    median = float(np.sort(values)[(len(values) - 1) // 2])  # the lower one, which no sum can overflow
    limit = median + OUTLIER * (median - best)
    out = values > limit
    if not best < median or not out.any():
        return values
    worst = float(values[~out].max())
    room = max(OUTLIER_ROOM * worst - OUTLIER_ROOM * median, OUTLIER_ROOM * median - OUTLIER_ROOM * best)
    far = np.log(0.5 * values[out] - 0.5 * median)  # parts, since a difference of the whole may overflow
    near = math.log(0.5 * limit - 0.5 * median)
    share = (far - near) / max(float(far.max()) - near, 1e-12)
    tamed = values.copy()
    with np.errstate(over="ignore"):
        tamed[out] = np.minimum(values[out], worst + room * share)
    return tamed
