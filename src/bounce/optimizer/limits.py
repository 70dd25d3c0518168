"""What a run believes about limits: a model of every outcome, and of success where failures are learned.

An outcome is modelled on a scale that is finer near its limits, where it matters. A few outcomes have hyperparameters
of their own; many of them share a kernel, so that their number hardly changes the time of an ask. Success is one more
outcome: 0 for a trial with a value, 1 for one that failed, with the limit at one half.

The invariant: beliefs are a pure function of the records and of the hyperparameters in the head.

Shapes: n trials, K outcomes of one group; levels (n, K).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.feasibility import Belief
from bounce.gp.fit import cold, noise_limits
from bounce.gp.joint import fit_jointly
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.method import Method
from bounce.optimizer.state import Record
from bounce.spaces.outcomes import Limit
from bounce.spaces.space import Space
from bounce.trial import VALUED

# How many outcomes have hyperparameters of their own: a few always, more while the product with the trials is small.
# With their own, the speed reducer (11 outcomes) after 15 evaluations: 2996 instead of 3078, 3 seeds, in 0.6 s per ask.
OWN, OWN_EARLY, OWN_PRODUCT = 4, 12, 2000
ALL, SUCCESS = "<all>", "<success>"  # groups that no outcome can be called after
HALF = 0.5  # the limit between success (0) and failure (1)
UNIT = 0.75  # the share of values that are nearer to a limit than the unit of its scale (`Method.limit_unit`)
FARTHEST = 1e150  # of an outcome: squares of larger numbers overflow

Nearest = Callable[[NDArray[np.intp], int | None], NDArray[np.intp]]
"""What returns those of some trials, by id, that are nearest to the best one."""


@dataclass(frozen=True, eq=False)
class Group:
    """Outcomes that share a kernel, as far as they are known."""

    name: str
    ids: NDArray[np.intp]
    """The trials that have a number for each of them."""
    values: Array
    """What was measured (n, K)."""
    limits: Sequence[Limit]


def groups(records: Sequence[Record], restart: int, limits: Sequence[Limit], method: Method) -> list[Group]:
    """Return what is known about limits since a restart; a group about which nothing is known is left out."""
    told = [r for r in records if r.told is not None and r.trial.restart == restart]
    own_kernels = len(limits) <= (OWN_EARLY if len(limits) * len(told) <= OWN_PRODUCT else OWN)
    sets = {limit.name: [limit] for limit in limits} if own_kernels else {ALL: list(limits)}
    found = []
    for name, own in sets.items():
        known = [r for r in told if all(limit.name in r.trial.outcomes for limit in own)]
        if known:
            values = np.array([[r.trial.outcomes[limit.name] for limit in own] for r in known])
            found.append(Group(name, _ids(known), values, own))
    failed = np.array([[float(r.trial.state not in VALUED)] for r in told])
    if method.failures == "learned" and 0 < failed.sum() < len(failed):
        found.append(Group(SUCCESS, _ids(told), failed, [Limit("success", high=HALF)]))
    return found


def _ids(records: Sequence[Record]) -> NDArray[np.intp]:
    return np.array([record.id for record in records], dtype=np.intp)


def levels(values: Array, limit: Limit, unit_of: str = "quarter") -> tuple[Array, float, float]:
    """Return targets (n,) of an outcome, and its limits on the same scale.

    The scale is the sign and the log of 1 + d/s, d the distance to the limit, or to the middle between two of them, and
    s a distance that a quarter of the values exceed, or half of them (`Method.limit_unit`). So an outlier does not make
    everything near the limit look equal.
    """
    low, high = (float(np.clip(bound, -FARTHEST, FARTHEST)) for bound in (limit.low, limit.high))
    values = np.clip(values, -FARTHEST, FARTHEST)
    two = math.isfinite(limit.low) and math.isfinite(limit.high)
    middle = 0.5 * low + 0.5 * high if two else low if math.isfinite(limit.low) else high
    away = np.abs(values - middle)
    unit = float(np.median(away) if unit_of == "median" else np.quantile(away, UNIT, method="lower"))
    if two:
        unit = max(unit, 0.5 * high - 0.5 * low)
    unit = max(unit or float(away.max()) or 1.0, 1.0 / FARTHEST)  # what is divided by it stays finite

    def scaled(x: Array) -> Array:
        return np.asarray(np.sign(x - middle) * np.log1p(np.abs(x - middle) / unit))

    y = scaled(values)
    mean, deviation = float(y.mean()), float(y.std())
    deviation = deviation if deviation > 1e-12 else 1.0
    ends = (scaled(np.array([low, high])) - mean) / deviation
    return (
        (y - mean) / deviation,
        float(ends[0]) if math.isfinite(limit.low) else -math.inf,
        float(ends[1]) if math.isfinite(limit.high) else math.inf,
    )


def targets_of(group: Group, rows: NDArray[np.intp], unit_of: str) -> tuple[Array, Array, Array]:
    """Return the targets (n, K) of some trials of a group, and the limits (K,) on their scale."""
    found = [levels(group.values[rows, k], limit, unit_of) for k, limit in enumerate(group.limits)]
    if group.name == SUCCESS:  # two levels, as far from the limit on both sides: no scale is finer
        values = group.values[rows, 0]
        mean, deviation = float(values.mean()), float(values.std()) or 1.0
        found = [((values - mean) / deviation, -math.inf, (HALF - mean) / deviation)]
    y, low, high = zip(*found, strict=True)
    return np.stack(y, axis=1), np.array(low), np.array(high)


def believed(
    group: Group,
    latent: Space,
    points: Points,
    nearest: Nearest,
    method: Method,
    *,
    starts: Sequence[Hyper] | None,
    hyper: Hyper | None,
    exact: bool,
) -> tuple[Belief, Hyper]:
    """Return the belief about a group, with these hyperparameters or, if starts are given, those of a fit.

    `points` are those of all trials of the run. `exact` says that outcomes are measured without noise.
    """
    ids = nearest(group.ids, method.nearest)
    rows = np.searchsorted(group.ids, ids)
    y, low, high = targets_of(group, rows, method.limit_unit)
    if starts is not None or hyper is None:
        few = nearest(ids, method.nearest_fit if len(latent.reals) else method.nearest)
        fixed = noise_limits(latent, method)[0] if exact and group.name != SUCCESS else None
        place = np.searchsorted(ids, few)
        hyper = fit_jointly(latent, points[few], y[place], starts or [cold(latent)], method, fixed=fixed)
    own = points[ids]
    grain = 1 if own.foreign is None else own.foreign.grain
    return Belief.of(GP.at(Kernel(latent, hyper, grain), own), y, low, high), hyper
