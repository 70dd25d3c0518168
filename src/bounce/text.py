"""Text: how values are written for other programs and people, how numbers and paths are read, which name was meant."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SHORT = 3  # characters of a beginning that stands for a longer name
LONGEST = 2000  # characters of the reason for which a trial failed
_FINITE = r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_NUMBER = re.compile(rf"[+-]?(?:{_FINITE}|inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def written(value: Any) -> str:
    """Return a string as it is, and any other value as JSON: the shortest text that reads back as the same number."""
    return value if isinstance(value, str) else json.dumps(value)


def printable(text: str) -> str:
    """Return a text in one line; characters that would move the cursor or cannot be printed become escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def told(text: object, most: int = LONGEST) -> str:
    """Return a text that can be stored, logged and shown: lines without control characters, and not too many.

    The middle of a longer text is left out, and the text says how long it was.
    """
    whole = str(text)
    start, end = _escaped(whole[:most]), _escaped(whole[-most:])
    if len(whole) <= most and len(start) <= most:
        return start
    note = f"\n[... cut, {len(whole)} characters in all ...]\n"
    half = (most - len(note)) // 2
    return start[:half] + note + end[-half:]


def _escaped(text: str) -> str:
    """Return a text whose control characters are escapes, except for tabs and the ends of lines."""
    return "".join(c if c in "\n\t" else printable(c) for c in text)


def brief(text: str) -> str:
    """Return a text of several lines as one: the first line and the last, which says most about an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join([lines[0], lines[-1]] if len(lines) > 1 else lines)


def number(text: str) -> float | None:
    """Return the number that a text stands for, perhaps NaN or infinite; None if it is not a number.

    Stricter than `float`: decimal or scientific notation in ASCII digits, without underscores.
    """
    stripped = text.strip()
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def as_path(given: object) -> Path | None:
    """Return the path that a text or a path-like object stands for; None if no file can have it."""
    if not isinstance(given, str | os.PathLike):
        return None
    text = os.fspath(given)
    if not isinstance(text, str) or not text or "\0" in text:
        return None
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return None
    return Path(text)


def storable(text: object) -> str:
    """Return a text that every file and terminal can hold: what is not Unicode becomes an escape."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def meant(given: object, names: Iterable[str]) -> str | None:
    """Return the name that may be meant by one that does not exist; None if no name is near."""
    from difflib import get_close_matches

    said = str(given).casefold()
    known = {name.casefold(): name for name in names}
    near = get_close_matches(said, known, n=1)
    if not near:
        near = [name for name in known if min(len(said), len(name)) >= SHORT and _begins_alike(said, name)]
    return known[near[0]] if len(near) == 1 else None


def _begins_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def did_you_mean(given: object, names: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about a name that does not exist: a question about the one that may be meant."""
    name = meant(given, names)
    return otherwise if name is None else f"; did you mean {name!r}?"
