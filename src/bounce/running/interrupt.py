"""Interrupt: Ctrl-C asks a run to end, and ends it at once the second time; other signals may end it too.

An objective that runs in this process may raise `KeyboardInterrupt` or `SystemExit` by itself. So every signal is
noted: an exception of these kinds comes from outside only if a signal has arrived.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("bounce")

WATCHED = ("SIGINT", "SIGTERM", "SIGHUP")  # signals whose handlers may end the run by an exception


class Interrupt:
    """Ctrl-C within a block: the first one asks the run to stop, the second one stops it at once."""

    def __init__(self) -> None:
        self.asked = False
        self.arrived = False
        """Whether a signal has arrived that may have raised an exception."""

    def __enter__(self) -> Interrupt:
        self._before: dict[int, tuple[Any, Any]] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in WATCHED if hasattr(signal, name)):
                handler = signal.getsignal(number)
                if callable(handler) or handler is signal.SIG_DFL:
                    own = self._handle if handler is signal.default_int_handler else self._noting(handler)
                    signal.signal(number, own)
                    self._before[number] = own, handler
        return self

    def __exit__(self, *_: object) -> None:
        for number, (own, handler) in self._before.items():
            if signal.getsignal(number) is own:
                signal.signal(number, handler)

    def _noting(self, handler: Callable[..., Any] | signal.Handlers) -> Callable[..., Any]:
        def noted(number: int, frame: Any) -> Any:
            self.arrived = True
            if not callable(handler):  # the default, which would end the process without a trace
                raise SystemExit(128 + number)
            return handler(number, frame)

        return noted

    def _handle(self, *_: object) -> None:
        self.arrived = True
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        logger.warning("interrupted: waiting for running evaluations to finish; press Ctrl-C again to stop at once")
