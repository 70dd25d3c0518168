"""Choices: a value out of a list, ordered or not, or true and false."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.spaces.kinds import Codes, Kind, Shown, When, check_name, checked_when, plain
from bounce.trial import Scalar

LONGEST_TEXT = 10_000  # characters of one choice: it is stored with every trial that has it


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
        value = plain(item)
        if not isinstance(value, str | int | float | bool | None) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise InvalidSpace(
                f"{name!r}: {what} must be strings, finite numbers, booleans or None, not {quoted(value)}",
                parameter=name,
                key=what,
            )
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise InvalidSpace(
                f"{name!r}: {what} must have at most {LONGEST_TEXT:,} characters each, not {len(value):,}: "
                f"{value[:40]!r}... Use a short name for it, and look it up in the objective",
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


class _Choice(Shown):
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
        given = plain(value)
        try:
            return float(self._code[_scalar_key(given)])  # type: ignore[arg-type]
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


@dataclass(frozen=True, repr=False)
class Ordinal(_Choice):
    """A value out of an ordered list."""

    name: str
    values: Sequence[Scalar]
    when: When = field(default=None, kw_only=True)

    kind: ClassVar[Kind] = Kind.ORDINAL
    type: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "when", checked_when(self.name, self.when))
        object.__setattr__(self, "values", _check_scalars(self.name, "values", self.values))

    @property
    def _scalars(self) -> tuple[Scalar, ...]:
        return self.values  # type: ignore[return-value]


@dataclass(frozen=True, repr=False)
class Categorical(_Choice):
    """A value out of a list without an order."""

    name: str
    choices: Sequence[Scalar]
    when: When = field(default=None, kw_only=True)

    kind: ClassVar[Kind] = Kind.CATEGORICAL
    type: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "when", checked_when(self.name, self.when))
        object.__setattr__(self, "choices", _check_scalars(self.name, "choices", self.choices))

    @property
    def _scalars(self) -> tuple[Scalar, ...]:
        return self.choices  # type: ignore[return-value]


@dataclass(frozen=True, repr=False)
class Binary(Shown):
    """True or False; 0 and 1 are accepted."""

    name: str
    when: When = field(default=None, kw_only=True)

    kind: ClassVar[Kind] = Kind.BINARY
    type: ClassVar[str] = "binary"
    cardinality: ClassVar[int] = 2
    size: ClassVar[float] = 2
    cells: ClassVar[None] = None
    log: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "when", checked_when(self.name, self.when))

    def encode(self, value: Any) -> float:
        """Return 0 or 1."""
        given = plain(value)
        if not isinstance(given, bool | int | float) or given not in (0, 1):
            raise InvalidPoint(f"{self.name!r} must be True or False (or 1 or 0), not {value!r}", parameter=self.name)
        return float(given)

    def decode(self, code: float) -> bool:
        """Return True or False."""
        return bool(code)

    def all_codes(self) -> Codes:
        """Return 0 and 1."""
        return np.array([0.0, 1.0])
