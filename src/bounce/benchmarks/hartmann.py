"""Hartmann's function of six real variables (Dixon and Szegő, 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Real
from bounce.spaces.space import Space

HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
CENTRES = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)


@dataclass(frozen=True)
class Hartmann6(Problem):
    """−Σ heights·exp(−Σ widths·(x − centres)²) over four bumps on [0, 1]⁶.

    The optimum −3.32236801 is at (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573) (Dixon and Szegő,
    1978; refined by local descent).
    """

    name = "hartmann"
    optimum = -3.322368011415514

    @cached_property
    def space(self) -> Space:
        """The unit cube."""
        return Space([Real(f"x{i}", 0.0, 1.0) for i in range(6)])

    def evaluate(self, codes: Codes) -> Values:
        """Return the values of Hartmann's function."""
        d2 = (WIDTHS * (codes[:, None, :] - CENTRES) ** 2).sum(axis=2)
        value: Values = -np.exp(-d2) @ HEIGHTS
        return value
