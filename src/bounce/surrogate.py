"""The Gaussian process: a fit of its hyperparameters, a Cholesky factor, and both extended by new points.

Targets are standardised, the mean is zero. Hyperparameters are the maximum a posteriori under the priors of the
paper (appendix "Implementation details"), found by L-BFGS with analytic gradients.

Shapes: Z (n, d) latent codes, y (n,) standardised targets, L (n, n) the lower Cholesky factor of K + noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bounce.kernels import Hyper, Kernel, Metric, matern52_and_slope, squared_distance
from bounce.linalg import Array, cholesky, inverse, product, solve, solve_lower
from bounce.parameters import Codes
from bounce.space import Space

NOISE_FLOOR, REAL_NOISE_FLOOR = 1e-6, 1e-4  # the latter where all bins are real
# Γ(shape, rate) as densities of the natural parameters.
LENGTHSCALE_PRIOR = (1.5, 0.1)
SIGNAL_PRIOR = (1.5, 0.5)
NOISE_PRIOR = (1.1, 0.1)
LENGTHSCALE_BOUNDS = (5e-3, 1e3)
SIGNAL_BOUNDS = (1e-3, 1e3)
NOISE_BOUNDS = (NOISE_FLOOR, 1e1)
ITERATIONS = 40
TOLERANCE = 1e-6  # a fit ends when its log posterior changes by no more than this share
OUTLIER, OUTLIER_ROOM = 10.0, 0.25


def standardized(values: Array) -> Array:
    """Return values with mean 0 and population standard deviation 1 (or 0, if all are equal)."""
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values  # keeps squares from overflowing
    centred = scaled - scaled.mean()
    deviation = centred.std()
    # Rounding alone makes the deviation of equal values a tiny number.
    return centred / deviation if deviation > 1e-14 else np.zeros_like(values)


def clipped(values: Array) -> Array:
    """Return values, outliers on the bad side lowered to little more than the worst value that is none.

    An outlier is further above the median than `OUTLIER` times what the best is below it. How bad it is says
    little of where the good points are, but would set the scale: a penalty of 1e6 makes all else look equal. Which
    of two is the worse one still counts, on a log scale: where every point breaks a rule, fewer are the way.
    """
    best = float(values.min())
    median = float(np.sort(values)[(len(values) - 1) // 2])  # the lower one, which no sum can overflow
    limit = median + OUTLIER * (median - best)
    out = values > limit
    if not best < median or not out.any():
        return values
    worst = float(values[~out].max())
    room = max(OUTLIER_ROOM * worst - OUTLIER_ROOM * median, OUTLIER_ROOM * median - OUTLIER_ROOM * best)
    far = np.log(0.5 * values[out] - 0.5 * median)  # parts, since a difference of the whole may overflow
    near = math.log(0.5 * limit - 0.5 * median)
    share = (far - near) / max(float(far.max()) - near, 1e-12)
    tamed = values.copy()
    with np.errstate(over="ignore"):
        tamed[out] = np.minimum(values[out], worst + room * share)
    return tamed


def _log_gamma(x: Array, shape: Array, rate: Array) -> Array:
    return np.asarray((shape - 1.0) * np.log(x) - rate * x + shape * np.log(rate) - gammaln(shape))


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("ij,ij->", a, b))


def cold(space: Space) -> Hyper:
    """Return the hyperparameters a fit starts from when nothing is known."""
    # A lengthscale that grows with the root of the dimension keeps typical correlations in the middle.
    comb = np.array([max(1.0, math.sqrt(len(space.combinatorial)))])
    cont = np.full(len(space.reals), 0.5 * max(1.0, math.sqrt(len(space.reals))))
    return Hyper(comb=comb, cont=cont, signal=1.0, noise=1e-2, rho=0.5)


class LogPosterior:
    """The log marginal likelihood plus log priors of some data, as a function of θ, with its gradient.

    θ = (log ℓ_comb … | log ℓ_cont … | log σ² | log noise | ρ); the parts that a space lacks are left out. There is
    one ℓ_comb, or one for each combinatorial kind if these are to lie `apart`.
    """

    def __init__(self, space: Space, z: Codes, y: Array, *, apart: bool = False) -> None:
        self.space, self.y, self.n = space, y, len(y)
        self.n_cont = len(space.reals)
        self.has_comb = bool(len(space.combinatorial))
        self.mixed = self.has_comb and self.n_cont > 0
        kinds = space.combinatorial_kinds
        groups = [(kind,) for kind in kinds] if apart else [kinds] if kinds else []
        self.at = len(groups)  # where the reals begin in θ
        self.d2 = np.empty((self.at, self.n, self.n))
        for d2, group in zip(self.d2, groups, strict=True):
            columns = space.of_kind(*group)
            d2[:] = Metric(Space([space.parameters[j] for j in columns]))(z[:, columns], z[:, columns])
        lengthscales = self.at + self.n_cont
        self.priors = np.array([LENGTHSCALE_PRIOR] * lengthscales + [SIGNAL_PRIOR, NOISE_PRIOR]).T
        self.reals = z[:, space.reals] - 0.5
        self.index: NDArray[np.intp] | None = None
        largest = Metric(space).largest
        if self.at == 1 and largest is not None:
            self.index, self.levels = self.d2[0].astype(np.intp), np.arange(largest + 1.0)

    def pack(self, hyper: Hyper) -> Array:
        """Return θ of hyperparameters."""
        comb = np.log(hyper.comb if len(hyper.comb) == self.at else np.full(self.at, hyper.comb[0]))
        tail = [math.log(hyper.signal), math.log(hyper.noise)] + ([hyper.rho] if self.mixed else [])
        return np.concatenate([comb, np.log(hyper.cont), tail])

    def unpack(self, theta: Array) -> Hyper:
        """Return the hyperparameters of θ."""
        at = self.at
        signal, noise = np.exp(theta[at + self.n_cont : at + self.n_cont + 2])
        return Hyper(
            comb=np.exp(theta[:at]),
            cont=np.exp(theta[at : at + self.n_cont]),
            signal=float(signal),
            noise=float(noise),
            rho=float(theta[-1]) if self.mixed else 0.5,
        )

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The box of θ."""
        lengths = [LENGTHSCALE_BOUNDS] * (self.at + self.n_cont)
        noise = NOISE_BOUNDS if self.has_comb else (REAL_NOISE_FLOOR, NOISE_BOUNDS[1])
        logs = [(math.log(low), math.log(high)) for low, high in [*lengths, SIGNAL_BOUNDS, noise]]
        return logs + ([(0.0, 1.0)] if self.mixed else [])

    def _comb(self, h: Hyper) -> tuple[Array, Array]:
        """Return k_c (n, n) and its derivatives (lengthscales, n, n) with respect to the logs of these."""
        if self.index is not None:
            r2 = self.levels * (1.0 / h.comb[0] ** 2)
            k, slope = matern52_and_slope(r2)
            return k.take(self.index), (-2.0 * r2 * slope).take(self.index)[None]
        parts = self.d2 * (1.0 / h.comb**2)[:, None, None]
        k, slope = matern52_and_slope(parts.sum(axis=0))
        parts *= -2.0
        parts *= slope
        return k, parts

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and its gradient."""
        h = self.unpack(theta)
        one = np.ones((1, 1))
        k_c = k_r = slope_r = one
        slopes_c = np.empty((0, 1, 1))
        if self.has_comb:
            k_c, slopes_c = self._comb(h)
        if self.n_cont:
            x = self.reals / h.cont
            r2 = squared_distance(x, x)
            np.fill_diagonal(r2, 0.0)
            k_r, slope_r = matern52_and_slope(r2)
        if self.mixed:
            both, total = k_c * k_r, k_c + k_r
            k = h.rho * both + (1.0 - h.rho) * total
            by_c, by_r = h.rho * k_r + (1.0 - h.rho), h.rho * k_c + (1.0 - h.rho)
        else:
            k, by_c, by_r = (k_c if self.has_comb else k_r), one, one
        covariance = h.signal * k
        covariance[np.diag_indices(self.n)] += h.noise
        factor = cholesky(covariance)
        solved = solve(factor, np.stack([self.y, np.ones(self.n)], axis=1))
        mean = solved[:, 0].sum() / solved[:, 1].sum()  # the best constant; by the envelope theorem, no more
        alpha = solved[:, 0] - mean * solved[:, 1]
        g = 0.5 * (np.outer(alpha, alpha) - inverse(factor))  # dL/dK
        value = -0.5 * float((self.y - mean) @ alpha) - float(np.log(np.diag(factor)).sum())
        value -= 0.5 * self.n * math.log(2.0 * math.pi)

        gradient = np.empty_like(theta)
        at = self.at
        for i, slope_c in enumerate(slopes_c):
            gradient[i] = h.signal * _dot(g * by_c, slope_c)
        if self.n_cont:
            w = h.signal * g * by_r * slope_r
            # Σ_ab w_ab (x_aj − x_bj)² for all j at once; r² depends on log ℓ_j as ℓ_j^{−2}.
            squares = 2.0 * (
                np.einsum("a,aj,aj->j", w.sum(axis=1), x, x) - np.einsum("aj,aj->j", x, product(w, x))
            )
            gradient[at : at + self.n_cont] = -2.0 * squares
        at += self.n_cont
        gradient[at] = h.signal * _dot(g, k)
        gradient[at + 1] = h.noise * np.trace(g)
        if self.mixed:
            gradient[-1] = h.signal * _dot(g, both - total)

        natural = np.exp(theta[: at + 2])
        shape, rate = self.priors
        gradient[: at + 2] += (shape - 1.0) - rate * natural
        value += float(_log_gamma(natural, shape, rate).sum())
        return value, gradient


def fit(space: Space, z: Codes, y: Array, starts: Sequence[Hyper], *, apart: bool = False) -> Hyper:
    """Return the hyperparameters of the highest posterior found from some starts; `apart` as in `LogPosterior`."""
    from scipy.optimize import minimize  # slow to import, so not before the first fit

    posterior = LogPosterior(space, z, y, apart=apart)

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = posterior(theta)
        return -value, -gradient

    low, high = np.array(posterior.bounds).T
    runs = [
        minimize(
            loss,
            np.clip(posterior.pack(start), low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=posterior.bounds,
            options={"maxiter": ITERATIONS, "ftol": TOLERANCE},
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: float(run.fun))
    return posterior.unpack(np.asarray(best.x))


@dataclass(frozen=True, eq=False)
class GP:
    """A Gaussian process conditioned on points: the kernel, the points and the factor of their covariance."""

    kernel: Kernel
    z: Codes
    factor: Array

    @classmethod
    def at(cls, kernel: Kernel, z: Codes) -> GP:
        """Condition on noisy observations."""
        covariance = kernel(z, z)
        covariance[np.diag_indices(len(z))] += kernel.hyper.noise
        return cls(kernel, z, cholesky(covariance))

    @cached_property
    def scaled(self) -> Array:
        """The reals of its points, in lengthscales."""
        return self.kernel.scaled(self.z)

    def extended(self, z: Codes, *, noise: float) -> GP:
        """Condition on more points: new rows of the factor, the old ones as they are."""
        if not len(z):
            return self
        n, m = len(self.z), len(z)
        cross = self.whitened(self.kernel(z, self.z))
        covariance = self.kernel(z, z) - product(cross.T, cross)
        covariance[np.diag_indices(m)] += noise
        factor = np.zeros((n + m, n + m), order="F")
        factor[:n, :n] = self.factor
        factor[n:, :n] = cross.T
        factor[n:, n:] = cholesky(covariance)
        return GP(self.kernel, np.concatenate([self.z, z]), factor)

    def whitened(self, cross: Array) -> Array:
        """Return L⁻¹·kᵀ (n, m) of cross-covariances k (m, n)."""
        return solve_lower(self.factor, cross.T)

    def mean(self, y: Array) -> float:
        """Return the constant prior mean of highest likelihood: 1ᵀK⁻¹y / 1ᵀK⁻¹1."""
        white = solve_lower(self.factor, np.stack([y, np.ones_like(y)], axis=1))
        return float(white[:, 0] @ white[:, 1] / (white[:, 1] @ white[:, 1]))

    def believed_best(self, y: Array) -> float:
        """Return the lowest posterior mean at its own points: y − noise·K⁻¹y."""
        return float((y - self.kernel.hyper.noise * solve(self.factor, y[:, None])[:, 0]).min())

    def posterior(self, z: Codes, y: Array) -> tuple[Array, Array]:
        """Return posterior mean and variance at points, given the targets."""
        v = self.whitened(self.kernel(z, self.z))
        mean = v.T @ solve_lower(self.factor, y[:, None])[:, 0]
        return mean, np.maximum(self.kernel.prior - np.einsum("nm,nm->m", v, v), 0.0)
