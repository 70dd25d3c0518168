"""A lock between processes that is released when its holder ends, and that its waiters get in turn.

It is an exclusive transaction on an empty SQLite file. It works on every system, and between two objects of one process
too. The operating system releases it when the process ends, however it ends.

Whoever wants the lock first passes a gate, a second lock of the same sort, and keeps it until it has the first. So a
process that releases the lock and wants it again comes after those who wait: nobody starves.
"""

from __future__ import annotations

import random
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from bounce.errors import StorageFailed

POLL = 0.002  # seconds between two tries, on average


class _File:
    """An exclusive lock on a file of its own, which is empty and is never removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def acquire(self, until: float) -> bool:
        """Take the lock if it is free before a moment; return whether it was."""
        while not self._taken():
            if time.monotonic() >= until:
                return False
            time.sleep(2.0 * POLL * random.random())
        return True

    def _taken(self) -> bool:
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self.path, 0.0, isolation_level=None, check_same_thread=False)
                weakref.finalize(self, self._connection.close)
                self._connection.execute("PRAGMA journal_mode = MEMORY")  # nothing is ever written
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return False
            raise StorageFailed(f"the study's lock {self.path} could not be used: {error}") from error
        return True

    def release(self) -> None:
        assert self._connection is not None
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Lock:
    """The lock of a study, in two files beside it."""

    def __init__(self, study: Path) -> None:
        self._lock, self._gate = (_File(study.with_name(study.name + suffix)) for suffix in (".lock", ".queue"))

    @property
    def exists(self) -> bool:
        """Whether anybody has ever wanted it."""
        return self._lock.path.exists()

    def acquire(self, seconds: float = 0.0, *, hopeless: Callable[[], bool] = lambda: False) -> bool:
        """Take the lock, waiting for it for at most this long; return whether it could be had.

        If it is taken, `hopeless` says whether waiting makes no sense.
        """
        until = time.monotonic() + seconds
        if not self._gate.acquire(until):
            return False
        try:
            if self._lock.acquire(0.0):
                return True
            return not hopeless() and self._lock.acquire(until)
        finally:
            self._gate.release()

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def close(self) -> None:
        """Release the lock and close its files."""
        self._lock.close()
        self._gate.close()
