"""Outcomes: what an evaluation measures beside its value, and the limits that it must keep.

A limit is written as text, `strength >= 30` or `1 <= ph <= 3`: one outcome, compared with numbers. Which points keep it
is unknown until they are evaluated.

The invariant: a violation is 0 exactly where the limit holds, and it is in the units of the outcome.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bounce.errors import InvalidSpace, InvalidTell
from bounce.text import number, written
from bounce.trial import RESERVED, finite

COMPARISON = re.compile(r"\s*(<=|>=|==|!=|<|>|=)\s*")
QUOTED = re.compile(r"^`(.+)`$")
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
LONGEST = 200  # characters of a name


@dataclass(frozen=True)
class Limit:
    """The limits of one outcome: at least `low` and at most `high`; where one is open, it is not reached itself."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name != self.name.strip():
            raise InvalidSpace(f"an outcome must have a name, not {self.name!r}")
        if not self.name.isprintable() or len(self.name) > LONGEST or COMPARISON.search(self.name):
            raise InvalidSpace(f"an outcome's name must be one short line without < > =, not {self.name!r}")
        if self.name.lower() in RESERVED or self.name.lower().startswith("point."):
            raise InvalidSpace(f"an outcome cannot be called {self.name!r}, a column of every table: rename it")
        low, high = (_bound(self.name, bound) for bound in (self.low, self.high))
        if not low < math.inf or not high > -math.inf or (low, high) == (-math.inf, math.inf):
            raise InvalidSpace(f"the limits of {self.name!r} must be finite numbers, such as {self.name} >= 30")
        if low > high or (low == high and (self.open_low or self.open_high)):
            raise InvalidSpace(f"no number keeps the limits of {self.name!r}: {written(low)} to {written(high)}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def of(cls, given: object) -> Limit:
        """Return a limit from its text, or a limit itself."""
        if isinstance(given, Limit):
            return given
        if not isinstance(given, str):
            raise InvalidSpace(f"an outcome must be a text such as 'strength >= 30', not {given!r}")
        first, *rest = COMPARISON.split(given.strip())
        operators, words = rest[::2], [first, *rest[1::2]]
        words = [QUOTED.sub(r"\1", word) for word in words]  # as in constraints; here they are not needed
        names = [word for word in words if number(word) is None]
        if len(words) not in (2, 3) or len(names) != 1 or not names[0] or not set(operators) <= set(FLIPPED):
            raise InvalidSpace(
                f"an outcome must be compared with numbers by <, <=, > or >=, as in 'strength >= 30' or "
                f"'1 <= ph <= 3', not {given!r}"
            )
        place = words.index(names[0])
        if len(words) == 3 and (place != 1 or operators[0][0] != operators[1][0]):
            raise InvalidSpace(f"two limits must stand on both sides of the name, as in '1 <= ph <= 3', not {given!r}")
        sides = [(FLIPPED[operators[0]], words[0])] if place else []
        sides += [(operators[place], words[place + 1])] if place + 1 < len(words) else []
        bounds: dict[str, Any] = {}
        for operator, word in sides:
            side = "low" if operator[0] == ">" else "high"
            bounds |= {side: number(word), f"open_{side}": len(operator) == 1}
        return cls(names[0], **bounds)

    @property
    def text(self) -> str:
        """The limit as it is written."""
        below, above = "<" if self.open_low else "<=", "<" if self.open_high else "<="
        if self.low == -math.inf:
            return f"{self.name} {above} {written(self.high)}"
        if self.high == math.inf:
            return f"{self.name} {FLIPPED[below]} {written(self.low)}"
        return f"{written(self.low)} {below} {self.name} {above} {written(self.high)}"

    def violation(self, value: float) -> float:
        """Return by how much a measured value breaks the limit, in its own units; 0 if it holds."""
        if self.open_low and value == self.low:
            return math.ulp(self.low)
        if self.open_high and value == self.high:
            return math.ulp(self.high)
        return min(max(self.low - value, value - self.high, 0.0), sys.float_info.max)


def _bound(name: str, bound: object) -> float:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or math.isnan(bound):
        raise InvalidSpace(f"a limit of {name!r} must be a number, not {bound!r}")
    return float(bound) + 0.0


def limits_of(given: object) -> tuple[Limit, ...]:
    """Return the limits of a space, one for each outcome, from texts or limits."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidSpace(f"outcomes must be a list such as ['strength >= 30', 'cost <= 5'], not {given!r}")
    limits = tuple(Limit.of(item) for item in given)
    names = [limit.name for limit in limits]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSpace(f"{name!r} has two limits: write them together, as in '1 <= {name} <= 3'")
    return limits


def measured(limits: Iterable[Limit], given: Any, *, partial: bool = False) -> dict[str, float]:
    """Return the outcomes of one evaluation, by name in the order of the limits; refuse missing and unknown ones."""
    names = [limit.name for limit in limits]
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidTell(f"the measured outcomes must be a dict of numbers by name, not {given!r}")
    unknown = [name for name in given if name not in names]
    if unknown:
        known = f"its outcomes are {', '.join(names)}" if names else "it has none: see Space(..., outcomes=[...])"
        raise InvalidTell(f"the space has no outcome {', '.join(map(repr, unknown))}; {known}")
    missing = [name for name in names if name not in given]
    if missing and not partial:
        raise InvalidTell(
            f"the space has limits on {', '.join(names)}, so a value comes with constraints={{NAME: NUMBER}}: "
            f"missing {', '.join(map(repr, missing))}"
        )
    found = {}
    for name in names:
        if name in given:
            try:
                found[name] = finite(given[name])
            except InvalidTell:
                raise InvalidTell(f"the outcome {name!r} must be a finite number, not {given[name]!r}") from None
    return found


def feasible(limits: Iterable[Limit], outcomes: Mapping[str, float]) -> bool | None:
    """Return whether all limits hold; None if there are none, or if that depends on an outcome that is not known."""
    limits = tuple(limits)
    if any(limit.violation(outcomes[limit.name]) for limit in limits if limit.name in outcomes):
        return False
    return None if not limits or any(limit.name not in outcomes for limit in limits) else True
