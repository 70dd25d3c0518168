"""Salvage: what is intact in a damaged study file.

The invariant: the file is only copied. A trial counts as intact if it has its digest, or, in a file of an earlier
format, if its values fit the space and its readable point fits its codes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bounce.errors import InvalidInput
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.documents import VERSION, record_to_dict
from bounce.optimizer.state import Record
from bounce.optimizer.upgrades import upgraded, upgraded_trial
from bounce.spaces.space import Space
from bounce.study import database, rows, schema
from bounce.study.history import Entry
from bounce.study.storage import BOTH, CHANGING, FIXED, JSON, PLAIN
from bounce.trial import Trial

MISSES = 1000  # ids in a row without a readable trial, after which no more are expected
MOST = 10**7  # ids at most: a damaged one may be any number
FATAL = (sqlite3.Error, rows.Unfit, InvalidInput, KeyError, TypeError, ValueError, OverflowError, RecursionError)


@dataclass
class Saved:
    """What could be read in a damaged study."""

    space: Space
    options: dict[str, Any]
    head: dict[str, Any] | None = None
    """The optimizer's own documents, if they are intact."""
    trials: dict[int, dict[str, Any]] = field(default_factory=dict)
    history: list[Entry] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    """The ids of trials that were there and could not be read."""

    def optimizer(self) -> tuple[Bounce, bool]:
        """Return an optimizer with the same trials, and whether it is the one that was there.

        The ids stay what they were: a trial that is lost keeps its place, outside the space.
        """
        n = max([*self.trials, *self.lost], default=-1) + 1
        trials = [self.trials.get(i) or _placeholder(i, self.space) for i in range(n)]
        if self.head is not None:
            with suppress(*FATAL):
                return Bounce.from_state_dict(self.head | {"trials": trials}), not self.lost
        first = Bounce(self.space, **self.options).state_dict()
        first["head"]["design"]["used"] = first["head"]["design"]["size"]
        first["tells"] = 1 + max((trial["told"] for trial in trials if trial["told"] is not None), default=-1)
        known = [trial | {"stage": 0, "restart": 0} for trial in trials]
        return Bounce.from_state_dict(first | {"trials": known}), False


def _placeholder(i: int, space: Space) -> dict[str, Any]:
    """Return the document of a trial of which nothing is known."""
    record = Record(
        Trial(i, {}, state="outside", notes={"note": "lost: its row in the file was damaged"}),
        np.zeros(len(space)),
        batch=i,
        was="withdrawn",
    )
    return record_to_dict(record)


@contextmanager
def _copy(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a copy of a study, without what lies beside it."""
    with tempfile.TemporaryDirectory(prefix="bounce-") as folder:
        copy = Path(folder, "copy.db")
        shutil.copyfile(path, copy)
        connection = database.connect(str(copy))
        database.hurry(connection)
        try:
            yield connection
        finally:
            connection.close()


def salvaged(path: Path) -> Saved | None:
    """Return what is intact in a study; None if its space or its options are lost."""
    with _copy(path) as connection:
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            version = version if 0 < version <= len(schema.MIGRATIONS) else len(schema.MIGRATIONS)
            saved = _head(connection, version)
            _take_trials(connection, version, saved)
            _take_history(connection, version, saved)
        except FATAL:
            return None
    return saved


def _head(connection: sqlite3.Connection, version: int) -> Saved:
    """Return what the row of the study says."""
    names = rows.HEAD if version >= schema.DIGESTS else (*FIXED, *CHANGING)
    digest = ", digest" if version >= schema.DIGESTS else ""
    cells = list(connection.execute(f"SELECT {', '.join(names)}{digest} FROM study").fetchone())
    whole = rows.intact(cells[:-1], cells[-1]) if digest else True
    row = dict(zip(names, cells, strict=False))
    state = {name: row[name] if name in PLAIN else _loaded(row[name]) for name in (*FIXED, *CHANGING)}
    state = dict(upgraded({**state, "trials": []}))
    optimizer = Bounce(Space.from_dict(state["space"]), **state["options"])  # refuses what does not fit
    return Saved(optimizer.space, optimizer.options, state | {"version": VERSION} if whole else None)


def _loaded(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else None


def _take_trials(connection: sqlite3.Connection, version: int, saved: Saved) -> None:
    """Read the trials that are intact, one by one, since a damaged page hides only some of them."""
    last = _last(connection, "trials")
    i = misses = 0
    while misses < MISSES or i <= last:
        trial = _trial(connection, version, i, saved)
        misses = misses + 1 if trial is None else 0
        if trial is not None:
            saved.trials[i] = trial
        i += 1
    saved.lost = sorted(set(range(max([last, *saved.trials]) + 1)) - set(saved.trials))


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the largest id in a table, -1 if it cannot be read."""
    with suppress(sqlite3.Error):
        (last,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()
        return min(last, MOST) if isinstance(last, int) else -1
    return -1


def _trial(connection: sqlite3.Connection, version: int, i: int, saved: Saved) -> dict[str, Any] | None:
    """Return the document of a trial; None if it cannot be read or is not what was written."""
    try:
        if version >= schema.DIGESTS:
            names: tuple[str, ...] = rows.columns(version)
            query = f"SELECT {', '.join(names)}, digest FROM trials WHERE id = ?"
            *cells, stored = connection.execute(query, (i,)).fetchone()
            if not rows.intact(cells, stored):
                return None
        else:
            cursor = connection.execute("SELECT * FROM trials WHERE id = ?", (i,))
            names, cells = tuple(column[0] for column in cursor.description), list(cursor.fetchone())
        trial = dict(zip(names, cells, strict=True))
        for name in (*JSON, "point"):
            if trial.get(name) is not None:
                trial[name] = json.loads(trial[name])
        document = upgraded_trial(trial, version)
        codes = np.array([document["codes"]], dtype=np.float64)
        if document["state"] != "outside":
            (point,) = saved.space.decode(codes) if saved.space.holds(codes) else ({},)
            given = {name: x for name, x in point.items() if name not in (document["free"] or ())}
            if given != {name: trial["point"].get(name) for name in given}:
                return None
    except FATAL:
        return None
    return document


def _take_history(connection: sqlite3.Connection, version: int, saved: Saved) -> None:
    """Read the changes that are intact."""
    columns = ", ".join(("id", *rows.ENTRY))
    digests = version >= schema.DIGESTS
    for i in range(1, _last(connection, "history") + 1 if version > 1 else 1):
        try:
            query = f"SELECT {columns}{', digest' if digests else ''} FROM history WHERE id = ?"
            cells = list(connection.execute(query, (i,)).fetchone())
            if digests and not rows.intact(cells[:-1], cells[-1]):
                continue
            entry = dict(zip(rows.ENTRY, cells[1:], strict=False))
            loaded = {name: x if name not in BOTH or x is None else json.loads(x) for name, x in entry.items()}
            saved.history.append(Entry(**loaded))
        except FATAL:
            continue
