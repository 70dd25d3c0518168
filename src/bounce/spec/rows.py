"""Rows: a CSV file as rows of cells by column, for one space.

Column names of facts are read in any case. A column that is neither a fact nor a parameter is a note. A header with a
mistake, and a row that does not fit it, are refused with their lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from bounce.errors import InvalidPoint, InvalidTell
from bounce.spaces.kinds import Parameter
from bounce.spaces.leaves import leaves
from bounce.spaces.space import Space
from bounce.spec.cells import begins, choices_of, parsed
from bounce.spec.dialect import decimal_mark, separator
from bounce.text import did_you_mean, meant, written
from bounce.trial import FACTS, column

MISTYPED = 0.8  # how alike two names are, from 0 to 1, if one is probably the other, mistyped


@dataclass(frozen=True)
class Rows:
    """A CSV file that is being read, for one space."""

    source: Path | str | bytes
    space: Space
    name: str = "the table"

    def _error(self, row: int | None, sentence: str) -> InvalidTell:
        name = str(self.source) if isinstance(self.source, Path) else self.name
        return InvalidTell(f"{name}{'' if row is None else f', row {row}'}: {sentence}")

    @cached_property
    def _parameters(self) -> dict[str, Parameter]:
        return {column(parameter.name): parameter for parameter in leaves(self.space)}

    @cached_property
    def _outcomes(self) -> list[str]:
        return [limit.name for limit in self.space.limits]

    @cached_property
    def _choices(self) -> dict[str, dict[str, Any]]:
        """By column, the choices by what is written for them; the first of those that are written alike."""
        return {
            name: {written(value): value for value in reversed(choices_of(parameter))}
            for name, parameter in self._parameters.items()
        }

    @cached_property
    def _separator(self) -> str:
        names = {name.casefold() for name in ("id", *FACTS, *self._outcomes, *self._parameters)}
        return separator(self._text, names)

    @cached_property
    def _text(self) -> str:
        """Return the text, without the byte-order mark that spreadsheets write."""
        content = self.source
        if isinstance(content, Path):
            try:
                content = content.read_bytes()
            except (OSError, ValueError) as error:
                said = getattr(error, "strerror", None) or error
                raise self._error(None, f"the file cannot be read: {said}") from None
        if isinstance(content, str):
            return content.removeprefix("\ufeff")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            row = content.count(b"\n", 0, error.start) + 1
            raise self._error(row, "the table must be UTF-8; save it as 'CSV UTF-8'") from None

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not empty, each with its first line."""
        reader = csv.reader(io.StringIO(self._text, newline=""), delimiter=self._separator, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._error(line, f"this is not valid CSV: {error}") from None
            if any(cell.strip() for cell in row):
                yield line, row

    def _rows(self, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield each row with its cells by column; refuse a header without a column that is needed.

        Spaces around a cell do not count, except in the columns of parameters, whose choices may have them.
        """
        lines = self._lines()
        first, given = next(lines, (None, []))
        if first is None:
            raise self._error(
                None, f"the table is empty; it needs the columns {' and '.join(needed or self._parameters)}"
            )
        header = [self._column(name) for name in given]
        for name in header:
            if name and header.count(name) > 1:
                raise self._error(first, f"the column {name!r} appears twice")
        self._check_names(first, header, needed)
        marks = dict[str, tuple[int, str]]()
        for line, row in lines:
            row = row if any(cell.strip() for cell in row[len(header) :]) else row[: len(header)]
            if len(row) != len(header):
                commas = self._separator == "," and len(row) > len(header)
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                hint = "; where commas separate the columns, numbers need a decimal point" if commas else ""
                raise self._error(line, f"the row has {fields}, but the header has {len(header)}{hint}")
            cells = {name: cell for name, cell in zip(header, row, strict=True) if name}
            cells = {name: cell if name in self._parameters else cell.strip() for name, cell in cells.items()}
            if self._separator != ",":
                cells = {name: self._with_point(line, name, cell, marks) for name, cell in cells.items()}
            yield line, cells

    def _with_point(self, line: int, name: str, cell: str, marks: dict[str, tuple[int, str]]) -> str:
        """Return a number with a decimal point; refuse two kinds of decimals in one table, as `marks` shows."""
        mark = decimal_mark(cell) if name in self._numeric and cell.strip() not in self._choices.get(name, ()) else None
        if mark is None:
            return cell
        marks.setdefault(mark, (line, cell))
        if len(marks) > 1:
            point, (row, other) = marks["."], marks[","]
            raise self._error(
                line,
                f"{other!r} in row {row} has a decimal comma, and {point[1]!r} in row {point[0]} a point: write all "
                "numbers alike, without separators of thousands",
            )
        return cell.replace(",", ".")

    @cached_property
    def _numeric(self) -> frozenset[str]:
        """The columns that may have numbers."""
        types = ("real", "integer", "ordinal", "categorical")
        of_points = [name for name, parameter in self._parameters.items() if parameter.type in types]
        return frozenset({"value", "sem", *self._outcomes, *of_points})

    def _column(self, given: str) -> str:
        """Return the name of a column: that of a parameter exactly, that of a fact in any case."""
        name = given if given in self._parameters else given.strip()
        return name.lower() if name.lower() in ("id", *FACTS) and name not in self._parameters else name

    def _check_names(self, first: int, header: Sequence[str], needed: Sequence[str]) -> None:
        """Refuse a header without a column that is needed, or with a column that is almost a parameter."""
        others = [name for name in header if name and name not in self._known]
        absent = [name for name in self._parameters if name not in header]
        named = {given: name for name in reversed(absent) for given in reversed(others) if begins(given, name)}
        wrong = [f"{given!r} must be called {named[given]!r}" for given in others if given in named]
        if wrong:
            more = "" if len(wrong) == 1 else f", {', '.join(wrong[1:])}: columns have the names of their parameters"
            raise self._error(first, f"the column {wrong[0]}{more or ', the name of the parameter'}")
        missing = [name for name in (*needed, *(self._outcomes if needed else ())) if name not in header]
        listed = f"the columns are {', '.join(filter(None, header))}"
        if missing:
            kind = " of an outcome" if missing[0] in self._outcomes and missing[0] not in needed else ""
            near = meant(missing[0], others)
            hint = f"; if it is the column {near!r}, rename it" if near else ""
            raise self._error(first, f"the column {missing[0]!r}{kind} is missing{hint}; {listed}")
        if not needed and not any(name in header for name in self._parameters):
            raise self._error(first, f"no column is a parameter ({', '.join(self._parameters)}); {listed}")
        for given in others:  # as a note, a mistyped parameter would be overlooked
            if get_close_matches(given.casefold(), [name.casefold() for name in absent], n=1, cutoff=MISTYPED):
                said = f"the column {given!r} is no parameter{did_you_mean(given, absent)}"
                raise self._error(first, f"{said} If it is a note, give it a name that is less alike")

    @cached_property
    def _known(self) -> frozenset[str]:
        """The columns that are no notes."""
        return frozenset({"id", *FACTS, *(["feasible", *self._outcomes] if self._outcomes else []), *self._parameters})

    def _notes(self, cells: Mapping[str, str]) -> dict[str, str]:
        return {name: cell for name, cell in cells.items() if cell and name not in self._known}

    def _settings(self, line: int, cells: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the parameters in a row; an empty cell has none."""
        point = {}
        for name, parameter in self._parameters.items():
            cell = cells.get(name, "")
            if name in cells and cell in self._choices[name]:  # as an empty one may be
                point[parameter.name] = self._choices[name][cell]
            elif cell.strip():
                try:
                    point[parameter.name] = parsed(parameter, cell.strip())
                except InvalidPoint as error:
                    raise self._error(line, str(error)) from None
        return point
