"""Keeper: holds the optimizer of a study and keeps the study's file in step with it.

The file is the truth; the optimizer in memory is a copy that knows its revision. A change is made in the copy, written
in one transaction, and only then returned; if the write fails, the copy is discarded. Without a file, the optimizer
itself is the truth.

The threads of a process take turns: each reads and changes while it holds a mutex. Between processes there is the lock.
A run holds the lock for as long as it lasts, and the mutex only for a moment.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bounce.errors import InvalidState, InvalidStudy, StorageFailed, StudyLocked
from bounce.optimizer.bounce import Bounce
from bounce.spaces.space import Space
from bounce.study import schema
from bounce.study.history import Entry
from bounce.study.lock import Lock
from bounce.study.storage import Changes, Storage

LONGEST = 200  # characters quoted from the error of a damaged study
WAIT = 60.0  # seconds for which an ask or a tell waits for others


class Keeper:
    """The optimizer of a study, with its file and the lock on it, if it has a file."""

    def __init__(self, path: Path | None, first: Bounce | None = None, given: Space | None = None) -> None:
        self.given = given
        """The space that the caller has, with the functions of its constraints, which a file cannot hold."""
        self.running = False
        """Whether this object is running the study, so that nobody else can change it."""
        self.storage = None if path is None else Storage(path)
        self._lock = None if self.storage is None else Lock(self.storage.file)
        self._held = 0
        self._mutex = threading.RLock()
        self._known: tuple[int, Bounce] | None = None
        self._entries: list[Entry] = []
        if self.storage is None:
            assert first is not None
            self._known = 0, first

    @property
    def path(self) -> Path | None:
        """The file; None for a study in memory."""
        return None if self.storage is None else self.storage.path

    @property
    def name(self) -> str:
        """What messages call the study."""
        return "the study" if self.path is None else f"the study {self.path}"

    @property
    def exists(self) -> bool:
        """Whether there is an optimizer: a new file has none."""
        return self.storage is None or self.storage.exists

    def create(self, first: Bounce) -> None:
        """Write a new optimizer to the file, unless another process has just done so."""
        assert self.storage is not None
        try:
            with self.locked():
                if not self.storage.exists:
                    self.storage.create(first.state_dict())
                    self._known = self.storage.revision, first
        except StorageFailed as error:
            if self.storage.exists or not self._is_unwritable():
                raise
            raise InvalidStudy(
                f"{self.name} does not exist and cannot be created: its folder cannot be written to"
            ) from error

    def _is_unwritable(self) -> bool:
        """Return whether the folder takes no files, whatever the permissions say."""
        assert self.storage is not None
        try:
            with tempfile.TemporaryFile(dir=self.storage.file.parent):
                return False
        except OSError:
            return True

    @property
    def optimizer(self) -> Bounce:
        """The optimizer as the file has it."""
        with self._mutex:
            return self._current()

    def _current(self) -> Bounce:
        if self._known is not None and (self.storage is None or self.running):
            return self._known[1]  # nobody else can have changed it
        assert self.storage is not None
        if self._known is None or self._known[0] != self.storage.revision:
            revision, state = self.storage.load()
            try:
                given = self.given if self.given is not None and self.given.to_dict() == state["space"] else None
                self._known = revision, Bounce.from_state_dict(state, space=given)
            except InvalidState as error:
                text = str(error)
                short = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
                raise InvalidStudy(f"{self.name} cannot be used: {short}") from error
        return self._known[1]

    @contextmanager
    def changing(self) -> Iterator[Bounce]:
        """Yield the optimizer to be changed and saved; after an error, the file decides what it is."""
        with self._mutex, self.locked():
            try:
                yield self.optimizer
            except BaseException:
                if self.storage is not None:
                    self._known = None  # it may be ahead of the file
                raise

    def save(self, optimizer: Bounce, entries: Sequence[Entry] = (), *, space: bool = False) -> None:
        """Write the trials that changed, where the optimizer stands, and what the history keeps of it.

        `space` says that the space changed.
        """
        touched = optimizer.touched
        if self.storage is None:
            self._entries += entries
        else:
            rows = optimizer.changes(touched)
            points = {i: optimizer.trial(i).point for i in touched}
            kept = Changes(rows, points, entries, optimizer.space.to_dict() if space else None)
            assert self._known is not None
            self._known = self.storage.save(kept, self._known[0]), optimizer
        optimizer.forget_touched()

    @property
    def history(self) -> list[Entry]:
        """What was changed by hand, oldest first."""
        with self._mutex:
            return list(self._entries) if self.storage is None else self.storage.history()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, for as long as a change takes."""
        with self._mutex:
            if self._held == 0:
                self._acquire()
            self._held += 1
        try:
            yield
        finally:
            with self._mutex:
                self._held -= 1
                if self._held == 0 and self._lock is not None:
                    self._lock.release()

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """Hold the lock for a run, and let other processes read who holds it."""
        if self.running:
            raise StudyLocked(f"{self.name} is already being run by this object")
        with self.locked():
            self.running = True
            try:
                self._set_runner(f"process {os.getpid()} on {socket.gethostname()}")
                yield
                if self.storage is not None:
                    with self._mutex:
                        self.storage.check_place()
            finally:
                self.running = False
                with suppress(StorageFailed):  # a stale name is ignored while nobody holds the lock
                    self._set_runner(None)

    def _set_runner(self, name: str | None) -> None:
        """Write into the file who is running the study."""
        if self.storage is not None:
            with self._mutex:
                self.storage.set_runner(name)

    def _acquire(self) -> None:
        if self.storage is None or self._lock is None:
            return
        if not self.storage.writable:
            raise StorageFailed(f"{self.name} can only be read here: its file or folder cannot be written")
        storage = self.storage
        if not self._lock.acquire(WAIT, hopeless=lambda: storage.runner is not None):  # others are soon done, a run not
            runner = storage.runner
            if runner is None:
                raise StudyLocked(f"other processes kept {self.name} busy for {WAIT:g} s: try again")
            raise StudyLocked(
                f"{self.name} is being run by {runner}: wait until it ends, or stop it. "
                "Reading is possible in the meantime"
            )
        try:
            version = self.storage.version
            if version:
                optimizer = self.optimizer  # as the file has it, for the time of the lock
                if version < len(schema.MIGRATIONS):
                    assert self._known is not None
                    self._known = self.storage.migrate(optimizer.changes([]), self._known[0]), optimizer
                if self.storage.runner is not None:
                    self.storage.set_runner(None)  # left by a run that was killed
        except BaseException:
            self._lock.release()
            raise

    @property
    def runner(self) -> str | None:
        """Who is running the study now; None if nobody is."""
        with self._mutex:
            return self._who()

    def _who(self) -> str | None:
        if self.storage is None or self._lock is None or self._held:
            return f"process {os.getpid()}" if self.running else None
        if not self.storage.writable or not self._lock.exists:
            return None  # nobody has ever changed it here
        with suppress(StorageFailed):  # a full disk, on which no run lasts
            if not self._lock.acquire():
                return self.storage.runner
            self._lock.release()
        return None

    def close(self) -> None:
        """Close the file and the lock."""
        if self.running:
            raise StudyLocked(f"{self.name} is being run by this object: end the run with stop(), then close it")
        with self._mutex:
            if self.storage is not None:
                self.storage.close()
            if self._lock is not None:
                self._lock.close()
