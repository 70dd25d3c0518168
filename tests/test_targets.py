from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce.gp.targets import BENDS, Scale, bent, clipped, standardized, targets
from bounce.method import Method


def test_standardising_takes_any_scale() -> None:
    base = np.array([1.0, 2.0, 4.0, 9.0])
    expected = (base - base.mean()) / base.std()
    for scale in (1e-300, 1e-12, 1.0, 1e12, 1e300):
        np.testing.assert_allclose(standardized(base * scale), expected, rtol=1e-12)
    for constant in (0.0, 0.1, 1e12, -1e-12):
        np.testing.assert_array_equal(standardized(np.full(7, constant)), np.zeros(7))
    with np.errstate(all="raise"):
        standardized(np.array([1e308, -1e308]))


@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=20))
def test_clipping_keeps_the_better_half_and_every_order(values: list[float]) -> None:
    y = np.array(values)
    with np.errstate(all="raise"):
        kept = clipped(y)
    better = y <= np.sort(y)[(len(y) - 1) // 2]
    np.testing.assert_array_equal(kept[better], y[better])
    ordered = kept[np.argsort(y)]
    assert (ordered[1:] >= ordered[:-1]).all()
    assert (kept <= y).all()


def test_a_penalty_is_clipped_to_the_scale_of_the_rest() -> None:
    y = np.array([1e18, 4.0, 2.0, 3.0, 24.0, 1e9, 2.5])
    tamed = clipped(y)
    np.testing.assert_array_equal(tamed[y < 25.0], y[y < 25.0])
    assert (tamed[y > 25.0] > 24.0).all()
    assert tamed.max() == pytest.approx(24.0 + 0.25 * (24.0 - 4.0))  # a quarter of the room of the others
    assert list(np.argsort(tamed, kind="stable")) == list(np.argsort(y, kind="stable"))
    np.testing.assert_array_equal(clipped(np.array([1.0, 1.0, 1.0, 7.0])), [1.0, 1.0, 1.0, 7.0])


def test_only_the_default_method_lowers_outliers() -> None:
    values = np.array([1e18, 4.0, 2.0, 3.0, 24.0, 1e9, 2.5])
    np.testing.assert_array_equal(targets(values, Method()), standardized(clipped(values)))
    np.testing.assert_array_equal(targets(values, Method.paper()), standardized(values))
    assert not np.allclose(standardized(clipped(values)), standardized(values))


LIMITS = (1e-6, 10.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.sampled_from([1e-300, 1e-12, 1.0, 1e290]))
def test_the_scale_undoes_what_standardises(values: list[float], size: float) -> None:
    y = np.array(values) * size
    for method in (Method(), Method.paper()):
        scale = Scale.of(y, method)
        lowered = clipped(y) if method == Method() else y
        back = scale.centre + scale.deviation * targets(y, method)
        np.testing.assert_allclose(back, lowered, rtol=1e-9, atol=1e-9 * np.abs(lowered).max())


def test_the_errors_of_values_are_in_the_units_of_the_targets() -> None:
    values = np.array([1e18, 4.0, 2.0, 3.0, 20.0, 1e9, 2.5])
    errors = np.array([2.0, 0.0, np.nan, 0.5, 1e-9, 1e280, 1e-280])
    for size in (1.0, 1e-12, 1e12):
        scale = Scale.of(values * size, Method())
        assert scale.deviation == pytest.approx(clipped(values).std() * size)  # outliers have the scale of the rest
        with np.errstate(all="raise"):
            noise = scale.noise(errors * size, LIMITS)
        share = 1 / clipped(values).std() ** 2
        np.testing.assert_allclose(noise, [4 * share, 1e-6, np.nan, 0.25 * share, 1e-6, 10.0, 1e-6])


def test_beside_equal_values_any_error_is_large() -> None:
    for values in (np.full(7, 0.1), np.zeros(1)):
        scale = Scale.of(values, Method())
        assert (scale.centre, scale.deviation) == (values[0], 0.0)
        np.testing.assert_array_equal(
            scale.noise(np.array([0.0, 1e-300, 1.0, np.nan]), LIMITS), [1e-6, 10.0, 10.0, np.nan]
        )


@pytest.mark.parametrize("bend", BENDS)
def test_bent_targets_keep_their_order_are_standardised_and_know_their_derivative(bend: float) -> None:
    y = standardized(np.random.default_rng(0).gamma(0.7, size=40))
    t, log_derivative = bent(y, bend)
    np.testing.assert_array_equal(np.argsort(t), np.argsort(y))
    assert t.mean() == pytest.approx(0.0, abs=1e-12)
    assert t.std() == pytest.approx(1.0)
    far = y - y.min()
    scale = (np.log1p(bend * far) / bend).std() if bend else 1.0  # what the map is divided by
    assert log_derivative == pytest.approx(float(np.log(1.0 / ((1.0 + bend * far) * scale)).sum()))


def test_equal_targets_are_not_bent() -> None:
    t, log_derivative = bent(np.zeros(5), 1.0)
    np.testing.assert_array_equal(t, np.zeros(5))
    assert log_derivative == 0.0
