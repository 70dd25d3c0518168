"""Mixed: the covariance of reals, ordinals, bits and categories that probabilistic reparameterisation uses.

Without categories it is the product of a Matérn-5/2 of the reals and ordinals, with a lengthscale for each, and one of
the bits, with one lengthscale for all. With categories, whose kernel is exp(−mean of [a_j ≠ b_j]/ℓ_j), it is the
product plus the sum, each with a variance of its own.

The invariant: k(x, x) is the same for all x.

Shapes: rows (m, F) are features: numbers in [0, 1], then bits, then columns of zeros and one for categories.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.rivals.gaussian import Covariance, Matern52
from bounce.gp.kernels import matern52, matern52_and_slope, squared_distance
from bounce.gp.linalg import Array

LENGTHSCALES, CATEGORY_LENGTHSCALES = (0.1, 20.0), (1e-3, 20.0)


class Bits(Matern52):
    """Matérn-5/2 of bits with one lengthscale; the squared distances are integers, so its values are looked up."""

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        d = a.shape[1]
        # The product of signs ±1 is d − 2·distance: a small integer, exact in single precision.
        place = (2.0 * a - 1.0).astype(np.float32) @ (2.0 * b - 1.0).astype(np.float32).T
        place += d
        table = matern52((d - 0.5 * np.arange(2.0 * d + 1.0)) * np.exp(-2.0 * theta[0]))
        return table.take(place.astype(np.intp), mode="clip")


class Categories(Covariance):
    """exp(−mean of [a_j ≠ b_j]/ℓ_j) over categories, which come as columns of zeros and one."""

    def __init__(self, counts: NDArray[np.intp]) -> None:
        low, high = np.log(CATEGORY_LENGTHSCALES)
        self.bounds = np.tile([[low, high]], (len(counts), 1))
        self.start = np.zeros(len(counts))
        self._owner = np.repeat(np.arange(len(counts)), counts)  # the category of each column

    def _scaled(self, theta: Array, x: Array) -> Array:
        # Two points with other categories differ by 1 in two columns.
        return np.asarray(x * np.sqrt(0.5 * np.exp(-theta) / len(theta))[self._owner])

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        return np.exp(-squared_distance(self._scaled(theta, a), self._scaled(theta, b)))

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂log ℓ_j."""
        scaled = self._scaled(theta, x)
        w = weights * np.exp(-squared_distance(scaled, scaled))
        each = 2.0 * (
            np.einsum("a,aj,aj->j", w.sum(axis=1), scaled, scaled) - np.einsum("aj,aj->j", scaled, w @ scaled)
        )
        return np.asarray(np.bincount(self._owner, weights=each, minlength=len(theta)), dtype=np.float64)


class Mixed(Covariance):
    """The published product of parts: reals and ordinals (ARD), bits (one lengthscale), categories (ARD).

    With categories it is product + r·sum, and the published product has every part but the first squared, since its
    loop multiplies them twice. A squared part is a kernel of the same family.
    """

    def __init__(self, numbers: int, bits: int, counts: NDArray[np.intp]) -> None:
        """Take the number of columns of each sort: reals and ordinals, bits, and the values of each category."""
        last = numbers + bits
        every: list[tuple[Covariance, slice]] = []
        if numbers:
            every.append((Matern52(numbers, LENGTHSCALES), slice(0, numbers)))
        if bits:
            every.append((Bits(bits, LENGTHSCALES, shared=True), slice(numbers, last)))
        if len(counts):
            every.append((Categories(counts), slice(last, last + int(counts.sum()))))
        self.summed = len(counts) > 0
        self.powers = [2.0 if self.summed and i else 1.0 for i in range(len(every))]
        ends = np.cumsum([0, *(len(part.start) for part, _ in every)])
        self.parts = [(part, at, slice(ends[i], ends[i + 1])) for i, (part, at) in enumerate(every)]
        ratio = [[np.log(1e-4), np.log(1e4)]] if self.summed else []
        self.bounds = np.concatenate([*(part.bounds for part, _ in every), *np.reshape(ratio, (-1, 1, 2))])
        self.start = np.concatenate([*(part.start for part, _ in every), np.zeros(len(ratio))])

    def _each(self, theta: Array, a: Array, b: Array) -> list[Array]:
        return [part(theta[own], a[:, at], b[:, at]) for part, at, own in self.parts]

    def _ratio(self, theta: Array) -> float:
        return float(np.exp(theta[-1])) if self.summed else 0.0

    def _product(self, each: list[Array]) -> Array:
        return np.asarray(np.prod([k if p == 1.0 else k**p for k, p in zip(each, self.powers, strict=True)], axis=0))

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        each = self._each(theta, a, b)
        if len(each) == 1 and not self.summed:
            return each[0]
        return np.asarray(self._product(each) + self._ratio(theta) * np.sum(each, axis=0))

    def diagonal(self, theta: Array, x: Array) -> Array:
        """Return k(x, x) (n,)."""
        return np.full(len(x), 1.0 + self._ratio(theta) * len(self.parts))

    def _by_part(self, theta: Array, each: list[Array], q: int) -> Array:
        """Return ∂k/∂k_q."""
        power = [p - (i == q) for i, p in enumerate(self.powers)]
        factors = [k if p == 1.0 else k**p for k, p in zip(each, power, strict=True) if p]
        product = np.prod(factors, axis=0) if factors else 1.0
        return np.asarray(self.powers[q] * product + self._ratio(theta))

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂θ_j."""
        each = self._each(theta, x, x)
        found = [
            part.slopes(theta[own], x[:, at], weights * self._by_part(theta, each, q))
            for q, (part, at, own) in enumerate(self.parts)
        ]
        if self.summed:
            found.append(np.array([self._ratio(theta) * float(np.sum(weights * np.sum(each, axis=0)))]))
        return np.concatenate(found)

    def by_reals(self, theta: Array, z: Array, x: Array, weights: Array, reals: int) -> Array:
        """Return Σ_i w_mi ∂k(z_m, x_i)/∂z_m by the first columns (m, reals)."""
        _, at, own = self.parts[0]
        scale = np.exp(-theta[own])
        a, b = z[:, at] * scale, x[:, at] * scale
        w = 2.0 * weights * matern52_and_slope(squared_distance(a, b))[1]
        if len(self.parts) > 1 or self.summed:
            w *= self._by_part(theta, self._each(theta, z, x), 0)
        return np.asarray((w.sum(axis=1)[:, None] * a[:, :reals] - w @ b[:, :reals]) * scale[:reals])
