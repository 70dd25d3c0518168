"""Measure Bounce beside random search, TPE and SMAC3 on spaces with conditions, constraints, subsets, mixtures, orders.

    python bench/structured.py --seeds 0-3 --evaluations 100
    python bench/structured.py --problems pipeline-wine --methods bounce,tpe,random
    python bench/structured.py --problems additives,blend --methods bounce,baybe

A method that cannot take a space is left out. The table has the mean of the best value after 25, 50 and 100 evaluations
and its standard error. Lower is better. `flat` is Bounce on the same pipeline without conditions. `baybe` takes spaces
with a subset or a mixture, as a table of all allowed points, in which a real has 11 levels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, product
from typing import Annotated, Any

import numpy as np
import typer

from bounce import Bounce, Categorical, Integer, Mixture, Permutation, Real, Space, Subset, baselines
from bounce.errors import InvalidSpace
from bounce.trial import Trial
from quality import numbers
from tasks.learning import Pipeline

MARKS = (25, 50, 100)
Point = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A space and a function of its points."""

    space: Space
    objective: Callable[[Point], float]
    flat: Space | None = None
    """The same space without its structure, if the function takes its points too."""


def pipeline(source: str) -> Problem:
    """Return the choice of a model, in which a hyperparameter is active with its own family only."""
    task = Pipeline(source)
    families = task.space.parameters[0].choices
    parameters = []
    for parameter in task.space.parameters:
        family = parameter.name.partition("_")[0]
        parameters.append(replace(parameter, when={"family": family}) if family in families else parameter)
    (anything,) = task.space.decode(np.zeros((1, len(task.space))))
    return Problem(Space(parameters), lambda point: float(task({**anything, **point})), task.space)


def additives() -> Problem:
    """Return a subset of 20 additives, at most 4, of which some pairs work together, and a dose."""
    rng = np.random.default_rng(1)
    names = [f"a{i}" for i in range(20)]
    alone, pairs = rng.normal(size=20), np.triu(rng.normal(size=(20, 20)) * (rng.random((20, 20)) < 0.1), 1)

    def objective(point: Point) -> float:
        on = np.array([name in point["additives"] for name in names], dtype=float)
        return float(alone @ on + on @ pairs @ on + 4.0 * (point["dose"] - 0.3) ** 2)

    return Problem(Space([Subset("additives", names, at_most=4), Real("dose", 0, 1)]), objective)


def blend() -> Problem:
    """Return a mixture of 8 components, at most 4, with a base and a hidden recipe."""
    recipe = {"c1": 0.35, "c4": 0.4, "c6": 0.25}
    components = [f"c{i}" for i in range(8)]

    def objective(point: Point) -> float:
        apart = sum((point["blend"][name] - recipe.get(name, 0.0)) ** 2 for name in components)
        return float(math.sqrt(apart) + 0.2 * (point["base"] != "oil"))

    space = Space([Mixture("blend", components, most=4, step=0.05), Categorical("base", ["water", "oil", "wax"])])
    return Problem(space, objective)


def tour() -> Problem:
    """Return the order of 12 stations: the length of the way."""
    at = np.random.default_rng(2).random((12, 2))

    def objective(point: Point) -> float:
        way = at[point["order"]]
        return float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())

    return Problem(Space([Permutation("order", range(12))]), objective)


def reaction() -> Problem:
    """Return a reaction with forbidden pairs, a limit on two doses and at most three of ten switches."""
    switches = [Categorical(f"s{i}", ["off", "on"]) for i in range(10)]
    gain = np.random.default_rng(3).normal(size=10)
    constraints = [
        "not (solvent == 'water' and catalyst == 'Pd')",
        "2 * a + b <= 10",
        "count(" + ", ".join(f"s{i} == 'on'" for i in range(10)) + ") <= 3",
    ]

    def objective(point: Point) -> float:
        on = sum(gain[i] for i in range(10) if point[f"s{i}"] == "on")
        wrong = (point["solvent"] != "water") + (point["catalyst"] != "Pd")
        return float(on + wrong + (point["a"] - 4) ** 2 / 4 + (point["b"] - 5) ** 2 / 4)

    parameters: list[Any] = [Categorical("solvent", ["water", "oil"]), Categorical("catalyst", ["Pd", "Ni", "Cu"])]
    parameters += [Real("a", 0, 10), Real("b", 0, 10), *switches]
    return Problem(Space(parameters, constraints=constraints), objective)


