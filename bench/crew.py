"""Crew: processes that make runs, several at a time.

A run that fails, or whose process dies, is reported and does not stop the others.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

import numpy as np

from cells import Cell, make

THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def work(connection: Connection) -> None:
    """Make the runs that come over a connection, until it is closed; answer each with an error message or None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    while True:
        try:
            cell: Cell = connection.recv()
        except (EOFError, OSError):
            return
        try:
            cell.write(make(cell))
            connection.send(None)
        except Exception as error:
            connection.send(f"{type(error).__name__}: {error}")


class Worker:
    """A process with one thread for linear algebra that makes one run after another."""

    def __init__(self) -> None:
        self.connection, theirs = get_context("spawn").Pipe()
        os.environ.update(THREADS)  # before the process imports numpy
        self.process = get_context("spawn").Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.cell: Cell | None = None
        self.since = 0.0

    def begin(self, cell: Cell) -> None:
        """Start a run."""
        self.cell, self.since = cell, time.monotonic()
        self.connection.send(cell)

    def end(self) -> str | None:
        """Return the error of the run that has ended, or None; the process may have died of it."""
        self.cell = None
        try:
            error: str | None = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return f"its process ended with code {self.process.exitcode}"
        return error

    def stop(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.kill()


class Clock:
    """How long runs take, by method, and how long the rest will take."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.seconds: dict[str, list[float]] = {}

    def note(self, label: str, seconds: float) -> None:
        """Add the time of a run."""
        self.seconds.setdefault(label, []).append(seconds)

    def left(self, cells: Iterable[Cell]) -> float:
        """Return the seconds that runs will take, those of an unknown method as long as the mean of the known ones."""
        means = {label: float(np.mean(times)) for label, times in self.seconds.items()}
        usual = float(np.mean(list(means.values()))) if means else math.nan
        return sum(means.get(cell.label.name, usual) for cell in cells) / self.jobs


def spell(seconds: float) -> str:
    """Return a duration in words."""
    if not math.isfinite(seconds):
        return "unknown"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


class Crew:
    """Several workers and the runs that wait for them."""

    def __init__(self, cells: Sequence[Cell], jobs: int) -> None:
        self.waiting, self.total, self.clock = list(cells), len(cells), Clock(jobs)
        self.begun = time.monotonic()
        self.workers = [Worker() for _ in range(min(jobs, len(cells)))]

    def begin(self) -> bool:
        """Give every idle worker a run; return whether any is under way."""
        for i, worker in enumerate(self.workers):
            if worker.cell is None and self.waiting:
                if not worker.process.is_alive():
                    worker = self.workers[i] = Worker()
                worker.begin(self.waiting.pop(0))
        return any(worker.cell for worker in self.workers)

    def ended(self) -> Iterable[tuple[Cell, str | None]]:
        """Wait until runs have ended, and return each with its error; print a line of progress for each."""
        ready = wait([worker.connection for worker in self.workers if worker.cell])
        for worker in [worker for worker in self.workers if worker.connection in ready]:
            cell, seconds = worker.cell, time.monotonic() - worker.since
            assert cell is not None
            error = worker.end()
            self.clock.note(cell.label.name, seconds)
            rest = [*self.waiting, *(other.cell for other in self.workers if other.cell)]
            said = f"{seconds:.1f} s" if error is None else f"failed: {error}"
            times = f"{spell(time.monotonic() - self.begun)} so far, {spell(self.clock.left(rest))} to go"
            print(f"{self.total - len(rest)} of {self.total}  {cell}: {said}; {times}", flush=True)
            yield cell, error

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()


def run_all(cells: Sequence[Cell], jobs: int) -> list[str]:
    """Make runs in several processes; return what failed."""
    failed = []
    crew = Crew(cells, jobs)
    try:
        while crew.begin():
            failed += [f"{cell}: {error}" for cell, error in crew.ended() if error is not None]
    finally:
        crew.stop()
    return failed
