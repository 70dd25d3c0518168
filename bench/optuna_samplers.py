"""Compare samplers inside Optuna on six problems, and measure what the sampler costs beside our own ask.

    python bench/optuna_samplers.py run --samplers bounce,tpe,gp,hebo,catcma,random --seeds 0-9 --evaluations 100
    python bench/optuna_samplers.py table --samplers bounce,tpe
    python bench/optuna_samplers.py overhead

Every sampler has its defaults and runs in `study.optimize`, with a study in memory. A run is a line in --out, with the
evaluations at which its best value changed. A run that exists is not repeated, so measurements of several days add up.
`catcma` is CatCMA with margin of the package cmaes. It and `bounce-space` know the search space before the first trial;
the others learn it from the first trial, as in any objective of Optuna. `gp` needs torch. `hebo` is the sampler of
OptunaHub and needs the packages optunahub and HEBO. It is downloaded, or taken from a copy of the registry: HUB=FOLDER,
with FOLDER/samplers/hebo.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import optuna
import typer
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from scipy.stats import rankdata

import tasks
from bounce import Bounce, Space, baselines
from bounce.benchmarks.problem import Problem
from bounce.errors import InvalidInput
from bounce.integrations.optuna import BounceSampler
from quality import numbers

OUT = Path(__file__).parent / "data" / "optuna.jsonl"
PROBLEMS = (
    "labs50-randomized",
    "pest25-randomized",
    "ackley53-randomized",
    "mixint-rastrigin",
    "inert-lock",
    "pipeline-wine",
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Out = Annotated[Path, typer.Option(help="The file of the runs.")]


def distribution(parameter: Any) -> BaseDistribution:
    """Return a parameter as people write it for Optuna."""
    match parameter.type:
        case "real":
            return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        case "integer":
            return IntDistribution(parameter.low, parameter.high, log=parameter.log)
        case "ordinal":
            return IntDistribution(0, parameter.cardinality - 1)
        case "binary":
            return CategoricalDistribution([False, True])
        case _:
            return CategoricalDistribution(list(parameter.choices))


def search_space(space: Space) -> dict[str, BaseDistribution]:
    """Return the distributions of a space, by name."""
    return {parameter.name: distribution(parameter) for parameter in space.parameters}


def point_of(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """Return values of Optuna as a point of a problem."""
    return {p.name: p.values[params[p.name]] if p.type == "ordinal" else params[p.name] for p in space.parameters}


class CatCma(BaseSampler):  # type: ignore[misc]
    """CatCMA with margin in one process, one trial after the other."""

    def __init__(self, space: Space, budget: int, seed: int) -> None:
        self._space = space
        self._baseline = baselines.make("cmaes", space, budget, seed)
        self._asked: Any = None

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, BaseDistribution]:
        return search_space(self._space)

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        (self._asked,) = self._baseline.ask(1)
        point = self._asked.point
        return {
            p.name: list(p.values).index(point[p.name]) if p.type == "ordinal" else point[p.name]
            for p in self._space.parameters
        }

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        raise AssertionError("every parameter is proposed")

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        self._baseline.tell(self._asked, values[0])


def hebo(space: Space, budget: int, seed: int) -> BaseSampler:
    """Return HEBO with its defaults, from OptunaHub."""
    import optunahub
    import torch

    torch.manual_seed(seed)  # HEBO draws from global generators
    np.random.seed(seed)  # noqa: NPY002
    folder = os.environ.get("HUB")
    name = "samplers/hebo"
    hub = optunahub.load_module(name) if folder is None else optunahub.load_local_module(name, registry_root=folder)
    return hub.HEBOSampler(seed=seed)


MAKERS: dict[str, Callable[[Space, int, int], BaseSampler]] = {
    "bounce": lambda space, budget, seed: BounceSampler(budget=budget, seed=seed),
    "bounce-space": lambda space, budget, seed: BounceSampler(
        budget=budget, seed=seed, search_space=search_space(space)
    ),
    "tpe": lambda space, budget, seed: TPESampler(seed=seed),
    "gp": lambda space, budget, seed: GPSampler(seed=seed),
    "hebo": hebo,
    "catcma": CatCma,
    "random": lambda space, budget, seed: RandomSampler(seed=seed),
}


def one_run(problem: Problem, sampler: BaseSampler, evaluations: int) -> dict[str, Any]:
    """Optimize a problem in a study; return how the best value fell, and the seconds of everything but evaluations."""
    space, spent = problem.space, 0.0
    distributions = search_space(space)

    def objective(trial: Any) -> float:
        nonlocal spent
        params = {name: trial._suggest(name, d) for name, d in distributions.items()}
        started = time.perf_counter()
        value = problem(point_of(space, params))
        spent += time.perf_counter() - started
        return value

    study = optuna.create_study(sampler=sampler)
    started = time.perf_counter()
    study.optimize(objective, n_trials=evaluations)
    seconds = time.perf_counter() - started - spent
    return {"best": changes([trial.value for trial in study.trials]), "seconds": round(seconds, 2)}


def changes(values: Sequence[float]) -> list[list[float]]:
    """Return after which evaluations, from 1 on, the best value is another one, and that value."""
    best = np.minimum.accumulate(values)
    new = np.flatnonzero(np.concatenate([[True], best[1:] < best[:-1]]))
    return [[int(i) + 1, float(best[i])] for i in new]


def read(out: Path) -> list[dict[str, Any]]:
    """Return the runs of a file."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


