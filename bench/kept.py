"""Kept runs: one line per run in a CSV file that is under version control, with the values that the tables need.

The files of runs (cells.py) are large, and stay where they were made. The lines are sorted and numbers have full
precision, so that two machines with the same runs have the same file. A kept run has its values at some numbers of
evaluations only (`AT`), and at its last one.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bounce.errors import InvalidInput
from cells import LIMIT, TRUE_AT, Run

AT = TRUE_AT
"""The evaluations at which a kept run has its value; those of a problem with noise are the same."""
NAMES = ("problem", "label", "seed", "evaluations", "options", "revision", "reached", "end", *map(str, AT))

Key = tuple[str, str, int, int]
"""Problem, label, evaluations and seed."""


@dataclass(frozen=True)
class Kept(Run):
    """A run whose values are known at some evaluations only: they are in `truth`, and `best` has only its length."""

    whole: ClassVar[bool] = False


def key(run: Run) -> Key:
    """Return what two runs have in common if one can take the place of the other."""
    return run.problem, run.label, run.evaluations, run.seed


def united(kept: Iterable[Run], found: Iterable[Run]) -> list[Run]:
    """Return both, sorted; of two runs with the same key, the one that was found."""
    both = {key(run): run for run in [*kept, *found]}
    return [both[name] for name in sorted(both)]


def read(path: Path) -> list[Run]:
    """Return the runs of a file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != NAMES:
            raise InvalidInput(f"{path} is not a file of runs: its columns must be {','.join(NAMES)}")
        try:
            return [_run(line) for line in lines]
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidInput(f"{path}, line {lines.line_num}, is not a run: {error}") from None


def write(path: Path, runs: Iterable[Run]) -> None:
    """Write the runs to a file, at once or not at all."""
    part = path.with_suffix(f".{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with part.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(NAMES)
        lines.writerows(_line(run) for run in sorted(runs, key=key))
    os.replace(part, path)


def _line(run: Run) -> Sequence[object]:
    reached = len(run.best)
    values = [run.at(n) if n <= reached else None for n in (reached, *AT)]
    texts = ["" if value is None else repr(value) for value in values]
    options = json.dumps(dict(run.options), sort_keys=True)
    return (run.problem, run.label, run.seed, run.evaluations, options, run.revision, reached, *texts)


def _run(line: Mapping[str, str]) -> Run:
    reached = int(line["reached"])
    texts = {n: line[str(n)] for n in AT} | {reached: line["end"]}
    values = {n: float(text) for n, text in sorted(texts.items()) if text}
    return Kept(
        line["problem"],
        line["label"],
        int(line["seed"]),
        int(line["evaluations"]),
        json.loads(line["options"]),
        [math.nan] * reached,
        values,
        LIMIT,
        0.0,
        0.0,
        line["revision"],
    )
