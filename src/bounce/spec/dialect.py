"""Dialects: what separates the columns of a table, and which mark its decimals have.

Where decimals have a comma, spreadsheets separate columns by semicolons or tabs. A table with commas between its
columns has decimal points.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection

SEPARATORS = (",", ";", "\t")
_UNIT = re.compile(r"\s*[\[(/]")
_EXPONENT = r"(?:e[+-]?\d+)?"
_DECIMAL = re.compile(rf"[+-]?\d*([.,])\d+{_EXPONENT}", re.ASCII | re.IGNORECASE)


def separator(text: str, names: Collection[str]) -> str:
    """Return what separates the columns: the mark with which most columns have known names, given in lower case.

    A comma, if no other mark is better.
    """

    def known(mark: str) -> tuple[int, int]:
        header = [cell.strip().casefold() for cell in _header(text, mark)]
        return sum(cell in names or _UNIT.split(cell)[0] in names for cell in header), len(header)

    return max(SEPARATORS, key=known)


def _header(text: str, mark: str) -> list[str]:
    """Return the first row that is not empty."""
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        return next((row for row in rows if any(cell.strip() for cell in row)), [])
    except csv.Error:
        return []


def decimal_mark(cell: str) -> str | None:
    """Return the decimal mark of a number; None without one, or if the cell is no number."""
    found = _DECIMAL.fullmatch(cell.strip())
    return found and found[1]
