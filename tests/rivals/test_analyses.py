from __future__ import annotations

import numpy as np
import pytest

from bounce.baselines.rivals.analyses import (
    any_category,
    category_shares,
    category_shares_drawn,
    one_category,
    sequency,
    zero_sequency,
    zero_sequency_drawn,
)
from bounce.baselines.rivals.dictionaries import described, published


def test_sequency_counts_changes() -> None:
    assert sequency(np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1], [2, 2, 1, 1]])).tolist() == [0, 2, 3, 1]


def test_maxsat60_dictionaries_hold_a_zero_sequency_anchor_with_probability_0986() -> None:
    assert zero_sequency(60, 128) == pytest.approx(0.986, abs=5e-4)
    drawn = zero_sequency_drawn(described, 60, 128, draws=1_000, rng=np.random.default_rng(0))
    assert drawn == pytest.approx(zero_sequency(60, 128), abs=4 * np.sqrt(0.986 * 0.014 / 1_000))
    few = zero_sequency_drawn(described, 60, 8, draws=5_000, rng=np.random.default_rng(1))
    assert few == pytest.approx(zero_sequency(60, 8), abs=4 * np.sqrt(0.25 / 5_000))


def test_the_published_sampler_never_draws_a_zero_sequency_anchor() -> None:
    assert zero_sequency_drawn(published, 60, 128, draws=200, rng=np.random.default_rng(0)) == 0.0


def test_pest_control_shares_are_01805_and_0278() -> None:
    shares = category_shares(25, 5)
    np.testing.assert_allclose(shares, [0.1805, 0.1805, 0.1805, 0.1805, 0.278], atol=2e-4)
    assert shares.sum() == pytest.approx(1.0)
    drawn = category_shares_drawn(published, 25, 5, draws=40_000, rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn, shares, atol=4 * 0.17 / np.sqrt(40_000))
    # The paper's 95 % confidence intervals contain the formula's shares.
    low, high = np.array([[0.1799, 0.1807], [0.1802, 0.1810], [0.1803, 0.1811], [0.1801, 0.1809], [0.2775, 0.2783]]).T
    assert ((low <= shares) & (shares <= high)).all()


def test_described_shares_are_equal() -> None:
    drawn = category_shares_drawn(described, 25, 5, draws=40_000, rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn, 0.2, atol=4 * 0.17 / np.sqrt(40_000))


def test_the_last_category_is_never_absent_from_published_anchors() -> None:
    anchors = published(np.full(25, 5), 20_000, rng=np.random.default_rng(0))
    assert (anchors == 4).any(axis=1).all()
    assert not (anchors == 0).any(axis=1).all()


def test_one_category_by_formula_and_by_draws() -> None:
    assert one_category(25, 5, 128) < 0.01  # "effectively zero" (appendix)
    assert one_category(60, 2, 128) == pytest.approx(1 - (1 - 1 / 61) ** 128)  # all ones, on bits
    anchors = described(np.full(4, 3), 3 * 40_000, rng=np.random.default_rng(0))
    drawn = (anchors == 2).all(axis=1).reshape(-1, 3).any(axis=1).mean()
    assert drawn == pytest.approx(one_category(4, 3, 3), abs=4 * np.sqrt(0.25 / 40_000))


def test_any_category_by_formula_and_by_draws() -> None:
    assert any_category(25, 5, 128) == pytest.approx(0.0266, abs=5e-5)
    assert any_category(60, 2, 128) == pytest.approx(zero_sequency(60, 128))  # of bits it is zero sequency
    assert any_category(1, 5, 1) == pytest.approx(1.0)
    anchors = described(np.full(4, 3), 3 * 40_000, rng=np.random.default_rng(0))
    drawn = (anchors == anchors[:, :1]).all(axis=1).reshape(-1, 3).any(axis=1).mean()
    assert drawn == pytest.approx(any_category(4, 3, 3), abs=4 * np.sqrt(0.25 / 40_000))
