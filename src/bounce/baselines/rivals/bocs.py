"""BOCS: a sparse quadratic model of bits, one posterior draw of it, and simulated annealing on the draw.

The nouns: `features` are the bits and their pairwise products; a `Horseshoe` is the linear model of the values in them,
with a prior under which few coefficients matter; a `Draw` is one state of its Gibbs chain; `anneal` minimises the
quadratic function of a draw (Thompson sampling).

The invariant: every step of the chain leaves the posterior of the horseshoe model unchanged; how its Gaussian is drawn
(by n x n or by p x p matrices) changes the cost only.

Baptista and Poloczek, Bayesian Optimization of Combinatorial Structures, ICML 2018. The chain: Makalic and Schmidt,
A simple sampler for the horseshoe estimator, 2016. Its Gaussian for p > n: Bhattacharya, Chakraborty and Mallick, Fast
sampling with Gaussian scale-mixture priors in high-dimensional regression, 2016.

Shapes: n points of D bits; p = D + D·(D − 1)/2 features; X (n, p), y (n,), α (p,).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from scipy.linalg import blas

from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.linalg import Array, cholesky, solve, solve_lower
from bounce.spaces.kinds import Codes, Kind

GIBBS = 1000  # steps of the chain; the last one is the draw
RERUNS = 5  # of the annealing
COOLING = 0.8  # the temperature of step t is 0.8^t
LEAST_NOISE = 1e-8  # of σ², for values of deviation 1: data without noise would drive it to zero
MOST = 1e10  # the largest τ²λ²: with larger ones, a matrix 1 + X·diag(τ²λ²)·Xᵀ loses the 1 to rounding
LEAST = 1e-30  # of a scale, so that none is zero


def features(x: Codes) -> Array:
    """Return the bits and their products x_j·x_k for j < k (n, p)."""
    j, k = np.triu_indices(x.shape[1], 1)
    return np.concatenate([x, x[:, j] * x[:, k]], axis=1)


@dataclass(frozen=True, eq=False)
class Draw:
    """One state of the chain."""

    alpha: Array
    """The coefficients."""
    noise: float
    """σ², the variance of the noise."""
    shared: float
    """τ², the scale of all coefficients."""
    local: Array
    """λ², the scale of each coefficient."""


@dataclass(frozen=True, eq=False)
class Horseshoe:
    """The model y = X·α + ε with ε ~ N(0, σ²), α_j ~ N(0, σ²τ²λ_j²), p(σ²) ∝ 1/σ², and τ and λ_j half-Cauchy."""

    x: Array
    y: Array

    @cached_property
    def _columns(self) -> Array:
        return np.asfortranarray(self.x)

    @cached_property
    def _gram(self) -> tuple[Array, Array]:
        return self.x.T @ self.x, self.x.T @ self.y

    def coefficients(self, noise: float, variances: Array, *, rng: np.random.Generator) -> Array:
        """Draw α given σ² and the prior variances τ²λ² in units of σ²."""
        n, p = self.x.shape
        return self._wide(noise, variances, rng=rng) if p > n else self._tall(noise, variances, rng=rng)

    def _wide(self, noise: float, variances: Array, *, rng: np.random.Generator) -> Array:
        """Draw it by a draw from the prior and n equations that move it to the data (Bhattacharya et al., sec. 2)."""
        sigma, roots = noise**0.5, np.sqrt(variances)
        u = roots * rng.standard_normal(len(roots))
        v = self._columns @ u + rng.standard_normal(len(self.y))
        matrix = blas.dsyrk(1.0, self._columns * roots, lower=1)
        matrix[np.diag_indices(len(matrix))] += 1.0
        w = solve(cholesky(matrix), (self.y / sigma - v)[:, None])[:, 0]
        return np.asarray(sigma * (u + variances * (self._columns.T @ w)))

    def _tall(self, noise: float, variances: Array, *, rng: np.random.Generator) -> Array:
        """Draw it by the factor of its precision, p x p (Rue 2001)."""
        sigma = noise**0.5
        gram, moments = self._gram
        precision = gram.copy()
        precision[np.diag_indices(len(gram))] += 1.0 / variances
        factor = cholesky(precision)
        white = solve_lower(factor, moments[:, None] / sigma)[:, 0] + rng.standard_normal(len(moments))
        return np.asarray(sigma * solve_lower(factor, white[:, None], transposed=True)[:, 0])

    def chain(self, *, rng: np.random.Generator) -> Iterator[Draw]:
        """Yield the states of a Gibbs chain without end (Makalic and Schmidt, sec. 3: λ² and τ² by ν and ξ)."""
        n, p = self.x.shape
        noise, shared, xi = 1.0, 1.0, 1.0
        local, nu = _bounded(rng.random(p)), np.ones(p)
        while True:
            alpha = self.coefficients(noise, np.minimum(shared * local, MOST), rng=rng)
            rest = self.y - self._columns @ alpha
            squares = alpha**2
            scale = 0.5 * float(rest @ rest) + 0.5 * float((squares / local).sum()) / shared
            noise = max(scale / rng.standard_gamma(0.5 * (n + p)), LEAST_NOISE)
            local = _bounded((1.0 / nu + 0.5 * squares / (shared * noise)) / rng.standard_exponential(p))
            scale = 1.0 / xi + 0.5 * float((squares / local).sum()) / noise
            shared = float(_bounded(scale / rng.standard_gamma(0.5 * (p + 1))))
            nu = _bounded((1.0 + 1.0 / local) / rng.standard_exponential(p))
            xi = float(_bounded((1.0 + 1.0 / shared) / rng.standard_exponential()))
            yield Draw(alpha, noise, shared, local)


def _bounded(scales: Array | float) -> Array:
    return np.clip(scales, LEAST, 1.0 / LEAST)


def anneal(linear: Array, pairs: Array, steps: int, *, rng: np.random.Generator) -> tuple[Codes, float]:
    """Return low bits x and their a·x + ½·xᵀAx, for a symmetric A without a diagonal.

    Five runs start at random bits. At step t a random bit flips if that lowers the value, or else with probability
    exp(−rise/0.8^t). The runs go side by side, and the lowest point that any of them saw is the result.
    """
    runs = np.arange(RERUNS)
    x = rng.integers(0, 2, (RERUNS, len(linear))).astype(np.float64)
    slopes = linear + x @ pairs  # what each bit adds when it is on
    value = 0.5 * np.einsum("rj,rj->r", x, slopes + linear)
    best, lowest = x.copy(), value.copy()
    bits = rng.integers(len(linear), size=(steps, RERUNS))
    thresholds = np.log(1.0 - rng.random((steps, RERUNS)))  # of numbers in (0, 1]
    temperature = 1.0
    for bit, threshold in zip(bits, thresholds, strict=True):
        temperature *= COOLING
        sign = 1.0 - 2.0 * x[runs, bit]
        rise = sign * slopes[runs, bit]
        moves = (rise < 0.0) | (temperature * threshold < -rise)
        step = np.where(moves, sign, 0.0)
        x[runs, bit] += step
        slopes += step[:, None] * pairs[bit]
        value += np.where(moves, rise, 0.0)
        better = value < lowest
        best[better], lowest[better] = x[better], value[better]
    run = int(np.argmin(lowest))
    return best[run], float(lowest[run])


class Bocs(Rival):
    """BOCS with a horseshoe prior and simulated annealing; points of a batch come from separate draws."""

    name = "bocs"
    takes = (Kind.BINARY,)
    why = ": its model is a quadratic function of bits"

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        d = x.shape[1]
        x, first = np.unique(x, axis=0, return_index=True)
        design = features(x)
        seen = design.any(axis=0)  # a feature that is zero at all points keeps the coefficient zero
        coefficients = np.zeros(design.shape[1])
        if seen.any():
            model = Horseshoe(design[:, seen], standardised(y[first]))
            coefficients[seen] = deque(islice(model.chain(rng=rng), GIBBS), maxlen=1)[0].alpha
        pairs = np.zeros((d, d))
        pairs[np.triu_indices(d, 1)] = coefficients[d:]
        return anneal(coefficients[:d], pairs + pairs.T, self.budget, rng=rng)[0]
