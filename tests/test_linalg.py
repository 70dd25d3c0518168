from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from bounce.gp.linalg import cholesky, product


def test_a_singular_matrix_is_factored_with_jitter() -> None:
    factor = cholesky(np.ones((3, 3)))
    np.testing.assert_allclose(factor @ factor.T, np.ones((3, 3)), atol=1e-6)
    with pytest.raises(LinAlgError):
        cholesky(np.full((2, 2), np.nan))


def test_a_product_is_that_of_numpy_in_any_order_of_memory() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 4))
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=0)[::2]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(product(left, right), a @ b, rtol=1e-14)
    assert product(a[:, :0], b[:0]).tolist() == np.zeros((5, 4)).tolist()
