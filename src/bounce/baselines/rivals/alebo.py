"""ALEBO: Bayesian optimization in a random linear subspace, with a kernel and bounds that fit one.

The nouns: a `Polytope` is the set of latent points z = B·x of the points x = B†·z in the cube, where the columns of B
are uniform on the unit sphere; nothing is ever clipped. The `Mahalanobis` kernel exp(−½·(z − z')ᵀΓ(z − z')) is what a
Gaussian kernel with lengthscales in an unknown linear subspace looks like from a random one (proposition 1). The
`Mixture` is the Gaussian process with Γ integrated out: samples of Γ = UᵀU from a Laplace approximation, and a normal
prediction of the same mean and variance.

The invariant: after the common initial points, every proposed point x is in the subspace: x = B†·B·x. The model knows
exactly these; it ignores the common initial points, whose values are not those of any latent point.

B. Letham, R. Calandra, A. Rai, E. Bakshy. Re-Examining Linear Embeddings for High-Dimensional Bayesian Optimization.
NeurIPS 2020.

Shapes: x (n, D) in the cube, z (n, d) latent, y (n,) values, u (p,) the upper triangle of U (d, d), S samples of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bounce.baselines.rivals.gaussian import Covariance, Fit, Gaussian
from bounce.baselines.rivals.hesbo import Embedded, Embedding
from bounce.gp.kernels import squared_distance
from bounce.gp.linalg import Array, cholesky, orthonormal, product, solve_lower

NOISE = 1e-7  # the noise variance, which is not fitted: values are taken as exact
SIGNALS = (1e-4, 1e4)  # the published fit has no bounds; these are far from where it ends
RESTARTS = 10  # of the fit, each from another random Γ
SHORT, LONG = 30, 300  # iterations of all restarts, then of the best of them
TOLERANCE = 1e-6  # of the log likelihood for each observation, at which a search ends
STEP = 0.1  # the first step of a search, as a part of the norm of its start
SAMPLES = 25  # of Γ; the first is the fitted one
NUGGET = 1e-3  # of the Laplace approximation
RAW, STARTS = 1000, 10  # random points of the acquisition, and local searches from them
POOL, WIDEST = 10, 16.0  # draws per random point, and the half-width of the cube from which they come at first


@dataclass(frozen=True, eq=False)
class Polytope(Embedding):
    """The linear map B† and its inverse on the subspace: `up` only clips rounding errors."""

    down: Array
    """The projection B (d, D)."""

    def sample(self, n: int, pool: int, *, rng: np.random.Generator) -> Array:
        """Draw n latent points by rejection: projections of uniform points of a cube, whose images lie in [−1, 1]^D.

        The cube from which they come is halved until n of the pool are accepted.
        """
        z = WIDEST * product(2.0 * rng.random((pool, self.down.shape[1])) - 1.0, self.down.T)
        reach = np.abs(product(z, self.matrix.T)).max(axis=1)  # accepted where it is at most 1
        while (reach <= 1.0).sum() < n:
            z, reach = 0.5 * z, 0.5 * reach
        return np.asarray(z[reach <= 1.0][:n])


def hypersphere(variables: int, d: int, *, rng: np.random.Generator) -> Polytope:
    """Draw ALEBO's embedding: the columns of B are uniform on the unit sphere of d dimensions (section 5)."""
    b = rng.standard_normal((d, variables))
    b /= np.sqrt((b**2).sum(axis=0))
    return Polytope(np.asarray(np.linalg.pinv(b), dtype=np.float64), 1.0, b)


class Mahalanobis(Covariance):
    """The kernel exp(−½·|U(z − z')|²) with parameters u, the upper triangle of U, row by row."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.upper = np.triu_indices(d)
        self.bounds = np.tile([[-1e6, 1e6]], (len(self.upper[0]), 1))
        self.start = np.eye(d)[self.upper]
        self._last: tuple[Array, Array, Array] | None = None  # θ, x and k of the last call with a ≡ b ≡ x

    def matrix(self, theta: Array) -> Array:
        """Return U (d, d)."""
        u = np.zeros((self.d, self.d))
        u[self.upper] = theta
        return u

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        if a is b and self._last is not None and self._last[0] is theta and self._last[1] is a:
            return self._last[2]
        u = self.matrix(theta).T
        mapped = a @ u
        k = np.exp(-0.5 * squared_distance(mapped, mapped if a is b else b @ u))
        if a is b:
            self._last = theta, a, k
        return k

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂u_j: the upper triangle of −U·Σ_ab w_ab·k_ab·δ_ab·δ_abᵀ with δ_ab = x_a − x_b."""
        m = weights * self(theta, x, x)
        spread = 2.0 * ((x * m.sum(axis=1)[:, None]).T @ x - x.T @ m @ x)
        return np.asarray(-(self.matrix(theta) @ spread)[self.upper])


