from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bounce.baselines.rivals.evolution import evolve, into_box, out_of_box
from bounce.gp.linalg import Array

OPTIONS: dict[str, Any] = {"sigma": 0.1, "population": 50, "steps": 50}


def test_the_map_into_the_box_is_smooth_and_has_an_inverse() -> None:
    x = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(into_box(out_of_box(x)), x, atol=1e-12)
    np.testing.assert_allclose(into_box(x[60:890]), x[60:890])  # the identity in the middle
    u = np.linspace(-4, 4, 80_001)
    mapped = into_box(u)
    assert mapped.min() == pytest.approx(0.0, abs=1e-9)
    assert mapped.max() == pytest.approx(1.0, abs=1e-9)
    slopes = np.diff(mapped) / 1e-4
    assert np.abs(slopes).max() < 1 + 1e-6
    assert np.abs(np.diff(slopes)).max() < 2e-3  # no kinks


@pytest.mark.parametrize("d", [1, 3, 10])
def test_it_finds_the_bottom_of_an_ill_conditioned_bowl(d: int) -> None:
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scales = 10.0 ** np.linspace(0, 1, d)
    target = np.full(d, 0.6)

    def bowl(x: Array) -> Array:
        return np.asarray((((x - target) @ rotation * scales) ** 2).sum(axis=-1))

    start = 0.2 + 0.6 * rng.random((4, d))
    best, lowest = evolve(bowl, start, sigma=0.1, population=50, steps=150, rng=rng)
    assert (lowest < 1e-6).all()
    np.testing.assert_allclose(lowest, bowl(best), rtol=1e-9)


def test_it_reaches_corners() -> None:
    _, lowest = evolve(
        lambda x: np.asarray(((x - [0.0, 1.0, 0.5]) ** 2).sum(axis=-1)),
        np.full((2, 3), 0.4),
        rng=np.random.default_rng(0),
        **OPTIONS,
    )
    assert (lowest < 1e-6).all()


def test_runs_do_not_influence_each_other() -> None:
    """The first of two runs is the same whatever the function of the second one."""

    def first(other: float) -> Array:
        centres = np.array([[0.3, 0.7], [other, 0.2]])
        best, _ = evolve(
            lambda x: np.asarray(((x - centres[:, None]) ** 2).sum(axis=-1)),
            np.full((2, 2), 0.5),
            rng=np.random.default_rng(0),
            **OPTIONS,
        )
        return np.asarray(best[0])

    assert (first(0.1) == first(0.9)).all()


def test_a_flat_function_leaves_finite_points() -> None:
    best, lowest = evolve(
        lambda x: np.zeros(x.shape[:2]), np.full((3, 4), 0.5), rng=np.random.default_rng(0), **OPTIONS
    )
    assert np.isfinite(best).all()
    assert ((best >= 0) & (best <= 1)).all()
    assert (lowest == 0).all()
