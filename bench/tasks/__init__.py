"""The problems of bench/suites.py, and which of them may be used to choose what the algorithm does.

The split was fixed before anything was measured on these problems. Problems of the group `choose` may be looked at
while the algorithm is changed. Problems of the group `report` are for the final report alone: nothing is chosen on
them. Every family is in both groups, and no data set and no C source is. The problems of the paper, on which the
defaults were chosen so far, are the group `paper`. The group `noise` has six problems of the other groups with two
levels of noise; nothing is chosen on it either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bounce import benchmarks
from bounce.benchmarks.problem import Problem
from bounce.errors import BounceError, InvalidInput
from tasks import compiler, designs
from tasks.independent import MIXINT, PBO, MixInt, Pbo
from tasks.landscapes import Lock, Royal, Staircase
from tasks.learning import Features, NoisyPipeline, Pipeline, TreeErrors
from tasks.task import Hidden, NoisyTask, Repeatable

__all__ = ["GROUPS", "PROBLEMS", "Entry", "NoisyTask", "Problem", "chosen", "split"]

GROUPS = ("choose", "report", "paper", "noise")
CHOOSE_PBO = ("onemax", "leadingones", "leadingones-dummy1", "leadingones-epistasis", "labs", "ising-triangular")
CHOOSE_MIXINT = ("rastrigin", "rosenbrock", "sharp-ridge", "weierstrass", "gallagher101")  # one of each class
DATA_SETS = {"choose": ("wine", "iris"), "report": ("breast_cancer", "digits", "diabetes")}
RANDOMIZED = ("labs50", "maxsat60", "pest25", "contamination25", "ackley53", "svm53", "cluster60")
PLAIN = ("branin500", "hartmann500", "lasso-dna")
TWO_BITS = 3.7  # the noise of noisy-pbo problems: the value of two bits, or of two pairs of spins
GOOD = {  # the range of good values: from the best value of any run to the median of 1,000 random points
    "labs50-randomized": 4.669,
    "pest25-randomized": 6.387,
    "contamination25-randomized": 1.760,
    "ackley53-randomized": 2.767,
    "pbo-nk": 0.3358,
    "mixint-sphere": 318.9,
}
LEVELS = (5, 20)  # the noise of the group `noise`, in per cent of these ranges
FAMILIES = {
    "pbo": "IOHprofiler's 25 pseudo-Boolean problems, 64 bits, instance 2",
    "mixint": "COCO's bbob-mixint, 24 functions of 32 integers and 8 reals, instance 1",
    "gcc": "flags of gcc, code size",
    "pipeline": "a model family and its hyperparameters, log loss",
    "features": "feature selection, log loss plus a price per feature",
    "noisy": "new noise in every evaluation, judged by the true value",
    "inert": "7 to 17 variables among 60",
    "plateau": "few different values",
    "design": "machine parts with discrete sizes and penalties",
    "paper": "the problems of the paper",
    "noise": "noise of 5 or 20 % of the range of good values, judged by the true value",
}


@dataclass(frozen=True)
class Entry:
    """A problem of the split: how to make it for a seed, which only the noise depends on."""

    name: str
    family: str
    group: str
    make: Callable[[int], Problem]

    def missing(self) -> str | None:
        """Return why the problem cannot be used here, or None if it can."""
        try:
            self.make(0)
        except (BounceError, OSError) as error:
            return str(error)
        return None


def _steady(problem: Callable[..., Problem], *given: object) -> Callable[[int], Problem]:
    """Return what makes a problem that does not depend on a seed."""
    return lambda seed: problem(*given)


_OTHERS: dict[str, dict[str, Callable[[int], Problem]]] = {
    "choose": {
        "gcc-toolbox": _steady(compiler.toolbox),
        "noisy-pipeline-wine": lambda seed: NoisyPipeline("wine", seed),
        "noisy-pbo-onemax": lambda seed: Repeatable(Pbo(1), TWO_BITS, seed),
        "inert-lock": _steady(Hidden, Lock(), 60),
        "plateau-royal4": _steady(Royal, 64, 4),
        "design-vessel": _steady(designs.vessel),
        "design-gears": _steady(designs.gears),
    },
    "report": {
        "gcc-machine": _steady(compiler.machine),
        "gcc-machine-all": _steady(compiler.machine_all),
        "noisy-pipeline-digits": lambda seed: NoisyPipeline("digits", seed),
        "noisy-pipeline-diabetes": lambda seed: NoisyPipeline("diabetes", seed),
        "noisy-pbo-ising-ring": lambda seed: Repeatable(Pbo(19), TWO_BITS, seed),
        "inert-design-reducer": _steady(Hidden, designs.reducer(), 60),
        "inert-pipeline-diabetes": lambda seed: Hidden(Pipeline("diabetes"), 60),
        "plateau-staircase": _steady(Staircase),
        "plateau-tree-breast_cancer": _steady(TreeErrors, "breast_cancer"),
        "design-reducer": _steady(designs.reducer),
        "design-beam": _steady(designs.beam),
        "design-spring": _steady(designs.spring),
    },
}


def _entries() -> Iterable[Entry]:
    for i, name in enumerate(PBO, start=1):
        yield Entry(f"pbo-{name}", "pbo", "choose" if name in CHOOSE_PBO else "report", _steady(Pbo, i))
    for i, name in enumerate(MIXINT, start=1):
        yield Entry(f"mixint-{name}", "mixint", "choose" if name in CHOOSE_MIXINT else "report", _steady(MixInt, i))
    for group, sources in DATA_SETS.items():
        for name in sources:
            yield Entry(f"pipeline-{name}", "pipeline", group, _steady(Pipeline, name))
            if name != "iris":  # it has four features
                yield Entry(f"features-{name}", "features", group, _steady(Features, name))
    for group, problems in _OTHERS.items():
        for name, make in problems.items():
            yield Entry(name, name.partition("-")[0], group, make)
    for name in RANDOMIZED:
        yield Entry(f"{name}-randomized", "paper", "paper", _steady(benchmarks.load, name, True))
    for name in PLAIN:
        yield Entry(name, "paper", "paper", _steady(benchmarks.load, name))


PROBLEMS: dict[str, Entry] = {entry.name: entry for entry in _entries()}


def _with_noise(entry: Entry, percent: int) -> Entry:
    """Return a problem with normal noise, in per cent of the range of its good values."""
    sd = GOOD[entry.name] * percent / 100
    name = f"noise{percent}-{entry.name.removesuffix('-randomized')}"
    return Entry(name, "noise", "noise", lambda seed: Repeatable(entry.make(seed), sd, seed, name))


PROBLEMS |= {
    entry.name: entry for entry in (_with_noise(PROBLEMS[name], percent) for name in GOOD for percent in LEVELS)
}


def chosen(group: str | None = None, names: str | None = None) -> list[Entry]:
    """Return the problems of a group, or those named in a text, or all."""
    if group is not None and group not in GROUPS:
        raise InvalidInput(f"there is no group {group!r}; the groups are {', '.join(GROUPS)}")
    wanted = None if names is None else [name.strip() for name in names.split(",")]
    for name in wanted or ():
        if name not in PROBLEMS:
            raise InvalidInput(f"there is no problem {name!r}; `python bench/suites.py list` shows all of them")
    return [
        entry
        for entry in PROBLEMS.values()
        if (group is None or entry.group == group) and (wanted is None or entry.name in wanted)
    ]


def split() -> str:
    """Return the split as a Markdown table."""
    rows = ["| family | choose | report | paper | noise |", "|---|---|---|---|---|"]
    for family, about in FAMILIES.items():
        cells = []
        for group in GROUPS:
            names = [e.name for e in PROBLEMS.values() if e.family == family and e.group == group]
            cells.append(", ".join(name.removeprefix(f"{family}-") for name in names))
        rows.append(f"| **{family}**: {about} | {' | '.join(cells)} |")
    counts = [sum(entry.group == group for entry in PROBLEMS.values()) for group in GROUPS]
    return "\n".join([*rows, f"| problems | {' | '.join(map(str, counts))} |"])
