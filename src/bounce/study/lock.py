"""A lock between processes that is released when its holder ends.

It is an exclusive transaction on an empty SQLite file. It works on every system, and between two objects of one process
too. The operating system releases it when the process ends, however it ends.
"""

from __future__ import annotations

import sqlite3
import weakref
from pathlib import Path

from bounce.errors import StorageFailed


class Lock:
    """A lock on a file of its own, which is empty and is never removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def acquire(self, seconds: float = 0.0) -> bool:
        """Take the lock, waiting for it for at most this long; return whether it was free."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                weakref.finalize(self, self._connection.close)
            self._connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return False
            raise StorageFailed(f"the study's lock {self._path} could not be used: {error}") from error
        return True

    def release(self) -> None:
        """Release the lock."""
        assert self._connection is not None
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Release the lock and close its file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
