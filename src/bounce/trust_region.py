"""The trust region: how far from the best point a proposal may go.

Two lengths: `comb` bounds the number of combinatorial bins that may change, `cont` scales the box of the reals.
A region is a value; `after` returns the next one. Three strategies: the paper's (section 3, "Trust region
management") and the two it is compared with (appendix "Effect of trust-region management").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

COMB_START, COMB_FLOOR = 40.0, 1.0
CONT_START, CONT_FLOOR, CONT_CAP = 0.8, 2.0**-7, 1.6
FLAT = 0.5  # in a mixed space, reals with longer lengthscales have equal sides
SUCCESSES = 3  # in a row, before the older strategies expand
AT_FLOOR = 1 + 1e-9  # λ^m reaches the floor up to rounding


def improves(value: float, incumbent: float) -> bool:
    """Say whether a value beats the incumbent by the margin that makes a success."""
    return value < incumbent - 1e-3 * abs(incumbent)


@dataclass(frozen=True)
class TrustRegion:
    """The lengths in one target space of `n_comb` combinatorial and `n_cont` real bins."""

    n_comb: int
    n_cont: int
    budget: int
    """The evaluations this space may use."""
    comb: float
    cont: float
    used: int = 0
    """The evaluations that have been counted."""
    successes: int = 0
    failures: int = 0

    @classmethod
    def fresh(cls, n_comb: int, n_cont: int, budget: int) -> TrustRegion:
        """Return the region a space starts with."""
        return cls(n_comb, n_cont, budget, comb=min(COMB_START, n_comb), cont=CONT_START if n_cont else 0.0)

    @property
    def radius(self) -> int:
        """The number of combinatorial bins that may differ from the centre."""
        return max(1, math.floor(self.comb)) if self.n_comb else 0

    @property
    def shrinkable(self) -> tuple[bool, bool]:
        """Whether each kind starts above its floor; one that does not never causes a collapse."""
        return self.n_comb > 1, self.n_cont > 0

    @property
    def collapsed(self) -> bool:
        """Whether the space has ended: a length at its floor, or no length to shrink and no budget left."""
        comb, cont = self.shrinkable
        if not comb and not cont:
            return self.used >= self.budget
        return (comb and self.comb <= COMB_FLOOR * AT_FLOOR) or (cont and self.cont <= CONT_FLOOR * AT_FLOOR)

    def box(self, centre: NDArray[np.float64], lengthscales: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bounds (2, n_cont) of the reals: sides L·w, w of unit geometric mean, as TuRBO does.

        Beside other bins the lengthscales are capped: there, one real that does not matter would leave those that
        do a sliver.
        """
        log_w = np.log(np.minimum(lengthscales, FLAT) if self.n_comb else lengthscales)
        half = 0.5 * self.cont * np.exp(log_w - log_w.mean())
        return np.stack([np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)])

    def with_budget(self, budget: int) -> TrustRegion:
        """Return the same region with another budget."""
        return replace(self, budget=budget)

    def _scaled(self, comb: float, cont: float) -> TrustRegion:
        return replace(
            self,
            comb=min(max(self.comb * comb, COMB_FLOOR), float(self.n_comb)) if self.n_comb else 0.0,
            cont=min(max(self.cont * cont, CONT_FLOOR), CONT_CAP) if self.n_cont else 0.0,
        )


def _adaptive(region: TrustRegion, success: bool, n: int, *, in_input: bool) -> TrustRegion:
    """Bounce: shrink so that the floor is reached when the budget is spent without success (section 3)."""
    power = (-n if success else n) / max(1, region.budget - region.used)

    def factor(floor: float, length: float) -> float:
        return math.exp(min(power * math.log(floor / length), 100.0)) if length else 1.0  # λ^{±n}, kept finite

    resized = region._scaled(factor(COMB_FLOOR, region.comb), factor(CONT_FLOOR, region.cont))
    return replace(resized, used=region.used + n)


def _counting(region: TrustRegion, success: bool, n: int, *, in_input: bool, factor: float) -> TrustRegion:
    """BAxUS and Casmopolitan: a fixed factor after some successes or failures in a row (appendix)."""
    region = replace(
        region,
        used=region.used + n,
        successes=region.successes + 1 if success else 0,
        failures=0 if success else region.failures + 1,
    )
    if region.successes >= SUCCESSES:
        return replace(region._scaled(factor, factor), successes=0)
    if region.failures >= _failure_tolerance(region, factor, in_input=in_input):
        return replace(region._scaled(1 / factor, 1 / factor), failures=0)
    return region


def _failure_tolerance(region: TrustRegion, factor: float, *, in_input: bool) -> int:
    """Return τ_fail = max(1, min(m_i / k, d_i)), k the shrinkings from start to floor; d_i in the input space."""
    dim = region.n_comb + region.n_cont
    if in_input:
        return dim
    comb, cont = region.shrinkable
    ranges = [min(COMB_START, region.n_comb) / COMB_FLOOR] * comb + [CONT_START / CONT_FLOOR] * cont
    # Either length ends the space, so the shorter way to a floor is the one to spread the budget over.
    k = max(1, min((math.floor(math.log(r, factor)) for r in ranges), default=1))
    return max(1, min(region.budget // k, dim))


STRATEGIES: dict[str, Callable[..., TrustRegion]] = {
    "bounce": _adaptive,
    "baxus": partial(_counting, factor=2.0),
    "casmopolitan": partial(_counting, factor=1.5),
}


def after(region: TrustRegion, success: bool, n: int, *, strategy: str, in_input: bool) -> TrustRegion:
    """Return the region after a batch of n evaluations; a collapsed region stays as it is."""
    return region if region.collapsed else STRATEGIES[strategy](region, success, n, in_input=in_input)
