"""Paths: functions drawn from a posterior, which can be evaluated anywhere.

A function is drawn from the prior as a sum of random waves, and corrected by what the data say of it (Wilson et al.,
"Pathwise conditioning of Gaussian processes", 2021): f(z) + k(z, Z)·(K + noise)⁻¹·(y − f(Z) − ε).

The frequencies of Matérn-5/2 follow Student's t with 5 degrees of freedom. All distances of the kernel are those of
coordinates (`Points.combinatorial`, `Points.reals`), so a category is a direction like any other.

Shapes: m points, n observations, s functions, w waves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounce.gp.kernels import Kernel
from bounce.gp.linalg import Array, product, solve
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.spaces.kinds import Codes

WAVES = 256  # of each part of the kernel; they matter only where there are no data
DEGREES = 5.0  # twice the smoothness of Matérn-5/2
BLOCK = 4096  # points at a time, which bounds the memory


@dataclass(frozen=True, eq=False)
class _Waves:
    """Random waves whose covariance is one part of the kernel, on average."""

    frequencies: Array
    """(coordinates, w)"""
    phases: Array
    variance: float

    def __call__(self, x: Array) -> Array:
        """Return the waves (m, w) at coordinates (m, coordinates)."""
        waves = product(x, self.frequencies)
        waves += self.phases
        np.cos(waves, out=waves)
        waves *= np.sqrt(2.0 * self.variance / len(self.phases))
        return waves


class Paths:
    """The posterior mean and s functions drawn from the posterior, without noise."""

    def __init__(self, gp: GP, y: Array, s: int, *, rng: np.random.Generator, mean: float = 0.0) -> None:
        self._kernel, self._points, self._mean = gp.kernel, gp.points, mean
        self._waves = _waves(gp.kernel, gp.points, rng=rng)
        count = sum(len(waves.phases) for waves in self._waves)
        self._amplitudes = rng.standard_normal((count, s))
        prior = self._prior(gp.points)
        noise = np.sqrt(gp.noise)[:, None] * rng.standard_normal((len(y), s))
        centred = (y - mean)[:, None]
        self._weights = solve(gp.factor, np.concatenate([centred, centred - prior - noise], axis=1))

    def _prior(self, points: Points) -> Array:
        """Return the functions (m, s) before the data."""
        x = np.concatenate(_coordinates(self._kernel, points), axis=1)
        return product(np.concatenate([waves(x) for waves in self._waves], axis=1), self._amplitudes)

    def __call__(self, codes: Codes) -> Array:
        """Return the posterior mean and the functions (m, 1 + s) at points."""
        found = np.empty((len(codes), self._weights.shape[1]))
        for start in range(0, len(codes), BLOCK):
            points = Points(codes[start : start + BLOCK])
            values = product(self._kernel(points, self._points), self._weights)
            values[:, 1:] += self._prior(points)
            found[start : start + BLOCK] = values
        found += self._mean
        return found


def _coordinates(kernel: Kernel, points: Points) -> tuple[Array, Array]:
    """Return the coordinates of combinatorial bins and of reals, in lengthscales."""
    space, hyper = kernel.space, kernel.hyper
    x, bins = points.combinatorial(space)
    lengthscales = hyper.combinatorial_lengthscales
    stretch = hyper.stretch(space)
    first = lengthscales[0] if len(lengthscales) else 1.0
    own = np.full(len(space), first) if stretch is None else first / stretch
    reals, real_bins = points.reals(space)
    return x / own[space.combinatorial][bins], reals / hyper.real_lengthscales[real_bins]


def _waves(kernel: Kernel, points: Points, *, rng: np.random.Generator) -> list[_Waves]:
    """Draw the waves of every part of the kernel: one part, or three of a mixture."""
    sizes = [x.shape[1] for x in _coordinates(kernel, points)]
    hyper = kernel.hyper
    parts = [((True, True), hyper.signal)]
    if kernel.space.is_mixed:
        alone = hyper.signal * (1.0 - hyper.rho)
        parts = [((True, True), hyper.signal * hyper.rho), ((True, False), alone), ((False, True), alone)]
    found = []
    for uses, variance in parts:
        frequencies = [
            rng.standard_normal((size, WAVES)) / np.sqrt(rng.chisquare(DEGREES, WAVES) / DEGREES) * used
            for size, used in zip(sizes, uses, strict=True)
        ]
        found.append(_Waves(np.concatenate(frequencies), rng.uniform(0.0, 2.0 * np.pi, WAVES), variance))
    return found
