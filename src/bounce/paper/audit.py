"""Audit: whether a method depends on how a problem is written down.

The same problem can be written in many ways: the names of categories, which value of a bit is called true, the
direction of a scale, the order of the variables. A reliable method is as good on all of them. An audit runs a method on
a problem as it is given and in random disguises, and compares the distributions of what it found (permutation test).

The invariant: a disguise is a bijection of the space. Every value of the problem can be found in disguise, at exactly
one point.

A method is a name of `bounce.baselines`, or `module:function` for one of your own: `function(space, budget, seed)`
returns something with `ask()`, a list of trials with a `point`, and `tell(trial, value)`; it minimises.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bounce import baselines, benchmarks
from bounce.errors import EvaluationFailed, InvalidInput, InvalidSpace
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space
from bounce.spec.document import load
from bounce.trial import Scalar, Trial

CHANGES = ("labels", "bits", "direction", "order", "shifts")
"""What a disguise may change: names of categories, values of bits, the direction of ordinals and reals, the order of
variables, and the place of ordinals and reals on their scale (cyclically, which cuts a smooth function in two)."""
DEFAULT = CHANGES[:-1]
PERMUTATIONS = 10_000
LEVEL = 0.05

Point = Mapping[str, Scalar]


class Foreign(Protocol):
    """An optimizer that a user brings."""

    def ask(self) -> Sequence[Any]:
        """Return trials, each with a `point`."""

    def tell(self, trial: Any, value: float) -> Any:
        """Learn the value of a trial."""


@dataclass(frozen=True, eq=False)
class Disguise:
    """A problem written in another way: variables in another order, with other codes."""

    true: Space
    order: tuple[int, ...]
    tables: tuple[Array, ...]
    """For each variable, the true code of each shown one; empty for reals."""
    mirrored: NDArray[np.bool_]
    """Whether a real is read from its other end (D,)."""
    shifts: Array
    """How far a real is moved, cyclically (D,)."""

    @classmethod
    def none(cls, space: Space) -> Disguise:
        """Return the problem as it is."""
        if space.structure is not None or space.limits:
            raise InvalidSpace("an audit takes no conditions, constraints, outcomes, subsets, mixtures or permutations")
        tables = tuple(np.arange(c, dtype=np.float64) for c in space.cardinalities)
        return cls(space, tuple(range(len(space))), tables, np.zeros(len(space), bool), np.zeros(len(space)))

    @classmethod
    def random(cls, space: Space, changes: Sequence[str], *, rng: np.random.Generator) -> Disguise:
        """Draw a disguise."""
        plain = cls.none(space)
        tables = []
        for kind, table in zip(space.kinds, plain.tables, strict=True):
            flipped, moved = bool(rng.integers(2)), int(rng.integers(max(1, len(table))))
            mixed = rng.permutation(table)
            if kind == Kind.CATEGORICAL and "labels" in changes:
                table = mixed
            elif kind == Kind.BINARY and "bits" in changes and flipped:
                table = table[::-1]
            elif kind == Kind.ORDINAL:
                table = table[::-1] if flipped and "direction" in changes else table
                table = np.roll(table, moved) if "shifts" in changes else table
            tables.append(table)
        mirrored = rng.integers(2, size=len(space)).astype(bool) & ("direction" in changes)
        shifts = rng.random(len(space)) * ("shifts" in changes)
        for j, parameter in enumerate(space.parameters):
            if np.isfinite(parameter.size):  # whole numbers with real codes: only equal steps can be moved
                equal = not getattr(parameter, "log", False)
                mirrored[j] &= equal
                shifts[j] = equal * np.floor(shifts[j] * parameter.size) / parameter.size
        order = rng.permutation(len(space)) if "order" in changes else np.arange(len(space))
        return cls(space, tuple(order.tolist()), tuple(tables), mirrored, shifts)

    def differs(self, other: Disguise) -> bool:
        """Whether it is another disguise."""
        tables = any(not np.array_equal(a, b) for a, b in zip(self.tables, other.tables, strict=True))
        reals = self.true.reals
        moved = np.any(self.mirrored[reals] != other.mirrored[reals]) or np.any(
            self.shifts[reals] != other.shifts[reals]
        )
        return tables or bool(moved) or self.order != other.order

    @property
    def space(self) -> Space:
        """What the method sees."""
        return Space([self.true.parameters[i] for i in self.order])

    def codes(self, shown: Codes) -> Codes:
        """Return the true codes (n, D) of shown ones, both in the true order of the variables."""
        true = shown.copy()
        for j, table in enumerate(self.tables):
            if len(table):
                true[:, j] = table[shown[:, j].astype(np.intp)]
        reals = self.true.reals
        moved = np.mod(shown[:, reals] + self.shifts[reals], 1.0)
        moved = np.where(self.shifts[reals] > 0.0, moved, shown[:, reals])
        true[:, reals] = np.where(self.mirrored[reals], 1.0 - moved, moved)
        return true

    def reveal(self, point: Point) -> dict[str, Scalar]:
        """Return the true point of a shown one."""
        return self.true.decode(self.codes(self.true.encode([point])))[0]


@dataclass(frozen=True)
class Source:
    """A problem: a name of `bounce.benchmarks`, or the file of a spec with an objective or a command."""

    problem: str | None = None
    spec: Path | None = None

    def objective(self) -> tuple[Space, Callable[[Point], float]]:
        """Return the space and the function, to be minimised."""
        if self.problem is not None:
            problem = benchmarks.load(self.problem)
            return problem.space, problem
        assert self.spec is not None
        described = load(self.spec)
        folder = mkdtemp(prefix="bounce-audit-")  # its logs are not those of the study
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        evaluator = described.evaluator(Path(folder) / "audit.db")
        if evaluator is None:
            raise InvalidInput(f"{self.spec} has no objective and no command, so there is nothing to audit with")
        sign = -1.0 if described.options.get("direction") == "maximize" else 1.0

        ids = count()

        def value(point: Point) -> float:
            outcome = evaluator.evaluate(Trial(next(ids), dict(point)))
            if outcome.value is None:
                raise EvaluationFailed(f"the objective of {self.spec} failed: {outcome.error}")
            return sign * outcome.value

        return described.space, value


def made(method: str, space: Space, budget: int, seed: int) -> Any:
    """Return a method by its name or by `module:function`."""
    if ":" not in method:
        return baselines.make(method, space, budget, seed)
    module, _, name = method.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever the user's own module does when it is imported
        raise InvalidInput(f"the method {method!r} cannot be imported: {type(error).__name__}: {error}") from None
    with _blamed(method, "(space, budget, seed)"):
        return function(space, budget, seed)


@contextmanager
def _blamed(method: str, call: str) -> Iterator[None]:
    """Say which method failed, and where, if it is one of the user's own."""
    try:
        yield
    except Exception as error:
        if ":" not in method:
            raise
        raise InvalidInput(f"{method} failed in {call}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Task:
    """One run of an audit."""

    source: Source
    method: str
    budget: int
    seed: int
    changes: tuple[str, ...]
    """What the disguise changes; nothing for the problem as it is."""

    def run(self) -> list[float]:
        """Return the best value after each evaluation."""
        space, objective = self.source.objective()
        disguise = Disguise.none(space)
        if self.changes:
            disguise = Disguise.random(space, self.changes, rng=np.random.default_rng([self.seed, 2023]))
        optimizer: Foreign = made(self.method, disguise.space, self.budget, self.seed)
        best: list[float] = []
        while len(best) < self.budget:
            with _blamed(self.method, "ask()"):
                points = [(trial, disguise.reveal(trial.point)) for trial in optimizer.ask()]
            if not points:
                raise InvalidInput(f"{self.method} returned no trial after {len(best)} evaluations")
            for trial, point in points:
                value = objective(point)
                with _blamed(self.method, "tell()"):
                    optimizer.tell(trial, value)
                best.append(min(value, best[-1]) if best else value)
        return best[: self.budget]


@dataclass(frozen=True, eq=False)
class Report:
    """What an audit found about a method."""

    method: str
    given: Array
    """Best values (n, evaluations) on the problem as it is."""
    disguised: Array
    """Best values (n, evaluations) in disguises."""

    @property
    def marks(self) -> tuple[int, int]:
        """After how many evaluations the distributions are compared: half of them, and all."""
        return max(1, self.given.shape[1] // 2), self.given.shape[1]

    def p(self, mark: int) -> float:
        """Return the p-value of the permutation test for different means after some evaluations."""
        return permutation_test(self.given[:, mark - 1], self.disguised[:, mark - 1])

    @property
    def p_value(self) -> float:
        """Return the smaller p-value of both marks, corrected for two tests."""
        return min(1.0, 2.0 * min(self.p(mark) for mark in self.marks))

    @property
    def depends(self) -> bool:
        """Whether the method depends on how the problem is written."""
        return self.p_value < LEVEL


def permutation_test(a: Array, b: Array, *, permutations: int = PERMUTATIONS) -> float:
    """Return how often a random division of all values has means as far apart as those of a and b."""
    values = np.concatenate([a, b])
    if values.min() == values.max():
        return 1.0
    values = values / np.abs(values).max()  # no difference or sum of these can overflow
    values = values - np.median(values)  # a common offset would round the differences away
    values = values / np.abs(values).max()
    n = len(a)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(len(values)), (permutations, 1)), axis=1)
    mixed = values[order]
    drawn = np.abs(mixed[:, :n].mean(axis=1) - mixed[:, n:].mean(axis=1))
    seen = abs(values[:n].mean() - values[n:].mean())
    return float((1 + np.count_nonzero(drawn >= seen - 1e-12)) / (1 + permutations))


