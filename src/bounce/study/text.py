"""Text: how values are written for other programs and people, and how numbers are read back from them."""

from __future__ import annotations

import json
import re

from bounce.parameters import Scalar

_FINITE = r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_NUMBER = re.compile(rf"[+-]?(?:{_FINITE}|inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def written(value: Scalar) -> str:
    """Return a string as it is, and any other value as its JSON text: the shortest that gives the same number."""
    return value if isinstance(value, str) else json.dumps(value)


def number(text: str) -> float | None:
    """Return the number a text is, perhaps NaN or infinite; None if it is none.

    Stricter than `float`: decimal or scientific notation in ASCII digits, without underscores.
    """
    stripped = text.strip()
    return float(stripped) if _NUMBER.fullmatch(stripped) else None
