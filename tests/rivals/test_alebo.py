from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from bounce import Real, Space
from bounce.baselines.rivals import alebo
from bounce.baselines.rivals.alebo import Alebo, Mahalanobis, Mixture, Polytope, hypersphere
from bounce.baselines.rivals.gaussian import Fit, Gaussian
from bounce.benchmarks.hartmann import Hartmann6

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "alebo.json").read_text(encoding="utf-8"))


class Fixed(Gaussian):
    """A process whose prior mean is that of the golden values."""

    mean = GOLDEN["mean"]


def golden() -> tuple[dict[str, Any], Gaussian]:
    g = {key: np.array(value) for key, value in GOLDEN.items()}
    return g, Fixed(Mahalanobis(3), g["u"], float(g["signal"]), alebo.NOISE, g["z"], g["y"])


def data(n: int, *, seed: int = 0, d: int = 6) -> tuple[Polytope, np.ndarray, np.ndarray]:
    """Hartmann6 on six of 40 variables, in an embedding."""
    rng = np.random.default_rng(seed)
    polytope = hypersphere(40, d, rng=rng)
    z = polytope.sample(n, 5000, rng=rng)
    y = Hartmann6().evaluate(0.5 * (polytope.up(z)[:, :6] + 1.0))
    return polytope, z, (y - y.mean()) / y.std()


def test_the_projection_has_columns_on_the_sphere_and_the_map_back_is_its_pseudo_inverse() -> None:
    polytope = hypersphere(50, 4, rng=np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(polytope.down, axis=0), 1.0)
    np.testing.assert_allclose(polytope.down @ polytope.matrix, np.eye(4), atol=1e-12)
    many = hypersphere(20_000, 3, rng=np.random.default_rng(1)).down
    np.testing.assert_allclose(many @ many.T / 20_000, np.eye(3) / 3.0, atol=0.01)


def test_random_latent_points_lie_in_the_polytope_and_come_from_the_widest_cube_that_gives_enough() -> None:
    polytope = hypersphere(30, 4, rng=np.random.default_rng(0))
    z = polytope.sample(200, 2000, rng=np.random.default_rng(1))
    assert z.shape == (200, 4)
    assert np.abs(z @ polytope.matrix.T).max() <= 1.0
    # The same by the published words: the projections of a cube that is halved until 200 stay inside.
    x = 2.0 * np.random.default_rng(1).random((2000, 30)) - 1.0
    half = 16.0
    while True:
        images = half * x @ (polytope.matrix @ polytope.down).T
        inside = images[(np.abs(images) <= 1.0).all(axis=1)]
        if len(inside) >= 200:
            break
        half /= 2.0
    np.testing.assert_allclose(z @ polytope.matrix.T, inside[:200], atol=1e-9)


def test_kernel_likelihood_and_laplace_variances_agree_with_automatic_differentiation() -> None:
    g, gp = golden()
    np.testing.assert_allclose(gp.covariance(g["u"], g["at"], g["z"]), g["kernel"], atol=1e-12)
    parameters = np.append(g["u"], np.log([gp.signal, gp.noise]))
    loss = Fit(constant=False).loss(gp.covariance, gp.x, gp.y - gp.mean, parameters)[0]
    assert -loss == pytest.approx(float(g["log_likelihood"]), rel=1e-6)
    drawn = alebo.laplace(gp, 4001, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[0], g["u"])
    np.testing.assert_allclose(drawn[1:].std(axis=0), g["laplace_sd"], rtol=0.06)
    np.testing.assert_allclose(drawn[1:].mean(axis=0), g["u"], atol=0.1 * g["laplace_sd"].max())


def test_the_slopes_of_the_kernel_are_exact() -> None:
    g, gp = golden()
    fit = Fit(constant=True)
    at = np.append(g["u"], np.log([1.3, 1e-3]))
    numeric = approx_fprime(at, lambda p: fit.loss(gp.covariance, gp.x, gp.y, p)[0], 1e-7)
    np.testing.assert_allclose(fit.loss(gp.covariance, gp.x, gp.y, at)[1], numeric, rtol=1e-4, atol=1e-3)


def test_a_mixture_has_the_mean_and_the_total_variance_of_its_processes_and_exact_slopes() -> None:
    g, gp = golden()
    mixture = Mixture(gp, g["samples"])
    mean, sd = mixture.posterior(g["at"])
    np.testing.assert_allclose(mean, g["mixture_mean"], atol=1e-6)
    np.testing.assert_allclose(sd**2, g["mixture_variance"], atol=1e-6)
    z = g["at"][1]
    value, deviation, by_mean, by_sd = mixture.slope(z)
    assert (value, deviation) == pytest.approx((mean[1], sd[1]), abs=1e-7)
    np.testing.assert_allclose(by_mean, approx_fprime(z, lambda p: mixture.posterior(p[None])[0][0], 1e-6), atol=1e-4)
    np.testing.assert_allclose(by_sd, approx_fprime(z, lambda p: mixture.posterior(p[None])[1][0], 1e-6), atol=1e-4)


