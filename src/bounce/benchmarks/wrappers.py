"""Wrappers: variants of a problem, each a problem itself.

Shapes: codes (n, D), values (n,).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bounce.benchmarks.problem import Problem, Values
from bounce.errors import InvalidInput
from bounce.spaces.kinds import Codes, Kind, Parameter
from bounce.spaces.parameters import Real
from bounce.spaces.space import Space

SAME = 2.0**30  # real codes that agree to one part in this are the same point to `Noisy`


@dataclass(frozen=True)
class Randomized(Problem):
    """The published randomised version of a problem: the optimum is at an arbitrary position.

    Every discrete code is shifted by a fixed random number, modulo the number of codes.
    """

    problem: Problem

    def __post_init__(self) -> None:
        _check_problem(self.problem)
        if self.problem.shifts is None:
            raise InvalidInput(f"no randomised version of {self.problem.name!r} was published")

    @property
    def name(self) -> str:
        """The problem's name and the word randomized."""
        return f"{self.problem.name}-randomized"

    @property
    def space(self) -> Space:
        """The problem's space."""
        return self.problem.space

    @property
    def optimum(self) -> float | None:
        """The problem's optimum; only its position differs."""
        return self.problem.optimum

    def evaluate(self, codes: Codes) -> Values:
        """Return the problem's values at the shifted codes."""
        shifts = self.problem.shifts
        assert shifts is not None
        moved, discrete = codes.copy(), self.space.combinatorial
        moved[:, discrete] = (codes[:, discrete] + shifts[discrete]) % self.space.cardinalities[discrete]
        return self.problem.evaluate(moved)


@dataclass(frozen=True)
class Noisy(Problem):
    """A problem with normal noise of a given standard deviation on its values.

    The noise is a function of the seed and the point: the same point has the same noise in any order of evaluation,
    in any process and on any machine. The optimum is that of the problem without noise.
    """

    problem: Problem
    sd: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check_problem(self.problem)
        if not (isinstance(self.sd, int | float) and math.isfinite(self.sd) and self.sd >= 0):
            raise InvalidInput(f"the standard deviation of the noise must be a number of at least 0, not {self.sd!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise InvalidInput(f"the seed of the noise must be an integer from 0 to 2**64 - 1, not {self.seed!r}")

    @property
    def name(self) -> str:
        """The problem's name and the word noisy."""
        return f"{self.problem.name}-noisy"

    @property
    def space(self) -> Space:
        """The problem's space."""
        return self.problem.space

    @property
    def optimum(self) -> float | None:
        """The problem's optimum, without noise."""
        return self.problem.optimum

    @property
    def shifts(self) -> Codes | None:
        """The problem's shifts."""
        return self.problem.shifts

    def evaluate(self, codes: Codes) -> Values:
        """Return the problem's values plus noise."""
        key = self.seed.to_bytes(8, "little")
        rows = np.rint(codes * SAME).astype("<i8")
        seeds = [hashlib.blake2b(row.tobytes(), digest_size=16, key=key).digest() for row in rows]
        noise = [np.random.default_rng(int.from_bytes(seed, "little")).standard_normal() for seed in seeds]
        return self.problem.evaluate(codes) + self.sd * np.array(noise)


@dataclass(frozen=True)
class Padded(Problem):
    """A problem with extra variables, n in all: its own come first, the others have no effect.

    The inactive variables are of the kind of the problem's last one; reals lie in [0, 1].
    """

    problem: Problem
    n: int
    title: str | None = None

    def __post_init__(self) -> None:
        _check_problem(self.problem)
        if not isinstance(self.n, int) or self.n <= len(self.problem.space):
            raise InvalidInput(
                f"{self.problem.name!r} has {len(self.problem.space)} variables: n must be greater, not {self.n!r}"
            )

    @property
    def name(self) -> str:
        """The title, or the problem's name and the number of variables."""
        return self.title or f"{self.problem.name}-padded{self.n}"

    @cached_property
    def space(self) -> Space:
        """The problem's variables, then the inactive ones."""
        active = self.problem.space.parameters
        return Space([*active, *(_inactive(active[-1], f"x{i}") for i in range(len(active), self.n))])

    @property
    def optimum(self) -> float | None:
        """The problem's optimum."""
        return self.problem.optimum

    @property
    def shifts(self) -> Codes | None:
        """The problem's shifts, and 0 for the inactive variables."""
        shifts = self.problem.shifts
        return None if shifts is None else np.concatenate([shifts, np.zeros(self.n - len(shifts))])

    def evaluate(self, codes: Codes) -> Values:
        """Return the problem's values at its own variables."""
        return self.problem.evaluate(codes[:, : len(self.problem.space)])


def _check_problem(problem: object) -> None:
    if not isinstance(problem, Problem):
        raise InvalidInput(f"a variant needs a problem, such as benchmarks.load('labs50'), not {problem!r}")


def _inactive(like: Any, name: str) -> Parameter:
    copy: Parameter = Real(name, 0.0, 1.0) if like.kind is Kind.REAL else replace(like, name=name)
    return copy
