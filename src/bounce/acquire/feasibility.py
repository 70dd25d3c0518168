"""Feasibility: the probability that a point keeps limits, and an expected improvement that counts only where it does.

The acquisition is log EI + Σ log P(a limit holds), with EI over the best value that keeps all limits. Before there is
such a value, it is the probability alone. At fixed points (pending or already chosen) an outcome is believed to be what
its model expects: the means stay and the deviations shrink. A fixed point lowers what is to be improved upon only if it
is more likely than not to keep the limits.

The invariant: a log probability is at most 0, so that bounds on log EI hold for the sum.

Shapes: n data, p fixed points, m candidates, K outcomes under one kernel; v (n + p, m).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_ndtr

from bounce.acquire.improvement import LOG_SQRT_2PI, Acquisition, Where, deviation, with_slopes
from bounce.gp.linalg import Array, product, solve_lower
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes

LIKELY = math.log(0.5)  # the log probability above which a fixed point counts as one that keeps the limits
STEEPEST = 1e100  # what stands for a ratio that is too large for a number
ALLOWED = math.log(0.5)  # how much less likely a point that doubts the model may be than the centre


def log_between(a: Array, b: Array) -> Array:
    """Return log(Φ(b) − Φ(a)) for a < b, either of them perhaps infinite, accurate in both tails."""
    flip = a > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    upper, lower = log_ndtr(high), log_ndtr(low)
    with np.errstate(divide="ignore"):
        return np.asarray(upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0))))


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about outcomes with limits: a process for each, all with one kernel."""

    gp: GP
    """Conditioned on the data and then on the fixed points."""
    beta: Array
    """The whitened targets (n, K)."""
    low: Array
    """The limits (K,) in the units of the targets, with the prior means subtracted."""
    high: Array

    @classmethod
    def of(cls, gp: GP, y: Array, low: Array, high: Array) -> Belief:
        """Build it from a GP on the data, targets (n, K) and limits (K,); each output gets its own prior mean."""
        white = solve_lower(gp.factor, np.concatenate([y, np.ones((len(y), 1))], axis=1))
        means = product(white[:, -1:].T, white[:, :-1])[0] / float(white[:, -1] @ white[:, -1])
        return cls(gp, white[:, :-1] - white[:, -1:] * means, low - means, high - means)

    def beside(self, fixed: Points) -> Belief:
        """Return the belief beside fixed points, at which the outcomes are what is expected."""
        return replace(self, gp=self.gp.extended(fixed, noise=0.0))

    def _moments(self, v: Array) -> tuple[Array, Array]:
        """Return means (m, K) and standard deviations (m,) of whitened candidates."""
        prior = self.gp.kernel.prior
        mean = product(v[: len(self.beta)].T, self.beta)
        return mean, deviation(prior - np.einsum("nm,nm->m", v, v), prior)

    def _ends(self, mean: Array, sigma: Array) -> tuple[Array, Array]:
        return (self.low - mean) / sigma[:, None], (self.high - mean) / sigma[:, None]

    def __call__(self, points: Points) -> Array:
        """Return the log probabilities (m,) that points keep all limits."""
        v = self.gp.whitened(self.gp.kernel(points, self.gp.points))
        return np.asarray(log_between(*self._ends(*self._moments(v))).sum(axis=1))

    def kernel_of_bins(self, z: Codes) -> Array | None:
        """Return the kernel of the combinatorial bins, for a caller that moves the reals alone."""
        kernel = self.gp.kernel
        if not len(kernel.space.combinatorial):
            return None
        return kernel.combinatorial(kernel.metric(Points(z), self.gp.points))

    def with_gradient(self, z: Codes, k_c: Array | None = None) -> tuple[Array, Array]:
        """Return the log probabilities (m,) and their gradients (m, n_real) with respect to the reals."""
        cross, gradient = with_slopes(self.gp, z, k_c)
        v = self.gp.whitened(cross)
        mean, sigma = self._moments(v)
        a, b = self._ends(mean, sigma)
        logs = log_between(a, b)
        # d log(Φ(b) − Φ(a)): by the mean −(φ(b) − φ(a))/σP, by the deviation −(bφ(b) − aφ(a))/σP.
        at_a, at_b = (_density(x, logs) for x in (a, b))
        by_mean = (at_a - at_b) / sigma[:, None]
        by_sigma = (_times(a, at_a) - _times(b, at_b)).sum(axis=1) / sigma
        weights = -v * (by_sigma / sigma)
        weights[: len(self.beta)] += product(self.beta, by_mean.T)
        return logs.sum(axis=1), gradient(solve_lower(self.gp.factor, weights, transposed=True).T)


