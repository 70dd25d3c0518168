"""Measure what a process imports: to evaluate a function as a worker, to minimise, and to print the help.

    python bench/imports.py                # the median of nine processes each
    python bench/imports.py --repeats 25

A case is a fresh Python process. Its seconds are wall time, from its start to its end, less those of a process that
does nothing. The cases take turns, so that a busy moment of the machine slows all of them.
"""

from __future__ import annotations

import json
import pickle
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bounce.running.evaluation import Function, evaluate
from bounce.trial import Trial

HEAVY = ("numpy", "scipy", "sqlite3")
CALL = pickle.dumps((evaluate, (Function(len), Trial(0, {"x": 1.0})), {}))  # as a pool sends it to a worker
BARE = "plain Python"
CASES = {
    BARE: "pass",
    "a worker evaluates a function": (
        f"import pickle, bounce.running.pool; fn, args, options = pickle.loads({CALL!r}); "
        "assert fn(*args, **options).value == 1.0"
    ),
    "import bounce": "import bounce",
    "import bounce; bounce.minimize": "import bounce; bounce.minimize",
    "bounce --help": "import sys; sys.argv = ['bounce', '--help']; from bounce.cli import main; main()",
}
TARGETS = {"a worker evaluates a function": 0.15}  # seconds above plain Python

AT_EXIT = "\nimport atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"


@dataclass(frozen=True)
class Loaded:
    """The modules that a process has loaded."""

    ours: int
    """How many are modules of Bounce."""
    all: int
    heavy: tuple[str, ...]
    """Which of numpy, scipy and sqlite3 are among them."""


def run(code: str) -> str:
    """Run code in a fresh process; return what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def loaded(code: str) -> Loaded:
    """Return what a process has loaded at its end."""
    names = json.loads(run(AT_EXIT + code).splitlines()[-1])
    ours = sum(name.partition(".")[0] == "bounce" for name in names)
    return Loaded(ours, len(names), tuple(name for name in HEAVY if name in names))


def seconds(repeats: int) -> dict[str, float]:
    """Return the median time of a process of each case."""
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(repeats):
        for name, code in CASES.items():
            start = time.perf_counter()
            run(code)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def main(*, repeats: Annotated[int, typer.Option(min=1, help="Processes per case; the median is shown.")] = 9) -> None:
    """Measure what a process imports, and print a table."""
    table = Table("process", "modules of Bounce", "all modules", "heavy ones", "seconds above Python", "target")
    times = seconds(repeats)
    for name, code in CASES.items():
        found = loaded(code)
        above = f"{times[name]:.3f} in all" if name == BARE else f"{times[name] - times[BARE]:.3f}"
        target = f"≤ {TARGETS[name]}" if name in TARGETS else ""
        table.add_row(name, str(found.ours), str(found.all), ", ".join(found.heavy) or "none", above, target)
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
