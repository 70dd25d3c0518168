"""Task: a problem that is evaluated point by point, and the wrappers that make harder versions of one.

A problem with noise has a second face: `truth`, the value without noise, which no optimizer sees. Its noise is a
function of its seed and of how many values it has returned, so a repeated point has a new value and a repeated run
has the same ones.

Shapes: codes (n, D), values (n,).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from bounce import Binary, Categorical, Integer, Real, Space
from bounce.benchmarks.problem import Problem, Values
from bounce.errors import InvalidInput
from bounce.spaces.kinds import Codes, Parameter

Point = Mapping[str, Any]
SALT = 16_180_339  # begins the seeds of problems, so that no optimizer draws the same numbers from its own seed


class Task(Problem):
    """A problem that is evaluated point by point, as native values."""

    @abstractmethod
    def value(self, point: Point) -> float:
        """Return the value of a point."""

    def evaluate(self, codes: Codes) -> Values:
        """Return the values of points given as codes."""
        return np.array([self.value(point) for point in self.space.decode(codes)], dtype=np.float64)


class NoisyTask(Task):
    """A task whose values are random; `truth` is what they are on average."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._calls = 0

    @abstractmethod
    def draw(self, point: Point, *, rng: np.random.Generator) -> float:
        """Return a random value of a point."""

    @abstractmethod
    def truth(self, point: Point) -> float:
        """Return the value of a point without noise."""

    def value(self, point: Point) -> float:
        """Return the next random value of a point."""
        self._calls += 1
        return self.draw(point, rng=np.random.default_rng([SALT, self.seed, self._calls]))


class Repeatable(NoisyTask):
    """A problem plus normal noise that is drawn anew for every evaluation."""

    def __init__(self, problem: Problem, sd: float, seed: int, name: str | None = None) -> None:
        super().__init__(seed)
        self.problem, self.sd, self._name = problem, sd, name or f"noisy-{problem.name}"

    @property
    def name(self) -> str:
        """The name it was given, or the problem's name and the word noisy."""
        return self._name

    @property
    def space(self) -> Space:
        """The problem's space."""
        return self.problem.space

    def draw(self, point: Point, *, rng: np.random.Generator) -> float:
        """Return the problem's value plus noise."""
        return self.truth(point) + self.sd * float(rng.standard_normal())

    def truth(self, point: Point) -> float:
        """Return the problem's value."""
        return self.problem(point)


class Hidden(Task):
    """A problem whose variables are placed at random among variables of all kinds that have no effect."""

    def __init__(self, problem: Problem, n: int, seed: int = 0) -> None:
        if n <= len(problem.space):
            raise InvalidInput(f"{problem.name!r} has {len(problem.space)} variables: n must be greater, not {n!r}")
        self.problem, self.n, self.seed = problem, n, seed

    @property
    def name(self) -> str:
        """The problem's name and the word inert."""
        return f"inert-{self.problem.name}"

    @cached_property
    def space(self) -> Space:
        """The problem's variables among the inert ones."""
        rng = np.random.default_rng([SALT, self.seed])
        own = list(self.problem.space.parameters)
        spare = [_inert(f"spare{i}", int(rng.integers(4))) for i in range(self.n - len(own))]
        whole = [*own, *spare]
        return Space([whole[i] for i in rng.permutation(self.n)])

    @property
    def optimum(self) -> float | None:
        """The problem's optimum."""
        return self.problem.optimum

    def value(self, point: Point) -> float:
        """Return the problem's value at its own variables."""
        return self.problem({parameter.name: point[parameter.name] for parameter in self.problem.space.parameters})


def _inert(name: str, kind: int) -> Parameter:
    parameters: tuple[Parameter, ...] = (
        Binary(name),
        Integer(name, 0, 9),
        Categorical(name, ["a", "b", "c", "d", "e"]),
        Real(name, 0.0, 1.0),
    )
    return parameters[kind]


def require(module: str, package: str, problem: str) -> None:
    """Refuse a problem whose package is not installed."""
    if find_spec(module) is None:
        raise InvalidInput(f"{problem} needs {package}: pip install 'bounce-bo[suites]'")