def _density(x: Array, logs: Array) -> Array:
    """Return φ(x) divided by the probabilities with these logs; 0 where x is infinite, or too large to be squared."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(np.exp(-0.5 * x**2 - LOG_SQRT_2PI - logs), posinf=STEEPEST)


def _times(x: Array, y: Array) -> Array:
    """Return x·y, 0 where x is infinite."""
    return np.where(np.isfinite(x), x, 0.0) * y


@dataclass(frozen=True, eq=False)
class Limits:
    """What a search knows about limits."""

    beliefs: Sequence[Belief]
    best: float
    """The lowest target that keeps them all; infinite if there is none."""

    def log_probability(self, points: Points) -> Array:
        """Return the log probabilities (m,) that points keep all limits."""
        return np.asarray(np.sum([belief(points) for belief in self.beliefs], axis=0))

    def allow(self, z: Codes, centre: Codes) -> bool:
        """Return whether a point that doubts the model is about as likely to keep the limits as the centre."""
        own, usual = self.log_probability(Points(np.stack([z, centre])))
        return bool(own >= usual + ALLOWED)


@dataclass(frozen=True, eq=False)
class Constrained(Acquisition):
    """Log (q-)expected improvement of a further point, plus the log probability that it keeps the limits."""

    beliefs: Sequence[Belief]
    improving: bool
    """Whether there is something to improve upon; otherwise only the probability counts."""
    _bins: dict[bytes, list[Array | None]] = field(default_factory=dict)
    """The kernels of the bins of the points whose reals were moved last."""

    @classmethod
    def beside(cls, plain: Acquisition, limits: Limits, fixed: Points) -> Constrained:
        """Build it from an acquisition without limits, beside the same fixed points."""
        beliefs, best, thresholds = list(limits.beliefs), plain.best, np.full_like(plain.thresholds, plain.best)
        if len(fixed):
            n = len(plain.beta)
            factor = plain.gp.factor
            sampled = product(factor[n:, :n], plain.beta[:, None]) + product(factor[n:, n:], plain.epsilon)
            likely = limits.log_probability(fixed) > LIKELY
            thresholds = np.minimum(best, np.min(sampled[likely], axis=0, initial=np.inf))
            beliefs = [belief.beside(fixed) for belief in beliefs]
        improving = bool(np.isfinite(thresholds).all())
        return cls(plain.gp, plain.beta, plain.epsilon, thresholds, best, beliefs, improving)

    def bound(self, cross: Array, screen: Array) -> Array:
        """Return an upper bound (m,): that of the improvement, or none where only the probability counts."""
        if not self.improving:
            return np.zeros(len(cross))
        return super().bound(cross, screen) if math.isfinite(self.best) else np.full(len(cross), np.inf)

    def of_whitened(self, v: Array, where: Where | None = None) -> Array:
        """Return values (m,) of candidates given by whitened cross-covariances, which lie where a function says."""
        assert where is not None
        values = super().of_whitened(v) if self.improving else np.zeros(v.shape[1])
        points = Points(where())
        for belief in self.beliefs:
            values += belief(points)
        return values

    def with_gradient(self, z: Codes, k_c: Array | None = None) -> tuple[Array, Array]:
        """Return values (m,) and their gradients (m, n_real) with respect to the reals."""
        space = self.gp.kernel.space
        values, gradients = np.zeros(len(z)), np.zeros((len(z), len(space.reals)))
        if self.improving:
            values, gradients = super().with_gradient(z, k_c)
        for belief, bins in zip(self.beliefs, self._kernels_of_bins(z), strict=True):
            own, slopes = belief.with_gradient(z, bins)
            values, gradients = values + own, gradients + slopes
        return values, gradients

    def _kernels_of_bins(self, z: Codes) -> list[Array | None]:
        """Return the kernels of the bins of points, for each belief; they stay as they are while reals move."""
        key = z[:, self.gp.kernel.space.combinatorial].tobytes()
        if key not in self._bins:
            self._bins.clear()
            self._bins[key] = [belief.kernel_of_bins(z) for belief in self.beliefs]
        return self._bins[key]
