"""Repeats: points that are evaluated once more, since their values may be lucky ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bounce import Bounce, Categorical, Space
from bounce.trial import Trial
from runs import ones
from spaces import binary

Objective = Callable[[Trial], float]


def noisy(trial: Trial) -> float:
    """Noise of a quarter of the range of all values: a new draw for every trial."""
    return ones(trial.point) + 3.0 * float(np.random.default_rng(trial.id).standard_normal())


def exact(trial: Trial) -> float:
    """A value that depends on the point alone, and in which no model finds an order."""
    return float(np.random.default_rng([int(x) for x in trial.point.values()]).standard_normal())


def run(objective: Objective, n: int = 60, batch: int = 1, space: Space | None = None, **options: Any) -> list[Trial]:
    opt = Bounce(binary(12) if space is None else space, n, seed=0, batch_size=batch, **options)
    while not opt.done:
        for trial in opt.ask():
            opt.tell(trial, objective(trial))
    return opt.trials


def repeats(trials: list[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.repeats is not None]


def test_where_values_are_noisy_every_fourth_evaluation_repeats_an_earlier_point() -> None:
    trials = run(noisy)
    again = repeats(trials)
    assert len(again) >= 5
    assert {trial.id % 4 for trial in again} == {0}
    assert min(trial.id for trial in again) >= 20
    for trial in again:
        first = trials[trial.repeats]  # type: ignore[index]
        assert first.id < trial.id
        assert first.repeats is None
        assert first.point == trial.point
        assert first.value != trial.value


def test_a_point_that_is_repeated_is_one_of_the_best_so_far() -> None:
    trials = run(noisy)
    for trial in repeats(trials):
        told = sorted(float(t.value) for t in trials[: trial.id] if t.value is not None)
        mean = np.mean([float(t.value or 0.0) for t in trials[: trial.id] if t.point == trial.point])
        assert mean <= told[len(told) // 2]


def test_values_that_turn_out_to_be_exact_end_the_repeats() -> None:
    again = repeats(run(exact, 100))
    assert len(again) == 2
    assert len(repeats(run(noisy, 100))) > 10


@pytest.mark.parametrize("options", [{"noise": "none"}, {"method": {"repeats": None}}, {"method": "paper"}])
def test_no_point_is_repeated_if_none_should_be(options: dict[str, Any]) -> None:
    trials = run(noisy, 40, **options)
    assert not repeats(trials)
    assert max(Counter(str(trial.point) for trial in trials).values()) == 1


def test_a_batch_repeats_different_points() -> None:
    trials = run(noisy, 64, batch=16)
    for start in range(0, 64, 16):
        again = [t.repeats for t in repeats(trials) if start <= t.id < start + 16]
        assert len(set(again)) == len(again)
    assert len(repeats(trials)) >= 4


def test_a_point_whose_repeat_is_pending_is_not_repeated_again() -> None:
    opt = Bounce(binary(12), 60, seed=0)
    for _ in range(24):
        (trial,) = opt.ask()
        opt.tell(trial, noisy(trial))
    pending = [opt.ask()[0] for _ in range(16)]
    again = [trial.repeats for trial in pending if trial.repeats is not None]
    assert len(again) >= 2
    assert len(set(again)) == len(again)


def test_a_run_with_repeats_continues_from_its_state_bit_for_bit() -> None:
    opt = Bounce(binary(12), 60, seed=0)
    for _ in range(60):
        opt = Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict())))
        (trial,) = opt.ask()
        opt.tell(trial, noisy(trial))
    assert [(t.point, t.repeats) for t in opt.trials] == [(t.point, t.repeats) for t in run(noisy)]


def test_a_repeat_neither_moves_the_region_nor_counts_as_a_doubting_point() -> None:
    opt = Bounce(binary(12), 60, seed=0)
    moved = 0
    while not opt.done:
        (trial,) = opt.ask()
        before = opt.stage.region
        opt.tell(trial, noisy(trial))
        if trial.repeats is not None:
            assert opt.stage.region == before
        else:
            moved += opt.stage.region != before
    assert moved > 10


def test_a_point_whose_value_is_told_to_be_exact_is_not_repeated() -> None:
    opt = Bounce(binary(12), 60, seed=0)
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, noisy(trial), sem=0 if trial.id % 2 else None)
    again = [opt.trial(t.repeats) for t in opt.trials if t.repeats is not None]
    assert len(again) >= 5
    assert {trial.sem for trial in again} == {None}


def test_results_of_one_point_are_repeated_once() -> None:
    """They are one point, whoever evaluated it: it is named by its first trial, and not repeated twice at a time."""
    space = binary(12)
    opt = Bounce(space, 60, seed=0)
    points = space.decode(space.sample(24, rng=np.random.default_rng(0)))
    opt.add(points, np.random.default_rng(1).standard_normal(24))
    opt.add([points[0]] * 3 + [points[1]] * 3, [-3.0] * 6)
    for _ in range(2):
        again = [trial.repeats for trial in opt.ask(16) if trial.repeats is not None]
        assert again.count(0) <= 1
        assert again.count(1) <= 1
        assert not {24, 25, 26, 27, 28, 29} & set(again)
    repeated = [trial.repeats for trial in opt.pending if trial.repeats is not None]
    assert {0, 1} <= set(repeated)
    assert len(set(repeated)) == len(repeated)


def test_a_repeat_for_which_another_point_was_used_says_nothing_of_the_first() -> None:
    opt = Bounce(binary(12), 80, seed=0)
    while not opt.done:
        (trial,) = opt.ask()
        if trial.repeats is None:
            opt.tell(trial, noisy(trial))
        else:
            other = {name: not x for name, x in trial.point.items()}
            opt.tell(trial, opt.trial(trial.repeats).value, point=other)
    assert len(repeats(opt.trials)) > 5


def test_a_trial_that_left_the_space_is_not_repeated_any_more() -> None:
    """Its point was corrected, so those that repeated it are still there, with the best values."""
    wide, narrow = (Space([*binary(10).parameters, Categorical("c", choices)]) for choices in (list("abz"), list("ab")))
    opt = Bounce(wide, 100, seed=0)
    while not opt.done:
        (trial,) = opt.ask()
        if trial.repeats is not None:
            first = opt.trial(trial.repeats)
            assert (first.state, first.point) == ("done", trial.point)
        opt.tell(trial, float(np.random.default_rng(trial.id).standard_normal()) - (trial.repeats is not None))
        if trial.id == 60:
            firsts = {t.repeats for t in repeats(opt.trials) if t.repeats is not None}
            for i in firsts:
                opt.correct(i, point=opt.trial(i).point | {"c": "z"})
            assert firsts & {t.id for t in opt.change(narrow)}
    assert len([t for t in repeats(opt.trials) if t.id > 60]) > 5
