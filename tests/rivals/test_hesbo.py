from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bounce import Real, Space, baselines
from bounce.baselines.rivals.gaussian import Gaussian
from bounce.baselines.rivals.hesbo import CANDIDATES, Embedded, Embedding, Hesbo, count_sketch, refits
from bounce.baselines.rivals.rembo import Rembo
from bounce.baselines.rivals.rival import from_unit, standardised

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "hesbo.json").read_text(encoding="utf-8"))
BOTH = [Hesbo, Rembo]


def cube(n: int) -> Space:
    return Space([Real(f"x{i}", -1.0, 1.0) for i in range(n)])


def value(point: Any) -> float:
    x = np.array(list(point.values()))
    return float(((x[:2] - 0.4) ** 2).sum())


def run(optimizer: Embedded, n: int, *, first: float = 0.0) -> list[Any]:
    """Make n evaluations; the common initial points get their value plus `first`."""
    for i in range(n):
        (trial,) = optimizer.ask()
        optimizer.tell(trial, value(trial.point) + (first if i < 5 else 0.0))
    return optimizer.trials


def test_a_count_sketch_gives_each_variable_one_bin_and_a_sign() -> None:
    matrix = count_sketch(4000, 4, rng=np.random.default_rng(0)).matrix
    assert ((matrix != 0).sum(axis=1) == 1).all()
    assert set(np.unique(matrix)) == {-1.0, 0.0, 1.0}
    assert np.abs((matrix != 0).mean(axis=0) - 0.25).max() < 0.03
    assert abs(matrix.sum() / 4000) < 0.05


@pytest.mark.parametrize("name", ["hesbo", "rembo"])
def test_images_are_those_of_the_published_code(name: str) -> None:
    golden = GOLDEN[name]
    up = Embedding(np.array(golden["matrix"]), 1.0).up(np.array(golden["z"]))
    np.testing.assert_allclose(up, golden["x"], atol=1e-12)
    assert (np.abs(up) <= 1.0).all()


def test_a_latin_hypercube_has_one_point_in_each_part_of_each_axis() -> None:
    z = count_sketch(10, 3, rng=np.random.default_rng(0)).latin(50, rng=np.random.default_rng(1))
    cells = np.floor(50 * (z + 1.0) / 2.0)
    assert all(sorted(column) == list(range(50)) for column in cells.T)


def test_fits_follow_the_published_schedule() -> None:
    """With 10 initial values: every 5th proposal up to 25 values, then every 20th."""
    assert [i for i in range(90) if refits(i, 10 + i)] == [0, 5, 10, 15, 20, 40, 60, 80]


@pytest.mark.parametrize("cls", BOTH)
def test_all_points_but_the_common_ones_are_images_of_latent_points(cls: type[Embedded]) -> None:
    space = cube(30)
    optimizer = cls(space, 40, 0, dims=4)
    rows = space.encode([trial.point for trial in run(optimizer, 30)])
    np.testing.assert_array_equal(
        rows[:5], space.encode([t.point for t in baselines.make("random", space, 40, 0).ask(5)])
    )
    embedding = optimizer._maps[0]
    latent = [optimizer._latent[key] for key in space.keys(rows[5:])]
    z = np.array([point for _, point in latent])
    assert (np.abs(z) <= embedding.half).all()
    np.testing.assert_allclose(from_unit(space, 0.5 * (embedding.up(z) + 1.0)), rows[5:], atol=1e-12)
    assert len(optimizer._latent) == 25


@pytest.mark.parametrize("cls", BOTH)
def test_the_model_does_not_see_the_common_points(cls: type[Embedded]) -> None:
    runs = [run(cls(cube(20), 40, 1, dims=3), 22, first=first) for first in (0.0, -1e6)]
    assert [trial.point for trial in runs[0]] == [trial.point for trial in runs[1]]


@pytest.mark.parametrize("cls", BOTH)
def test_the_next_point_has_the_largest_expected_improvement_of_the_hypercube(cls: type[Embedded]) -> None:
    optimizer = cls(cube(20), 60, 2, dims=3)
    run(optimizer, 24)
    rows = np.array(optimizer._rows)
    _, z = optimizer._own(0, rows)
    y = standardised(np.array(optimizer._values)[5:])
    ranked = optimizer._ranked(0, z, y, np.empty((0, 3)), rng=np.random.default_rng(9))
    old = optimizer._fitted[0]  # type: ignore[attr-defined]
    candidates = optimizer._maps[0].latin(CANDIDATES, rng=np.random.default_rng(9))
    # A process by the textbook formulas, with the noise in the variance.
    k = old.signal * old.covariance(old.theta, z, z) + old.noise * np.eye(len(z))
    cross = old.signal * old.covariance(old.theta, candidates, z)
    mean = cross @ np.linalg.solve(k, y)
    sd = np.sqrt(old.signal + old.noise - np.einsum("mn,nm->m", cross, np.linalg.solve(k, cross.T)))
    u = (y.min() - mean) / sd
    best = int(np.argmax(sd * (u * norm.cdf(u) + norm.pdf(u))))
    np.testing.assert_allclose(ranked[0], candidates[best])


def test_the_fit_reaches_the_likelihood_of_the_published_model() -> None:
    """GPy's fit of the same data from the same start, both with a zero mean."""
    golden = GOLDEN["fit"]
    z, y = np.array(golden["z"]), np.array(golden["y"])
    gp = Hesbo(cube(5), 10, 0)._fit(z, y, None)

    def likelihood(gp: Gaussian) -> float:
        return float(-0.5 * gp._white @ gp._white - np.log(np.diag(gp.factor)).sum() - 0.5 * len(y) * np.log(2 * np.pi))

    assert likelihood(gp) == pytest.approx(golden["log_likelihood"], abs=0.05)
    published = Gaussian(
        gp.covariance, np.log(golden["lengthscales"]), golden["signal"], golden["noise"], z, y, constant=False
    )
    assert likelihood(published) == pytest.approx(golden["log_likelihood"], abs=1e-3)
    mean, sd = published.posterior(np.array(golden["at"]))
    np.testing.assert_allclose(mean, golden["mean"], atol=1e-5)
    np.testing.assert_allclose(sd**2 + golden["noise"], golden["variance"], atol=1e-5)


def test_dims_are_no_more_than_the_variables_and_at_least_one() -> None:
    assert Hesbo(cube(3), 10, 0)._maps[0].matrix.shape == (3, 3)
    assert Hesbo(cube(30), 10, 0)._maps[0].matrix.shape == (30, Hesbo.dims)
    with pytest.raises(ValueError, match="dims"):
        Hesbo(cube(3), 10, 0, dims=0)


@pytest.mark.slow
def test_hesbo_finds_the_optimum_of_two_of_100_variables() -> None:
    """Where their bins differ (3 of 4 seeds at d = 4), the mean is found to two digits."""
    found = [min(trial.value for trial in run(Hesbo(cube(100), 50, seed, dims=4), 50)) for seed in range(4)]
    assert np.median(found) < 0.01
