"""Kept runs: one line per run in a small CSV file, so that runs of several days and machines add up.

A trace is large, and stays where it was made. Of a run, figures and claims need the best value after every evaluation;
that changes a few times only, so a line has the evaluations at which it changed, with full precision. The lines are
sorted: two machines with the same runs have the same file.

The invariant: a figure or a claim is the same from kept runs as from their traces.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bounce.errors import InvalidInput
from bounce.gp.linalg import Array
from bounce.paper.traces import SEED, Seen, Trace

NAMES = ("run", "seed", "evaluations", "revision", "best", "proposed")
"""The columns. `run` is the name of the curve. `best` is such as `1:16.3 7:15.9`, the evaluation and the value, and
`proposed` such as `1:812 2:99`, the value and how often a variable had it."""

Key = tuple[str, int]
"""The name of a curve, and a seed."""


@dataclass(frozen=True)
class Kept:
    """A run without its points."""

    name: str
    """The name of its curve."""
    seed: int
    evaluations: int
    revision: str
    """The version of the code that made it."""
    changes: tuple[tuple[int, float], ...]
    """Evaluations after which the best value is another one, from 1 on, and that value."""
    proposed: Mapping[int, int]

    @property
    def key(self) -> Key:
        """What two runs have in common if one is the beginning of the other."""
        return self.name, self.seed

    @property
    def best(self) -> Array:
        """The lowest value so far after each evaluation; NaN before the first value."""
        found = np.full(self.evaluations, np.nan)
        for at, value in self.changes:
            found[at - 1 :] = value
        return found


def kept(name: str, trace: Trace, revision: str) -> Kept:
    """Return what is kept of a trace."""
    best = trace.best
    new = np.flatnonzero(np.isfinite(best) & (best != np.concatenate([[np.nan], best[:-1]])))
    changes = tuple((int(i) + 1, float(best[i])) for i in new)
    return Kept(name, trace.seed, len(best), revision, changes, trace.proposed)


def united(*groups: Iterable[Kept]) -> list[Kept]:
    """Return all runs, sorted; of a run that comes twice the longer one, of equally long ones the last."""
    longest: dict[Key, Kept] = {}
    for run in (run for group in groups for run in group):
        known = longest.get(run.key)
        if known is None or run.evaluations >= known.evaluations:
            longest[run.key] = run
    return [longest[key] for key in sorted(longest)]


def name_of(path: Path) -> str:
    """Return the name of the curve of a trace, by its folder and its file."""
    return f"{path.parent.name}/{SEED.sub('', path.stem)}"


def fullest(runs: Sequence[Seen]) -> list[Seen]:
    """Return the runs of a curve that show the most evaluations when all are cut to the shortest of them.

    So a few runs that have just begun, or that are shorter than the others, do not cut the others.
    """
    lengths = sorted(len(run.best) for run in runs)
    shown = [length * (len(lengths) - i) for i, length in enumerate(lengths)]
    least = lengths[shown.index(max(shown))] if shown else 0  # of several lengths, the one that more runs have
    return [run for run in runs if len(run.best) >= least]


def without(runs: Iterable[Kept], methods: Collection[str]) -> list[Kept]:
    """Return the runs of all methods but some."""
    return [run for run in runs if method_of(run.name) not in methods]


def method_of(name: str) -> str:
    """Return the key of the method of a curve, by the curve's name."""
    return name.rpartition("/")[2].rsplit("-", 3)[0]


def read(path: Path) -> dict[Key, Kept]:
    """Return the runs of a file; none if there is no file."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            if tuple(lines.fieldnames or ()) != NAMES:
                raise InvalidInput(f"{path} is not a file of kept runs: its columns must be {','.join(NAMES)}")
            runs = [_run(line, f"{path}, line {number}") for number, line in enumerate(lines, start=2)]
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a file of kept runs: it is not text") from None
    return {run.key: run for run in united(runs)}


def write(path: Path, runs: Iterable[Kept]) -> None:
    """Write the runs to a file, at once or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with part.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(NAMES)
        lines.writerows(_line(run) for run in united(runs))
    os.replace(part, path)


def _line(run: Kept) -> Sequence[object]:
    best = " ".join(f"{at}:{value!r}" for at, value in run.changes)
    proposed = " ".join(f"{value}:{count}" for value, count in run.proposed.items())
    return run.name, run.seed, run.evaluations, run.revision, best, proposed


def _run(line: Mapping[str, str], where: str) -> Kept:
    try:
        changes = tuple((int(at), float(value)) for at, value in _pairs(line["best"]))
        proposed = {int(value): int(count) for value, count in _pairs(line["proposed"])}
        run = Kept(line["run"], int(line["seed"]), int(line["evaluations"]), line["revision"], changes, proposed)
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{where}, is not a run: {error}") from None
    marks = [0, *(at for at, _ in changes), run.evaluations + 1]
    values = [math.inf, *(value for _, value in changes), -math.inf]
    if not (all(a < b for a, b in pairwise(marks)) and all(a > b for a, b in pairwise(values))):
        raise InvalidInput(f"{where}, is not a run: its best values must fall, at evaluations 1 to {run.evaluations}")
    return run


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [pair.partition(":") for pair in text.split()]
    return [(first, second) for first, _, second in pairs]
