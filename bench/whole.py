"""Measure whole runs of Bounce and of the authors' implementation, one after the other, with one thread each.

    BOUNCE_DATA=FOLDER python bench/whole.py --reference CHECKOUT --reference-python PYTHON

Both minimise the randomised problem with their defaults, one point at a time. Nothing of the authors' code is kept
here: the driver below is written to a temporary file and run in its own Python from its own folder.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

import report
from bounce import Bounce, benchmarks
from bounce.errors import BounceError, InvalidInput
from reference import check

THEIRS = {"pest25": "PestControl", "ackley53": "Ackley53", "labs50": "Labs"}
FASTER = {"pest25": 20, "ackley53": 20, "labs50": 10}  # the target: how many times faster
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

DRIVER = """
import json, os, random, sys, tempfile, time
path, name, seed, evals = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, path)
os.chdir(path)
import gin, numpy, torch
from bounce.bounce import Bounce
import bounce.benchmarks

torch.set_num_threads(1)
for seeded in (torch.manual_seed, numpy.random.seed, random.seed):
    seeded(seed)
gin.parse_config_files_and_bindings(["configs/default.gin"], [
    f"Bounce.benchmark=@{name}()",
    f"Bounce.maximum_number_evaluations={evals}",
    "Bounce.device='cpu'",
    f"Bounce.results_dir='{tempfile.mkdtemp()}'",
])
start = time.perf_counter()
optimizer = Bounce()
optimizer.run()
seconds = time.perf_counter() - start
values = torch.cat([optimizer.fx_global, optimizer.fx_tr])
print(json.dumps({"seconds": seconds, "best": float(values.min())}), flush=True)
"""


@dataclass(frozen=True)
class Whole:
    """A run: how long it took, and the best value it found."""

    seconds: float
    best: float


def ours(problem: str, seed: int, evals: int) -> Whole:
    """Run Bounce in this process."""
    task = benchmarks.load(problem, True)
    start = time.perf_counter()
    optimizer = Bounce(task.space, evals, seed=seed)
    while not optimizer.done:
        for trial in optimizer.ask():
            optimizer.tell(trial, task(trial.point))
    seconds = time.perf_counter() - start
    return Whole(seconds, min(trial.value for trial in optimizer.trials if trial.value is not None))


def run(words: Sequence[str], environment: dict[str, str]) -> Whole:
    """Run a command that prints a run as JSON in its last line."""
    done = subprocess.run(words, env=environment | ONE_THREAD, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines()
        raise InvalidInput(f"{words[0]} failed: {said[-1] if said else done.returncode}")
    return Whole(**json.loads(lines[-1]))


def markdown(rows: Sequence[tuple[str, int, Whole, Whole]]) -> str:
    """Return the runs as a table, problem and seed first, then ours and theirs."""
    text = io.StringIO()
    text.write("| problem | seed | Bounce s | best | authors' code s | best | times faster | target |\n")
    text.write("|---|---|---|---|---|---|---|---|\n")
    for problem, seed, our, their in rows:
        text.write(
            f"| {problem} | {seed} | {our.seconds:.1f} | {our.best:.4g} | {their.seconds:.0f} | {their.best:.4g} "
            f"| {their.seconds / our.seconds:.0f} | {FASTER[problem]} |\n"
        )
    return text.getvalue()


def main(
    *,
    reference: Annotated[Path, typer.Option(help="A checkout of the authors' code.")],
    reference_python: Annotated[Path, typer.Option(help="The Python that has its packages.")],
    problems: Annotated[str, typer.Option(help="Comma-separated names.")] = ",".join(THEIRS),
    seed: Annotated[int, typer.Option(min=0, help="The seed of both.")] = 0,
    evals: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = 200,
    results: Annotated[Path | None, typer.Option(help="The document whose table is replaced.")] = None,
) -> None:
    """Measure whole runs of Bounce and of the authors' implementation."""
    report.check(results, "whole")
    names = [name.strip() for name in problems.split(",")]
    for name in names:
        if name not in THEIRS:
            raise InvalidInput(f"there is no problem {name!r} that both have; the names are {', '.join(THEIRS)}")
    check(reference, reference_python)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        driver = Path(folder) / "driver.py"
        driver.write_text(DRIVER, encoding="utf-8")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for name in names:
            asked = [sys.executable, __file__, "--one", json.dumps([name, seed, evals])]
            our = run(asked, dict(os.environ))
            words = [str(driver), str(reference.resolve()), THEIRS[name], str(seed), str(evals)]
            their = run([str(reference_python), *words], clean)
            rows.append((name, seed, our, their))
    table = markdown(rows)
    if results is not None:
        report.renew(results, "whole", table)
    Console().print(Markdown(table))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        whole = ours(*json.loads(sys.argv[2]))
        print(json.dumps({"seconds": whole.seconds, "best": whole.best}))
        raise SystemExit
    try:
        typer.run(main)
    except BounceError as error:
        raise SystemExit(f"whole: {error}") from None
