from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce.subspace.trust_region import RADIUS_FLOOR, SIDE_CAP, SIDE_FLOOR, TrustRegion, after, improves


def bounce(region: TrustRegion, success: bool, n: int = 1) -> TrustRegion:
    return after(region, success, n, strategy="bounce", in_input=False)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 60), st.integers(1, 7))
def test_failures_alone_collapse_the_region_exactly_when_its_budget_is_spent(
    n_combinatorial: int, n_real: int, batches: int, n: int
) -> None:
    if not n_combinatorial and not n_real:
        n_combinatorial = 1
    region = TrustRegion.fresh(n_combinatorial, n_real, batches * n)
    for _ in range(batches):
        assert not region.collapsed
        region = bounce(region, False, n)
    assert region.collapsed
    assert region.used == batches * n


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=80), st.integers(0, 50), st.integers(0, 50))
def test_lengths_stay_within_their_limits(history: list[tuple[bool, int]], n_combinatorial: int, n_real: int) -> None:
    for strategy in ("bounce", "baxus", "casmopolitan"):
        region = TrustRegion.fresh(n_combinatorial, n_real, 40)
        for success, n in history:
            region = after(region, success, n, strategy=strategy, in_input=False)
            assert region.radius == 0 if not n_combinatorial else RADIUS_FLOOR <= region.radius <= n_combinatorial
            assert region.side == 0 if not n_real else SIDE_FLOOR <= region.side <= SIDE_CAP
            assert region.radius <= n_combinatorial


def test_one_failure_shrinks_each_kind_by_its_own_factor() -> None:
    region = bounce(TrustRegion.fresh(50, 3, 20), False)
    assert region.radius == pytest.approx(40 * (1 / 40) ** (1 / 20))
    assert region.side == pytest.approx(0.8 * (2**-7 / 0.8) ** (1 / 20))
    twice = bounce(bounce(TrustRegion.fresh(50, 3, 20), False), False)
    assert bounce(TrustRegion.fresh(50, 3, 20), False, 2).radius == pytest.approx(twice.radius)


def test_a_success_expands_and_the_factor_adjusts() -> None:
    region = bounce(bounce(TrustRegion.fresh(50, 0, 20), False), True)
    factor = (1 / 40) ** (1 / 20)
    length = 40 * factor
    assert region.radius == pytest.approx(length / (1 / length) ** (1 / 19))
    assert bounce(region, False).radius == pytest.approx(region.radius * (1 / region.radius) ** (1 / 18))


def test_an_overspent_space_ends_with_the_next_failure() -> None:
    region = TrustRegion.fresh(50, 0, 3)
    for _ in range(5):
        region = bounce(region, True)
    assert region.used > region.budget
    assert not region.collapsed
    assert bounce(region, False).collapsed


def test_a_single_combinatorial_bin_ends_with_its_budget() -> None:
    region = TrustRegion.fresh(1, 0, 2)
    assert region.radius == RADIUS_FLOOR
    region = bounce(region, False)
    assert not region.collapsed
    assert bounce(region, True).collapsed


def test_a_kind_that_starts_at_its_floor_does_not_end_the_space() -> None:
    region = TrustRegion.fresh(1, 4, 10)
    for _ in range(9):
        region = bounce(region, False)
        assert not region.collapsed
    assert bounce(region, False).collapsed


def test_a_success_of_a_huge_batch_is_no_overflow() -> None:
    region = bounce(TrustRegion.fresh(40, 3, 1), True, 500)
    assert (region.radius, region.side) == (40.0, SIDE_CAP)


def test_a_collapsed_region_stays_collapsed() -> None:
    region = bounce(TrustRegion.fresh(5, 0, 1), False)
    assert region.collapsed
    assert bounce(region, True) is region


