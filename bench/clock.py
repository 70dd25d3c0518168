"""A time limit from inside a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(BaseException):
    """The time is over. Not an Exception, so that no package takes it for one of its own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Stopped` inside after so many seconds. Needs the main thread of a Unix process."""

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