def random_start(polytope: Polytope, *, rng: np.random.Generator) -> Array:
    """Draw u where a fit starts: Γ = (A·B†)ᵀ(A·B†), the kernel of a random subspace A with unit lengthscales."""
    variables, d = polytope.matrix.shape
    ab = orthonormal(rng.standard_normal((variables, d))).T @ polytope.matrix
    gamma = ab.T @ ab
    gamma[np.diag_indices(d)] += 1e-9 * np.trace(gamma)
    return np.asarray(np.linalg.cholesky(gamma).T[np.triu_indices(d)])


def fitted(z: Array, y: Array, starts: Sequence[Array]) -> Gaussian:
    """Return the process of the highest likelihood: few iterations from every start, many from where the best ended.

    The first step of a search has length 1, so u is measured in tenths of its norm at the start: a larger step ends
    where the kernel is white and the likelihood flat.
    """
    from scipy.optimize import minimize  # slow to import

    fit, covariance = Fit(SIGNALS, (NOISE, NOISE)), Mahalanobis(z.shape[1])

    def searched(u: Array, log_signal: float, iterations: int) -> tuple[float, Array]:
        units = np.append(np.full(len(u), STEP * float(np.linalg.norm(u))), 1.0)

        def loss(p: Array) -> tuple[float, Array]:
            value, slope = fit.loss(covariance, z, y, np.append(p * units, np.log(NOISE)))
            return value / len(y), slope[:-1] * units / len(y)

        limits = [(None, None)] * len(u) + [tuple(np.log(SIGNALS))]
        options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": TOLERANCE}
        start = np.append(u, log_signal) / units
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        return float(found.fun), np.asarray(found.x * units)

    short = [searched(start, np.log(np.log(2.0)), SHORT) for start in starts]
    p = min(short, key=lambda found: found[0])[1]
    best = searched(p[:-1], p[-1], LONG)[1]
    return Gaussian(covariance, best[:-1], float(np.exp(best[-1])), NOISE, z, y)


def laplace(gp: Gaussian, n: int, *, rng: np.random.Generator) -> Array:
    """Return n samples of u (n, p): the fitted one, then a normal with the diagonal of the Hessian there.

    As in the published code, the Hessian is that of the likelihood divided by the number of observations, so the
    variances are larger than those of the posterior by that number.
    """
    covariance, y = gp.covariance, gp.y - gp.mean
    fit, rest = Fit(constant=False), np.log([gp.signal, gp.noise])

    def slope(u: Array) -> Array:
        return fit.loss(covariance, gp.x, y, np.append(u, rest))[1][:-2] / len(y)

    steps = 1e-4 + 1e-3 * np.abs(gp.theta)
    here = slope(gp.theta)
    curvature = np.array(
        [
            (slope(gp.theta + step * one)[j] - here[j]) / step
            for j, (step, one) in enumerate(zip(steps, np.eye(len(steps)), strict=True))
        ]
    )
    sd = 1.0 / np.sqrt(np.maximum(np.abs(curvature + NUGGET), 1e-12))  # |·|: as a singular value is taken
    return np.concatenate([gp.theta[None], gp.theta + sd * rng.standard_normal((n - 1, len(sd)))])


@dataclass(frozen=True, eq=False)
class Mixture:
    """A process for each sample of u, and the normal of their mixture's mean and variance (section 6)."""

    gp: Gaussian
    """The data, and what is the same for all samples."""
    samples: Array
    """Of u (S, p)."""

    @cached_property
    def maps(self) -> Array:
        """The matrices Uᵀ (S, d, d)."""
        covariance = self.gp.covariance
        assert isinstance(covariance, Mahalanobis)
        return np.array([covariance.matrix(u).T for u in self.samples])

    @cached_property
    def _white(self) -> Array:
        """The inverse factors L⁻¹ (S, n, n) of the covariances of the data."""
        gp, eye = self.gp, np.eye(len(self.gp.x))
        return np.array(
            [
                solve_lower(cholesky(gp.signal * gp.covariance(u, gp.x, gp.x) + gp.noise * eye), eye)
                for u in self.samples
            ]
        )

    @cached_property
    def _beta(self) -> Array:
        """The whitened values L⁻¹(y − mean) (S, n)."""
        return np.asarray(self._white @ (self.gp.y - self.gp.mean))

    def posterior(self, z: Array) -> tuple[Array, Array]:
        """Return mean (m,) and standard deviation (m,) at rows."""
        gp, means, variances = self.gp, [], []
        for u, white, beta in zip(self.samples, self._white, self._beta, strict=True):
            v = product(gp.signal * gp.covariance(u, z, gp.x), white.T)
            means.append(gp.mean + v @ beta)
            variances.append(np.maximum(gp.signal - np.einsum("mn,mn->m", v, v), 1e-12 * gp.signal))
        # The law of total variance.
        return np.mean(means, axis=0), np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))

    def slope(self, z: Array) -> tuple[float, float, Array, Array]:
        """Return mean and deviation at one row, and their gradients by the row."""
        gp = self.gp
        gap = (z - gp.x) @ self.maps  # (S, n, d)
        k = gp.signal * np.exp(-0.5 * np.einsum("snd,snd->sn", gap, gap))
        v = np.einsum("sij,sj->si", self._white, k)
        means = gp.mean + np.einsum("si,si->s", v, self._beta)
        variances = gp.signal - np.einsum("si,si->s", v, v)
        floor = variances <= 1e-12 * gp.signal
        variances[floor] = 1e-12 * gp.signal
        # ∂k_i/∂z = −k_i·Uᵀ·U(z − x_i), and the mean and the variance are linear in ∂k.
        by = np.stack([self._beta, -2.0 * v * ~floor[:, None]])[..., None, :] @ self._white  # (2, S, 1, n)
        by_z = -np.einsum("bsn,snd,sed->bse", by[:, :, 0] * k, gap, self.maps)  # (2, S, d)
        mean, variance = float(means.mean()), float(variances.mean() + means.var())
        by_variance = by_z[1].mean(axis=0) + 2.0 * ((means - mean)[:, None] * by_z[0]).mean(axis=0)
        sd = float(np.sqrt(variance))
        return mean, sd, by_z[0].mean(axis=0), by_variance / (2.0 * sd)


