"""Displays: what a run shows. A live panel on a terminal, lines elsewhere, JSON for programs, or nothing.

A display is called with each finished trial, in the thread of the run. The panel is drawn in a thread of its own, so
it uses only the progress so far and the number of evaluations in flight.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from datetime import datetime
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from bounce.cli.progress import Progress
from bounce.cli.words import best_of, clock, count, region, seconds, sparkline
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


class Panel:
    """A live display on a terminal."""

    def __init__(self, name: str, progress: Progress, console: Console) -> None:
        self._name, self._progress, self._console = name, progress, console
        self._widths: list[int] = []  # of the lines drawn last
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=False)

    def __enter__(self) -> Panel:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def __call__(self, trial: Trial) -> None:
        """Show a finished trial."""
        self._progress.tell(trial)

    def _draw(self) -> Segments:
        self._clear_wrapped()
        lines = [_without_end(line) for line in self._console.render_lines(self._grid(), pad=False)]
        self._widths = [Segment.get_line_length(line) for line in lines]
        separated = [part for line in lines for part in (*line, Segment.line())]
        return Segments(separated[:-1])

    def _clear_wrapped(self) -> None:
        """Clear the last frame if the terminal has become so narrow that it has wrapped the frame's lines.

        `Live` moves the cursor up by the number of lines it has drawn, but the wrapped lines take more rows.
        """
        width = self._console.width
        rows = sum(max(1, -(-length // width)) for length in self._widths)
        if rows > len(self._widths) and len(self._widths) <= self._console.height:
            up = f"\x1b[{min(rows, self._console.height) - 1}A"
            self._console.file.write(f"\r{up}\x1b[J" + "\n" * (len(self._widths) - 1))

    def _grid(self) -> Table:
        p = self._progress
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row(Text(self._name), Text(p.counts))
        grid.add_row("", ProgressBar(total=p.budget, completed=p.finished, width=50))
        grid.add_row("best", f"{best_of(p.best)}  {sparkline(p.curve, 30)}")
        if p.last is not None:
            grid.add_row("stage", f"{count(p.last.target_dim, 'bin')}, {count(p.dimensions, 'variable')}")
            grid.add_row("region", region(p.last.radius, p.last.side))
        grid.add_row("time", f"ask {seconds(p.seconds_ask)}, evaluation {seconds(p.seconds_eval)}")
        left = p.left
        until = f", until {clock(left, datetime.now())}" if left and left >= 60 else ""
        grid.add_row("", f"{seconds(p.elapsed)} so far, {p.end}{until}")
        return grid


def _without_end(line: list[Segment]) -> list[Segment]:
    """Return a line without the spaces at its end, so that it wraps only where its text does."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style, kept[-1].control)
    return kept


class Lines:
    """A line for each finished trial, where there is no terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, trial: Trial) -> None:
        """Print a finished trial."""
        p = self._progress
        p.tell(trial)
        outcome = f"{trial.value:.6g}" if trial.value is not None else "failed"
        print(
            f"{p.finished}/{p.budget} trial {trial.id}: {outcome}, best {best_of(p.best)}, "
            f"{p.in_flight} in flight, {count(trial.target_dim, 'bin')}, {p.end}",
            file=sys.stderr,
            flush=True,
        )


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
