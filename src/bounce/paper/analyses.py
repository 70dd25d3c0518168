"""The numbers that the paper computes, not runs: its analyses of BODi's dictionaries and of COMBO's graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bounce.baselines.rivals.analyses import any_category, category_shares, zero_sequency
from bounce.baselines.rivals.combo import prior_variances
from bounce.baselines.rivals.diffusion import complete, path
from bounce.gp.linalg import Array

ANCHORS = 128  # of a dictionary of BODi
MAXSAT_BITS = 60
STATIONS, ACTIONS = 25, 5  # of PestControl
SIZES = np.array([16, 32, 64, 128, 256, 512])  # dictionaries of figures 18 and 19
DIMENSIONS = np.array([10, 25, 60, 125, 250])
CATEGORIES = (3, ACTIONS, 10)  # of figure 19


def zero_sequency_table() -> Array:
    """Return the probabilities of figure 18 (dimensions, sizes)."""
    return np.array([[zero_sequency(int(d), int(m)) for m in SIZES] for d in DIMENSIONS])


def one_category_table(categories: int) -> Array:
    """Return the probabilities of figure 19 (dimensions, sizes), that an anchor has one category alone."""
    return np.array([[any_category(int(d), categories, int(m)) for m in SIZES] for d in DIMENSIONS])


def graph_of(*, fixed: bool) -> Array:
    """Return COMBO's adjacency matrix of the categories of PestControl: a path as published, complete as described."""
    return complete(ACTIONS) if fixed else path(ACTIONS)


def prior_of(*, fixed: bool) -> Array:
    """Return COMBO's prior variance of each category of PestControl at β = 1."""
    return prior_variances(graph_of(fixed=fixed))


ANALYSES: dict[str, Callable[[], float]] = {
    "zero_sequency": lambda: zero_sequency(MAXSAT_BITS, ANCHORS),
    "one_category": lambda: any_category(STATIONS, ACTIONS, ANCHORS),
    "first_share": lambda: float(category_shares(STATIONS, ACTIONS)[0]),
    "last_share": lambda: float(category_shares(STATIONS, ACTIONS)[-1]),
    "prior_ends": lambda: float(prior_of(fixed=False)[0]),
    "prior_fixed": lambda: float(np.ptp(prior_of(fixed=True))),
}
