"""Traces: runs of a method on a benchmark problem, one JSON Lines file per seed, one line per trial.

A trace is written while its run goes on, so it can be watched, and nothing is lost when the run is stopped.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bounce import baselines, benchmarks
from bounce.benchmarks.problem import Problem
from bounce.errors import EvaluationFailed, InvalidInput
from bounce.gp.linalg import Array
from bounce.optimizer.bounce import Bounce
from bounce.spaces.space import Space
from bounce.trial import Trial

FIELDS = (
    *("id", "point", "value", "state", "seconds_ask", "seconds_eval"),
    *("stage", "target_dim", "radius", "side", "restart"),
)
RENAMED = {"space": "stage", "length_comb": "radius", "length_cont": "side"}  # fields of the first release
BOUNCE = "bounce"
INITIAL = 5  # points that a method of the figures does not choose
SAME = 1e-9  # how far a value that is computed again may be from what a trace has
SEED = re.compile(r"-seed(\d+)$")


class Seen(Protocol):
    """What figures and claims need of a run, whether its trace is here or it was kept without its points."""

    @property
    def seed(self) -> int:
        """The seed, one for each run of a curve."""

    @property
    def best(self) -> Array:
        """The lowest value so far after each evaluation."""

    @property
    def proposed(self) -> Mapping[int, int]:
        """How often each value of a variable was proposed, where all variables have whole numbers."""


@dataclass(frozen=True)
class Trace:
    """What a trace file holds."""

    path: Path
    rows: list[dict[str, Any]]

    @property
    def label(self) -> str:
        """The name of the file without its seed: traces with the same label are runs of the same kind."""
        return SEED.sub("", self.path.stem)

    @property
    def seed(self) -> int:
        """The seed in the name of the file; 0 if it has none."""
        found = SEED.search(self.path.stem)
        return int(found[1]) if found else 0

    @property
    def best(self) -> Array:
        """The lowest value so far after each trial; NaN before the first value."""
        values = [math.inf if row["value"] is None else row["value"] for row in self.rows]
        best = np.minimum.accumulate(np.array(values, dtype=np.float64))
        return np.where(np.isfinite(best), best, np.nan)

    @property
    def proposed(self) -> dict[int, int]:
        """How often each value of a variable came after the initial points; empty if one is not a whole number."""
        values = [value for row in self.rows[INITIAL:] for value in row["point"].values()]
        whole = all(isinstance(value, int) for value in values)
        return {int(value): count for value, count in sorted(Counter(values).items())} if whole else {}

    def column(self, name: str) -> Array:
        """Return a field of every trial as numbers."""
        return np.array([row[name] for row in self.rows], dtype=np.float64)


def read(path: Path, *, unfinished: bool = False) -> Trace:
    """Read a trace; refuse a file with a line that does not belong to one.

    A trace may be unfinished while it is written: then what follows its last whole line is left out.
    """
    rows: list[dict[str, Any]] = []
    try:
        text = path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1 if unfinished else None].splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a trace: it is not text") from None
    for number, line in enumerate(lines, start=1):
        rows.append(row_of(line, f"{path}, line {number}"))
    if not rows:
        raise InvalidInput(f"{path} is not a trace: it is empty")
    return Trace(path, rows)


def row_of(line: str | bytes, where: str) -> dict[str, Any]:
    """Return what a line of a trace says; refuse a line that does not belong to one."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise InvalidInput(f"{where}: a line of a trace must be a JSON object")
    row = {RENAMED.get(name, name): value for name, value in row.items()}
    missing = [name for name in FIELDS if name not in row]
    if missing:
        raise InvalidInput(f"{where}: the line lacks {missing}")
    wrong = [name for name in FIELDS if not _fits(name, row[name])]
    if wrong:
        raise InvalidInput(f"{where}: {wrong[0]} cannot be {row[wrong[0]]!r}")
    if (row["state"] == "done") != (row["value"] is not None):
        raise InvalidInput(f"{where}: a trial that is {row['state']} cannot have the value {row['value']!r}")
    return row


