from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounce import Space
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from spaces import binary, hyper, mixed, reals, rows, spaces, wave


@pytest.mark.parametrize("space", [binary(8), reals(3), mixed(2)], ids=["binary", "real", "mixed"])
def test_extending_the_factor_equals_building_it(space: Space) -> None:
    z = rows(space, 15)
    kernel = Kernel(space, hyper(space))
    whole = GP.at(kernel, Points(z))
    grown = GP.at(kernel, Points(z[:9])).extended(Points(z[9:12]), noise=0.02).extended(Points(z[12:]), noise=0.02)
    np.testing.assert_allclose(grown.factor, whole.factor, atol=1e-10)
    y = wave(z)
    at = Points(rows(space, 7, 1))
    for one, other in zip(grown.posterior(at, y), whole.posterior(at, y), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_extending_by_nothing_changes_nothing() -> None:
    gp = GP.at(Kernel(binary(4), hyper(binary(4))), Points(rows(binary(4), 3)))
    assert gp.extended(Points(np.empty((0, 4))), noise=0.1) is gp


def test_the_posterior_interpolates_and_reverts_to_the_prior() -> None:
    space = reals(2)
    kernel = Kernel(
        space,
        Hyper(
            combinatorial_lengthscales=np.array([1.0]),
            real_lengthscales=np.array([0.05, 0.05]),
            signal=2.0,
            noise=1e-8,
            rho=0.5,
        ),
    )
    z = np.array([[0.1, 0.1], [0.2, 0.3]])
    y = np.array([1.0, -1.0])
    gp = GP.at(kernel, Points(z))
    mean, variance = gp.posterior(Points(np.vstack([z, [[0.95, 0.95]]])), y)
    np.testing.assert_allclose(mean, [1.0, -1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(variance, [0.0, 0.0, 2.0], atol=1e-5)


def test_the_constant_mean_is_that_of_generalised_least_squares() -> None:
    space = mixed(1)
    z = rows(space, 9)
    kernel = Kernel(space, hyper(space))
    y = wave(z)
    covariance = kernel(Points(z), Points(z)) + 0.02 * np.eye(9)
    one = np.ones(9)
    expected = one @ np.linalg.solve(covariance, y) / (one @ np.linalg.solve(covariance, one))
    assert GP.at(kernel, Points(z)).mean(y) == pytest.approx(expected)


def test_the_believed_best_is_the_lowest_posterior_mean() -> None:
    space = mixed(1)
    z = rows(space, 12)
    gp = GP.at(Kernel(space, hyper(space)), Points(z))
    y = wave(z)
    assert gp.believed_best(y) == pytest.approx(gp.posterior(Points(z), y)[0].min(), abs=1e-10)


@settings(deadline=None)
@given(spaces(most=5), st.lists(st.floats(1e-4, 10.0), min_size=2, max_size=12), st.integers(0, 99), st.data())
def test_a_process_with_a_noise_for_each_observation_is_the_dense_formula(
    space: Space, noise: list[float], seed: int, data: st.DataObject
) -> None:
    n, known = len(noise), np.array(noise)
    first = data.draw(st.integers(1, n))
    z, at, y = Points(rows(space, n, seed)), Points(rows(space, 4, seed + 1)), wave(rows(space, n, seed))
    kernel = Kernel(space, hyper(space))
    gp = GP.at(kernel, z[:first], known[:first]).extended(z[first:], noise=known[first:])
    covariance = kernel(z, z) + np.diag(known)
    cross = kernel(at, z)
    mean, variance = gp.posterior(at, y)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(covariance, y), atol=1e-7)
    expected = kernel.prior - np.einsum("mn,nm->m", cross, np.linalg.solve(covariance, cross.T))
    np.testing.assert_allclose(variance, expected, atol=1e-7)
    np.testing.assert_array_equal(gp.noise, known)
    own = kernel(z, z) @ np.linalg.solve(covariance, y)
    assert gp.believed_best(y) == pytest.approx(own.min(), abs=1e-7)


def test_what_is_left_out_is_predicted_from_all_others() -> None:
    space = mixed(2)
    z = space.sample(9, rng=np.random.default_rng(3))
    y, noise = wave(z), np.linspace(0.01, 0.5, 9)
    kernel = Kernel(space, hyper(space))
    missed = GP.at(kernel, Points(z), noise).left_out(y)
    for i in range(9):
        rest = np.delete(np.arange(9), i)
        mean, _ = GP.at(kernel, Points(z[rest]), noise[rest]).posterior(Points(z[i : i + 1]), y[rest])
        assert missed[i] == pytest.approx(y[i] - mean[0], abs=1e-9)


def test_a_process_without_known_noise_has_the_fitted_one() -> None:
    space = binary(6)
    gp = GP.at(Kernel(space, hyper(space)), Points(rows(space, 3)))
    np.testing.assert_array_equal(gp.noise, np.full(3, 0.02))
    np.testing.assert_array_equal(gp.extended(Points(rows(space, 2, 1)), noise=0.0).noise, [0.02, 0.02, 0.02, 0, 0])
