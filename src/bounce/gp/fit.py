"""The fit: hyperparameters of the highest posterior density, by L-BFGS with analytic gradients.

Targets are standardised. The prior mean is zero, or the constant of highest likelihood (`Method.mean`). The priors
are those of the paper (appendix "Implementation details"), as densities of the natural parameters (notes, decision 7),
except that of the combinatorial lengthscales (`Method.lengthscale_prior`), which is a density of their logs.
The noise variance of an observation is the fitted one, unless it is known.

Shapes: n points, y (n,) targets, θ the parameters of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bounce.gp.kernels import Hyper, Metric, matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, cholesky, inverse, product, solve
from bounce.gp.points import Points
from bounce.method import Method
from bounce.spaces.kinds import Kind
from bounce.spaces.space import Space

# Γ(shape, rate), paper, implementation details.
LENGTHSCALE_PRIOR = (1.5, 0.1)
SIGNAL_PRIOR = (1.5, 0.5)
NOISE_PRIOR = (1.1, 0.1)
# A combinatorial lengthscale under `Method.lengthscale_prior` "scaled": its median in roots of the number of such bins,
# since squared distances are sums over bins, and the standard deviation of its log.
SCALED_PRIOR = (2.0, 1.0)
MOSTLY = 0.5  # the share of noise in the fitted variance above which "either" prefers this prior ...
ENOUGH = 20  # ... from this number of values on: fewer are explained by noise also where there is none
# Wide enough never to bind on the paper's problems; they keep L-BFGS away from overflow.
LENGTHSCALE_BOUNDS = (5e-3, 1e3)
SIGNAL_BOUNDS = (1e-3, 1e3)
NOISE_CEILING = 1e1
REAL_SPREAD = 1.0  # of the logs of tied real lengthscales around their mean (`Method.real_lengthscales`)
TIED_REALS = 20  # real bins up to which they are tied: of more, a few may matter and the others not at all
# They are not tied beside categories either: a choice may decide which of them matter.
OWN_BOUNDS = (-4.0, 4.0)  # of η, in standard deviations
ITERATIONS = 40  # of L-BFGS; most fits end earlier
TOLERANCE = 1e-6  # a fit ends when its log posterior changes by no more than this share (docs/ablations.md)
COLD_NOISE = 1e-2  # where a fit starts: little noise, between its floor and its prior
# Further climbs begin where one ended, with one long lengthscale made short (`Method.climbs`).
MORE_CLIMBS = 3
LONG, SHORT = 1.0, 0.4
PROMISING = 8  # how many lengthscales are tried, each alone, before one climb
GAIN = 1e-3  # a climb that gains less in the log posterior is the last one


def _log_gamma(x: Array, shape: Array, rate: Array) -> Array:
    return np.asarray((shape - 1.0) * np.log(x) - rate * x + shape * np.log(rate) - gammaln(shape))


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("ij,ij->", a, b))


def _own_distances(x: Array) -> Array:
    """Return the squared distances among rows, exactly 0 on the diagonal."""
    r2 = squared_distance(x, x)
    np.fill_diagonal(r2, 0.0)
    return r2


def _squares(w: Array, x: Array) -> Array:
    """Return Σ_ab w_ab (x_aj − x_bj)² for all j at once, of symmetric weights."""
    squares: Array = np.einsum("a,aj,aj->j", w.sum(axis=1), x, x) - np.einsum("aj,aj->j", x, product(w, x))
    squares *= 2.0
    return squares


def cold(space: Space) -> Hyper:
    """Return the hyperparameters a fit starts from when nothing is known."""
    # A lengthscale that grows with the root of the dimension keeps typical correlations in the middle.
    combinatorial = np.array([max(1.0, math.sqrt(len(space.combinatorial)))])
    real = np.full(len(space.reals), 0.5 * max(1.0, math.sqrt(len(space.reals))))
    return Hyper(combinatorial, real, signal=1.0, noise=COLD_NOISE, rho=0.5)


def noise_limits(space: Space, method: Method) -> tuple[float, float]:
    """Return the least and the largest noise variance of standardised targets."""
    return (method.noise_floor if len(space.combinatorial) else method.real_noise_floor), NOISE_CEILING


class _Parts(NamedTuple):
    """The kernel of the data at σ² = 1, and its derivatives by k_c, k_r and ρ, and of these by their arguments."""

    k: Array
    by_c: Array
    by_r: Array
    slopes_c: Array
    slope_r: Array
    x_c: Array
    x: Array
    by_rho: Array


def noise_of(hyper: Hyper, known: Array) -> Array:
    """Return the noise variances (n,) of observations: those that are known, and the fitted one for NaN."""
    return np.where(np.isnan(known), hyper.noise, known)


class LogPosterior:
    """The log marginal likelihood plus log priors of some data, as a function of θ, with its gradient.

    θ = (log ℓ_c … | η … | log ℓ_r … | log σ² | log noise | ρ); the parts that a space lacks are left out. There is one
    ℓ_c, or one for each combinatorial kind; with a lengthscale per bin, that of bin j is ℓ_c·exp(s·η_j), where η_j is
    standard normal and s is `Method.spread` (`Method.lengthscales`). Tied ℓ_r are log-normal around their mean, which
    has the prior of a single one (`Method.real_lengthscales`). `Method.lengthscale_prior` is that of ℓ_c. `known` (n,)
    are the noise variances of observations that are known, NaN for the others; `fixed` is the noise variance of these,
    where it is not to be fitted.
    """

    def __init__(
        self,
        space: Space,
        points: Points,
        y: Array,
        method: Method,
        *,
        known: Array | None = None,
        fixed: float | None = None,
    ) -> None:
        self.space, self.y, self.n, self.method = space, y, len(y), method
        self.known, self.fixed = known, fixed
        self.n_real = len(space.reals)
        self.combinatorial = bool(len(space.combinatorial))
        self.mixed = space.is_mixed
        kinds = space.combinatorial_kinds
        groups = [kinds] if kinds else []
        if method.lengthscales != "shared":
            groups = [(kind,) for kind in kinds]
        self.groups = len(groups)
        self.own = len(space.combinatorial) if method.lengthscales == "per-bin" else 0
        self.at = self.groups + self.own  # where the reals begin in θ
        self.priors = np.array([LENGTHSCALE_PRIOR] * (self.groups + self.n_real) + [SIGNAL_PRIOR, NOISE_PRIOR]).T
        self.positive = np.delete(np.arange(self.at + self.n_real + 2), np.arange(self.groups, self.at))
        few = 1 < self.n_real <= TIED_REALS and Kind.CATEGORICAL not in kinds
        self.tied = few and method.real_lengthscales == "tied"
        self.scaled = method.lengthscale_prior == "scaled"
        self.reals, self.bin_of_real = points.reals(space)
        self.index: NDArray[np.intp] | None = None
        if self.own:
            self.features, self.bin_of_feature = points.combinatorial(space)
            kind_of = [kinds.index(space.kinds[j]) for j in space.combinatorial]
            self.group_of = np.array(kind_of, dtype=np.intp)
            return
        self.d2 = np.empty((self.at, self.n, self.n))
        for d2, group in zip(self.d2, groups, strict=True):
            d2[:] = Metric(space, only=group)(points, points)
        largest = Metric(space).largest
        if self.at == 1 and largest is not None and points.foreign is None:
            self.index, self.levels = self.d2[0].astype(np.intp), np.arange(largest + 1.0)

    def pack(self, hyper: Hyper) -> Array:
        """Return θ of hyperparameters."""
        combinatorial = np.log(hyper.combinatorial_lengthscales)
        if self.own:
            if not hyper.per_bin:
                combinatorial = np.full(self.own, combinatorial[0])
            means = np.bincount(self.group_of, combinatorial) / np.bincount(self.group_of)
            own = (combinatorial - means[self.group_of]) / self.method.spread
            combinatorial = np.concatenate([means, own])
        elif len(combinatorial) != self.at:  # one for all becomes one per kind
            combinatorial = np.full(self.at, combinatorial[0])
        tail = [math.log(hyper.signal), math.log(hyper.noise)] + ([hyper.rho] if self.mixed else [])
        return np.concatenate([combinatorial, np.log(hyper.real_lengthscales), tail])

    def unpack(self, theta: Array) -> Hyper:
        """Return the hyperparameters of θ."""
        at, logs = self.at, theta[: self.groups]
        if self.own:
            logs = logs[self.group_of] + self.method.spread * theta[self.groups : at]
        signal, noise = np.exp(theta[at + self.n_real : at + self.n_real + 2])
        return Hyper(
            combinatorial_lengthscales=np.exp(logs),
            real_lengthscales=np.exp(theta[at : at + self.n_real]),
            signal=float(signal),
            noise=float(noise),
            rho=float(theta[-1]) if self.mixed else 0.5,
            per_bin=bool(self.own),
        )

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The box of θ."""
        lengths = [LENGTHSCALE_BOUNDS] * (self.groups + self.n_real)
        noise = noise_limits(self.space, self.method) if self.fixed is None else (self.fixed, self.fixed)
        logs = [(math.log(a), math.log(b)) for a, b in [*lengths, SIGNAL_BOUNDS, noise]]
        logs[self.groups : self.groups] = [OWN_BOUNDS] * self.own
        return logs + ([(0.0, 1.0)] if self.mixed else [])

    def promising(self, hyper: Hyper) -> NDArray[np.intp]:
        """Return the reals whose long lengthscale the likelihood wants to be shorter, those that matter most first.

        The derivative by log ℓ vanishes where ℓ is long, so a climb does not see them. That by 1 / ℓ² does not.
        """
        theta, lengths = self.pack(hyper), hyper.real_lengthscales
        reals = slice(self.at, self.at + self.n_real)
        _, gradient = self(theta)
        of_priors = np.zeros(len(theta))
        self._with_priors(theta, 0.0, of_priors)
        slopes = -0.5 * lengths**2 * (gradient - of_priors)[reals]
        order = np.argsort(-slopes, kind="stable")
        return order[(lengths[order] > LONG) & (slopes[order] > 0.0)][:PROMISING]

    def _combinatorial(self, h: Hyper) -> tuple[Array, Array]:
        """Return k_c (n, n) and its derivatives (lengthscales, n, n) with respect to the logs of these."""
        if self.index is not None:
            r2 = self.levels * (1.0 / h.combinatorial_lengthscales[0] ** 2)
            k, slope = matern52_and_slope(r2)
            return k.take(self.index), (-2.0 * r2 * slope).take(self.index)[None]
        parts = self.d2 * (1.0 / h.combinatorial_lengthscales**2)[:, None, None]
        k, slope = matern52_and_slope(parts.sum(axis=0))
        parts *= -2.0
        parts *= slope
        return k, parts

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and its gradient."""
        h = self.unpack(theta)
        parts = self._kernel(h)
        covariance = h.signal * parts.k
        covariance[np.diag_indices(self.n)] += h.noise if self.known is None else noise_of(h, self.known)
        value, g = self._likelihood(cholesky(covariance))
        gradient = self._gradient(h, parts, g)

        return self._with_priors(theta, value, gradient), gradient

    def _with_priors(self, theta: Array, value: float, gradient: Array) -> float:
        """Return a value with the log priors, and add their gradient in place."""
        natural = np.exp(theta[self.positive])
        shape, rate = self.priors
        slopes, logs = (shape - 1.0) - rate * natural, _log_gamma(natural, shape, rate)
        if self.scaled and self.combinatorial:
            kinds = slice(0, self.groups)
            median, deviation = SCALED_PRIOR
            away = (theta[kinds] - math.log(median * math.sqrt(len(self.space.combinatorial)))) / deviation
            slopes[kinds] = -away / deviation
            logs[kinds] = -0.5 * away**2 - math.log(deviation) - 0.5 * math.log(2.0 * math.pi)
        if self.tied:
            reals = slice(self.groups, self.groups + self.n_real)
            own = theta[self.at : self.at + self.n_real]
            mean = np.full(self.n_real, own.mean())
            away = (own - mean) / REAL_SPREAD
            # Of the mean, one prior in all: a part of it for each.
            slopes[reals] = ((shape - 1.0)[reals] - rate[reals] * np.exp(mean)) / self.n_real - away / REAL_SPREAD
            logs[reals] = _log_gamma(np.exp(mean), shape[reals], rate[reals]) / self.n_real - 0.5 * away**2
        gradient[self.positive] += slopes
        value += float(logs.sum())
        if self.own:
            own = theta[self.groups : self.at]
            gradient[self.groups : self.at] -= own
            value -= 0.5 * float(own @ own)
        return value

    def _likelihood(self, factor: Array) -> tuple[float, Array]:
        """Return the log likelihood, and its derivative with respect to the covariance."""
        if self.method.mean == "zero":
            alpha = solve(factor, self.y[:, None])[:, 0]
            centred = self.y
        else:
            solved = solve(factor, np.stack([self.y, np.ones(self.n)], axis=1))
            mean = solved[:, 0].sum() / solved[:, 1].sum()  # the best constant; by the envelope theorem, no more
            alpha = solved[:, 0] - mean * solved[:, 1]
            centred = self.y - mean
        g = 0.5 * (np.outer(alpha, alpha) - inverse(factor))  # dL/dK
        value = -0.5 * float(centred @ alpha) - float(np.log(np.diag(factor)).sum())
        value -= 0.5 * self.n * math.log(2.0 * math.pi)
        return value, g

    def _kernel(self, h: Hyper) -> _Parts:
        """Return the kernel at σ² = 1 and what its derivatives are made of."""
        one = np.ones((1, 1))
        k_c = k_r = slope_r = x_c = one
        slopes_c, x = np.empty((0, 1, 1)), self.reals
        if self.own:
            x_c = self.features / h.combinatorial_lengthscales[self.bin_of_feature]
            k_c, slope_c = matern52_and_slope(_own_distances(x_c))
            slopes_c = slope_c[None]
        elif self.combinatorial:
            k_c, slopes_c = self._combinatorial(h)
        if self.n_real:
            x = self.reals / h.real_lengthscales[self.bin_of_real]
            k_r, slope_r = matern52_and_slope(_own_distances(x))
        if not self.mixed:
            return _Parts(k_c if self.combinatorial else k_r, one, one, slopes_c, slope_r, x_c, x, one)
        both, total = k_c * k_r, k_c + k_r
        k = h.rho * both + (1.0 - h.rho) * total
        by_c, by_r = h.rho * k_r + (1.0 - h.rho), h.rho * k_c + (1.0 - h.rho)
        return _Parts(k, by_c, by_r, slopes_c, slope_r, x_c, x, both - total)

    def _gradient(self, h: Hyper, parts: _Parts, g: Array) -> Array:
        """Return the gradient of the log likelihood, given its derivative g with respect to the covariance."""
        gradient = np.empty(self.at + self.n_real + 2 + self.mixed)
        at = self.at
        if self.own:
            w = h.signal * g * parts.by_c * parts.slopes_c[0]
            own = -2.0 * np.bincount(self.bin_of_feature, _squares(w, parts.x_c), self.own)
            gradient[: self.groups] = np.bincount(self.group_of, own, self.groups)
            gradient[self.groups : at] = self.method.spread * own
        else:
            for i, slope_c in enumerate(parts.slopes_c):
                gradient[i] = h.signal * _dot(g * parts.by_c, slope_c)
        if self.n_real:
            w = h.signal * g * parts.by_r * parts.slope_r
            gradient[at : at + self.n_real] = -2.0 * np.bincount(
                self.bin_of_real, _squares(w, parts.x), self.n_real
            )  # r² depends on log ℓ_j as ℓ_j^{−2}
        at += self.n_real
        gradient[at] = h.signal * _dot(g, parts.k)
        gradient[at + 1] = h.noise * (np.trace(g) if self.known is None else np.diag(g)[np.isnan(self.known)].sum())
        if self.mixed:
            gradient[-1] = h.signal * _dot(g, parts.by_rho)
        return gradient


def fit(
    space: Space,
    points: Points,
    y: Array,
    starts: Sequence[Hyper],
    method: Method,
    *,
    known: Array | None = None,
    fixed: float | None = None,
) -> Hyper:
    """Return the hyperparameters of the highest posterior found from some starts; the noise is as in `LogPosterior`."""
    hyper, _ = fit_and_value(space, points, y, starts, method, known=known, fixed=fixed)
    return settled(space, points, y, hyper, method, known=known, fixed=fixed)


def fit_and_value(
    space: Space,
    points: Points,
    y: Array,
    starts: Sequence[Hyper],
    method: Method,
    *,
    known: Array | None = None,
    fixed: float | None = None,
) -> tuple[Hyper, float]:
    """Return the hyperparameters before `settled` reconsiders them, and their log posterior."""
    posterior = LogPosterior(space, points, y, method, known=known, fixed=fixed)
    hyper, value = maximised(posterior, starts)
    if method.climbs == "several" and posterior.n_real and not posterior.combinatorial and not posterior.tied:
        return climbed_further(posterior, hyper, value)
    return hyper, value


def settled(
    space: Space,
    points: Points,
    y: Array,
    hyper: Hyper,
    method: Method,
    *,
    known: Array | None = None,
    fixed: float | None = None,
) -> Hyper:
    """Return a fit, or that under the other prior if it explains the values mostly by noise (`Method`)."""
    other = replace(method, lengthscale_prior="scaled")
    unclear = method.lengthscale_prior == "either" and fixed is None and len(y) >= ENOUGH
    if not unclear or not len(space.combinatorial):
        return hyper
    long = np.full_like(hyper.combinatorial_lengthscales, SCALED_PRIOR[0] * math.sqrt(len(space.combinatorial)))
    starts = [hyper, replace(hyper, combinatorial_lengthscales=long, noise=0.5)]
    found, _ = fit_and_value(space, points, y, starts, other, known=known)
    return found if found.noise > MOSTLY * (found.noise + found.signal) else hyper


def climbed_further(posterior: LogPosterior, hyper: Hyper, value: float) -> tuple[Hyper, float]:
    """Return what further climbs lead to, each from the last one's end with one more short real lengthscale.

    The posterior of many lengthscales has many maxima. Most of them are too simple: they take the effect of a
    variable for noise.
    """
    for _ in range(MORE_CLIMBS):
        starts = []
        for j in posterior.promising(hyper).tolist():
            lengths = hyper.real_lengthscales.copy()
            lengths[j] = SHORT
            starts.append(replace(hyper, real_lengthscales=lengths))
        if not starts:
            break
        best = max(starts, key=lambda start: posterior(posterior.pack(start))[0])
        found, higher = maximised(posterior, [best])
        if higher <= value + GAIN:
            break
        hyper, value = found, higher
    return hyper, value


def maximised(posterior: LogPosterior, starts: Sequence[Hyper]) -> tuple[Hyper, float]:
    """Return the hyperparameters where a posterior is highest, as far as some starts lead, and its log there."""
    from scipy.optimize import minimize  # slow to import, so not before the first fit

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
    return posterior.unpack(np.asarray(best.x)), -float(best.fun)
