"""Data: what a model learns from, the results of trials as points with values to be minimised.

The invariant: data are in the order of their trials, and a selection of them is too.

Shapes: n observations; ids (m,) of some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bounce.gp.fit import noise_limits
from bounce.gp.kernels import Hyper, Kernel, Metric
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.targets import Scale
from bounce.method import Method
from bounce.optimizer.options import Options
from bounce.optimizer.state import Record, evidence, ranks
from bounce.spaces.outcomes import Limit
from bounce.spaces.space import Space
from bounce.trial import VALUED


@dataclass(frozen=True, eq=False)
class Data:
    """What a stage knows: points of its target space with their values, by id."""

    latent: Space
    points: Points
    values: Array
    """What the model is told, to be minimised."""
    done: NDArray[np.bool_]
    """Which have a value of their own; the others failed."""
    tells: NDArray[np.intp]
    """The place of each in the order of tells."""
    errors: Array
    """The standard error of each value, in the user's units; NaN where it was not told."""
    ranks: Array | None = None
    """Their ranks where there are limits, 0 for the best; infinite for those that failed."""
    held: NDArray[np.bool_] | None = None
    """Which keep all limits, if there are any; otherwise those that have a value."""
    first: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp), kw_only=True)
    """The first trials with their points; empty if repeats are not wanted."""

    @property
    def merit(self) -> Array:
        """What makes one better than another, to be minimised: the rank or the value; infinite if it failed."""
        return np.where(self.done, self.values, np.inf) if self.ranks is None else self.ranks

    def noise(self, among: NDArray[np.intp], method: Method, noise: str | float) -> tuple[Array | None, float | None]:
        """Return the noise variances of some observations, and that of the others, in the units of their targets.

        The first has NaN where no standard error was told, and is None if none was. The second is None if it is to be
        fitted (the option `noise`).
        """
        told = self.errors[among]
        if np.isnan(told).all() and noise == "auto":
            return None, None
        scale, limits = Scale.of(self.values[among], method), noise_limits(self.latent, method)
        fixed = None
        if noise != "auto":
            error = 0.0 if noise == "none" else float(noise)
            fixed = float(scale.noise(np.array([error]), limits)[0])
        return (None if np.isnan(told).all() else scale.noise(told, limits)), fixed

    def nearest(self, among: NDArray[np.intp], most: int | None) -> NDArray[np.intp]:
        """Return those of some observations that are nearest to the best of them, by id; all if they are few."""
        if most is None or len(among) <= most:
            return among
        points, best = self.points[among], np.argmin(self.merit[among])
        return nearest_to(points[np.array([best])], self.latent, points, among, most)


def nearest_to(centre: Points, latent: Space, points: Points, ids: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the ids of those points that are nearest to a centre, in ascending order."""
    ones = Hyper(np.ones(1), np.ones(len(latent.reals)), 1.0, 1.0, 0.5)
    d2 = Metric(latent)(points, centre)[:, 0]
    d2 += Kernel(latent, ones).real_distance(points, centre)[:, 0]
    nearest = np.lexsort((-ids, d2))[:most]  # of equally near ones, the newest
    return ids[np.sort(nearest)]


def errors_of(records: Sequence[Record]) -> Array:
    """Return the standard errors (n,) of trials, NaN where none was told."""
    return np.array([np.nan if record.trial.sem is None else record.trial.sem for record in records])


def ranked(
    found: Sequence[Record], sign: float, limits: Sequence[Limit]
) -> tuple[Array, NDArray[np.bool_]] | tuple[None, None]:
    """Return the ranks of trials and which of them keep all limits (`Data`); None and None if there are no limits."""
    if not limits:
        return None, None
    done = np.array([record.trial.state in VALUED for record in found])
    order = np.full(len(found), np.inf)
    order[done] = ranks([record for record in found if record.trial.state in VALUED], sign, limits)
    return order, np.array([bool(record.trial.feasible) for record in found], dtype=bool)


def data_of(space: Space, records: Sequence[Record], options: Options) -> tuple[Data, list[Record]]:
    """Return all results as data in the codes of the space, and their records."""
    found, values = evidence(records, None, options.sign, options.method)
    data = Data(
        space,
        Points(np.stack([record.codes for record in found])),
        values,
        np.array([record.trial.state in VALUED for record in found]),
        np.array([record.tell for record in found]),
        errors_of(found),
        *ranked(found, options.sign, space.limits),
    )
    return data, found
