"""The posterior: a Gaussian process conditioned on points, updated row by row as points come.

The invariant: a process that was extended is the one that is built from all points at once, up to rounding.

Shapes: Z (n, d) latent codes, y (n,) targets, noise (n,) variances, L (n, n) the lower Cholesky factor of K + noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.gp.kernels import Kernel
from bounce.gp.linalg import Array, cholesky, product, solve, solve_lower
from bounce.gp.points import Points


@dataclass(frozen=True, eq=False)
class GP:
    """A Gaussian process conditioned on points: the kernel, the points and the factor of their covariance."""

    kernel: Kernel
    points: Points
    factor: Array
    noise: Array
    """The noise variance of each observation."""

    @classmethod
    def at(cls, kernel: Kernel, points: Points, noise: Array | None = None) -> GP:
        """Condition on noisy observations, with the fitted noise unless another one is given for each."""
        own = np.full(len(points), kernel.hyper.noise) if noise is None else noise
        covariance = kernel(points, points)
        covariance[np.diag_indices(len(points))] += own
        return cls(kernel, points, cholesky(covariance), own)

    @cached_property
    def scaled(self) -> Array:
        """The reals of its points, in lengthscales."""
        return self.kernel.scaled(self.points.z)

    @cached_property
    def offset(self) -> Array | None:
        """What its points add to the squared distances of reals, beside those in `scaled`."""
        return self.kernel.real_offset(self.points)

    def extended(self, points: Points, *, noise: Array | float) -> GP:
        """Condition on more points, with one noise variance for all or one each.

        The factor gets new rows, and the old ones stay as they are.
        """
        if not len(points):
            return self
        n, m = len(self.points), len(points)
        cross = self.whitened(self.kernel(points, self.points))
        covariance = self.kernel(points, points) - product(cross.T, cross)
        covariance[np.diag_indices(m)] += noise
        factor = np.zeros((n + m, n + m), order="F")
        factor[:n, :n] = self.factor
        factor[n:, :n] = cross.T
        factor[n:, n:] = cholesky(covariance)
        return GP(self.kernel, self.points.joined(points), factor, np.append(self.noise, np.broadcast_to(noise, m)))

    def whitened(self, cross: Array) -> Array:
        """Return L⁻¹·kᵀ (n, m) of cross-covariances k (m, n)."""
        return solve_lower(self.factor, cross.T)

    def mean(self, y: Array) -> float:
        """Return the constant prior mean of highest likelihood: 1ᵀK⁻¹y / 1ᵀK⁻¹1."""
        white = solve_lower(self.factor, np.stack([y, np.ones_like(y)], axis=1))
        return float(white[:, 0] @ white[:, 1] / (white[:, 1] @ white[:, 1]))

    def left_out(self, y: Array) -> Array:
        """Return by how much each target misses its posterior mean given all others: [K⁻¹y]ᵢ / [K⁻¹]ᵢᵢ."""
        inverse = solve_lower(self.factor, np.eye(len(y)))
        return np.asarray(solve(self.factor, y[:, None])[:, 0] / (inverse**2).sum(axis=0))

    def believed_best(self, y: Array) -> float:
        """Return the lowest posterior mean at its own points: y − noise·K⁻¹y."""
        return float((y - self.noise * solve(self.factor, y[:, None])[:, 0]).min())

    def posterior(self, points: Points, y: Array) -> tuple[Array, Array]:
        """Return posterior mean and variance at points, given the targets."""
        v = self.whitened(self.kernel(points, self.points))
        mean = v.T @ solve_lower(self.factor, y[:, None])[:, 0]
        return mean, np.maximum(self.kernel.prior - np.einsum("nm,nm->m", v, v), 0.0)
