"""What a run shows: a live panel on a terminal, lines elsewhere, JSON for machines, or nothing.

A display is told of each finished trial, in the thread of the run. The panel is drawn in a thread of its own, so
it uses nothing but what the display was told, and the number of evaluations in flight.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bounce.study.study import Study
from bounce.trial import Trial

BLOCKS = "▁▂▃▄▅▆▇█"
LONGEST = 1e9  # seconds that are worth telling apart


def sparkline(values: Sequence[float], width: int) -> str:
    """Return numbers as small bars; of more than `width`, some that are evenly spread, with both ends."""
    count = min(width, len(values))
    picked = [values[-1 - round(i * (len(values) - 1) / max(count - 1, 1))] for i in reversed(range(count))]
    low, high = min(picked, default=0.0) / 2, max(picked, default=0.0) / 2  # halves: a difference stays finite
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[round(top * ((x / 2 - low) / (high - low))) if high > low else 0] for x in picked)


def seconds(number: float | None) -> str:
    """Return a time for people: 12 ms, 3.4 s, 2:10:05, 3 days, 4:05:06."""
    if number is None:
        return "unknown"
    if number < 0.9995:
        return f"{1000 * number:.0f} ms"
    return f"{number:.1f} s" if number < 119.95 else str(timedelta(seconds=round(min(number, LONGEST))))


def clock(left: float, now: datetime) -> str:
    """Return when it will be over: a time of today, or a date."""
    end = now + timedelta(seconds=min(left, LONGEST))
    return f"{end:%H:%M}" if end.date() == now.date() else f"{end:%Y-%m-%d %H:%M}"


def region(radius: float, side: float) -> str:
    """Return the lengths of a trust region in words."""
    parts = []
    if radius:
        plural = "" if radius == 1 else "s"
        parts.append(f"up to {radius:.3g} discrete dimension{plural} may change")
    if side:
        parts.append(f"{side:.3g} of each range")
    return ", ".join(parts) or "everything"


def best_of(trial: Trial | None) -> str:
    """Return the best value and its trial."""
    return "none yet" if trial is None or trial.value is None else f"{trial.value:.6g} (trial {trial.id})"


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output for the display; what an objective prints there goes to standard error meanwhile.

    So what we print stays what a program can read. Worker processes inherit it: it is done to the descriptor.
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


def brief(text: str) -> str:
    """Return a text of many lines in one: the first, and the last, which says most of an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join([lines[0], lines[-1]] if len(lines) > 1 else lines)


class Warnings(logging.Handler):
    """Print what the package warns of, on standard error as it is then: a live display steps aside."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message in one line."""
        print(f"bounce: {brief(record.getMessage())}", file=sys.stderr)

    def __enter__(self) -> Warnings:
        logging.getLogger("bounce").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("bounce").removeHandler(self)


class Progress:
    """What a display knows of a run."""

    def __init__(self, study: Study) -> None:
        self._study = study
        options = study.options
        self.maximize = options["direction"] == "maximize"
        self.budget = int(min(options["budget"], study.space.size))
        self.dimensions = len(study.space)
        self.finished, self.failed, self.here = 0, 0, 0
        self.best: Trial | None = None
        self.last: Trial | None = None
        self.curve: list[float] = []
        self._ask, self._eval, self._evals = 0.0, 0.0, 0
        self._start = time.monotonic()
        for trial in study.trials:
            if trial.state != "pending":
                self._count(trial)

    def tell(self, trial: Trial) -> None:
        """Take a finished trial of this run."""
        self.here += 1
        self._count(trial)

    def _count(self, trial: Trial) -> None:
        self.finished += 1
        self.failed += trial.state == "failed"
        self.last = trial
        self._ask += trial.seconds_ask
        if trial.seconds_eval is not None:
            self._eval, self._evals = self._eval + trial.seconds_eval, self._evals + 1
        if trial.value is not None:
            sign = -1.0 if self.maximize else 1.0
            if self.best is None or sign * trial.value < sign * self._best_value:
                self.best = trial
            self.curve.append(self._best_value)

    @property
    def _best_value(self) -> float:
        assert self.best is not None
        assert self.best.value is not None
        return self.best.value

    @property
    def in_flight(self) -> int:
        """How many evaluations are out."""
        return self._study.in_flight

    @property
    def seconds_ask(self) -> float | None:
        """The mean time of an ask, per trial."""
        return self._ask / self.finished if self.finished else None

    @property
    def seconds_eval(self) -> float | None:
        """The mean time of an evaluation."""
        return self._eval / self._evals if self._evals else None

    @property
    def elapsed(self) -> float:
        """How long this run has been going."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float | None:
        """How long it will go on, at the pace so far."""
        return self.elapsed / self.here * max(self.budget - self.finished, 0) if self.here else None

    @property
    def end(self) -> str:
        """When it will be over, in words."""
        if self.finished >= self.budget:
            return "done"
        left = self.left
        return "no end known yet" if left is None else f"about {seconds(left)} to go"


class Panel:
    """A live display on a terminal."""

    def __init__(self, name: str, progress: Progress, console: Console) -> None:
        self._name, self._progress = name, progress
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=False)

    def __enter__(self) -> Panel:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def __call__(self, trial: Trial) -> None:
        """Show a finished trial."""
        self._progress.tell(trial)

    def _draw(self) -> Group:
        p = self._progress
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        done = Text(f"{p.finished} of {p.budget} done, {p.in_flight} in flight, {p.failed} failed")
        grid.add_row(Text(self._name), done)
        grid.add_row("", ProgressBar(total=p.budget, completed=p.finished, width=50))
        grid.add_row("best", f"{best_of(p.best)}  {sparkline(p.curve, 30)}")
        if p.last is not None:
            grid.add_row("space", f"{p.last.target_dim} of {p.dimensions} dimensions")
            grid.add_row("region", region(p.last.radius, p.last.side))
        grid.add_row("time", f"ask {seconds(p.seconds_ask)}, evaluation {seconds(p.seconds_eval)}")
        left = p.left
        until = f", until {clock(left, datetime.now())}" if left and left >= 60 else ""
        grid.add_row("", f"{seconds(p.elapsed)} so far, {p.end}{until}")
        return Group(grid)


class Lines:
    """A line per finished trial, where there is no terminal."""

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
            f"{p.in_flight} in flight, target dimension {trial.target_dim}, {p.end}",
            file=sys.stderr,
            flush=True,
        )


class JsonLines:
    """A JSON object per finished trial, on standard output."""

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
    """Nothing."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, trial: Trial) -> None:
        """Keep quiet."""


Display = Panel | Lines | JsonLines | Silence


def display(study: Study, name: str, out: TextIO, *, quiet: bool, as_json: bool) -> Display:
    """Return what fits the options and where the output goes."""
    if as_json:
        return JsonLines(Progress(study), out)
    if quiet:
        return Silence()
    console = Console(stderr=True)
    return Panel(name, Progress(study), console) if console.is_terminal else Lines(Progress(study))
