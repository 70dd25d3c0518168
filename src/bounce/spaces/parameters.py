"""Parameters: one variable each, native values outside, codes inside.

A code is one float per variable. A variable of kind real has codes in [0, 1] on a grid of 2^-52, so that
1 − u is exact and mirroring twice gives u back, bit for bit. Every other kind has codes 0, 1, …, c − 1.

The invariant: a decimal of up to 12 digits comes back from its code as it was given, wherever the grid tells it from
its neighbours; of the decimals with one code, a value is shown as the shortest.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.trial import Scalar

Codes = NDArray[np.float64]

GRID = 2.0**52
ORDINAL_INTEGER = 64  # an integer with at most this many values is ordinal (notes, decision 1)
NARROWEST = 1e-12  # the least width of a real range relative to its larger end: 4,000 times the spacing of doubles
SMALLEST = 1e-290  # the least width of a real range: above the subnormal doubles
LARGEST_INTEGER = 10**12  # beyond it, doubles no longer tell all integers of a log scale apart
DIGITS = 17  # decimal digits that tell any two doubles apart
ROUNDING = 1  # of the digits that the value at a fraction has, how many may be wrong by rounding


class Kind(StrEnum):
    """The four kinds of variables that the algorithm tells apart."""

    REAL = "real"
    BINARY = "binary"
    ORDINAL = "ordinal"
    CATEGORICAL = "categorical"


class Parameter(Protocol):
    """What a space asks of its parameters."""

    @property
    def name(self) -> str:
        """The key of this parameter in a point."""

    @property
    def kind(self) -> Kind:
        """How the algorithm treats this parameter."""

    @property
    def cardinality(self) -> int:
        """The number of codes, 0 for kind real."""

    @property
    def size(self) -> float:
        """The number of native values, infinite for a real."""

    @property
    def type(self) -> str:
        """The name of this parameter's type in a document."""

    def encode(self, value: Any) -> float:
        """Return the code of a native value."""

    def decode(self, code: float) -> Scalar:
        """Return the native value of a code."""

    @property
    def cells(self) -> tuple[float, float] | None:
        """The ends of the scale on which a real code is rounded to a whole number; None if it is not."""

    @property
    def log(self) -> bool:
        """Whether that scale is logarithmic."""

    def all_codes(self) -> Codes:
        """Return one code per native value, if these are finitely many."""


def on_grid(u: Codes) -> Codes:
    """Round real codes to the grid on which mirroring is exact."""
    return np.rint(u * GRID) / GRID


def rounded(codes: Any, cells: Any, log: Any, low: Any, high: Any) -> Any:
    """Return the whole numbers whose cells hold real codes; arrays of any shapes that fit together."""
    start, stop = cells
    x = start + codes * (stop - start)
    return np.clip(np.rint(np.where(log, np.exp(np.where(log, x, 0.0)), x)), low, high)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidSpace(f"a parameter's name must be a string that is not empty, not {name!r}")


def _check_log(name: str, log: object) -> None:
    if not isinstance(log, bool):
        raise InvalidSpace(f"{name!r}: log must be true or false, not {log!r}", parameter=name, key="log")


def _check_order(name: str, low: float, high: float) -> None:
    if low >= high:
        raise InvalidSpace(
            f"{name!r}: low must be less than high, not low={low!r} and high={high!r}", parameter=name, key="low"
        )


