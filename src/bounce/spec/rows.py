"""Rows: a CSV file as rows of cells by column, for one space.

Column names of facts are read in any case. A column that is neither a fact nor a parameter is a note. A header with a
mistake, and a row that does not fit it, are refused with their lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bounce.errors import InvalidPoint, InvalidTell
from bounce.spaces.kinds import Parameter
from bounce.spaces.leaves import leaves
from bounce.spaces.space import Space
from bounce.spec.cells import begins, choices_of, parsed
from bounce.text import written
from bounce.trial import FACTS, column


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
        reader = csv.reader(io.StringIO(self._text(), newline=""), strict=True)
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
        for line, row in lines:
            row = row if any(cell.strip() for cell in row[len(header) :]) else row[: len(header)]
            if len(row) != len(header):
                hint = "; numbers need a decimal point, not a comma" if len(row) > len(header) else ""
                raise self._error(line, f"the row has {len(row)} fields, but the header has {len(header)}{hint}")
            cells = {name: cell for name, cell in zip(header, row, strict=True) if name}
            yield line, {name: cell if name in self._parameters else cell.strip() for name, cell in cells.items()}

    def _column(self, given: str) -> str:
        """Return the name of a column: that of a parameter exactly, that of a fact in any case."""
        name = given if given in self._parameters else given.strip()
        return name.lower() if name.lower() in ("id", *FACTS) and name not in self._parameters else name

    def _check_names(self, first: int, header: Sequence[str], needed: Sequence[str]) -> None:
        """Refuse a header without a column that is needed, or with a column that is almost a parameter."""
        for name in self._parameters:
            near = [given for given in header if name not in header and begins(given, name)]
            if near:
                raise self._error(first, f"the column {near[0]!r} must be called {name!r}, the name of the parameter")
        missing = [f"the column {name!r} is missing" for name in needed if name not in header]
        if needed and not missing:
            missing = [f"the column {name!r} of an outcome is missing" for name in self._outcomes if name not in header]
        if not needed and not any(name in header for name in self._parameters):
            missing = [f"no column is a parameter ({', '.join(self._parameters)})"]
        if missing:
            for separator, said in ((";", "semicolons"), ("\t", "tabs")):
                if any(separator in cell for cell in header):
                    raise self._error(first, f"the columns are separated by {said}: save the table with commas")
            raise self._error(first, f"{missing[0]}; the columns are {', '.join(filter(None, header))}")

    def _notes(self, cells: Mapping[str, str]) -> dict[str, str]:
        known = ("id", *FACTS, *(["feasible", *self._outcomes] if self._outcomes else []))
        return {
            name: cell for name, cell in cells.items() if cell and name not in known and name not in self._parameters
        }

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
