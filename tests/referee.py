"""An objective whose every evaluation asks a referee in the test for leave to go on: no clock decides anything."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from queue import Queue
from typing import Any

PATIENCE = 30.0  # seconds after which a test that waits for an evaluation fails instead


def value(point: dict[str, Any]) -> float:
    """Return what an evaluation of a point says."""
    return float(sum(point.values()))


@dataclass(frozen=True)
class Refereed:
    """An objective that reports to the referee at an address and waits for its word."""

    address: str

    def __call__(self, point: dict[str, Any]) -> float:
        with Client(self.address) as connection:
            connection.send((os.getpid(), point))
            connection.recv()
        return value(point)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that has begun and waits."""

    pid: int
    point: dict[str, Any]
    connection: Connection

    def go(self) -> None:
        """Let it return its value."""
        self.connection.send("go")


class Referee:
    """Where evaluations report: `begun` returns the next one."""

    def __init__(self, address: str) -> None:
        self.objective = Refereed(address)
        self.log: list[Evaluation] = []
        self._queue: Queue[Evaluation] = Queue()
        self._listener = Listener(address)

    def begun(self) -> Evaluation:
        """Wait for the next evaluation to begin."""
        evaluation = self._queue.get(timeout=PATIENCE)
        self.log.append(evaluation)
        return evaluation

    def listen(self) -> None:
        """Take reports until the listener is closed."""
        while True:
            connection = self._listener.accept()
            report = connection.recv()
            if report is None:
                connection.close()
                return
            pid, point = report
            self._queue.put(Evaluation(pid, point, connection))

    def close(self) -> None:
        """Send everyone away: an evaluation that still waits ends with an EOFError."""
        with Client(str(self._listener.address)) as connection:
            connection.send(None)


@contextmanager
def refereed(folder: Path) -> Iterator[Referee]:
    """Open a referee at an address in a folder."""
    referee = Referee(str(folder / "referee"))
    thread = threading.Thread(target=referee.listen)
    thread.start()
    try:
        yield referee
    finally:
        referee.close()
        thread.join()
        referee._listener.close()
        for evaluation in referee.log:
            with suppress(OSError):
                evaluation.connection.close()
