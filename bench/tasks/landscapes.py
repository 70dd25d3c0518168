"""Landscapes: functions with a known difficulty, made here. The best value of each is 0.

`Royal` and `Staircase` have large plateaus. `Lock` has variables of all kinds that interact in pairs; `Hidden` puts it
among variables without effect.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from bounce import Binary, Categorical, Integer, Real, Space
from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from tasks.task import SALT, Point, Task

LETTERS = ("a", "b", "c", "d", "e")


class Royal(Problem):
    """Royal road (Mitchell, Forrest and Holland 1992): the number of incomplete blocks of bits.

    A block counts when all its bits equal those of a hidden target; a bit that is right alone changes nothing.
    """

    def __init__(self, bits: int, block: int, seed: int = 0) -> None:
        self.bits, self.block, self.seed = bits, block, seed

    @property
    def name(self) -> str:
        """The size of a block."""
        return f"plateau-royal{self.block}"

    @cached_property
    def space(self) -> Space:
        """Bits."""
        return Space([Binary(f"x{i}") for i in range(self.bits)])

    @property
    def optimum(self) -> float:
        """No block is incomplete."""
        return 0.0

    @cached_property
    def target(self) -> Codes:
        """The only best point."""
        return np.random.default_rng([SALT, self.seed]).integers(0, 2, (1, self.bits)).astype(np.float64)

    def evaluate(self, codes: Codes) -> Values:
        """Return how many blocks are incomplete."""
        right = (codes == self.target).reshape(len(codes), -1, self.block).all(axis=2)
        return np.asarray((~right).sum(axis=1), dtype=np.float64)


class Staircase(Problem):
    """The distance to a hidden target in broad steps: most points are on the highest ones, the lowest are narrow."""

    def __init__(self, each: int = 10, levels: int = 6, seed: int = 0) -> None:
        self.each, self.levels, self.seed = each, levels, seed

    @property
    def name(self) -> str:
        """The shape."""
        return "plateau-staircase"

    @cached_property
    def space(self) -> Space:
        """As many binary, integer and real variables."""
        return Space(
            [
                *(Binary(f"b{i}") for i in range(self.each)),
                *(Integer(f"i{i}", 0, self.levels - 1) for i in range(self.each)),
                *(Real(f"r{i}", 0.0, 1.0) for i in range(self.each)),
            ]
        )

    @property
    def optimum(self) -> float:
        """The lowest step."""
        return 0.0

    @cached_property
    def target(self) -> Codes:
        """A best point."""
        return self.space.sample(1, rng=np.random.default_rng([SALT, self.seed]))

    def evaluate(self, codes: Codes) -> Values:
        """Return the step: 0 within 1 % of the target, then one more for every 4 %, at most 10."""
        scale = np.where(self.space.cardinalities == 0, 1, np.maximum(self.space.cardinalities - 1, 1))
        away = (np.abs(codes - self.target) / scale).mean(axis=1)
        return np.asarray(np.clip(np.ceil((away - 0.01) / 0.04), 0, 10), dtype=np.float64)


class Lock(Task):
    """Two variables of each kind; each must fit a target that another one sets, more or less important."""

    @property
    def name(self) -> str:
        """The name."""
        return "lock"

    @cached_property
    def space(self) -> Space:
        """Two variables of each kind."""
        return Space(
            [
                *(Binary("b0"), Binary("b1")),
                *(Integer("i0", 0, 15), Integer("i1", 0, 15)),
                *(Categorical("c0", LETTERS), Categorical("c1", LETTERS)),
                *(Real("r0", 0.0, 1.0), Real("r1", 0.0, 1.0)),
            ]
        )

    @property
    def optimum(self) -> float:
        """Everything fits."""
        return 0.0

    def value(self, point: Point) -> float:
        """Return the sum of what does not fit."""
        depth = 0.3 if point["b0"] else 0.8
        level = 11 if point["c0"] == "d" else 4
        return float(
            0.7 * (not point["b0"])
            + 0.4 * (point["b1"] != (point["c0"] in ("b", "d")))
            + 1.0 * (point["c0"] != "d")
            + 0.5 * (point["c1"] != "a")
            + abs(point["i0"] - level) / 11
            + 0.5 * abs(point["i1"] - point["i0"] + 3) / 11
            + 2.0 * abs(point["r0"] - depth)
            + 0.5 * (1 - math.exp(-8 * (point["r1"] - point["r0"] ** 2) ** 2))
        )
