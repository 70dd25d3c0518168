"""Probabilistic reparameterisation: gradients for an acquisition function of discrete variables.

The reparameterised acquisition function α(θ) = E[EI(Z)] of `expectation` is maximised by Adam from many starts, and
what is evaluated is the best of one draw Z from each of the latent points θ that were found.

S. Daulton, X. Wan, D. Eriksson, M. Balandat, M. A. Osborne, E. Bakshy: Bayesian Optimization over Discrete and Mixed
Spaces via Probabilistic Reparameterization, NeurIPS 2022. Values from the published code, facebookresearch/bo_pr.

Shapes: n data, B latent points θ (B, E).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bounce.baselines.rivals.expectation import RESTARTS, Analytic, Expectation, Improvement, Layout, MonteCarlo
from bounce.baselines.rivals.gaussian import Fit, Gaussian
from bounce.baselines.rivals.mixed import Mixed
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes

RAW = 1024  # latent points, of which the starts are chosen
STEPS = 200  # of Adam
RATE = 0.025
SAMPLES = 128  # draws of each latent point
DECAY = 0.7  # of the moving average that is the score function's baseline
TOGETHER, RAW_TOGETHER = 5, 32  # latent points that share a baseline, among the starts and before them
ENUMERATED = 4096  # configurations up to which the expectation is exact, if there are no reals
LARGEST = 2**21  # configurations times values of variables, for what is kept of them
NOISE = 1e-6  # the fixed noise variance of standardised values: published as 1e-7, which GPyTorch raises to 1e-6


def starts(theta: Array, value: Array, n: int, *, rng: np.random.Generator) -> Array:
    """Choose n latent points with weights exp(value/best − 1) and the best one, as BoTorch does for values ≥ 0."""
    best = float(value.max())
    if not best > 0.0:
        return np.asarray(theta[rng.permutation(len(theta))[:n]])
    positive = np.flatnonzero(value > 0.0)
    if len(positive) < n:
        others = rng.permutation(np.flatnonzero(value <= 0.0))[: n - len(positive)]
        return np.asarray(theta[np.append(positive, others)])
    share = 1e-4
    while (value >= share * best).sum() < n:
        share *= 0.1
    allowed = np.flatnonzero(value >= share * best)
    weights = np.exp(value[allowed] / best - 1.0)
    chosen = rng.choice(allowed, n, replace=False, p=weights / weights.sum())
    if int(value.argmax()) not in chosen.tolist():
        chosen[-1] = int(value.argmax())
    return np.asarray(theta[chosen])


def ascend(expectation: Expectation, theta: Array, hidden: float) -> Array:
    """Return latent points after the steps of Adam, from starts (B, E).

    Adam moves free numbers that are clipped to [0, 1] where they are used. The baseline is a moving average of the
    mean value of the latent points that go together; `hidden` is where it starts.
    """
    free, first, second = theta.copy(), np.zeros_like(theta), np.zeros_like(theta)
    batch = np.arange(len(theta)) // TOGETHER
    average = np.full(batch[-1] + 1, hidden)
    for i in range(1, STEPS + 1):
        value, gradient = expectation.with_gradient(np.clip(free, 0.0, 1.0), average[batch])
        means = np.bincount(batch, weights=value) / np.bincount(batch)
        average += (1.0 - DECAY) * (means - average)
        first += 0.1 * (gradient - first)
        second += 0.001 * (gradient**2 - second)
        free += RATE * (first / (1.0 - 0.9**i)) / (np.sqrt(second / (1.0 - 0.999**i)) + 1e-8)
    return np.clip(free, 0.0, 1.0)


def sobol(n: int, d: int, *, rng: np.random.Generator) -> Array:
    """Return n scrambled Sobol points; pseudo-random ones where there are more columns than the sequence has."""
    from scipy.stats.qmc import Sobol  # slow to import

    if not 0 < d <= Sobol.MAXDIM:
        return rng.random((n, d))
    own = np.random.default_rng(rng.integers(2**63))
    return np.asarray(Sobol(d, scramble=True, rng=own).random(n))


def fitted(layout: Layout, features: Array, targets: Array) -> Gaussian:
    """Return the process of the highest likelihood.

    The published fit starts at lengthscales of 10. On the scale of logarithms, that start leads to white noise. Two
    others, at 1.4 and 4.7, lead to the published optimum.
    """
    covariance = Mixed(layout.numbers, layout.last - layout.numbers, layout.counts)
    fit = Fit(
        signal=(1e-6, 1e6),
        noise=(NOISE, NOISE),
        start_signal=float(np.log(2.0)),
        start_noise=NOISE,
        starts=[covariance.start + 1.2],
    )
    return fit(covariance, features, targets)


class Reparameterisation(Rival):
    """Expected improvement, maximised by probabilistic reparameterisation."""

    name: ClassVar[str] = "pr"

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        layout, targets = Layout(self.space), standardised(y)
        gp = fitted(layout, layout.features(x), targets).believing(layout.features(pending))
        return self.maximise(layout, Improvement(gp, float(targets.min())), rng=rng)

    def maximise(self, layout: Layout, improvement: Improvement, *, rng: np.random.Generator) -> Codes:
        """Return the point (D,) that the reparameterised acquisition function leads to."""
        expectation = self.expectation(layout, improvement, rng=rng)
        raw = sobol(RAW, layout.size, rng=rng)
        values = expectation(raw)
        hidden = 0.0
        for mean in values.reshape(-1, RAW_TOGETHER).mean(axis=1):
            hidden += (1.0 - DECAY) * (float(mean) - hidden)
        theta = ascend(expectation, starts(raw, values, RESTARTS, rng=rng), hidden)
        drawn = layout.draw(theta, rng.random((len(theta), 1, len(layout.top) + len(layout.counts))))
        codes = layout.codes(theta[:, : layout.reals], drawn[0][:, 0], drawn[1][:, 0])
        return np.asarray(codes[int(improvement(layout.features(codes)).argmax())])

    @staticmethod
    def expectation(layout: Layout, improvement: Improvement, *, rng: np.random.Generator) -> Expectation:
        """Return the exact expectation if there are few configurations, else a mean over draws."""
        counts = np.append(layout.top + 1.0, layout.counts)
        size = float(np.prod(counts))
        if size <= (SAMPLES if layout.reals else ENUMERATED) and size * counts.sum() <= LARGEST:
            return Analytic(layout, improvement)
        uniform = np.concatenate([sobol(SAMPLES, d, rng=rng) for d in (len(layout.top), len(layout.counts))], axis=1)
        return MonteCarlo(layout, improvement, uniform, rng=rng)
