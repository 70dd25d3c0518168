"""Compare methods for many variables with the published numbers of Letham et al. (NeurIPS 2020).

    python bench/embeddings.py --out runs                                  # all methods that are here, 20 seeds
    python bench/embeddings.py --out runs --methods alebo,hesbo --problems branin100 --seeds 5
    python bench/embeddings.py --out runs --mark 50 --problems hartmann100 # shorter runs
    python bench/embeddings.py --out runs --keep                           # also add the runs to data/embeddings.csv
    python bench/embeddings.py --table --document docs/rivals.md           # renew the table by the runs that were kept

The problems are Branin in 100 dimensions after 50 evaluations, and Hartmann6 in 100 and in 1,000 dimensions after 200.
Each run is one small JSON file, written when it is complete; runs that exist or were kept are not made again. A row of
the table has the published mean and standard error (50 repetitions; SMAC in 1,000 dimensions 10), ours over the seeds,
and how many standard errors of the difference lie between them.

The published embeddings have twice as many dimensions as the function (HeSBO, ALEBO) or as many (REMBO), and 10 random
points (REMBO: 2 in each of 4 embeddings, by turns). Published HeSBO and REMBO have the Gaussian process and the search
of Ax: `hesbo-ax` and `rembo-ax`. `hesbo` and `rembo` have those of the code of HeSBO's authors, and one embedding. All
of these evaluate one common initial point, the other methods ten of them.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, ClassVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy and scipy are loaded

import numpy as np
import typer
from scipy.special import ndtr

import report
from bounce import Space, baselines
from bounce.baselines.rivals.alebo import Alebo, density, improvement, promising
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52, gamma_prior
from bounce.baselines.rivals.hesbo import Embedded, Embedding, Hesbo, count_sketch
from bounce.baselines.rivals.rembo import Rembo, gaussian_map
from bounce.benchmarks.branin import Branin
from bounce.benchmarks.hartmann import Hartmann6
from bounce.benchmarks.problem import Problem
from bounce.benchmarks.wrappers import Padded
from bounce.errors import BounceError
from bounce.gp.linalg import Array


@dataclass(frozen=True)
class Task:
    """A problem, its number of evaluations and of variables that matter."""

    problem: Problem
    evaluations: int
    active: int


TASKS = {
    "branin100": Task(Padded(Branin(), 100), 50, 2),
    "hartmann100": Task(Padded(Hartmann6(), 100), 200, 6),
    "hartmann1000": Task(Padded(Hartmann6(), 1000), 200, 6),
}

MARKS = (25, 50, 100, 200)
KEPT = Path(__file__).parent / "data" / "embeddings.csv"
NAMES = ("method", "problem", "seed", *map(str, MARKS))  # the columns of that file: the best value at each mark

Published = dict[str, dict[int, tuple[float, float]]]
PUBLISHED: dict[str, Published] = {  # the mean and the standard error of the best value, by evaluations
    "alebo": {
        "branin100": {25: (1.289, 0.260), 50: (0.749, 0.212)},
        "hartmann100": {25: (-1.977, 0.075), 50: (-2.457, 0.065), 100: (-2.933, 0.044), 200: (-3.173, 0.032)},
        "hartmann1000": {25: (-2.197, 0.071), 50: (-2.662, 0.051), 100: (-2.873, 0.049), 200: (-2.992, 0.050)},
    },
    "hesbo": {
        "branin100": {25: (2.741, 0.694), 50: (2.149, 0.716)},
        "hartmann100": {25: (-2.211, 0.104), 50: (-2.512, 0.097), 100: (-2.618, 0.093), 200: (-2.708, 0.090)},
        "hartmann1000": {25: (-2.173, 0.104), 50: (-2.450, 0.089), 100: (-2.535, 0.086), 200: (-2.606, 0.083)},
    },
    "rembo": {
        "branin100": {25: (3.582, 0.315), 50: (1.433, 0.165)},
        "hartmann100": {25: (-0.529, 0.061), 50: (-0.884, 0.101), 100: (-1.336, 0.119), 200: (-1.791, 0.115)},
        "hartmann1000": {25: (-0.488, 0.055), 50: (-0.792, 0.084), 100: (-1.360, 0.127), 200: (-1.797, 0.126)},
    },
    "turbo": {
        "branin100": {25: (3.275, 0.470), 50: (1.755, 0.329)},
        "hartmann100": {25: (-1.759, 0.092), 50: (-2.402, 0.090), 100: (-2.843, 0.082), 200: (-3.078, 0.057)},
        "hartmann1000": {25: (-1.098, 0.089), 50: (-1.146, 0.090), 100: (-1.275, 0.098), 200: (-1.436, 0.102)},
    },
    "smac": {
        "branin100": {25: (2.657, 0.359), 50: (1.036, 0.116)},
        "hartmann100": {25: (-1.514, 0.082), 50: (-1.892, 0.073), 100: (-2.672, 0.057), 200: (-3.166, 0.026)},
        "hartmann1000": {25: (-1.141, 0.158), 50: (-1.725, 0.134), 100: (-2.045, 0.151), 200: (-2.553, 0.124)},
    },
    "random": {
        "branin100": {25: (6.215, 0.716), 50: (5.179, 0.622)},
        "hartmann100": {25: (-1.411, 0.075), 50: (-1.764, 0.075), 100: (-2.089, 0.049), 200: (-2.325, 0.039)},
        "hartmann1000": {25: (-1.513, 0.066), 50: (-1.781, 0.061), 100: (-2.027, 0.047), 200: (-2.327, 0.053)},
    },
}
"""`random` is published with a Sobol sequence."""


class Climbing(Embedded):
    """The model of Ax in an embedding: priors, a fit at every proposal, and EI climbed from random points.

    Inputs are scaled to [0, 1]. The lengthscales are Γ(3, 6), the signal variance is Γ(2, 0.15), values are exact.
    """

    def _ranked(self, i: int, z: Array, y: Array, pending: Array, *, rng: np.random.Generator) -> Array:
        from scipy.optimize import minimize

        half, d, best = self._maps[i].half, z.shape[1], float(y.min())
        prior = gamma_prior([*range(d), -2], [3.0] * d + [2.0], [6.0] * d + [0.15])
        fit = Fit((1e-3, 1e3), (1e-7, 1e-7), prior=prior, iterations=100)
        gp = fit(Matern52(d, (1e-3, 1e2), start=0.5), 0.5 * (z / half + 1.0), y)
        gp = gp.believing(0.5 * (pending / half + 1.0))
        raw = rng.random((1000, d))
        values = improvement(*gp.posterior(raw), best)
        starts = raw[promising(values, 20, rng=rng)]
        found = [
            minimize(_loss, start, (gp, best), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * d) for start in starts
        ]
        found.sort(key=lambda one: float(one.fun))
        return half * (2.0 * np.concatenate([[one.x for one in found], raw[np.argsort(-values)]]) - 1.0)


def _loss(z: Array, gp: Gaussian, best: float) -> tuple[float, Array]:
    """Return minus the expected improvement at a row, and its gradient."""
    mean, sd, by_mean, by_sd = gp.slope(z)
    u = (best - mean) / sd
    phi, cdf = float(density(np.array(u))), float(ndtr(u))
    return -sd * (u * cdf + phi), cdf * by_mean - phi * by_sd


class HesboAx(Climbing):
    """HeSBO as Ax had it."""

    name: ClassVar[str] = "hesbo-ax"

    def _embedding(self, d: int, *, rng: np.random.Generator) -> Embedding:
        return count_sketch(len(self.space), d, rng=rng)


class RemboAx(Climbing):
    """REMBO as Ax had it: four embeddings by turns."""

    name: ClassVar[str] = "rembo-ax"
    embeddings: ClassVar[int] = 4
    design: ClassVar[int] = 2

    def _embedding(self, d: int, *, rng: np.random.Generator) -> Embedding:
        return gaussian_map(len(self.space), d, rng=rng)


Make = Callable[[Space, Task, int], Any]


def embedded(cls: type[Embedded], times: int) -> Make:
    """Return what makes a method with some times as many dimensions as matter."""
    return lambda space, task, seed: cls(space, task.evaluations, seed, 1, dims=times * task.active)


def named(name: str) -> Make:
    """Return what makes a baseline with ten initial points."""
    return lambda space, task, seed: baselines.make(name, space, task.evaluations, seed, 10)


METHODS: dict[str, Make] = {
    "alebo": embedded(Alebo, 2),
    "hesbo": embedded(Hesbo, 2),
    "hesbo-ax": embedded(HesboAx, 2),
    "rembo": embedded(Rembo, 1),
    "rembo-ax": embedded(RemboAx, 1),
    **{name: named(name) for name in ("turbo", "smac", "random", "bounce")},
}


@dataclass(frozen=True)
class Job:
    """A run to make."""

    out: Path
    method: str
    problem: str
    seed: int
    evaluations: int
    """After which the run ends; the method's budget is that of the task."""

    def __str__(self) -> str:
        return f"{self.method} on {self.problem}, seed {self.seed}"

    @property
    def path(self) -> Path:
        """The file of the run."""
        return self.out / self.problem / f"{self.method}-seed{self.seed}.json"

    def exists(self, earlier: Mapping[tuple[str, str, int], Mapping[int, float]]) -> bool:
        """Return whether the run, or one that is longer, was kept or is in its file."""
        marks = max(earlier.get((self.method, self.problem, self.seed), {}), default=0)
        if not self.path.exists():
            return marks >= self.evaluations
        return max(marks, len(json.loads(self.path.read_text(encoding="utf-8"))["best"])) >= self.evaluations


