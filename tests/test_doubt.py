from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bounce import Bounce
from bounce.acquire import doubt
from bounce.acquire.doubt import doubted, earned, since_progress
from bounce.gp.fit import cold, fit
from bounce.gp.kernels import Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.method import Method
from spaces import binary, rows


def test_a_doubting_point_keeps_what_matters_and_changes_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    never_random(monkeypatch)
    space = binary(16)
    z = rows(space, 120)
    y = standardized(z[:, :4].sum(axis=1))
    gp = GP.at(Kernel(space, fit(space, Points(z), y, [cold(space)], Method())), Points(z))
    centre = np.zeros(16)
    point = doubted(gp, y, space, centre, rng=np.random.default_rng(1))
    assert point is not None
    assert (point[:4] == centre[:4]).all()
    assert np.count_nonzero(point[4:]) >= 3


def never_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no doubting point be without a tolerance."""
    monkeypatch.setattr(doubt, "RANDOM", 10**9)


def test_a_tolerance_that_was_earned_lets_more_change(monkeypatch: pytest.MonkeyPatch) -> None:
    never_random(monkeypatch)
    space = binary(24)
    z = rows(space, 60)
    y = standardized(z.sum(axis=1))  # everything matters: what changes costs
    gp = GP.at(Kernel(space, fit(space, Points(z), y, [cold(space)], Method())), Points(z))
    centre, changed = np.zeros(24), []
    for power in (0, 2, 4):
        point = doubted(gp, y, space, centre, earned=power, rng=np.random.default_rng(1))
        changed.append(0 if point is None else int(np.count_nonzero(point)))
    assert changed[0] < changed[1] < changed[2]


@pytest.mark.parametrize(
    ("values", "doubting", "times"),
    [
        ([], "", 0),
        ([3.0, 1.0, 1.0, 1.0], "...D", 1),
        ([3.0, 1.0, 1.0, 1.0], "..DD", 2),
        ([3.0, 1.0, 1.0, 2.0, 1.0], "..DDD", 1),  # one that cost something takes one away
        ([3.0, 1.0, 2.0, 2.0, 1.0], "..DDD", 1),  # but no more than there is
        ([3.0, 1.0, 1.0, np.nan], "..DD", 0),  # a failure costs something
        ([3.0, 2.0, 2.0, 1.0, 1.0], "..D.D", 1),  # only what came since the last progress counts
        ([3.0, *[1.0] * 20], "..D" + "D" * 18, 6),
    ],
)
def test_doubt_earns_a_larger_tolerance_where_it_costs_nothing(values: list[float], doubting: str, times: int) -> None:
    assert earned(np.array(values), np.array([mark == "D" for mark in doubting], dtype=bool)) == times


@pytest.mark.slow
def test_a_plateau_is_crossed_sooner_with_an_earned_tolerance() -> None:
    """On LeadingOnes each step needs one bit among those that change nothing."""

    def levels(tolerance: str) -> float:
        reached = 0.0
        for seed in range(2):
            opt = Bounce(binary(40), 80, seed=seed, method={"tolerance": tolerance})
            while not opt.done:
                (trial,) = opt.ask()
                bits = [trial.point[f"x{i}"] for i in range(40)]
                opt.tell(trial, -float(bits.index(False) if False in bits else 40))
            assert opt.best is not None
            assert opt.best.value is not None
            reached -= opt.best.value
        return reached / 2

    assert levels("earned") > levels("fixed")


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ([], 0),
        ([np.nan, np.nan], 0),
        ([3.0], 0),
        ([3.0, 1.0, 2.0, np.nan], 2),
        ([3.0, 1.0, 2.0, 2.0, 0.999], 3),  # an improvement of less than 1 % is not progress
        ([1.0, 1.0, 1.0], 2),
        ([1e308, 1.5e308, -1.7e308, 1.7e308, 1e308], 2),
    ],
)
def test_progress_is_an_improvement_that_counts(values: list[float], since: int) -> None:
    assert since_progress(np.array(values)) == since


def stuck(every: int | None) -> Bounce:
    """Return a run on a plateau, after its end."""
    opt = Bounce(binary(30), 60, seed=0, method={"doubt": every})
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, float(not all(trial.point[f"x{i}"] for i in range(6))))
    return opt


def test_a_run_without_progress_doubts_every_third_time_and_these_trials_do_not_move_the_region() -> None:
    opt = stuck(3)
    after = [t for t in opt.trials if t.id >= 15]
    doubting = [t for t in after if t.acquisition is None]
    assert len(after) / 4 <= len(doubting) <= len(after) / 2
    assert opt.best is not None
    for trial in doubting:
        following = [t for t in opt.trials if t.id == trial.id + 1 and t.stage == trial.stage]
        assert all((t.radius, t.side) == (trial.radius, trial.side) for t in following)
    assert not [t for t in stuck(None).trials if t.id >= 15 and t.acquisition is None]


def test_progress_leaves_no_room_for_doubt() -> None:
    opt = Bounce(binary(30), 30, seed=0)
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, float(-trial.id))
    assert [t.id for t in opt.trials if t.acquisition is None] == list(range(10))


def test_starts_of_the_user_earn_no_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    def earnings(points: int) -> int:
        given: list[int] = []

        def watched(*args: Any, earned: int, **rest: Any) -> Any:
            given.append(earned)
            return doubted(*args, earned=earned, **rest)

        monkeypatch.setattr("bounce.acquire.maximise.doubted", watched)
        opt = Bounce(binary(12), 100, seed=0)
        for _ in range(12):
            opt.tell(opt.ask(), [1.0])
        opt.enqueue([{f"x{i}": i < k for i in range(12)} for k in range(points)])
        while not given:
            opt.tell(opt.ask(), [1.0])
        return given[0]

    assert earnings(4) == earnings(0)
