"""Shorthand: one table of a spec that describes several parameters, and the arguments that flags stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bounce.errors import InvalidOption, InvalidSpace, quoted
from bounce.optimizer.options import whole

MOST = 10_000  # parameters that one table may describe
SEVERAL = ("names", "count")
FLAGS = ("on", "off")
NAME = "{name}"  # in on and off, the name of the parameter


def spread(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one table per parameter, each with its own name; refuse names that cannot be."""
    names = _names(table)
    rest = {key: value for key, value in table.items() if key not in ("name", *SEVERAL, *FLAGS)}
    flags = {key: table[key] for key in FLAGS if key in table}
    for key, text in flags.items():
        if not isinstance(text, str) or "\0" in text:
            raise InvalidSpace(f"{names[0]!r}: {key} must be a string, not {quoted(text)}", key=key)
        if text and NAME not in text and len(names) > 1:
            raise InvalidSpace(
                f"{len(names)} parameters would have the same {key!r}, {text!r}: write {NAME} where their names "
                f"differ, as in '-f{NAME}'",
                key=key,
            )
    return [{"name": name} | rest | {key: text.replace(NAME, name) for key, text in flags.items()} for name in names]


def _names(table: Mapping[str, Any]) -> list[str]:
    """Return the names of a table's parameters."""
    name, names, count = (table.get(key) for key in ("name", *SEVERAL))
    if names is not None:
        other = next((key for key in ("name", "count") if key in table), None)
        if other is not None:
            raise InvalidSpace(f"a parameter has 'names' or {other!r}, not both", key=other)
        if not isinstance(names, list) or not names or not all(isinstance(item, str) and item for item in names):
            raise InvalidSpace(f"names must be a list of strings that are not empty, not {quoted(names)}", key="names")
        seen: set[str] = set()
        twice = next((item for item in names if item in seen or seen.add(item)), None)  # type: ignore[func-returns-value]
        if twice is not None:
            raise InvalidSpace(f"two parameters are called {twice!r}", key="names")
        found = names
    elif name is None:
        raise InvalidSpace("a parameter lacks 'name'")
    elif not isinstance(name, str) or not name:
        raise InvalidSpace(f"a parameter's name must be a non-empty string, not {quoted(name)}", key="name")
    elif count is None:
        found = [name]
    else:
        try:
            found = [f"{name}{i}" for i in range(1, min(whole("count", count, 1), MOST + 1) + 1)]
        except InvalidOption as error:
            raise InvalidSpace(str(error), key="count") from None
    if len(found) > MOST:
        raise InvalidSpace(f"one table may have at most {MOST:,} parameters", key="count" if names is None else "names")
    return found
