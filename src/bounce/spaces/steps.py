"""Steps: the numbers that a parameter with a step or with few digits takes.

The invariant: a number is the double nearest to the decimal that the user would write, so 0.15 is 0.15 wherever it
comes from. A *rung* is the place of a number on its ladder: number = start + rung · step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace, quoted

MOST_RUNGS = 10**12  # doubles tell this many apart, on a log scale too
MOST_DIGITS = 12
ROUNDING = 1e-5  # of a step: a number that is this near to a rung is meant to be on it
ULPS = 4  # the same in units of the last place, where a step is hardly longer than those


@dataclass(frozen=True)
class Steps:
    """A ladder of numbers: the rungs from `first` to `last`."""

    start: Fraction
    step: Fraction
    first: int
    last: int
    end: float | None = None
    """The last number if the step, as a decimal, does not meet it exactly: 1 for a step of 1/3."""

    @classmethod
    def by(cls, name: str, low: float, high: float, step: float) -> Steps:
        """Return the ladder from low to high; refuse a high that is not on it."""
        if not 0 < step < math.inf:
            raise InvalidSpace(f"{name!r}: step must be a positive number, not {step!r}", parameter=name, key="step")
        start, stop, exact = _exact(low), _exact(high), _exact(step)
        rungs = (stop - start) / exact
        last = round(rungs)
        if last < 1:
            raise InvalidSpace(
                f"{name!r}: step must be at most {_shown(stop - start)}, the distance from low to high, not {step!r}",
                parameter=name,
                key="step",
            )
        if abs(rungs - last) > ROUNDING:
            below, above = (_shown(start + rung * exact) for rung in (math.floor(rungs), math.ceil(rungs)))
            raise InvalidSpace(
                f"{name!r}: high must be low plus a multiple of the step {step!r}, such as {below} or {above}, "
                f"not {high!r}",
                parameter=name,
                key="high",
            )
        _check_number(name, "step", last, step > 1e-12 * max(abs(low), abs(high)))
        return cls(start, exact, 0, last, None if start + last * exact == stop else float(high))

    @classmethod
    def of_digits(cls, name: str, low: float, high: float, digits: int) -> Steps:
        """Return the ladder of the numbers between low and high with that many digits after the point."""
        if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= MOST_DIGITS:
            raise InvalidSpace(
                f"{name!r}: digits must be a whole number from 0 to {MOST_DIGITS}, not {quoted(digits)}",
                parameter=name,
                key="digits",
            )
        unit = Fraction(1, 10**digits)
        slack = Fraction(ROUNDING)
        first, last = math.ceil(_exact(low) / unit - slack), math.floor(_exact(high) / unit + slack)
        if last <= first:
            raise InvalidSpace(
                f"{name!r}: between {low!r} and {high!r} there must be at least two numbers with {digits} digits after "
                "the point",
                parameter=name,
                key="digits",
            )
        _check_number(name, "digits", max(abs(first), abs(last)), enough=True)
        return cls(Fraction(0), unit, first, last)

    @property
    def size(self) -> int:
        """The number of rungs."""
        return self.last - self.first + 1

    def number(self, rung: int) -> float:
        """Return the number on a rung."""
        if rung == self.last and self.end is not None:
            return self.end
        return float(self.start + rung * self.step)

    def numbers(self, rungs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers on rungs: exactly as `number` does, unless the decimals are too long for doubles."""
        parts = math.lcm(self.start.denominator, self.step.denominator)
        start, step = int(self.start * parts), int(self.step * parts)
        if max(parts, abs(start) + abs(step) * max(abs(self.first), abs(self.last))) < 2**53:
            found = (start + rungs * step) / parts
        else:
            found = float(self.start) + rungs * float(self.step)
        return np.asarray(found if self.end is None else np.where(rungs == self.last, self.end, found))

    def rung(self, x: float) -> int | None:
        """Return the rung of a number; None if it is on none."""
        nearest = min(max(round((Fraction(x) - self.start) / self.step), self.first), self.last)
        slack = max(ROUNDING * float(self.step), ULPS * math.ulp(x))
        return nearest if abs(x - self.number(nearest)) <= slack else None

    def nearest(self, x: float) -> list[float]:
        """Return the two numbers around one that is on no rung, or the one nearest to it at an end."""
        below = math.floor((Fraction(x) - self.start) / self.step)
        return [self.number(rung) for rung in (below, below + 1) if self.first <= rung <= self.last] or [
            self.number(self.first if below < self.first else self.last)
        ]


def _exact(x: float) -> Fraction:
    """Return a number as the decimal that it is written as."""
    return Fraction(repr(x))


def _shown(x: Fraction) -> str:
    return repr(int(x) if x.denominator == 1 else float(x))


def _check_number(name: str, key: str, rungs: int, enough: bool) -> None:
    """Refuse a ladder with more rungs than doubles tell apart."""
    if rungs > MOST_RUNGS or not enough:
        raise InvalidSpace(
            f"{name!r}: there may be at most {MOST_RUNGS:,} values; "
            + ("use a longer step" if key == "step" else "use fewer digits"),
            parameter=name,
            key=key,
        )