def make(job: Job) -> dict[str, Any]:
    """Make a run; return the best value after each evaluation, and the seconds that the asks took."""
    task = TASKS[job.problem]
    optimizer = METHODS[job.method](task.problem.space, task, job.seed)
    best: list[float] = []
    seconds = 0.0
    while len(best) < job.evaluations:
        start = time.perf_counter()
        (trial,) = optimizer.ask(1)
        seconds += time.perf_counter() - start
        value = task.problem(trial.point)
        optimizer.tell(trial, value)
        best.append(min(value, best[-1]) if best else value)
    return {"method": job.method, "problem": job.problem, "seed": job.seed, "best": best, "seconds": seconds}


def work(job: Job) -> str:
    """Make a run and write its file, at once or not at all; return a line that says so."""
    try:
        run = make(job)
    except BounceError as error:
        return f"{job} failed: {error}"
    job.path.parent.mkdir(parents=True, exist_ok=True)
    part = job.path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(run), encoding="utf-8")
    os.replace(part, job.path)
    return f"{job}: {run['best'][-1]:.4g} after {run['seconds']:.0f} s of asks"


Key = tuple[str, str, int]
"""A method, a problem and a seed."""
Values = dict[Key, dict[int, float]]
"""The best value of each run by the number of evaluations."""


