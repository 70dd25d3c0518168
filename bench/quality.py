"""Measure how good Bounce and its alternatives get, for methods, problems and seeds.

    BOUNCE_DATA=FOLDER python bench/quality.py --quick --jobs 2      # a part, minutes on two cores
    BOUNCE_DATA=FOLDER python bench/quality.py --jobs 2              # everything

Every run is one trace, FOLDER/PROBLEM/METHOD-seedN.jsonl, that `bounce plot` reads too. A run that is
complete is not repeated; a run that was interrupted starts again. A run that takes longer than --limit seconds is
stopped, and the report says so.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

import report
import scores
from bounce import Bounce, baselines, benchmarks
from bounce.errors import BounceError, InvalidInput
from bounce.paper.traces import FIELDS, Trace, read

RANDOMIZED = ("labs50", "maxsat60", "pest25", "contamination25", "ackley53", "svm53", "cluster60")
PLAIN = ("branin500", "hartmann500", "lasso-dna")
MOST_SEEDS = 10_000
LOOK = 0.5  # seconds between looks at the runs
QUICK = ("bounce,random,tpe,cmaes", "labs50,ackley53,pest25,branin500", "0-3")


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    out: Path
    problem: str
    method: str
    seed: int
    evals: int
    limit: float
    batch: int = 1

    def __str__(self) -> str:
        return f"{self.method} on {self.title}, seed {self.seed}"

    @property
    def title(self) -> str:
        """The problem's name with its version."""
        return f"{self.problem}-randomized" if self.problem in RANDOMIZED else self.problem

    @property
    def path(self) -> Path:
        """The finished trace."""
        batch = f"-batch{self.batch}" if self.batch > 1 else ""
        return self.out / self.title / f"{self.method}{batch}-seed{self.seed}.jsonl"

    @property
    def part(self) -> Path:
        """The trace of an unfinished run."""
        return self.path.with_suffix(".part")

    @property
    def stopped(self) -> Path:
        """The mark of a run that was stopped: a file that holds the limit in seconds."""
        return self.path.with_suffix(".stopped")

    def trace(self) -> Trace | None:
        """Return the trace of the run, cut to the wanted number of evaluations; None if it is missing or too short.

        The trace of a run that was stopped may be shorter.
        """
        if not self.path.exists():
            return None
        trace = read(self.path)
        if len(trace.rows) < self.evals and not self.stopped.exists():
            return None
        return Trace(trace.path, trace.rows[: self.evals])

    def missing(self) -> bool:
        """Return whether the run has to be made: its trace is missing, or it was stopped at a lower limit."""
        trace = self.trace()
        if trace is None or len(trace.rows) == self.evals:
            return trace is None
        return bool(json.loads(self.stopped.read_text()) < self.limit)

    def stop(self) -> None:
        """Keep what a stopped run has written as its trace, without an incomplete last line."""
        lines = self.part.read_bytes().splitlines(keepends=True) if self.part.exists() else []
        if whole := [line for line in lines if line.endswith(b"\n")]:
            self.part.write_bytes(b"".join(whole))
            self.stopped.write_text(json.dumps(self.limit))
            self.part.rename(self.path)


def run(cell: Cell) -> None:
    """Make a run and write its trace; the file is created when the time starts and renamed at the end."""
    problem = benchmarks.load(cell.problem, cell.problem in RANDOMIZED)
    problem.evaluate(baselines.initial_points(problem.space, 0, 1))  # data is read before the time counts
    optimizer: Any
    if cell.method == scores.REFERENCE:
        optimizer = Bounce(problem.space, cell.evals, batch_size=cell.batch, seed=cell.seed)
    else:
        optimizer = baselines.make(cell.method, problem.space, cell.evals, cell.seed)
    parent = parent_process()
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    with cell.part.open("w", encoding="utf-8") as file:
        while not optimizer.done:
            if parent is not None and not parent.is_alive():
                os._exit(1)  # nobody waits for this run any more
            for trial in optimizer.ask():
                start = time.perf_counter()
                value = problem(trial.point)
                seconds = time.perf_counter() - start
                optimizer.tell(trial, value)
                facts = vars(trial) | {"value": value, "state": "done", "seconds_eval": seconds}
                file.write(json.dumps({field: facts[field] for field in FIELDS}) + "\n")
                file.flush()
    cell.part.rename(cell.path)


