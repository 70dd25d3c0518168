"""The rows of a study file, read and verified.

The invariant: what `read` returns is what was written, or it raises. A file of an earlier format has no digests: there
the readable points are compared with the codes when the optimizer is built from them.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields
from typing import Any

from bounce.optimizer.documents import RECORD
from bounce.optimizer.upgrades import NEW_IN_4, NEW_IN_5, NEW_IN_6
from bounce.study import schema
from bounce.study.digest import digest, total
from bounce.study.history import Entry

COLUMNS = (*RECORD, "point", "asked", "finished")
"""The columns of a trial, its digest apart, in the order of its cells."""
ENTRY = tuple(f.name for f in fields(Entry))
"""The columns of a change in the history, its id and its digest apart."""
HEAD = (
    *("uuid", "revision", "created", "runner", "format", "version", "space", "options", "rng", "tells", "head"),
    *("trials_digest", "history_digest"),
)
"""The columns of the study, its digest apart."""

MOST = 2**53  # revisions at most
OPTUNA = frozenset({"study_directions", "trial_params", "alembic_version"})  # tables of its storages

Row = dict[str, Any]


class Unfit(Exception):
    """A file is not a whole study; the message says what it is, with the file as its subject."""

    @property
    def damaged(self) -> bool:
        """Whether it may be a study all the same, of which something can be saved."""
        return str(self).startswith("is damaged")


@dataclass(frozen=True)
class Content:
    """Everything in a study file, as SQLite has it."""

    version: int
    """Of the tables."""
    study: Row
    trials: list[Row]
    history: list[Row]


def columns(version: int) -> tuple[str, ...]:
    """Return the columns of a trial in a file of a version that has digests."""
    later = {
        **(NEW_IN_6 if version < 6 else {}),
        **(NEW_IN_5 if version < 5 else {}),
        **(NEW_IN_4 if version < 4 else {}),
    }
    return tuple(name for name in COLUMNS if name not in later)


def checked_version(connection: sqlite3.Connection) -> int:
    """Return the version of the tables, 0 if there are none; refuse tables that are not exactly those of a study."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = schema.found(connection)
    if not tables:
        return 0
    if application != schema.APPLICATION and {str(name) for _, name, *_ in tables} >= OPTUNA:
        raise Unfit("is a storage of Optuna, not a study of Bounce: docs/optuna.md says how to go on with it")
    if application != schema.APPLICATION:
        raise Unfit("is a database, but not a study of Bounce")
    refuse_newer(version)
    if version < 1 or tables != schema.expected(version):
        names = sorted(str(name) for _, name, _, _ in tables ^ schema.expected(max(0, version)))
        raise Unfit(f"is damaged or was changed by another program: see {', '.join(names)} in its schema")
    return int(version)


def refuse_newer(version: int) -> None:
    """Refuse a version of the tables that only a newer release can read."""
    newest = len(schema.MIGRATIONS)
    if version > newest:
        raise Unfit(f"has format {version}, and this release reads formats up to {newest}: use a newer release")


def read(connection: sqlite3.Connection) -> Content:
    """Return all rows, from one moment; refuse rows that are not what was written."""
    connection.execute("BEGIN")
    try:
        version = checked_version(connection)
        if not version:
            raise Unfit("is empty")
        verified = version >= schema.DIGESTS
        studies = _rows(connection, "study", HEAD if verified else None)
        trials = _rows(connection, "trials", columns(version) if verified else None, order="id")
        changes = ("id", *ENTRY) if verified else None
        history = _rows(connection, "history", changes, order="id") if version > 1 else []
    finally:
        connection.execute("ROLLBACK")
    if len(studies) != 1:
        raise Unfit("is damaged: a row is missing")
    revision = studies[0]["revision"]
    if not isinstance(revision, int) or not 0 <= revision < MOST:
        raise Unfit(f"is damaged: its revision is {revision!r}")
    if verified:
        (study,) = studies
        for name, found in (("trials", trials), ("history", history)):
            if total(row.pop("digest") for row in found) != study[f"{name}_digest"]:
                raise Unfit(f"is damaged: rows of its table {name} are missing or not from the same time")
        del study["digest"]
    return Content(version, studies[0], trials, history)


def _rows(connection: sqlite3.Connection, table: str, names: tuple[str, ...] | None, order: str = "") -> list[Row]:
    """Return the rows of a table; with the names of its columns, their digests are verified."""
    if names is None:
        cursor = connection.execute(f"SELECT * FROM {table}{f' ORDER BY {order}' if order else ''}")
        found_names = [column[0] for column in cursor.description]
        return [dict(zip(found_names, row, strict=True)) for row in cursor]
    found = []
    for *cells, stored in connection.execute(
        f"SELECT {', '.join(names)}, digest FROM {table}{f' ORDER BY {order}' if order else ''}"
    ):
        if not intact(cells, stored):
            place = f" {cells[0]}" if table != "study" else ""
            raise Unfit(f"is damaged: row{place} of its table {table} is not what was written")
        found.append(dict(zip((*names, "digest"), (*cells, stored), strict=True)))
    return found


def intact(cells: list[Any], stored: object) -> bool:
    """Return whether a row has its digest."""
    try:
        return digest(cells) == stored
    except TypeError:  # bytes where a study has none
        return False


def renew(connection: sqlite3.Connection, table: str, ids: list[int]) -> tuple[int, int]:
    """Write the digests of rows; return the sums of those before and after."""
    names = COLUMNS if table == "trials" else ("id", *ENTRY)
    before, after = [], []
    for i in ids:
        *cells, old = connection.execute(
            f"SELECT {', '.join(names)}, digest FROM {table} WHERE id = ?", (i,)
        ).fetchone()
        before.append(old)
        after.append(digest(cells))
    connection.executemany(f"UPDATE {table} SET digest = ? WHERE id = ?", zip(after, ids, strict=True))
    return total(before), total(after)


def renew_head(connection: sqlite3.Connection) -> None:
    """Write the digest of the study's own row."""
    cells = connection.execute(f"SELECT {', '.join(HEAD)} FROM study").fetchone()
    connection.execute("UPDATE study SET digest = ?", (digest(list(cells)),))
