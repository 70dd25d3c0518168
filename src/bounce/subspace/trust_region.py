"""The trust region: how far from the best point a proposal may go.

Two lengths: `radius` bounds the number of combinatorial bins that may change, `side` scales the box of the reals.
A region is a value; `after` returns the next one. Three strategies: the paper's (section 3, "Trust region
management") and the two it is compared with (appendix "Effect of trust-region management").

The invariant: both lengths stay between their floor and their cap, and a region that has collapsed stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

RADIUS_START, RADIUS_FLOOR = 40.0, 1.0  # paper, implementation details; the cap is the number of bins
SIDE_START, SIDE_FLOOR, SIDE_CAP = 0.8, 2.0**-7, 1.6  # paper, implementation details; the cap is TuRBO's
MARGIN = 1e-3  # an improvement of this share of the incumbent is a success, as in TuRBO (notes, decision 11)
SUCCESSES = 3  # in a row, before the older strategies expand (notes, misprints)
AT_FLOOR = 1 + 1e-9  # λ^m reaches the floor up to rounding


def improves(value: float, incumbent: float) -> bool:
    """Return whether a value beats the incumbent by the margin that makes a success."""
    margin = MARGIN * abs(incumbent) if math.isfinite(incumbent) else 0.0
    return value < incumbent - margin


@dataclass(frozen=True)
class TrustRegion:
    """The lengths in one stage of `n_combinatorial` combinatorial and `n_real` real bins."""

    n_combinatorial: int
    n_real: int
    budget: int
    """The evaluations that this stage may use."""
    radius: float
    side: float
    used: int = 0
    """The evaluations that have been counted."""
    successes: int = 0
    failures: int = 0

    @classmethod
    def fresh(cls, n_combinatorial: int, n_real: int, budget: int) -> TrustRegion:
        """Return the region that a stage starts with."""
        radius = float(min(RADIUS_START, n_combinatorial))
        return cls(n_combinatorial, n_real, budget, radius=radius, side=SIDE_START if n_real else 0.0)

    @property
    def changes(self) -> int:
        """How many combinatorial bins may differ from the centre."""
        return max(1, math.floor(self.radius)) if self.n_combinatorial else 0

    @property
    def shrinkable(self) -> tuple[bool, bool]:
        """Whether radius and side start above their floors; one that does not never causes a collapse."""
        return self.n_combinatorial > 1, self.n_real > 0

    @property
    def collapsed(self) -> bool:
        """Whether the stage has ended: a length is at its floor, or none can shrink and the budget is used up."""
        radius, side = self.shrinkable
        if not radius and not side:
            return self.used >= self.budget
        return (radius and self.radius <= RADIUS_FLOOR * AT_FLOOR) or (side and self.side <= SIDE_FLOOR * AT_FLOOR)

    def box(
        self, centre: NDArray[np.float64], lengthscales: NDArray[np.float64], *, cap: float | None
    ) -> NDArray[np.float64]:
        """Return the bounds (2, n_real) of the reals: sides L·w, w of unit geometric mean, as TuRBO does.

        Lengthscales above the cap count as the cap (`Method.box_cap`).
        """
        if cap is not None:
            lengthscales = np.minimum(lengthscales, cap)
        log_w = np.log(lengthscales)
        half = 0.5 * self.side * np.exp(log_w - log_w.mean())
        return np.stack([np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)])

    def with_budget(self, budget: int) -> TrustRegion:
        """Return the same region with another budget."""
        return replace(self, budget=budget)

    def _scaled(self, by_radius: float, by_side: float) -> TrustRegion:
        most = float(self.n_combinatorial)
        return replace(
            self,
            radius=min(max(self.radius * by_radius, RADIUS_FLOOR), most) if self.n_combinatorial else 0.0,
            side=min(max(self.side * by_side, SIDE_FLOOR), SIDE_CAP) if self.n_real else 0.0,
        )


def _adaptive(region: TrustRegion, success: bool, n: int, *, in_input: bool) -> TrustRegion:
    """Bounce: shrink so that the floor is reached when the budget is spent without success (section 3)."""
    power = (-n if success else n) / max(1, region.budget - region.used)

    def factor(floor: float, length: float) -> float:
        return math.exp(min(power * math.log(floor / length), 100.0)) if length else 1.0  # λ^{±n}, kept finite

    resized = region._scaled(factor(RADIUS_FLOOR, region.radius), factor(SIDE_FLOOR, region.side))
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
    dim = region.n_combinatorial + region.n_real
    if in_input:
        return dim
    radius, side = region.shrinkable
    ranges = [min(RADIUS_START, region.n_combinatorial) / RADIUS_FLOOR] * radius + [SIDE_START / SIDE_FLOOR] * side
    # Either length ends the stage, so the budget is spread over the shorter way to a floor.
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
