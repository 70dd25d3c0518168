from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import bounce
from bounce import BounceError, EvaluationFailed, InvalidInput, InvalidOption, Study, Trial
from bounce.running.evaluation import Function, Outcome
from spaces import binary, mixed


def count_ones(point: dict[str, Any]) -> float:
    return float(sum(point.values()))


def test_minimize_and_maximize_find_the_ends_of_a_simple_function() -> None:
    low = bounce.minimize(count_ones, binary(12), budget=60, seed=0)
    high = bounce.maximize(count_ones, binary(12), budget=60, seed=0)
    assert low.best is not None
    assert high.best is not None
    assert (low.best.value, high.best.value) == (0.0, 12.0)
    assert low.best.point == {f"x{i}": False for i in range(12)}
    assert len(low.trials) == 60
    assert low.seed == 0


def test_callbacks_see_every_finished_trial() -> None:
    seen: list[Trial] = []
    result = bounce.minimize(count_ones, binary(8), budget=9, seed=0, batch_size=4, callbacks=[seen.append])
    assert seen == result.trials
    assert {t.state for t in seen} == {"done"}


def test_the_objective_cannot_spoil_the_record() -> None:
    def spoil(point: dict[str, Any]) -> float:
        value = count_ones(point)
        point.clear()
        return value

    result = bounce.minimize(spoil, binary(8), budget=9, seed=0)
    assert all(len(t.point) == 8 for t in result.trials)


def test_failures_are_recorded_and_the_run_goes_on() -> None:
    def sometimes(point: dict[str, Any]) -> Any:
        n = int(count_ones(point))
        if n % 4 == 0:
            raise RuntimeError(f"broke at {n}")
        return {1: 1.0, 2: math.nan, 3: "three"}[n % 4] if n < 8 else float(n)

    result = bounce.minimize(sometimes, binary(12), budget=40, seed=1)
    errors = {t.error for t in result.trials if t.state == "failed"}
    assert any(e and e.startswith("RuntimeError: broke at") for e in errors)
    assert "EvaluationFailed: the objective must return a finite number, not nan" in errors
    assert all(t.value is None for t in result.trials if t.state == "failed")
    assert result.best is not None
    assert result.best.value == 1.0


def test_ten_failures_without_a_success_raise_the_first_error() -> None:
    calls = []

    def broken(point: dict[str, Any]) -> float:
        calls.append(point)
        raise ValueError(f"number {len(calls)}")

    with pytest.raises(ValueError, match="number 1") as caught:
        bounce.minimize(broken, binary(12), budget=50, seed=0)
    assert len(calls) == 10
    result = caught.value.result  # type: ignore[attr-defined]
    assert [t.state for t in result.trials] == ["failed"] * 10
    assert result.best is None
    assert any("result" in note for note in caught.value.__notes__)


def test_ten_values_that_are_none_raise_what_was_wrong() -> None:
    with pytest.raises(EvaluationFailed, match="not None"):
        bounce.minimize(lambda p: None, binary(12), budget=50, seed=0)


def test_failures_after_a_success_do_not_stop_a_run() -> None:
    calls = []

    def once(point: dict[str, Any]) -> float:
        calls.append(point)
        if len(calls) > 1:
            raise OSError
        return 1.0

    result = bounce.minimize(once, mixed(2), budget=25, seed=0)
    assert [t.state for t in result.trials] == ["done"] + ["failed"] * 24


def test_an_error_that_cannot_be_printed_fails_its_trial_too() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def mute(point: dict[str, Any]) -> float:
        if point["x0"]:
            raise Mute
        return 1.0

    result = bounce.minimize(mute, binary(6), budget=20, seed=0)
    assert {t.error for t in result.trials if t.state == "failed"} == {"Mute"}


def test_a_callback_cannot_spoil_the_record() -> None:
    result = bounce.minimize(count_ones, binary(6), budget=8, seed=0, callbacks=[lambda trial: trial.point.clear()])
    assert all(len(t.point) == 6 for t in result.trials)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_passes_through_and_keeps_the_result(interruption: type[BaseException]) -> None:
    calls = []

    def interrupted(point: dict[str, Any]) -> float:
        calls.append(point)
        if len(calls) == 8:
            raise interruption
        return count_ones(point)

    with pytest.raises(interruption) as caught:
        bounce.minimize(interrupted, binary(12), budget=50, seed=0)
    result = caught.value.result  # type: ignore[attr-defined]
    assert [t.state for t in result.trials] == ["done"] * 7 + ["pending"]
    assert result.best is not None


def test_a_result_becomes_a_table() -> None:
    result = bounce.minimize(lambda p: 2.0 if p["binary0"] else 1.0, mixed(1), budget=7, seed=0)
    frame = result.to_frame()
    assert list(frame["id"]) == list(range(7))
    assert list(frame["value"]) == [t.value for t in result.trials]
    assert list(frame["point.category0"]) == [t.point["category0"] for t in result.trials]
    assert {"state", "target_dim", "seconds_ask"} <= set(frame.columns)


def test_a_table_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    result = bounce.minimize(count_ones, binary(4), budget=2, seed=0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match=r"bounce-bo\[frame\]"):
        result.to_frame()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"objective": 3}, "objective must be a function"),
        ({"budget": -1}, "budget must be"),
        ({"direction": "maximize"}, r"minimize\(\) cannot have direction='maximize'"),
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"callbacks": [3]}, "callbacks must be a list of functions"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"objective": count_ones, "space": binary(3), "budget": 5} | arguments
    with pytest.raises(InvalidOption, match=said):
        bounce.minimize(**given)


def test_an_executor_that_takes_nothing_ends_the_run_and_fails_no_trial() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with Study.open(space=binary(8), budget=9, seed=0) as study:
        with pytest.raises(BounceError, match=r"takes no more evaluations \(RuntimeError: cannot schedule new"):
            study.run(count_ones, executor=executor)
        assert [trial.state for trial in study.trials] == ["pending"]
        assert {trial.state for trial in study.run(count_ones).trials} == {"done"}


def test_what_an_evaluator_raises_in_this_process_is_not_blamed_on_an_executor() -> None:
    class Broken(Function):
        def evaluate(self, trial: Trial, /) -> Outcome:
            raise ZeroDivisionError("a fault of the evaluator")

    with Study.open(space=binary(8), budget=9, seed=0) as study, pytest.raises(ZeroDivisionError, match="a fault"):
        study.run(Broken(count_ones))
