"""Numbers: reals and integers between two bounds.

The invariant: a decimal of up to 12 digits comes back from its code as it was given, wherever the grid tells it from
its neighbours; of the decimals with one code, a value is shown as the shortest.
"""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.spaces.kinds import GRID, Codes, Kind, When, check_name, checked_when, plain

ORDINAL_INTEGER = 64  # an integer with at most this many values is ordinal (notes, decision 1)
NARROWEST = 1e-12  # the least width of a real range relative to its larger end: 4,000 times the spacing of doubles
SMALLEST = 1e-290  # the least width of a real range: above the subnormal doubles
LARGEST_INTEGER = 10**12  # beyond it, doubles no longer tell all integers of a log scale apart
DIGITS = 17  # decimal digits that tell any two doubles apart
ROUNDING = 1  # of the digits that the value at a fraction has, how many may be wrong by rounding


def rounded(codes: Any, cells: Any, log: Any, low: Any, high: Any) -> Any:
    """Return the whole numbers whose cells hold real codes; arrays of any shapes that fit together."""
    start, stop = cells
    x = start + codes * (stop - start)
    return np.clip(np.rint(np.where(log, np.exp(np.where(log, x, 0.0)), x)), low, high)


def _check_log(name: str, log: object) -> None:
    if not isinstance(log, bool):
        raise InvalidSpace(f"{name!r}: log must be true or false, not {log!r}", parameter=name, key="log")


def _check_order(name: str, low: float, high: float) -> None:
    if low >= high:
        raise InvalidSpace(
            f"{name!r}: low must be less than high, not low={low!r} and high={high!r}", parameter=name, key="low"
        )


def _finite(value: object) -> float | None:
    """Return a real number as a finite float, or None if it is something else."""
    given = plain(value)
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _number(name: str, value: object) -> float:
    """Return a point's value as a float; refuse anything else."""
    number = _finite(value)
    if number is None:
        raise InvalidPoint(f"{name!r} must be a finite number, not {value!r}", parameter=name)
    return number


