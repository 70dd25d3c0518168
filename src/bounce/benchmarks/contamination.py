"""Contamination control: where in a supply chain to inspect (Hu et al., 2010; Baptista and Poloczek, 2018).

The fraction z of contaminated goods moves from stage to stage: an inspection removes a random part of it,
otherwise contamination spreads. Parameters and order of draws are those of the public code of COMBO and BODi.

Shapes: codes (n, 25), paths (n, 25, 100) for 100 simulated chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Binary
from bounce.spaces.space import Space

STAGES, SIMULATIONS = 25, 100
LIMIT = 0.1  # of contamination at a stage ...
CONFIDENCE = 0.95  # ... which this part of the chains should keep
COST = 1.0 + 0.01  # of an inspection: its price and λ


def paths(start: NDArray[np.float64], gain: NDArray[np.float64], keep: NDArray[np.float64]) -> NDArray[np.float64]:
    """Follow z ← gain·(1 − z) + keep·z from a start (100,) through stages (n, T, 100); return z after each."""
    z = np.empty(gain.shape)
    last = np.broadcast_to(start, (len(gain), len(start)))
    for i in range(gain.shape[1]):
        last = z[:, i] = gain[:, i] * (1.0 - last) + keep[:, i] * last
    return z


@dataclass(frozen=True)
class Contamination25(Problem):
    """The price of the inspections, plus λ = 0.01 for each, minus how far every stage is above its confidence.

    The optimum was found by computing all 2²⁵ points.
    """

    name = "contamination25"
    optimum = 21.44

    @cached_property
    def space(self) -> Space:
        """One binary variable per stage: inspect or not."""
        return Space([Binary(f"x{i}") for i in range(STAGES)])

    @cached_property
    def shifts(self) -> Codes:
        """Bits flipped by a fixed string."""
        return np.random.RandomState(43).choice([True, False], size=STAGES).astype(np.float64)

    @cached_property
    def _rates(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The contamination at the start, what spreads and what an inspection removes; each from a fresh seed."""
        start = np.random.RandomState(42).beta(1.0, 30.0, SIMULATIONS)
        spread = np.random.RandomState(42).beta(1.0, 17.0 / 3.0, (STAGES, SIMULATIONS))
        removed = np.random.RandomState(42).beta(1.0, 3.0 / 7.0, (STAGES, SIMULATIONS))
        return start, spread, removed

    def evaluate(self, codes: Codes) -> Values:
        """Return the costs."""
        start, spread, removed = self._rates
        x = codes[:, :, None]
        z = paths(start, spread * (1.0 - x), 1.0 - removed * x)
        kept = np.count_nonzero(z < LIMIT, axis=2) / SIMULATIONS
        value: Values = COST * codes.sum(axis=1) - (kept - CONFIDENCE).sum(axis=1)
        return value
