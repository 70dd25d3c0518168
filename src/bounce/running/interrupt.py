"""Interrupt: Ctrl-C asks a run to end, and ends it at once the second time."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

logger = logging.getLogger("bounce")


class Interrupt:
    """Ctrl-C within a block: the first one asks the run to stop, the second one stops it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        self._before: Any = None
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        logger.warning("interrupted: waiting for running evaluations to finish; press Ctrl-C again to stop at once")
