"""A change of a space: what happens to the points of the old one.

A choice may be added or removed, bounds may be widened or narrowed, a parameter may be added, removed, fixed at a value
or get another type. A value that the new parameter does not take makes its point unfit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bounce.errors import InvalidOption, InvalidPoint
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space, shown_condition


@dataclass(frozen=True)
class Change:
    """From one space to another; `defaults` are the values of parameters that only one of them has."""

    old: Space
    new: Space
    defaults: dict[str, Any]

    def __post_init__(self) -> None:
        old = {parameter.name: parameter for parameter in self.old.parameters}
        new = {parameter.name: parameter for parameter in self.new.parameters}
        for name, parameter in new.items():
            if name not in old and name not in self.defaults:
                raise InvalidOption(
                    f"{name!r} is new: defaults must have its value in the trials so far", option="defaults"
                )
            if name in self.defaults and name not in old:
                self.defaults[name] = self._native(parameter, self.defaults[name])
        for name, value in list(self.defaults.items()):
            if name in old and name in new:
                raise InvalidOption(
                    f"{name!r} is in both spaces, so the trials have their own values for it: remove its default",
                    option="defaults",
                )
            if name not in old and name not in new:
                raise InvalidOption(f"there is no parameter {name!r}", option="defaults")
            if name not in new:
                self.defaults[name] = self._native(old[name], value)

    @staticmethod
    def _native(parameter: Any, value: Any) -> Any:
        """Return a default as a plain value that the parameter takes."""
        try:
            return parameter.decode(parameter.encode(value))
        except InvalidPoint as error:
            raise InvalidOption(f"a default does not fit: {error}", option="defaults") from None

    def translated(self, point: Mapping[str, Any], former: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a point of the old space in the new one; None if a parameter was fixed at another value.

        `former` are its values of parameters that an earlier change removed: they count again if these return.
        """
        if self.contradicted(point):
            return None
        known = self.defaults | dict(former) | dict(point)
        needed = self._needed(known)
        return {p.name: known[p.name] for p in self.new.parameters if p.name in needed and p.name in known}

    def known(self, point: Mapping[str, Any], former: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the new space has of a point that leaves parameters open; None if one was fixed otherwise."""
        if self.contradicted(point):
            return None
        known = self.defaults | dict(former) | dict(point)
        return {p.name: known[p.name] for p in self.new.parameters if p.name in known}

    def kept(self, before: Codes, codes: Codes, point: Mapping[str, Any]) -> Codes:
        """Return new codes (D,) with the old ones of parameters that are as they were: decoding may have rounded."""
        old = {p.name: (p, slot) for p, slot in zip(self.old.parameters, self.old.slots, strict=True)}
        codes = codes.copy()
        for parameter, (start, stop) in zip(self.new.parameters, self.new.slots, strict=True):
            same, slot = old.get(parameter.name, (None, (0, 0)))
            if same == parameter and parameter.name in point:
                codes[start:stop] = before[slot[0] : slot[1]]
        return codes

    def contradicted(self, point: Mapping[str, Any], before: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the removed parameters that were fixed at another value than a point has.

        `before` are those of earlier changes; one that the new space has again no longer counts.
        """
        new = {parameter.name for parameter in self.new.parameters}
        fixed = [p for p in self.old.parameters if p.name not in new and p.name in self.defaults and p.name in point]
        found = [p.name for p in fixed if not _alike(p, point[p.name], self.defaults[p.name])]
        return (*(name for name in before if name not in new), *found)

    def returned(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a point that an earlier change left outside, in the new space; None if it lacks a parameter."""
        known = self.defaults | dict(point)
        needed = self._needed(known)
        return {name: known[name] for name in needed} if needed <= known.keys() else None

    def _needed(self, known: Mapping[str, Any]) -> frozenset[str]:
        """Return the parameters that a point of the new space has; all of them if it has a value that is not one."""
        try:
            return self.new.active_names(known)
        except InvalidPoint:
            return frozenset(parameter.name for parameter in self.new.parameters)

    @property
    def sentences(self) -> list[str]:
        """What changes, in words, a parameter each."""
        old = {parameter.name: parameter for parameter in self.old.parameters}
        new = {parameter.name: parameter for parameter in self.new.parameters}
        said = [f"{name} is added" for name in new if name not in old]
        said += [_difference(old[name], new[name]) for name in new if name in old and new[name] != old[name]]
        for name in [name for name in old if name not in new]:
            fixed = f"fixed at {_shown(self.defaults[name])}" if name in self.defaults else "removed"
            said.append(f"{name} is {fixed}")
        before, after = ({str(c) for c in space.constraints} for space in (self.old, self.new))
        said += [f"the constraint {str(c)!r} is added" for c in self.new.constraints if str(c) not in before]
        said += [f"the constraint {str(c)!r} is removed" for c in self.old.constraints if str(c) not in after]
        old_limits, new_limits = ({limit.name: limit.text for limit in s.limits} for s in (self.old, self.new))
        said += [f"the limit {text} is added" for name, text in new_limits.items() if name not in old_limits]
        changed = [name for name, text in new_limits.items() if old_limits.get(name, text) != text]
        said += [f"{new_limits[name]} instead of {old_limits[name]}" for name in changed]
        said += [f"the limit {text} is removed" for name, text in old_limits.items() if name not in new_limits]
        return said or ["the order of the parameters changes"]


def _alike(parameter: Any, one: Any, other: Any) -> bool:
    """Return whether a value, which may be of an earlier space, is the same as one that a parameter takes."""
    try:
        return bool(parameter.encode(one) == parameter.encode(other))
    except InvalidPoint:
        return False


def _shown(value: Any) -> str:
    """Return a value as specs write it, strings in single quotes."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _condition(parameter: Any) -> str:
    return "always" if parameter.when is None else f"with {shown_condition(parameter)}"


def _range(parameter: Any) -> str:
    """Return the ends of a number and its steps."""
    ends = f"from {parameter.low!r} to {parameter.high!r}"
    if parameter.step is not None:
        return f"{ends} in steps of {parameter.step!r}"
    digits = getattr(parameter, "digits", None)
    return ends if digits is None else f"{ends} with {digits} digits after the point"


def _difference(old: Any, new: Any) -> str:
    """Return how a parameter differs from what it was."""
    name = old.name
    if old.type != new.type:
        return f"{name} becomes {new.type} instead of {old.type}"
    if old.when != new.when:
        return f"{name} is active {_condition(new)} instead of {_condition(old)}"
    if old.type in ("subset", "mixture", "permutation"):
        return f"{name} becomes {new!r} instead of {old!r}"
    if old.type in ("real", "integer"):
        parts = [f"ranges {_range(new)} instead of {_range(old).removeprefix('from ')}"]
        parts = [] if _range(old) == _range(new) else parts
        parts += [] if old.log == new.log else [f"{'gains' if new.log else 'loses'} its log scale"]
        return f"{name} {' and '.join(parts)}"
    before, after = ([parameter.decode(code) for code in parameter.all_codes()] for parameter in (old, new))
    parts = [f"gains {_shown(value)}" for value in after if value not in before]
    parts += [f"loses {_shown(value)}" for value in before if value not in after]
    return f"{name} {' and '.join(parts) or 'has another order'}"
