"""Thompson sampling as in TuRBO: how its Gaussian process is fitted, and how values at candidates are drawn from it.

BAxUS and LA-MCTS, which run TuRBO inside, share it.

The invariant: a draw has the mean and the covariance of the posterior, with the noise of an observation, however many
candidates there are.

Shapes: x (n, d) data, t (n,) targets of deviation 1, z (m, d) candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from bounce.baselines.rivals.gaussian import Gaussian, Matern52
from bounce.gp.kernels import matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, blocks, cholesky, inverse, solve

LENGTHSCALES = (0.005, 2.0)
SIGNAL, NOISE = (0.05, 20.0), (5e-4, 0.2)
START = (0.5, 1.0, 0.005)  # lengthscale, signal variance and noise variance where a fit starts
STEPS, RATE = 50, 0.1  # of Adam
EXACT = 1000  # more candidates than these get a draw by random features and not by a Cholesky factor
FEATURES = 1024  # random frequencies, each with a sine and a cosine


@dataclass(frozen=True, eq=False)
class Model:
    """A Gaussian process with a constant mean."""

    process: Gaussian
    """Of targets from which the mean is subtracted."""
    mean: float

    @property
    def weights(self) -> Array:
        """The lengthscales, scaled to a geometric mean of 1."""
        theta = self.process.theta
        return np.asarray(np.exp(theta - theta.mean()))

    def sample(self, z: Array, *, rng: np.random.Generator) -> Array:
        """Draw the values (m,) that would be observed at candidates, jointly and with their noise (`likelihood`)."""
        gp = self.process
        f = gp.sample(z, 1, rng=rng)[0] if len(z) <= EXACT else pathwise(gp, z, rng=rng)
        noise = np.sqrt(gp.noise) * rng.standard_normal(len(z))
        return np.asarray(self.mean + f + noise)


def centred(y: Array) -> tuple[Array, float, float]:
    """Return values less their median and divided by their standard deviation, and these two.

    The published code takes a deviation below 1e-6 for none; here that is relative to the values, whatever their scale.
    """
    centre, scale = float(np.median(y)), float(y.std())
    scale = scale if scale > 1e-14 * float(np.abs(y).max()) else 1.0
    return (y - centre) / scale, centre, scale


def fit(
    x: Array,
    t: Array,
    lengthscales: tuple[float, float] = LENGTHSCALES,
    starts: Sequence[tuple[float, float, float]] = (START,),
) -> Model:
    """Fit as published: 50 steps of Adam on the logits of all parameters between their bounds, and on the mean.

    Of several starts (lengthscale, signal variance, noise variance), the one with the lowest loss on its way counts.
    """
    d = x.shape[1]
    covariance = Matern52(d, lengthscales)
    low, high = np.array([*[lengthscales] * d, SIGNAL, NOISE]).T
    ways = [_descend(x, t, (np.array([*[start[0]] * d, *start[1:]]), low, high)) for start in starts]
    logs, mean, _ = min(ways, key=lambda way: way[2])
    signal, noise = np.exp(logs[-2:])
    return Model(Gaussian(covariance, logs[:-2], float(signal), float(noise), x, t - mean, constant=False), mean)


def _descend(x: Array, t: Array, limits: tuple[Array, Array, Array]) -> tuple[Array, float, float]:
    """Return the logarithms of the parameters and the mean after 50 steps of Adam, and the average loss on the way."""
    start, low, high = limits
    span = high - low
    p = np.append(logit((start - low) / span), 0.0)  # the last one is the mean
    moment, square, total = np.zeros_like(p), np.zeros_like(p), 0.0
    for step in range(1, STEPS + 1):
        share = expit(p[:-1])
        value = low + span * share
        lost, by_log, by_mean = loss(x, t - p[-1], np.log(value))
        gradient = np.append(by_log * span * share * (1.0 - share) / value, by_mean) / len(x)
        moment += 0.1 * (gradient - moment)
        square += 0.001 * (gradient**2 - square)
        p -= RATE * (moment / (1.0 - 0.9**step)) / (np.sqrt(square / (1.0 - 0.999**step)) + 1e-8)
        total += lost
    return np.log(low + span * expit(p[:-1])), float(p[-1]), total / STEPS


def loss(x: Array, residual: Array, logs: Array) -> tuple[float, Array, float]:
    """Return the negative log likelihood without its constant, and its gradients by the logarithms and the mean."""
    signal, noise = np.exp(logs[-2:])
    scaled = x * np.exp(-logs[:-2])
    r2 = squared_distance(scaled, scaled)
    np.fill_diagonal(r2, 0.0)
    k, slope = matern52_and_slope(r2)
    k *= signal
    diagonal = np.diag_indices(len(x))
    k[diagonal] += noise
    factor = cholesky(k)
    w = inverse(factor)
    alpha = w @ residual
    value = 0.5 * float(residual @ alpha) + float(np.log(np.diag(factor)).sum())
    w -= np.outer(alpha, alpha)  # twice ∂loss/∂k
    by_noise = 0.5 * noise * float(np.trace(w))
    by_signal = 0.5 * float(np.vdot(w, k)) - by_noise  # k has the noise on its diagonal
    w *= slope
    # ∂r²/∂log ℓ_j = −2·(x_aj − x_bj)²/ℓ_j², and Σ_ab w_ab (x_aj − x_bj)² = 2·(Σ_a w_a. x_aj² − Σ_ab w_ab x_aj x_bj)
    squares = np.einsum("a,aj,aj->j", w.sum(axis=1), scaled, scaled) - np.einsum("aj,aj->j", scaled, w @ scaled)
    return value, np.concatenate([-2.0 * signal * squares, [by_signal, by_noise]]), -float(alpha.sum())


def pathwise(gp: Gaussian, z: Array, *, rng: np.random.Generator) -> Array:
    """Draw a function at many rows (m,) by Matheron's rule: a draw of the prior, moved by what the data say.

    The draw of the prior is a sum of waves. The frequencies of a Matérn-5/2 covariance have a Student distribution with
    5 degrees of freedom; over their draw, means and covariances are those of the posterior (Wilson et al., Efficiently
    Sampling Functions from Gaussian Process Posteriors, ICML 2020).
    """
    degrees = 5
    frequencies = rng.standard_normal((FEATURES, z.shape[1])) * np.exp(-gp.theta)
    frequencies /= np.sqrt(rng.chisquare(degrees, FEATURES) / degrees)[:, None]
    cosines, sines = (np.sqrt(gp.signal / FEATURES) * rng.standard_normal((2, FEATURES))).astype(np.float32)
    waves = frequencies.T.astype(np.float32)  # a third of the time, and far more digits than a random draw needs

    def prior(rows: Array) -> Array:
        phase = rows.astype(np.float32) @ waves
        return np.asarray(np.cos(phase) @ cosines + np.sin(phase) @ sines, dtype=np.float64)

    noise = np.sqrt(gp.noise) * rng.standard_normal(len(gp.x))
    update = solve(gp.factor, (gp.y - gp.mean - prior(gp.x) - noise)[:, None])[:, 0]
    f = np.empty(len(z))
    for rows in blocks(len(z), max(FEATURES, len(gp.x))):
        f[rows] = gp.mean + prior(z[rows]) + gp.signal * (gp.covariance(gp.theta, z[rows], gp.x) @ update)
    return f