def _plain(value: object) -> object:
    """Turn a numpy scalar into the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def _scalar_key(value: Scalar) -> tuple[str, Scalar]:
    """Tell JSON scalars apart as JSON does: true is not 1, but 1 is 1.0."""
    if isinstance(value, bool):
        return ("bool", value)
    return ("number" if isinstance(value, int | float) else type(value).__name__, value)


def _check_scalars(name: str, what: str, given: object) -> tuple[Scalar, ...]:
    zero_dimensional = isinstance(given, np.ndarray) and given.ndim == 0
    unordered = isinstance(given, str | bytes | Mapping | set | frozenset)
    if not isinstance(given, Iterable) or unordered or zero_dimensional:
        raise InvalidSpace(f"{name!r}: {what} must be a list, not {quoted(given)}", parameter=name, key=what)
    values: list[Scalar] = []
    for item in given:
        value = _plain(item)
        if not isinstance(value, str | int | float | bool | None) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise InvalidSpace(
                f"{name!r}: {what} must be strings, finite numbers, booleans or None, not {quoted(value)}",
                parameter=name,
                key=what,
            )
        values.append(value)
    if len(values) < 2:
        message = f"{name!r}: {what} must have at least two entries, not {quoted(values)}"
        raise InvalidSpace(message, parameter=name, key=what)
    seen: set[tuple[str, Scalar]] = set()
    for value in values:
        if _scalar_key(value) in seen:
            raise InvalidSpace(
                f"{name!r}: {what} must be distinct, but {quoted(value)} appears twice", parameter=name, key=what
            )
        seen.add(_scalar_key(value))
    return tuple(values)


def _finite(value: object) -> float | None:
    """Return a real number as a finite float, or None if it is something else."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
        return None
    try:
        number = float(plain)
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

    kind: ClassVar[Kind] = Kind.REAL
    type: ClassVar[str] = "real"
    cardinality: ClassVar[int] = 0
    size: ClassVar[float] = math.inf
    cells: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_name(self.name)
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
        if self.log:
            u = (math.log(x) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            u = (x - self.low) / (self.high - self.low)
        return round(u * GRID) / GRID

    def decode(self, code: float) -> float:
        """Return the shortest decimal with this code, or the value at the fraction if no decimal is shorter."""
        u = float(code)
        if u in (0.0, 1.0):
            return self.high if u else self.low
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            x = math.exp(low * (1.0 - u) + high * u)
            unsure = x * max((high - low) / GRID, math.ulp(low), math.ulp(high))
        else:
            x = self.low * (1.0 - u) + self.high * u
            unsure = max((self.high - self.low) / GRID, math.ulp(x))
        x = min(max(x, self.low), self.high)
        if abs(x) <= unsure and self.low <= 0.0 <= self.high and self.encode(0.0) == u:
            return 0.0
        digits = math.floor(math.log10(abs(x) / unsure)) if abs(x) > unsure else 1
        for precision in range(max(1, digits - ROUNDING), DIGITS):
            candidate = float(f"{x:.{precision}g}")
            if self.low <= candidate <= self.high and self.encode(candidate) == u:
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

    type: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        _check_name(self.name)
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


class _Choice:
    """A value out of a list; codes are positions in the list."""

    name: str
    cells: ClassVar[None] = None
    log: ClassVar[bool] = False

    @property
    def _scalars(self) -> tuple[Scalar, ...]:
        raise AssertionError("a choice names its list")

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self._scalars)

    @property
    def cardinality(self) -> int:
        """The number of codes."""
        return len(self._scalars)

    @cached_property
    def _code(self) -> dict[tuple[str, Scalar], int]:
        return {_scalar_key(value): code for code, value in enumerate(self._scalars)}

    def encode(self, value: Any) -> float:
        """Return the value's place in the list."""
        plain = _plain(value)
        try:
            return float(self._code[_scalar_key(plain)])  # type: ignore[arg-type]
        except (KeyError, TypeError):
            raise InvalidPoint(
                f"{self.name!r} must be one of {list(self._scalars)!r}, not {value!r}", parameter=self.name
            ) from None

    def decode(self, code: float) -> Scalar:
        """Return the value at a place in the list."""
        return self._scalars[int(code)]

    def all_codes(self) -> Codes:
        """Return every place in the list."""
        return np.arange(float(self.size))


@dataclass(frozen=True)
class Ordinal(_Choice):
    """A value out of an ordered list."""

    name: str
    values: Sequence[Scalar]

    kind: ClassVar[Kind] = Kind.ORDINAL
    type: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "values", _check_scalars(self.name, "values", self.values))

    @property
    def _scalars(self) -> tuple[Scalar, ...]:
        return self.values  # type: ignore[return-value]


@dataclass(frozen=True)
class Categorical(_Choice):
    """A value out of a list without an order."""

    name: str
    choices: Sequence[Scalar]

    kind: ClassVar[Kind] = Kind.CATEGORICAL
    type: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "choices", _check_scalars(self.name, "choices", self.choices))

    @property
    def _scalars(self) -> tuple[Scalar, ...]:
        return self.choices  # type: ignore[return-value]


@dataclass(frozen=True)
class Binary:
    """True or False; 0 and 1 are accepted."""

    name: str

    kind: ClassVar[Kind] = Kind.BINARY
    type: ClassVar[str] = "binary"
    cardinality: ClassVar[int] = 2
    size: ClassVar[float] = 2
    cells: ClassVar[None] = None
    log: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_name(self.name)

    def encode(self, value: Any) -> float:
        """Return 0 or 1."""
        plain = _plain(value)
        if not isinstance(plain, bool | int | float) or plain not in (0, 1):
            raise InvalidPoint(f"{self.name!r} must be True or False (or 1 or 0), not {value!r}", parameter=self.name)
        return float(plain)

    def decode(self, code: float) -> bool:
        """Return True or False."""
        return bool(code)

    def all_codes(self) -> Codes:
        """Return 0 and 1."""
        return np.array([0.0, 1.0])


TYPES: dict[str, type[Any]] = {t.type: t for t in (Real, Integer, Ordinal, Categorical, Binary)}
FIELDS = {t.type: tuple(f.name for f in fields(t) if f.name != "name") for t in TYPES.values()}


def parameter_from_dict(document: Mapping[str, Any]) -> Parameter:
    """Build a parameter from its document, the inverse of `Space.to_dict`."""
    if not isinstance(document, Mapping):
        raise InvalidSpace(f"a parameter must be a table with name and type, not {document!r}")
    type_name = document.get("type")
    if not isinstance(type_name, str) or type_name not in TYPES:
        raise InvalidSpace(f"a parameter's type must be one of {list(TYPES)}, not {type_name!r}")
    allowed = ("name", *FIELDS[type_name])
    given = {key: value for key, value in document.items() if key != "type"}
    unknown = [key for key in given if key not in allowed]
    missing = [key for key in allowed if key not in given and key != "log"]
    if unknown or missing:
        raise InvalidSpace(
            f"a parameter of type {type_name!r} takes {list(allowed)}: "
            + "; ".join(f"{what} {keys}" for what, keys in (("unknown", unknown), ("missing", missing)) if keys)
        )
    parameter: Parameter = TYPES[type_name](**given)
    return parameter
