"""Numbers: reals and integers between two bounds.

The invariant: a decimal of up to 12 digits comes back from its code as it was given, wherever the grid tells it from
its neighbours; of the decimals with one code, a value is shown as the shortest. With a step or with few digits, a
value is exactly one of its steps.
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
from bounce.spaces.kinds import GRID, Codes, Kind, Shown, When, check_name, checked_when, plain
from bounce.spaces.steps import Steps

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


class _Number(Shown):
    """A number that may have steps.

    Few steps on a linear scale are ordinal. All others are real and rounded: every step has a cell that reaches half a
    step to both sides.
    """

    name: str
    low: Any
    high: Any
    log: bool

    @property
    def steps(self) -> Steps | None:
        """The values that a step or digits leave; None without these."""
        raise AssertionError("a number names its steps")

    @property
    def rungs(self) -> tuple[int, int]:
        """The ends of the whole numbers that real codes are rounded to."""
        assert self.steps is not None
        return self.steps.first, self.steps.last

    @property
    def size(self) -> float:
        """The number of values, infinite for a real without steps."""
        return math.inf if self.steps is None else self.steps.size

    @cached_property
    def kind(self) -> Kind:
        """Ordinal if there are few values, otherwise real."""
        return Kind.ORDINAL if self.size <= ORDINAL_INTEGER and not self.log else Kind.REAL

    @property
    def cardinality(self) -> int:
        """The number of codes, 0 for kind real."""
        return int(self.size) if self.kind is Kind.ORDINAL else 0

    @cached_property
    def cells(self) -> tuple[float, float] | None:
        """Half a step beyond both ends, on the scale: every step has a cell around it."""
        if self.kind is Kind.ORDINAL or self.size == math.inf:
            return None
        low, high = self.rungs[0] - 0.5, self.rungs[1] + 0.5
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def rung_at(self, code: float) -> int:
        """Return the rung whose cell holds a code."""
        if self.cells is None:
            return self.rungs[0] + int(code)
        return int(rounded(np.float64(code), self.cells, self.log, *self.rungs))

    def code_at(self, rung: int) -> float:
        """Return the code of a rung."""
        if self.cells is None:
            return float(rung - self.rungs[0])
        start, stop = self.cells
        return round(((math.log(rung) if self.log else rung) - start) / (stop - start) * GRID) / GRID

    def _rung(self, value: Any, x: float) -> int:
        """Return the rung of a value; refuse one that is on none, with the nearest that are."""
        assert self.steps is not None
        found = self.steps.rung(x)
        if found is None:
            near = [repr(type(self.low)(number)) for number in self.steps.nearest(x)]
            hint = f"the nearest {'values are' if len(near) > 1 else 'value is'} {' and '.join(near)}"
            raise InvalidPoint(f"{self.name!r} must be {self._range}, not {value!r}; {hint}", parameter=self.name)
        return found

    @property
    def _range(self) -> str:
        raise AssertionError("a number names its range")

    def all_codes(self) -> Codes:
        """Return the code of every step; refuse a real without steps."""
        if self.size == math.inf:
            raise InvalidSpace(f"{self.name!r} is real: its values cannot be listed")
        return np.array([self.code_at(rung) for rung in range(self.rungs[0], self.rungs[1] + 1)])


@dataclass(frozen=True, repr=False)
class Real(_Number):
    """A real number between two bounds, on a linear or a logarithmic scale.

    With a `step` it is low plus a multiple of the step. With `digits` it is a number with that many digits after the
    point, on either scale.
    """

    name: str
    low: float
    high: float
    log: bool = False
    step: float | None = None
    digits: int | None = None
    when: When = field(default=None, kw_only=True)

    type: ClassVar[str] = "real"

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
        self._check_steps()

    def _check_steps(self) -> None:
        if self.step is not None and self.digits is not None:
            raise InvalidSpace(
                f"{self.name!r}: a real has a step or digits, not both", parameter=self.name, key="digits"
            )
        if self.step is not None:
            step = _finite(self.step)
            if step is None:
                raise InvalidSpace(
                    f"{self.name!r}: step must be a positive number, not {quoted(self.step)}",
                    parameter=self.name,
                    key="step",
                )
            object.__setattr__(self, "step", step)
            if self.log:
                raise InvalidSpace(
                    f"{self.name!r}: a log scale has no equal steps: use digits, or an ordinal with a list of values",
                    parameter=self.name,
                    key="step",
                )
        if self.digits is not None:
            object.__setattr__(self, "digits", plain(self.digits))
        _ = self.steps  # refuses what is no ladder

    @property
    def steps(self) -> Steps | None:
        """The values that a step or digits leave; None without these."""
        return self._steps

    @cached_property
    def _steps(self) -> Steps | None:
        if self.step is not None:
            return Steps.by(self.name, self.low, self.high, self.step)
        return None if self.digits is None else Steps.of_digits(self.name, self.low, self.high, self.digits)

    @property
    def _range(self) -> str:
        if self.step is not None:
            return f"between {self.low!r} and {self.high!r} in steps of {self.step!r}"
        ends = f"between {self.low!r} and {self.high!r}"
        return ends if self.digits is None else f"{ends} with at most {self.digits} digits after the point"

    def encode(self, value: Any) -> float:
        """Return the fraction of the range below the value."""
        x = _number(self.name, value)
        if self.steps is not None:
            return self.code_at(self._rung(value, x))
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
        """Return the shortest decimal with this code, or the value at the fraction if no decimal is shorter.

        A real with steps is the step whose cell holds the code.
        """
        if self.steps is not None:
            return self.steps.number(self.rung_at(code))
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


@dataclass(frozen=True, repr=False)
class Integer(_Number):
    """A whole number between two bounds, both included, perhaps in steps.

    With at most 64 values and no log scale it is ordinal. Otherwise it is real and rounded: every number has a cell
    that reaches half a number to both sides, so on a log scale small numbers have wider cells than large ones.
    """

    name: str
    low: int
    high: int
    log: bool = False
    step: int | None = None
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

        if self.step is not None:
            self._check_step()

    def _check_step(self) -> None:
        try:
            step = None if isinstance(self.step, bool) else operator.index(self.step)  # type: ignore[arg-type]
        except TypeError:
            step = None
        if step is None or step < 1:
            raise InvalidSpace(
                f"{self.name!r}: step must be a positive integer, not {quoted(self.step)}",
                parameter=self.name,
                key="step",
            )
        if self.log and step > 1:
            raise InvalidSpace(
                f"{self.name!r}: a log scale has no equal steps: use an ordinal with a list of values",
                parameter=self.name,
                key="step",
            )
        object.__setattr__(self, "step", step if step > 1 else None)  # a step of 1 says nothing
        _ = self.steps  # refuses what is no ladder

    @property
    def steps(self) -> Steps | None:
        """The values that a step leaves; None without one."""
        return self._steps

    @cached_property
    def _steps(self) -> Steps | None:
        return None if self.step is None else Steps.by(self.name, self.low, self.high, self.step)

    @property
    def rungs(self) -> tuple[int, int]:
        """The ends of the whole numbers that real codes are rounded to."""
        return (self.low, self.high) if self.steps is None else (self.steps.first, self.steps.last)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.rungs[1] - self.rungs[0] + 1

    @property
    def _range(self) -> str:
        return f"a whole number from {self.low!r} to {self.high!r} in steps of {self.step!r}"

    def encode(self, value: Any) -> float:
        """Return the place of the number on its scale."""
        x = _number(self.name, value)
        if x != int(x):
            raise InvalidPoint(f"{self.name!r} must be a whole number, not {value!r}", parameter=self.name)
        if self.steps is not None:
            return self.code_at(self._rung(value, x))
        if not self.low <= x <= self.high:
            raise InvalidPoint(
                f"{self.name!r} must lie between {self.low!r} and {self.high!r}, not {value!r}",
                parameter=self.name,
            )
        return self.code_at(int(x))

    def decode(self, code: float) -> int:
        """Return the number whose cell holds the code."""
        rung = self.rung_at(code)
        return rung if self.step is None else self.low + rung * self.step
