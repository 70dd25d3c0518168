"""A Gaussian process for rivals: any covariance, its fit within published bounds and priors, and its posterior.

A rival brings a `Covariance` (a class beside the others, not a flag) and where its parameters may lie. Parameters are
logarithms. The model is f ~ GP(mean, σ²·k), y = f + noise, where the mean is zero or the constant of highest
likelihood.

The invariant: the gradient of the log posterior is exact, for every covariance.

Shapes: x (n, d) rows, y (n,) targets, θ (p,) the covariance's parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bounce.gp.kernels import matern52, matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, cholesky, inverse, solve, solve_lower

Prior = Callable[[Array], tuple[float, Array]]
"""The log density of (θ, log σ², log noise) and its gradient."""
ITERATIONS = 50  # of L-BFGS
HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Covariance(ABC):
    """A covariance function with unit variance unless it says otherwise."""

    bounds: Array
    """The least and the largest θ (p, 2)."""
    start: Array
    """Where a fit starts (p,)."""

    @abstractmethod
    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""

    @abstractmethod
    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂θ_j (p,) among the rows of x, for symmetric weights (n, n)."""

    def diagonal(self, theta: Array, x: Array) -> Array:
        """Return k(x, x) (n,) of each row with itself."""
        return np.ones(len(x))

    def by_input(self, theta: Array, z: Array, x: Array) -> Array:
        """Return ∂k(z, x_i)/∂z (n, d) at one row z."""
        raise NotImplementedError


class Matern52(Covariance):
    """Matérn-5/2 with a lengthscale for each of d columns, or one for all of them."""

    def __init__(
        self, d: int, bounds: tuple[float, float], *, shared: bool = False, start: float | None = None
    ) -> None:
        p = 1 if shared else d
        low, high = np.log(bounds)
        middle = 0.5 * (low + high) if start is None else float(np.clip(np.log(start), low, high))
        self.bounds, self.start = np.tile([[low, high]], (p, 1)), np.full(p, middle)

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        scale = np.exp(-theta)
        return matern52(squared_distance(a * scale, b * scale))

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂log ℓ_j."""
        scaled = x * np.exp(-theta)
        r2 = squared_distance(scaled, scaled)
        np.fill_diagonal(r2, 0.0)
        w = weights * matern52_and_slope(r2)[1]
        # ∂r²/∂θ_j = −2·(x_aj − x_bj)²/ℓ_j²
        # and Σ_ab w_ab (x_aj − x_bj)² = 2·(Σ_a w_a. x_aj² − Σ_ab w_ab x_aj x_bj)
        squares = np.einsum("a,aj,aj->j", w.sum(axis=1), scaled, scaled) - np.einsum("aj,aj->j", scaled, w @ scaled)
        each = -4.0 * squares
        return each if len(theta) > 1 or x.shape[1] == 1 else np.array([each.sum()])

    def by_input(self, theta: Array, z: Array, x: Array) -> Array:
        """Return ∂k(z, x_i)/∂z (n, d)."""
        scale = np.exp(-theta)
        gap = (z - x) * scale
        slope = matern52_and_slope(np.einsum("ij,ij->i", gap, gap)[None])[1][0]
        return np.asarray(2.0 * slope[:, None] * gap * scale)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A process conditioned on data."""

    covariance: Covariance
    theta: Array
    signal: float
    """The signal variance σ²."""
    noise: float
    """The noise variance."""
    x: Array
    y: Array
    constant: bool = True
    """Whether the prior mean is the constant of highest likelihood, and not zero."""

    @cached_property
    def factor(self) -> Array:
        """The lower Cholesky factor of the covariance of the data."""
        k = self.signal * self.covariance(self.theta, self.x, self.x)
        k[np.diag_indices(len(k))] += self.noise
        return cholesky(k)

    @cached_property
    def mean(self) -> float:
        """The prior mean."""
        if not self.constant:
            return 0.0
        white = solve_lower(self.factor, np.stack([self.y, np.ones_like(self.y)], axis=1))
        return float(white[:, 0] @ white[:, 1] / (white[:, 1] @ white[:, 1]))

    @cached_property
    def _white(self) -> Array:
        return solve_lower(self.factor, (self.y - self.mean)[:, None])[:, 0]

    @cached_property
    def _alpha(self) -> Array:
        return solve(self.factor, (self.y - self.mean)[:, None])[:, 0]

    def posterior(self, z: Array) -> tuple[Array, Array]:
        """Return the mean (m,) and the standard deviation (m,) of f at rows."""
        v = solve_lower(self.factor, self.signal * self.covariance(self.theta, z, self.x).T)
        variance = self.signal * self.covariance.diagonal(self.theta, z) - np.einsum("nm,nm->m", v, v)
        return self.mean + v.T @ self._white, np.sqrt(np.maximum(variance, 1e-12 * self.signal))

    def slope(self, z: Array) -> tuple[float, float, Array, Array]:
        """Return mean and deviation at one row, and their gradients by the row, for a stationary covariance."""
        k = self.signal * self.covariance(self.theta, z[None], self.x)[0]
        by = self.signal * self.covariance.by_input(self.theta, z, self.x)
        solved = solve(self.factor, k[:, None])[:, 0]
        prior = self.signal * float(self.covariance.diagonal(self.theta, z[None])[0])
        sd = float(np.sqrt(max(prior - k @ solved, 1e-12 * self.signal)))
        return self.mean + float(k @ self._alpha), sd, by.T @ self._alpha, -(by.T @ solved) / sd

    def joint(self, z: Array) -> tuple[Array, Array]:
        """Return the mean (m,) and the covariance (m, m) of f at rows."""
        v = solve_lower(self.factor, self.signal * self.covariance(self.theta, z, self.x).T)
        return self.mean + v.T @ self._white, self.signal * self.covariance(self.theta, z, z) - v.T @ v

    def sample(self, z: Array, n: int, *, rng: np.random.Generator) -> Array:
        """Draw n functions at rows (n, m), jointly."""
        mean, covariance = self.joint(z)
        covariance[np.diag_indices(len(z))] += 1e-8 * self.signal
        return np.asarray(mean + rng.standard_normal((n, len(z))) @ cholesky(covariance).T)

    def believing(self, z: Array) -> Gaussian:
        """Return the process that has seen its own means at more rows (mean fantasies)."""
        if not len(z):
            return self
        return Gaussian(
            self.covariance,
            self.theta,
            self.signal,
            self.noise,
            np.concatenate([self.x, z]),
            np.concatenate([self.y, self.posterior(z)[0]]),
            self.constant,
        )