def work(cell: Cell) -> None:
    """Make a run in this process; exit with a one-line message if it fails."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops this process
    try:
        run(cell)
    except Exception as error:
        sys.exit(f"{cell}: {type(error).__name__}: {error}")


class Worker:
    """A process that makes one run. It can be killed at any moment without leaving anything locked."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        cell.stopped.unlink(missing_ok=True)
        cell.part.unlink(missing_ok=True)
        self.since: float | None = None
        self.process = get_context("spawn").Process(target=work, args=(cell,))
        self.process.start()

    def look(self) -> int:
        """Return how many evaluations the run has made; stop it if it has reached its limit."""
        try:
            made = self.cell.part.read_bytes().count(b"\n")
        except FileNotFoundError:  # it has not started, or it has finished
            return 0
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > self.cell.limit:
            self.process.kill()
            self.process.join()
            self.cell.stop()
        return made


def run_all(cells: Sequence[Cell], jobs: int, console: Console) -> None:
    """Make all runs, each in a separate process with one thread for linear algebra."""
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    waiting, running, over = list(cells), list[Worker](), 0
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{len(cells)} runs", total=sum(cell.evals for cell in cells))
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(Worker(waiting.pop(0)))
                wait([worker.process.sentinel for worker in running], timeout=LOOK)
                progress.update(task, completed=over + sum(worker.look() for worker in running))
                for worker in [worker for worker in running if not worker.process.is_alive()]:
                    running.remove(worker)
                    over += worker.cell.evals
                    if (worker.process.exitcode or 0) < 0 and not worker.cell.path.exists():
                        console.print(f"{worker.cell}: its process was killed and left no trace")
        finally:
            for worker in running:
                worker.process.kill()


def numbers(text: str) -> list[int]:
    """Return the seeds of a text such as 0-9 or 0,1,5."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise InvalidInput(f"seeds must be numbers such as 0-9 or 0,1,5, not {text!r}")
        if int(last or first) < int(first):
            raise InvalidInput(f"the first seed of {part!r} must not be greater than the last")
        if int(last or first) - int(first) >= MOST_SEEDS:
            raise InvalidInput(f"{part!r} is more than {MOST_SEEDS} seeds")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def words(text: str, known: Sequence[str], what: str) -> list[str]:
    """Return the names in a text, all of them known."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise InvalidInput(f"there is no {what} {name!r}; the names are {', '.join(known)}")
    return names


METHODS = list(dict.fromkeys([scores.REFERENCE, *baselines.names()]))
PROBLEMS = [*RANDOMIZED, *PLAIN]
ALL = (",".join(METHODS), ",".join(PROBLEMS), "0-9")


def main(
    *,
    methods: Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")] = None,
    problems: Annotated[str | None, typer.Option(help="Comma-separated names; all by default.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 0-9 or 0,1,5; 0-9 by default.")] = None,
    evals: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = 200,
    limit: Annotated[float, typer.Option(min=0.1, help="Seconds after which a run is stopped.")] = 3600.0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of the traces.")] = Path("bench/traces"),
    published: Annotated[list[Path] | None, typer.Option(help="Runs of the authors' code to show (CSV).")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few methods, problems and seeds, unless they are given.")
    ] = False,
    only_report: Annotated[bool, typer.Option("--only-report", help="Run nothing; show the existing traces.")] = False,
    results: Annotated[Path | None, typer.Option(help="The document whose table is replaced.")] = None,
) -> None:
    """Measure how good Bounce and its alternatives get, and write a table and a picture next to the traces."""
    chosen = [
        given or default for given, default in zip((methods, problems, seeds), QUICK if quick else ALL, strict=True)
    ]
    marks = sorted({min(mark, evals) for mark in scores.MARKS})
    cells = [
        Cell(out, problem, method, seed, evals, limit)
        for method in words(chosen[0], METHODS, "method")
        for problem in words(chosen[1], PROBLEMS, "problem")
        for seed in numbers(chosen[2])
    ]
    report.check(results, "quality", out=out, files=published or [])
    console = Console(stderr=True)
    missing = [] if only_report else [cell for cell in cells if cell.missing()]
    if missing:
        run_all(missing, jobs, console)
    order = sorted(cells, key=lambda cell: PROBLEMS.index(cell.problem))
    traces = [(cell.title, cell.method, cell.seed, trace) for cell in order if (trace := cell.trace())]
    if not traces:
        raise InvalidInput(f"there is no trace of {evals} evaluations in {str(out)!r}")
    found = scores.of_traces(traces, marks)
    if published:
        found = scores.with_published(found, published)
    table = scores.markdown(found, marks)
    (out / "quality.md").write_text(table, encoding="utf-8")
    scores.picture(traces, out / "quality.png")
    if results is not None:
        report.renew(results, "quality", table, out / "quality.png")
    Console().print(Markdown(table))
    print(f"{out / 'quality.md'}\n{out / 'quality.png'}")


if __name__ == "__main__":
    try:
        typer.run(main)
    except BounceError as error:
        raise SystemExit(f"quality: {error}") from None
