"""Runs: the traces behind the figures, made by many processes and continued at any instant.

A run is continued by repeating it: the method is asked again with the same seed, and every point that the trace already
has gets its value from there. So a killed run loses at most the evaluations in flight, whatever the method, and a run
that was made with fewer evaluations is the beginning of a longer one.

The invariant: a trace holds whole lines of one run, in the order of its trials. A line whose point is not what the
method asks for ends the run with an error and stays. Of a damaged trace the run keeps the lines before the damage, and
makes the others again; the file as it was is kept beside it, as `NAME.jsonl.damaged`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from bounce import benchmarks
from bounce.errors import InvalidInput
from bounce.paper.figures import Curve, Figure
from bounce.paper.kept import Kept, Key, fullest, kept, name_of
from bounce.paper.traces import (
    FIELDS,
    Seen,
    Setup,
    Trace,
    end_alone,
    intact,
    known_rows,
    one_thread_each,
    path_of,
    repeat,
)

QUICK_REPETITIONS, QUICK_EVALUATIONS = 5, 100


@dataclass(frozen=True)
class Run:
    """One run: what, its seed, its file, and how long it is to be."""

    setup: Setup
    seed: int
    path: Path
    length: int

    @property
    def key(self) -> Key:
        """Its name among kept runs."""
        return name_of(self.path), self.seed

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
    methods: Sequence[str] | None = None,
    problems: Sequence[str] | None = None,
) -> list[Run]:
    """Return the runs of some figures, each once; the first seed of all comes first.

    `methods` and `problems` are those to run; None for all.
    """
    found: dict[Path, Run] = {}
    curves = list({curve.name: curve for figure in figures for curve in figure.curves()}.values())
    most = max((curve.method.repetitions for curve in curves), default=0)
    for seed in range(most if repetitions is None else repetitions):
        for curve in curves:
            chosen = (methods is None or curve.method.key in methods) and (
                problems is None or curve.problem in problems
            )
            if chosen and seed < curve.method.repetitions:
                path = path_for(folder, curve, seed)
                length = curve.evaluations if evaluations is None else min(curve.evaluations, evaluations)
                found[path] = Run(curve.setup, seed, path, length)
    return list(found.values())


def damage(path: Path) -> str | None:
    """Say what is wrong with a trace; None if nothing is, or if there is no trace."""
    return intact(path)[1] if path.exists() else None


def make(run: Run) -> None:
    """Make a run, or what is missing of it."""
    rows = known_rows(run.path)
    if len(rows) >= run.length:
        return
    problem = benchmarks.load(run.setup.name, run.setup.randomized)
    optimizer = run.setup.optimizer(problem.space, run.seed)
    count = 0
    run.path.parent.mkdir(parents=True, exist_ok=True)
    with run.path.open("a", encoding="utf-8") as file:
        while count < run.length and not optimizer.done:
            for trial in optimizer.ask(run.setup.options["batch_size"]):
                if count < len(rows):
                    repeat(run.path, optimizer, trial, rows[count])
                else:
                    end_alone()
                    start = time.perf_counter()
                    optimizer.tell(trial, problem(trial.point))
                    end_alone()
                    facts = vars(replace(optimizer.trials[trial.id], seconds_eval=time.perf_counter() - start))
                    file.write(json.dumps({field: facts[field] for field in FIELDS}) + "\n")
                    file.flush()
                count += 1


class Counting:
    """Counts the finished evaluations of runs, and reads only the files that have grown."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._sizes: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def finished(self) -> int:
        """Return the number of finished evaluations of all runs."""
        for run in self._runs:
            size = run.path.stat().st_size if run.path.exists() else 0
            if size != self._sizes.get(run.path, 0):
                self._sizes[run.path], self._counts[run.path] = size, run.finished
        return sum(self._counts.values())


def make_all(runs: Sequence[Run], executor: Executor, *, progress: Callable[[int], None]) -> list[str]:
    """Make runs through an executor, and return what went wrong.

    `progress` is called now and then with the number of finished evaluations of all runs.
    """
    counting = Counting(runs)
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
            progress(counting.finished())
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


def traces(curve: Curve, folder: Path, *, damaged: dict[Path, str] | None = None) -> list[Trace]:
    """Return the traces of a curve's runs.

    A damaged trace is left out: `damaged` gets its path and what is wrong with it. Without `damaged` it is an error.
    """
    found = []
    for seed in range(curve.method.repetitions):
        path = path_for(folder, curve, seed)
        rows, wrong = intact(path) if path.exists() else ([], None)
        if wrong is None and rows:
            found.append(Trace(path, rows))
        elif wrong is not None and damaged is not None:
            damaged[path] = wrong
        elif wrong is not None:
            raise InvalidInput(f"a trace is damaged: {wrong}")
    return found


def seen(curve: Curve, found: Sequence[Trace], earlier: Mapping[Key, Kept]) -> list[Seen]:
    """Return the runs of a curve: of each seed the trace or the kept run, whichever is longer."""
    runs: dict[int, Seen] = {trace.seed: trace for trace in found}
    for seed in range(curve.method.repetitions):
        own = earlier.get((curve.name, seed))
        if own is not None and (seed not in runs or own.evaluations > len(runs[seed].best)):
            runs[seed] = own
    return fullest([runs[seed] for seed in sorted(runs)])


def keep_all(folder: Path, revision: str, damaged: dict[Path, str]) -> list[Kept]:
    """Return what is kept of all traces in a folder; `damaged` gets those that are left out."""
    found = []
    for path in sorted(folder.glob("*/*-seed*.jsonl")):
        rows, wrong = intact(path)
        if wrong is not None:
            damaged[path] = wrong
        elif rows:
            found.append(kept(name_of(path), Trace(path, rows), revision))
    return found
