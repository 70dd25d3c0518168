"""CatCMA with margin: an evolution strategy for reals, integers and categories, with its defaults.

Integers with many values and log scales are passed as continuous codes. An evolution strategy learns from its own
samples. If every variable is a category, the initial points are such samples. Otherwise they lie so far out in its
normal distribution that they would spoil its step size, so they count against the budget but are not told.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bounce.baselines.baseline import INITIAL, Baseline, quiet, require
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space


class Cmaes(Baseline):
    """An optimizer of the package cmaes, told a generation at a time."""

    name = "cmaes"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        require("cmaes", "cmaes")
        from cmaes import CatCMAwM

        super().__init__(space, budget, seed, initial)
        self._ordinals = space.of_kind(Kind.ORDINAL)
        self._choices = space.of_kind(Kind.BINARY, Kind.CATEGORICAL)
        with quiet():
            self._strategy = CatCMAwM(
                x_space=[[0.0, 1.0]] * len(space.reals) or None,
                z_space=[list(range(c)) for c in space.cardinalities[self._ordinals]] or None,
                c_space=space.cardinalities[self._choices].tolist() or None,
                seed=self.seed,
            )
        self._generation: list[tuple[Any, float]] = []

    def _propose(self) -> tuple[Codes, Any]:
        solution = self._strategy.ask()
        row = np.empty(len(self.space))
        if len(self.space.reals):
            row[self.space.reals] = on_grid(np.clip(solution.x, 0.0, 1.0))
        if len(self._ordinals):
            row[self._ordinals] = solution.z
        if len(self._choices):
            row[self._choices] = solution.c.argmax(axis=1)
        return row, solution

    def _given(self, row: Codes) -> Any:
        if len(self._choices) < len(self.space):
            return None
        widest = int(self.space.cardinalities.max())
        return self._strategy.Solution(c=row[:, None] == np.arange(widest))

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        if token is None:
            return
        self._generation.append((token, value))
        if len(self._generation) == self._strategy.population_size:
            self._strategy.tell(self._generation)
            self._generation = []