def coupling() -> Problem:
    """Return a coupling reaction with pairs of choices that are forbidden: what SMAC3 takes too."""
    rng = np.random.default_rng(4)
    names = {
        "solvent": ["water", "ethanol", "toluene", "ether", "DMF"],
        "catalyst": ["Pd", "Ni", "Cu", "Fe"],
        "ligand": ["none", "PPh3", "XPhos", "SPhos"],
        "base": ["KOH", "K2CO3", "NEt3", "none"],
        "vessel": ["glass", "steel", "PTFE"],
    }
    constraints = [
        "not (solvent == 'water' and catalyst in ['Pd', 'Ni'])",
        "not (solvent == 'ether' and vessel == 'PTFE')",
        "ligand == 'none' or catalyst != 'Fe'",
        "not (base == 'KOH' and vessel == 'glass')",
        "base != 'none' or solvent in ['water', 'DMF']",
    ]
    alone = {name: dict(zip(values, rng.normal(size=len(values)), strict=True)) for name, values in names.items()}
    heat = dict(zip(names["solvent"], rng.random(5), strict=True))

    def objective(point: Point) -> float:
        chosen = sum(alone[name][point[name]] for name in names)
        pair = 1.5 * (point["catalyst"] == "Pd" and point["ligand"] == "XPhos")
        apart = (point["heat"] - heat[point["solvent"]]) ** 2 + (math.log10(point["dose"]) + 1) ** 2 / 4
        return float(chosen - pair + 4.0 * apart + (point["hours"] - 8) ** 2 / 50)

    parameters: list[Any] = [Categorical(name, values) for name, values in names.items()]
    parameters += [Real("heat", 0, 1), Real("dose", 1e-3, 1, log=True), Integer("hours", 1, 24)]
    return Problem(Space(parameters, constraints=constraints), objective)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "pipeline-wine": lambda: pipeline("wine"),
    "pipeline-iris": lambda: pipeline("iris"),
    "additives": additives,
    "blend": blend,
    "tour": tour,
    "reaction": reaction,
    "coupling": coupling,
}


def levels(parameter: Any) -> list[dict[str, Any]]:
    """Return what a parameter may be, as cells of a table: one for each member of a subset or mixture."""
    match parameter:
        case Categorical():
            return [{parameter.name: choice} for choice in parameter.choices]
        case Real():
            return [{parameter.name: float(value)} for value in np.linspace(parameter.low, parameter.high, 11)]
        case Subset(members=members, at_least=least, at_most=most) if most is not None:
            chosen = [names for size in range(least, most + 1) for names in combinations(members, size)]
            return [{str(name): float(name in names) for name in members} for names in chosen]
        case Mixture(components=components, total=total, step=step, most=most) if step and most:
            zero, steps, found = dict.fromkeys(map(str, components), 0.0), round(total / step), []
            for size in range(1, most + 1):
                for cuts in combinations(range(1, steps), size - 1):
                    parts = (np.diff([0, *cuts, steps]) * step).round(9).tolist()
                    found += [zero | dict(zip(names, parts, strict=True)) for names in combinations(zero, size)]
            return found
    raise InvalidSpace(f"{parameter.name!r} has no list of levels")


