"""A lengthscale per combinatorial bin, under a common prior."""

from __future__ import annotations

import numpy as np
import pytest

from bounce import Binary, Categorical, Ordinal, Real, Space
from bounce.gp.fit import LogPosterior, cold, fit
from bounce.gp.kernels import Hyper, Kernel, Metric, matern52
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.method import Method
from bounce.optimizer.foreign import points_of
from bounce.subspace.embedding import Embedding
from spaces import rows

ALL = Space(
    [
        *(Real(f"r{i}", 0, 1) for i in range(2)),
        *(Binary(f"b{i}") for i in range(5)),
        *(Ordinal(f"o{i}", range(4 + i)) for i in range(3)),
        *(Categorical(f"c{i}", list("abcdef")[: 3 + i]) for i in range(4)),
    ]
)


def drawn(bins: int, seed: int) -> tuple[Embedding, Points, LogPosterior, Array]:
    """Return an embedding, points of which some are foreign, a log posterior, and parameters of it."""
    rng = np.random.default_rng(seed)
    embedding = Embedding.random(ALL, bins, rng=rng)
    x = ALL.sample(24, rng=rng)
    x[:9] = embedding.up(embedding.latent.sample(9, rng=rng))
    points = points_of(embedding, x)
    posterior = LogPosterior(embedding.latent, points, rng.normal(size=24), Method())
    theta = posterior.pack(cold(embedding.latent)) + 0.3 * rng.normal(size=len(posterior.bounds))
    theta[-1] = 0.4
    return embedding, points, posterior, theta


@pytest.mark.parametrize("bins", [6, 9, len(ALL)])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_slope_with_and_without_foreign_points(bins: int, seed: int) -> None:
    _, points, posterior, theta = drawn(bins, seed)
    assert (points.foreign is not None) == (bins < len(ALL))
    slopes = [(posterior(theta + e)[0] - posterior(theta - e)[0]) / 2e-5 for e in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(posterior(theta)[1], slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bins", [6, 9, len(ALL)])
@pytest.mark.parametrize("seed", range(3))
def test_the_fit_and_the_kernel_agree_and_the_kernel_is_positive_definite(bins: int, seed: int) -> None:
    embedding, points, posterior, theta = drawn(bins, seed)
    hyper = posterior.unpack(theta)
    covariance = Kernel(embedding.latent, hyper)(points, points)
    np.testing.assert_allclose(covariance, hyper.signal * posterior._kernel(hyper).k, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    again = posterior.unpack(posterior.pack(hyper))
    np.testing.assert_allclose(again.combinatorial_lengthscales, hyper.combinatorial_lengthscales, rtol=1e-12)


def test_the_kernel_is_matern_of_distances_weighted_by_each_variable() -> None:
    space = Space(ALL.parameters[2:])
    z = rows(space, 12)
    lengthscales = np.linspace(0.5, 6.0, len(space))
    hyper = Hyper(lengthscales, np.empty(0), signal=1.3, noise=1e-4, rho=0.5, per_bin=True)
    r2 = np.zeros((12, 12))
    for j, (parameter, lengthscale) in enumerate(zip(space.parameters, lengthscales, strict=True)):
        difference = z[:, None, j] - z[None, :, j]
        if isinstance(parameter, Categorical):
            r2 += 2.0 * (difference != 0) / lengthscale**2
        else:
            r2 += (difference / (parameter.cardinality - 1)) ** 2 / lengthscale**2
    np.testing.assert_allclose(Kernel(space, hyper)(Points(z), Points(z)), 1.3 * matern52(r2), atol=1e-12)


def test_equal_lengthscales_are_one_for_all() -> None:
    space = Space(ALL.parameters[2:])
    z = Points(rows(space, 10))
    shared = Hyper(np.array([2.0]), np.empty(0), 1.0, 1e-4, 0.5)
    apart = Hyper(np.full(len(space), 2.0), np.empty(0), 1.0, 1e-4, 0.5, per_bin=True)
    np.testing.assert_allclose(Kernel(space, apart)(z, z), Kernel(space, shared)(z, z), atol=1e-12)


def test_distances_of_weighted_categories_are_never_negative() -> None:
    space = Space([Categorical(f"c{i}", list("abc")) for i in range(40)])
    z = np.repeat(rows(space, 4), 3, axis=0)
    stretch = np.exp(np.random.default_rng(0).normal(size=40))
    assert Metric(space, stretch)(Points(z), Points(z)).min() >= 0.0


def test_a_fit_finds_which_variables_matter() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(8)), *(Categorical(f"c{i}", list("abc")) for i in range(6))])
    z = rows(space, 90)
    y = 2.0 * z[:, 0] + z[:, 1] * z[:, 0] + 1.5 * (z[:, 8] == 1)
    y = (y - y.mean()) / y.std()
    lengthscales = fit(space, Points(z), y, [cold(space)], Method()).combinatorial_lengthscales
    assert len(lengthscales) == len(space)
    assert max(lengthscales[0], lengthscales[1]) < lengthscales[2:8].min()
    assert lengthscales[8] < lengthscales[9:].min()


def test_little_data_leaves_the_lengthscales_of_a_kind_close_together() -> None:
    space = Space([Binary(f"b{i}") for i in range(12)])
    z = rows(space, 4)
    lengthscales = fit(space, Points(z), np.array([1.0, -1.0, 0.5, -0.5]), [cold(space)], Method())
    logs = np.log(lengthscales.combinatorial_lengthscales)
    assert logs.max() - logs.min() < 0.5
