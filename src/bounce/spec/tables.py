"""Tables: trials out, results in.

A table has a row for each trial: its id, a column for each parameter, then what is known about it
(`bounce.trial.FACTS`). Values are written exactly: a string unchanged, a number so that it reads back as the same
number. Column names are read in upper or lower case.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bounce.errors import InvalidInput, InvalidTell
from bounce.optimizer.ledger import Outcome
from bounce.text import number, written
from bounce.trial import FACTS, STATES, Trial, column

READ = ("id", "value", "state", "error")


def to_csv(trials: Sequence[Trial], facts: Sequence[str] = FACTS) -> str:
    """Return trials as CSV with Unix line ends, and a column for each parameter and each fact."""
    points = {name: [written(x) for x in values] for name, values in _points(trials).items()}
    others = {
        fact: ["" if x is None else written(x) for x in (getattr(trial, fact) for trial in trials)]
        for fact in ("id", *facts)
    }
    columns = {"id": others.pop("id")} | points | others
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def form(trials: Sequence[Trial]) -> str:
    """Return trials as CSV to fill in: the last column, `value`, is empty."""
    return to_csv(trials, ["value"])


def to_json(trials: Sequence[Trial]) -> str:
    """Return trials as a JSON list of objects, one in each line."""
    return "[" + ",".join("\n" + json.dumps(asdict(trial)) for trial in trials) + "\n]\n"


def to_parquet(trials: Sequence[Trial], path: Path) -> None:
    """Write trials as a Parquet file; a column with both numbers and strings becomes strings."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InvalidInput("Parquet needs pyarrow: pip install 'bounce-bo[parquet]'") from None
    empty = {
        "value": pa.float64(),
        "acquisition": pa.float64(),
        "seconds_eval": pa.float64(),
        "error": pa.string(),
    }
    columns = {"id": [trial.id for trial in trials]} | {
        column: values if _uniform(values) else [written(x) for x in values]
        for column, values in _points(trials).items()
    }
    columns |= {fact: [getattr(trial, fact) for trial in trials] for fact in FACTS}
    content = io.BytesIO()
    try:
        arrays = {column: pa.array(values, type=empty.get(column)) for column, values in columns.items()}
        pq.write_table(pa.table(arrays), content)
        path.write_bytes(content.getvalue())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be written: {error}") from None


def results(source: Path | str | bytes, trials: Sequence[Trial], *, name: str = "the table") -> list[Outcome]:
    """Read the results of pending trials from CSV: a file, or its text with a name for messages.

    The columns `id` and `value` are required, `state` and `error` are optional, all others are ignored. A trial has
    failed if its value or its state is `failed`. A row without a value is still pending and is left out. If any row has
    a mistake, no results are returned.
    """
    if isinstance(source, Path):
        name = str(source)
        try:
            source = source.read_bytes()
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise InvalidTell(f"{name}: the file cannot be read: {said}") from None
    reader = _Reader(name, {trial.id: trial for trial in trials})
    return reader.results(reader.text(source))


