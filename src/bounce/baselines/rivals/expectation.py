"""Expectation: the mean of an acquisition function over the points that a latent point stands for.

A latent point θ in [0, 1]^E is a distribution over points Z of the space: a real is its own value, a bit or an ordinal
lies between two codes and is rounded up with a probability, a category has one latent number for each of its values
and is drawn by their softmax. The expectation α(θ) = E[EI(Z)] is smooth in θ. It is exact where there are few
configurations of the discrete variables, and otherwise the mean over quasi-random draws, with the score function for
its gradient.

The invariant: acquisition values are computed at points of the space only, never between them.

S. Daulton, X. Wan, D. Eriksson, M. Balandat, M. A. Osborne, E. Bakshy: Bayesian Optimization over Discrete and Mixed
Spaces via Probabilistic Reparameterization, NeurIPS 2022. Values from the published code, facebookresearch/bo_pr.

Shapes: n data, B latent points θ (B, E), S draws of each; R reals, T numbers to round (ordinals, then bits),
C categories; E = R + T + all values of all categories. Features (m, E) of points have the layout of θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from bounce.baselines.rivals.gaussian import Gaussian
from bounce.baselines.rivals.mixed import Mixed
from bounce.gp.linalg import Array, solve_lower
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

RESTARTS = 20  # latent points that are improved at the same time
TAU = 0.1  # the temperature of the probabilities
LEAST_VARIANCE = 1e-9
ROWS = 256  # of features that are computed at once: their covariances stay in the cache
STRIDE = 4  # latent points that are drawn from at once


class Layout:
    """Where the variables of a space are in latent points and in features."""

    def __init__(self, space: Space) -> None:
        counts = space.cardinalities
        steps = [j for j in space.of_kind(Kind.ORDINAL) if counts[j] != 2]
        bits = [j for j in space.of_kind(Kind.BINARY, Kind.ORDINAL) if counts[j] == 2]  # the published sense of a bit
        self.columns = np.array([*space.reals, *steps, *bits], dtype=np.intp)
        self.categories = space.of_kind(Kind.CATEGORICAL)
        self.reals, self.numbers, self.last = len(space.reals), len(space.reals) + len(steps), len(self.columns)
        self.top = (counts[self.columns[self.reals :]] - 1).astype(np.float64)  # (T,) the largest code
        self.counts = counts[self.categories]
        self.valid = np.arange(max(self.counts, default=1)) < self.counts[:, None]  # (C, most values)
        self.size = self.last + int(self.counts.sum())

    def features(self, codes: Codes) -> Array:
        """Return features of points: numbers in [0, 1], categories as columns of zeros and one."""
        numbers = codes[:, self.columns]
        return self.assembled(numbers[:, : self.reals], numbers[:, self.reals :], codes[:, self.categories])

    def assembled(self, reals: Array, steps: Array, chosen: Array) -> Array:
        """Return features from reals (m, R), codes of numbers (m, T) and codes of categories (m, C)."""
        features = np.empty((len(reals), self.size))
        features[:, : self.reals] = reals
        np.divide(steps, np.maximum(self.top, 1.0), out=features[:, self.reals : self.last])
        features[:, self.last :] = (chosen[:, :, None] == np.arange(self.valid.shape[1]))[:, self.valid]
        return features

    def codes(self, reals: Array, steps: Array, chosen: Array) -> Codes:
        """Return points from reals (m, R), codes of numbers (m, T) and codes of categories (m, C)."""
        codes = np.empty((len(reals), self.last + len(self.categories)))
        codes[:, self.columns[: self.reals]] = on_grid(reals)
        codes[:, self.columns[self.reals :]] = steps
        codes[:, self.categories] = chosen
        return codes

    def rounding(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return latent numbers in units of codes, the codes below, and the probabilities to round up (B, T)."""
        t = theta[:, self.reals : self.last] * self.top
        below = np.floor(t)
        return t, below, expit((t - below - 0.5) / TAU)

    def shares(self, theta: Array) -> Array:
        """Return the probabilities of categories (B, C, most values)."""
        logits = np.full((len(theta), *self.valid.shape), -np.inf)
        logits[:, self.valid] = (theta[:, self.last :] - 0.5) / TAU
        weights = np.exp(logits - logits.max(axis=2, initial=-1e9, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def draw(self, theta: Array, u: Array) -> tuple[Array, Array]:
        """Return codes (B, S, T) and (B, S, C) that uniform numbers (B or 1, S, T + C) choose."""
        _, below, p = self.rounding(theta)
        steps = np.minimum(below[:, None] + (p[:, None] >= u[..., : len(self.top)]), self.top)
        chosen = np.zeros((len(theta), u.shape[1], len(self.categories)))
        cumulated = self.shares(theta).cumsum(axis=2)
        for v in range(self.valid.shape[1] - 1):
            chosen += cumulated[:, None, :, v] <= u[..., len(self.top) :]
        return steps, np.minimum(chosen, self.counts - 1)


@dataclass(frozen=True, eq=False)
class Improvement:
    """Expected improvement at features, and its gradient by the reals."""

    gp: Gaussian
    best: float

    @cached_property
    def _white(self) -> Array:
        return solve_lower(self.gp.factor, (self.gp.y - self.gp.mean)[:, None])[:, 0]

    def __call__(self, z: Array) -> Array:
        """Return values (m,)."""
        return np.concatenate([self._of(z[i : i + ROWS])[0] for i in range(0, len(z), ROWS)])

    def with_gradient(self, z: Array, reals: int) -> tuple[Array, Array]:
        """Return values (m,) and gradients (m, reals)."""
        if not reals:
            return self(z), np.empty((len(z), 0))
        parts = [self._gradient(z[i : i + ROWS], reals) for i in range(0, len(z), ROWS)]
        return np.concatenate([value for value, _ in parts]), np.concatenate([slope for _, slope in parts])

    def _of(self, z: Array) -> tuple[Array, Array, Array, Array]:
        gp = self.gp
        v = solve_lower(gp.factor, gp.signal * gp.covariance(gp.theta, z, gp.x).T)
        variance = gp.signal * gp.covariance.diagonal(gp.theta, z) - np.einsum("nm,nm->m", v, v)
        sigma = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        u = (self.best - gp.mean - v.T @ self._white) / sigma
        density = np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        return (
            np.maximum(sigma * (density + u * ndtr(u)), 0.0),
            v,
            u,
            np.where(variance > LEAST_VARIANCE, sigma, np.inf),
        )

    def _gradient(self, z: Array, reals: int) -> tuple[Array, Array]:
        gp = self.gp
        assert isinstance(gp.covariance, Mixed)
        value, v, u, sigma = self._of(z)
        density = np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        # ∂EI/∂mean = −Φ(u), ∂EI/∂σ = φ(u); mean = vᵀw and σ² = prior − vᵀv with v = L⁻¹k.
        by_k = solve_lower(gp.factor, -np.outer(self._white, ndtr(u)) - v * (density / sigma), transposed=True).T
        return value, gp.covariance.by_reals(gp.theta, z, gp.x, gp.signal * by_k, reals)


class Expectation(Protocol):
    """α(θ) = E[EI(Z)], Z ~ p(·|θ)."""

    def __call__(self, theta: Array) -> Array:
        """Return values (B,)."""

    def with_gradient(self, theta: Array, baseline: Array) -> tuple[Array, Array]:
        """Return values (B,) and gradients (B, E), those of numbers in units of codes."""


class Analytic:
    """The sum over all configurations of the discrete variables, each with its probability."""

    def __init__(self, layout: Layout, improvement: Improvement) -> None:
        self.layout, self.improvement = layout, improvement
        counts = np.append(layout.top + 1, layout.counts).astype(np.intp)
        axes = np.meshgrid(*(np.arange(c) for c in counts), indexing="ij")
        every = np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64) if axes else np.zeros((1, 0))
        self.width = int(max(counts, default=1))
        self.ones = (every[:, :, None] == np.arange(self.width)).astype(np.float64)  # (N, T + C, most values)
        t = len(layout.top)
        codes = layout.codes(np.zeros((len(every), layout.reals)), every[:, :t], every[:, t:])
        self.features = layout.features(codes)
        self.fixed = None if layout.reals else improvement(self.features)

    def _marginals(self, theta: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """Return the probability of each value of each variable (B, T + C, most values), and of the roundings."""
        layout = self.layout
        t, below, _ = layout.rounding(theta)
        below = np.clip(below, 0.0, np.maximum(layout.top - 1.0, 0.0))  # at the upper end: the limit from below
        p = np.where(layout.top > 0.0, expit((t - below - 0.5) / TAU), 0.0)
        marginals = np.zeros((len(theta), self.ones.shape[1], self.width))
        at = below.astype(np.intp)[:, :, None]
        steps = marginals[:, : len(layout.top)]
        np.put_along_axis(steps, np.minimum(at + 1, self.width - 1), p[:, :, None], axis=2)
        np.put_along_axis(steps, at, 1.0 - p[:, :, None], axis=2)
        marginals[:, len(layout.top) :, : layout.valid.shape[1]] = layout.shares(theta)
        return marginals, at, p

    def probabilities(self, theta: Array) -> Array:
        """Return the probability of every configuration (B, N)."""
        return self._joint(self._marginals(theta)[0])

    def _joint(self, marginals: Array) -> Array:
        logs = np.log(np.maximum(marginals, 1e-300)).reshape(len(marginals), -1)
        return np.asarray(np.exp(logs @ self.ones.reshape(len(self.ones), -1).T))

    def _features(self, theta: Array) -> Array:
        features = np.tile(self.features, (len(theta), 1))
        features[:, : self.layout.reals] = np.repeat(theta[:, : self.layout.reals], len(self.features), axis=0)
        return features

    def __call__(self, theta: Array) -> Array:
        """Return values (B,)."""
        weights = self.probabilities(theta)
        if self.fixed is not None:
            return np.asarray(weights @ self.fixed)
        values = self.improvement(self._features(theta)).reshape(weights.shape)
        return np.asarray(np.einsum("bn,bn->b", weights, values))

    def with_gradient(self, theta: Array, baseline: Array) -> tuple[Array, Array]:
        """Return values (B,) and gradients (B, E); an exact expectation has no use for a baseline."""
        layout, t = self.layout, len(self.layout.top)
        marginals, at, p = self._marginals(theta)
        weights = self._joint(marginals)
        gradient = np.empty_like(theta)
        if self.fixed is not None:
            weighted = weights * self.fixed
        else:
            value, slope = self.improvement.with_gradient(self._features(theta), layout.reals)
            weighted = weights * value.reshape(weights.shape)
            slope = slope.reshape(*weights.shape, layout.reals)
            gradient[:, : layout.reals] = np.einsum("bn,bnr->br", weights, slope)
        # Σ over the configurations with value v of variable j, times ∂log p(v)/∂θ.
        sums = (weighted @ self.ones.reshape(len(self.ones), -1)).reshape(marginals.shape)
        up, down = (np.take_along_axis(sums[:, :t], np.minimum(i, self.width - 1), 2)[:, :, 0] for i in (at + 1, at))
        gradient[:, layout.reals : layout.last] = ((1.0 - p) * up - p * down) / TAU
        own = sums[:, t:, : layout.valid.shape[1]]
        by = own - marginals[:, t:, : layout.valid.shape[1]] * own.sum(axis=2, keepdims=True)
        gradient[:, layout.last :] = by[:, layout.valid] / TAU
        return weighted.sum(axis=1), gradient


class MonteCarlo:
    """The mean over draws of the discrete variables, with the score function for its gradient.

    All latent points use the same uniform numbers, as published, so that configurations come again and again. Each is
    evaluated once: with other reals, once per latent point.
    """

    def __init__(self, layout: Layout, improvement: Improvement, uniform: Array, *, rng: np.random.Generator) -> None:
        self.layout, self.improvement, self.uniform = layout, improvement, uniform[None]
        most = 2**52 // int(layout.top.sum() + layout.counts.sum() + RESTARTS)
        self._hash = rng.integers(most, size=uniform.shape[1] + 1).astype(np.float64)  # its sums are exact
        self._keys, self._values = np.empty(0), np.empty(0)  # known configurations, sorted

    def __call__(self, theta: Array) -> Array:
        """Return values (B,)."""
        return np.concatenate([self._mean(theta[i : i + STRIDE]) for i in range(0, len(theta), STRIDE)])

    def _mean(self, theta: Array) -> Array:
        steps, chosen = self.layout.draw(theta, self.uniform)
        reals = np.repeat(theta[:, : self.layout.reals], steps.shape[1], axis=0)
        features = self.layout.assembled(reals, _rows(steps), _rows(chosen))
        return np.asarray(self.improvement(features).reshape(steps.shape[:2]).mean(axis=1))

    def _each(self, theta: Array, steps: Array, chosen: Array) -> tuple[Array, Array]:
        """Return EI of all draws (B, S), and the mean of its gradients by the reals (B, R)."""
        layout, shape = self.layout, steps.shape[:2]
        flat = _rows(steps), _rows(chosen)
        keys = flat[0] @ self._hash[: len(layout.top)] + flat[1] @ self._hash[len(layout.top) : -1]
        if layout.reals:
            keys += np.repeat(np.arange(shape[0]) * self._hash[-1], shape[1])
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if layout.reals:
            features = layout.assembled(theta[first // shape[1], : layout.reals], flat[0][first], flat[1][first])
            value, slope = self.improvement.with_gradient(features, layout.reals)
            return value[inverse].reshape(shape), slope[inverse].reshape(*shape, -1).mean(axis=1)
        at = np.searchsorted(self._keys, unique)
        new = np.append(self._keys, np.nan)[at] != unique
        if new.any():
            value = self.improvement(
                layout.assembled(np.empty((new.sum(), 0)), flat[0][first[new]], flat[1][first[new]])
            )
            self._keys = np.insert(self._keys, at[new], unique[new])
            self._values = np.insert(self._values, at[new], value)
        values = self._values[np.searchsorted(self._keys, unique)]
        return values[inverse].reshape(shape), np.empty((shape[0], 0))

    def with_gradient(self, theta: Array, baseline: Array) -> tuple[Array, Array]:
        """Return values (B,) and gradients (B, E): means of (EI − baseline)·∂log p/∂θ, and of ∂EI for the reals."""
        layout, drawn = self.layout, self.layout.draw(theta, self.uniform)
        values, by_reals = self._each(theta, *drawn)
        over = ((values - baseline[:, None]) / values.shape[1])[:, None]
        total = over.sum(axis=2)
        t, _, p = layout.rounding(theta)
        # As published, a number at its upper end counts as rounded up, with the small probability to pass beyond it.
        up = (drawn[0] > t[:, None]) | (t == layout.top)[:, None]
        steps = (over @ up.astype(np.float64))[:, 0] - p * total
        shares = layout.shares(theta)
        own = np.stack([(over @ (drawn[1] == v))[:, 0] for v in range(layout.valid.shape[1])], axis=2)
        categories = (own - shares * total[:, :, None])[:, layout.valid]
        return values.mean(axis=1), np.concatenate([by_reals, steps / TAU, categories / TAU], axis=1)


def _rows(draws: Array) -> Array:
    return draws.reshape(draws.shape[0] * draws.shape[1], draws.shape[2])
