from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bounce
from bounce import BounceError, EvaluationFailed, InvalidInput, InvalidOption, Study, Trial
from bounce.running.evaluation import Function, Outcome
from spaces import binary, mixed


def count_ones(point: dict[str, Any]) -> float:
    return float(sum(point.values()))


@pytest.mark.slow
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

    with pytest.raises(
        EvaluationFailed, match=r"first 10 evaluations .* first error was: ValueError: number 1\n"
    ) as caught:
        bounce.minimize(broken, binary(12), budget=50, seed=0)
    assert len(calls) == 10
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.trial == 0
    result = caught.value.result
    assert [t.state for t in result.trials] == ["failed"] * 10
    assert result.best is None
    assert any("result" in note for note in caught.value.__notes__)


def test_values_that_are_not_numbers_end_the_run_with_the_reason() -> None:
    with pytest.raises(EvaluationFailed, match="not None"):
        bounce.minimize(lambda p: None, binary(12), budget=50, seed=0)


def broken(point: dict[str, Any]) -> float:
    return float(point["no such name"])


def test_three_failures_with_the_same_error_end_the_run_and_cost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(EvaluationFailed, match="first 3 evaluations of this run failed alike") as caught:
        bounce.minimize(broken, binary(12), budget=9, seed=0, path=path)
    assert isinstance(caught.value.__cause__, KeyError)
    assert [trial.state for trial in caught.value.result.trials] == ["pending"] * 3
    seen: list[Trial] = []
    result = bounce.minimize(count_ones, binary(12), budget=9, seed=0, path=path, callbacks=[seen.append])
    assert [trial.id for trial in seen] == list(range(9))  # the pending ones first
    assert [trial.state for trial in result.trials] == ["done"] * 9
    straight = bounce.minimize(count_ones, binary(12), budget=9, seed=0)
    assert [trial.point for trial in result.trials] == [trial.point for trial in straight.trials]


def test_max_failures_sets_how_many_failures_end_a_run() -> None:
    calls: list[int] = []

    def late(point: dict[str, Any]) -> float:
        calls.append(1)
        if len(calls) <= 4:
            raise RuntimeError("the licence server is starting")
        return count_ones(point)

    result = bounce.minimize(late, binary(12), budget=9, seed=0, max_failures=5)
    assert [trial.state for trial in result.trials] == ["failed"] * 4 + ["done"] * 5
    calls.clear()
    with pytest.raises(
        EvaluationFailed, match=r"^the first evaluation of this run failed \(Runt.* set max_failures to more than 1\n"
    ):
        bounce.minimize(late, binary(12), budget=9, seed=0, max_failures=1)
    with pytest.raises(InvalidOption, match="max_failures must be an integer of at least 1, not 0"):
        bounce.minimize(late, binary(12), budget=9, seed=0, max_failures=0)


def test_only_the_first_failures_of_a_run_are_held_back() -> None:
    errors = iter(["a", "b", "c", "c", "c", "c", None, "c"])

    def varied(point: dict[str, Any]) -> float:
        error = next(errors)
        if error is not None:
            raise RuntimeError(error)
        return 1.0

    result = bounce.minimize(varied, binary(12), budget=8, seed=0)
    assert [trial.error and trial.error[-1] for trial in result.trials] == ["a", "b", "c", "c", "c", "c", None, "c"]


def test_fewer_failures_than_end_a_run_are_recorded_when_it_ends() -> None:
    result = bounce.minimize(broken, binary(12), budget=2, seed=0)
    assert [trial.state for trial in result.trials] == ["failed"] * 2


@pytest.mark.slow
def test_the_first_failure_is_shown_at_once_with_its_traceback_without_any_logging_setup(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import bounce, sys\n"
        "def f(point):\n"
        "    print('called', file=sys.stderr, flush=True)\n"
        "    return 1 / 0\n"
        "try:\n"
        "    bounce.minimize(f, bounce.Space([bounce.Real('x', 0, 1)]), 9, seed=0)\n"
        "except bounce.EvaluationFailed:\n"
        "    pass\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert lines[:3] == [
        "called",
        "trial 0 failed: ZeroDivisionError: division by zero",
        "Traceback (most recent call last):",
    ]
    assert lines[3].endswith('script.py", line 4, in f')
    later = [f"trial {i} failed: ZeroDivisionError: division by zero" for i in (1, 2)]
    assert lines[-4:] == ["called", later[0], "called", later[1]]


class Lost:
    """Works a few times, and fails alike from then on until it is repaired."""

    def __init__(self, works: int) -> None:
        self.works = works

    def __call__(self, point: dict[str, Any]) -> float:
        self.works -= 1
        if self.works < 0:
            raise OSError("the licence server is gone")
        return count_ones(point)