def _points(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    names = list(trials[0].point) if trials else []
    return {column(name): [trial.point[name] for trial in trials] for name in names}


def _quoted(text: str) -> str:
    if text != text.strip() or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _uniform(values: Sequence[Any]) -> bool:
    """Return whether a Parquet column can hold the values unchanged."""
    kinds = {type(value) for value in values if value is not None}
    large = int in kinds and any(abs(value) >= 2**53 for value in values if type(value) is int)
    return not large and (len(kinds) == 1 or kinds == {int, float})


@dataclass(frozen=True)
class _Reader:
    """A table that is being read."""

    name: str
    trials: dict[int, Trial]

    def error(self, row: int | None, sentence: str) -> InvalidTell:
        return InvalidTell(f"{self.name}{'' if row is None else f', row {row}'}: {sentence}")

    def text(self, content: str | bytes) -> str:
        """Return the text, without the byte-order mark that spreadsheets write."""
        if isinstance(content, str):
            return content.removeprefix("\ufeff")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            row = content.count(b"\n", 0, error.start) + 1
            raise self.error(row, "the table must be UTF-8; save it as 'CSV UTF-8'") from None

    def rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not empty, each with its first line."""
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self.error(line, f"this is not valid CSV: {error}") from None
            if any(cell.strip() for cell in row):
                yield line, [cell.strip() for cell in row]

    def results(self, text: str) -> list[Outcome]:
        """Return the results of all rows; refuse the first mistake."""
        rows = self.rows(text)
        line, given = next(rows, (None, []))
        header = [name.lower() if name.lower() in READ else name for name in given]
        if line is None:
            raise self.error(None, "the table is empty; it needs the columns id and value")
        self._check_header(line, header)
        told: list[Outcome] = []
        seen: dict[int, int] = {}
        for line, row in rows:
            if len(row) != len(header):
                hint = "; numbers need a decimal point, not a comma" if len(row) > len(header) else ""
                raise self.error(line, f"the row has {len(row)} fields, but the header has {len(header)}{hint}")
            cells = {name: row[header.index(name)] if name in header else "" for name in READ}
            trial = self._trial(line, cells["id"])
            if trial.id in seen:
                raise self.error(line, f"trial {trial.id} is already in row {seen[trial.id]}")
            seen[trial.id] = line
            result = self._result(line, trial, cells)
            if result is not None:
                told.append(result)
        if not told:
            what = "no row has a value yet" if seen else "the table has no rows below the header"
            raise self.error(None, f"{what}; write a number or 'failed' in the column value")
        return told

    def _check_header(self, line: int, header: list[str]) -> None:
        for name in READ:
            if header.count(name) > 1:
                raise self.error(line, f"the column {name!r} appears twice")
        for name in ("id", "value"):
            if name not in header:
                for separator, said in ((";", "semicolons"), ("\t", "tabs")):
                    if any(separator in cell for cell in header):
                        raise self.error(line, f"the columns are separated by {said}: save the table with commas")
                raise self.error(line, f"the column {name!r} is missing; the columns are {', '.join(header)}")

    def _trial(self, line: int, cell: str) -> Trial:
        if not re.fullmatch(r"\d{1,18}", cell, re.ASCII):
            raise self.error(line, f"an id must be the number of a trial, not {cell!r}")
        if int(cell) not in self.trials:
            raise self.error(line, f"trial {cell} does not exist")
        return self.trials[int(cell)]

    def _result(self, line: int, trial: Trial, cells: dict[str, str]) -> Outcome | None:
        """Return the result in a row; None if the trial is still pending."""
        value, state = cells["value"], cells["state"].lower()
        if state not in ("", *STATES):
            raise self.error(line, f"a state must be pending, done or failed, not {cells['state']!r}")
        failed = value.lower() == "failed" or (state == "failed" and not value)
        if not value and not failed:
            if state == "done":
                raise self.error(line, f"trial {trial.id} is done, so it must have a value")
            if cells["error"]:
                raise self.error(
                    line, f"trial {trial.id} has an error but no value; if it failed, write 'failed' as its value"
                )
            return None
        if state == ("done" if failed else "failed"):
            raise self.error(line, f"trial {trial.id} cannot be {state} with the value {value!r}")
        found = None if failed else self._number(line, value)
        if trial.state != "pending":
            raise self.error(line, f"trial {trial.id} is already {trial.state} and cannot be told again")
        return Outcome(trial.id, found, (cells["error"] or None) if failed else None)

    def _number(self, line: int, cell: str) -> float:
        found = number(cell)
        if found is not None and math.isfinite(found):
            return found + 0.0  # a negative zero becomes zero
        comma = number(cell.replace(",", ".", 1)) if "," in cell else None
        hint = f": write a decimal point, {cell.replace(',', '.')}" if comma is not None else ""
        raise self.error(line, f"a value must be a finite number or 'failed', not {cell!r}{hint}")
