"""BODi: a Gaussian process on the Hamming distances to a dictionary of anchors.

Every ask draws a new *dictionary* of 128 *anchors* (`dictionaries`). The *features* of a point are the shares of
entries in which it agrees with each anchor; reals follow as they are. The model is a Matérn-5/2 process with a
lengthscale for each feature. Expected improvement is maximised by best-neighbour climbs from the best of many
candidates; with reals, climbs alternate with CMA-ES (`ascent`).

The invariant: the model sees a point through its features and reals alone.

`Bodi` is the method of the papers. `BodiPublished` has what differs in the published code: its two samplers of
anchors, its initial design, and inputs that are normalised before they are compared with anchors.

Shapes: n observations of D variables; z (n, m + r) features and reals, y (n,) standardised values.

Deshwal, Ament, Balandat, Bakshy, Doppa, Eriksson: Bayesian Optimization over High-Dimensional Combinatorial Spaces via
Dictionary-based Embeddings. AISTATS 2023.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy.special import expit

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.ascent import Improvement, maximise
from bounce.baselines.rivals.dictionaries import Dictionary, Embedding, described, normalised_levels, published
from bounce.baselines.rivals.gaussian import HALF_LOG_2PI, Gaussian, Matern52
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.kernels import matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, cholesky, inverse, product
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

ANCHORS = 128
LEAST = np.array([1e-6, 1e-4])  # of signal and noise variance
SHORTEST = 1e-4  # lengthscale: the shares of two points differ by more, and distances stay exact
SHAPES, RATES = np.array([2.0, 0.9]), np.array([0.15, 10.0])  # of their gamma priors
ITERATIONS = 500  # of L-BFGS; most fits converge within 200


def _natural(raw: Array) -> Array:
    """Return lengthscales, signal and noise variance: the softplus of numbers, plus the least variances."""
    natural = np.logaddexp(0.0, raw)
    natural[-2:] += LEAST
    natural[:-2] = np.maximum(natural[:-2], SHORTEST)
    return natural


def loss(z: Array, y: Array, parameters: Array) -> tuple[float, Array]:
    """Return the negative log posterior per observation, and its gradient.

    Parameters are those of the published fit: numbers whose softplus are the lengthscales, the signal and the noise
    variance (above `LEAST`), then the mean. The posterior has many optima; a fit ends at that of the published code
    only if it takes the same path.
    """
    raw, mean = parameters[:-1], parameters[-1]
    natural = _natural(raw)
    lengthscales, (signal, noise) = natural[:-2], natural[-2:]
    scaled = z / lengthscales
    r2 = squared_distance(scaled, scaled)
    np.fill_diagonal(r2, 0.0)
    k, slope = matern52_and_slope(r2)
    total = signal * k
    total[np.diag_indices(len(y))] += noise
    factor = cholesky(total)
    inverted = inverse(factor)
    alpha = inverted @ (y - mean)
    value = 0.5 * float((y - mean) @ alpha) + float(np.log(np.diag(factor)).sum()) + len(y) * HALF_LOG_2PI
    value -= float(((SHAPES - 1.0) * np.log(natural[-2:]) - RATES * natural[-2:]).sum())
    weights = 0.5 * (inverted - np.outer(alpha, alpha))  # ∂value/∂K
    by_variances = np.array([np.einsum("ij,ij->", weights, k), np.trace(weights)])
    weights *= slope
    # ∂r²/∂ℓ_j = −2·(z_aj − z_bj)²/ℓ_j³, and Σ_ab w_ab·(s_a − s_b)² = 2·(Σ_a w_a.·s_a² − sᵀ·w·s)
    squares = np.einsum("a,aj,aj->j", weights.sum(axis=1), scaled, scaled)
    squares -= np.einsum("aj,aj->j", scaled, product(weights, scaled))
    gradient = np.concatenate(
        [-4.0 * signal * squares / lengthscales, by_variances - (SHAPES - 1.0) / natural[-2:] + RATES]
    )
    return value / len(y), np.append(gradient * expit(raw), -alpha.sum()) / len(y)


def fitted(z: Array, y: Array) -> Gaussian:
    """Return the process of the highest posterior density, from where the published fit starts."""
    from scipy.optimize import minimize  # slow to import

    start = np.zeros(z.shape[1] + 3)
    found = minimize(lambda p: loss(z, y, p), start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    natural = _natural(found[:-1])
    covariance = Matern52(z.shape[1], (SHORTEST, 1e9))
    signal, noise = natural[-2:].tolist()
    return Gaussian(covariance, np.log(natural[:-2]), signal, noise, z, y - found[-1], constant=False)


class Bodi(Rival):
    """BODi as the papers describe it."""

    name: ClassVar[str] = "bodi"

    def _embedding(self, x: Codes, *, rng: np.random.Generator) -> Embedding:
        """Return the embedding by a new dictionary."""
        space = self.space
        sizes, r = space.cardinalities[space.combinatorial], len(space.reals)
        anchors = described(sizes, ANCHORS, rng=rng) if len(sizes) else np.empty((0, 0))
        return Embedding(space, Dictionary(anchors, sizes), np.zeros(r), np.ones(r))

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        embedding = self._embedding(x, rng=rng)
        z = embedding(x)
        targets = standardised(y) * math.sqrt((len(y) - 1) / len(y))  # the published deviation divides by n − 1
        improvement = Improvement(fitted(z, targets), embedding, pending, rng=rng)
        return maximise(improvement, x[np.argmin(y)], rng=rng)


class BodiPublished(Bodi):
    """BODi with the quirks of the published code."""

    name: ClassVar[str] = "bodi-published"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._initial = design(space, initial, seed=seed)

    def _embedding(self, x: Codes, *, rng: np.random.Generator) -> Embedding:
        """Return the embedding by a new dictionary, after every input was normalised by its range in the data."""
        space = self.space
        sizes = space.cardinalities[space.combinatorial]
        anchors = published(sizes, ANCHORS, rng=rng) if len(sizes) else np.empty((0, 0))
        levels = normalised_levels(sizes, x[:, space.combinatorial]) if len(sizes) else np.empty(0)
        low, high = x[:, space.reals].min(axis=0), x[:, space.reals].max(axis=0)
        varies = high - low >= 1e-8  # the published library leaves a column alone that varies less
        dictionary = Dictionary(anchors, sizes, levels)
        return Embedding(space, dictionary, np.where(varies, low, 0.0), np.where(varies, high - low, 1.0))


def design(space: Space, n: int, *, seed: int) -> Codes:
    """Return the published initial design: on bits the number of ones is uniform in 1..D−2, reals are a Sobol sequence.

    Other variables are uniform.
    """
    rng = np.random.default_rng([seed, n])
    codes = space.sample(n, rng=rng)
    bits, reals = space.of_kind(Kind.BINARY), space.reals
    if len(bits):
        codes[:, bits] = published(space.cardinalities[bits], n, rng=rng)
    if len(reals):
        from scipy.stats.qmc import Sobol  # slow to import

        bits_of_n = max(1, math.ceil(math.log2(n)))
        codes[:, reals] = on_grid(Sobol(len(reals), scramble=True, rng=rng).random_base2(bits_of_n)[:n])
    return codes