def _fits(name: str, value: object) -> bool:
    if name == "point":
        return isinstance(value, dict)
    if name == "state":
        return value in ("done", "failed")
    return (name == "value" and value is None) or (isinstance(value, int | float) and math.isfinite(value))


def intact(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Return the lines of a trace up to the first that is damaged, and what is wrong with that one, if there is one.

    What follows the last whole line was cut off by a kill, and is not damage.
    """
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = row_of(line, f"{path}, line {number}")
        except InvalidInput as error:
            return rows, str(error)
        if row["id"] != number - 1:
            return rows, f"{path}, line {number}: it should be trial {number - 1}, not {row['id']}"
        rows.append(row)
    return rows, None


def known_rows(path: Path) -> list[dict[str, Any]]:
    """Return the intact lines of a trace; cut off what follows them, and keep a damaged file under another name."""
    if not path.exists():
        return []
    rows, wrong = intact(path)
    content = path.read_bytes()
    kept = b"".join(content.splitlines(keepends=True)[: len(rows)])
    if len(kept) < len(content):
        if wrong is not None:
            path.with_name(f"{path.name}.damaged").write_bytes(content)
        with path.open("r+b") as file:
            file.truncate(len(kept))
    return rows


def check_same(path: Path, problem: Problem, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a trace of another problem: its last value is computed again."""
    row = next((row for row in reversed(rows) if row["state"] == "done"), None)
    if row is None:
        return
    try:
        value = problem(row["point"])
    except InvalidInput:
        value = math.nan
    if not math.isclose(value, row["value"], rel_tol=SAME, abs_tol=SAME):
        raise InvalidInput(
            f"{path} cannot be continued: trial {row['id']} has the value {row['value']!r} there, and {value!r} here. "
            "It is of another problem, or of the other version of this one: move it away, or write to another place"
        )


def end_alone() -> None:
    """End this worker at once if its parent has ended: nobody waits for it, and another one may continue its run."""
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)  # the lines written so far are complete


def repeat(path: Path, optimizer: Any, trial: Trial, row: Mapping[str, Any]) -> None:
    """Tell what a trace has for a trial; refuse a line with another point."""
    if row["point"] != json.loads(json.dumps(trial.point)):
        raise InvalidInput(
            f"{path} cannot be continued: trial {trial.id} has another point there. It was made with other options or "
            "by another version: move it away, or write to another place"
        )
    if row["state"] == "failed":
        optimizer.fail(trial)
    else:
        optimizer.tell(trial, row["value"])


def grouped(traces: Sequence[Trace]) -> dict[str, list[Trace]]:
    """Return traces by label, with their folder if there are several; refuse traces of different problems."""
    folders = {trace.path.parent for trace in traces}
    groups: dict[str, list[Trace]] = {}
    for trace in traces:
        label = f"{trace.path.parent.name}/{trace.label}" if len(folders) > 1 else trace.label
        group = groups.setdefault(label, [])
        if any(trace.path.resolve() == other.path.resolve() for other in group):
            raise InvalidInput(f"{trace.path} is given twice")
        if group and group[0].rows[0]["point"].keys() != trace.rows[0]["point"].keys():
            raise InvalidInput(f"{trace.path} has other parameters than {group[0].path}: they are different problems")
        group.append(trace)
    return groups


def path_of(out: Path, seed: int) -> Path:
    """Return the file of one seed: `runs/labs50.jsonl` becomes `runs/labs50-seed0.jsonl`."""
    return out.with_name(f"{out.stem}-seed{seed}{out.suffix or '.jsonl'}")


def existing(out: Path) -> list[Path]:
    """Return the traces of a name that already exist, of any seed."""
    found = out.parent.glob(f"*-seed*{out.suffix or '.jsonl'}")
    return sorted(path for path in found if SEED.sub("", path.stem) == out.stem and SEED.search(path.stem))


