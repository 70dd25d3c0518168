"""Dense linear algebra on one BLAS.

The wheels of numpy and scipy each bring an OpenBLAS. Whatever is called in a loop and large goes through scipy's,
which has the triangular solves; numpy's `@` is left to the small and the rare.

Shapes: a (m, k), b (k, n); L (n, n) lower triangular, Fortran order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, lapack, qr

Array = NDArray[np.float64]

BLOCK = 2**16  # entries of a matrix that is computed step by step: half a megabyte stays in the cache


def _operand(a: Array) -> tuple[Array, int]:
    """Return aᵀ in Fortran order without a copy where possible, and whether it is still to be transposed."""
    return (a, 1) if a.flags.f_contiguous and not a.flags.c_contiguous else (a.T, 0)


def product(a: Array, b: Array, *, times: float = 1.0) -> Array:
    """Return times·a·b."""
    if not a.size or not b.size:
        return np.zeros((a.shape[0], b.shape[1]))
    (left, flip_left), (right, flip_right) = _operand(b), _operand(a)
    return np.asarray(blas.dgemm(times, left, right, trans_a=flip_left, trans_b=flip_right)).T


def cholesky(matrix: Array) -> Array:
    """Return the lower factor, with as little jitter on the diagonal as it takes."""
    jitter = 0.0
    scale = float(np.mean(np.diag(matrix)))
    while True:
        shifted = matrix + jitter * np.eye(len(matrix)) if jitter else matrix
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1)
        if info == 0 and np.isfinite(factor).all():
            return np.asarray(factor)
        jitter = 10.0 * jitter if jitter else 1e-10 * scale
        if not jitter < scale:
            raise LinAlgError("the covariance matrix is not positive definite")


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Return L⁻¹·right, or L⁻ᵀ·right, for a matrix of right-hand sides."""
    return np.asarray(blas.dtrsm(1.0, factor, right, lower=1, trans_a=int(transposed)))


def solve(factor: Array, right: Array) -> Array:
    """Return K⁻¹·right for K = L·Lᵀ."""
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def inverse(factor: Array) -> Array:
    """Return K⁻¹ for K = L·Lᵀ."""
    lower = np.asarray(lapack.dpotri(factor, lower=1)[0])  # above the diagonal stay the zeros of L
    full: Array = lower + lower.T
    full[np.diag_indices(len(full))] *= 0.5
    return full


def orthonormal(columns: Array) -> Array:
    """Return orthonormal columns that span those given."""
    return np.asarray(qr(columns, mode="economic")[0])


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Return slices of the rows of a large matrix, so that what is done to a block is done in the cache."""
    step = max(1, BLOCK // max(1, columns))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
