"""Positions: the line of each key of a TOML document.

`tomllib` returns what a document contains, but not where. This module walks through a text that `tomllib` has accepted,
so it need not check for errors, and finds the line of every key. Strings and comments are skipped.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

Path = tuple[str | int, ...]
"""Keys and places in arrays, from the outside in: `("parameters", 2, "low")`."""

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*\'''',
    re.DOTALL,
)
_WORD = re.compile(r"[^\s=.,\[\]{}#]+")
_PLAIN = re.compile(r"[^,\]}#\n]*")


def lines_of(text: str) -> dict[Path, int]:
    """Return the line of every key, table and entry of an array; a table in several parts has the line of the first."""
    return _Walk(text).lines


class _Walk:
    """One walk through a text, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._at = 0
        self._tables: dict[Path, int] = {}  # how many tables the arrays of tables have so far
        here: Path = ()
        while not self._ended():
            if self._text[self._at] == "[":
                here = self._header()
            else:
                self._pair(here)

    def _ended(self) -> bool:
        self._skip(_SPACE)
        return self._at == len(self._text)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match.group()

    def _note(self, path: Path, at: int) -> None:
        self.lines.setdefault(path, bisect_right(self._breaks, at - 1) + 1)

    def _keys(self) -> list[str]:
        """Read a key, dotted or not."""
        keys = []
        while True:
            self._skip(_BLANK)
            if self._text[self._at] in "\"'":
                keys.append(tomllib.loads(f"key = {self._skip(_STRING)}")["key"])
            else:
                keys.append(self._skip(_WORD))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _header(self) -> Path:
        """Read `[a.b]` or `[[a.b]]`, and return the path of the table that begins there."""
        start = self._at
        brackets = 2 if self._text.startswith("[[", start) else 1
        self._at += brackets
        keys = self._keys()
        self._at += brackets
        path: Path = ()
        for place, key in enumerate(keys, start=1):
            path = (*path, key)
            self._note(path, start)
            if brackets == 2 and place == len(keys):
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
                self._note(path, start)
        return path

    def _pair(self, path: Path) -> None:
        """Read `a.b = value`."""
        start = self._at
        for key in self._keys():
            path = (*path, key)
            self._note(path, start)
        self._at += 1
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(_STRING)
        elif opening not in "[{":
            self._skip(_PLAIN)
        else:
            self._at += 1
            self._inside(path, "]" if opening == "[" else "}")

    def _inside(self, path: Path, closing: str) -> None:
        """Read an array or an inline table, after its bracket."""
        entries = 0
        self._skip(_SPACE)
        while self._text[self._at] != closing:
            if closing == "}":
                self._pair(path)
            else:
                self._note((*path, entries), self._at)
                self._value((*path, entries))
            entries += 1
            self._skip(_SPACE)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_SPACE)
        self._at += 1
