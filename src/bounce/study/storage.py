"""The file of a study: one SQLite database (docs/file-format.md).

Invariant: what the file holds between two transactions is the state of an optimizer, whole. Every change writes
the optimizer's head and the trials it explains in one transaction, and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bounce.errors import InvalidStudy, StorageFailed
from bounce.trial import Scalar

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
APPLICATION = 0x424E4345  # "BNCE", in the header of the file
FIXED = ("format", "version", "space")
CHANGING = ("options", "rng", "tells", "head")
PLAIN = ("format", "version", "tells")  # what is not stored as JSON text
TRIAL = (
    *(
        "id",
        "state",
        "value",
        "error",
        "codes",
        "batch",
        "told",
        "space",
        "target_dim",
        "radius",
        "side",
    ),
    *("restart", "acquisition", "seconds_ask", "seconds_eval"),
)
OUTCOME = ("state", "value", "error", "told", "seconds_eval")  # what changes when a trial is finished

# Script n brings a file from version n to n + 1. A script that was released is never changed.
MIGRATIONS = (
    """
    CREATE TABLE study (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL,
        created TEXT NOT NULL,
        runner TEXT,
        format TEXT NOT NULL,
        version INTEGER NOT NULL,
        space TEXT NOT NULL,
        options TEXT NOT NULL,
        rng TEXT NOT NULL,
        tells INTEGER NOT NULL,
        head TEXT NOT NULL
    );
    CREATE TABLE trials (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
        value REAL,
        error TEXT,
        point TEXT NOT NULL,
        asked TEXT NOT NULL,
        finished TEXT,
        codes TEXT NOT NULL,
        batch INTEGER NOT NULL,
        told INTEGER,
        space INTEGER NOT NULL,
        target_dim INTEGER NOT NULL,
        radius REAL NOT NULL,
        side REAL NOT NULL,
        restart INTEGER NOT NULL,
        acquisition REAL,
        seconds_ask REAL NOT NULL,
        seconds_eval REAL
    );
    """,
)


class Storage:
    """An open study file, or one in memory."""

    def __init__(self, path: Path | None) -> None:
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
        if self.path is None:
            return _opened(":memory:")
        if self.path.is_dir():
            raise InvalidStudy(f"{self.path} is a folder; a study is a file, such as {self.path / 'study.db'}")
        if not self.path.parent.is_dir():
            raise InvalidStudy(f"there is no folder {self.path.parent} for the study {self.path.name}")
        try:
            connection = _opened(str(self.path))
            if not _foreign(connection):  # what is not ours is not changed
                connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not self.path.exists():
                raise InvalidStudy(
                    f"there is no study {self.path}, and none can be created: its folder cannot be written to"
                ) from error
            if not self.path.is_file() or self.path.stat().st_size == 0:
                raise
            # A folder or file that nothing can be written to: it can still be read, as it was left.
            self.writable = False
            wal = self.path.with_name(self.path.name + "-wal").exists()
            connection = _opened(f"{self.path.absolute().as_uri()}?{'mode=ro' if wal else 'immutable=1'}", uri=True)
        return connection

    def _check(self) -> None:
        """Refuse what is no study, is damaged or is newer; bring an older file up to date."""
        (damage,) = self._one("PRAGMA quick_check(1)")
        if damage != "ok":
            raise InvalidStudy(f"{self.path} is damaged: {damage.splitlines()[-1]}")
        if _foreign(self._connection):
            raise InvalidStudy(f"{self.path} is a database, but no study of Bounce")
        (version,) = self._one("PRAGMA user_version")
        if version > len(MIGRATIONS):
            raise InvalidStudy(
                f"{self.path} has format {version}; this release reads up to {len(MIGRATIONS)}: use a newer one"
            )

    @property
    def exists(self) -> bool:
        """Whether there is a study in the file: not before the first transaction."""
        with self._explained():
            return bool(self._one("SELECT count(*) FROM sqlite_master")[0])

    def migrate(self) -> None:
        """Bring the tables to this release's version, in one transaction; the caller holds the lock."""
        with self._transaction():
            (version,) = self._one("PRAGMA user_version")
            for script in MIGRATIONS[version:]:
                for statement in script.split(";"):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @property
    def current(self) -> bool:
        """Whether the tables are of this release's version."""
        with self._explained():
            return bool(self._one("PRAGMA user_version")[0] == len(MIGRATIONS))

    def create(self, state: Mapping[str, Any]) -> None:
        """Write the tables and the state of an optimizer without trials, in one transaction."""
        with self._transaction():
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            for script in MIGRATIONS:
                for statement in script.split(";"):
                    self._connection.execute(statement)
            columns = ("one", "revision", "created", *FIXED, *CHANGING)
            values = (1, 0, _now(), *_values(state, FIXED), *_values(state, CHANGING))
            self._connection.execute(
                f"INSERT INTO study ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", values
            )

    def save(self, changes: Mapping[str, Any], points: Mapping[int, Mapping[str, Scalar]]) -> int:
        """Write what an optimizer says has changed, in one transaction; return the new revision.

        `points` has the points of new trials; of others, only the outcome changes. Outcomes are on the disk when
        this returns; a power cut may undo new trials, which are then asked for again, and are the same.
        """
        told = any(trial["id"] not in points for trial in changes["trials"])
        with self._transaction(synchronous="FULL" if told else "NORMAL"):
            for trial in changes["trials"]:
                if trial["id"] in points:
                    columns = (*TRIAL, "point", "asked")
                    row = trial | {"codes": _json(trial["codes"])}
                    values = (*(row[name] for name in TRIAL), _json(points[trial["id"]]), _now())
                    self._connection.execute(
                        f"INSERT INTO trials ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                        values,
                    )
                else:
                    names = (*OUTCOME, "finished")
                    self._connection.execute(
                        f"UPDATE trials SET {', '.join(f'{name} = ?' for name in names)} WHERE id = ?",
                        (*(trial[name] for name in OUTCOME), _now(), trial["id"]),
                    )
            self._connection.execute(
                f"UPDATE study SET revision = revision + 1, {', '.join(f'{name} = ?' for name in CHANGING)}",
                _values(changes, CHANGING),
            )
            return self._revision()

    def load(self) -> tuple[int, dict[str, Any]]:
        """Return the revision and the whole state."""
        with self._transaction(READ):
            names = (*FIXED, *CHANGING)
            head = self._one(f"SELECT {', '.join(names)} FROM study")
            rows = self._connection.execute(f"SELECT {', '.join(TRIAL)} FROM trials ORDER BY id").fetchall()
            revision = self._revision()
        try:
            state = {
                name: value if name in PLAIN else json.loads(value) for name, value in zip(names, head, strict=True)
            }
            trials = [dict(zip(TRIAL, row, strict=True)) for row in rows]
            for trial in trials:
                trial["codes"] = json.loads(trial["codes"])
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
        """Who said to be running the study; believe it only while the study is locked."""
        with self._explained():
            (runner,) = self._one("SELECT runner FROM study") if self.exists else (None,)
        return None if runner is None else str(runner)

    def set_runner(self, runner: str | None) -> None:
        """Say who is running the study."""
        with self._transaction():
            self._connection.execute("UPDATE study SET runner = ?", (runner,))

    def check_place(self) -> None:
        """Refuse to go on with a file that is not at its path any more: what is written there would be lost."""
        if self.path is None:
            return
        try:
            status = self.path.stat()
            place = status.st_dev, status.st_ino
        except FileNotFoundError:
            place = None
        if self._place is None:  # nothing was there yet
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
        """Turn what SQLite says into an error that names the file."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            if self._closed:
                raise StorageFailed(f"the study {self.path} is closed: open it again") from None
            raise StorageFailed(f"the study {self.path} could not be read or written: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # a name or a message of damaged bytes
            raise InvalidStudy(f"{self.path} is no study, or a damaged one: {error}") from error


def _opened(name: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(name, timeout=10.0, isolation_level=None, check_same_thread=False, uri=uri)


def _foreign(connection: sqlite3.Connection) -> bool:
    """Say whether a database holds something, and no study."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables) and application != APPLICATION


def _values(state: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(state[name] if name in PLAIN else _json(state[name]) for name in names)


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
