"""The database of a study: how its file is opened, for reading and for writing.

Studies are in SQLite's rollback mode: between two transactions the file alone holds everything, with no other file
beside it. A process that is killed in the middle of a transaction leaves a journal (`-journal`), which says how to undo
it. Studies of the formats 1 and 2 had a write-ahead log (`-wal`).

The invariant: reading changes no byte of any file. What would have to be undone or copied first is read from a private
copy. A journal or a log that does not belong to the file beside it is refused, before SQLite applies it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from bounce.errors import InvalidStudy
from bounce.study import rows, schema

WAIT = 10.0  # seconds for which SQLite waits for another process
LONGEST = 64 * 2**20  # bytes of one cell
PATIENCE = 60.0  # seconds that one call may compute: a study needs far less
STEPS = 10**6  # of SQLite's virtual machine between two looks at the clock
TRIES = 5  # copies of a file that changes meanwhile


class Stamp(NamedTuple):
    """What tells whether files have changed: size and time of the study and of what lies beside it."""

    files: tuple[tuple[int, int, int] | None, ...]


def beside(path: Path, suffix: str) -> Path:
    """Return the file that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


def stamp(path: Path) -> Stamp:
    """Return the stamp of a study."""
    found: list[tuple[int, int, int] | None] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            status = beside(path, suffix).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            found.append(None)
    return Stamp(tuple(found))


def connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database with everything switched off that a study does not need."""
    connection = sqlite3.connect(name, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=uri)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return connection


def hurry(connection: sqlite3.Connection) -> None:
    """Interrupt what is computed from now on if it takes too long."""
    end = time.monotonic() + PATIENCE
    connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)


def _has_content(path: Path) -> bool:
    with suppress(OSError):
        return path.stat().st_size > 0
    return False


def for_writing(path: Path) -> sqlite3.Connection:
    """Open a study to change it; the caller holds the lock on it."""
    refuse_what_does_not_belong(path)
    connection = connect(str(path))
    try:
        connection.execute("PRAGMA fullfsync = ON")  # on macOS
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_mode = DELETE")  # studies of earlier formats had another one
    except BaseException:
        connection.close()
        raise
    return connection


def for_reading(path: Path) -> tuple[sqlite3.Connection, Stamp | None]:
    """Open a study to read it; with a stamp, it is a copy of what the files held then."""
    if not _has_content(beside(path, "-wal")):
        if not _is_earlier(path):
            connection = connect(_uri(path, "mode=ro"), uri=True)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError as error:
                connection.close()
                if not needs_copy(error):
                    raise
            else:
                return connection, None
        elif not _has_content(beside(path, "-journal")):
            when = stamp(path)
            with closing(connect(_uri(path, "immutable=1"), uri=True)) as connection:
                return _in_memory(connection), when
    when, _, both = _copies(path)
    return both, when


def needs_copy(error: sqlite3.Error) -> bool:
    """Return whether a study cannot be read in place: a killed process has left a journal."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_ROLLBACK


def _uri(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?{mode}"


def _is_earlier(path: Path) -> bool:
    """Return whether a file is a study of an earlier format, which may be in another mode."""
    with closing(connect(_uri(path, "immutable=1"), uri=True)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return schema.found(connection) == schema.expected(version) if 0 < version < schema.DIGESTS else False


def _in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    copy = connect(":memory:")
    connection.backup(copy)
    return copy


def _copies(path: Path) -> tuple[Stamp, sqlite3.Connection | None, sqlite3.Connection]:
    """Return copies of a study without and with what lies beside it; refuse what does not belong to it."""
    for _ in range(TRIES):
        when = stamp(path)
        with tempfile.TemporaryDirectory(prefix="bounce-") as folder:
            alone, both = Path(folder, "alone.db"), Path(folder, "both.db")
            for suffix in ("", "-wal", "-journal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(beside(path, suffix), beside(both, suffix))
            with suppress(FileNotFoundError):
                shutil.copyfile(both, alone)
            if stamp(path) != when:
                continue
            one = _read_copy(alone)
            two = _read_copy(both)
        if two is None or not _belongs(path, one, two):
            raise _stray(path)
        return when, one, two
    raise InvalidStudy(f"the study {path} changes too fast to be copied: try again")


def _read_copy(path: Path) -> sqlite3.Connection | None:
    """Return a database in memory; None if it is not one."""
    try:
        with closing(connect(str(path))) as connection:
            if path.name == "alone.db":  # a log that is missing is an empty one
                connection.execute("PRAGMA journal_mode = DELETE")
            return _in_memory(connection)
    except sqlite3.Error:
        return None


def refuse_what_does_not_belong(path: Path) -> None:
    """Refuse a journal or a log that was not left by the last process that changed the study."""
    if _has_content(beside(path, "-wal")) or _has_content(beside(path, "-journal")):
        _copies(path)


def _belongs(path: Path, alone: sqlite3.Connection | None, both: sqlite3.Connection) -> bool:
    """Return whether what lies beside a study is its own: with it, the study is whole, and the same one.

    A journal undoes at most the one transaction that nobody was told of. A log of an earlier format may add many.
    """
    one, two = _identity(alone), _identity(both)
    if not _has_content(path):
        return False
    if two is None:
        return one is None  # nothing is whole: the reader says what is damaged
    if one is None:
        return True
    if one.version < schema.DIGESTS:
        return one.name == two.name and two.revision >= one.revision
    if _has_content(beside(path, "-wal")):
        return False  # this format has no log
    return one.name == two.name and one.revision - two.revision in (0, 1)


class _Identity(NamedTuple):
    version: int
    name: str
    revision: int


def _identity(connection: sqlite3.Connection | None) -> _Identity | None:
    """Return which study a database is, and when; None if it is not a whole one."""
    if connection is None:
        return None
    try:
        content = rows.read(connection)
    except (rows.Unfit, sqlite3.Error):
        return None
    name = content.study.get("uuid") or content.study["created"]
    return _Identity(content.version, name, content.study["revision"])


def _stray(path: Path) -> InvalidStudy:
    left = [beside(path, suffix).name for suffix in ("-journal", "-wal") if _has_content(beside(path, suffix))]
    names = " and ".join(left)
    return InvalidStudy(
        f"{names} beside {path} does not belong to it: it is from another study, or from another time. Nothing was "
        f"changed. If {path.name} is the study that you want, move {names} to another folder and try again"
    )
