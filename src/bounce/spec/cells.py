"""Cells: what the text in a cell of a table stands for.

Spreadsheets write numbers with fewer digits than they read, and people write units, other cases and decimal commas.
What is understood is taken, and what is not is refused with what would be right.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bounce.errors import InvalidPoint
from bounce.spaces.kinds import Parameter
from bounce.text import did_you_mean, number, written

ROUNDED = 5.1e-6  # relative: numbers that agree in the six digits that spreadsheets and tables show
CLOSE = 1e-4  # as a share of the range: in a narrow range, six digits tell settings apart
THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[.,'’\s]\d{3})+(?:[.,]\d*)?", re.ASCII)
# What spreadsheets make of true and false: in English, German, French, Spanish and Italian.
WORDS = dict.fromkeys(("true", "wahr", "vrai", "verdadero", "vero"), True) | dict.fromkeys(
    ("false", "falsch", "faux", "falso"), False
)
TRUTHS = WORDS | dict.fromkeys(("yes", "1", "1.0"), True) | dict.fromkeys(("no", "0", "0.0"), False)


def parsed(parameter: Parameter, cell: str) -> Any:
    """Return the native value that a text stands for; refuse one that the parameter does not take."""
    if parameter.type == "binary":
        if cell.lower() in TRUTHS:
            return TRUTHS[cell.lower()]
        raise InvalidPoint(f"{parameter.name!r} must be true or false, not {cell!r}", parameter=parameter.name)
    if parameter.type in ("permutation", "subset", "mixture"):
        try:
            value = json.loads(cell)
        except ValueError:
            value = cell
        return parameter.decode(parameter.encode(value))
    if parameter.type in ("real", "integer"):
        found = number(cell)
        if found is None:
            raise InvalidPoint(
                f"{parameter.name!r} must be a number, not {cell!r}{number_hint(cell)}", parameter=parameter.name
            )
        found = int(found) if parameter.type == "integer" and found.is_integer() else found
        code = parameter.encode(found)
        if getattr(parameter, "steps", None) is not None:
            return parameter.decode(code)
        return int(found) if parameter.type == "integer" else found
    return _choice(parameter, cell)


def _choice(parameter: Parameter, cell: str) -> Any:
    """Return the choice that a text stands for: first as it is written, then as a number or a truth value."""
    values = choices_of(parameter)
    for value in values:
        if written(value) == cell:
            return value
    found = number(cell)
    for value in values:
        if found is not None and isinstance(value, int | float) and not isinstance(value, bool) and value == found:
            return value
    choices = [written(value) for value in values]
    if cell.lower() in WORDS and cell.lower() not in [value.lower() for value in values if isinstance(value, str)]:
        for value in values:
            if value is WORDS[cell.lower()]:
                return value
    raise InvalidPoint(
        f"{parameter.name!r} must be one of {', '.join(choices)}, not {cell!r}{did_you_mean(cell, choices)}",
        parameter=parameter.name,
    )


def differs(parameter: Parameter, used: Any, asked: Any) -> bool:
    """Return whether a setting is not the one that was asked for; spreadsheets round numbers when they save them."""
    if parameter.type == "permutation":
        return bool(used != asked)
    moved = abs(parameter.encode(used) - parameter.encode(asked))
    if parameter.type == "real":
        return moved > (CLOSE if abs(used - asked) <= ROUNDED * abs(asked) else 0)
    return moved > 0


def number_hint(cell: str) -> str:
    """Return a hint about a number with a decimal comma, or with separators of thousands."""
    point = cell.replace(",", ".", 1)
    if "," in cell and number(point) is not None:
        return f": write a decimal point, {point}"
    return ": write it without separators of thousands" if THOUSANDS.fullmatch(cell) else ""


def begins(given: str, name: str) -> bool:
    """Return whether a column is named like a parameter, in another case or with a unit behind it."""
    rest = given.casefold().removeprefix(name.casefold())
    return len(rest) < len(given) and re.fullmatch(r"\s*([\[(/].*)?", rest) is not None


def choices_of(parameter: Parameter) -> list[Any]:
    """Return the values of an ordinal or categorical parameter; none of any other."""
    listed = parameter.type in ("ordinal", "categorical")
    return [parameter.decode(code) for code in parameter.all_codes()] if listed else []