def test_ten_failures_alike_after_a_success_end_the_run_and_can_be_evaluated_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(EvaluationFailed, match=r"^the last 10 evaluations all failed with the same error") as caught:
        bounce.minimize(Lost(7), binary(12), budget=200, seed=0, path=path)
    assert "bounce run --retry-failed" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    with Study.open(path) as study:
        assert [trial.state for trial in study.trials] == ["done"] * 7 + ["failed"] * 10
        study.retry()
        study.extend(200)
        seen: list[int] = []
        with pytest.raises(EvaluationFailed):
            study.run(Lost(12), callbacks=[lambda trial: seen.append(trial.id)])
        assert seen[:12] == list(range(7, 19))  # the trials that had failed come first, and lost nothing
        assert [trial.state for trial in study.trials[:19]] == ["done"] * 19


def test_a_run_that_failed_in_a_series_goes_on_with_other_points_if_it_is_run_again() -> None:
    with Study.open(space=binary(12), budget=200, seed=0) as study:
        for spent in (11, 21, 31):
            with pytest.raises(EvaluationFailed, match=f"^the last {spent - 1} evaluations"):
                study.run(Lost(1 if spent == 11 else 0))
            assert len(study.trials) == spent


@pytest.mark.parametrize("killed_after", [1, 5, 9])
def test_a_series_of_failures_ends_where_it_would_have_ended_without_a_kill(tmp_path: Path, killed_after: int) -> None:
    failed: list[int] = []

    def kill(trial: Trial) -> None:
        failed.extend([trial.id] if trial.state == "failed" else [])
        if len(failed) == killed_after:
            raise KeyboardInterrupt

    with Study.open(tmp_path / "a.db", space=binary(12), budget=200, seed=0) as study:
        with pytest.raises(KeyboardInterrupt):
            study.run(Lost(3), callbacks=[kill])
        with pytest.raises(EvaluationFailed, match="the last 10 evaluations"):
            study.run(Lost(0))
        assert [trial.state for trial in study.trials] == ["done"] * 3 + ["failed"] * 10


def test_failures_that_differ_do_not_end_a_run_that_has_succeeded() -> None:
    errors = iter(["", *(f"step {i % 9}" for i in range(24))])

    def varied(point: dict[str, Any]) -> float:
        error = next(errors)
        if error:
            raise RuntimeError(error)
        return 1.0

    result = bounce.minimize(varied, binary(12), budget=25, seed=0)
    assert [trial.state for trial in result.trials] == ["done"] + ["failed"] * 24


def test_a_larger_max_failures_holds_for_every_series_of_failures() -> None:
    result = bounce.minimize(Lost(1), binary(12), budget=25, seed=0, max_failures=25)
    assert [trial.state for trial in result.trials] == ["done"] + ["failed"] * 24
    with pytest.raises(EvaluationFailed, match=r"the last 12 evaluations .* set max_failures to more than 12"):
        bounce.minimize(Lost(1), binary(12), budget=25, seed=0, max_failures=12)


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


@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_in_flight_is_recorded_if_a_callback_fails(threads: int) -> None:
    barrier, calls = threading.Barrier(threads), list[int]()

    def together(point: dict[str, Any]) -> float:
        barrier.wait(10)
        return count_ones(point)

    def fails(trial: Trial) -> None:
        calls.append(trial.id)
        raise RuntimeError("the tracker is down")

    study = Study.open(space=binary(12), budget=12, batch_size=threads, seed=0)
    with ThreadPoolExecutor(threads) as executor, pytest.raises(RuntimeError, match="tracker") as failure:
        study.run(together, executor=executor, callbacks=[fails])
    assert [trial.state for trial in study.trials] == ["done"] * threads
    assert len(calls) == 1
    assert failure.value.result.trials == study.trials  # type: ignore[attr-defined]


def test_the_outcome_of_a_trial_that_a_callback_gave_back_is_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    study = Study.open(space=binary(12), budget=8, batch_size=4, seed=0)

    def give_back(trial: Trial) -> None:
        if trial.id == 1:
            study.withdraw([3])

    with ThreadPoolExecutor(4) as executor:
        result = study.run(count_ones, executor=executor, callbacks=[give_back])
    assert result.trials[3].state in ("withdrawn", "done")  # it may have been recorded before
    assert [trial.state for trial in result.trials if trial.id != 3] == ["done"] * (len(result.trials) - 1)
    study = Study.open(space=binary(12), budget=8, batch_size=4, seed=0)
    study.run(count_ones, callbacks=[give_back])
    assert [trial.state for trial in study.trials] == ["done", "done", "done", "withdrawn", *["done"] * 5]


def test_a_callback_cannot_spoil_the_record() -> None:
    result = bounce.minimize(count_ones, binary(6), budget=8, seed=0, callbacks=[lambda trial: trial.point.clear()])
    assert all(len(t.point) == 6 for t in result.trials)


def ends_itself(number: int) -> None:
    """Send this process a signal; twice, since the first Ctrl-C only asks."""
    for _ in range(2):
        os.kill(os.getpid(), number)


