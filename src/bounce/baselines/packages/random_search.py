"""Random search: the method that every other one must beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from bounce.baselines.baseline import INITIAL, Baseline
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space


class RandomSearch(Baseline):
    """Points drawn uniformly."""

    name = "random"
    structures = ("conditions", "constraints", "subset", "mixture", "permutation")

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._rng = np.random.default_rng(seed)

    def _propose(self) -> tuple[Codes, Any]:
        return self.space.sample(1, rng=self._rng)[0], None

    def _given(self, row: Codes) -> Any:
        return None

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        pass