@dataclass(frozen=True)
class Fit:
    """How a covariance is fitted: bounds on the variances, a prior, and where to start."""

    signal: tuple[float, float] = (0.05, 20.0)
    noise: tuple[float, float] = (5e-4, 0.2)
    start_signal: float = 1.0
    start_noise: float = 5e-3
    constant: bool = True
    prior: Prior | None = None
    iterations: int = ITERATIONS
    starts: Sequence[Array] = field(default=())
    """More θ to start from."""

    def __call__(self, covariance: Covariance, x: Array, y: Array) -> Gaussian:
        """Return the process of the highest posterior density given data."""
        from scipy.optimize import minimize  # slow to import

        limits = np.concatenate([covariance.bounds, np.log([self.signal, self.noise])])
        best: tuple[float, Array] | None = None
        for start in (covariance.start, *self.starts):
            parameters = np.append(start, np.log([self.start_signal, self.start_noise]))
            found = minimize(
                lambda p: self.loss(covariance, x, y, p),
                np.clip(parameters, limits[:, 0], limits[:, 1]),
                jac=True,
                method="L-BFGS-B",
                bounds=limits,
                options={"maxiter": self.iterations},
            )
            if best is None or found.fun < best[0]:
                best = float(found.fun), np.clip(found.x, limits[:, 0], limits[:, 1])
        assert best is not None
        signal, noise = np.exp(best[1][-2:])
        return Gaussian(covariance, best[1][:-2], float(signal), float(noise), x, y, self.constant)

    def loss(self, covariance: Covariance, x: Array, y: Array, parameters: Array) -> tuple[float, Array]:
        """Return the negative log posterior of (θ, log σ², log noise), and its gradient."""
        theta, (signal, noise) = parameters[:-2], np.exp(parameters[-2:])
        k = covariance(theta, x, x)
        total = signal * k
        total[np.diag_indices(len(x))] += noise
        factor = cholesky(total)
        inverted = inverse(factor)
        mean = float(inverted.sum(axis=0) @ y / inverted.sum()) if self.constant else 0.0
        alpha = inverted @ (y - mean)
        value = 0.5 * float((y - mean) @ alpha) + float(np.log(np.diag(factor)).sum()) + len(y) * HALF_LOG_2PI
        weights = 0.5 * (inverted - np.outer(alpha, alpha))  # ∂loss/∂K; the mean is optimal, so it adds nothing
        gradient = np.concatenate(
            [
                signal * covariance.slopes(theta, x, weights),
                [signal * float(np.einsum("ij,ij->", weights, k)), noise * float(np.trace(weights))],
            ]
        )
        if self.prior is not None:
            log_density, slope = self.prior(parameters)
            value, gradient = value - log_density, gradient - slope
        return value, gradient


def gamma_prior(places: Sequence[int], shapes: Sequence[float], rates: Sequence[float]) -> Prior:
    """Return independent Γ(shape, rate) densities of exp(parameter) at some places (counted from the end if negative).

    They are densities of the natural parameters, as GPyTorch has them: the logarithm's Jacobian is left out.
    """
    at, shape, rate = np.array(places), np.array(shapes), np.array(rates)

    def prior(parameters: Array) -> tuple[float, Array]:
        value = np.exp(parameters[at])
        gradient = np.zeros_like(parameters)
        gradient[at] = (shape - 1.0) - rate * value
        return float(((shape - 1.0) * parameters[at] - rate * value).sum()), gradient

    return prior
