"""Displays: what a run on the command line shows. A live panel on a terminal, lines elsewhere, JSON, or nothing.

A display is called with each finished trial, in the thread of the run. Panel and lines are those of `live`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import TextIO

from rich.console import Console

from bounce.live.display import Lines, Panel
from bounce.live.progress import Progress
from bounce.study.study import Study
from bounce.text import brief, printable
from bounce.trial import Trial


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output for the display; what an objective prints goes to standard error instead.

    So a program can read our output. The file descriptor is changed, since worker processes inherit it.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    with open(kept, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
        os.dup2(2, 1)
        try:
            with redirect_stdout(sys.stderr):
                yield out
        finally:
            os.dup2(kept, 1)


class Warnings(logging.Handler):
    """Print warnings of the package on standard error, above a live display; or drop them, if `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(logging.WARNING)
        self._quiet = quiet

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning: the first failure in full, any other warning in one line."""
        if self._quiet:
            return
        text = record.getMessage()
        lines = text.splitlines() if getattr(record, "in_full", False) else [brief(text)]
        print("bounce: " + "\n".join(map(printable, lines)), file=sys.stderr)

    def __enter__(self) -> Warnings:
        logging.getLogger("bounce").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("bounce").removeHandler(self)


class JsonLines:
    """A JSON object for each finished trial, on standard output."""

    def __init__(self, progress: Progress, out: TextIO) -> None:
        self._progress, self._out = progress, out

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, trial: Trial) -> None:
        """Print a finished trial."""
        self._progress.tell(trial)
        best = self._progress.best
        print(json.dumps(asdict(trial) | {"best": None if best is None else best.id}), file=self._out, flush=True)


class Silence:
    """No display."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, trial: Trial) -> None:
        """Print nothing."""


Display = Panel | Lines | JsonLines | Silence


def display(study: Study, name: str, out: TextIO, *, quiet: bool, as_json: bool) -> Display:
    """Return the display for the given options and the place that output goes to."""
    if as_json:
        return JsonLines(Progress(study), out)
    if quiet:
        return Silence()
    console = Console(stderr=True)
    return Panel(name, Progress(study), console) if console.is_terminal else Lines(Progress(study))
