"""Pest control: which of five actions to take at each of 25 stations (Oh et al., 2019).

The pest spreads from station to station unless a pesticide holds it back. A pesticide gets cheaper the more often
it is used, and weaker with every use. Parameters and draws are those of BODi's public code, seed 0.

Shapes: codes (n, 25), paths (n, 25, 100) for 100 simulated years.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.benchmarks.contamination import paths
from bounce.benchmarks.problem import Problem, Values
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Categorical
from bounce.spaces.space import Space

STATIONS, ACTIONS, SIMULATIONS = 25, 5, 100
LIMIT = 0.1  # of the pest at a station
# One entry per action; the first is to do nothing.
PRICE = np.array([0.0, 1.0, 0.8, 0.7, 0.5])
DISCOUNT = np.array([0.0, 0.2, 0.3, 0.3, 0.0])  # if it is used at every station
RESISTANCE = (0.0, 2.0 / 7.0, 3.0 / 7.0, 3.0 / 7.0, 5.0 / 7.0)  # the second parameter of the beta distribution ...
TOLERANCE = (0.0, 1.0 / 7.0, 2.5 / 7.0, 2.0 / 7.0, 0.5 / 7.0)  # ... and its growth if it is used everywhere


@dataclass(frozen=True)
class Pest25(Problem):
    """The price of all actions plus, over stations, the share of years in which the pest is above its limit.

    The best known value, found with this package, is 12.0316: action 4 everywhere except action 1 at the end. The
    best in the paper is 12.07: action 5 everywhere except action 1 at the end (section 4.3).
    """

    name = "pest25"
    optimum = 12.0316

    @cached_property
    def space(self) -> Space:
        """One of the actions 1 to 5 per station."""
        return Space([Categorical(f"x{i}", range(1, ACTIONS + 1)) for i in range(STATIONS)])

    @cached_property
    def shifts(self) -> Codes:
        """Actions renumbered by fixed random offsets."""
        return np.random.RandomState(0).choice(ACTIONS, STATIONS).astype(np.float64)

    @cached_property
    def _rates(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The pest at the start, what it gains (action) and what is kept of it (action, earlier uses).

        The published code draws from the same seed at every station, so that these tables are all it ever draws.
        """
        start = np.random.RandomState(0).beta(1.0, 30.0, SIMULATIONS)
        gain = np.zeros((ACTIONS, SIMULATIONS))
        gain[0] = np.random.RandomState(0).beta(1.0, 17.0 / 3.0, SIMULATIONS)
        keep = np.ones((ACTIONS, STATIONS, SIMULATIONS))
        for action in range(1, ACTIONS):
            resistance = RESISTANCE[action]
            for uses in range(STATIONS):
                keep[action, uses] -= np.random.RandomState(0).beta(1.0, resistance, SIMULATIONS)
                resistance += TOLERANCE[action] / STATIONS
        return start, gain, keep

    def evaluate(self, codes: Codes) -> Values:
        """Return the costs."""
        start, gain, keep = self._rates
        action = codes.astype(np.intp)
        same = action[:, :, None] == action[:, None, :]
        earlier = np.count_nonzero(same & np.tri(STATIONS, k=-1, dtype=bool), axis=2)
        everywhere = np.count_nonzero(same, axis=2) / STATIONS
        price = PRICE[action] * (1.0 - DISCOUNT[action] * everywhere)
        # The last station's action still costs, but its effect comes after the last count.
        z = paths(start, gain[action[:, :-1]], keep[action[:, :-1], earlier[:, :-1]])
        above = np.count_nonzero(z > LIMIT, axis=(1, 2)) + np.count_nonzero(start > LIMIT)
        value: Values = price.sum(axis=1) + above / SIMULATIONS
        return value
