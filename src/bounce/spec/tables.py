"""Tables: trials as CSV, JSON and Parquet.

A table has a row per trial: its id, a column per parameter, what is known about it (`bounce.trial.FACTS`), its
outcomes, then its notes. Values are written exactly: a string unchanged, whatever a spreadsheet may make of it, a
number so that it reads back as the same number.
"""

from __future__ import annotations

import io
import json
from collections.abc import Container, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bounce.errors import InvalidInput
from bounce.text import written
from bounce.trial import FACTS, Trial, column, outcomes_of, parameters_of

NO_VALUE = object()  # in a column of a parameter that the trial's space did not have


def to_csv(trials: Sequence[Trial], facts: Sequence[str] = FACTS, names: Sequence[str] = ()) -> str:
    """Return trials as CSV with Unix line ends, and a column for each parameter, each fact and each outcome.

    `names` are outcomes that have a column even if no trial has a number for them.
    """
    points = {name: ["" if x is NO_VALUE else written(x) for x in xs] for name, xs in _points(trials).items()}
    others = {
        fact: ["" if x is None else written(x) for x in (getattr(trial, fact) for trial in trials)]
        for fact in ("id", *facts)
    }
    outcomes = {
        name: ["" if x is None else written(x) for x in xs] for name, xs in _outcomes(trials, names, facts).items()
    }
    columns = {"id": others.pop("id")} | points | others | outcomes
    columns |= _notes(trials, columns)
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def form(trials: Sequence[Trial], names: Sequence[str] = ()) -> str:
    """Return trials as CSV to fill in: the last columns, `value` and the outcomes with these names, are empty."""
    return to_csv(trials, ["value"], names)


def to_json(trials: Sequence[Trial]) -> str:
    """Return trials as a JSON list of objects, one in each line."""
    return "[" + ",".join("\n" + json.dumps(asdict(trial)) for trial in trials) + "\n]\n"


def to_parquet(trials: Sequence[Trial], path: Path, *, called: Path | None = None) -> None:
    """Write trials as a Parquet file, which errors may call otherwise.

    A column with both numbers and strings becomes strings.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InvalidInput("Parquet needs pyarrow: pip install 'bounce-bo[parquet]'") from None
    empty = {
        "value": pa.float64(),
        "sem": pa.float64(),
        "acquisition": pa.float64(),
        "seconds_eval": pa.float64(),
        "repeats": pa.int64(),
        "error": pa.string(),
    }
    columns: dict[str, list[Any]] = {"id": [trial.id for trial in trials]} | {
        column: [None if x is NO_VALUE else x if _uniform(values) else written(x) for x in values]
        for column, values in _points(trials).items()
    }
    columns |= {fact: [getattr(trial, fact) for trial in trials] for fact in FACTS}
    columns |= _outcomes(trials, (), FACTS)
    columns |= _notes(trials, columns)
    content = io.BytesIO()
    try:
        empty |= dict.fromkeys(outcomes_of(trials), pa.float64())
        arrays = {column: pa.array(values, type=empty.get(column)) for column, values in columns.items()}
        pq.write_table(pa.table(arrays), content)
        path.write_bytes(content.getvalue())
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{called or path} cannot be written: {said}") from None


def _points(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Return the columns of parameters; a trial of a former space may lack one."""
    return {column(name): [trial.point.get(name, NO_VALUE) for trial in trials] for name in parameters_of(trials)}


def _outcomes(trials: Sequence[Trial], names: Sequence[str], facts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of outcomes, and in a table of all facts whether they keep their limits."""
    found = list(dict.fromkeys([*names, *outcomes_of(trials)]))
    columns: dict[str, list[Any]] = {name: [trial.outcomes.get(name) for trial in trials] for name in found}
    if found and "state" in facts:
        columns["feasible"] = [trial.feasible for trial in trials]
    return columns


def _notes(trials: Sequence[Trial], taken: Container[str]) -> dict[str, list[str]]:
    """Return the columns of notes, except names that a parameter or a fact already has."""
    names = dict.fromkeys(name for trial in trials for name in trial.notes)
    free = [name for name in names if name not in taken and name.lower() not in ("id", *FACTS)]
    return {name: [trial.notes.get(name, "") for trial in trials] for name in free}


def _quoted(text: str) -> str:
    if text != text.strip() or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _uniform(values: Sequence[Any]) -> bool:
    """Return whether a Parquet column can hold the values unchanged."""
    kinds = {type(value) for value in values if value is not None and value is not NO_VALUE}
    large = int in kinds and any(abs(value) >= 2**53 for value in values if type(value) is int)
    return not large and (len(kinds) == 1 or kinds == {int, float})
