from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bounce import Bounce, Categorical, Real, Space
from bounce.errors import InvalidOption
from runs import GROWING, drive, ones, sphere, through_json
from spaces import binary, mixed, reals

# Methods whose points without an acquisition value are initial ones; the default has those that doubt the model too.
SURE = pytest.mark.parametrize("method", [{"doubt": None}, "paper"], ids=["default", "paper"])


def test_an_extended_run_uses_exactly_its_new_budget() -> None:
    opt = Bounce(binary(30), 20, seed=0)
    drive(opt)
    assert opt.done
    opt.extend(35)
    assert not opt.done
    assert opt.remaining == 15
    assert len(drive(opt)) == 35
    assert through_json(opt).done


@pytest.mark.slow
@pytest.mark.parametrize("method", ["0.1", "paper"])
@pytest.mark.parametrize("restored", [False, True])
def test_a_run_that_ended_continues_around_its_best_point(method: str, restored: bool) -> None:
    opt = Bounce(reals(3), 30, seed=0, method=method)
    old = drive(opt, sphere)
    assert opt.stage.region.collapsed
    best = min(t.value for t in old if t.value is not None)
    if restored:
        opt = through_json(opt)
    opt.extend(45)
    new = drive(opt, sphere)[30:]
    assert len(new) == 15
    assert all(t.acquisition is not None for t in new)
    assert {t.restart for t in new} == {old[-1].restart}
    assert new[0].side == 0.8
    values = [t.value for t in new if t.value is not None]
    assert min(values) <= max(best, 1e-3)
    assert np.median(values) < 0.1 * np.median([t.value for t in old[:5] if t.value is not None])


@pytest.mark.slow
@pytest.mark.parametrize("space", [binary(12), mixed(2)], ids=["binary", "mixed"])
@SURE
def test_an_extended_run_of_any_kind_has_no_new_initial_points(space: Space, method: Any) -> None:
    opt = Bounce(space, 40, seed=0, method=method)
    drive(opt, lambda p: 1.0)
    restart = opt.trials[-1].restart
    opt.extend(46)
    new = drive(opt, lambda p: 1.0)[40:]
    assert all(t.acquisition is not None for t in new)
    assert {t.restart for t in new} == {restart}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["default", GROWING, "paper"], ids=["default", "growing", "paper"])
def test_a_design_that_the_budget_cut_short_is_completed(method: Any) -> None:
    opt, whole = Bounce(mixed(2), 3, seed=0, method=method), Bounce(mixed(2), 50, seed=0, method=method)
    drive(opt)
    opt.extend(50)
    for each in (opt, whole):
        while len(each.trials) < 6:
            (trial,) = each.ask()
            each.tell(trial, ones(trial.point))
    trials, expected = opt.trials, whole.trials
    assert [t.acquisition is None for t in trials] == [True] * 5 + [False]
    assert [t.point for t in trials[:5]] == [t.point for t in expected[:5]]
    assert (opt.stage.entered, opt.stage.restart) == (whole.stage.entered, 0)


def test_a_design_grows_only_as_far_as_the_budget() -> None:
    opt = Bounce(binary(20), 2, seed=0, initial_points=5)
    drive(opt)
    opt.extend(4)
    assert [t.acquisition for t in drive(opt)] == [None] * 4
    opt.extend(6)
    assert [t.acquisition is None for t in drive(opt)] == [True] * 5 + [False]


def test_extending_in_the_middle_slows_the_shrinking_down() -> None:
    opts = [Bounce(binary(40), 50, seed=0, initial_dims=40, initial_points=5, budget_to_input=25) for _ in range(2)]
    opts[1].extend(500)
    for opt in opts:
        opt.tell(opt.ask(5), [1.0] * 5)
        opt.tell(opt.ask(), [1.0])
    assert opts[1].ask()[0].radius > opts[0].ask()[0].radius


@pytest.mark.parametrize("total", [4, 0, -1, 2.5, "ten", None, True])
def test_a_budget_that_cannot_be_is_refused(total: Any) -> None:
    opt = Bounce(binary(10), 9, seed=0)
    opt.ask(5)
    with pytest.raises(InvalidOption, match="budget must be"):
        opt.extend(total)
    assert opt.remaining == 4


def test_a_design_over_which_the_model_has_taken_does_not_grow() -> None:
    branches = Categorical("m", list("abcdefgh"))
    space = Space([branches, Real("x", 0, 1, when={"m": ["a"]}), Real("y", 0, 1)])
    opt = Bounce(space, 24, seed=0, method={"auditions": None, "doubt": None, "repeats": None})
    drive(opt, lambda p: (p["y"] - 0.3) ** 2)
    assert sum(t.acquisition is None for t in opt.trials) == 6  # 24 with the larger budget
    opt.extend(34)
    new = drive(opt, lambda p: (p["y"] - 0.3) ** 2)[24:]
    assert all(t.acquisition is not None for t in new)
