"""Grid: what an ask costs each method, by kind and number of variables, observations and batch size.

Every case is measured in a separate process, so that the peak memory belongs to it alone. A method first gets N
random points with values. Then it is asked for B points and told their values, several times. Bounce works in the
input space from the start. Times are also given in units of dense linear algebra, measured in the same process
(`yardstick.py`).
"""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bounce import Binary, Bounce, Categorical, Ordinal, Real, Space, baselines
from bounce.errors import BounceError, InvalidInput
from bounce.spaces.parameters import Parameter
from yardstick import dense_scoring, seconds

KINDS = ("binary", "categorical", "ordinal", "mixed", "real")
DIMS = (25, 50, 100, 250, 500, 1000)
OBSERVED = (50, 200, 500, 1000, 2000)
BATCHES = (1, 5, 20)
ASKS = 9  # timed asks, after one that is not timed
MINUTE = 60.0  # what an ask may take
PATIENCE = 600.0  # what a whole case may take
GIVEN_UP = ("stopped", "not tried")
REFERENCE = "reference"  # the authors' code, where it is given


@dataclass(frozen=True)
class Case:
    """What is measured."""

    method: str
    kind: str
    dims: int
    observed: int
    batch: int


@dataclass(frozen=True)
class Cost:
    """What it costs: seconds per ask, the peak memory of the process, and a note if it was stopped."""

    asks: int = 0
    median: float = float("nan")
    p95: float = float("nan")
    mean: float = float("nan")
    units: float = float("nan")
    mib: float = float("nan")
    note: str = ""


def cases(methods: Sequence[str], *, full: bool) -> list[Case]:
    """Return the whole grid, or a part: mostly one factor varied at a time, and the sizes that have a target."""
    if full:
        places = [(k, d, n, b) for k in KINDS for d in DIMS for n in OBSERVED for b in BATCHES]
    else:
        places = [("binary", d, 200, 1) for d in DIMS]
        places += [("binary", 50, n, 1) for n in OBSERVED]
        places += [(kind, 50, 200, b) for kind in KINDS for b in (1, 20)]
        places += [("mixed", 100, n, 1) for n in (200, 1000, 2000)]
        places += [(kind, 100, 1000, 1) for kind in KINDS]
        places += [("real", 500, 500, 1), ("real", 1000, 1000, 1), ("mixed", 500, 2000, 1)]
    return [Case(method, *place) for method in methods for place in dict.fromkeys(places)]


def space_of(kind: str, dims: int) -> Space:
    """Return a space of one kind of variables; the mixed one has two fifths binary and a fifth of each other."""

    def one(j: int, kind: str) -> Parameter:
        match kind:
            case "binary":
                return Binary(f"x{j}")
            case "categorical":
                return Categorical(f"x{j}", list("vwxyz"))
            case "ordinal":
                return Ordinal(f"x{j}", list(range(5)))
            case _:
                return Real(f"x{j}", 0.0, 1.0)

    turns = ("binary", "categorical", "binary", "ordinal", "real")
    return Space([one(j, turns[j % 5] if kind == "mixed" else kind) for j in range(dims)])


def objective(space: Space) -> Callable[[Iterable[Mapping[str, Any]]], list[float]]:
    weights = np.random.default_rng(1).normal(size=len(space))

    def values(points: Iterable[Mapping[str, Any]]) -> list[float]:
        x = space.encode(points) @ weights
        return list((np.sin(x) + 0.1 * x).tolist())

    return values


def optimizer_of(case: Case, space: Space) -> Any:
    """Return the method's optimizer, whose first N points are random."""
    budget = case.observed + (ASKS + 1) * case.batch
    if case.method != "bounce":
        return baselines.make(case.method, space, budget, 0, initial=case.observed)
    return Bounce(space, 100_000, seed=0, initial_dims=len(space), budget_to_input=50_000)


class Stopped(BaseException):
    """The time limit was reached. Not an Exception, so that no package catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in the block after some seconds. Works only in the main thread of a Unix process.

    The interrupted code may hold locks: the process should do little after it, and end soon.
    """

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(case: Case) -> Cost:
    """Measure a case in this process."""
    unit = seconds(dense_scoring(), 5)
    space = space_of(case.kind, case.dims)
    values = objective(space)
    optimizer = optimizer_of(case, space)
    first = optimizer.ask(case.observed)
    optimizer.tell(first, values(trial.point for trial in first))
    times: list[float] = []
    note = ""
    for _ in range(ASKS + 1):
        start = time.perf_counter()
        try:
            with limited(MINUTE):
                trials = optimizer.ask(case.batch)
        except Stopped:
            note = "stopped: an ask takes over a minute"
            break
        times.append(time.perf_counter() - start)
        optimizer.tell(trials, values(trial.point for trial in trials))
    return summary(times[1:] or times, unit, note)