@app.command()
def run(
    *,
    samplers: Annotated[str, typer.Option(help="Comma-separated names.")] = "bounce,tpe,catcma,random",
    problems: Annotated[str, typer.Option(help="Comma-separated names.")] = ",".join(PROBLEMS),
    seeds: Annotated[str, typer.Option(help="Such as 0-4 or 0,1,5.")] = "0-4",
    evaluations: Annotated[int, typer.Option(min=1, help="Trials per run.")] = 100,
    out: Out = OUT,
) -> None:
    """Make the runs that are missing, all problems and samplers of one seed before the next seed."""
    names = samplers.split(",")
    if unknown := set(names) - set(MAKERS):
        raise InvalidInput(f"there is no sampler {sorted(unknown)}; the names are {', '.join(MAKERS)}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    out.parent.mkdir(parents=True, exist_ok=True)
    made = {(row["problem"], row["sampler"], row["seed"], row["evaluations"]) for row in read(out)}
    for seed in numbers(seeds):
        for name in problems.split(","):
            for label in names:
                if (name, label, seed, evaluations) in made:
                    continue
                (entry,) = tasks.chosen(None, name)
                problem = entry.make(seed)
                row: dict[str, Any] = {"problem": name, "sampler": label, "seed": seed, "evaluations": evaluations}
                row |= one_run(problem, MAKERS[label](problem.space, evaluations, seed), evaluations)
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{name} {label} {seed}: {row['best'][-1][1]:.4g}, {row['seconds']:.1f} s", flush=True)


@app.command()
def table(
    *,
    samplers: Annotated[str, typer.Option(help="Comma-separated names.")] = ",".join(MAKERS),
    evaluations: Annotated[int, typer.Option(min=1)] = 100,
    out: Out = OUT,
) -> None:
    """Print the mean best value by problem and sampler over the seeds that all have, mean ranks, and seconds."""
    rows = [row for row in read(out) if row["evaluations"] == evaluations and row["sampler"] in samplers.split(",")]
    names = [name for name in MAKERS if any(row["sampler"] == name for row in rows)]
    final = {(row["problem"], row["sampler"], row["seed"]): row["best"][-1][1] for row in rows}
    print("| problem | seeds |", " | ".join(names), "|")
    print("| --- " * (len(names) + 2) + "|")
    ranks = []
    for problem in PROBLEMS:
        seeds = sorted({seed for p, _, seed in final if p == problem and all((p, n, seed) in final for n in names)})
        if seeds:
            values = np.array([[final[problem, name, seed] for name in names] for seed in seeds])
            ranks += rankdata(values, axis=1).tolist()
            print(f"| {problem} | {len(seeds)} |", " | ".join(f"{x:.4g}" for x in values.mean(axis=0)), "|")
    print("| mean rank | |", " | ".join(f"{x:.2f}" for x in np.mean(ranks, axis=0)), "|")
    each = [np.mean([row["seconds"] / evaluations for row in rows if row["sampler"] == name]) for name in names]
    print("| seconds per trial | |", " | ".join(f"{x:.3f}" for x in each), "|")


@app.command()
def overhead(
    *,
    problems: Annotated[str, typer.Option(help="Comma-separated names.")] = ",".join(PROBLEMS[:4]),
    evaluations: Annotated[int, typer.Option(min=1, help="Trials per run.")] = 100,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Print the seconds per trial of the sampler inside Optuna, of our own ask and tell, and their ratio.

    Both propose the same points; the runs are made in turns, and the faster of two is taken.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print("| problem | inside Optuna | own ask and tell | ratio | same points |")
    print("| --- | --- | --- | --- | --- |")
    for name in problems.split(","):
        (entry,) = tasks.chosen(None, name)
        problem = entry.make(seed)
        inside, own, same = [], [], []
        for _ in range(2):
            sampler = MAKERS["bounce-space"](problem.space, evaluations, seed)
            ran = one_run(problem, sampler, evaluations)
            inside.append(ran["seconds"] / evaluations)
            seconds, best = _own(problem, evaluations, seed)
            own.append(seconds / evaluations)
            same.append(best == ran["best"])
        ratio = min(inside) / min(own)
        print(f"| {name} | {min(inside):.4f} | {min(own):.4f} | {ratio:.2f} | {all(same)} |", flush=True)


def _own(problem: Problem, evaluations: int, seed: int) -> tuple[float, list[list[float]]]:
    """Run Bounce itself; return the seconds of everything but evaluations, and how the best value fell."""
    opt, spent, values = Bounce(problem.space, evaluations, seed=seed), 0.0, []
    started = time.perf_counter()
    for _ in range(evaluations):
        (trial,) = opt.ask()
        evaluated = time.perf_counter()
        values.append(problem(trial.point))
        spent += time.perf_counter() - evaluated
        opt.tell(trial, values[-1])
    return time.perf_counter() - started - spent, changes(values)


if __name__ == "__main__":
    app()