def kept(path: Path) -> Values:
    """Return the runs of a file that `keep` has written; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["method"], row["problem"], int(row["seed"])): {m: float(row[str(m)]) for m in MARKS if row[str(m)]}
            for row in csv.DictReader(file)
        }


def keep(path: Path, values: Values) -> None:
    """Write runs to a file, sorted, at once or not at all."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(NAMES)
        lines.writerows([*key, *(values[key].get(mark, "") for mark in MARKS)] for key in sorted(values))
    os.replace(part, path)


def found(out: Path) -> Values:
    """Return the runs in a folder."""
    values: Values = {}
    for path in sorted(out.glob("*/*-seed*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        best = run["best"]
        values[run["method"], run["problem"], run["seed"]] = {m: best[m - 1] for m in MARKS if m <= len(best)}
    return values


def united(*groups: Values) -> Values:
    """Return all runs; of a run that comes twice the longer one."""
    both: Values = {}
    for key, values in (pair for group in groups for pair in group.items()):
        both[key] = max(both.get(key, {}), values, key=len)
    return both


def row(method: str, problem: str, mark: int, values: Values) -> list[str] | None:
    """Return a row of the table; None with fewer than two runs."""
    own = [at[mark] for (name, where, _), at in values.items() if (name, where) == (method, problem) and mark in at]
    if len(own) < 2:
        return None
    mean, error = float(np.mean(own)), float(np.std(own, ddof=1) / np.sqrt(len(own)))
    cells = [f"`{method}`", problem, str(mark)]
    known = PUBLISHED.get(method.removesuffix("-ax"), {}).get(problem, {}).get(mark)
    numbers, verdict = ["–", f"{mean:.3f} ± {error:.3f} ({len(own)})", "–"], "–"
    if known is not None:
        apart = (mean - known[0]) / float(np.hypot(error, known[1]))
        numbers[0], numbers[2] = f"{known[0]:.3f} ± {known[1]:.3f}", f"{apart:+.1f}"
        verdict = "yes" if abs(apart) <= 2.0 else "no, better" if apart < 0.0 else "no, worse"
    return [*cells, *(number.replace("-", "−") for number in numbers), verdict]


def table(values: Values, methods: Iterable[str], problems: Iterable[str]) -> str:
    """Return the table as Markdown, a row for each method, problem and number of evaluations."""
    heads = ["method", "problem", "evaluations", "published", "ours (seeds)", "standard errors apart", "within two"]
    rows = [heads, ["---"] * len(heads)]
    each = [(method, problem, mark) for problem in problems for method in methods for mark in MARKS]
    rows += [own for one in each if (own := row(*one, values)) is not None]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def chosen(text: str, known: Iterable[str]) -> list[str]:
    """Return the names in a list with commas; all of them if it is empty."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(known)
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"there is no {name!r}; the names are {', '.join(known)}")
    return names


def main(
    *,
    out: Annotated[Path, typer.Option(help="The folder of the runs.")] = Path("embeddings-runs"),
    methods: Annotated[str, typer.Option(help=f"A list with commas of: {', '.join(METHODS)}. All if empty.")] = "",
    problems: Annotated[str, typer.Option(help=f"A list with commas of: {', '.join(TASKS)}. All if empty.")] = "",
    seeds: Annotated[int, typer.Option(help="The number of runs of each method on each problem.", min=1)] = 20,
    mark: Annotated[int, typer.Option(help="Evaluations at which runs end; 0: all.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="The number of processes.", min=1)] = 1,
    only_table: Annotated[bool, typer.Option("--table", help="Make no runs, print the table.")] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep", help="Add the runs of the folder to those that are kept.")
    ] = False,
    into: Annotated[Path, typer.Option("--kept", help="The file of kept runs.")] = KEPT,
    document: Annotated[Path | None, typer.Option(help="A document whose table is replaced.")] = None,
) -> None:
    """Make the runs that do not exist yet, seed by seed, and print the table."""
    names, tasks = chosen(methods, METHODS), chosen(problems, TASKS)
    ends = {name: min(mark or TASKS[name].evaluations, TASKS[name].evaluations) for name in tasks}
    earlier = kept(into)
    wanted = [Job(out, method, name, s, ends[name]) for s in range(seeds) for name in tasks for method in names]
    missing = [] if only_table else [job for job in wanted if not job.exists(earlier)]
    if missing:
        with get_context("spawn").Pool(min(jobs, len(missing))) as pool:
            for i, line in enumerate(pool.imap_unordered(work, missing), 1):
                print(f"{i} of {len(missing)}  {line}", flush=True)
    values = united(earlier, found(out))
    if keep_runs:
        keep(into, values)
    text = table(values, names, tasks)
    if document is not None:
        report.renew(document, "published", text)
    print(text)


if __name__ == "__main__":
    typer.run(main)