@dataclass(frozen=True)
class Setup:
    """What to run: a problem of the paper, and a method."""

    name: str
    options: Mapping[str, Any]
    """The options of Bounce besides the seed; other methods take `budget` and `batch_size` alone."""
    randomized: bool = False
    method: str = BOUNCE
    """A name of `bounce.baselines`."""

    def optimizer(self, space: Space, seed: int) -> Any:
        """Return the method, ready to be asked; refuse a space that it does not take."""
        if self.method == BOUNCE:
            return Bounce(space, seed=seed, **self.options)
        return baselines.make(self.method, space, self.options["budget"], seed)


def record(setup: Setup, seed: int, path: Path, *, resume: bool = False) -> None:
    """Run a method on a problem and write the trace, one line for each finished trial.

    With `resume`, what the trace already has is told again and not evaluated. A failed evaluation fails its trial;
    before the first success it ends the run. A worker stops when its parent ends.
    """
    known = known_rows(path) if resume else []
    problem = benchmarks.load(setup.name, setup.randomized)
    check_same(path, problem, known)
    optimizer, count = setup.optimizer(problem.space, seed), 0
    if len(known) >= setup.options["budget"]:
        (trial, *_) = optimizer.ask()
        repeat(path, optimizer, trial, known[0])  # refuses a run of another method
        return
    with path.open("a" if resume else "w", encoding="utf-8") as file:
        while not optimizer.done:
            for trial in optimizer.ask(setup.options.get("batch_size", 1)):
                count += 1
                if count <= len(known):
                    repeat(path, optimizer, trial, known[count - 1])
                    continue
                end_alone()
                start = time.perf_counter()
                try:
                    optimizer.tell(trial, problem(trial.point))
                except Exception as error:
                    if optimizer.best is None:
                        raise
                    optimizer.fail(trial, f"{type(error).__name__}: {error}")
                end_alone()
                facts = vars(replace(optimizer.trials[trial.id], seconds_eval=time.perf_counter() - start))
                file.write(json.dumps({field: facts[field] for field in FIELDS}) + "\n")
                file.flush()


def record_all(
    runs: Sequence[tuple[Setup, int, Path]], *, jobs: int, progress: Callable[[int], None], resume: bool = False
) -> list[Trace]:
    """Make runs (what, the seed, the file) in processes of one BLAS thread each, or continue them.

    `progress` is called with how many trials are finished.
    """
    paths = [path for _, _, path in runs]
    with one_thread_each(), ProcessPoolExecutor(min(jobs, len(runs)), mp_context=get_context("spawn")) as pool:
        running: set[Future[None]] = {pool.submit(record, *run, resume=resume) for run in runs}
        try:
            while running:
                finished, running = wait(running, timeout=0.2, return_when="FIRST_COMPLETED")
                progress(sum(_finished(path, setup.options["budget"]) for setup, _, path in runs))
                for future in finished:
                    future.result()
        except BrokenProcessPool:
            raise EvaluationFailed(
                "the process of a run was killed, perhaps because memory ran out: try fewer jobs"
            ) from None
        except BaseException:
            for process in pool._processes.values():
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [read(path) for path in paths]


def _finished(path: Path, most: int) -> int:
    """Return how many trials of a run are finished; a trace that is continued may have more."""
    return min(most, path.read_bytes().count(b"\n")) if path.exists() else 0


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Give each process started inside one BLAS thread: the runs themselves use the cores in parallel."""
    saved = dict(os.environ)
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


@dataclass(frozen=True)
class Summary:
    """The best values of several seeds after a number of evaluations."""

    evaluations: int
    mean: float
    error: float
    """The standard error of the mean; 0 for one seed."""
    lowest: float
    highest: float


def summaries(
    traces: Sequence[Trace], most: int | None = None, shares: Sequence[float] = (0.25, 0.5, 0.75, 1.0)
) -> list[Summary]:
    """Return the best values after shares of the shortest run, or of its first evaluations."""
    length = min(len(trace.rows) for trace in traces)
    length = length if most is None else min(length, most)
    found = []
    for share in shares:
        at = max(1, round(share * length))
        best = np.array([trace.best[at - 1] for trace in traces])
        error = float(best.std(ddof=1) / math.sqrt(len(best))) if len(best) > 1 else 0.0
        found.append(Summary(at, float(best.mean()), error, float(best.min()), float(best.max())))
    return found