def improvement(mean: Array, sd: Array, best: float) -> Array:
    """Return the expected improvement below `best`."""
    u = (best - mean) / sd
    return np.asarray(sd * (u * ndtr(u) + density(u)))


def density(u: Array) -> Array:
    """Return the standard normal density."""
    return np.asarray(np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi))


def promising(values: Array, n: int, *, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the places of n starts: that of the best value, and others drawn by exp(value/best − 1).

    Values below a ten-thousandth of the best are not drawn, unless fewer than n are above: then the limit falls by
    tenths.
    """
    best = int(values.argmax())
    if not values[best] > 0.0:
        return rng.permutation(len(values))[:n]
    limit = 1e-4 * values[best]
    while (values >= limit).sum() < min(n, len(values)):
        limit *= 0.1
    weights = np.exp(values / values[best] - 1.0) * (values >= limit)
    weights[best] = 0.0
    others = rng.choice(len(values), size=min(n, len(values)) - 1, replace=False, p=weights / weights.sum())
    return np.append(best, others)


class Alebo(Embedded):
    """ALEBO with expected improvement."""

    name: ClassVar[str] = "alebo"

    def _embedding(self, d: int, *, rng: np.random.Generator) -> Polytope:
        return hypersphere(len(self.space), d, rng=rng)

    def _polytope(self, i: int) -> Polytope:
        polytope = self._maps[i]
        assert isinstance(polytope, Polytope)
        return polytope

    def _first(self, i: int, *, rng: np.random.Generator) -> Array:
        return self._polytope(i).sample(self.design, POOL * RAW, rng=rng)

    def _ranked(self, i: int, z: Array, y: Array, pending: Array, *, rng: np.random.Generator) -> Array:
        polytope, best = self._polytope(i), float(y.min())
        gp = fitted(z, y, [random_start(polytope, rng=rng) for _ in range(RESTARTS)])
        mixture = Mixture(gp.believing(pending), laplace(gp, SAMPLES, rng=rng))
        raw = polytope.sample(RAW, POOL * RAW, rng=rng)
        values = improvement(*mixture.posterior(raw), best)
        found = [climbed(mixture, best, raw[j], polytope) for j in promising(values, STARTS, rng=rng)]
        order = np.argsort([-value for _, value in found])
        return np.concatenate([np.array([found[j][0] for j in order]), raw[np.argsort(-values)]])


def climbed(mixture: Mixture, best: float, start: Array, polytope: Polytope) -> tuple[Array, float]:
    """Return where a local search (SLSQP) for the expected improvement within −1 ≤ B†·z ≤ 1 ends, and its value."""
    from scipy.optimize import minimize  # slow to import

    def loss(z: Array) -> tuple[float, Array]:
        mean, sd, by_mean, by_sd = mixture.slope(z)
        u = (best - mean) / sd
        phi, cdf = float(density(np.array(u))), float(ndtr(u))
        return -sd * (u * cdf + phi), cdf * by_mean - phi * by_sd

    faces = np.concatenate([polytope.matrix, -polytope.matrix])
    inside = {"type": "ineq", "fun": lambda z: 1.0 - faces @ z, "jac": lambda z: -faces}
    found = minimize(loss, start, jac=True, method="SLSQP", constraints=[inside])
    z = np.asarray(found.x)
    reach = float(np.abs(polytope.matrix @ z).max())
    if not np.isfinite(z).all() or not np.isfinite(reach):
        return start, -loss(start)[0]
    z /= max(1.0, reach)  # a search may end outside by its tolerance
    return z, -loss(z)[0]