def summary(times: Sequence[float], unit: float, note: str = "") -> Cost:
    """Summarise the times of some asks."""
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if not times:
        return Cost(mib=mib, note=note)
    median, p95 = (float(np.quantile(times, q)) for q in (0.5, 0.95))
    return Cost(len(times), median, p95, float(np.mean(times)), median / unit, mib, note)


def run(case: Case, reference: tuple[Path, Path] | None = None, patience: float = PATIENCE) -> Cost:
    """Measure a case in a separate process, with a time limit."""
    environment = dict(os.environ) | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    if case.method == REFERENCE:
        from reference import command

        if reference is None:
            raise InvalidInput("the reference needs the path of a checkout")
        words, environment = command(case, *reference, environment)
    else:
        words = [sys.executable, __file__, json.dumps(asdict(case))]
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=patience, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        return Cost(note=f"stopped: over {patience:.0f} seconds in all")
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines()
        return Cost(note=f"failed: {said[-1][:200] if said else done.returncode}")
    answer = json.loads(lines[-1])
    if "times" in answer:  # the reference's driver does not measure units
        cost = summary(answer["times"], seconds(dense_scoring(), 5), answer["note"])
        return Cost(**(asdict(cost) | {"mib": answer["mib"]}))
    return Cost(**answer)


COLUMNS = [field.name for field in (*fields(Case), *fields(Cost))]


def read(path: Path) -> dict[Case, Cost]:
    """Return the rows of a table; nothing if it does not exist."""
    if not path.exists():
        return {}
    found = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != COLUMNS:
            raise InvalidInput(f"{path} must have the columns {', '.join(COLUMNS)}: move it away to start a new table")
        for row in rows:
            try:
                sizes = [int(row[name]) for name in ("dims", "observed", "batch")]
                numbers = {name: float(row[name]) for name in ("median", "p95", "mean", "units", "mib")}
                cost = Cost(asks=int(row["asks"]), note=row["note"], **numbers)
            except (ValueError, TypeError) as error:
                raise InvalidInput(f"{path}, line {rows.line_num}: {error}") from None
            found[Case(row["method"], row["kind"], *sizes)] = cost
    return found


def write(path: Path, case: Case, cost: Cost) -> None:
    """Add a row to the table, and the header before the first row."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS)
        if new:
            rows.writeheader()
        rows.writerow(asdict(case) | asdict(cost))


def hopeless(case: Case, known: Mapping[Case, Cost]) -> bool:
    """Return whether a smaller case of the same method was stopped before."""
    return any(
        cost.note.startswith(GIVEN_UP)
        and other != case
        and (other.method, other.kind) == (case.method, case.kind)
        and all(getattr(other, name) <= getattr(case, name) for name in ("dims", "observed", "batch"))
        for other, cost in known.items()
    )


def markdown(found: Mapping[Case, Cost]) -> str:
    """Return the costs as a table; the methods of a case follow each other."""
    text = io.StringIO()
    text.write("| variables | observations | points | method | median s | 95 % s | mean s | units | MiB |\n")
    text.write("|---|---|---|---|---|---|---|---|---|\n")
    methods = list(dict.fromkeys(case.method for case in found))
    order = sorted(
        found,
        key=lambda c: (KINDS.index(c.kind), c.dims, c.observed, c.batch, methods.index(c.method)),
    )
    for case in order:
        cost = found[case]
        text.write(f"| {case.dims} {case.kind} | {case.observed} | {case.batch} | {case.method} |")
        if cost.asks:
            times = f" {cost.median:.3g} | {cost.p95:.3g} | {cost.mean:.3g} | {cost.units:.1f} | {cost.mib:.0f}"
            text.write(f"{times}{', ' + cost.note if cost.note else ''} |\n")
        else:
            text.write(f" {cost.note} | | | | |\n")
    return text.getvalue()


def main(document: str) -> None:
    """Measure one case given as JSON and print its cost as JSON."""
    try:
        print(json.dumps(asdict(measure(Case(**json.loads(document))))), flush=True)
    except BounceError as error:
        print(json.dumps(asdict(Cost(note=str(error)))), flush=True)
    os._exit(0)  # some packages leave threads that never end


if __name__ == "__main__":
    main(sys.argv[1])