@dataclass(frozen=True)
class Real:
    """A real number between two bounds, on a linear or a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool = False
    when: When = field(default=None, kw_only=True)

    kind: ClassVar[Kind] = Kind.REAL
    type: ClassVar[str] = "real"
    cardinality: ClassVar[int] = 0
    size: ClassVar[float] = math.inf
    cells: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "when", checked_when(self.name, self.when))
        _check_log(self.name, self.log)
        for side in ("low", "high"):
            bound = getattr(self, side)
            number = _finite(bound)
            if number is None:
                raise InvalidSpace(
                    f"{self.name!r}: {side} must be a finite number, not {quoted(bound)}", parameter=self.name, key=side
                )
            object.__setattr__(self, side, number)
        _check_order(self.name, self.low, self.high)
        if not math.isfinite(self.high - self.low):
            raise InvalidSpace(f"{self.name!r}: the range from {self.low!r} to {self.high!r} is too wide")
        if self.log and self.low <= 0:
            raise InvalidSpace(
                f"{self.name!r}: a log scale needs low > 0, not {self.low!r}", parameter=self.name, key="low"
            )
        if self.high - self.low < max(NARROWEST * max(abs(self.low), abs(self.high)), SMALLEST):
            raise InvalidSpace(
                f"{self.name!r}: there are too few numbers between {self.low!r} and {self.high!r} to tell apart"
            )

    def encode(self, value: Any) -> float:
        """Return the fraction of the range below the value."""
        x = _number(self.name, value)
        if not self.low <= x <= self.high:
            raise InvalidPoint(
                f"{self.name!r} must lie between {self.low!r} and {self.high!r}, not {value!r}",
                parameter=self.name,
            )
        return self._code(x)

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return math.log(self.low), math.log(self.high)

    def _code(self, x: float) -> float:
        """Return the code of a value that lies in the range."""
        if self.log:
            low, high = self._logs
            u = (math.log(x) - low) / (high - low)
        else:
            u = (x - self.low) / (self.high - self.low)
        return round(u * GRID) / GRID

    def decode(self, code: float) -> float:
        """Return the shortest decimal with this code, or the value at the fraction if no decimal is shorter."""
        u = float(code)
        if u in (0.0, 1.0):
            return self.high if u else self.low
        if self.log:
            low, high = self._logs
            x = math.exp(low * (1.0 - u) + high * u)
            unsure = x * max((high - low) / GRID, math.ulp(low), math.ulp(high))
        else:
            x = self.low * (1.0 - u) + self.high * u
            unsure = max((self.high - self.low) / GRID, math.ulp(x))
        x = min(max(x, self.low), self.high)
        if abs(x) <= unsure and self.low <= 0.0 <= self.high and self._code(0.0) == u:
            return 0.0
        digits = math.floor(math.log10(abs(x) / unsure)) if abs(x) > unsure else 1
        for precision in range(max(1, digits - ROUNDING), DIGITS):
            candidate = float(f"{x:.{precision}g}")
            if self.low <= candidate <= self.high and self._code(candidate) == u:
                return candidate
        return x

    def all_codes(self) -> Codes:
        """Refuse: there is no list of real numbers."""
        raise InvalidSpace(f"{self.name!r} is real: its values cannot be listed")


@dataclass(frozen=True)
class Integer:
    """A whole number between two bounds, both included.

    With at most 64 values and no log scale it is ordinal. Otherwise it is real and rounded: every number has a cell
    that reaches half a number to both sides, so on a log scale small numbers have wider cells than large ones.
    """

    name: str
    low: int
    high: int
    log: bool = False
    when: When = field(default=None, kw_only=True)

    type: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "when", checked_when(self.name, self.when))
        _check_log(self.name, self.log)
        for side in ("low", "high"):
            bound = getattr(self, side)
            try:
                number = operator.index(bound)
            except TypeError:
                number = None
            if number is None or isinstance(bound, bool):
                raise InvalidSpace(
                    f"{self.name!r}: {side} must be an integer, not {quoted(bound)}", parameter=self.name, key=side
                )
            if abs(number) > LARGEST_INTEGER:
                raise InvalidSpace(
                    f"{self.name!r}: {side} must be at most {LARGEST_INTEGER} in size, not {bound!r}",
                    parameter=self.name,
                    key=side,
                )
            object.__setattr__(self, side, number)
        _check_order(self.name, self.low, self.high)
        if self.log and self.low < 1:
            raise InvalidSpace(
                f"{self.name!r}: a log scale needs low > 0, not {self.low!r}", parameter=self.name, key="low"
            )

    @property
    def size(self) -> int:
        """The number of values."""
        return self.high - self.low + 1

    @property
    def kind(self) -> Kind:
        """Ordinal if there are few values, otherwise real."""
        return Kind.ORDINAL if self.size <= ORDINAL_INTEGER and not self.log else Kind.REAL

    @property
    def cardinality(self) -> int:
        """The number of codes, 0 for kind real."""
        return self.size if self.kind is Kind.ORDINAL else 0

    @property
    def cells(self) -> tuple[float, float] | None:
        """Half a number beyond both ends, on the scale: every number has a cell around it."""
        if self.kind is Kind.ORDINAL:
            return None
        low, high = self.low - 0.5, self.high + 0.5
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def encode(self, value: Any) -> float:
        """Return the place of the number on its scale."""
        x = _number(self.name, value)
        if x != int(x):
            raise InvalidPoint(f"{self.name!r} must be a whole number, not {value!r}", parameter=self.name)
        if not self.low <= x <= self.high:
            raise InvalidPoint(
                f"{self.name!r} must lie between {self.low!r} and {self.high!r}, not {value!r}",
                parameter=self.name,
            )
        if self.cells is None:
            return x - self.low
        start, stop = self.cells
        return round(((math.log(x) if self.log else x) - start) / (stop - start) * GRID) / GRID

    def decode(self, code: float) -> int:
        """Return the number whose cell holds the code."""
        if self.cells is None:
            return self.low + int(code)
        return int(rounded(np.float64(code), self.cells, self.log, self.low, self.high))

    def all_codes(self) -> Codes:
        """Return the code of every number."""
        return np.array([self.encode(x) for x in range(self.low, self.high + 1)])
