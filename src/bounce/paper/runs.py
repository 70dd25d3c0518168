"""Runs: the traces behind the figures, made by many processes and continued at any instant.

A run is continued by repeating it: the method is asked again with the same seed, and every point that the trace already
has gets its value from there. So a killed run loses at most the evaluations in flight, whatever the method, and a run
that was made with fewer evaluations is the beginning of a longer one.

The invariant: a trace holds whole lines of one run, in the order of its trials. A line whose point is not what the
method asks for ends the run with an error and stays.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from bounce import benchmarks
from bounce.errors import InvalidInput
from bounce.optimizer.bounce import Bounce
from bounce.paper.figures import Curve, Figure
from bounce.paper.traces import FIELDS, Setup, Trace, one_thread_each, path_of, read

QUICK_REPETITIONS, QUICK_EVALUATIONS = 5, 100


@dataclass(frozen=True)
class Run:
    """One run: what, its seed, its file, and how long it is to be."""

    setup: Setup
    seed: int
    path: Path
    length: int

    @property
    def finished(self) -> int:
        """How many of its evaluations the trace has."""
        try:
            return min(self.length, self.path.read_bytes().count(b"\n"))
        except FileNotFoundError:
            return 0


def path_for(folder: Path, curve: Curve, seed: int) -> Path:
    """Return the trace of a curve's run."""
    return path_of(folder / f"{curve.name}.jsonl", seed)


def wanted(
    figures: Sequence[Figure],
    folder: Path,
    *,
    repetitions: int | None = None,
    evaluations: int | None = None,
    only: Sequence[str] | None = None,
) -> list[Run]:
    """Return the runs of some figures, or of some of their methods, each once; the first seed of all comes first."""
    found: dict[Path, Run] = {}
    curves = list({curve.name: curve for figure in figures for curve in figure.curves()}.values())
    most = max((curve.method.repetitions for curve in curves), default=0)
    for seed in range(most if repetitions is None else repetitions):
        for curve in curves:
            if seed < curve.method.repetitions and (only is None or curve.method.key in only):
                path = path_for(folder, curve, seed)
                length = curve.evaluations if evaluations is None else min(curve.evaluations, evaluations)
                found[path] = Run(curve.setup, seed, path, length)
    return list(found.values())


def known_rows(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a trace; what a killed process left of a line is cut off."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return read(path).rows if whole else []


def make(run: Run) -> None:
    """Make a run, or what is missing of it."""
    rows = known_rows(run.path)
    if len(rows) >= run.length:
        return
    problem = benchmarks.load(run.setup.name, run.setup.randomized)
    optimizer = run.setup.optimizer(problem.space, run.seed)
    parent, count = parent_process(), 0
    run.path.parent.mkdir(parents=True, exist_ok=True)
    with run.path.open("a", encoding="utf-8") as file:
        while count < run.length and not optimizer.done:
            if parent is not None and not parent.is_alive():
                os._exit(1)  # nobody waits for this run any more
            for trial in optimizer.ask(run.setup.options["batch_size"]):
                if count < len(rows):
                    _repeat(run, optimizer, trial, rows[count])
                else:
                    start = time.perf_counter()
                    optimizer.tell(trial, problem(trial.point))
                    facts = vars(replace(optimizer.trials[trial.id], seconds_eval=time.perf_counter() - start))
                    file.write(json.dumps({field: facts[field] for field in FIELDS}) + "\n")
                    file.flush()
                count += 1


def _repeat(run: Run, optimizer: Bounce, trial: Any, row: dict[str, Any]) -> None:
    """Tell what the trace has for a trial."""
    if row["point"] != json.loads(json.dumps(trial.point)):
        raise InvalidInput(
            f"{run.path} cannot be continued: trial {trial.id} has another point there. It was made by another "
            "version: move it away, or use another folder"
        )
    optimizer.tell(trial, row["value"])


def make_all(runs: Sequence[Run], executor: Executor, *, progress: Callable[[int], None]) -> list[str]:
    """Make runs through an executor, and return what went wrong.

    `progress` is called now and then with the number of finished evaluations of all runs.
    """
    running: dict[Future[None], Run] = {executor.submit(make, run): run for run in runs}
    problems: list[str] = []
    try:
        left = set(running)
        while left:
            done, left = wait(left, timeout=1.0, return_when="FIRST_COMPLETED")
            for future in done:
                error = future.exception()
                if error is not None:
                    problems.append(f"{running[future].path}: {type(error).__name__}: {error}")
            progress(sum(run.finished for run in runs))
    except BaseException:
        for future in running:
            future.cancel()
        raise
    return problems


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Yield an executor of processes with one BLAS thread each; they end at once if the block is left by an error."""
    with one_thread_each():
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
        try:
            yield pool
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def traces(curve: Curve, folder: Path, *, least: int = 1) -> list[Trace]:
    """Return the runs of a curve that have at least some evaluations."""
    found = []
    for seed in range(curve.method.repetitions):
        path = path_for(folder, curve, seed)
        if path.exists() and b"\n" in path.read_bytes():
            trace = read(path, unfinished=True)
            if [row["id"] for row in trace.rows] != list(range(len(trace.rows))):
                raise InvalidInput(f"{path} is damaged: its trials are not 0, 1, 2, ... Remove it and run it again")
            if len(trace.rows) >= least:
                found.append(trace)
    return found
