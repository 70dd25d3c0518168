from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bounce import Space
from bounce.acquire.improvement import Acquisition, log_ei, log_h
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from spaces import mixed, reals, rows


def setting(space: Space, p: int, seed: int = 0) -> tuple[GP, np.ndarray, np.ndarray, Acquisition]:
    rng = np.random.default_rng(seed)
    z, fixed = space.sample(12, rng=rng), space.sample(p, rng=rng)
    y = standardized(rng.normal(size=12))
    cont = np.linspace(0.4, 0.8, len(space.reals))
    gp = GP.at(
        Kernel(
            space,
            Hyper(combinatorial_lengthscales=np.array([2.0]), real_lengthscales=cont, signal=1.0, noise=1e-3, rho=0.4),
        ),
        Points(z),
    )
    return gp, y, fixed, Acquisition.of(gp, y, Points(fixed), rng.normal(size=(p, 64)))


def test_log_h_is_the_integral_it_stands_for() -> None:
    for u in (-6.0, -3.0, -1.0, 0.0, 0.5, 4.0):
        integral = quad(lambda t, u=u: (u - t) * norm.pdf(t), u - 12, u, epsabs=0)[0]
        assert log_h(np.array(u)) == pytest.approx(np.log(integral), rel=1e-6)


def test_log_h_is_smooth_and_monotone_far_into_the_tail() -> None:
    u = np.concatenate([-np.logspace(6, -3, 4000), np.logspace(-3, 3, 1000)])
    values = log_h(u)
    assert np.isfinite(values).all()
    assert np.all(np.diff(values) > 0)
    for joint in (-1.0, -1e4):
        left, right = log_h(np.array([joint * (1 + 1e-9), joint * (1 - 1e-9)]))
        assert left == pytest.approx(right, rel=1e-7)


def test_ei_does_not_depend_on_the_unit_of_the_values() -> None:
    mean, sigma = np.array([0.1, -0.4, 3.0]), np.array([0.5, 0.01, 1.0])
    shifted = log_ei(1e-9 * mean, 1e-9 * sigma, -0.2e-9)
    np.testing.assert_allclose(shifted, log_ei(mean, sigma, -0.2) + np.log(1e-9), rtol=1e-9)


def test_without_fixed_points_it_is_log_ei_of_the_posterior() -> None:
    space = mixed(2)
    gp, y, _, acquisition = setting(space, 0)
    x = rows(space, 9, 5)
    mean, variance = gp.posterior(Points(x), y)
    np.testing.assert_allclose(acquisition(x), log_ei(mean, np.sqrt(variance), y.min()), rtol=1e-9)


def test_a_fixed_point_is_worth_little_a_second_time() -> None:
    space = mixed(2)
    gp, y, fixed, acquisition = setting(space, 1)
    alone = Acquisition.of(gp, y, Points(fixed[:0]), np.empty((0, 64)))
    assert acquisition(fixed)[0] < alone(fixed)[0] - 3.0


def test_what_a_point_adds_is_at_most_its_own_improvement() -> None:
    space = mixed(2)
    gp, y, _, acquisition = setting(space, 3)
    alone = Acquisition.of(gp, y, Points(np.empty((0, len(space)))), np.empty((0, 64)))
    x = rows(space, 50, 9)
    assert np.all(acquisition(x) <= alone(x) + 0.5)  # up to the sampling error of the fixed values
    assert np.mean(acquisition(x) <= alone(x) + 0.05) > 0.6


def test_the_mean_over_samples_is_the_gain_of_a_joint_batch() -> None:
    """E[max(best − min(f_P, f_x), 0)] − E[max(best − f_P, 0)], by brute force."""
    space = reals(2)
    rng = np.random.default_rng(0)
    gp, y, fixed, _ = setting(space, 2)
    x = rows(space, 1, 8)
    joint = gp.extended(Points(np.concatenate([fixed, x])), noise=0.0)
    normals = rng.normal(size=(3, 400_000))
    n = len(y)
    beta = np.linalg.solve(gp.factor, y)
    sampled = (joint.factor[n:, :n] @ beta)[:, None] + joint.factor[n:, n:] @ normals
    best = y.min()
    gain = np.maximum(best - sampled.min(axis=0), 0) - np.maximum(best - sampled[:2].min(axis=0), 0)
    acquisition = Acquisition.of(gp, y, Points(fixed), normals[:2, :20_000])
    assert np.exp(acquisition(x))[0] == pytest.approx(gain.mean(), rel=0.03)


@pytest.mark.parametrize("p", [0, 3])
@pytest.mark.parametrize("space", [reals(3), mixed(2)], ids=["real", "mixed"])
def test_the_gradient_is_that_of_the_value(space: Space, p: int) -> None:
    _, _, _, acquisition = setting(space, p)
    x = rows(space, 4, 3)
    values, gradient = acquisition.with_gradient(x)
    np.testing.assert_allclose(values, acquisition(x), rtol=1e-9)
    step = 1e-6
    for i, j in enumerate(space.reals):
        up, down = x.copy(), x.copy()
        up[:, j] += step
        down[:, j] -= step
        np.testing.assert_allclose(
            gradient[:, i], (acquisition(up) - acquisition(down)) / (2 * step), rtol=1e-4, atol=1e-6
        )


def test_hopeless_points_are_still_compared() -> None:
    """Where the improvement underflows, its log does not."""
    space = reals(1)
    kernel = Kernel(
        space,
        Hyper(
            combinatorial_lengthscales=np.array([1.0]),
            real_lengthscales=np.array([0.3]),
            signal=1.0,
            noise=1e-6,
            rho=0.5,
        ),
    )
    z = np.linspace(0, 1, 9)[:, None]
    y = np.linspace(-5, 5, 9)
    gp = GP.at(kernel, Points(z))
    acquisition = Acquisition.of(gp, y, Points(np.array([[0.05]])), np.random.default_rng(0).normal(size=(1, 64)))
    x = z[2:]  # at the data, each worse than the one before
    values = acquisition(x)
    assert np.all(np.diff(values) < 0)
    assert values[0] < -800
    np.testing.assert_allclose(values, acquisition.with_gradient(x)[0], rtol=1e-9)
