"""Regret: what the runs of several methods on many problems say, at some numbers of evaluations (marks).

The normalised regret of a value at a mark is (value − best) / (median − best). `best` is the lowest value that any
run on the problem ever reached, of any method, and `median` is that of random search at the same mark. So the best
known value has regret 0, random search has about 1, and what is worse than random search has more. If random search
is as good as the best, the median of the first mark at which it is not takes its place, and if there is none, the
largest value at the mark. Regrets above 10 count as 10, so that one run cannot decide a mean.

A problem counts at a mark if all methods that are compared have runs there, and only their common seeds count.
Standard errors are over problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata, wilcoxon

from bounce.errors import InvalidInput
from cells import TRUE_AT, Run
from scores import LEVEL, rounded

MARKS = (25, 50, 100, 200)
RANDOM = "random"
MOST = 10.0  # the largest regret that counts
TIE = 1e-12  # a difference of this size, relative to the values, is rounding

Values = Mapping[int, float]  # by seed


def p_worse(ours: Values, theirs: Values) -> float:
    """Return the p-value that our values are not greater: Wilcoxon's signed-rank test over seeds, one-sided.

    Equal values are left out. Without different ones it is 1.
    """
    differences = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    size = max((abs(v) for values in (ours, theirs) for v in values.values()), default=0.0)
    kept = np.array([d for d in differences if abs(d) > TIE * size])
    return float(wilcoxon(kept, alternative="greater").pvalue) if len(kept) else 1.0


@dataclass(frozen=True)
class Scale:
    """What turns the values of one problem at one mark into regrets."""

    best: float
    width: float

    def __call__(self, value: float) -> float:
        """Return the regret of a value."""
        if value <= self.best or self.width <= 0:
            return 0.0
        return min((value - self.best) / self.width, MOST)


class Board:
    """All runs, by problem and label."""

    def __init__(self, runs: Iterable[Run], labels: Sequence[str] | None = None) -> None:
        self._runs: dict[str, dict[str, dict[int, Run]]] = {}
        for run in runs:
            self._runs.setdefault(run.problem, {}).setdefault(run.label, {})[run.seed] = run
        self.labels = list(labels or dict.fromkeys(label for own in self._runs.values() for label in own))
        if not any(label in own for own in self._runs.values() for label in self.labels):
            raise InvalidInput(f"there are no runs of {', '.join(self.labels) or 'any method'}")

    @cached_property
    def _best(self) -> dict[str, float]:
        """The lowest value of any run, by problem."""
        return {
            problem: min(run.lowest for runs in own.values() for run in runs.values())
            for problem, own in self._runs.items()
        }

    @cached_property
    def problems(self) -> list[str]:
        """The problems on which every label has a run."""
        return [name for name, own in self._runs.items() if all(label in own for label in self.labels)]

    def marks(self, wanted: Sequence[int] = MARKS) -> list[int]:
        """Return the wanted marks that some problem counts at, and the end of the longest run if it has none."""
        longest = max(len(r.best) for own in self._runs.values() for runs in own.values() for r in runs.values())
        return sorted({min(mark, longest) for mark in wanted})

    def steps(self, first: int, last: int) -> list[int]:
        """Return the evaluations at which all runs that are compared have their values, for a picture."""
        compared = (runs.get(label, {}) for runs in self._runs.values() for label in {*self.labels, RANDOM})
        if all(run.whole for runs in compared for run in runs.values()):
            return list(range(min(first, last), last + 1))
        return sorted({last, *(n for n in TRUE_AT if first <= n <= last)})

    def values(self, problem: str, label: str, mark: int) -> dict[int, float]:
        """Return the values of a label at a mark, by seed."""
        runs = self._runs.get(problem, {}).get(label, {})
        found = {seed: run.at(mark) for seed, run in sorted(runs.items())}
        return {seed: value for seed, value in found.items() if value is not None}

    def common(self, problem: str, mark: int) -> dict[str, dict[int, float]]:
        """Return the values of all labels at a mark, for their common seeds; empty if there are none."""
        found = {label: self.values(problem, label, mark) for label in self.labels}
        seeds = set.intersection(*(set(own) for own in found.values()))
        return {label: {seed: own[seed] for seed in own if seed in seeds} for label, own in found.items() if seeds}

    def scale(self, problem: str, mark: int) -> Scale:
        """Return the scale of a problem at a mark, from all runs, whether their labels are compared or not."""
        own = self._runs[problem]
        best = self._best[problem]
        for near in (mark, *(m for m in MARKS if m != mark)):
            typical = list(self.values(problem, RANDOM, near).values())
            if typical and float(np.median(typical)) - best > TIE * abs(best):
                return Scale(best, float(np.median(typical)) - best)
        here = [value for label in own for value in self.values(problem, label, mark).values()]
        return Scale(best, max([*here, best]) - best)

    def regrets(self, problem: str, mark: int) -> dict[str, list[float]]:
        """Return the regrets of all labels at a mark, one per common seed."""
        scale = self.scale(problem, mark)
        return {label: [scale(v) for v in own.values()] for label, own in self.common(problem, mark).items()}


@dataclass(frozen=True)
class Row:
    """What is said of a label at a mark."""

    label: str
    problems: int
    rank: float
    regret: float
    error: float
    worst: float
    """The largest regret of any seed on any problem."""
    worst_at: str
    worse: int | None
    """The number of problems on which the mean is higher than that of random search; None without random search."""
    clearly: int | None
    """The same where the difference is significant."""


def rows(board: Board, mark: int) -> list[Row]:
    """Return what is said of every label at a mark, the lowest rank first."""
    ranks: dict[str, list[float]] = {label: [] for label in board.labels}
    regrets: dict[str, dict[str, list[float]]] = {label: {} for label in board.labels}
    worse: dict[str, list[float]] = {label: [] for label in board.labels}  # p-values where the mean is higher
    for problem in board.problems:
        values = board.common(problem, mark)
        if not values:
            continue
        means = [rounded(float(np.mean(list(own.values())))) for own in values.values()]
        for label, rank in zip(values, rankdata(means), strict=True):
            ranks[label].append(float(rank))
        for label, own in board.regrets(problem, mark).items():
            regrets[label][problem] = own
        for label, mean in zip(values, means, strict=True):
            chance = {seed: v for seed, v in board.values(problem, RANDOM, mark).items() if seed in values[label]}
            if chance and mean > rounded(float(np.mean(list(chance.values())))):
                worse[label].append(p_worse(values[label], chance))
    known = any(board.values(problem, RANDOM, mark) for problem in board.problems)
    found = [_row(label, ranks[label], regrets[label], worse[label] if known else None) for label in board.labels]
    return sorted((row for row in found if row.problems), key=lambda row: row.rank)


def _row(label: str, ranks: Sequence[float], regrets: Mapping[str, list[float]], worse: Sequence[float] | None) -> Row:
    means = [float(np.mean(own)) for own in regrets.values()]
    worst = max(((max(own), problem) for problem, own in regrets.items()), default=(0.0, ""))
    return Row(
        label,
        len(ranks),
        float(np.mean(ranks)) if ranks else 0.0,
        *mean_and_error(means),
        *worst,
        None if worse is None else len(worse),
        None if worse is None else sum(p < LEVEL for p in worse),
    )


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error, which is 0 for one value."""
    if not values:
        return 0.0, 0.0
    return float(np.mean(values)), float(np.std(values, ddof=min(1, len(values) - 1)) / np.sqrt(len(values)))


