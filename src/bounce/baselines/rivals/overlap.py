"""Overlap: covariances of categories by the share of them that agree, alone and mixed with one of numbers.

The mixture of sum and product is that of Ru et al. (CoCaBO, ICML 2020), the transformed kernel that of Wan et al.
(Casmopolitan, ICML 2021).

The invariant: the codes of categories are compared, and never counted with.

Shapes: rows (n, d); in a mixture c columns of codes come first, and the numbers after them.
"""

from __future__ import annotations

import numpy as np

from bounce.baselines.rivals.gaussian import Covariance
from bounce.gp.linalg import Array, blocks


def matches(a: Array, b: Array) -> Array:
    """Return the share of columns (m, n) in which rows agree."""
    share = np.empty((len(a), len(b)))
    for part in blocks(len(a), b.size):
        share[part] = (a[part, None] == b).sum(axis=2, dtype=np.float64) / a.shape[1]
    return share


class Shares:
    """The shares of matches; those among the rows of a fit, which asks for them again and again, are remembered."""

    def __init__(self) -> None:
        self._last: tuple[Array, Array] | None = None

    def __call__(self, a: Array, b: Array) -> Array:
        """Return the shares (m, n) between rows."""
        if a is not b:
            return matches(a, b)
        if self._last is None or self._last[0] is not a:
            self._last = a, matches(a, a)
        return self._last[1]


class Overlap(Covariance):
    """The overlap kernel: the share of categories in which rows agree. It has no parameters."""

    def __init__(self) -> None:
        self.bounds, self.start = np.empty((0, 2)), np.empty(0)
        self._share = Shares()

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        return self._share(a, b)

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return nothing, since there is nothing to fit."""
        return np.empty(0)


class TransformedOverlap(Covariance):
    """The transformed overlap kernel exp(ℓ·share of matches); a point's variance is exp(ℓ)."""

    def __init__(self, bounds: tuple[float, float], start: float) -> None:
        self.bounds, self.start = np.log([bounds]), np.log([start])
        self._share = Shares()

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        return np.asarray(np.exp(np.exp(theta[0]) * self._share(a, b)))

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂log ℓ."""
        exponent = np.exp(theta[0]) * self._share(x, x)
        return np.array([np.einsum("ab,ab->", weights, exponent * np.exp(exponent))])

    def diagonal(self, theta: Array, x: Array) -> Array:
        """Return exp(ℓ) for each row."""
        return np.full(len(x), np.exp(np.exp(theta[0])))


class Mixture(Covariance):
    """The kernel s·(k_c + k_r) + p·k_c·k_r of c columns of categories and the remaining columns of numbers."""

    def __init__(self, c: int, categories: Covariance, numbers: Covariance, weights: tuple[float, float]) -> None:
        self.c, self.parts, (self.sum, self.product) = c, (categories, numbers), weights
        self.bounds = np.concatenate([categories.bounds, numbers.bounds])
        self.start = np.concatenate([categories.start, numbers.start])
        self._last: tuple[Array, Array, Array] | None = None

    def _split(self, x: Array) -> tuple[Array, Array]:
        """Return the two blocks of columns: the same arrays for the same rows, as `Shares` needs them."""
        if self._last is None or self._last[0] is not x:
            self._last = x, x[:, : self.c], x[:, self.c :]
        return self._last[1:]

    def _each(self, theta: Array, a: Array, b: Array) -> tuple[Array, Array]:
        p, (x, u) = len(self.parts[0].start), self._split(b)
        z, v = (x, u) if a is b else (a[:, : self.c], a[:, self.c :])
        return self.parts[0](theta[:p], z, x), self.parts[1](theta[p:], v, u)

    def _mixed(self, one: Array, two: Array) -> Array:
        return self.sum * (one + two) + self.product * one * two

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n) between rows."""
        return self._mixed(*self._each(theta, a, b))

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂θ_j: each part's, with its factor in the mixture."""
        p, (z, u), (one, two) = len(self.parts[0].start), self._split(x), self._each(theta, x, x)
        return np.concatenate(
            [
                self.parts[0].slopes(theta[:p], z, weights * (self.sum + self.product * two)),
                self.parts[1].slopes(theta[p:], u, weights * (self.sum + self.product * one)),
            ]
        )

    def diagonal(self, theta: Array, x: Array) -> Array:
        """Return k(x, x) for each row."""
        p = len(self.parts[0].start)
        one, two = self.parts
        return self._mixed(one.diagonal(theta[:p], x[:, : self.c]), two.diagonal(theta[p:], x[:, self.c :]))

    def by_input(self, theta: Array, z: Array, x: Array) -> Array:
        """Return ∂k(z, x_i)/∂z (n, d): zero for categories."""
        p, (codes, places) = len(self.parts[0].start), self._split(x)
        one = self.parts[0](theta[:p], z[None, : self.c], codes)[0]
        slope = self.parts[1].by_input(theta[p:], z[self.c :], places)
        return np.concatenate([np.zeros_like(codes), slope * (self.sum + self.product * one)[:, None]], axis=1)
