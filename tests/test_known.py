"""What people already know: results that nobody asked for, starts, corrections."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounce import (
    Binary,
    Bounce,
    Categorical,
    Integer,
    InvalidOption,
    InvalidPoint,
    InvalidTell,
    NothingToAsk,
    Ordinal,
    Real,
    Space,
    Study,
    Trial,
)
from bounce.acquire.maximise import Search, propose
from bounce.trial import STATES
from runs import GROWING, through_json
from spaces import binary, mixed

SPACE = Space(
    [
        Real("a", 0, 1),
        Real("b", 1e-3, 10, log=True),
        Ordinal("o", list(range(7))),
        Categorical("c", list("abcd")),
        Categorical("d", list("xyz")),
        *(Binary(f"x{i}") for i in range(9)),
    ]
)


def value(point: dict[str, Any]) -> float:
    bits = sum(point[f"x{i}"] != (i % 2 == 1) for i in range(9))
    return float((point["a"] - 0.3) ** 2 + abs(point["o"] - 4) / 7 + (point["c"] != "b") + 0.2 * bits)


def drawn(n: int, seed: int = 0, space: Space = SPACE) -> list[dict[str, Any]]:
    return space.decode(space.sample(n, rng=np.random.default_rng(seed)))


def reopened(optimizer: Bounce) -> Bounce:
    """The optimizer as a file would give it back."""
    return Bounce.from_state_dict(json.loads(json.dumps(optimizer.state_dict())))


def step(optimizer: Bounce, n: int = 1) -> list[Trial]:
    trials = optimizer.ask(n)
    optimizer.tell(trials, [value(trial.point) for trial in trials])
    return trials


def test_added_results_cost_no_budget_and_are_known() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    points = drawn(4)
    trials = optimizer.add(points, [3.0, 1.0, 2.0, 5.0])
    assert [(t.id, t.state, t.value) for t in trials] == [(i, "added", v) for i, v in enumerate([3.0, 1.0, 2.0, 5.0])]
    assert optimizer.remaining == 10
    assert optimizer.best is not None
    assert optimizer.best.id == 1
    asked = [trial for _ in range(10) for trial in step(optimizer)]
    assert optimizer.done
    assert not [trial for trial in asked if trial.point in points]


def test_repeated_points_may_be_added() -> None:
    optimizer = Bounce(SPACE, 8, seed=0)
    (point,) = drawn(1)
    optimizer.add([point] * 5, [1.0, 1.2, 0.9, 1.1, 1.0])
    while not optimizer.done:
        step(optimizer)
    assert len(optimizer.trials) == 13


@pytest.mark.parametrize("n", [1, 3, 5, 20])
def test_known_results_take_the_place_of_initial_points(n: int) -> None:
    optimizer = Bounce(SPACE, 20, seed=0, initial_points=5, method={"doubt": None, "auditions": None})
    points = drawn(n)
    optimizer.add(points, map(value, points))
    initial = [trial for trial in (step(optimizer)[0] for _ in range(8)) if trial.acquisition is None]
    assert len(initial) == max(0, 5 - n)


def test_enqueued_points_take_the_place_of_initial_points() -> None:
    optimizer = Bounce(SPACE, 20, seed=0, initial_points=5, method={"doubt": None, "auditions": None})
    optimizer.enqueue(drawn(2))
    assert sum(step(optimizer)[0].acquisition is None for _ in range(10)) == 5


def test_the_first_proposal_is_made_around_the_best_known_point() -> None:
    """In a stage of few bins the best known point would not exist, if it did not anchor the stage."""
    optimizer = Bounce(SPACE, 60, seed=1, initial_dims=5)
    points = drawn(30)
    optimizer.add(points, map(value, points))
    (trial,) = optimizer.ask()
    stage = optimizer.stage
    assert stage.number == 1
    assert trial.target_dim < len(SPACE)
    assert optimizer.best is not None
    assert stage.embedding.down(SPACE.encode([optimizer.best.point]))[1].all()


@pytest.mark.parametrize("bins", [5, len(SPACE)])
def test_the_region_lies_around_the_best_known_point(bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    centres = []

    def watched(search: Search, *args: Any, **kwargs: Any) -> Any:
        centres.append(search.seen.embedding.up(search.region.centre[None])[0])
        return propose(search, *args, **kwargs)

    monkeypatch.setattr("bounce.optimizer.model.propose", watched)
    optimizer = Bounce(SPACE, 60, seed=1, initial_dims=bins)
    points = drawn(8)
    optimizer.add(points, [5, 4, 3, -9, 2, 1, 7, 8])
    optimizer.ask()
    np.testing.assert_array_equal(centres, SPACE.encode([points[3]]))


def test_past_results_are_learned_from() -> None:
    """Fifty results say what matters, so ten evaluations are worth more than ten of a cold run."""
    cold: list[float] = []
    warm: list[float] = []
    for seed in range(4):
        for known, ends in ((0, cold), (50, warm)):
            optimizer = Bounce(SPACE, 12, seed=seed)
            points = drawn(known, seed)
            optimizer.add(points, map(value, points))
            ends.append(min(value(step(optimizer)[0].point) for _ in range(12)))
    assert np.mean(warm) < 0.5 * np.mean(cold)


def test_nothing_is_added_if_one_row_is_wrong() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    good = drawn(2)
    before = optimizer.state_dict()
    with pytest.raises(InvalidPoint, match="point 2: 'c' must be one of"):
        optimizer.add([*good, good[0] | {"c": "q"}], [1, 2, 3])
    with pytest.raises(InvalidTell, match="finite number"):
        optimizer.add(good, [1, float("nan")])
    with pytest.raises(InvalidTell, match="2 points need 2 values, not 3"):
        optimizer.add(good, [1, 2, 3])
    assert optimizer.state_dict() == before


def test_enqueued_points_are_asked_for_first_in_order() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    points = drawn(3)
    queued = optimizer.enqueue(points)
    assert [trial.state for trial in queued] == ["queued"] * 3
    assert optimizer.remaining == 10
    assert [trial.point for trial in optimizer.ask(2)] == points[:2]
    more = optimizer.ask(2)
    assert more[0].point == points[2]
    assert more[1].point not in points
    assert optimizer.remaining == 6


def test_a_partial_point_is_completed_from_the_best_one() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    points = drawn(2)
    optimizer.add(points, [2.0, 1.0])
    optimizer.enqueue({"a": 0.25, "c": "b"})
    (trial,) = optimizer.ask()
    assert trial.point == points[1] | {"a": 0.25, "c": "b"}
    with pytest.raises(InvalidPoint, match="point 0: no parameter is called 'nonsense', only a, b"):
        optimizer.enqueue({"nonsense": 1})


def test_a_partial_point_is_completed_when_it_is_asked_for_not_before() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    (queued,) = optimizer.enqueue({"a": 0.25})
    assert queued.point == {"a": 0.25}
    points = drawn(2)
    optimizer.add(points, [2.0, 1.0])
    again = Bounce.from_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    assert again.trials == optimizer.trials
    for resumed in (optimizer, again):
        (trial,) = resumed.ask()
        assert trial.point == points[1] | {"a": 0.25}
        resumed.tell(queued, 3.0)  # the trial as it was enqueued is the same trial
        assert resumed.trial(queued.id).value == 3.0


def test_partial_points_become_different_unseen_points_while_there_are_any() -> None:
    optimizer = Bounce(Space([Categorical("c", ["x", "y"]), Binary("b")]), 4, seed=0)
    optimizer.enqueue([{"c": "x"}] * 3)
    optimizer.add([{"c": "y", "b": True}], [1.0])
    trials = optimizer.ask(3)
    assert sorted(trial.point["b"] for trial in trials[:2]) == [False, True]
    assert [trial.point["c"] for trial in trials] == ["x"] * 3


def test_a_draw_beside_a_partial_point_is_another_point() -> None:
    optimizer = Bounce(Space([Binary("a"), Binary("b")]), 4, seed=0)
    optimizer.enqueue([{"a": True}, {"a": False}])
    points = [tuple(trial.point.values()) for trial in optimizer.ask(4)]
    assert len(set(points)) == 4


def test_a_partial_point_survives_a_change_of_the_space() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    (queued,) = optimizer.enqueue({"a": 0.25})
    names = [parameter.name for parameter in SPACE.parameters]
    optimizer.change(Space([*SPACE.parameters, Binary("new")]), defaults={"new": True})
    assert optimizer.trial(queued.id).state == "queued"
    (trial,) = optimizer.ask()
    assert trial.point["a"] == 0.25
    assert trial.point["new"] is True
    assert set(trial.point) == {*names, "new"}


def test_a_foreign_result_after_a_fit_is_seen_as_a_restored_run_sees_it() -> None:
    space = Space([Binary(f"b{i}") for i in range(30)])
    optimizer = Bounce(space, 1000, seed=0, initial_dims=5, budget_to_input=900)
    for i in range(60):
        optimizer.tell(optimizer.ask(), [float(i * i % 17)])
    for point in space.decode(space.sample(5, rng=np.random.default_rng(0))):
        optimizer.add([point], [9.0])
        again = Bounce.from_state_dict(optimizer.state_dict())
        ((here,), (there,)) = optimizer.ask(), again.ask()
        assert (here.point, here.acquisition) == (there.point, there.acquisition)
        optimizer.tell(here, 3.0)


def test_a_refused_start_changes_nothing() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    before = optimizer.state_dict()
    with pytest.raises(InvalidPoint, match="point 0: 'a' must lie between"):
        optimizer.enqueue({"a": 7})
    assert optimizer.state_dict() == before


def test_the_point_that_was_really_used_is_what_the_model_sees() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    (trial,) = optimizer.ask()
    used = trial.point | {"a": 0.834}
    optimizer.tell(trial, 1.5, point=used)
    assert optimizer.trial(0).point == used
    again = reopened(optimizer)
    assert again.trial(0).point == used
    assert again.state_dict() == optimizer.state_dict()
    asked = {tuple(step(optimizer)[0].point.items()) for _ in range(9)}
    assert tuple(used.items()) not in asked
    assert tuple(trial.point.items()) not in asked


def test_a_note_stays_with_its_trial() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    (trial,) = optimizer.ask()
    optimizer.tell(trial, 1.5, note="stirred by hand")
    assert reopened(optimizer).trial(0).notes == {"note": "stirred by hand"}


def test_a_corrected_value_replaces_the_wrong_one_in_the_model() -> None:
    """A typo of 1000 is as if it had never been, once it is corrected."""
    runs = []
    for typo in (False, True):
        optimizer = Bounce(SPACE, 30, seed=0, method=GROWING)
        for i in range(12):
            (trial,) = optimizer.ask()
            wrong = typo and i == 11
            optimizer.tell(trial, -1000.0 if wrong else value(trial.point))
        if typo:
            optimizer.correct(11, value(optimizer.trial(11).point))
        assert optimizer.best is not None
        assert optimizer.best.value == min(t.value for t in optimizer.trials if t.value is not None)
        runs.append(optimizer)
    assert [t.value for t in runs[0].trials] == [t.value for t in runs[1].trials]
    with pytest.raises(InvalidTell, match="trial 3: give the right value, standard error, outcomes or point"):
        runs[0].correct(3)


def test_only_a_trial_with_a_value_can_be_corrected() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    optimizer.ask()
    with pytest.raises(InvalidTell, match="trial 0 is pending, not done or added"):
        optimizer.correct(0, 1.0)
    optimizer.add(drawn(1), [1.0])
    optimizer.correct(1, 2.0, point=drawn(1, 5)[0])
    assert (optimizer.trial(1).value, optimizer.trial(1).point) == (2.0, drawn(1, 5)[0])


def test_a_failed_trial_is_retried_at_no_further_cost() -> None:
    optimizer = Bounce(SPACE, 5, seed=0)
    trials = optimizer.ask(5)
    optimizer.tell(trials[:3], [1.0, 2.0, 3.0])
    optimizer.fail(trials[3:], "no power")
    assert optimizer.done
    assert optimizer.retry([3, 4]) == [3, 4]
    assert [trial.id for trial in optimizer.pending] == [3, 4]
    assert optimizer.trial(3).error is None
    optimizer = reopened(optimizer)
    optimizer.tell([3, 4], [0.5, 0.7])
    assert optimizer.done
    assert optimizer.best is not None
    assert optimizer.best.id == 3
    optimizer.retry(3)  # which was not failed: its value is measured again
    assert (optimizer.trial(3).state, optimizer.trial(3).value) == ("pending", None)
    with pytest.raises(InvalidTell, match="trial 3 is pending, not failed or done"):
        optimizer.retry(3)


def test_a_withdrawn_trial_gives_its_budget_back_and_may_be_proposed_again() -> None:
    space = Space([Binary("x"), Binary("y")])
    optimizer = Bounce(space, 4, seed=0)
    trials = optimizer.ask(4)
    with pytest.raises(NothingToAsk):
        optimizer.ask()
    optimizer.withdraw(trials[2:])
    assert optimizer.remaining == 2
    optimizer = reopened(optimizer)
    again = optimizer.ask(2)
    assert [trial.id for trial in again] == [4, 5]
    assert {tuple(t.point.items()) for t in again} == {tuple(t.point.items()) for t in trials[2:]}
    with pytest.raises(InvalidTell, match="trial 2 is withdrawn, not pending"):
        optimizer.tell(2, 1.0)


def test_results_that_are_taken_back_leave_the_model_and_their_points_may_come_again() -> None:
    def run(*, wrong: bool) -> list[dict[str, Any]]:
        optimizer = Bounce(SPACE, 40, seed=0, method=GROWING)
        if wrong:
            optimizer.withdraw(optimizer.add(drawn(3, seed=5), [-9.0, -8.0, -7.0]))
        while len(optimizer.trials) < 14 + 3 * wrong:
            step(optimizer)
        return [trial.point for trial in optimizer.trials if trial.state == "done"]

    assert run(wrong=True) == run(wrong=False)


def test_a_point_that_was_used_instead_is_forgotten_with_its_value() -> None:
    optimizer = Bounce(SPACE, 40, seed=0)
    (trial,) = optimizer.ask()
    used = trial.point | {"a": 0.123}
    optimizer.tell(trial, 1.0, point=used, sem=0.1)
    optimizer.retry(trial)
    assert optimizer.trial(0).point == trial.point
    assert (optimizer.trial(0).sem, optimizer.pending[0].id) == (None, 0)
    optimizer = reopened(optimizer)
    optimizer.tell(0, 2.0)
    assert optimizer.trial(0).value == 2.0


def test_a_retried_trial_does_not_move_the_region_twice() -> None:
    optimizer = Bounce(SPACE, 40, seed=0, method=GROWING)
    while optimizer.ask()[0].acquisition is None:
        optimizer.tell(optimizer.pending, [value(optimizer.pending[0].point)])
    (trial,) = optimizer.pending
    optimizer.fail(trial, "no power")
    used = optimizer.stage.region.used
    optimizer.retry(trial.id)
    optimizer.tell(trial.id, value(trial.point))
    assert optimizer.stage.region.used == used


def changed(**replaced: Any) -> Space:
    """The space with some parameters replaced by others, removed (None) or added."""
    old = {parameter.name: parameter for parameter in SPACE.parameters}
    return Space([p for p in (old | replaced).values() if p is not None])


def test_a_choice_that_is_added_keeps_everything_and_is_tried() -> None:
    optimizer = Bounce(SPACE, 40, seed=0, method=GROWING)
    for _ in range(15):
        step(optimizer)
    before = optimizer.trials
    assert optimizer.change(changed(c=Categorical("c", list("abcde")))) == []
    assert [t.value for t in optimizer.trials] == [t.value for t in before]
    assert optimizer.remaining == 25
    later = [step(optimizer)[0] for _ in range(25)]
    assert "e" in {trial.point["c"] for trial in later}


def test_trials_with_a_removed_choice_stay_outside_and_leave_the_model() -> None:
    optimizer = Bounce(SPACE, 30, seed=0, method=GROWING)
    for _ in range(12):
        step(optimizer)
    with_b = [t for t in optimizer.trials if t.point["c"] == "b"]
    assert with_b
    outside = optimizer.change(changed(c=Categorical("c", list("acd"))))
    assert [(t.id, t.point, t.value) for t in outside] == [(t.id, t.point, t.value) for t in with_b]
    assert {t.state for t in outside} == {"outside"}
    assert optimizer.remaining == 18
    assert optimizer.best is not None
    assert optimizer.best.point["c"] != "b"
    again = reopened(optimizer)
    assert again.state_dict() == optimizer.state_dict()
    for _ in range(5):
        assert [t.point for t in step(again)] == [t.point for t in step(optimizer)]


@pytest.mark.parametrize(
    ("replaced", "defaults", "fits"),
    [
        ({"a": Real("a", -1, 2)}, {}, lambda point: True),
        ({"a": Real("a", 0, 0.5)}, {}, lambda point: point["a"] <= 0.5),
        ({"o": Real("o", 0, 6)}, {}, lambda point: True),
        ({"new": Binary("new")}, {"new": False}, lambda point: True),
        ({"x0": None}, {}, lambda point: True),
        ({"x0": None}, {"x0": True}, lambda point: point["x0"]),
    ],
    ids=["wider", "narrower", "type", "added", "removed", "fixed"],
)
def test_old_results_stay_where_they_fit(replaced: dict[str, Any], defaults: dict[str, Any], fits: Any) -> None:
    optimizer = Bounce(SPACE, 30, seed=0, method=GROWING)
    for _ in range(12):
        step(optimizer)
    before = optimizer.trials
    outside = optimizer.change(changed(**replaced), defaults)
    assert [t.id for t in outside] == [t.id for t in before if not fits(t.point)]
    for trial, old in zip(optimizer.trials, before, strict=True):
        assert trial.value == old.value
        if fits(old.point):
            shared = trial.point.keys() & old.point.keys()
            assert {k: trial.point[k] for k in shared} == pytest.approx({k: old.point[k] for k in shared})
            assert {k: trial.point[k] for k in trial.point.keys() - shared} == {
                k: v for k, v in defaults.items() if k in trial.point
            }
    (trial,) = optimizer.ask()
    assert trial.point in optimizer.space


def test_a_new_parameter_needs_a_default() -> None:
    optimizer = Bounce(SPACE, 30, seed=0)
    before = optimizer.state_dict()
    with pytest.raises(InvalidOption, match="'new' is new: defaults must have its value"):
        optimizer.change(changed(new=Binary("new")))
    with pytest.raises(InvalidOption, match="a default does not fit: 'new' must be"):
        optimizer.change(changed(new=Binary("new")), {"new": 3})
    with pytest.raises(InvalidOption, match="'a' is in both spaces"):
        optimizer.change(SPACE, {"a": 0.5})
    assert optimizer.state_dict() == before


CALLS = (
    *("ask", "tell", "used", "fail", "retry", "again", "withdraw", "back"),
    *("add", "enqueue", "correct", "extend", "reopen"),
)


def called(call: str, optimizer: Bounce, point: dict[str, Any], number: float) -> None:
    """Make a call if it can be made now."""
    ids = {state: [t.id for t in optimizer.trials if t.state == state] for state in STATES}
    pending, valued = ids["pending"], ids["done"] + ids["added"]
    calls: dict[str, tuple[Any, Callable[[], Any]]] = {
        "ask": (optimizer.remaining > 0, lambda: optimizer.ask(min(2, optimizer.remaining))),
        "tell": (pending, lambda: optimizer.tell(pending[-1], number)),
        "used": (pending, lambda: optimizer.tell(pending[-1], number, point=point)),
        "fail": (pending, lambda: optimizer.fail(pending[0], "failed")),
        "add": (True, lambda: optimizer.add([point], [number])),
        "enqueue": (True, lambda: optimizer.enqueue([point])),
        "correct": (valued, lambda: optimizer.correct(valued[0], number)),
        "retry": (ids["failed"], lambda: optimizer.retry(ids["failed"])),
        "again": (ids["done"], lambda: optimizer.retry(ids["done"][-1])),
        "withdraw": (pending, lambda: optimizer.withdraw(pending[0])),
        "back": (valued, lambda: optimizer.withdraw(valued[0])),
        "extend": (True, lambda: optimizer.extend(optimizer.budget + 1)),
    }
    possible, make = calls[call]
    if possible:
        make()


@given(
    st.lists(st.sampled_from(CALLS), min_size=5, max_size=25),
    st.integers(0, 1000),
    st.sampled_from(["default", GROWING]),
)
@settings(max_examples=15, deadline=None)
def test_any_order_of_calls_works_and_a_state_taken_anywhere_continues_bit_for_bit(
    calls: list[str], seed: int, method: Any
) -> None:
    space = mixed(2)
    one = Bounce(space, 12, seed=seed, method=method)
    rng = np.random.default_rng(seed)
    for call in calls:
        if call == "reopen":
            before = one.state_dict()
            one = reopened(one)
            assert one.state_dict() == before
        else:
            called(call, one, space.decode(space.sample(1, rng=rng))[0], float(rng.normal()))
    two = reopened(one)
    while one.remaining > 0:
        assert [trial.point for trial in one.ask()] == [trial.point for trial in two.ask()]
        for optimizer in (one, two):
            for trial in optimizer.pending:
                optimizer.tell(trial.id, float(space.encode([trial.point]).sum()))
    assert [(t.point, t.value, t.state) for t in one.trials] == [(t.point, t.value, t.state) for t in two.trials]


def test_notes_are_texts_or_refused() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    before = optimizer.state_dict()
    wrong: list[Any] = [["a"], [None], {"page": 12}, [{}, {}]]
    for notes in wrong:
        with pytest.raises(InvalidTell, match="notes must be a list of 1 dicts of texts"):
            optimizer.add(drawn(1), [1.0], notes=notes)
    assert optimizer.state_dict() == before
    odd: Any = [{"page": 12, "file": "caf\udce9.txt"}]
    optimizer.add(drawn(1), [1.0], notes=odd)
    assert reopened(optimizer).trial(0).notes == {"page": "12", "file": "caf\\udce9.txt"}


def test_a_point_that_was_really_used_reaches_the_model_while_others_are_pending() -> None:
    """A restored optimizer knows it, so the one that goes on must propose the same."""
    optimizer = Bounce(SPACE, 30, seed=0, method=GROWING)
    for _ in range(8):
        restored = reopened(optimizer)
        first = optimizer.ask()[0]
        assert first.point == restored.ask()[0].point
        second = optimizer.ask()[0]
        used: dict[str, Any] = {**first.point, "a": 0.9 if first.point["a"] != 0.9 else 0.8}
        optimizer.tell(first, value(used), point=used)
        optimizer.tell(second, value(second.point))


def test_a_point_that_was_asked_for_but_not_used_may_be_proposed_again() -> None:
    space = Space([Binary("x"), Binary("y")])
    optimizer = Bounce(space, 8, seed=0)
    (trial,) = optimizer.ask()
    other = trial.point | {"x": not trial.point["x"]}
    optimizer.tell(trial, 1.0, point=other)
    optimizer.correct(0, point=trial.point | {"y": not trial.point["y"]})
    assert optimizer.remaining == reopened(optimizer).remaining == 3
    rest = optimizer.ask(3)
    assert {tuple(t.point.items()) for t in optimizer.trials} == {tuple(p.items()) for p in space.decode(space.grid())}
    assert trial.point in [t.point for t in rest]


def test_a_parameter_that_is_removed_and_returns_has_its_old_values() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    points = drawn(4)
    optimizer.add(points, [0.0, 1.0, 2.0, 3.0])
    optimizer.change(changed(o=None))
    optimizer = reopened(optimizer)
    assert all("o" not in trial.point for trial in optimizer.trials)
    optimizer.change(SPACE, {"o": 0})
    assert [trial.point for trial in optimizer.trials] == points


@pytest.mark.parametrize("at_once", [True, False])
def test_what_was_left_outside_returns_with_the_default_of_a_parameter_added_since(at_once: bool) -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    points = [point | {"c": c} for point, c in zip(drawn(4), "abab", strict=True)]
    optimizer.add(points, [0.0, 1.0, 2.0, 3.0])
    optimizer.change(changed(c=Categorical("c", list("bcd"))))
    assert [trial.state for trial in optimizer.trials] == ["outside", "added", "outside", "added"]
    if at_once:
        optimizer.change(changed(new=Binary("new")), {"new": True})
    else:
        optimizer.change(changed(new=Binary("new"), c=Categorical("c", list("bcd"))), {"new": True})
        assert optimizer.trials[0].state == "outside"
        optimizer.change(changed(new=Binary("new")))
    assert [trial.state for trial in optimizer.trials] == ["added"] * 4
    assert [trial.point for trial in optimizer.trials] == [point | {"new": True} for point in points]


def test_a_failure_whose_text_is_not_unicode_is_kept() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    optimizer.fail(optimizer.ask(), "cannot open 'caf\udce9.txt'")
    assert reopened(optimizer).trial(0).error == "cannot open 'caf\\udce9.txt'"


def test_a_partial_point_stays_while_the_parameters_it_leaves_open_change() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    (queued, doomed) = optimizer.enqueue([{"c": "b"}, {"a": 0.05}])
    narrow = [Real("a", 0.5, 1.0) if p.name == "a" else p for p in SPACE.parameters]
    assert [trial.id for trial in optimizer.change(Space(narrow))] == [doomed.id]
    assert optimizer.trial(queued.id).point == {"c": "b"}
    (trial,) = optimizer.ask()
    assert trial.point["c"] == "b"
    assert 0.5 <= float(trial.point["a"]) <= 1.0


def test_a_value_of_none_is_named_as_it_was_given() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    with pytest.raises(InvalidTell, match="not None: call fail"):
        optimizer.tell(optimizer.ask(), [None])


def test_a_partial_start_beside_proposals_does_not_change_how_a_restored_run_continues() -> None:
    def next_point(*, restore: bool) -> dict[str, Any]:
        opt = Bounce(Space([Real("x", -1, 1)]), 20, seed=0, initial_points=1)
        opt.add([{"x": 0.5}], [1.0])
        opt.enqueue([{}])
        opt.ask(3)
        return (through_json(opt) if restore else opt).ask()[0].point

    assert next_point(restore=True) == next_point(restore=False)


def test_a_start_is_pending_for_the_proposals_of_the_same_ask() -> None:
    optimizer = Bounce(Space([Real("x", 0, 1), Real("y", 0, 1)]), 60, seed=1)
    for _ in range(10):
        (trial,) = optimizer.ask()
        optimizer.tell(trial, (float(trial.point["x"]) - 0.3) ** 2 + (float(trial.point["y"]) - 0.6) ** 2)
    free = optimizer.copy().ask()[0].point
    optimizer.enqueue([free | {"x": float(free["x"]) + 1e-4}])
    apart = optimizer.copy()
    together = optimizer.ask(2)[1]
    apart.ask(1)
    assert together.point == apart.ask(1)[0].point
    assert abs(float(together.point["x"]) - float(free["x"])) > 0.01


def test_a_partial_start_that_nothing_completes_in_a_new_space_is_left_outside() -> None:
    two = [Integer("a", 0, 10), Integer("b", 0, 10)]
    optimizer = Bounce(Space(two), 60, seed=0)
    hopeless, possible = optimizer.enqueue([{"a": 9}, {"a": 4}])
    left = optimizer.change(Space(two, constraints=["a + b <= 5"]))
    assert [trial.id for trial in left] == [hopeless.id]
    (trial,) = optimizer.ask()
    assert trial.id == possible.id
    assert int(trial.point["a"]) == 4
    assert int(trial.point["b"]) <= 1


def test_a_start_that_a_change_completes_must_fit_the_new_space() -> None:
    two = [Integer("a", 0, 10), Integer("b", 0, 10)]
    optimizer = Bounce(Space(two), 60, seed=0)
    doomed, fine = optimizer.enqueue([{"a": 9}, {"a": 4}])
    left = optimizer.change(Space(two[:1], constraints=["a <= 5"]))
    assert [trial.id for trial in left] == [doomed.id]
    assert [(trial.id, trial.point) for trial in optimizer.ask()] == [(fine.id, {"a": 4})]


def test_a_choice_on_which_a_condition_depends_may_be_removed() -> None:
    def space(values: str) -> Space:
        return Space([Categorical("m", list(values)), Real("p", 0, 1, when={"m": ["a"]}), Binary("z")])

    optimizer = Bounce(space("abc"), 30, seed=0)
    points = [{"m": "a", "p": 0.5, "z": True}, {"m": "c", "z": True}, {"m": "b", "z": False}]
    optimizer.add(points, [1.0, 2.0, 3.0])
    assert [trial.point for trial in optimizer.change(space("ab"))] == points[1:2]
    optimizer.change(space("abc"))
    assert [trial.point for trial in optimizer.trials] == points


def test_the_order_of_the_settings_of_a_start_does_not_matter() -> None:
    space = Space(
        [Categorical("m", list("abc")), Real("p", 0, 1, when={"m": ["a", "b"]}), Real("q", 0, 1, when={"m": ["b"]})]
    )
    for point in ({"p": 0.5, "q": 0.5}, {"q": 0.5, "p": 0.5}):
        (trial,) = Bounce(space, 20, seed=0).enqueue([point])
        assert trial.point == {"m": "b", "p": 0.5, "q": 0.5}


@pytest.mark.parametrize("withdrawn", [0, 20])
def test_withdrawn_points_take_nothing_from_the_share_of_a_stage(withdrawn: int) -> None:
    optimizer = Bounce(binary(5), 60, seed=0, initial_points=4)
    if withdrawn:
        optimizer.withdraw(optimizer.ask(withdrawn))
    optimizer.extend(61)
    assert optimizer.remaining == 32
    assert optimizer.stage.region.budget == 32


def test_known_results_and_starts_are_taken_together_or_not_at_all_in_memory_too() -> None:
    space = Space([Integer("a", 0, 10), Integer("b", 0, 10)], constraints=["a + b <= 5"])
    study = Study.open(space=space, budget=10, seed=0)
    with pytest.raises(InvalidPoint, match="no completion"):
        study.begin([({"a": 1, "b": 1}, 0.5)], {"a": 9})
    assert study.trials == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o: o.correct([0, 1], [5.0, 6.0]), r"one trial is needed, or its id, not \[0, 1\]"),
        (lambda o: o.note([], "x"), r"one trial is needed, or its id, not \[\]"),
        (lambda o: o.note(0, None), "a note must be one text, not None"),
        (lambda o: o.tell([2, 3], [1.0, 2.0], note=["a", "b"]), r"a note must be one text, not \['a', 'b'\]"),
        (lambda o: o.fail([2, 3], ["boiled", "spilled"]), "an error must be one text"),
        (lambda o: o.tell(2, 1.0, sem=True), "a standard error must be a finite number that is not negative, not True"),
    ],
)
def test_what_is_for_one_trial_is_refused_for_several(call: Callable[[Bounce], Any], said: str) -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    optimizer.tell(optimizer.ask(2), [1.0, 2.0])
    optimizer.ask(2)
    before = optimizer.state_dict()
    with pytest.raises(InvalidTell, match=said):
        call(optimizer)
    assert optimizer.state_dict() == before


def test_an_exception_is_the_text_of_a_failure() -> None:
    optimizer = Bounce(SPACE, 10, seed=0)
    optimizer.fail(optimizer.ask(), ValueError("it boiled over"))  # type: ignore[arg-type]
    assert optimizer.trial(0).error == "it boiled over"
