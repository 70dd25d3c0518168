"""Expected improvement on a log scale: analytic for one point, greedy q-EI beside fixed ones.

A greedy batch conditions on the points fixed so far (pending or already chosen). Their values are sampled
quasi-randomly; given a sample, what a new point adds is an ordinary expected improvement below
t_s = min(best, sampled values). Its mean over samples is smooth in the new point, and involves no sampling error at it
(notes, decision 8).

With the factor of data and fixed points together, a sample is a whitened vector β_s = (L⁻¹y | ε_s): posterior
means given the sample are vᵀβ_s for whitened cross-covariances v = L⁻¹k, and the variance is the same for all s.

Shapes: n data, p fixed points, S samples, m candidates; v (n + p, m), ε (p, S), t (S,).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from bounce.gp.kernels import matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, orthonormal, product, solve_lower
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes

SAMPLES = 64  # of the values at fixed points; quasi-random, so few do (a power of two, for Sobol)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
VARIANCE_FLOOR = 1e-10  # of the prior variance: rounding makes smaller ones meaningless
DIRECTIONS = (
    16  # observations that bound a variance: with them 1 to 20 % of the candidates need one (docs/ablations.md)
)
SLACK = 1e-9  # of the prior variance, for the rounding of a bound

Where = Callable[[], Codes]
"""What returns the latent points (m, d) of candidates, for an acquisition that needs more than their covariances."""


def log_h(u: Array) -> Array:
    """Return log(φ(u) + u·Φ(u)), accurate far into the left tail."""
    u = np.asarray(u, dtype=np.float64)
    near = np.maximum(u, -1.0)
    right = np.log(np.exp(-0.5 * near**2 - LOG_SQRT_2PI) + near * ndtr(near))
    far = np.minimum(u, -1.0)
    # φ(u)·(1 + u·Φ(u)/φ(u)), and Φ/φ by the scaled complementary error function; beyond −1e4 its expansion.
    middle = np.log1p(np.maximum(far, -1e4) * math.sqrt(0.5 * math.pi) * erfcx(-np.maximum(far, -1e4) / math.sqrt(2)))
    tail = -2.0 * np.log(-far) + np.log1p(-3.0 / np.minimum(far, -2.0) ** 2)
    left = -0.5 * far**2 - LOG_SQRT_2PI + np.where(far < -1e4, tail, middle)
    return np.where(u > -1.0, right, left)


def _log_sum(logs: Array) -> Array:
    """Return the logs of sums along rows (scipy's logsumexp takes eight times as long on small arrays)."""
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def log_ei(mean: Array, sigma: Array, best: float) -> Array:
    """Return the log of the expected improvement below `best`."""
    return log_h((best - mean) / sigma) + np.log(sigma)


def deviation(variance: Array, prior: float) -> Array:
    """Return standard deviations, away from zero where rounding made a variance too small."""
    return np.sqrt(np.maximum(variance, VARIANCE_FLOOR * prior))


def with_slopes(gp: GP, z: Codes, k_c: Array | None) -> tuple[Array, Callable[[Array], Array]]:
    """Return covariances (m, n) of candidates with the points of a process, and how to go back to their reals.

    That is a function from derivatives with respect to the covariances (m, n) to those with respect to the reals
    (m, n_real). `k_c` is the kernel of the other bins, if it is known.
    """
    kernel = gp.kernel
    space, hyper = kernel.space, kernel.hyper
    x, points = kernel.scaled(z), gp.scaled
    r2 = squared_distance(x, points)
    if gp.offset is not None:
        r2 += gp.offset
    k_r, slope = matern52_and_slope(r2)
    by_r = np.ones((1, 1))
    if len(space.combinatorial):
        k_c = kernel.combinatorial(kernel.metric(Points(z), gp.points)) if k_c is None else k_c
        by_r = hyper.rho * k_c + (1.0 - hyper.rho)
        cross = kernel.mix(k_c, k_r)
    else:
        cross = kernel.mix(None, k_r)

    def gradient(by_cross: Array) -> Array:
        # r² = Σ (x_j − p_j)², x in units of the lengthscales.
        w = 2.0 * hyper.signal * by_cross * by_r * slope
        return np.asarray((w.sum(axis=1)[:, None] * x - product(w, points)) / hyper.real_lengthscales)

    return cross, gradient


@dataclass(frozen=True, eq=False)
class Acquisition:
    """Log (q-)expected improvement of a further point."""

    gp: GP
    """Conditioned on the data and then on the fixed points."""
    beta: Array
    """The whitened targets (n,)."""
    epsilon: Array
    """The whitened samples (p, S)."""
    thresholds: Array
    """The values to improve on, one per sample (S,)."""
    best: float
    """The value to improve on when no point is fixed."""

    @classmethod
    def of(cls, data: GP, y: Array, fixed: Points, normals: Array, best: float | None = None) -> Acquisition:
        """Build it from a GP on the data, its targets, fixed points and standard normals (≥ p, S).

        `best` is what is to be improved upon: the lowest target unless something else is given.
        """
        beta = solve_lower(data.factor, y[:, None])[:, 0]
        best, p, n = float(y.min()) if best is None else best, len(fixed), len(y)
        if not p:
            return cls(data, beta, np.empty((0, 1)), np.array([best]), best)
        gp = data.extended(fixed, noise=0.0)
        epsilon = normals[:p]
        sampled = (gp.factor[n:, :n] @ beta)[:, None] + gp.factor[n:, n:] @ epsilon
        return cls(gp, beta, epsilon, np.minimum(best, sampled.min(axis=0)), best)

    def _moments(self, v: Array) -> tuple[Array, Array]:
        """Return means (m, S) and standard deviations (m,) of whitened candidates."""
        n, prior = len(self.beta), self.gp.kernel.prior
        mean = np.einsum("n,nm->m", self.beta, v[:n])[:, None] + product(v[n:].T, self.epsilon)
        return mean, deviation(prior - np.einsum("nm,nm->m", v, v), prior)

    def of_moments(self, mean: Array, sigma: Array) -> Array:
        """Return values (m,) of candidates with means (m, S) and standard deviations (m,)."""
        u = (self.thresholds - mean) / sigma[:, None]
        if u.shape[1] == 1:
            return np.asarray(log_h(u[:, 0]) + np.log(sigma))
        with np.errstate(under="ignore", divide="ignore"):
            h = np.exp(-0.5 * u**2 - LOG_SQRT_2PI) + u * ndtr(u)
            values: Array = np.log(np.maximum(h, 0.0).mean(axis=1)) + np.log(sigma)
        lost = np.flatnonzero(~(u.max(axis=1) > -20.0))  # where the sum cancels or underflows
        if lost.size:
            values[lost] = _log_sum(log_h(u[lost])) - math.log(u.shape[1]) + np.log(sigma[lost])
        return values

    @cached_property
    def _directions(self) -> Array:
        """Whitened directions (n, ≤ 17): the constant, and the best observations, where a search goes on."""
        n = len(self.beta)
        factor = self.gp.factor[:n, :n]
        best = np.argsort(product(factor, self.beta[:, None])[:, 0], kind="stable")[:DIRECTIONS]
        return np.concatenate([solve_lower(factor, np.ones((n, 1))), factor[best].T], axis=1)

    def screen(self, beside: Array | None = None) -> Array:
        """Return what turns covariances (m, n + p) into means and parts of the whitened vectors, for `bound`.

        A few directions tell less about a candidate than all data do, so the bound holds. `beside` (n + p, j) are
        whitened covariances of points that the candidates lie beside: they tell almost everything that is known
        about a candidate, and what the fixed points tell is included too.
        """
        n, p = len(self.beta), 0 if beside is None else len(self.epsilon)
        directions = self._directions
        if beside is not None:
            directions = np.concatenate([directions, beside[:n]], axis=1)
        both = np.concatenate([self.beta[:, None], orthonormal(directions)], axis=1)
        columns = np.zeros((n + p, both.shape[1] + p))
        columns[:n, : both.shape[1]] = both
        columns[n:, both.shape[1] :] = np.eye(p)
        return solve_lower(self.gp.factor[: n + p, : n + p], columns, transposed=True)

    def bound(self, cross: Array, screen: Array) -> Array:
        """Return an upper bound (m,) on the values of candidates with covariances (m, n + p), without a solve for each.

        Means are exact, the variance is at least as large. A screen of the data alone leaves out the fixed points,
        whose values are sampled: beside fixed points it is a bound on average, not for every sample.
        """
        prior, p = self.gp.kernel.prior, len(screen) - len(self.beta)
        parts = product(cross[:, : len(screen)], screen)
        variance = prior - np.einsum("mj,mj->m", parts[:, 1:], parts[:, 1:]) + SLACK * prior
        sigma = deviation(variance, prior)
        if not p:
            return log_ei(parts[:, 0], sigma, self.best)
        return self.of_moments(parts[:, :1] + product(parts[:, -p:], self.epsilon), sigma)

    def of_whitened(self, v: Array, where: Where | None = None) -> Array:
        """Return values (m,) of candidates given by whitened cross-covariances, which lie where a function says."""
        return self.of_moments(*self._moments(v))

    def __call__(self, z: Codes) -> Array:
        """Return values (m,) at latent points."""
        return self.of_whitened(self.gp.whitened(self.gp.kernel(Points(z), self.gp.points)), lambda: z)

    def with_gradient(self, z: Codes, k_c: Array | None = None) -> tuple[Array, Array]:
        """Return values (m,) and their gradients (m, n_real) with respect to the reals.

        `k_c` is the kernel of the other bins, for a caller that moves the reals alone and computes it once.
        """
        gp = self.gp
        cross, gradient = with_slopes(gp, z, k_c)
        v = gp.whitened(cross)
        mean, sigma = self._moments(v)
        u = (self.thresholds - mean) / sigma[:, None]
        logs = log_h(u)
        total = _log_sum(logs)
        values = total - math.log(u.shape[1]) + np.log(sigma)
        # d log Σ σh(u_s): −Φ(u_s) by the mean of sample s, φ(u_s) by the standard deviation, over the sum.
        by_mean = -np.exp(log_ndtr(u) - total[:, None]) / sigma[:, None]
        by_sigma = np.exp(-0.5 * u**2 - LOG_SQRT_2PI - total[:, None]).sum(axis=1) / sigma
        # dσ/dv = −v/σ, dmean_s/dv = β_s; then dv/dk = L⁻¹.
        weights = np.concatenate([np.outer(self.beta, by_mean.sum(axis=1)), product(self.epsilon, by_mean.T)]) - v * (
            by_sigma / sigma
        )
        return values, gradient(solve_lower(gp.factor, weights, transposed=True).T)
