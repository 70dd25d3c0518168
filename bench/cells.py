"""Cells: the runs of a grid, one small JSON file for each problem, method and seed, written when the run is complete.

A file appears at once or not at all, so everything can be stopped at any instant and continued. A file holds the best
value after every evaluation. For a problem with noise it also holds the true value of the point that the method
reports after some numbers of evaluations, and only that value is scored.

FOLDER/PROBLEM/LABEL-200-seed0.json
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np

from bounce.errors import InvalidInput
from labels import Label
from tasks import PROBLEMS, NoisyTask, Problem

TRUE_AT = (5, 10, 25, 50, 75, 100, 150, 200)  # evaluations after which the true value of the reported point is found
LIMIT = 3600.0  # seconds of CPU time after which a run is stopped, unless another number is given


@dataclass(frozen=True)
class Run:
    """What a file holds."""

    problem: str
    label: str
    seed: int
    evaluations: int
    options: Mapping[str, Any]
    best: Sequence[float]
    """The lowest value so far after each evaluation; shorter if the run was stopped at its limit."""
    truth: Mapping[int, float]
    """For a problem with noise, the true value of the reported point, by evaluations."""
    limit: float
    """Seconds after which the run would have been, or was, stopped."""
    seconds_ask: float
    seconds_evaluate: float
    revision: str = ""
    """The commit of the code."""

    whole: ClassVar[bool] = True
    """Whether `best` has the value after every evaluation; a run that was kept has only some (kept.py)."""

    @property
    def lowest(self) -> float:
        """The lowest value to score that the run ever had; infinity if it has none."""
        return min(self.truth.values() if self.truth else self.best, default=math.inf)

    def at(self, mark: int) -> float | None:
        """Return the value to score after a number of evaluations; None if the run did not get there."""
        if len(self.best) < mark:
            return None
        if not self.truth:
            return float(self.best[mark - 1])
        known = [n for n in self.truth if n <= mark]
        return float(self.truth[max(known)]) if known else None


@dataclass(frozen=True)
class Cell:
    """A run to be made, or that was made."""

    out: Path
    problem: str
    label: Label
    seed: int
    evaluations: int
    limit: float = LIMIT

    def __str__(self) -> str:
        return f"{self.label.name} on {self.problem}, seed {self.seed}"

    @property
    def path(self) -> Path:
        """The file of the run."""
        name = quote(self.label.name, safe="=")
        return self.out / self.problem / f"{name}-{self.evaluations}-seed{self.seed}.json"

    def missing(self) -> bool:
        """Return whether the run must be made: it has no file, or was stopped at a lower limit."""
        if not self.path.exists():
            return True
        run = read(self.path)
        if dict(run.options) != json.loads(json.dumps(self.label.options)):
            raise InvalidInput(
                f"{self.path} was made with the options {dict(run.options)}, not {dict(self.label.options)}: "
                "use another label or delete the file"
            )
        return len(run.best) < self.evaluations and run.limit < self.limit

    def write(self, run: Run) -> None:
        """Write the file of the run, at once or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(asdict(run)), encoding="utf-8")
        os.replace(part, self.path)


def read(path: Path) -> Run:
    """Read the file of a run."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Run(**found | {"truth": {int(n): value for n, value in found["truth"].items()}})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInput(f"{path} is not a run: {error}") from None


def read_all(out: Path, problems: Iterable[str], evaluations: int) -> list[Run]:
    """Read the files of all runs on some problems."""
    paths = (path for name in problems for path in sorted((out / name).glob(f"*-{evaluations}-seed*.json")))
    return [read(path) for path in paths]


@cache
def revision() -> str:
    """Return the commit of the code, marked if files differ from it; empty if it cannot be found."""
    command = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


@dataclass
class Watch:
    """What is kept of a run while it goes on."""

    problem: Problem
    best: list[float] = field(default_factory=list)
    truth: dict[int, float] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)
    asking: float = 0.0
    evaluating: float = 0.0

    def note(self, value: float, optimizer: Any, last: int) -> None:
        """Keep a value that was told, and at some evaluations the true value of the reported point."""
        self.best.append(min(value, self.best[-1]) if self.best else value)
        n = len(self.best)
        if isinstance(self.problem, NoisyTask) and (n in TRUE_AT or n == last):
            point = reported(optimizer)
            key = json.dumps(point, sort_keys=True)
            if key not in self.known:
                self.known[key] = self.problem.truth(point)
            self.truth[n] = self.known[key]


def reported(optimizer: Any) -> Mapping[str, Any]:
    """Return the point that a method would hand to its user: what it recommends, or that of the lowest value."""
    recommend = getattr(optimizer, "recommend", None)
    point: Mapping[str, Any] = (optimizer.best if recommend is None else recommend()).point
    return point


def make(cell: Cell) -> Run:
    """Make a run. A value that is not finite fails it."""
    problem = PROBLEMS[cell.problem].make(cell.seed)
    PROBLEMS[cell.problem].make(cell.seed).evaluate(problem.space.sample(1, rng=np.random.default_rng(0)))  # reads data
    optimizer = cell.label.make(problem.space, cell.evaluations, cell.seed)
    watch, parent, start = Watch(problem), parent_process(), time.process_time()
    while not optimizer.done and time.process_time() - start < cell.limit:
        if parent is not None and not parent.is_alive():
            os._exit(1)  # nobody waits for this run any more
        begin = time.perf_counter()
        (trial,) = optimizer.ask()
        asked = time.perf_counter()
        value = problem(trial.point)
        told = time.perf_counter()
        optimizer.tell(trial, value)
        watch.asking += asked - begin + time.perf_counter() - told
        watch.evaluating += told - asked
        watch.note(value, optimizer, cell.evaluations)
    return Run(
        cell.problem,
        cell.label.name,
        cell.seed,
        cell.evaluations,
        cell.label.options,
        watch.best,
        watch.truth,
        cell.limit,
        watch.asking,
        watch.evaluating,
        revision(),
    )


def available(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Return the problems that can be used here, and why the others cannot."""
    reasons = {name: reason for name in names if (reason := PROBLEMS[name].missing()) is not None}
    return [name for name in names if name not in reasons], reasons