def refuse(source: Source, methods: Sequence[str], *, budget: int, changes: Sequence[str] = DEFAULT) -> None:
    """Refuse what cannot be audited, before anything runs: a name that is not known, or a disguise without effect."""
    for change in changes:
        if change not in CHANGES:
            raise InvalidInput(f"a disguise cannot change {change!r}; it can change {', '.join(CHANGES)}")
    space, _ = source.objective()
    plain = Disguise.none(space)
    if not any(Disguise.random(space, changes, rng=np.random.default_rng(i)).differs(plain) for i in range(64)):
        raise InvalidInput(f"{', '.join(changes)}: these changes make no difference to the variables of this problem")
    for method in methods:
        made(method, space, budget, 0)


def audit(
    source: Source,
    methods: Sequence[str],
    executor: Executor,
    *,
    budget: int,
    repetitions: int,
    changes: Sequence[str] = DEFAULT,
    progress: Callable[[int], None] = lambda finished: None,
) -> list[Report]:
    """Run methods on a problem as it is and in disguises, and compare. `progress` gets the number of finished runs."""
    refuse(source, methods, budget=budget, changes=changes)
    tasks = [
        Task(source, method, budget, seed, own)
        for seed in range(repetitions)
        for method in methods
        for own in ((), tuple(changes))
    ]
    futures = {executor.submit(Task.run, task): task for task in tasks}
    found: dict[Task, list[float]] = {}
    for finished, future in enumerate(as_completed(futures), start=1):
        found[futures[future]] = future.result()
        progress(finished)
    return [
        Report(method, *(_curves(found, method, bool(disguised)) for disguised in (False, True))) for method in methods
    ]


def _curves(found: Mapping[Task, list[float]], method: str, disguised: bool) -> Array:
    own = [task for task in found if task.method == method and bool(task.changes) == disguised]
    own.sort(key=lambda task: task.seed)
    return np.array([found[task] for task in own])