def test_a_success_beats_the_incumbent_by_a_thousandth() -> None:
    assert improves(0.998, 1.0)
    assert not improves(0.9995, 1.0)
    assert improves(-1.002, -1.0)
    assert not improves(-1.0005, -1.0)
    assert improves(-1e-12, 0.0)
    assert not improves(math.inf, 1.0)
    assert improves(1e300, math.inf)  # the incumbent's violation of a limit is unknown
    assert not improves(math.inf, math.inf)


def test_the_box_has_the_shape_of_the_lengthscales() -> None:
    region = TrustRegion.fresh(0, 3, 10)
    low, high = region.box(np.array([0.5, 0.5, 0.1]), np.array([1.0, 0.25, 4.0]), cap=None)
    np.testing.assert_allclose(high - low, [0.8, 0.2, 1.0])  # the last is clipped to [0, 1]
    assert low.min() >= 0
    assert high.max() <= 1


def test_reals_that_do_not_matter_leave_room_for_those_that_do() -> None:
    lengthscales = np.array([0.25, 5.0, 13.0])
    for n_combinatorial in (0, 9):
        low, high = TrustRegion.fresh(n_combinatorial, 3, 10).box(np.full(3, 0.5), lengthscales, cap=0.5)
        assert (high - low)[0] > 0.4
        assert (high - low)[1] == (high - low)[2]


def test_without_a_cap_the_box_is_that_of_the_paper() -> None:
    lengthscales, centre = np.array([0.25, 5.0, 13.0]), np.full(3, 0.5)
    low, high = TrustRegion.fresh(9, 3, 10).box(centre, lengthscales, cap=None)
    np.testing.assert_allclose((high - low)[0], 0.8 * 0.25 / np.cbrt(0.25 * 5.0 * 13.0))


# Appendix "Effect of trust-region management": τ_fail = max(1, min(⌊m_i/k⌋, d_i)).
@pytest.mark.parametrize(
    ("strategy", "region", "in_input", "failures", "factor"),
    [
        ("baxus", TrustRegion.fresh(0, 20, 60), False, 10, 0.5),  # k = ⌊log2(0.8·128)⌋ = 6
        ("baxus", TrustRegion.fresh(0, 4, 60), False, 4, 0.5),  # d_i
        ("baxus", TrustRegion.fresh(0, 20, 3), False, 1, 0.5),
        ("baxus", TrustRegion.fresh(0, 20, 60), True, 20, 0.5),  # d_i in the input space
        ("casmopolitan", TrustRegion.fresh(40, 0, 90), False, 10, 1 / 1.5),  # k = ⌊log1.5(40)⌋ = 9
        ("casmopolitan", TrustRegion.fresh(3, 0, 90), True, 3, 1 / 1.5),
        ("casmopolitan", TrustRegion.fresh(40, 3, 90), False, 10, 1 / 1.5),  # the shorter way to a floor
    ],
)
def test_the_older_strategies_shrink_after_failures_in_a_row(
    strategy: str, region: TrustRegion, in_input: bool, failures: int, factor: float
) -> None:
    start = region
    for _ in range(failures - 1):
        region = after(region, False, 1, strategy=strategy, in_input=in_input)
        assert (region.radius, region.side) == (start.radius, start.side)
    region = after(region, False, 1, strategy=strategy, in_input=in_input)
    assert region.radius == pytest.approx(start.radius * factor)
    assert region.side == pytest.approx(start.side * factor)
    assert region.failures == 0


def test_the_older_strategies_expand_after_three_successes_in_a_row() -> None:
    region = start = TrustRegion.fresh(100, 3, 100)
    for outcome in (True, True, False, True, True):
        region = after(region, outcome, 1, strategy="casmopolitan", in_input=False)
        assert region.radius == start.radius
    region = after(region, True, 1, strategy="casmopolitan", in_input=False)
    assert [region.radius, region.side] == pytest.approx([60.0, 1.2])
    for _ in range(3):
        region = after(region, True, 1, strategy="baxus", in_input=False)
    assert (region.radius, region.side) == (100.0, SIDE_CAP)
