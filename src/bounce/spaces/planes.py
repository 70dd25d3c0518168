"""Planes: the linear inequalities that constraints imply, in codes.

A variable counts if its value is linear in its code: reals and integers without a log scale, binaries, and ordinals
with equal steps.

The invariant: codes that satisfy all constraints satisfy a·x <= b for every plane, up to rounding, if all variables
that it names are active.

Shapes: codes x (n, D); weights a (p, D); bounds b (p,).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.spaces.expressions import Expression
from bounce.spaces.kinds import Codes, Kind, Parameter, on_grid

Array = NDArray[np.float64]

MARGIN = 1e-9  # of a bound: what is moved onto a plane keeps so far away from it that rounding does not matter
STRICT = 1e-6  # of the largest weight: how far inside of its planes a corner is looked for
ROUNDING = 1e-12  # of the numbers in an inequality: more than rounding changes
EXACT = 2.0**50  # whole numbers up to this have exact sums
NODES = 2000  # of a search for one corner


@dataclass(frozen=True, eq=False)
class Planes:
    """Linear inequalities a·x <= b over codes, where whole codes reach from 0 to `top`."""

    weights: Array
    bounds: Array
    whole: NDArray[np.bool_]
    """Which variables (D,) have whole codes."""
    top: Array
    """The largest code (D,) of each."""
    real_weights: Array = field(init=False)
    """The weights (p, D) of the reals alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "real_weights", np.where(self.whole, 0.0, self.weights))

    @classmethod
    def of(
        cls, expressions: Iterable[Expression], variables: Mapping[str, tuple[int, Parameter, Any]], cardinalities: Any
    ) -> Planes:
        """Build them from expressions and, per name in these, the column, the variable, and its values by code."""
        scales = {name: _scale(variable, table) for name, (_, variable, table) in variables.items()}
        binary = {name for name, (_, variable, _) in variables.items() if variable.kind is Kind.BINARY}
        rows, bounds = [np.empty((0, len(cardinalities)))], []
        for expression in expressions:
            for slopes, bound in expression.planes(binary):
                known = {name: scales[name] for name in slopes}
                row = np.zeros(len(cardinalities))
                for name, scale in known.items():
                    if scale is None:
                        break
                    row[variables[name][0]] += slopes[name] * scale[1]
                    bound -= slopes[name] * scale[0]
                else:
                    rows.append(row[None])
                    bounds.append(bound)
        top = np.where(cardinalities > 0, cardinalities - 1.0, 1.0)
        return cls(np.concatenate(rows), np.array(bounds), np.asarray(cardinalities) > 0, top)

    def __len__(self) -> int:
        return len(self.bounds)

    def onto(self, codes: Codes, sweeps: int = 1) -> Codes:
        """Return codes whose reals moved, as little as possible, to where the inequalities hold, one by one."""
        moved = codes.copy()
        for _ in range(sweeps):
            outside = False
            for every, own, bound in zip(self.weights, self.real_weights, self.bounds, strict=True):
                excess = np.maximum(moved @ every - (bound - MARGIN * max(1.0, abs(bound))), 0.0)
                length = float(own @ own)
                if length and excess.any():
                    moved -= (excess / length)[:, None] * own
                    outside = True
            if not outside:
                break
            moved[:, ~self.whole] = np.clip(moved[:, ~self.whole], 0.0, 1.0)
        moved[:, ~self.whole] = on_grid(np.clip(moved[:, ~self.whole], 0.0, 1.0))
        return moved

    def corners(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return codes whose variables are replaced, as far as planes name them, by corners of what all planes allow.

        A corner is the farthest point in a random direction. Where all are reals, mixtures of corners follow. None if
        no point satisfies all planes.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import, and seldom needed

        named = np.flatnonzero(self.weights.any(axis=0))
        if not len(named):
            return codes[:0]
        a = self.weights[:, named]
        inside = LinearConstraint(a, -np.inf, self.bounds - STRICT * np.abs(a).max(axis=1) * ~self._exact(a))
        found = []
        for row in codes:
            run = milp(
                rng.normal(size=len(named)),
                constraints=inside,
                bounds=Bounds(0.0, self.top[named]),
                integrality=self.whole[named].astype(np.int64),
                options={"node_limit": NODES, "mip_rel_gap": 1.0},
            )
            if run.x is None:
                break
            corner = row.copy()
            corner[named] = np.clip(np.where(self.whole[named], np.rint(run.x), run.x), 0.0, self.top[named])
            found.append(corner)
        rows = np.array(found).reshape(len(found), codes.shape[1])
        if len(rows) and not self.whole[named].any():
            mixed = rows.copy()
            mixed[:, named] = rng.dirichlet(np.ones(len(rows)), len(rows)) @ rows[:, named]
            rows = np.concatenate([mixed, rows])
        rows[:, ~self.whole] = on_grid(rows[:, ~self.whole])
        return rows

    def _exact(self, a: Array) -> NDArray[np.bool_]:
        """Return which planes are one side of an equation: a point must lie on these, not inside."""
        both = np.concatenate([a, self.bounds[:, None]], axis=1)
        return np.array([bool((both == -row).all(axis=1).any()) for row in both], dtype=bool)


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """What one constraint says, if it is nothing but linear inequalities a·x <= b, or a·x < b where these are strict.

    The invariant: where `judged` is sure, it says what the constraint says of the values that a user sees.
    """

    columns: NDArray[np.intp]
    weights: Array
    bounds: Array
    strict: NDArray[np.bool_]
    unsure: Array
    """How near (p,) to a bound rounding may matter; negative where all numbers are whole, so that it cannot."""

    @classmethod
    def of(
        cls, expression: Expression, variables: Mapping[str, tuple[int, Parameter, Any]], cardinalities: Any
    ) -> Halfspaces | None:
        """Build them from an expression; None if it says something else, or of numbers that codes are rounded to."""
        if any(
            getattr(variable, "cells", None) is not None for _, variable, table in variables.values() if table is None
        ):
            return None
        binary = {name for name, (_, variable, _) in variables.items() if variable.kind is Kind.BINARY}
        found, unsure = [], []
        for part in expression.parts:
            form = part.linear(binary)
            planes = None if form is None else Planes.of([part], variables, cardinalities)
            if form is None or planes is None or len(planes) != 1:
                return None
            exact = planes.whole[planes.weights[0] != 0].all() and all(
                float(x).is_integer() for x in (*planes.weights[0], *planes.bounds)
            )
            size = abs(form[1]) + sum(abs(form[0][name]) * _largest(*variables[name][1:]) for name in form[0])
            unsure.append(-1.0 if exact and size < EXACT else ROUNDING * size)
            found.append(planes)
        weights = np.concatenate([planes.weights for planes in found])
        columns = np.flatnonzero(weights.any(axis=0))
        return cls(
            columns,
            weights[:, columns],
            np.concatenate([planes.bounds for planes in found]),
            np.array([part.strict for part in expression.parts]),
            np.array(unsure),
        )

    def judged(self, codes: Codes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which codes (n, D) satisfy all, and where that is sure."""
        slack = self.bounds - codes[:, self.columns] @ self.weights.T
        holds = np.where(self.strict, slack > 0.0, slack >= 0.0)
        sure = np.abs(slack) > self.unsure
        return np.asarray(holds.all(axis=1)), np.asarray(sure.all(axis=1) | (sure & ~holds).any(axis=1))


def _largest(variable: Any, table: NDArray[Any] | None) -> float:
    """Return the largest size of a variable's values."""
    return float(np.abs(table.astype(np.float64)).max() if table is not None else max(-variable.low, variable.high))


def _scale(variable: Any, table: NDArray[Any] | None) -> tuple[float, float] | None:
    """Return the value at code 0 and what a whole code adds, if the value of a variable is linear in its code."""
    if table is not None:
        if table.dtype.kind not in "fb":
            return None
        values = table.astype(np.float64)
        step = values[1] - values[0] if len(values) > 1 else 0.0
        return (float(values[0]), float(step)) if np.allclose(np.diff(values), step, rtol=1e-9, atol=0.0) else None
    if variable.log:
        return None
    if variable.cells is None:
        return float(variable.low), float(variable.high - variable.low)
    start, stop = variable.cells
    step = 1.0 if variable.steps is None else float(variable.steps.step)
    first = 0.0 if variable.steps is None else float(variable.steps.start)
    return first + start * step, (stop - start) * step
