"""The file of a study: one SQLite database (docs/file-format.md).

The invariant: between two transactions the file alone holds the complete state of an optimizer. Every change writes the
optimizer's head and the trials that belong to it in one transaction, and nothing else. A change is written only if the
file still is what the change was made from.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bounce.errors import InvalidStudy, StorageFailed, StudyLocked
from bounce.optimizer.documents import RECORD, VERSION
from bounce.study import database, rows, schema
from bounce.study.digest import total
from bounce.study.history import Entry, now
from bounce.study.place import followed
from bounce.study.rows import COLUMNS, ENTRY
from bounce.trial import Scalar

FIXED = ("format", "version", "space")
CHANGING = ("options", "rng", "tells", "head")
PLAIN = ("format", "version", "tells")  # what is not stored as JSON text
JSON = ("codes", "notes", "outcomes", "asked_codes", "former_point", "free")  # columns of a trial that hold JSON text
BOTH = ("before", "after")
KEPT = ("id", "asked")  # of a trial that is already there
_UPSERT = (
    f"INSERT INTO trials ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in KEPT)
)
T = TypeVar("T")


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
        self.file = followed(path)
        """The file itself, beside which its journal and its lock are."""
        self._place: tuple[int, int] | None = None
        self._closed = False
        self._seen_schema: tuple[tuple[sqlite3.Connection, int], int] | None = None
        self._reader: sqlite3.Connection | None = None
        self._stamp: database.Stamp | None = None
        self._writer: sqlite3.Connection | None = None
        if self.file.exists():
            self._refuse_emptied()
            self._reading(self._check)
        self.check_place()

    def _refuse_emptied(self) -> None:
        """Refuse an empty file whose locks say that it was a study: Bounce leaves no such file."""
        if self.file.stat().st_size == 0 and database.beside(self.file, ".lock").exists():
            file = self.file if self.path.is_symlink() else self.path
            raise InvalidStudy(
                f"{self.path} is empty, but it was a study: restore it from a backup. To begin a new one, remove "
                f"{file} and {file.name}.lock"
            )

    @staticmethod
    def _check(connection: sqlite3.Connection) -> None:
        """Refuse a file that is not a study, is damaged, or was made by a newer release."""
        rows.checked_version(connection)  # first, since a foreign schema could do anything
        (damage,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if damage != "ok":
            raise rows.Unfit(f"is damaged: {damage.splitlines()[-1]}")

    @property
    def writable(self) -> bool:
        """Whether the file and its folder can be written to."""
        return os.access(self.file.parent, os.W_OK) and (not self.file.exists() or os.access(self.file, os.W_OK))

    @property
    def version(self) -> int:
        """The version of the tables; 0 if there are none: a new file is empty until the first transaction."""
        return self._reading(self._checked) if self.file.exists() else 0

    @property
    def exists(self) -> bool:
        """Whether the file has a study in it."""
        return self.version > 0

    def _checked(self, connection: sqlite3.Connection) -> int:
        """Return the version of the tables; check them again if anything about them has changed."""
        (cookie,) = connection.execute("PRAGMA schema_version").fetchone()
        key = (connection, cookie)
        if self._seen_schema is None or self._seen_schema[0] != key:
            self._seen_schema = key, rows.checked_version(connection)
        return self._seen_schema[1]

    @property
    def revision(self) -> int:
        """A number that grows with every change."""
        return self._reading(_revision)

    @property
    def runner(self) -> str | None:
        """Who is stored as running the study; valid only while the study is locked."""
        if not self.exists:
            return None
        (runner,) = self._reading(lambda connection: _one(connection, "SELECT runner FROM study"))
        return None if runner is None else str(runner)

    def load(self) -> tuple[int, dict[str, Any]]:
        """Return the revision and the whole state, in the version of the file."""
        content = self._reading(rows.read)
        try:
            state = {
                name: content.study[name] if name in PLAIN else json.loads(content.study[name])
                for name in (*FIXED, *CHANGING)
            }
            for trial in content.trials:
                for name in (*JSON, "point"):
                    if trial.get(name) is not None:
                        trial[name] = json.loads(trial[name])
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidStudy(f"{self.path} is damaged: {error}") from error
        return content.study["revision"], state | {"trials": content.trials}

    def history(self) -> list[Entry]:
        """Return what was changed by hand, oldest first; a file of the first format has nothing."""
        content = self._reading(rows.read)
        try:
            return [
                Entry(**{n: row[n] if n not in BOTH or row[n] is None else json.loads(row[n]) for n in ENTRY})
                for row in content.history
            ]
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidStudy(f"{self.path} is damaged: {error}") from error

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file."""
        found = self._reading(lambda connection: connection.execute("PRAGMA integrity_check(10)").fetchall())
        return [text for (text,) in found if text != "ok"]

    # Changes

    def create(self, state: Mapping[str, Any]) -> None:
        """Write the tables and the state of an optimizer without trials to a new file, and put it in its place.

        So a file without a study in it is never left by a process that was killed.
        """
        new = database.beside(self.file, ".new")
        with self._explained():
            database.refuse_what_does_not_belong(self.file)
            for suffix in ("", "-journal"):
                database.beside(new, suffix).unlink(missing_ok=True)  # of a process that was killed
            if self.file.exists():  # an empty file, whose permissions the user has chosen
                new.touch(0o600)
                new.chmod(stat.S_IMODE(self.file.stat().st_mode))
            with closing(database.for_writing(new)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
                _run_scripts(connection, schema.MIGRATIONS)
                columns = ("one", "uuid", "revision", "created", *FIXED, *CHANGING)
                values = (1, uuid.uuid4().hex, 0, now(), *_values(state, FIXED), *_values(state, CHANGING))
                connection.execute(
                    f"INSERT INTO study ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", values
                )
                rows.renew_head(connection)
                connection.execute("COMMIT")
            self._forget_reader()
            os.replace(new, self.file)
            self._place = None
            self.check_place()

    def migrate(self, documents: Mapping[str, Any], revision: int) -> int:
        """Bring a file to this release's version, in one transaction; return the new revision.

        `documents` is the optimizer's own part of the state, in this release's version. The caller holds the lock.
        """
        with self._transaction() as connection:
            (version,) = _one(connection, "PRAGMA user_version")
            _run_scripts(connection, schema.MIGRATIONS[version:])
            connection.execute("UPDATE study SET version = ?", (VERSION,))
            connection.execute("UPDATE study SET uuid = ? WHERE uuid = ''", (uuid.uuid4().hex,))
            for table in ("trials", "history"):
                ids = [i for (i,) in connection.execute(f"SELECT id FROM {table}").fetchall()]
                _, after = rows.renew(connection, table, ids)
                connection.execute(f"UPDATE study SET {table}_digest = ?", (after,))
            return self._update(connection, documents, revision)

    def save(self, changes: Changes, revision: int) -> int:
        """Write changes that were made from a revision, in one transaction; return the new revision."""
        time = now()
        trials = changes.documents["trials"]
        with self._transaction() as connection:
            connection.executemany(
                _UPSERT,
                [
                    [
                        *(_json(trial[n]) if n in JSON and trial[n] is not None else trial[n] for n in RECORD),
                        _json(changes.points[trial["id"]]),
                        time,
                        None if trial["told"] is None else time,
                    ]
                    for trial in trials
                ],
            )
            entries = []
            for entry in changes.entries:
                cells = [_entry_cell(entry, name) for name in ENTRY]
                added = connection.execute(
                    f"INSERT INTO history ({', '.join(ENTRY)}) VALUES ({', '.join('?' * len(ENTRY))})", cells
                )
                entries.append(int(added.lastrowid or 0))
            if changes.space is not None:
                connection.execute("UPDATE study SET space = ?", (_json(changes.space),))
            for table, ids in (("trials", [trial["id"] for trial in trials]), ("history", entries)):
                before, after = rows.renew(connection, table, ids)
                (sum_before,) = _one(connection, f"SELECT {table}_digest FROM study")
                connection.execute(f"UPDATE study SET {table}_digest = ?", (total([after, -before], sum_before),))
            return self._update(connection, changes.documents, revision)

    def _update(self, connection: sqlite3.Connection, changes: Mapping[str, Any], revision: int) -> int:
        """Write the optimizer's own documents, and return the new revision; refuse if the file has another one."""
        written = connection.execute(
            f"UPDATE study SET revision = ?, {', '.join(f'{name} = ?' for name in CHANGING)} WHERE revision = ?",
            (revision + 1, *_values(changes, CHANGING), revision),
        )
        if written.rowcount != 1:
            raise StudyLocked(
                f"another process changed the study {self.path} at the same time, so nothing was stored: "
                "try again. Its lock file must not be removed while a process uses it"
            )
        rows.renew_head(connection)
        return revision + 1

    def set_runner(self, runner: str | None) -> None:
        """Store who is running the study."""
        with self._transaction() as connection:
            connection.execute("UPDATE study SET runner = ?", (runner,))
            rows.renew_head(connection)

    # The file

    def check_place(self) -> None:
        """Refuse to continue if the file is no longer at its path: what is written to it would be lost."""
        try:
            status = self.file.stat()
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
        self._forget_reader()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _forget_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = self._stamp = None

    def _reading(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read the file, or a copy of it that is up to date."""
        with self._explained():
            if self._stamp is not None and self._stamp != database.stamp(self.file):
                self._forget_reader()
            try:
                return read(self._opened())
            except sqlite3.OperationalError as error:
                if not database.needs_copy(error):
                    raise
            self._forget_reader()  # a process was killed while this one had the file open
            return read(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageFailed(f"the study {self.path} is closed: open it again")
        if self._reader is None:
            self._reader, self._stamp = database.for_reading(self.file)
            weakref.finalize(self, self._reader.close)
        database.hurry(self._reader)
        return self._reader

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            if self._closed:
                raise StorageFailed(f"the study {self.path} is closed: open it again")
            self.check_place()
            if self._writer is None:
                self._writer = database.for_writing(self.file)
                weakref.finalize(self, self._writer.close)
                self.check_place()
            connection = self._writer
            database.hurry(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._checked(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors into ones that name the file."""
        try:
            yield
        except rows.Unfit as error:
            hint = f". To save what is intact: bounce repair {self.path} --out NEW.db" if error.damaged else ""
            raise InvalidStudy(f"{self.path} {error}{hint}") from error
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            if "decode" in str(error):  # Python's own error, for text that is not UTF-8
                raise InvalidStudy(f"{self.path} is damaged: {error}") from error
            raise StorageFailed(f"the study {self.path} could not be read or written: {error}") from error
        except OSError as error:
            if isinstance(error, StorageFailed):
                raise
            raise StorageFailed(f"the study {self.path} could not be read or written: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError) as error:  # damaged bytes
            raise InvalidStudy(f"{self.path} is not a study, or it is damaged: {error}") from error


def _run_scripts(connection: sqlite3.Connection, scripts: Sequence[str]) -> None:
    schema.run(connection, scripts)
    connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS)}")


def _revision(connection: sqlite3.Connection) -> int:
    (revision,) = _one(connection, "SELECT revision FROM study")
    return revision if isinstance(revision, int) else -1  # which `rows.read` refuses


def _one(connection: sqlite3.Connection, query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(query).fetchone()
    if row is None:
        raise rows.Unfit("is damaged: a row is missing")
    return row


def _entry_cell(entry: Entry, name: str) -> Any:
    cell = getattr(entry, name)
    return _json(cell) if name in BOTH and cell is not None else cell


def _values(state: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(state[name] if name in PLAIN else _json(state[name]) for name in names)


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)
