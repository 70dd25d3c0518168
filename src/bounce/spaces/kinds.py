"""Kinds: the four sorts of variables that the algorithm tells apart, their codes, and what every parameter answers.

A code is one float per variable. A variable of kind real has codes in [0, 1] on a grid of 2^-52, so that
1 − u is exact and mirroring twice gives u back, bit for bit. Every other kind has codes 0, 1, …, c − 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.trial import Scalar

Codes = NDArray[np.float64]
When = Mapping[str, Any] | tuple[tuple[str, tuple[Scalar, ...]], ...] | None
"""The condition of a parameter: per name of another one, the values with which it is active. Kept as tuples."""

LONGEST_NAME = 1000  # characters: names are in every message, table and log
GRID = 2.0**52


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

    @property
    def when(self) -> When:
        """The values of other parameters with which this one is active; None if it always is."""

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


class Shown:
    """A dataclass whose text leaves out what it does not have."""

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in given if value is not None)})"


def on_grid(u: Codes) -> Codes:
    """Round real codes to the grid on which mirroring is exact."""
    return np.rint(u * GRID) / GRID


def check_name(name: object) -> None:
    """Refuse a name that is not a string, empty or too long."""
    if not isinstance(name, str) or not name:
        raise InvalidSpace(f"a parameter's name must be a string that is not empty, not {name!r}")
    if len(name) > LONGEST_NAME:
        raise InvalidSpace(
            f"a parameter's name must have at most {LONGEST_NAME} characters, not {len(name):,}: {name[:40]!r}..."
        )


def plain(value: object) -> object:
    """Turn a numpy scalar into the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def checked_when(name: str, when: object) -> tuple[tuple[str, tuple[Scalar, ...]], ...] | None:
    """Return the condition of a parameter as tuples; refuse what is not a table of values by name."""
    if when is None:
        return None
    given = dict(when) if isinstance(when, tuple) else when
    if not isinstance(given, Mapping) or not given or not all(isinstance(other, str) for other in given):
        raise InvalidSpace(
            f"{name!r}: when must have the values of other parameters by name, such as {{'kernel': 'rbf'}}, "
            f"not {when!r}",
            parameter=name,
            key="when",
        )
    found: list[tuple[str, tuple[Any, ...]]] = []
    for other, values in given.items():
        several = values if isinstance(values, Iterable) and not isinstance(values, str | Mapping) else [values]
        found.append((other, tuple(plain(value) for value in several)))
        if other == name or not found[-1][1]:
            wrong = "it cannot depend on itself" if other == name else f"{other!r} needs at least one value"
            raise InvalidSpace(f"{name!r}: when is {when!r}, but {wrong}", parameter=name, key="when")
    return tuple(found)
