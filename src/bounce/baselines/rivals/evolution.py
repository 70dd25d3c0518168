"""CMA-ES in a unit box: several independent runs side by side, each with its own mean, step size and covariance.

A run samples a population around its mean, and moves mean, step size and covariance towards the better half and away
from the worse half (active CMA-ES; Hansen: The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772, 2016; equation
numbers are those of the tutorial). Samples are unbounded; a smooth map folds them into the box.

The invariant: runs do not influence each other, whatever they run beside.

Shapes: R runs, λ samples, d variables; mean (R, d), covariance (R, d, d), samples (R, λ, d), values (R, λ).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bounce.gp.linalg import Array

BELOW, ABOVE = 0.05, 0.1  # the map bends within these distances of the box's ends


def into_box(u: Array) -> Array:
    """Map numbers into [0, 1]: the identity in the middle, quadratic at the ends, where it turns back."""
    span = 1.0 + BELOW + ABOVE
    folded = np.abs((u + BELOW + span) % (2.0 * span) - span) - BELOW  # mirrored at −BELOW and 1 + ABOVE
    x = np.where(folded < BELOW, (folded + BELOW) ** 2 / (4.0 * BELOW), folded)
    x = np.where(folded > 1.0 - ABOVE, 1.0 - (1.0 + ABOVE - folded) ** 2 / (4.0 * ABOVE), x)
    return np.clip(x, 0.0, 1.0)


def out_of_box(x: Array) -> Array:
    """Return numbers that `into_box` maps to x."""
    u = np.where(x < BELOW, 2.0 * np.sqrt(BELOW * x) - BELOW, x)
    return np.where(x > 1.0 - ABOVE, 1.0 + ABOVE - 2.0 * np.sqrt(ABOVE * (1.0 - x)), u)


def evolve(
    f: Callable[[Array], Array],
    start: Array,
    *,
    sigma: float,
    population: int,
    steps: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return the best samples (R, d) of runs from starts (R, d), and their values (R,), the lower the better."""
    runs, d = start.shape
    n = population // 2
    raw = math.log((population + 1) / 2) - np.log(np.arange(1, population + 1))  # eq. 49
    mass = raw[:n].sum() ** 2 / (raw[:n] ** 2).sum()
    mass_worse = raw[n:].sum() ** 2 / (raw[n:] ** 2).sum()
    c_c = (4 + mass / d) / (d + 4 + 2 * mass / d)  # eq. 56
    c_1 = 2 / ((d + 1.3) ** 2 + mass)  # eq. 57
    c_mu = min(1 - c_1, 2 * (0.25 + mass + 1 / mass - 2) / ((d + 2) ** 2 + mass))  # eq. 58
    c_s = (mass + 2) / (d + mass + 5)  # eq. 55
    damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (d + 1)) - 1) + c_s  # eq. 55
    least = min(1 + c_1 / c_mu, 1 + 2 * mass_worse / (mass + 2), (1 - c_1 - c_mu) / (d * c_mu))  # eq. 50 to 52
    weights = np.where(raw >= 0, raw / raw[raw >= 0].sum(), least * raw / -raw[raw < 0].sum())  # eq. 53
    length = math.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))  # E‖N(0, I)‖

    mean, size = out_of_box(start), np.full(runs, sigma)
    covariance = np.tile(np.eye(d), (runs, 1, 1))
    path_s, path_c = np.zeros((runs, d)), np.zeros((runs, d))
    best, lowest = start.copy(), np.full(runs, np.inf)
    for step in range(1, steps + 1):
        values, axes = np.linalg.eigh(covariance)
        root = np.sqrt(np.maximum(values, 1e-20))
        normal = rng.standard_normal((runs, population, d))
        y = (normal * root[:, None]) @ axes.transpose(0, 2, 1)  # eq. 39
        x = into_box(mean[:, None] + size[:, None, None] * y)  # eq. 40
        fitness = f(x)
        order = np.argsort(fitness, axis=1, kind="stable")
        y, normal = (np.take_along_axis(part, order[:, :, None], axis=1) for part in (y, normal))
        first = np.take_along_axis(fitness, order[:, :1], axis=1)[:, 0]
        better = first < lowest
        lowest, best[better] = np.where(better, first, lowest), x[better, order[better, 0]]

        towards = np.einsum("i,rid->rd", weights[:n], y[:, :n])  # eq. 41
        mean = mean + size[:, None] * towards  # eq. 42
        white = np.einsum("rde,re->rd", axes, np.einsum("i,rie->re", weights[:n], normal[:, :n]))  # C^(−1/2)·y_w
        path_s = (1 - c_s) * path_s + math.sqrt(c_s * (2 - c_s) * mass) * white  # eq. 43
        norm = np.linalg.norm(path_s, axis=1)
        size = size * np.exp(np.minimum(1.0, c_s / damping * (norm / length - 1)))  # eq. 44
        calm = norm / math.sqrt(1 - (1 - c_s) ** (2 * step)) < (1.4 + 2 / (d + 1)) * length
        path_c = (1 - c_c) * path_c + (calm * math.sqrt(c_c * (2 - c_c) * mass))[:, None] * towards  # eq. 45
        lengths = np.maximum(np.einsum("rid,rid->ri", normal, normal), 1e-20)
        each = np.where(weights >= 0, weights, weights * d / lengths)  # eq. 46
        kept = 1 + c_1 * (1 - calm) * c_c * (2 - c_c) - c_1 - c_mu * weights.sum()
        covariance = (  # eq. 47
            kept[:, None, None] * covariance
            + c_1 * path_c[:, :, None] * path_c[:, None]
            + c_mu * (y * each[:, :, None]).transpose(0, 2, 1) @ y
        )
    return best, lowest