def test_the_kernel_of_a_random_start_is_a_gaussian_one_of_an_orthonormal_projection() -> None:
    """|U·z|² = |A·B†·z|²: no more than the squared distance of the images."""
    polytope, z, _ = data(20)
    u = Mahalanobis(6).matrix(alebo.random_start(polytope, rng=np.random.default_rng(3)))
    ours = np.linalg.norm(z @ u.T, axis=1)
    assert (ours <= np.linalg.norm(z @ polytope.matrix.T, axis=1) + 1e-6).all()
    assert (ours > 0.0).all()


@pytest.mark.slow
def test_short_searches_and_long_ones_from_the_best_reach_what_full_searches_of_all_starts_reach() -> None:
    """The published fit is a truncated Newton search from each of ten starts; the best of these is not much better."""
    gaps = []
    for seed in range(3):
        polytope, z, y = data(60, seed=seed)
        rng = np.random.default_rng(seed)
        starts = [alebo.random_start(polytope, rng=rng) for _ in range(alebo.RESTARTS)]
        first = np.log(np.log(2.0))
        full = [minimize(loss, np.append(u, first), (z, y), jac=True, method="TNC").fun for u in starts]
        gp = alebo.fitted(z, y, starts)
        gaps.append(loss(np.append(gp.theta, np.log(gp.signal)), z, y)[0] - np.array(full))
    assert np.mean([gap.max() for gap in gaps]) < 0.15  # per observation, to the best of ten
    assert np.mean([np.median(gap) for gap in gaps]) < 0.0  # to the median


def loss(p: np.ndarray, z: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the log likelihood for each observation, by u and the logarithm of the signal variance."""
    fit = Fit(alebo.SIGNALS, (alebo.NOISE, alebo.NOISE))
    value, slope = fit.loss(Mahalanobis(6), z, y, np.append(p, np.log(alebo.NOISE)))
    return value / len(y), slope[:-1] / len(y)


def test_starts_hold_the_best_and_prefer_large_values() -> None:
    values = np.append(np.linspace(0.0, 1.0, 100), [1e-9, 2.0])
    drawn = [alebo.promising(values, 10, rng=np.random.default_rng(i)) for i in range(300)]
    assert all(len(set(places)) == 10 and places[0] == 101 and 100 not in places for places in drawn)
    large = np.mean([(values[places[1:]] > 0.5).mean() for places in drawn])
    weights = np.exp(values[:100] / 2.0 - 1.0)[1:]
    assert large == pytest.approx(weights[values[1:100] > 0.5].sum() / weights.sum(), abs=0.03)
    assert len(alebo.promising(np.zeros(50), 10, rng=np.random.default_rng(0))) == 10


def test_a_local_search_improves_and_stays_in_the_polytope() -> None:
    polytope, z, y = data(30)
    rng = np.random.default_rng(0)
    gp = alebo.fitted(z, y, [alebo.random_start(polytope, rng=rng) for _ in range(3)])
    mixture = Mixture(gp, alebo.laplace(gp, 5, rng=rng))
    for start in polytope.sample(4, 400, rng=rng):
        before = float(alebo.improvement(*mixture.posterior(start[None]), float(y.min()))[0])
        found, after = alebo.climbed(mixture, float(y.min()), start, polytope)
        assert after >= before - 1e-6
        assert np.abs(polytope.matrix @ found).max() <= 1.0 + 1e-9


def run(space: Space, budget: int, wanted: dict[str, float], *, dims: int) -> Alebo:
    """Minimise a quadratic of some variables."""
    optimizer = Alebo(space, budget, 0, dims=dims)
    while not optimizer.done:
        (trial,) = optimizer.ask()
        point: dict[str, Any] = dict(trial.point)
        optimizer.tell(trial, sum((point[name] - best) ** 2 for name, best in wanted.items()))
    return optimizer


def test_all_points_but_the_common_ones_lie_in_the_subspace_and_the_cube() -> None:
    space = Space([Real(f"x{i}", -1.0, 1.0) for i in range(20)])
    optimizer = run(space, 18, {"x0": 0.0}, dims=3)
    x = 2.0 * space.encode([trial.point for trial in optimizer.trials]) - 1.0
    polytope = optimizer._maps[0]
    assert isinstance(polytope, Polytope)
    back = x @ (polytope.matrix @ polytope.down).T
    np.testing.assert_allclose(back[5:], x[5:], atol=1e-9)
    assert np.abs(back[:5] - x[:5]).max() > 0.1
    assert len(optimizer._latent) == 13


@pytest.mark.slow
def test_it_finds_the_optimum_of_a_quadratic_of_two_of_50_variables() -> None:
    space = Space([Real(f"x{i}", -1.0, 1.0) for i in range(50)])
    best = run(space, 26, {"x3": 0.1, "x40": -0.2}, dims=4).best
    assert best is not None
    assert best.value is not None
    assert best.value < 0.01
