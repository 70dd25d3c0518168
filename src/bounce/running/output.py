"""Output: what a program printed, and the value in it.

The value is the last line of standard output that is one. Only the end of a file is read, so a program may print any
amount.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from bounce.errors import EvaluationFailed, InvalidTell
from bounce.text import number
from bounce.trial import finite

SEARCHED = 1024 * 1024  # bytes at the end of standard output that are searched for the value
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")  # control characters except tabs
BINARY = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # control characters that no terminal needs
QUOTED_LINES, QUOTED_CHARACTERS = 10, 1500  # how much of standard error a failure quotes


def _last(file: IO[bytes], most: int) -> tuple[bytes, bool]:
    """Return the last bytes of a file, and whether that is the whole file."""
    size = os.fstat(file.fileno()).st_size
    start = max(0, size - most)
    # pread does not move the position, for a daemon that still writes
    return os.pread(file.fileno(), size - start, start), start == 0


def end_of(err: IO[bytes]) -> str:
    """Return the end of standard error, as a message quotes it; nothing if there was none."""
    lines = _last(err, 4 * QUOTED_CHARACTERS)[0].decode("utf-8", "replace").splitlines()
    text = "\n".join(lines[-QUOTED_LINES:]).strip()
    if len(text) > QUOTED_CHARACTERS:
        text = "…" + text[-QUOTED_CHARACTERS:]
    return f"; its standard error ends with:\n{text}" if text else ""


def value_of(out: IO[bytes]) -> tuple[float, dict[str, float]]:
    """Return the value that was printed last, and other numbers by name; fail with the reason if there is no value."""
    end, whole = _last(out, SEARCHED + 1)  # one more byte, to see whether a line begins after it
    lines = [line.decode("utf-8", "replace").strip(" \t\v\f") for line in end.splitlines()]
    if not whole:
        del lines[0]  # its beginning is missing
    lines = [line for line in lines if line]
    for line in reversed(lines):
        printed = _printed(line) if "\ufffd" not in line and not CONTROL.search(line) else None
        if printed is not None:
            if 2 * sum("\ufffd" in other and bool(BINARY.search(other)) for other in lines) > len(lines):
                raise EvaluationFailed(
                    f"the command's standard output is not text, so the line {_short(line)} in it is no value"
                )
            try:
                return finite(printed), _beside(lines)
            except InvalidTell:
                raise EvaluationFailed(
                    f"the command's value must be a finite number, but it printed {_short(line)}"
                ) from None
    if whole and not lines:
        raise EvaluationFailed("the command printed nothing; it must print its value on standard output")
    where = "no line" if whole else f"no whole line in the last {SEARCHED // 1024} KiB"
    last = f"; the last one is {_short(lines[-1])}" if lines else ""
    raise EvaluationFailed(f"{where} of the command's standard output is a number{last}")


def _beside(lines: Sequence[str]) -> dict[str, float]:
    """Return the numbers that were printed by name, the last one of each: in JSON objects, or as `strength = 31.2`."""
    found: dict[str, float] = {}
    for line in lines:
        if line.startswith("{"):
            with suppress(ValueError, RecursionError, OverflowError):
                document = json.loads(line)
                found |= {
                    name: float(x)
                    for name, x in document.items()
                    if name != "value" and isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
                }
            continue
        name, equals, rest = line.partition("=")
        given = number(rest) if equals else None
        if given is not None and math.isfinite(given):
            found[name.strip()] = given
    return found


def _printed(line: str) -> float | None:
    """Return the value in a line: NaN if it is not a number, None if the line has no value."""
    if not line.startswith("{"):
        return number(line)
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if "value" not in document:
        return None
    value = document["value"]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _short(line: str) -> str:
    return repr(line if len(line) <= 100 else line[:100] + "…")
