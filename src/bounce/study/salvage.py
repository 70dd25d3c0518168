"""Salvage: what is intact in a damaged study file.

The invariant: the file is only copied. A trial counts as intact if it has its digest, or, in a file of an earlier
format, if its values fit the space and its readable point fits its codes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bounce.errors import InvalidInput
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.documents import VERSION, record_to_dict
from bounce.optimizer.state import Record
from bounce.optimizer.upgrades import upgraded, upgraded_trial
from bounce.spaces.space import Space
from bounce.study import database, rows, schema
from bounce.study.digest import total
from bounce.study.history import Entry
from bounce.study.storage import BOTH, CHANGING, FIXED, JSON, PLAIN
from bounce.trial import Trial

MISSES = 1000  # ids in a row without a readable trial, after which no more are expected
MOST = 10**7  # ids at most: a damaged one may be any number
SMALLEST = 64  # bytes of a row, at least: a file has no more rows than its bytes divided by this
POSITION = ("head", "rng")  # where the algorithm stands; without it the search begins again
FATAL = (sqlite3.Error, InvalidInput, KeyError, TypeError, ValueError, OverflowError, RecursionError)
T = TypeVar("T")


@dataclass(frozen=True)
class Lost:
    """The rows of a table that were there and could not be read."""

    ids: list[int]
    certain: bool
    """Whether these are all; otherwise newer ones may be lost too."""


@dataclass
class Saved:
    """What could be read in a damaged study."""

    space: Space
    options: dict[str, Any]
    head: dict[str, Any] | None = None
    """The optimizer's own documents, if they are intact."""
    trials: dict[int, dict[str, Any]] = field(default_factory=dict)
    history: dict[int, Entry] = field(default_factory=dict)
    lost: Lost = Lost([], True)
    """Of the trials."""
    lost_history: Lost = Lost([], True)
    sums: dict[str, Any] = field(default_factory=dict)
    """The sums of the digests of each table, as the study's row has them."""

    def optimizer(self) -> tuple[Bounce, bool]:
        """Return an optimizer with the same trials, and whether it stands where the one stood that was there.

        The ids stay what they were: a trial that is lost keeps its place, outside the space.
        """
        n = max([*self.trials, *self.lost.ids], default=-1) + 1
        trials = [self.trials.get(i) or _placeholder(i, self.space) for i in range(n)]
        if self.head is not None:
            with suppress(*FATAL):
                return Bounce.from_state_dict(self.head | {"trials": trials}), True
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
    """Return what is intact in a study; None if its space or its options are lost. Refuse a newer format."""
    with _copy(path) as connection:
        try:
            version = _version(connection)
            saved = _head(connection, version)
            _take_history(connection, version, saved)
            _take_trials(connection, version, saved)
        except FATAL:
            return None
    return saved


def _version(connection: sqlite3.Connection) -> int:
    """Return the version of the tables; a damaged one counts as this release's, but a newer one is refused."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == schema.APPLICATION:
        rows.refuse_newer(version)
    return version if 0 < version <= len(schema.MIGRATIONS) else len(schema.MIGRATIONS)


def _head(connection: sqlite3.Connection, version: int) -> Saved:
    """Return what the row of the study says."""
    names = rows.HEAD if version >= schema.DIGESTS else (*FIXED, *CHANGING)
    digest = ", digest" if version >= schema.DIGESTS else ""
    cells = list(connection.execute(f"SELECT {', '.join(names)}{digest} FROM study").fetchone())
    whole = rows.intact(cells[:-1], cells[-1]) if digest else True
    row = dict(zip(names, cells, strict=False))
    state = {name: row[name] if name in PLAIN else _loaded(row[name], name) for name in (*FIXED, *CHANGING)}
    whole = whole and None not in (state["head"], state["rng"])
    state = dict(upgraded({**state, "trials": []}))
    optimizer = Bounce(Space.from_dict(state["space"]), **state["options"])  # refuses what does not fit
    sums = {table: row.get(f"{table}_digest") for table in ("trials", "history")}
    return Saved(optimizer.space, optimizer.options, state | {"version": VERSION} if whole else None, sums=sums)


def _loaded(text: Any, name: str) -> Any:
    """Return a document of the row of a study; None for a position of the algorithm that cannot be read."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        if name in POSITION:
            return None
        raise


def _take_trials(connection: sqlite3.Connection, version: int, saved: Saved) -> None:
    """Read the trials that are intact, and find out which ones are lost."""
    named = [i for entry in saved.history.values() for i in _named(entry)]
    last = min(max([*named, _last(connection, "trials")], default=-1), MOST)
    saved.trials = _each(0, last, lambda i: _trial(connection, version, i, saved))
    saved.lost = _lost(connection, saved, "trials", range(last + 1), saved.trials)