class Baybe:
    """BayBE on a table of all allowed points, with its defaults, but log EI in closed form, which is faster."""

    def __init__(self, space: Space, budget: int, seed: int) -> None:
        if any(parameter.when for parameter in space.parameters) or space.constraints:
            raise InvalidSpace("a table of levels has neither conditions nor constraints")
        tables = [levels(parameter) for parameter in space.parameters]
        import pandas
        from baybe import Campaign
        from baybe.parameters import CategoricalParameter, NumericalDiscreteParameter
        from baybe.recommenders import BotorchRecommender, TwoPhaseMetaRecommender
        from baybe.searchspace import SearchSpace
        from baybe.settings import Settings
        from baybe.targets import NumericalTarget

        Settings(random_seed=seed).activate()
        self._space, self._budget, self._told = space, budget, 0
        table = pandas.DataFrame([reduce(operator.or_, cells) for cells in product(*tables)])
        columns = [
            CategoricalParameter(name, column.unique())
            if column.dtype.kind == "O"
            else NumericalDiscreteParameter(name, column.unique())
            for name, column in table.items()
        ]
        chooser = TwoPhaseMetaRecommender(recommender=BotorchRecommender(acquisition_function="LogEI"))
        target = NumericalTarget("value", minimize=True)
        self._campaign = Campaign(SearchSpace.from_dataframe(table, columns), target.to_objective(), chooser)

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return self._told == self._budget

    def ask(self) -> list[Trial]:
        """Return the next point."""
        self._row = self._campaign.recommend(1)
        return [Trial(self._told, self._point(self._row.iloc[0]))]

    def tell(self, trial: Trial, value: float) -> None:
        """Add a measurement."""
        self._campaign.add_measurements(self._row.assign(value=value))
        self._told += 1

    def _point(self, row: Any) -> dict[str, Any]:
        def value(parameter: Any) -> Any:
            match parameter:
                case Subset():
                    return [name for name in parameter.members if row[name]]
                case Mixture():
                    return {name: float(row[name]) for name in parameter.components}
            return row[parameter.name]

        return {parameter.name: value(parameter) for parameter in self._space.parameters}


def run(problem: Problem, method: str, seed: int, evaluations: int) -> list[float]:
    """Return the best value after each evaluation."""
    if method == "flat":
        if problem.flat is None:
            raise InvalidSpace("there is no such space without its structure")
        optimizer: Any = Bounce(problem.flat, evaluations, seed=seed)
    elif method == "bounce":
        optimizer = Bounce(problem.space, evaluations, seed=seed)
    elif method == "baybe":
        optimizer = Baybe(problem.space, evaluations, seed)
    else:
        optimizer = baselines.make(method, problem.space, evaluations, seed)
    best: list[float] = []
    while not optimizer.done:
        (trial,) = optimizer.ask()
        value = problem.objective(trial.point)
        optimizer.tell(trial, value)
        best.append(min(value, best[-1]) if best else value)
    return best


def main(
    seeds: Annotated[str, typer.Option(help="Such as 0-3.")] = "0-3",
    evaluations: Annotated[int, typer.Option(min=25, help="Evaluations per run.")] = 100,
    methods: Annotated[
        str, typer.Option(help="Comma-separated: bounce, flat, tpe, smac, baybe, random.")
    ] = "bounce,tpe,random",
    problems: Annotated[str, typer.Option(help="Comma-separated names; all by default.")] = ",".join(PROBLEMS),
) -> None:
    """Print a table."""
    marks = [mark for mark in MARKS if mark <= evaluations]
    print("| problem | method | seeds |", " | ".join(map(str, marks)), "|")
    print("|---|---|---|" + "---|" * len(marks))
    for name in problems.split(","):
        problem = PROBLEMS[name]()
        for method in methods.split(","):
            try:
                runs = np.array([run(problem, method, seed, evaluations) for seed in numbers(seeds)])
            except InvalidSpace:
                continue
            error = runs.std(axis=0, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else np.full(evaluations, np.nan)
            cells = [f"{runs[:, m - 1].mean():.4g} ± {error[m - 1]:.2g}" for m in marks]
            print(f"| {name} | {method} | {len(runs)} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    typer.run(main)
