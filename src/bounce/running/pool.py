"""A pool of processes that survives the death of any of them.

Every worker process belongs to one thread of this process, which sends it a call and waits. So the pool knows which
call a dead process was making, can kill one slow call alone, and starts a new process for the next call.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar

from bounce.errors import ExecutorFailed, MachineFailed
from bounce.running.evaluation import said
from bounce.running.reaper import REAPER

DAY = 24 * 3600.0  # seconds; the system can wait for 24 days

P = ParamSpec("P")
T = TypeVar("T")


class WorkerDied(BrokenExecutor):
    """A worker process ended in the middle of a call."""


class CallTooLong(Exception):
    """A call exceeded the time limit; its process was killed."""


class Pool(Executor):
    """An executor of worker processes, with a time limit in seconds for each call."""

    def __init__(self, workers: int, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="bounce-worker")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in a worker process; it, its arguments and its result must pickle."""
        return self._threads.submit(self._call, pickle.dumps((fn, args, kwargs)))

    def _call(self, call: bytes) -> Any:
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None or not worker.alive:
            with self._lock:
                if self._closed:
                    raise WorkerDied("the pool is closed")
                try:
                    worker = self._own.worker = _Worker()
                except (OSError, RuntimeError) as error:
                    raise ExecutorFailed(f"a worker process could not be started: {error}") from error
                self._workers = [other for other in self._workers if other.alive] + [worker]
        return worker.call(call, self._timeout)

    def kill(self) -> None:
        """End all workers at once, in the middle of their calls."""
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the pool; with `wait`, after the submitted calls have ended."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            self.kill()


class _Worker:
    """A process that makes calls, one at a time."""

    def __init__(self) -> None:
        # Not plain fork, since this process has threads. A fork server starts a worker in milliseconds.
        context = get_context("spawn" if sys.platform == "win32" else "forkserver")
        if sys.platform != "win32":
            context.set_forkserver_preload(["bounce.running.evaluation"])
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=serve, args=(theirs,))  # type: ignore[attr-defined]
        with _main_as_workers_see_it():
            self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """End the process, and what it has started."""
        try:
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # it has no group of its own, or has ended
            self._process.kill()
        REAPER.discard(self._process.pid or 0)

    def call(self, call: bytes, timeout: float | None) -> Any:
        try:
            ready = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            raise ExecutorFailed(
                "a worker process could not be started; its error is on standard error. A script that starts workers "
                "must do so below `if __name__ == '__main__':`"
            ) from None
        assert ready == "ready"
        if hasattr(os, "killpg") and self._process.pid is not None:
            REAPER.add(self._process.pid)  # a call that holds the interpreter does not notice the end of its parent
        try:
            self._connection.send_bytes(call)
            unreadable = self._connection.recv()
            if unreadable is not None:
                threads = "" if timeout is not None else ", or use executor=ThreadPoolExecutor(n)"
                raise ExecutorFailed(
                    f"a worker process could not load the objective ({unreadable}): define it in a module or a "
                    f"script that workers can import{threads}"
                )
            if timeout is not None and not _answered(self._connection, timeout):
                raise CallTooLong(f"the evaluation took more than {timeout:g} s")
            result, error = pickle.loads(self._connection.recv_bytes())
        except (EOFError, ConnectionError):
            self._process.join()
            REAPER.discard(self._process.pid or 0)
            raise WorkerDied(f"its process {_ended(self._process.exitcode)}") from None
        except BaseException:
            self.kill()
            self._process.join()
            raise
        if error is not None:
            raise error
        return result


def _answered(connection: Connection, timeout: float) -> bool:
    """Return whether an answer comes within a time, which may be longer than the system can wait at once."""
    end = time.monotonic() + timeout
    while not connection.poll(max(0.0, min(end - time.monotonic(), DAY))):
        if time.monotonic() >= end:
            return False
    return True


def main_is_importable() -> bool:
    """Return whether workers can import `__main__`: not if it is a notebook, a session or standard input."""
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", ""))


@contextmanager
def _main_as_workers_see_it() -> Iterator[None]:
    """Hide the file of a `__main__` from standard input, `<stdin>`, which a new process would try to run."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or main_is_importable():
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = file


def serve(connection: Connection) -> None:
    """Make calls until the other side closes the connection."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C reaches the parent only, and killing the group kills what a call has started
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            connection.send("ready")
            call = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            fn, args, kwargs = pickle.loads(call)
        except BaseException as error:
            connection.send(said(error))
            return
        connection.send(None)
        connection.send_bytes(answer(fn, args, kwargs))


def answer(fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    """Make a call and return its pickled result and error."""
    try:
        return pickle.dumps((fn(*args, **kwargs), None))
    except MachineFailed as error:
        return pickle.dumps((None, error))
    except BaseException as error:
        return pickle.dumps((None, RuntimeError(said(error))))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
