"""What the Bounce paper finds out about BODi's dictionaries: each number by a formula, and by drawing dictionaries.

*Sequency* is the number of changes along the entries of an anchor. The paper's formula for anchors of zero sequency
holds for the sampler that the BODi paper describes; the published sampler of bits draws none (`dictionaries`). The
paper's shares of categories are those of the published sampler.

Papenmeier, Nardi, Poloczek: Bounce: Reliable High-Dimensional Bayesian Optimization for Combinatorial and Mixed Spaces.
NeurIPS 2023, appendix "Analysis of BODi".
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.rivals.dictionaries import Sizes
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes


class Sampler(Protocol):
    """What draws the anchors of a dictionary."""

    def __call__(self, sizes: Sizes, m: int, *, rng: np.random.Generator) -> Codes:
        """Return m anchors."""


def sequency(anchors: Codes) -> NDArray[np.intp]:
    """Return how many times (m,) the code changes along the entries of each anchor."""
    return np.asarray((np.diff(anchors, axis=1) != 0).sum(axis=1))


def zero_sequency(d: int, m: int) -> float:
    """Return the probability that a dictionary of m anchors of d bits has one that is all zeros or all ones.

    θ is uniform, so that one anchor has zero sequency with probability ∫ θ^d + (1 − θ)^d dθ = 2/(d + 1).
    """
    return 1.0 - (1.0 - 2.0 / (d + 1)) ** m


def zero_sequency_drawn(sampler: Sampler, d: int, m: int, *, draws: int, rng: np.random.Generator) -> float:
    """Return the share of dictionaries of m anchors of d bits that have an anchor of zero sequency."""
    anchors = sampler(np.full(d, 2), m * draws, rng=rng)
    return float((sequency(anchors) == 0).reshape(draws, m).any(axis=1).mean())


def one_category(d: int, size: int, m: int) -> float:
    """Return the probability that all entries of some anchor have one given category of `size` categories."""
    return -math.expm1(m * math.log1p(-_moment(d, size)))


def any_category(d: int, size: int, m: int) -> float:
    """Return the probability that all entries of some anchor have one category, whichever it is.

    No anchor has all its entries in two categories, so the probabilities of an anchor add up. This is the formula that
    the paper prints, with size! where one given category has (size − 1)!.
    """
    share = size * _moment(d, size)
    return 1.0 if share >= 1.0 else -math.expm1(m * math.log1p(-share))


def _moment(d: int, size: int) -> float:
    """Return E θ_t^d = d!·(size − 1)!/(size + d − 1)!, where θ_t is Beta(1, size − 1)."""
    return math.exp(math.lgamma(d + 1) + math.lgamma(size) - math.lgamma(size + d))


def category_shares(d: int, size: int) -> Array:
    """Return the expected share (size,) of each category in a published anchor of d entries.

    The first categories have ⌊d·θ_t⌋ entries, and E ⌊d·θ_t⌋ = Σ_k P(d·θ_t ≥ k) = Σ_k (1 − k/d)^(size − 1) for k = 1 to
    d − 1; the last category has the rest.
    """
    share = float(((np.arange(1, d) / d) ** (size - 1)).sum()) / d
    return np.append(np.full(size - 1, share), 1.0 - (size - 1) * share)


def category_shares_drawn(sampler: Sampler, d: int, size: int, *, draws: int, rng: np.random.Generator) -> Array:
    """Return the share (size,) of each category in drawn anchors of d entries."""
    anchors = sampler(np.full(d, size), draws, rng=rng)
    return np.asarray(np.bincount(anchors.astype(np.intp).ravel(), minlength=size) / anchors.size)
