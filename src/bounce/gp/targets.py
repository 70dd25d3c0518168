"""Targets: what the model is told of the values, in units of their standard deviation.

Shapes: values (n,), to be minimised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bounce.gp.linalg import Array
from bounce.method import Method

OUTLIER = 10.0  # times as far above the median as the best is below it; far beyond the tails of the paper's problems
BENDS = (0.0, 0.25, 1.0)  # how much targets may be bent; 0 leaves them as they are (`Method.bend`)
OUTLIER_ROOM = 0.25  # of the range of the other values, in which outliers keep their order (docs/ablations.md)


def targets(values: Array, method: Method, bend: float = 0.0) -> Array:
    """Return the values as the model sees them: outliers lowered (`Method.targets`), bent and standardised."""
    return bent(standardized(_lowered(values, method)), bend)[0]


def bent(y: Array, bend: float) -> tuple[Array, float]:
    """Return standardised targets on a scale that is finer near the best one, and the log of the map's derivative.

    The map is log(1 + b·s)/b of the distance s to the best target, standardised again. The derivative is that of all
    targets together: added to a log likelihood of bent targets, it makes those of different bends comparable.
    """
    if not bend or y.min() == y.max():
        return y, 0.0
    far = bend * (y - y.min())
    t = np.log1p(far) / bend
    deviation = float(t.std())
    return (t - t.mean()) / deviation, -float(np.log1p(far).sum()) - len(y) * math.log(deviation)


def _lowered(values: Array, method: Method) -> Array:
    return clipped(values) if method.targets == "clipped" else values


@dataclass(frozen=True)
class Scale:
    """What standardises values: a target is (value − centre) / deviation."""

    centre: float
    deviation: float
    """The population standard deviation; 0 if all values are equal."""

    @classmethod
    def of(cls, values: Array, method: Method) -> Scale:
        """Return the scale of the targets of values; outliers are lowered first, as in `targets`."""
        lowered = _lowered(values, method)
        largest = float(np.abs(lowered).max())
        scaled, _, deviation = _centred(lowered)
        if deviation is None:
            return cls(float(lowered[0]), 0.0)
        return cls(largest * float(scaled.mean()), largest * deviation)

    def noise(self, errors: Array, limits: tuple[float, float]) -> Array:
        """Return the noise variances (n,) of targets whose values have these standard errors; NaN stays NaN.

        If all values are equal, any error is large beside their deviation.
        """
        low, high = limits
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            shares = np.where(errors > 0, errors / self.deviation, 0.0 * errors)
            return np.asarray(np.clip(np.minimum(shares, math.sqrt(high)) ** 2, low, high))


def standardized(values: Array) -> Array:
    """Return values with mean 0 and population standard deviation 1 (or 0, if all are equal)."""
    _, centred, deviation = _centred(values)
    return np.zeros_like(values) if deviation is None else centred / deviation


def _centred(values: Array) -> tuple[Array, Array, float | None]:
    """Return values divided by the largest, these with mean 0, and the deviation; None if all are equal."""
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values  # keeps squares from overflowing
    centred = scaled - scaled.mean()
    deviation = float(centred.std())
    # Rounding alone makes the deviation of equal values a tiny number.
    return scaled, centred, deviation if deviation > 1e-14 else None


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