def _take_history(connection: sqlite3.Connection, version: int, saved: Saved) -> None:
    """Read the changes that are intact, and find out which ones are lost; the first format had no history."""
    if version > 1:
        last = _last(connection, "history")
        saved.history = _each(1, last, lambda i: _entry(connection, version, i))
        saved.lost_history = _lost(connection, saved, "history", range(1, last + 1), saved.history)


def _each(first: int, last: int, read: Callable[[int], T | None]) -> dict[int, T]:
    """Read the rows of a table that are intact, one by one, since a damaged page hides only some of them."""
    found, misses, i = dict[int, T](), 0, first
    while misses < MISSES or i <= last:
        row = read(i)
        misses = misses + 1 if row is None else 0
        if row is not None:
            found[i] = row
        i += 1
    return found


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the largest id in a table, -1 if it cannot be read."""
    with suppress(sqlite3.Error):
        (last,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()
        (pages,), (size,) = (connection.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
        return min(last, MOST, pages * size // SMALLEST) if isinstance(last, int) else -1
    return -1


def _named(entry: Entry) -> list[int]:
    """Return trials that a change is about, which were there."""
    return [i for i in (entry.trial, *(entry.after or {}).get("trials", ())) if isinstance(i, int)]


def _lost(connection: sqlite3.Connection, saved: Saved, table: str, known: range, found: Collection[int]) -> Lost:
    """Return which rows of a table are lost: gaps between the others, and what came after them as far as is known.

    The digests of all rows add up to the sum in the study's row only if no row is missing. If they do not, and that row
    is intact, there was a newer one, unless a gap explains it.
    """
    first, end = known.start, max([known.start, known.stop, *(i + 1 for i in found)])
    gaps = [i for i in range(first, end) if i not in found]
    newer = _newer(saved, len(gaps)) if table == "trials" else 0
    if saved.sums[table] is None:  # a file of an earlier format has no digests, so its counter may be any number
        newer = min(newer, saved.options["budget"])
        return Lost([*gaps, *range(end, end + newer)], certain=not gaps and not newer)
    digests = [digest for i in range(first, end) if (digest := _digest(connection, table, i)) is not None]
    if total(digests) == saved.sums[table] and (digests or _sums_hold(connection, saved)):
        return Lost(gaps, certain=True)
    if saved.head is not None and len(digests) == end - first:
        newer = max(newer, 1)
    return Lost([*gaps, *range(end, end + newer)], certain=False)


def _sums_hold(connection: sqlite3.Connection, saved: Saved) -> bool:
    """Return whether the sums in the study's row can be believed: it is intact, or one of them is right and not 0."""
    if saved.head is not None:
        return True
    with suppress(sqlite3.Error, TypeError):
        for table, known in saved.sums.items():
            digests = [digest for (digest,) in connection.execute(f"SELECT digest FROM {table}")]
            if digests and total(digests) == known:
                return True
    return False


def _newer(saved: Saved, gaps: int) -> int:
    """Return how many trials were told that came after all that are known, as the counter of tells shows.

    Each trial has the number of its last tell: a correction and a retry leave one behind, a trial that is left outside
    has none, and a gap between the trials may have had one.
    """
    tells = None if saved.head is None else saved.head["tells"]
    if not isinstance(tells, int):
        return 0
    told = sum(
        trial["told"] is not None or trial["was"] in ("done", "failed", "added") for trial in saved.trials.values()
    )
    again = sum(entry.action in ("correct", "retry") for entry in saved.history.values())
    before = sum(
        len((entry.after or {}).get("lost", ())) for entry in saved.history.values() if entry.action == "repair"
    )
    return min(max(tells - told - again - before - gaps, 0), MOST)


def _digest(connection: sqlite3.Connection, table: str, i: int) -> int | None:
    """Return the digest that is stored with a row; None if there is no such row, or it cannot be read."""
    with suppress(sqlite3.Error):
        for (digest,) in connection.execute(f"SELECT digest FROM {table} WHERE id = ?", (i,)):
            return digest if isinstance(digest, int) else None
    return None


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


def _entry(connection: sqlite3.Connection, version: int, i: int) -> Entry | None:
    """Return a change; None if it cannot be read or is not what was written."""
    digests = version >= schema.DIGESTS
    try:
        query = f"SELECT id, {', '.join(rows.ENTRY)}{', digest' if digests else ''} FROM history WHERE id = ?"
        cells = list(connection.execute(query, (i,)).fetchone())
        if digests and not rows.intact(cells[:-1], cells[-1]):
            return None
        entry = dict(zip(rows.ENTRY, cells[1:], strict=False))
        loaded: dict[str, Any] = {
            name: x if name not in BOTH or x is None else dict(json.loads(x)) for name, x in entry.items()
        }
        return Entry(**loaded)
    except FATAL:
        return None
