from __future__ import annotations

import numpy as np
import pytest

from bounce import Binary, Categorical, Ordinal, Space
from bounce.gp.kernels import Hyper, Kernel, Metric
from bounce.gp.linalg import BLOCK
from bounce.gp.points import Points
from bounce.spaces.parameters import Kind
from spaces import binary, hyper, mixed, rows


def test_distances_are_those_of_one_hot_columns() -> None:
    space = mixed(4)
    a, b = rows(space, 6), rows(space, 5, 1)

    def one_hot(z: np.ndarray) -> np.ndarray:
        columns = []
        for j in space.combinatorial:
            c = space.cardinalities[j]
            if space.kinds[j] is Kind.CATEGORICAL:
                columns += [(z[:, j] == i).astype(float) for i in range(c)]
            else:
                columns.append(z[:, j] / (c - 1))
        return np.stack(columns, axis=1)

    expected = ((one_hot(a)[:, None] - one_hot(b)[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(Metric(space)(Points(a), Points(b)), expected, atol=1e-12)


def test_distances_work_for_many_categories_of_many_codes() -> None:
    space = Space([Categorical(f"c{i}", list(range(500))) for i in range(300)])
    z = rows(space, 3)
    expected = 2.0 * (z[:, None] != z[None]).sum(axis=2)
    np.testing.assert_array_equal(Metric(space)(Points(z), Points(z)), expected)
    assert Metric(space)(Points(z), Points(z))[0, 1] > 510  # more than a byte holds


@pytest.mark.parametrize("space", [binary(30), mixed(3)], ids=["binary", "mixed"])
def test_the_kernel_is_invariant_to_relabelling(space: Space) -> None:
    rng = np.random.default_rng(0)
    a, b = rows(space, 6), rows(space, 5, 1)
    x, y = a.copy(), b.copy()
    for j in range(len(space)):
        c = space.cardinalities[j]
        permutation = rng.permutation(c) if space.kinds[j] is Kind.CATEGORICAL else np.arange(c)[::-1]
        for z in (x, y):
            z[:, j] = permutation[z[:, j].astype(int)] if c else 1.0 - z[:, j]
    kernel = Kernel(space, hyper(space))
    np.testing.assert_allclose(kernel(Points(x), Points(y)), kernel(Points(a), Points(b)), rtol=1e-12)


def test_the_table_of_small_integers_equals_the_formula() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(6)), Categorical("c", ["a", "b", "c"])])
    kernel = Kernel(space, hyper(space))
    z = rows(space, 40)
    d2 = kernel.metric(Points(z), Points(z))
    np.testing.assert_allclose(
        kernel.combinatorial(d2),
        [kernel.combinatorial(row[:3]).tolist() + kernel.combinatorial(row)[3:].tolist() for row in d2],
    )
    r = np.sqrt(5 * d2) / 1.7
    np.testing.assert_allclose(kernel.combinatorial(d2), (1 + r + r**2 / 3) * np.exp(-r), rtol=1e-12)


def test_a_large_covariance_matrix_is_that_of_its_rows() -> None:
    space = mixed(6)
    kernel = Kernel(space, hyper(space))
    a, b = rows(space, 700, 1), rows(space, 200, 2)
    assert len(a) * len(b) > 2 * BLOCK  # more than two blocks of rows
    of_rows = np.concatenate([kernel(Points(row[None]), Points(b)) for row in a])
    np.testing.assert_allclose(kernel(Points(a), Points(b)), of_rows, rtol=1e-12)


def test_one_move_changes_the_distances_of_kinds_apart_as_the_kernel_says() -> None:
    space = Space([Binary("b"), Categorical("c", ["x", "y", "z"]), Ordinal("o", [1, 2, 3, 4, 5])])
    own = Hyper(
        combinatorial_lengthscales=np.array([2.0, 0.7, 0.25]),
        real_lengthscales=np.empty(0),
        signal=1.5,
        noise=0.01,
        rho=0.5,
    )
    metric, points, z = Kernel(space, own).metric, Points(rows(space, 9)), np.array([[0.0, 1.0, 3.0]])
    columns, new = np.arange(3), np.array([1.0, 2.0, 0.0])
    moved = np.repeat(z, 3, axis=0)
    moved[columns, columns] = new
    d2 = np.repeat(metric(Points(z), points), 3, axis=0)
    np.testing.assert_allclose(metric.moved(d2, columns, z[0], new, points), metric(Points(moved), points), atol=1e-12)