@dataclass(frozen=True)
class Duel:
    """How two labels compare at a mark; differences are first minus second, so negative ones are in favour of it."""

    mark: int
    won: int
    lost: int
    tied: int
    lower: int
    higher: int
    difference: float
    error: float
    worst: float
    """The largest difference of mean regrets, on the problem where the first label falls behind most."""
    worst_at: str


def duel(board: Board, mark: int) -> Duel:
    """Compare the two labels of a board at a mark: a win is a one-sided p below 0.05, which takes five seeds."""
    first, second = board.labels
    differences: dict[str, float] = {}
    won = lost = lower = higher = 0
    for problem in board.problems:
        values = board.common(problem, mark)
        if not values:
            continue
        own = board.regrets(problem, mark)
        differences[problem] = float(np.mean(own[first]) - np.mean(own[second]))
        a, b = (rounded(float(np.mean(list(values[label].values())))) for label in (first, second))
        lower, higher = lower + (a < b), higher + (a > b)
        won += p_worse(values[second], values[first]) < LEVEL
        lost += p_worse(values[first], values[second]) < LEVEL
    worst = max(((d, problem) for problem, d in differences.items()), default=(0.0, ""))
    tied = len(differences) - won - lost
    return Duel(mark, won, lost, tied, lower, higher, *mean_and_error(list(differences.values())), *worst)
