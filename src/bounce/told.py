"""What a caller tells, checked: one or several, and finite numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from bounce.errors import InvalidTell


def is_single(trials: object) -> bool:
    """Say whether one trial or id was given, rather than several."""
    if isinstance(trials, np.ndarray):
        return trials.ndim == 0
    return not isinstance(trials, Sequence) or isinstance(trials, str | bytes)


def listed(values: Any) -> list[Any]:
    """Return several values as a list, or say that they have no order."""
    unordered = isinstance(values, str | bytes | Mapping | Set)
    zero_dimensional = isinstance(values, np.ndarray) and values.ndim == 0
    if not isinstance(values, Iterable) or unordered or zero_dimensional:
        raise InvalidTell(f"several trials need a list of values, not {values!r}")
    return list(values)


def finite(value: Any) -> float:
    """Return a value as a finite float, or say that it is none."""
    try:
        plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(plain, str | bytes | complex):
            raise TypeError
        number = float(plain)
    except Exception:  # whatever a foreign object's conversion raises
        raise InvalidTell(f"a value must be a finite number, not {value!r}") from None
    if not math.isfinite(number):
        raise InvalidTell(f"a value must be a finite number, not {number!r}")
    return number + 0.0  # a negative zero is a zero
