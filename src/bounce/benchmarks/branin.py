"""Branin's function, a classic test function of two real variables (Dixon and Szegő, 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Real
from bounce.spaces.space import Space


@dataclass(frozen=True)
class Branin(Problem):
    """(x₂ − b·x₁² + c·x₁ − 6)² + 10·(1 − t)·cos x₁ + 10 with b = 5.1/(4π²), c = 5/π, t = 1/(8π).

    The optimum is 10·t, exactly, at (−π, 12.275), (π, 2.275) and (3π, 2.475).
    """

    name = "branin"
    optimum = 10.0 / (8.0 * np.pi)

    @cached_property
    def space(self) -> Space:
        """The usual rectangle."""
        return Space([Real("x0", -5.0, 10.0), Real("x1", 0.0, 15.0)])

    def evaluate(self, codes: Codes) -> Values:
        """Return the values of Branin's function."""
        x1, x2 = 15.0 * codes[:, 0] - 5.0, 15.0 * codes[:, 1]
        b, c, t = 5.1 / (4.0 * np.pi**2), 5.0 / np.pi, 1.0 / (8.0 * np.pi)
        value: Values = (x2 - b * x1**2 + c * x1 - 6.0) ** 2 + 10.0 * (1.0 - t) * np.cos(x1) + 10.0
        return value
