"""Compare optimizers where limits on outcomes must hold: what is measured beside the value.

    python bench/constrained.py --seeds 0-4 --budget 60

The designs of tasks/designs.py, with their published constraints as outcomes (each at most 1) instead of penalties, and
Mopta08 with its 68 constraints, if its executable is there. `bounce` has the limits, and `bounce, penalty` is the same
optimizer on the value plus the penalty. Optuna's samplers get the violations by `constraints_func`; the Gaussian
process needs torch. What is shown is the best value that keeps all limits; where most runs have none yet, `+` and the
least sum of violations.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bounce import Bounce, DataError, Integer, Ordinal, Real, Space
from bounce.benchmarks.mopta import CONSTRAINTS, Mopta08, mopta08
from bounce.benchmarks.problem import Values
from quality import numbers
from tasks import designs

Point = dict[str, Any]
Measured = tuple[float, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Problem:
    """A value to minimise and outcomes that must be at most a limit."""

    name: str
    space: Space
    evaluate: Callable[[Point], Measured]
    penalised: Callable[[Measured], float]

    def violation(self, outcomes: Mapping[str, float]) -> float:
        """Return the sum of what breaks the limits; 0 if all hold."""
        return math.fsum(limit.violation(outcomes[limit.name]) for limit in self.space.limits)


def design(task: designs.Design) -> Problem:
    """Return a design with its ratios as outcomes."""
    (point,) = task.space.decode(task.space.sample(1, rng=np.random.default_rng(0)))
    count = len(list(task.formula(point)[1]))
    names = [f"ratio{k}" for k in range(count)]

    def evaluate(point: Point) -> Measured:
        value, ratios = task.formula(point)
        return float(value), {name: float(ratio) for name, ratio in zip(names, ratios, strict=True)}

    def penalised(found: Measured) -> float:
        excess = sum(max(0.0, ratio - 1.0) for ratio in found[1].values())
        return found[0] + designs.PENALTY * task.best * excess

    return Problem(task.name, replace(task.space, outcomes=[f"{name} <= 1" for name in names]), evaluate, penalised)


def car(problem: Mopta08) -> Problem:
    """Return Mopta08 with its constraints as outcomes."""
    names = [f"g{k}" for k in range(CONSTRAINTS)]

    def evaluate(point: Point) -> Measured:
        value, constraints = problem.parts(problem.space.encode([point])[0])
        return value, dict(zip(names, constraints, strict=True))

    def penalised(found: Measured) -> float:
        return found[0] + 10.0 * math.fsum(max(g, 0.0) for g in found[1].values())

    return Problem("mopta08", replace(problem.space, outcomes=[f"{name} <= 0" for name in names]), evaluate, penalised)


def problems(names: str) -> Iterator[Problem]:
    """Yield the problems with these names; say why one is left out."""
    for name in names.split(","):
        if name == "mopta08":
            try:
                yield car(mopta08())
            except DataError as error:
                print(f"mopta08 is left out: {error}", file=sys.stderr)
        else:
            yield design(getattr(designs, name)())


def bounce(problem: Problem, budget: int, seed: int) -> Iterator[Measured]:
    """Yield what Bounce finds with limits."""
    optimizer = Bounce(problem.space, budget, seed=seed)
    while not optimizer.done:
        for trial in optimizer.ask():
            found = problem.evaluate(trial.point)
            optimizer.tell(trial, found[0], constraints=found[1])
            yield found


def penalty(problem: Problem, budget: int, seed: int) -> Iterator[Measured]:
    """Yield what Bounce finds with a penalty in the value."""
    optimizer = Bounce(replace(problem.space, outcomes=()), budget, seed=seed)
    while not optimizer.done:
        for trial in optimizer.ask():
            found = problem.evaluate(trial.point)
            optimizer.tell(trial, problem.penalised(found))
            yield found


def uniform(problem: Problem, budget: int, seed: int) -> Iterator[Measured]:
    """Yield what random points give."""
    space = problem.space
    for point in space.decode(space.sample(budget, rng=np.random.default_rng(seed))):
        yield problem.evaluate(point)


def optuna(problem: Problem, budget: int, seed: int, sampler: str) -> Iterator[Measured]:
    """Yield what a sampler of Optuna finds with violations as constraints."""
    import optuna

    from bounce.integrations.optuna import BounceSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    limits = problem.space.limits

    def violations(trial: Any) -> list[float]:
        outcomes = trial.user_attrs["outcomes"]
        return [outcomes[limit.name] - limit.high for limit in limits]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = sampler == "BounceSampler"
        made = (
            BounceSampler(budget=budget, seed=seed, constraints_func=violations)
            if own
            else getattr(optuna.samplers, sampler)(seed=seed, constraints_func=violations)
        )
        study = optuna.create_study(sampler=made)
        for _ in range(budget):
            trial = study.ask()
            found = problem.evaluate({p.name: _suggested(trial, p) for p in problem.space.parameters})
            trial.set_user_attr("outcomes", found[1])
            study.tell(trial, found[0])
            yield found


def _suggested(trial: Any, parameter: Any) -> Any:
    match parameter:
        case Real():
            return trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)
        case Integer():
            return trial.suggest_int(parameter.name, parameter.low, parameter.high, log=parameter.log)
        case Ordinal():
            return parameter.values[trial.suggest_int(parameter.name, 0, len(parameter.values) - 1)]
    return trial.suggest_categorical(parameter.name, [parameter.decode(code) for code in parameter.all_codes()])


METHODS: dict[str, Callable[[Problem, int, int], Iterator[Measured]]] = {
    "bounce": bounce,
    "bounce, penalty": penalty,
    "bounce in optuna": lambda problem, budget, seed: optuna(problem, budget, seed, "BounceSampler"),
    "optuna gp": lambda problem, budget, seed: optuna(problem, budget, seed, "GPSampler"),
    "optuna tpe": lambda problem, budget, seed: optuna(problem, budget, seed, "TPESampler"),
    "random": uniform,
}
NEEDS = {"bounce in optuna": ("optuna",), "optuna gp": ("optuna", "torch"), "optuna tpe": ("optuna",)}


def trace(problem: Problem, found: Iterator[Measured]) -> list[tuple[float, float]]:
    """Return the least violation and the best value that keeps all limits, which is infinite before there is one."""
    least, best, values = math.inf, math.inf, []
    for value, outcomes in found:
        violation = problem.violation(outcomes)
        least, best = min(least, violation), best if violation else min(best, value)
        values.append((least, best))
    return values


def cell(violations: Values, values: Values) -> str:
    """Return the median of the values, or that of the violations if most runs have no value."""
    middle = np.median(values)
    return f"{middle:.6g}" if np.isfinite(middle) else f"+{np.median(violations):.3g}"


def main(
    *,
    only: Annotated[str, typer.Option(help="Comma-separated problems.")] = "vessel,reducer,beam,spring,mopta08",
    methods: Annotated[str, typer.Option(help="Methods, separated by semicolons.")] = ";".join(METHODS),
    seeds: Annotated[str, typer.Option(help="Such as 0-9 or 0,1,5.")] = "0-4",
    budget: Annotated[int, typer.Option(min=4, help="Evaluations.")] = 60,
    out: Annotated[Path | None, typer.Option(help="A file to add the table to.")] = None,
) -> None:
    """Run the methods; print the median of the best feasible values after a quarter, half and all evaluations."""
    marks = [budget // 4, budget // 2, budget]
    lines = [
        "| problem | method | seeds |"
        + "".join(f" after {mark} |" for mark in marks)
        + " feasible | CPU seconds per run |",
        "|" + "---|" * (len(marks) + 5),
    ]
    print("\n".join(lines))
    for problem in problems(only):
        for name in methods.split(";"):
            missing = [need for need in NEEDS.get(name, ()) if importlib.util.find_spec(need) is None]
            if missing:
                print(f"{name} is left out: {', '.join(missing)} is not installed", file=sys.stderr)
                continue
            start = time.process_time()
            runs = np.array([trace(problem, METHODS[name](problem, budget, seed)) for seed in numbers(seeds)])
            seconds = (time.process_time() - start) / len(runs)
            cells = [cell(*runs[:, mark - 1].T) for mark in marks]
            done = f"{np.isfinite(runs[:, -1, 1]).sum()} of {len(runs)}"
            cells = [problem.name, name, str(len(runs)), *cells, done, f"{seconds:.1f}"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write("\n".join(["", *lines, ""]))


if __name__ == "__main__":
    typer.run(main)
