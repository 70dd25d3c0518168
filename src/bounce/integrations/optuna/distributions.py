"""Optuna's distributions as parameters of Bounce, and values as points.

A parameter with two values is binary, whatever its distribution. Steps are counted, categories are places in the list
of choices, so that choices may be of any type. The value of a step is computed as Optuna does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from bounce.errors import InvalidInput, InvalidPoint
from bounce.spaces.kinds import Parameter
from bounce.spaces.outcomes import Limit
from bounce.spaces.parameters import Binary, Categorical, Integer, Real
from bounce.spaces.space import Space

Point = dict[str, Any]
FARTHEST = 1e150  # of an outcome: an infinite violation is this large


@dataclass(frozen=True)
class Axis:
    """One parameter of Optuna, and what it is for Bounce."""

    name: str
    distribution: Any
    parameter: Parameter

    def native(self, value: Any) -> Any:
        """Return a value of Optuna as one of Bounce; refuse one that does not fit."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            place = self._place(value)
        elif d.step is None:
            return value
        else:
            place = round((value - d.low) / d.step)
            if abs(place * d.step + d.low - value) > 1e-8 * d.step * max(1, abs(place)):
                raise InvalidPoint(f"{self.name!r} must be {d.low!r} plus steps of {d.step!r}, not {value!r}")
        if self.parameter.type == "binary":
            if place not in (0, 1):
                raise InvalidPoint(f"{self.name!r} must be one of two values of {d!r}, not {value!r}")
            return bool(place) ^ self._flipped
        return place + d.low if self._counts_from_low else place

    def value(self, native: Any) -> Any:
        """Return a value of Bounce as one of Optuna."""
        d = self.distribution
        place = int(native) ^ self._flipped if self.parameter.type == "binary" else native
        if isinstance(d, CategoricalDistribution):
            return d.choices[place]
        if d.step is None:
            return min(max(float(place), d.low), d.high)
        if isinstance(d, FloatDistribution):
            return float(min(max(place * d.step + d.low, d.low), d.high))
        return int(place if self._counts_from_low else place * d.step + d.low)

    def _place(self, value: Any) -> int:
        try:
            return int(self.distribution.to_internal_repr(value))
        except ValueError:
            raise InvalidPoint(f"{self.name!r} must be one of {self.distribution.choices!r}, not {value!r}") from None

    @cached_property
    def _flipped(self) -> bool:
        """Whether the first of two choices is the larger one: True comes after False, whatever the order."""
        d = self.distribution
        return isinstance(d, CategoricalDistribution) and d.choices[0] is True and d.choices[1] is False

    @cached_property
    def _counts_from_low(self) -> bool:
        """Whether the parameter of Bounce has Optuna's own bounds."""
        d = self.distribution
        whole = not isinstance(d, FloatDistribution | CategoricalDistribution)
        return whole and d.step == 1 and self.parameter.type == "integer"


def axis(place: int, name: str, distribution: BaseDistribution) -> Axis | None:
    """Return what a parameter is for Bounce; None if it has one value only, or Bounce cannot represent its range."""
    d: Any = distribution
    label = str(place)  # any text is a name in Optuna, the empty one too
    try:
        if d.single():
            return None
        parameter: Parameter
        if isinstance(d, CategoricalDistribution):
            n = len(d.choices)
            parameter = Binary(label) if n == 2 else Categorical(label, range(n))
        elif d.step is None:
            parameter = Real(label, d.low, d.high, log=d.log)
        else:
            last = round((d.high - d.low) / d.step)
            whole = not isinstance(d, FloatDistribution)
            if last == 1:
                parameter = Binary(label)
            elif whole and d.step == 1:
                parameter = Integer(label, d.low, d.high, log=d.log)
            else:
                parameter = Integer(label, 0, last)
    except InvalidInput:
        return None
    return Axis(name, d, parameter)


def _outcome(place: int) -> str:
    """Return what a constraint is called: any text is a name in Optuna."""
    return f"constraint {place}"


@dataclass(frozen=True)
class Mapped:
    """A search space of Optuna as a space of Bounce."""

    axes: tuple[Axis, ...]
    limits: tuple[str, ...] = ()
    """The constraints that every trial has: each is an outcome that must be at most 0."""

    @classmethod
    def of(cls, search_space: Mapping[str, BaseDistribution], limits: tuple[str, ...] = ()) -> Mapped:
        """Map the parameters that Bounce can represent, in their order."""
        found = [axis(place, name, distribution) for place, (name, distribution) in enumerate(search_space.items())]
        return cls(tuple(one for one in found if one is not None), limits)

    @cached_property
    def space(self) -> Space:
        """The space of Bounce."""
        outcomes = [Limit(_outcome(place), high=0.0) for place in range(len(self.limits))]
        return Space([one.parameter for one in self.axes], outcomes=outcomes)

    def partial(self, params: Mapping[str, Any]) -> Point:
        """Return what values by name say about a point; what does not fit is left out."""
        point: Point = {}
        for one in self.axes:
            if one.name in params:
                try:
                    native = one.native(params[one.name])
                    one.parameter.encode(native)
                except (InvalidPoint, TypeError, ValueError, OverflowError):
                    continue
                point[one.parameter.name] = native
        return point

    def point(self, params: Mapping[str, Any]) -> Point | None:
        """Return values by name as a point; None if something is missing or does not fit."""
        point = self.partial(params)
        return point if len(point) == len(self.axes) else None

    def measured(self, constraints: Mapping[str, float]) -> dict[str, float] | None:
        """Return the outcomes of a trial; None if one is missing or not a number."""
        found = [constraints.get(name, math.nan) for name in self.limits]
        if any(map(math.isnan, found)):
            return None
        return {_outcome(place): min(max(value, -FARTHEST), FARTHEST) for place, value in enumerate(found)}

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return a point as values by name."""
        return {one.name: one.value(point[one.parameter.name]) for one in self.axes}
