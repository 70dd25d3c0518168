"""Ackley's function on 50 bits and 3 reals (appendix of the paper; Wan et al., 2021), without a noise term.

Shapes: codes (n, 53), the bits first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Binary, Real
from bounce.spaces.space import Space

BITS, REALS = 50, 3
FLIPS = "11100101100000001110111010101100010111011001001111"  # of the randomised version, as published


@dataclass(frozen=True)
class Ackley53(Problem):
    """20 + e − 20·exp(−0.2·√(mean x²)) − exp(mean cos 2πx) of bits in {0, 1} and reals in [−1, 1].

    The optimum is 0, where every variable is 0.
    """

    name = "ackley53"
    optimum = 0.0

    @cached_property
    def space(self) -> Space:
        """The bits, then the reals."""
        bits = [Binary(f"x{i}") for i in range(BITS)]
        return Space([*bits, *(Real(f"x{BITS + i}", -1.0, 1.0) for i in range(REALS))])

    @cached_property
    def shifts(self) -> Codes:
        """Bits flipped by a fixed string."""
        return np.array([*map(float, FLIPS), *[0.0] * REALS])

    def evaluate(self, codes: Codes) -> Values:
        """Return the values of Ackley's function."""
        x = codes.copy()
        x[:, BITS:] = 2.0 * x[:, BITS:] - 1.0
        root = np.sqrt((x**2).mean(axis=1))
        waves = np.cos(2.0 * np.pi * x).mean(axis=1)
        value: Values = 20.0 + math.e - 20.0 * np.exp(-0.2 * root) - np.exp(waves)
        return value
