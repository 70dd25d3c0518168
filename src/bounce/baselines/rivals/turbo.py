"""TuRBO: Bayesian optimization in trust regions, with Thompson sampling (`turbo`, and `turbo-m` with five regions).

Nouns: a region is a box around its best point; its sides are its length times the lengthscales of its own Gaussian
process, scaled to a geometric mean of 1. A round is the values that came between two asks. A region whose length falls
below 2⁻⁷ is forgotten with all of its data, and another starts from a new design.

The invariant: a value belongs to the region that asked for it, and to no other.

Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable Global Optimization via Local Bayesian Optimization, NeurIPS 2019.

Shapes: x (n, D) codes in [0, 1], y (n,) values, z (m, D) candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.rival import Rival
from bounce.baselines.rivals.thompson import Model, centred, fit
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

LENGTH, SHORTEST, LONGEST = 0.8, 0.5**7, 1.6
SUCCESSES = 3  # in a row, until a region doubles
MARGIN = 1e-3  # a success is better than the best by this share of its absolute value
CANDIDATES = 5000  # at most, and 100 per dimension
PERTURBED = 20.0  # how many coordinates of a candidate differ from the centre, on average


@dataclass(frozen=True)
class Region:
    """The length of a trust region, and what it counts."""

    length: float = LENGTH
    successes: int = 0
    failures: int = 0

    def after(self, values: Array, best: float, tolerance: int) -> Region:
        """Return the region after a round of values, where `best` was the lowest before it.

        A round with a success counts as one success; failures are counted in points, so that `tolerance` points make
        ⌈tolerance/B⌉ rounds of B, as published.
        """
        if values.min() < best - MARGIN * abs(best):
            successes, failures = self.successes + 1, 0
        else:
            successes, failures = 0, self.failures + len(values)
        if successes == SUCCESSES:
            return Region(min(2.0 * self.length, LONGEST))
        if failures >= tolerance:
            return Region(0.5 * self.length)
        return Region(self.length, successes, failures)

    @property
    def collapsed(self) -> bool:
        """Whether the region has become too small."""
        return self.length < SHORTEST


def candidates(centre: Array, low: Array, high: Array, *, rng: np.random.Generator) -> Array:
    """Return min(100·D, 5000) points of a scrambled Sobol sequence in a box, most coordinates left at the centre."""
    from scipy.stats import qmc  # slow to import

    d = len(centre)
    n = min(100 * d, CANDIDATES)
    own = np.random.default_rng(rng.integers(2**63))
    if d <= qmc.Sobol.MAXDIM:
        u = qmc.Sobol(d, scramble=True, rng=own).random_base2(int(np.ceil(np.log2(n))))[:n]
    else:
        u = own.random((n, d))
    moved = rng.random((n, d)) <= min(1.0, PERTURBED / d)
    still = np.flatnonzero(~moved.any(axis=1))
    moved[still, rng.integers(d, size=len(still))] = True
    return np.where(moved, low + (high - low) * u, centre)


def latin_hypercube(n: int, d: int, *, rng: np.random.Generator) -> Array:
    """Return n points with one in each of n slices of every coordinate."""
    return np.asarray((rng.permuted(np.tile(np.arange(n), (d, 1)), axis=1).T + rng.random((n, d))) / n)


class Turbo(Rival):
    """TuRBO-1: one trust region."""

    name = "turbo"
    takes = (Kind.REAL,)
    why = ", whose trust region would have no sides"
    regions: ClassVar[int] = 1
    fewest: ClassVar[int] = 4
    """The failures of a region until it halves, if there are fewer dimensions than that."""

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._regions = {number: Region() for number in range(self.regions)}
        self._next = self.regions  # the number of the next region
        self._sources: list[tuple[int, bool]] = []  # of each value: its region, and whether it is of its design
        self._asking = (0, True)
        self._design: list[tuple[int, Codes]] | None = None  # points to ask for, and their regions
        self._models: dict[int, tuple[int, Model]] = {}  # by region, with the number of values
        self._closed = 0  # how many values are in closed rounds

    def _propose(self) -> tuple[Codes, Any]:
        row, _ = super()._propose()
        return row, self._asking

    def _given(self, row: Codes) -> Any:
        super()._given(row)
        return 0, True  # the first region has the initial points that all methods share

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        super()._learn(row, token, value)
        self._sources.append(token)

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        y = y / (float(np.abs(y).max()) or 1.0)  # no sum of these can overflow
        if self._design is None:
            self._design = []
            for number in range(1, self.regions):
                self._begin(number, rng=rng)
        self._close(y, rng=rng)
        if self._design:
            number, row = self._design.pop(0)
            self._asking = number, True
            return on_grid(row)
        best, choice = np.inf, self.space.sample(1, rng=rng)[0]  # if no region has a value yet
        self._asking = next(iter(self._regions)), True
        for number in self._regions:
            rows = self._of(number)
            if len(rows):
                z, drawn = self._draw(number, x[rows], y[rows], rng=rng)
                if drawn.min() < best:  # over all regions (section 2, implicit bandit)
                    best, choice, self._asking = float(drawn.min()), z[drawn.argmin()], (number, False)
        return on_grid(np.clip(choice, 0.0, 1.0))

    def _draw(self, number: int, x: Codes, y: Array, *, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the candidates of a region and one Thompson sample of their values."""
        t, median, deviation = centred(y)
        if self._models.get(number, (0, None))[0] != len(y):
            self._models[number] = len(y), fit(x, t)
        model = self._models[number][1]
        centre, sides = x[y.argmin()], model.weights * self._regions[number].length
        low, high = np.clip(centre - 0.5 * sides, 0.0, 1.0), np.clip(centre + 0.5 * sides, 0.0, 1.0)
        z = candidates(centre, low, high, rng=rng)
        return z, median + deviation * model.sample(z, rng=rng)

    def _of(self, number: int, until: int | None = None) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return which of the values, or of the first ones, belong to a region."""
        return np.array([i for i, (owner, _) in enumerate(self._sources[:until]) if owner == number], dtype=np.intp)

    def _close(self, y: Array, *, rng: np.random.Generator) -> None:
        """Close the round: resize the regions that asked for its values; forget those that become too small."""
        for number, region in list(self._regions.items()):
            known = self._of(number, self._closed)
            new = [i for i in range(self._closed, len(y)) if self._sources[i] == (number, False)]
            if new and len(known):
                region = region.after(y[new], float(y[known].min()), self._tolerance())
                self._regions[number] = region
            if region.collapsed:
                self._collapse(number, rng=rng)
        self._closed = len(y)

    def _tolerance(self) -> int:
        """Return after how many failures a region halves."""
        return max(self.fewest, len(self.space))

    def _collapse(self, number: int, *, rng: np.random.Generator) -> None:
        """Forget a region, and start another."""
        del self._regions[number]
        self._models.pop(number, None)
        self._begin(self._next, rng=rng)
        self._next += 1

    def _begin(self, number: int, *, rng: np.random.Generator) -> None:
        """Start a region with a Latin hypercube as its design."""
        assert self._design is not None
        self._regions[number] = Region()
        self._design += [(number, row) for row in self._latin(rng=rng)]

    def _latin(self, *, rng: np.random.Generator) -> Codes:
        """Return as many points as there are initial ones."""
        return latin_hypercube(len(self._initial), len(self.space), rng=rng)


class TurboM(Turbo):
    """TuRBO-m: five trust regions, and each point comes from the one with the lowest Thompson sample."""

    name = "turbo-m"
    regions = 5
    fewest = 5
