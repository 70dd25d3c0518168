"""Rival: a method of the literature behind the same ask and tell as Bounce.

A rival sees codes and values, and answers with the codes of its next point. Everything else is here: the common initial
points, the kinds of variables that a method takes, values of points that are still pending, and that no point comes
twice where the space has others.

The invariant: what a rival proposes is a function of its options, its seed and what it was told, in that order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bounce.baselines.baseline import INITIAL, Baseline
from bounce.errors import InvalidSpace
from bounce.gp.linalg import Array
from bounce.gp.threads import one_thread
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

ALL = (Kind.REAL, Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
TRIES = 256  # random moves away from a point that is known, before a random point is taken


class Rival(Baseline):
    """A method of the literature; subclasses choose one point from what is known."""

    takes: ClassVar[Sequence[Kind]] = ALL
    """The kinds of variables that the method is defined for."""
    why: ClassVar[str] = ""
    """Why it takes no others, for the message."""

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        other = [kind for kind in dict.fromkeys(space.kinds) if kind not in self.takes]
        if other:
            kinds = " and ".join(self.takes)
            raise InvalidSpace(
                f"{self.name} takes {kinds} variables only, and this space has {' and '.join(other)} ones{self.why}"
            )
        self._rows: list[Codes] = []
        self._values: list[float] = []
        self._keys: set[bytes] = set()

    @abstractmethod
    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the codes (D,) of the next point.

        x (n, D) and y (n,) are what is known, in the order of the tells; pending (p, D) is what has been asked for and
        not told yet, in the order of the asks. There is at least one value.
        """

    def _told(self, row: Codes, value: float) -> None:
        """Take note of a value that has just come; most methods need nothing here, since `_choose` sees all values."""

    def _propose(self) -> tuple[Codes, Any]:
        i = len(self.trials)
        rng = np.random.default_rng([self.seed, i])
        pending = np.array([row for row, _ in self._tokens.values()]).reshape(-1, len(self.space))
        if self._values:
            with one_thread():  # a run repeats, whatever number of threads is set
                row = self._choose(np.array(self._rows), np.array(self._values), pending, rng=rng)
        else:
            row = self.space.sample(1, rng=rng)[0]
        row = self._unseen(np.asarray(row, dtype=np.float64), rng=rng)
        self._note(row)
        return row, None

    def _given(self, row: Codes) -> Any:
        self._note(row)
        return None

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        self._rows.append(row)
        self._values.append(value)
        self._told(row, value)

    def _note(self, row: Codes) -> None:
        self._keys.update(self.space.keys(row[None]))

    def _unseen(self, row: Codes, *, rng: np.random.Generator) -> Codes:
        """Return the point itself if it is new, else one beside it, else any new one; the point if there is none."""
        if self.space.keys(row[None])[0] not in self._keys:
            return row
        columns = rng.integers(len(self.space), size=TRIES)
        near = np.tile(row, (TRIES, 1))
        near[np.arange(TRIES), columns] = self.space.sample(TRIES, rng=rng)[np.arange(TRIES), columns]
        others = [near, self.space.sample(TRIES, rng=rng)]
        if self.space.size <= TRIES**2:
            others.append(rng.permutation(self.space.grid()))
        for rows in others:
            for candidate, key in zip(rows, self.space.keys(rows), strict=True):
                if key not in self._keys:
                    return np.asarray(candidate)
        return row


def standardised(y: Array) -> Array:
    """Return values with mean 0 and deviation 1, of any scale; zeros if all are equal."""
    largest = float(np.abs(y).max()) or 1.0
    scaled = y / largest  # no sum of these can overflow
    deviation = float(scaled.std())
    if not deviation > 1e-14:
        return np.zeros_like(scaled)
    return np.asarray((scaled - scaled.mean()) / deviation)


def unit(space: Space, codes: Codes) -> Array:
    """Return codes as numbers in [0, 1]: reals as they are, others by their place among their codes."""
    return np.asarray(codes / np.where(space.cardinalities > 1, space.cardinalities - 1, 1))


def from_unit(space: Space, u: Array) -> Codes:
    """Return the codes nearest to numbers in [0, 1]."""
    u = np.clip(u, 0.0, 1.0)
    steps = np.where(space.cardinalities > 1, space.cardinalities - 1, 0)
    codes = np.round(u * steps)
    codes[..., space.reals] = on_grid(u[..., space.reals])
    return np.asarray(codes)
