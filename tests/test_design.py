from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import Bounce, Categorical, Integer, Real, Space
from bounce.acquire.design import centred, latin
from bounce.spaces.kinds import GRID
from spaces import mixed, spaces


@given(spaces(), st.integers(1, 20), st.integers(0, 99))
def test_a_latin_design_has_points_of_the_space_in_every_part_of_each_range(space: Space, n: int, seed: int) -> None:
    z = latin(space, n, seed=seed)
    assert space.holds(z)
    np.testing.assert_array_equal(latin(space, n, seed=seed), z)
    borders = np.arange(n + 1) / n
    for j, cardinality in enumerate(space.cardinalities.tolist()):
        codes = np.sort(z[:, j])
        if cardinality == 0:  # rounding to the grid may cross a border
            assert (codes >= borders[:-1] - 1 / GRID).all()
            assert (codes <= borders[1:] + 1 / GRID).all()
        elif cardinality <= n:
            counts = np.bincount(codes.astype(int), minlength=cardinality)
            assert set(counts.tolist()) <= {n // cardinality, -(-n // cardinality)}
        else:  # a border may lie within a code
            assert (codes >= np.floor(borders[:-1] * cardinality)).all()
            assert (codes <= borders[1:] * cardinality).all()


@given(spaces(), st.integers(1, 20))
def test_a_centred_design_has_its_first_numbers_in_the_middle_and_nothing_else_changed(space: Space, n: int) -> None:
    before = latin(space, n, seed=0)
    z = centred(space, before)
    assert space.holds(z)
    np.testing.assert_array_equal(z[1:], before[1:])
    for j, (kind, cardinality) in enumerate(zip(space.kinds, space.cardinalities.tolist(), strict=True)):
        if kind == "real":
            assert z[0, j] == 0.5
        elif kind == "ordinal":
            assert abs(z[0, j] - (cardinality - 1) / 2) <= 0.5
        else:
            assert z[0, j] == before[0, j]


@pytest.mark.parametrize("n", [3, 60], ids=["no embedding", "embedded"])
def test_a_run_begins_in_the_middle_of_the_ranges(n: int) -> None:
    numbers = [Real("rate", 1e-4, 1.0, log=True), *(Integer(f"i{j}", 0, 8) for j in range(n))]
    first = Bounce(Space([*numbers, Categorical("c", list("abc"))]), 20, seed=0).ask()[0].point
    assert first["rate"] == pytest.approx(1e-2)
    assert all(first[f"i{j}"] == 4 for j in range(n))


def test_an_embedding_of_reals_alone_does_not_begin_in_the_middle() -> None:
    first = Bounce(Space([Real(f"x{i}", 0, 1) for i in range(60)]), 20, seed=0).ask()[0].point
    assert all(value != 0.5 for value in first.values())


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_every_category_is_seen_however_the_design_is_asked_for(batch: int) -> None:
    space = Space([Categorical("family", list("abcde")), *(Real(f"x{i}", 0, 1) for i in range(15))])
    opt = Bounce(space, 30, seed=3, batch_size=batch)
    points: list[dict[str, Any]] = []
    while len(points) < 8:
        trials = opt.ask()
        points += [t.point for t in trials]
        opt.tell(trials, [1.0] * len(trials))
    assert {point["family"] for point in points[:8]} == set("abcde")


def test_small_spaces_have_no_embedding_and_half_as_many_initial_points_as_variables() -> None:
    assert Bounce(mixed(4), 60, seed=0).stage.embedding.is_input
    assert len(mixed(4)) == 20
    opt = Bounce(mixed(4), 60, seed=0)
    for trial in opt.ask(10):
        opt.tell(trial, float(trial.id))
    assert all(t.acquisition is None for t in opt.trials)
    assert opt.ask()[0].acquisition is not None
    assert not Bounce(mixed(5), 60, seed=0).stage.embedding.is_input
    assert not Bounce(mixed(4), 60, seed=0, method="paper").stage.embedding.is_input
