from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from bounce.baselines.rivals.gaussian import Covariance, Fit, Gaussian, Matern52, gamma_prior

BOUNDS = (0.005, 10.0)


def data(n: int = 12, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, np.sin(3.0 * x[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_the_gradient_of_a_fit_is_that_of_its_loss(shared: bool, constant: bool) -> None:
    x, y = data()
    covariance = Matern52(3, BOUNDS, shared=shared)
    fit = Fit(constant=constant, prior=gamma_prior([-2, -1], [2.0, 0.9], [0.15, 10.0]))
    at = np.append(np.full(len(covariance.start), -0.4), np.log([1.3, 0.02]))
    numeric = approx_fprime(at, lambda p: fit.loss(covariance, x, y, p)[0], 1e-7)
    np.testing.assert_allclose(fit.loss(covariance, x, y, at)[1], numeric, rtol=1e-4, atol=1e-5)


def test_the_loss_is_the_density_of_the_data() -> None:
    x, y = data()
    covariance = Matern52(3, BOUNDS)
    theta = np.log([0.5, 1.0, 2.0])
    k = 1.3 * covariance(theta, x, x) + 0.02 * np.eye(len(x))
    value, _ = Fit(constant=False).loss(covariance, x, y, np.append(theta, np.log([1.3, 0.02])))
    assert value == pytest.approx(-multivariate_normal(np.zeros(len(x)), k).logpdf(y))


def process(covariance: Covariance | None = None) -> Gaussian:
    x, y = data()
    return Fit()(covariance or Matern52(3, BOUNDS), x, y)


def test_the_posterior_follows_the_data_and_its_gradients_are_exact() -> None:
    gp = process()
    mean, sd = gp.posterior(gp.x)
    assert np.abs(mean - gp.y).max() < 0.3
    assert (sd < np.sqrt(gp.signal)).all()
    z = np.array([0.3, 0.6, 0.2])
    value, deviation, by_mean, by_sd = gp.slope(z)
    assert (value, deviation) == pytest.approx([float(part[0]) for part in gp.posterior(z[None])])
    np.testing.assert_allclose(by_mean, approx_fprime(z, lambda p: gp.posterior(p[None])[0][0], 1e-7), atol=1e-5)
    np.testing.assert_allclose(by_sd, approx_fprime(z, lambda p: gp.posterior(p[None])[1][0], 1e-7), atol=1e-5)


def test_samples_have_the_posterior_as_their_distribution() -> None:
    gp = process()
    z = np.random.default_rng(1).random((4, 3))
    drawn = gp.sample(z, 20_000, rng=np.random.default_rng(2))
    mean, covariance = gp.joint(z)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.03)


def test_mean_fantasies_change_no_mean_and_lower_the_deviation() -> None:
    gp = process()
    z = np.random.default_rng(1).random((2, 3)) + 0.5
    believing = gp.believing(z)
    assert np.allclose(believing.posterior(z)[0], gp.posterior(z)[0], atol=0.02)
    assert (believing.posterior(z)[1] < gp.posterior(z)[1]).all()
