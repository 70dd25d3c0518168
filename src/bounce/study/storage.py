"""The file of a study: one SQLite database (docs/file-format.md).

Invariant: between two transactions the file holds the complete state of an optimizer. Every change writes the
optimizer's head and the trials that belong to it in one transaction, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from bounce.errors import InvalidStudy, StorageFailed
from bounce.optimizer.state import RECORD, VERSION
from bounce.study.history import Entry, now
from bounce.study.schema import MIGRATIONS
from bounce.trial import Scalar

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
APPLICATION = 0x424E4345  # "BNCE", in the header of the file
FIXED = ("format", "version", "space")
CHANGING = ("options", "rng", "tells", "head")
PLAIN = ("format", "version", "tells")  # what is not stored as JSON text
JSON = ("codes", "notes", "asked_codes", "former_point", "free")  # columns of a trial that hold JSON text
ENTRY = tuple(f.name for f in fields(Entry))
BOTH = ("before", "after")
COLUMNS = (*RECORD, "point", "asked", "finished")
KEPT = ("id", "asked")  # of a trial that is already there
_UPSERT = (
    f"INSERT INTO trials ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in KEPT)
)


class Changes(NamedTuple):
    """What is to be written in one transaction."""

    documents: Mapping[str, Any]
    """What the optimizer says of itself, and the trials that changed."""
    points: Mapping[int, Mapping[str, Scalar]]
    """The points of these trials, by id."""
    entries: Sequence[Entry] = ()
    space: Mapping[str, Any] | None = None
    """The space, if it changed."""


class Storage:
    """An open study file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writable = True
        self._place: tuple[int, int] | None = None
        self._closed = False
        with self._explained():
            self._connection = self._connect()
            weakref.finalize(self, self._connection.close)
            self._check()
        self.check_place()

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_dir():
            raise InvalidStudy(f"{self.path} is a folder, but a study is a file, such as {self.path / 'study.db'}")
        if not self.path.parent.is_dir():
            raise InvalidStudy(f"the folder {self.path.parent} for the study {self.path.name} does not exist")
        try:
            connection = _opened(str(self.path))
            if not _foreign(connection):  # a foreign file is not changed
                connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not self.path.exists():
                raise InvalidStudy(
                    f"the study {self.path} does not exist and cannot be created: its folder cannot be written to"
                ) from error
            if not self.path.is_file() or self.path.stat().st_size == 0:
                raise
            # The folder or file cannot be written, but the study can still be read.
            self.writable = False
            wal = self.path.with_name(self.path.name + "-wal").exists()
            connection = _opened(f"{self.path.absolute().as_uri()}?{'mode=ro' if wal else 'immutable=1'}", uri=True)
        return connection

    def _check(self) -> None:
        """Refuse a file that is not a study, is damaged, or was made by a newer release."""
        (damage,) = self._one("PRAGMA quick_check(1)")
        if damage != "ok":
            raise InvalidStudy(f"{self.path} is damaged: {damage.splitlines()[-1]}")
        if _foreign(self._connection):
            raise InvalidStudy(f"{self.path} is a database, but not a study of Bounce")
        (version,) = self._one("PRAGMA user_version")
        if version > len(MIGRATIONS):
            raise InvalidStudy(
                f"{self.path} has format {version}, and this release reads formats up to {len(MIGRATIONS)}: "
                "use a newer release"
            )

    @property
    def exists(self) -> bool:
        """Whether the file has a study in it; a new file is empty until the first transaction."""
        with self._explained():
            return bool(self._one("SELECT count(*) FROM sqlite_master")[0])

    def migrate(self, documents: Mapping[str, Any]) -> int:
        """Bring a file to this release's version, in one transaction; return the new revision.

        `documents` is the optimizer's own part of the state, in this release's version. The caller holds the lock.
        """
        with self._transaction():
            (version,) = self._one("PRAGMA user_version")
            self._run_scripts(MIGRATIONS[version:])
            self._connection.execute("UPDATE study SET version = ?", (VERSION,))
            return self._update(documents)

    def _run_scripts(self, scripts: Sequence[str]) -> None:
        for script in scripts:
            for statement in script.split(";"):
                self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _update(self, changes: Mapping[str, Any]) -> int:
        """Write the optimizer's own documents, and return the new revision."""
        self._connection.execute(
            f"UPDATE study SET revision = revision + 1, {', '.join(f'{name} = ?' for name in CHANGING)}",
            _values(changes, CHANGING),
        )
        return self._revision()

    @property
    def current(self) -> bool:
        """Whether the tables are of this release's version."""
        with self._explained():
            return bool(self._one("PRAGMA user_version")[0] == len(MIGRATIONS))

    def create(self, state: Mapping[str, Any]) -> None:
        """Write the tables and the state of an optimizer without trials, in one transaction."""
        with self._transaction():
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._run_scripts(MIGRATIONS)
            columns = ("one", "revision", "created", *FIXED, *CHANGING)
            values = (1, 0, now(), *_values(state, FIXED), *_values(state, CHANGING))
            self._connection.execute(
                f"INSERT INTO study ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", values
            )

    def save(self, changes: Changes, *, durable: bool = True) -> int:
        """Write changes in one transaction; return the new revision.

        Durable ones are on the disk when this returns. Others a power cut may undo, such as new trials; asking again
        then gives the same ones.
        """
        with self._transaction(synchronous="FULL" if durable else "NORMAL"):
            time = now()
            self._connection.executemany(
                _UPSERT,
                [
                    [
                        *(_json(trial[n]) if n in JSON and trial[n] is not None else trial[n] for n in RECORD),
                        _json(changes.points[trial["id"]]),
                        time,
                        None if trial["told"] is None else time,
                    ]
                    for trial in changes.documents["trials"]
                ],
            )
            self._connection.executemany(
                f"INSERT INTO history ({', '.join(ENTRY)}) VALUES ({', '.join('?' * len(ENTRY))})",
                [[_entry_cell(entry, name) for name in ENTRY] for entry in changes.entries],
            )
            if changes.space is not None:
                self._connection.execute("UPDATE study SET space = ?", (_json(changes.space),))
            return self._update(changes.documents)

    def history(self) -> list[Entry]:
        """Return what was changed by hand, oldest first; a file of an earlier format has nothing."""
        with self._explained():
            if not self.current:
                return []
            rows = self._connection.execute(f"SELECT {', '.join(ENTRY)} FROM history ORDER BY id").fetchall()
        documents = [dict(zip(ENTRY, row, strict=True)) for row in rows]
        try:
            return [
                Entry(**document | {k: None if document[k] is None else json.loads(document[k]) for k in BOTH})
                for document in documents
            ]
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidStudy(f"{self.path} is damaged: {error}") from error

    def load(self) -> tuple[int, dict[str, Any]]:
        """Return the revision and the whole state, in the version of the file."""
        with self._transaction(READ):
            names = (*FIXED, *CHANGING)
            head = self._one(f"SELECT {', '.join(names)} FROM study")
            cursor = self._connection.execute("SELECT * FROM trials ORDER BY id")
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            revision = self._revision()
        try:
            state = {
                name: value if name in PLAIN else json.loads(value) for name, value in zip(names, head, strict=True)
            }
            trials = [dict(zip(columns, row, strict=True)) for row in rows]
            for trial in trials:
                for name in JSON:
                    if trial.get(name) is not None:
                        trial[name] = json.loads(trial[name])
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidStudy(f"{self.path} is damaged: {error}") from error
        return revision, state | {"trials": trials}

    @property
    def revision(self) -> int:
        """A number that grows with every change."""
        with self._explained():
            return self._revision()

    @property
    def runner(self) -> str | None:
        """Who is stored as running the study; valid only while the study is locked."""
        with self._explained():
            (runner,) = self._one("SELECT runner FROM study") if self.exists else (None,)
        return None if runner is None else str(runner)

    def set_runner(self, runner: str | None) -> None:
        """Store who is running the study."""
        with self._transaction():
            self._connection.execute("UPDATE study SET runner = ?", (runner,))

    def check_place(self) -> None:
        """Refuse to continue if the file is no longer at its path: what is written to it would be lost."""
        try:
            status = self.path.stat()
            place = status.st_dev, status.st_ino
        except FileNotFoundError:
            place = None
        if self._place is None:  # the file did not exist yet
            self._place = place
        elif place != self._place:
            raise StorageFailed(f"the study {self.path} was removed or replaced while it was in use")

    def close(self) -> None:
        """Close the file."""
        self._closed = True
        self._connection.close()

    def _revision(self) -> int:
        (revision,) = self._one("SELECT revision FROM study")
        return int(revision)

    def _one(self, query: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._connection.execute(query).fetchone()
        if row is None:
            raise InvalidStudy(f"{self.path} is damaged: a row is missing")
        return row

    @contextmanager
    def _transaction(self, begin: str = WRITE, synchronous: str = "FULL") -> Iterator[None]:
        with self._explained():
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            if begin != READ:
                self.check_place()
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into ones that name the file."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            if self._closed:
                raise StorageFailed(f"the study {self.path} is closed: open it again") from None
            raise StorageFailed(f"the study {self.path} could not be read or written: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # damaged bytes in a name or a message
            raise InvalidStudy(f"{self.path} is not a study, or it is damaged: {error}") from error


def _opened(name: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(name, timeout=10.0, isolation_level=None, check_same_thread=False, uri=uri)


def _foreign(connection: sqlite3.Connection) -> bool:
    """Return whether a database holds something other than a study."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables) and application != APPLICATION


def _entry_cell(entry: Entry, name: str) -> Any:
    cell = getattr(entry, name)
    return _json(cell) if name in BOTH and cell is not None else cell


def _values(state: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(state[name] if name in PLAIN else _json(state[name]) for name in names)


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)
