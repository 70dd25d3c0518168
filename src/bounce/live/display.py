"""Displays: a live panel on a terminal, a table in a notebook, lines elsewhere.

A display is called with each finished trial, in the thread of the run. The panel is drawn in a thread of its own, so
it uses only the progress so far and the number of evaluations in flight. Everything goes to standard error, except in a
notebook.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from bounce.live.progress import Progress, Watched
from bounce.live.words import best_of, clock, count, region, seconds, sparkline
from bounce.markup import facts
from bounce.trial import Trial

QUIET = 10.0  # seconds between two lines in a log
CALM = 0.5  # seconds between two updates in a notebook


class Panel:
    """A live display on a terminal."""

    def __init__(self, name: str, progress: Progress, console: Console) -> None:
        self._name, self._progress, self._console = name, progress, console
        self._widths: list[int] = []  # of the lines drawn last
        # What the objective prints appears above the panel, unless it goes to a file.
        printed = getattr(sys.stdout, "isatty", bool)()
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=4, transient=False, redirect_stdout=printed
        )

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


def _say(line: str) -> None:
    """Print a line on standard error; nobody may read it any more, which does not concern the run."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


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
        _say(
            f"{p.finished}/{p.budget} trial {trial.id}: {outcome}, best {best_of(p.best)}, "
            f"{p.in_flight} in flight, {count(trial.target_dim, 'bin')}, {p.end}",
        )


class Summaries:
    """A line now and then, for logs: after the first trial, when some time has passed, and at the end."""

    def __init__(self, name: str, progress: Progress, *, now: Callable[[], float] = time.monotonic) -> None:
        self._name, self._progress, self._now = name, progress, now
        self._last: float | None = None
        self._new = 0

    def __enter__(self) -> Summaries:
        return self

    def __exit__(self, *_: object) -> None:
        if self._new:
            self._print()

    def __call__(self, trial: Trial) -> None:
        """Count a finished trial, and print a line if it is time for one."""
        self._progress.tell(trial)
        self._new += 1
        if self._last is None or self._now() - self._last >= QUIET:
            self._print()

    def _print(self) -> None:
        self._last, self._new = self._now(), 0
        p = self._progress
        _say(
            f"{self._name}: {p.counts}, best {best_of(p.best)}, {seconds(p.seconds_eval)} per evaluation, {p.end}",
        )


class Notebook:
    """A table in the output of a notebook cell, which is updated in place.

    It uses IPython's own display: rich needs ipywidgets for a live display in a notebook.
    """

    def __init__(self, name: str, progress: Progress, *, now: Callable[[], float] = time.monotonic) -> None:
        self._name, self._progress, self._now = name, progress, now
        self._last = 0.0

    def __enter__(self) -> Notebook:
        from IPython.display import display

        self._handle: Any = display(self, display_id=True)
        self._last = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.update(self)

    def __call__(self, trial: Trial) -> None:
        """Count a finished trial, and show it unless the table has just been updated."""
        self._progress.tell(trial)
        if self._now() - self._last >= CALM:
            self._last = self._now()
            self._handle.update(self)

    def __repr__(self) -> str:
        p = self._progress
        return f"{self._name}: {p.counts}, best {best_of(p.best)}, {p.end}"

    def _repr_html_(self) -> str:
        p = self._progress
        time_of = f"ask {seconds(p.seconds_ask)}, evaluation {seconds(p.seconds_eval)}"
        rows = {
            "evaluations": p.counts,
            "best": f"{best_of(p.best)}  {sparkline(p.curve, 30)}",
            "time": f"{time_of}; {seconds(p.elapsed)} so far, {p.end}",
        }
        return facts(self._name, rows, share=p.finished / max(p.budget, 1))


def is_notebook() -> bool:
    """Return whether this is a notebook, which shows what IPython displays."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def shown(run: Watched, name: str) -> Panel | Notebook | Summaries:
    """Return the display for a run, by the place that its output goes to."""
    progress = Progress(run)
    if is_notebook():
        return Notebook(name, progress)
    console = Console(stderr=True)
    return Panel(name, progress, console) if console.is_terminal else Summaries(name, progress)
