"""Runs that end before their budget is spent: stop, and the conditions of stop_when."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
from bounce import Bounce, InvalidOption, Real, Space, Study, Trial
from bounce.optimizer.outlook import _gain, improvement_expected
from bounce.optimizer.stopping import Outlooks, Patience, StopWhen, Target
from objectives import mixed, value
from spaces import binary
from terminal import Terminal


def count_ones(point: dict[str, Any]) -> float:
    return float(sum(point.values()))


def bowl(point: dict[str, Any]) -> float:
    return float(sum((x - 0.3) ** 2 for x in point.values()))


SQUARE = Space([Real("x", -1.0, 1.0), Real("y", -1.0, 1.0)])


# stop


def test_a_callback_stops_a_run_which_can_be_resumed_bit_for_bit(tmp_path: Path) -> None:
    whole = bounce.minimize(value, mixed(), budget=16, seed=3)
    with Study.open(tmp_path / "s.db", space=mixed(), budget=16, seed=3) as study:

        def enough(trial: Trial) -> None:
            if trial.id == 8:
                study.stop("nine are enough for today")

        result = study.run(value, callbacks=[enough])
        assert [trial.state for trial in result.trials] == ["done"] * 9
        assert study.stopped == "nine are enough for today"
    with Study.open(tmp_path / "s.db") as study:
        result = study.run(value)
        assert study.stopped is None
    assert [(t.point, t.value) for t in result.trials] == [(t.point, t.value) for t in whole.trials]


def test_another_thread_stops_a_run_and_what_is_in_flight_is_recorded() -> None:
    begun, stopped = threading.Barrier(3), threading.Event()

    def objective(point: dict[str, Any]) -> float:
        begun.wait(60)
        assert stopped.wait(60)
        return count_ones(point)

    study = Study.open(space=binary(8), budget=20, seed=0)

    def stop() -> None:
        begun.wait(60)  # both evaluations are in flight
        study.stop()
        stopped.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with ThreadPoolExecutor(2) as executor:
        result = study.run(objective, executor=executor, workers=2)
    stopper.join()
    assert [trial.state for trial in result.trials] == ["done", "done"]
    assert study.stopped == "stop was called"
    assert study.remaining == 18


def test_trials_that_were_asked_for_but_not_begun_stay_pending() -> None:
    study = Study.open(space=binary(8), budget=20, batch_size=4, seed=0)
    study.run(count_ones, callbacks=[lambda trial: study.stop()])
    assert [trial.state for trial in study.trials] == ["done", "pending", "pending", "pending"]
    assert len(study.run(count_ones).trials) == 20
    assert not study.pending


def test_stop_without_a_run_changes_nothing() -> None:
    study = Study.open(space=binary(8), budget=6, seed=0)
    study.stop()
    assert len(study.run(count_ones).trials) == 6
    assert study.stopped is None


def test_failures_that_were_held_back_cost_nothing_if_the_run_is_stopped() -> None:
    study = Study.open(space=binary(8), budget=6, seed=0)

    def fails(point: dict[str, Any]) -> float:
        study.stop()
        raise ValueError("not today")

    study.run(fails)
    assert [trial.state for trial in study.trials] == ["pending"]


# the sentences


@pytest.mark.parametrize(
    ("text", "direction", "conditions"),
    [
        ("no improvement expected above 0.01", "minimize", [Outlooks(0.01)]),
        ("  No  improvement expected ABOVE 1e-3 ", "maximize", [Outlooks(0.001)]),
        ("no improvement in 50 evaluations", "minimize", [Patience(50)]),
        ("no improvement in 1 evaluation", "minimize", [Patience(1)]),
        ("value below -0.5", "minimize", [Target(-0.5, below=True)]),
        ("value above 3", "maximize", [Target(3.0, below=False)]),
        ("value below 1 or no improvement in 9 evaluations", "minimize", [Target(1.0, below=True), Patience(9)]),
    ],
)
def test_the_sentences_are_read(text: str, direction: str, conditions: list[Any]) -> None:
    assert list(StopWhen.of(text, direction).conditions) == conditions


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("value under 3", r"must be 'no improvement expected above X', .*'value below X'.*, not 'value under 3'"),
        ("", "must be 'no improvement"),
        (0.01, r"must be 'no improvement .*, not 0\.01"),
        ({"improvement_below": 0.01}, "must be 'no improvement"),
        ("value below", "must be 'no improvement"),
        ("value below x", "needs a finite number, not 'x', in 'value below x'"),
        ("value below nan", "needs a finite number, not 'nan'"),
        ("value above 3", r"'value above' does not fit direction 'minimize': write 'value below 3'"),
        ("no improvement expected above 0", "must be a positive number, not '0'"),
        ("no improvement in 0 evaluations", "must be a whole number from 1 to 1000000000, not '0'"),
        ("no improvement in 2.5 evaluations", "not '2.5'"),
        ("value below 1 and value below 2", "must be 'no improvement"),
        ("value below 1 or", "must be 'no improvement"),
    ],
)
def test_what_is_not_a_condition_is_refused_before_anything_runs(given: Any, said: str) -> None:
    def never(point: dict[str, Any]) -> float:
        raise AssertionError

    with pytest.raises(InvalidOption, match=said) as refused:
        bounce.minimize(never, binary(4), budget=4, stop_when=given)
    assert refused.value.option == "stop_when"


def test_a_run_ends_when_the_target_is_reached() -> None:
    low = bounce.minimize(count_ones, binary(12), budget=60, seed=0, stop_when="value below 3")
    high = bounce.maximize(count_ones, binary(12), budget=60, seed=0, stop_when="value above 9")
    for result, sign, target in ((low, 1, 3), (high, -1, -9)):
        good = [trial.value is not None and sign * trial.value < target for trial in result.trials]
        assert good == [False] * (len(good) - 1) + [True]


def test_a_run_ends_after_evaluations_without_improvement_failed_ones_included() -> None:
    values = iter([5.0, 4.0, None, 4.0, 4.5])

    def objective(point: dict[str, Any]) -> float:
        value = next(values)
        if value is None:
            raise ValueError("no value")
        return value

    study = Study.open(space=binary(12), budget=60, seed=0)
    result = study.run(objective, stop_when="no improvement in 3 evaluations")
    assert len(result.trials) == 5
    assert study.stopped == "the last 3 evaluations brought no improvement"


def test_added_results_are_no_evaluations() -> None:
    optimizer = Bounce(binary(8), budget=20, seed=0)
    optimizer.add([{f"x{i}": i == j for i in range(8)} for j in range(5)], [1.0, 2.0, 2.0, 2.0, 2.0])
    assert optimizer.reached("no improvement in 1 evaluation") is None
    (trial,) = optimizer.ask()
    optimizer.tell(trial, 3.0)
    assert optimizer.reached("no improvement in 1 evaluation") is not None
    assert optimizer.reached("no improvement in 2 evaluations") is None


def test_a_value_that_breaks_a_limit_is_no_improvement_on_one_that_keeps_it() -> None:
    optimizer = Bounce(Space([Real("x", 0, 1)], outcomes=["load <= 1"]), 20, seed=0)
    for told, load in ((-5.0, 2.0), (-6.0, 1.5), (10.0, 0.5), (9.0, 0.5)):
        optimizer.tell(optimizer.ask(), [told], constraints=[{"load": load}])
        assert optimizer.reached("no improvement in 1 evaluation") is None
    optimizer.tell(optimizer.ask(), [-7.0], constraints=[{"load": 1.2}])
    assert optimizer.reached("no improvement in 1 evaluation") is not None


def test_evaluations_count_in_the_order_of_their_tells() -> None:
    optimizer = Bounce(binary(8), budget=20, batch_size=4, seed=0)
    trials = optimizer.ask()
    optimizer.tell(trials[3], 2.0)
    optimizer.tell(trials[2], 3.0)
    optimizer.tell(trials[0], 1.0)
    assert optimizer.reached("no improvement in 1 evaluation") is None
    optimizer.tell(trials[1], 4.0)
    assert optimizer.reached("no improvement in 1 evaluation") is not None


def test_a_condition_that_holds_already_evaluates_nothing() -> None:
    study = Study.open(space=binary(8), budget=20, batch_size=4, seed=0)
    study.tell(study.ask()[0], 0.0)

    def never(point: dict[str, Any]) -> float:
        raise AssertionError

    study.run(never, stop_when="value below 1")
    assert study.stopped == "the best value, 0, is below 1"
    assert len(study.pending) == 3


def test_without_the_condition_the_next_run_spends_the_budget() -> None:
    study = Study.open(space=binary(8), budget=12, seed=0)
    assert len(study.run(count_ones, stop_when="value below 100").trials) == 1
    assert len(study.run(count_ones).trials) == 12


# what the model expects


GAINS = st.lists(st.tuples(st.floats(-5, 5), st.floats(1e-3, 3)), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(GAINS, st.floats(-2, 2), st.integers(0, 9))
def test_the_bound_is_above_the_expected_gain_of_independent_and_of_equal_values(
    moments: list[tuple[float, float]], best: float, seed: int
) -> None:
    mean, sigma = np.array(moments).T
    normal = np.random.default_rng(seed).standard_normal((20_000, len(mean)))
    bound = _gain(mean, sigma, best)
    for z in (normal, np.repeat(normal[:, :1], len(mean), axis=1)):
        gains = np.maximum(best - (mean + sigma * z).min(axis=1), 0.0)
        assert gains.mean() <= bound + 5 * gains.std() / np.sqrt(len(gains)) + 1e-9


def test_the_bound_of_one_point_is_its_expected_improvement() -> None:
    gain, exact = _gain(np.array([0.0]), np.array([1.0]), 0.0), 1 / np.sqrt(2 * np.pi)
    assert exact <= gain <= 1.02 * exact
    assert _gain(np.array([100.0]), np.array([1.0]), 0.0) == 0.0


def test_what_is_expected_falls_as_a_run_learns_and_has_the_units_of_the_values() -> None:
    expected = []
    for scale in (1.0, 1000.0):
        optimizer = Bounce(SQUARE, budget=30, seed=0)
        assert optimizer.improvement_expected() is None
        while not optimizer.done:
            for trial in optimizer.ask():
                optimizer.tell(trial, scale * bowl(trial.point))
            if len(optimizer.trials) in (8, 30):
                expected.append(optimizer.improvement_expected())
    early, late, early_large, late_large = expected
    assert early is not None
    assert late is not None
    assert 0.0 <= late < early
    assert early_large == pytest.approx(1000 * early, rel=1e-6)
    assert late_large is not None


def test_a_run_ends_when_nothing_is_expected_and_a_resumed_one_ends_there_too(tmp_path: Path) -> None:
    condition = "no improvement expected above 0.02"
    whole = bounce.minimize(bowl, SQUARE, budget=60, seed=1, stop_when=condition)
    assert 8 <= len(whole.trials) < 60
    assert whole.best is not None
    assert whole.best.value is not None
    assert whole.best.value < 0.02
    path = tmp_path / "s.db"
    last = len(whole.trials) - 2
    while True:  # a new process every few trials
        with Study.open(path, space=SQUARE, budget=60, seed=1) as study:
            study.run(
                bowl,
                stop_when=condition,
                callbacks=[lambda t, s=study: s.stop() if t.id % 5 == 0 or t.id == last else None],  # type: ignore[misc]
            )
            if study.stopped != "stop was called":
                break
    with Study.open(path) as study:
        assert [t.point for t in study.trials] == [t.point for t in whole.trials]
        assert study.reached(condition) is not None


def test_the_question_does_not_change_the_run() -> None:
    runs = []
    for asks in (False, True):
        optimizer = Bounce(mixed(), budget=14, seed=5)
        while not optimizer.done:
            for trial in optimizer.ask():
                optimizer.tell(trial, value(trial.point))
            if asks:
                optimizer.improvement_expected()
                optimizer.reached("no improvement expected above 1e-9")
        runs.append([trial.point for trial in optimizer.trials])
    assert runs[0] == runs[1]


def test_a_correction_is_taken_into_account() -> None:
    optimizer = Bounce(SQUARE, budget=30, seed=0)
    for _ in range(12):
        for trial in optimizer.ask():
            optimizer.tell(trial, bowl(trial.point))
    before = [optimizer._outlook(tells) for tells in (10, 11, 12)]
    optimizer.correct(2, -5.0)
    after = [optimizer._outlook(tells) for tells in (10, 11, 12)]
    again = Bounce.from_state_dict(optimizer.state_dict())
    assert after == [again._outlook(tells) for tells in (10, 11, 12)]
    assert after != before


def test_where_nothing_is_real_the_model_is_trusted_as_little_as_in_an_ask() -> None:
    for space, wider in ((binary(10), True), (SQUARE, False)):
        optimizer = Bounce(space, budget=30, seed=0)
        for _ in range(12):
            for trial in optimizer.ask():
                optimizer.tell(trial, bowl(trial.point))
        records, options = optimizer._ledger.records, optimizer._options
        trusting = replace(options, method=replace(options.method, caution=1.0))
        own, trusted = (improvement_expected(space, records, given, 12) for given in (options, trusting))
        assert own is not None
        assert trusted is not None
        assert own > trusted if wider else own == trusted


def test_equal_values_say_nothing() -> None:
    study = Study.open(space=binary(6), budget=12, seed=0)
    assert len(study.run(lambda point: 1.0, stop_when="no improvement expected above 1").trials) == 12
    assert study.improvement_expected() is None


# specs and the command line


def test_a_spec_and_the_command_line_stop_a_run(bounce: Terminal) -> None:
    spec = bounce.spec(budget=20, stop_when="no improvement in 4 evaluations")
    said = bounce("run", spec, "--quiet")
    assert said.code == 0, said.err
    assert said.out.startswith("stopped after ")
    assert "of 20 evaluations: the last 4 evaluations brought no improvement\n" in said.out
    stopped = len(bounce.trials(spec))
    assert 5 <= stopped < 20
    said = bounce("run", spec, "--quiet", "--stop-when", f"no improvement in {20 - stopped + 4} evaluations")
    assert said.code == 0, said.err
    assert len(bounce.trials(spec)) > stopped
    assert bounce("run", spec, "--quiet", "--stop-when", "when it is good").code == 2


def test_a_spec_with_a_wrong_condition_is_refused_with_its_line(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(stop_when="value above 1"))
    assert said.code == 2
    assert "line 3: stop_when: 'value above' does not fit direction 'minimize'" in said.err


# what cannot be gained


@pytest.mark.parametrize("given", [{"noise": "none"}, {}])
def test_nothing_can_be_gained_where_every_value_is_known(given: dict[str, Any]) -> None:
    optimizer = Bounce(binary(4), budget=20, seed=0, **given)
    points = binary(4).decode(binary(4).grid())
    exact = None if given else 0.0
    optimizer.add(points[1:], [count_ones(point) for point in points[1:]], sems=exact)
    assert (optimizer.improvement_expected() or 0.0) > 0.0
    optimizer.add(points[:1], [count_ones(points[0])], sems=exact)
    assert optimizer.improvement_expected() == 0.0


def test_of_noisy_values_more_can_be_gained_at_the_same_points() -> None:
    optimizer = Bounce(binary(4), budget=20, seed=0, noise=0.5)
    points = binary(4).decode(binary(4).grid())
    optimizer.add(points, [count_ones(point) for point in points])
    assert (optimizer.improvement_expected() or 0.0) > 0.0


LIMITED = bounce.Space([bounce.Real("x", 0, 1)], outcomes=["strength >= 1"])


def test_a_bound_that_a_space_with_outcomes_does_not_have_is_no_condition() -> None:
    def never(point: dict[str, Any]) -> float:
        raise AssertionError

    condition = "value below 1 or no improvement expected above 0.1"
    said = r"'no improvement expected' does not fit a space with outcomes.*write 'no improvement in N evaluations'"
    study = Study.open(space=LIMITED, budget=8, seed=0)
    with pytest.raises(InvalidOption, match=said):
        study.run(never, stop_when=condition)
    with pytest.raises(InvalidOption, match=said):
        Bounce(LIMITED, budget=8).reached(condition)
    assert study.reached("value below 1 or no improvement in 3 evaluations") is None
    assert study.improvement_expected() is None


def test_a_spec_with_outcomes_and_such_a_condition_is_refused_with_its_line(tmp_path: Path, bounce: Terminal) -> None:
    spec = tmp_path / "limited.toml"
    spec.write_text(
        'budget = 8\nstop_when = "no improvement expected above 0.1"\noutcomes = ["strength >= 1"]\n'
        'command = ["test", "{x}"]\n[[parameters]]\nname = "x"\ntype = "real"\nlow = 0\nhigh = 1\n'
    )
    said = bounce("run", str(spec))
    assert said.code == 2
    assert "line 2: stop_when: 'no improvement expected' does not fit a space with outcomes" in said.err


def test_one_evaluation_is_one() -> None:
    study = Study.open(space=binary(8), budget=20, seed=0)
    study.run(lambda point: 1.0, stop_when="no improvement in 1 evaluation")
    assert study.stopped == "the last evaluation brought no improvement"