def exits_at(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


@pytest.mark.parametrize(
    ("number", "handler", "end"),
    [
        (signal.SIGINT, signal.default_int_handler, KeyboardInterrupt),
        (signal.SIGINT, exits_at, SystemExit),
        (signal.SIGTERM, exits_at, SystemExit),
    ],
)
def test_a_signal_ends_the_run_and_its_trial_stays_pending(
    number: int, handler: Any, end: type[BaseException], tmp_path: Path
) -> None:
    calls = []

    def interrupted(point: dict[str, Any]) -> float:
        calls.append(point)
        if len(calls) == 8:
            ends_itself(number)
        return count_ones(point)

    before = signal.signal(number, handler)
    try:
        with pytest.raises(end) as caught:
            bounce.minimize(interrupted, binary(12), budget=50, seed=0, path=tmp_path / "a.db")
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    result = caught.value.result  # type: ignore[attr-defined]
    assert [t.state for t in result.trials] == ["done"] * 7 + ["pending"]
    assert [t.attempts for t in result.trials] == [0] * 8  # this process is alive
    assert result.best is not None


class Strange(BaseException):
    pass


@pytest.mark.parametrize("how", [{}, {"executor": ThreadPoolExecutor(1)}])
@pytest.mark.parametrize(
    ("end", "error"),
    [
        (partial(SystemExit, 3), "SystemExit: 3"),
        (KeyboardInterrupt, "KeyboardInterrupt"),
        (partial(Strange, "no"), "Strange: no"),
        (GeneratorExit, "GeneratorExit"),
    ],
)
def test_an_objective_that_ends_itself_fails_its_trial_and_not_the_run(
    end: Callable[[], BaseException], error: str, how: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def ends(point: dict[str, Any]) -> float:
        if point["x1"]:
            raise end()
        return count_ones(point)

    result = bounce.minimize(ends, binary(12), budget=12, seed=0, **how)
    assert {t.state for t in result.trials} == {"done", "failed"}
    assert all((t.state == "failed") == t.point["x1"] for t in result.trials)
    assert {t.error for t in result.trials if t.error} == {error}
    assert "in ends\n" in caplog.text  # the traceback, beginning with the objective
    assert "bounce/running" not in caplog.text


def test_a_failure_after_ctrl_c_leaves_its_trial_pending() -> None:
    calls: list[int] = []

    def stopped(point: dict[str, Any]) -> float:
        calls.append(1)
        if len(calls) <= 3:
            return count_ones(point)
        os.kill(os.getpid(), signal.SIGINT)
        raise RuntimeError("a program that the objective has started got Ctrl-C too")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            bounce.minimize(stopped, binary(12), budget=50, seed=0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [t.state for t in caught.value.result.trials] == ["done"] * 3 + ["pending"]  # type: ignore[attr-defined]


def test_a_result_becomes_a_table() -> None:
    result = bounce.minimize(lambda p: 2.0 if p["binary0"] else 1.0, mixed(1), budget=7, seed=0)
    frame = result.to_frame()
    assert list(frame["id"]) == list(range(7))
    assert list(frame["value"]) == [t.value for t in result.trials]
    assert list(frame["category0"]) == [t.point["category0"] for t in result.trials]
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
        ({"executor": 3}, r"executor must have submit, .* such as ThreadPoolExecutor\(4\), not 3"),
        ({"executor": ThreadPoolExecutor}, r"executor must have submit, .* not <class"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"objective": count_ones, "space": binary(3), "budget": 5} | arguments
    with pytest.raises(InvalidOption, match=said):
        bounce.minimize(**given)


def test_a_result_has_a_short_repr() -> None:
    result = bounce.minimize(count_ones, binary(8), budget=9, seed=0)
    assert result.best is not None
    assert repr(result) == f"Result(best={result.best.value!r} (trial {result.best.id}), done=9, failed=0, seed=0)"
    assert repr(bounce.Result([], None, 3)) == "Result(best=None, done=0, failed=0, seed=3)"


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


def test_what_an_evaluation_raises_is_cut_in_the_study_and_kept_in_full_on_request(tmp_path: Path) -> None:
    long = "x" * 50_000

    def objective(point: dict[str, Any]) -> float:
        if next(iter(point.values())):
            raise ValueError(long)
        return 1.0

    result = bounce.minimize(objective, binary(12), budget=8, seed=0, max_failures=20, logs=tmp_path / "errors")
    failed = [trial for trial in result.trials if trial.state == "failed"]
    assert failed
    assert all(len(trial.error or "") <= 2000 for trial in failed)
    assert sorted(path.name for path in (tmp_path / "errors").iterdir()) == [f"{t.id:05d}.err" for t in failed]
    text = (tmp_path / "errors" / f"{failed[0].id:05d}.err").read_text()
    assert f"ValueError: {long}" in text
    assert "in objective" in text  # the traceback


def test_a_log_that_cannot_be_written_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "errors").write_text("a file, not a folder")
    with pytest.raises(bounce.MachineFailed, match=r"trial 0 could not be evaluated .*00000\.err could not be written"):
        bounce.minimize(lambda point: 1 / 0, binary(12), budget=8, seed=0, logs=tmp_path / "errors" / "here")
    with pytest.raises(InvalidOption, match=r"logs must be a folder, and '.*errors' is a file"):
        bounce.minimize(count_ones, binary(12), budget=8, seed=0, logs=tmp_path / "errors")
