"""Runs of a study: executors, failures, deaths, timeouts, Ctrl-C."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import types
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import Pipe, get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
import objectives
from bounce import EvaluationFailed, ExecutorFailed, InvalidOption, MachineFailed, Study
from bounce.running.imported import Imported
from bounce.running.pool import CallTooLong, Pool, WorkerDied, answer, serve
from objectives import mixed, value
from test_study import facts


class Manual(Executor):
    """An executor that evaluates in the order it is told to."""

    def __init__(self, order: list[int]) -> None:
        self.order, self.waiting = order, list[tuple[Future[Any], Any, tuple[Any, ...]]]()
        self.most = 0
        self.done: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        self.most = max(self.most, len(self.waiting))
        return future

    def step(self) -> None:
        future, fn, args = self.waiting.pop((self.order.pop() if self.order else 0) % len(self.waiting))
        future.set_result(fn(*args))
        self.done.append(args)


@pytest.fixture
def stepping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a manual executor finish one evaluation whenever a run waits."""
    from bounce.running import run as execution

    def wait(futures: dict[Future[Any], Any], timeout: float, return_when: str) -> tuple[set[Future[Any]], None]:
        if not any(future.done() for future in futures):
            STEPPED[-1].step()
        return {future for future in futures if future.done()}, None

    monkeypatch.setattr(execution, "wait", wait)


STEPPED: list[Manual] = []


def run(workers: int, batch_size: int, order: list[int], budget: int = 24, **options: Any) -> tuple[Study, Manual]:
    STEPPED.append(Manual(list(order)))
    study = Study.open(space=mixed(), budget=budget, seed=1, initial_points=4, **options)
    study.run(value, executor=STEPPED[-1], workers=workers, batch_size=batch_size)
    return study, STEPPED[-1]


@pytest.mark.slow
@given(order=st.lists(st.integers(0, 3), max_size=24))
@settings(max_examples=8, deadline=None)
@pytest.mark.usefixtures("stepping")
def test_the_order_within_synchronous_batches_changes_no_point(order: list[int]) -> None:
    (study, manual), (straight, _) = run(4, 4, order), run(4, 4, [])
    assert [t.point for t in study.trials] == [t.point for t in straight.trials]
    assert manual.most == 4


@pytest.mark.slow
@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize(("workers", "batch_size"), [(1, 1), (3, 1), (4, 2), (2, 4), (4, 4), (5, 3)])
def test_workers_are_kept_busy_and_batches_are_asked_for_whole(workers: int, batch_size: int) -> None:
    study, manual = run(workers, batch_size, [1, 0, 2, 1] * 6, budget=22)
    assert study.done
    assert len(study.trials) == 22
    assert manual.most == workers
    batches = [r.batch for r in study._keeper.optimizer._ledger.records]
    sizes = [batches.count(b) for b in sorted(set(batches))]
    assert set(sizes[:-1]) == {batch_size}


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor, "pool"])
def test_failures_fail_their_trials_and_not_the_run(executor: Any) -> None:
    used = executor(2) if callable(executor) else None
    with Study.open(space=mixed(), budget=16, batch_size=2, seed=0) as study:
        study.run(objectives.half_fails, executor=used, workers=2 if executor == "pool" else 1)
        assert study.done
        failed = [t for t in study.trials if t.state == "failed"]
        assert failed
        assert all(t.point["b0"] and t.error == "ValueError: b0 must not be set" for t in failed)
        assert all(not t.point["b0"] for t in study.trials if t.state == "done")
        assert all(t.seconds_eval is not None and t.seconds_eval >= 0 for t in study.trials)
    if used is not None:
        used.shutdown()


@pytest.mark.parametrize("bad", [None, "1.0", float("nan"), float("inf"), [1.0, 2.0], 1j])
def test_what_is_not_a_finite_number_fails_its_trial(bad: Any) -> None:
    with Study.open(space=mixed(), budget=12, seed=0) as study:
        study.run(lambda point: bad if point["b1"] else 1.0)
        errors = {t.error for t in study.trials if t.state == "failed"}
        assert len(errors) == 1
        assert "the objective must return a finite number" in str(errors.pop())


@pytest.mark.parametrize("workers", [1, 2])
def test_ten_failures_at_the_start_end_the_run_with_the_error(tmp_path: Path, workers: int) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=20, seed=0) as study:
        with pytest.raises(EvaluationFailed, match="no value for depth") as caught:
            study.run(objectives.fails, workers=workers)
        assert isinstance(caught.value.__cause__, ArithmeticError)
        assert sum(t.state == "failed" for t in study.trials) == 10
        study.run(value, workers=1)  # when the objective is repaired, the run continues
        assert study.done
        assert sum(t.state == "failed" for t in study.trials) == 10


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_objective_ends_the_run_after_three_failures_and_costs_nothing(tmp_path: Path, workers: int) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=8, seed=0) as study:
        with pytest.raises(EvaluationFailed, match=r"failed alike \(RuntimeError: no licence\)") as caught:
            study.run(objectives.no_licence, workers=workers)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert caught.value.trial is not None
        assert {t.state for t in study.trials} == {"pending"}
        assert len(study.trials) in range(3, 3 + workers)
    with Study.open(tmp_path / "a.db") as study:
        pending = [t.id for t in study.pending]
        seen: list[int] = []
        study.run(value, workers=1, callbacks=[lambda trial: seen.append(trial.id)])
        assert seen[: len(pending)] == pending
        assert [t.state for t in study.trials] == ["done"] * 8


def test_a_failure_in_a_worker_is_logged_with_the_traceback_of_the_objective(caplog: pytest.LogCaptureFixture) -> None:
    with Study.open(space=mixed(), budget=8, seed=0) as study, pytest.raises(EvaluationFailed):
        study.run(objectives.no_licence, workers=2)
    first, *others = [record.getMessage() for record in caplog.records]
    assert "failed: RuntimeError: no licence\nTraceback" in first
    assert 'objectives.py", line' in first
    assert "in no_licence" in first
    assert "running/evaluation.py" not in first
    assert all("Traceback" not in message for message in others)


def test_an_error_that_cannot_be_pickled_is_told_as_text() -> None:
    with (
        Study.open(space=mixed(), budget=50, seed=0) as study,
        pytest.raises(EvaluationFailed, match=r"first 3 evaluations of this run .*Unpicklable: 1 and 2"),
    ):
        study.run(objectives.fails_strangely, workers=2)


def test_an_objective_that_exits_fails_its_trials() -> None:
    with (
        Study.open(space=mixed(), budget=50, seed=0) as study,
        pytest.raises(EvaluationFailed, match="SystemExit: 3"),
    ):
        study.run(objectives.exits, workers=2)


@pytest.mark.parametrize("objective", [objectives.dies, objectives.is_killed])
def test_an_objective_that_kills_its_worker_fails_its_trials(objective: Any) -> None:
    with Study.open(space=mixed(), budget=50, seed=0) as study:
        with pytest.raises(EvaluationFailed, match=r"its process (ended with exit code 7|was ended by SIGKILL)"):
            study.run(objective, workers=2)
        assert all("its process" in str(t.error) for t in study.trials if t.state == "failed")


def test_a_worker_that_dies_once_costs_nothing(tmp_path: Path) -> None:
    with Study.open(space=mixed(), budget=8, batch_size=2, seed=0) as study:
        study.run(objectives.DiesOnce(tmp_path / "mark"), workers=2)
        assert (tmp_path / "mark").exists()
        assert [t.state for t in study.trials] == ["done"] * 8
        assert facts(study.trials) == facts(bounce.minimize(value, mixed(), 8, batch_size=2, seed=0).trials)


def test_only_the_guilty_trial_fails_when_a_worker_dies(caplog: pytest.LogCaptureFixture) -> None:
    with Study.open(space=mixed(), budget=12, batch_size=4, seed=0) as study:
        study.run(objectives.DiesWhere("b1"), workers=4)
        assert {t.state for t in study.trials} == {"done", "failed"}
        assert all((t.state == "failed") == t.point["b1"] for t in study.trials)
    assert "is evaluated again: WorkerDied: its process ended with exit code 7" in caplog.text


def test_a_broken_pool_of_the_users_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    executor = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with executor, Study.open(space=mixed(), budget=8, batch_size=2, seed=0) as study:
        study.run(objectives.DiesWhere("b1"), executor=executor)
        assert all((t.state == "failed") == t.point["b1"] for t in study.trials)
        assert study.done
    assert "the run continues in a new pool" in caplog.text
    with Study.open(space=mixed(), budget=4, batch_size=2, seed=0) as study:
        study.run(value, executor=executor_that_is_broken())
        assert [t.state for t in study.trials] == ["done"] * 4


def test_another_executor_that_breaks_ends_the_run() -> None:
    def initializer() -> None:
        raise ValueError("no licence")

    with (
        ThreadPoolExecutor(1, initializer=initializer) as executor,
        Study.open(space=mixed(), budget=4, seed=0) as study,
    ):
        with pytest.raises(ExecutorFailed, match="the executor is broken"):
            study.run(value, executor=executor)
        assert [t.state for t in study.trials] == ["pending"]


def executor_that_is_broken() -> ProcessPoolExecutor:
    executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    assert executor.submit(os._exit, 1).exception() is not None
    return executor


class Nodes(Executor):
    """A cluster of machines that take turns, some of which cannot import the objective."""

    def __init__(self, good: list[bool]) -> None:
        self.good, self.calls = good, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        good = self.good[self.calls % len(self.good)]
        self.calls += 1
        if good:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(ModuleNotFoundError("No module named 'simulation'"))
        return future


@pytest.mark.parametrize("workers", [1, 3])
def test_a_node_that_cannot_import_the_objective_costs_no_trial(workers: int) -> None:
    with Study.open(space=mixed(), budget=10, seed=0) as study:
        study.run(value, executor=Nodes([True, False, True]), workers=workers)
        assert [t.state for t in study.trials] == ["done"] * 10


@pytest.mark.parametrize("workers", [1, 3])
def test_nodes_none_of_which_can_import_the_objective_end_the_run_and_fail_no_trial(workers: int) -> None:
    with Study.open(space=mixed(), budget=10, seed=0) as study:
        with pytest.raises(MachineFailed, match="can its workers import bounce and the objective") as caught:
            study.run(value, executor=Nodes([False]), workers=workers)
        assert "stays pending and costs nothing: correct it and run again" in str(caught.value)
        assert [t.state for t in study.trials] == ["pending"] * workers


class Broken(Manual):
    """Machines on which the evaluations of some trials cannot even begin."""

    def step(self) -> None:
        future, fn, args = self.waiting.pop(0)
        if args[0].id in (1, 2) and len(self.order) > 0:
            self.order.pop()
            future.set_exception(MachineFailed("no space left on device"))
        else:
            future.set_result(fn(*args))


@pytest.mark.usefixtures("stepping")
def test_a_trial_waits_for_a_machine_that_works() -> None:
    faults = 7  # more than a trial is tried in a row, so one of them waits until another evaluation has returned
    STEPPED.append(Broken([0] * faults))
    with Study.open(space=mixed(), budget=12, seed=0) as study:
        study.run(value, executor=STEPPED[-1], workers=3, batch_size=1)
        assert STEPPED[-1].order == []
        assert [t.state for t in study.trials] == ["done"] * 12


@pytest.mark.parametrize("how", [{}, {"workers": 2}, {"executor": ThreadPoolExecutor(2), "workers": 2}])
def test_an_objective_that_can_no_longer_be_imported_fails_no_trial(how: Any, tmp_path: Path) -> None:
    objective = Imported("nowhere_to_be_found:loss", tmp_path)
    with Study.open(space=mixed(), budget=40, seed=0) as study:
        with pytest.raises(MachineFailed, match=r"'nowhere_to_be_found:loss' cannot be imported: ModuleNotFoundError"):
            study.run(objective, **how)
        assert {t.state for t in study.trials} == {"pending"}
        study.run(value)
        assert {t.state for t in study.trials} == {"done"}


def test_a_program_that_disappears_ends_the_run_and_fails_no_trial(tmp_path: Path) -> None:
    script = tmp_path / "simulate"
    code = "#!/bin/sh\necho x >> calls; [ $(wc -l < calls) = 4 ] && mv simulate gone; echo 1\n"
    script.write_text(code)
    script.chmod(0o755)
    command = bounce.Command(["./simulate"], folder=tmp_path)
    with Study.open(tmp_path / "a.db", space=mixed(), budget=20, seed=0) as study:
        with pytest.raises(MachineFailed, match=r"trial 4 could not be evaluated .*FileNotFoundError") as caught:
            study.run(command)
        assert "correct it and run again to resume" in str(caught.value)
        assert [t.state for t in study.trials] == ["done"] * 4 + ["pending"]
        (tmp_path / "gone").rename(script)
        study.run(command)
        assert [t.state for t in study.trials] == ["done"] * 20


def test_a_full_temporary_folder_ends_the_run_and_fails_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def full() -> Any:
        nonlocal calls
        calls += 1
        if calls > 15:
            raise OSError(errno.ENOSPC, "No space left on device")
        return TemporaryFile()

    monkeypatch.setattr("bounce.running.command.TemporaryFile", full)
    with Study.open(space=mixed(), budget=60, seed=0) as study:
        with pytest.raises(MachineFailed, match="No space left on device"):
            study.run(bounce.Command(["echo", "1"]))
        assert [t.state for t in study.trials] == ["done"] * 5 + ["pending"]


@pytest.mark.usefixtures("stepping")
def test_the_values_of_running_evaluations_are_kept_when_a_series_of_failures_ends_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    STEPPED.append(Manual([]))

    def lost(point: objectives.Point) -> float:
        if len(STEPPED[-1].done) in range(1, 11):
            raise OSError("the licence server is gone")
        return value(point)

    with Study.open(space=mixed(), budget=40, seed=0) as study:
        with pytest.raises(EvaluationFailed, match="the last 10 evaluations"):
            study.run(lost, executor=STEPPED[-1], workers=3, batch_size=1)
        assert [t.state for t in study.trials] == ["done"] + ["failed"] * 10 + ["done"] * 2
    assert "waiting for running evaluations to finish (2)" in caplog.text


def test_an_executor_that_is_closed_ends_the_run_and_the_trial_stays_pending() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with Study.open(space=mixed(), budget=4, seed=0) as study:
        with pytest.raises(RuntimeError, match="cannot schedule new futures"):
            study.run(value, executor=executor)
        assert [t.state for t in study.trials] == ["pending"]
        study.run(value)
        assert study.done


def test_an_evaluation_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with Study.open(space=mixed(), budget=6, batch_size=2, seed=0) as study:
        study.run(objectives.HangsWhere("b1", fifo), timeout=0.2)
        assert study.done
        late = [t for t in study.trials if t.point["b1"]]
        assert late
        assert {t.error for t in late} == {"CallTooLong: the evaluation took more than 0.2 s"}
        assert all(t.state == "done" for t in study.trials if not t.point["b1"])
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end of the file: no child holds it open any more
    os.close(reader)


def test_a_timeout_is_checked() -> None:
    with Study.open(space=mixed(), budget=6, seed=0) as study:
        for bad in (0, -1, float("nan"), float("inf"), "1", True):
            with pytest.raises(InvalidOption, match="timeout must be a positive number of seconds"):
                study.run(value, timeout=bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="leave the executor out"):
            study.run(value, timeout=1, executor=ThreadPoolExecutor(1))
        assert study.trials == []


def test_bad_arguments_are_refused_before_anything_runs() -> None:
    with Study.open(space=mixed(), budget=6, seed=0) as study:
        for bad in (0, 1.5, "2", True):
            with pytest.raises(InvalidOption, match="workers must be an integer of at least 1"):
                study.run(value, workers=bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidOption, match="batch_size must be an integer of at least 1"):
                study.run(value, batch_size=bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="objective must be a function"):
            study.run(3)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption, match="callbacks must be"):
            study.run(value, callbacks=[3])  # type: ignore[list-item]
        with pytest.raises(InvalidOption, match=r"cannot be sent to a worker process .*ThreadPoolExecutor"):
            study.run(lambda point: 1.0, workers=2)
        assert study.trials == []
        study.run(lambda point: 1.0, workers=2, executor=ThreadPoolExecutor(2))
        assert study.done


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import bounce\n"
        "def f(point): return 1.0\n"
        "bounce.minimize(f, bounce.Space([bounce.Real('x', 0, 1)]), 4, workers=2)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ExecutorFailed: a worker process could not be started" in done.stderr
    assert "below `if __name__ == '__main__':`" in done.stderr


@pytest.mark.slow
def test_a_function_that_the_workers_cannot_import_is_told_so() -> None:
    code = (
        "import bounce\n"
        "def f(point): return 1.0\n"
        "bounce.minimize(f, bounce.Space([bounce.Real('x', 0, 1)]), 4, workers=2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        "InvalidOption: the objective is defined in a notebook, an interactive session or standard input" in done.stderr
    )


SENT = """
import functools, sys
import bounce
{objective}
space = bounce.Space([bounce.Real('x', 0, 1), bounce.Binary('b0')])
try:
    print(len(bounce.minimize(f, space, 4, seed=0, {how}).trials))
except bounce.InvalidOption as error:
    print(error)
"""
MADE_HERE = {
    "function": "def f(point): return 1.0",
    "lambda": "f = lambda point: 1.0",
    "partial": "def g(point, a): return a\nf = functools.partial(g, a=1.0)",
    "instance": "class F:\n    def __call__(self, point): return 1.0\nf = F()",
}


def sent(objective: str, how: str, folder: Path) -> str:
    """Run a script from standard input and return what it prints."""
    script = SENT.format(objective=objective, how=how)
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE_HERE)
@pytest.mark.parametrize("how", ["workers=2", "timeout=60"])
def test_an_objective_from_standard_input_is_refused_with_the_cause_and_the_way_out(
    kind: str, how: str, tmp_path: Path
) -> None:
    message = sent(MADE_HERE[kind], how, tmp_path)
    assert "the objective is defined in a notebook, an interactive session or standard input" in message
    assert "save it in a file such as objective.py and import it from there" in message
    assert ("or use executor=ThreadPoolExecutor(n)" in message) == (how == "workers=2")
    assert message.startswith("a timeout needs worker processes, but ") == (how == "timeout=60")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["workers=2", "timeout=60"])
def test_the_ways_out_of_standard_input_work(how: str, tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text("def f(point): return 1.0\n")
    assert sent("from objective import f", how, tmp_path) == "4"
    if how == "workers=2":
        threads = "from concurrent.futures import ThreadPoolExecutor\n" + MADE_HERE["lambda"]
        assert sent(threads, "workers=2, executor=ThreadPoolExecutor(2)", tmp_path) == "4"


def test_a_notebook_is_told_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = types.ModuleType("__main__")  # like that of IPython: it has no __file__
    exec("def f(point): return 1.0", vars(notebook))
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    with Study.open(space=mixed(), budget=6, seed=0) as study:
        with pytest.raises(InvalidOption, match="is defined in a notebook"):
            study.run(vars(notebook)["f"], workers=2)
        assert study.trials == []


def test_a_lambda_with_a_timeout_is_not_sent_in_circles() -> None:
    with Study.open(space=mixed(), budget=6, seed=0) as study:
        with pytest.raises(InvalidOption) as caught:
            study.run(lambda point: 1.0, timeout=60)
        message = str(caught.value)
        assert message.startswith("a timeout needs worker processes, but the objective cannot be sent to one")
        assert message.endswith("define it with `def` at the top level of a module")
        assert "ThreadPoolExecutor" not in message  # which cannot have a timeout
        study.run(value, timeout=60)  # the way out
        assert study.done


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_waits_for_what_is_running_and_twice_does_not(tmp_path: Path, times: int, workers: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys\n"
        "import bounce\n"
        "def f(point):\n"
        "    os.write(os.open('begun', os.O_WRONLY), b'x')\n"
        "    os.read(os.open('end', os.O_RDONLY), 1)\n"  # blocks until somebody writes
        "    return 1.0\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # also where a shell ignores it
        "    import logging; logging.basicConfig()\n"
        "    with bounce.Study.open('a.db', space=bounce.Space([bounce.Real('x', 0, 1)]), budget=5) as study:\n"
        f"        study.run(f, workers={workers})\n"
    )
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "end")
    begun, end = os.open(tmp_path / "begun", os.O_RDWR), os.open(tmp_path / "end", os.O_RDWR)
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for _ in range(workers):
        assert os.read(begun, 1) == b"x"
    process.send_signal(signal.SIGINT)
    said = process.stderr.readline()
    assert "waiting for running evaluations to finish; press Ctrl-C again to stop at once" in said
    if times == 2:
        process.send_signal(signal.SIGINT)
    else:
        os.write(end, b"x" * workers)
    error = process.stderr.read()
    process.stderr.close()
    process.wait()
    os.close(begun)
    os.close(end)
    assert "KeyboardInterrupt" in error
    assert "everything is stored in a.db; run again to resume" in error
    with Study.open(tmp_path / "a.db") as study:
        assert [t.state for t in study.trials] == ["done" if times == 1 else "pending"] * workers
        study.run(lambda point: 1.0)
        assert study.done


def test_a_command_runs_again_after_a_run_that_was_ended() -> None:
    command = bounce.Command([sys.executable, "-c", "print(1.5)"])

    def end(trial: bounce.Trial) -> None:
        raise KeyboardInterrupt

    with Study.open(space=mixed(), budget=4, seed=0) as study:
        with pytest.raises(KeyboardInterrupt):
            study.run(command, workers=2, callbacks=[end])
        study.run(command, workers=2, timeout=60)
        assert [t.value for t in study.trials] == [1.5] * 4


def test_a_run_leaves_the_signal_handler_of_others_alone() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with Study.open(space=mixed(), budget=4, seed=0) as study:
            study.run(value, callbacks=[lambda trial: os.kill(os.getpid(), signal.SIGINT)])
        assert len(seen) == 4
    finally:
        signal.signal(signal.SIGINT, before)


def test_callbacks_see_each_finished_trial_once_and_what_is_out() -> None:
    seen, out = [], []
    with Study.open(space=mixed(), budget=9, seed=0) as study:

        def look(trial: bounce.Trial) -> None:
            seen.append(trial)
            out.append(study.in_flight)

        study.run(value, workers=3, batch_size=1, callbacks=[look], executor=ThreadPoolExecutor(3))
        assert sorted(t.id for t in seen) == list(range(9))
        assert all(t.state == "done" for t in seen)
        assert max(out) <= 2
        assert study.in_flight == 0


def test_a_space_that_runs_out_of_points_ends_the_run() -> None:
    space = bounce.Space([bounce.Binary("a"), bounce.Binary("b")])
    result = bounce.minimize(lambda point: point["a"] + point["b"], space, 50, seed=0)
    assert len(result.trials) == 4


# The pool by itself


def test_a_pool_makes_calls_in_processes_of_their_own() -> None:
    with Pool(2) as pool:
        pids = {future.result() for future in [pool.submit(os.getpid) for _ in range(6)]}
        assert os.getpid() not in pids
        assert 1 <= len(pids) <= 2
        assert isinstance(pool.submit(int, "x").exception(), RuntimeError)
        assert isinstance(pool.submit(os._exit, 0).exception(), WorkerDied)
        assert pool.submit(abs, -3).result() == 3
        with pytest.raises(Exception, match=r"pickle|local"):
            pool.submit(lambda: 1)


def test_a_pool_that_is_killed_takes_no_more_calls() -> None:
    pool = Pool(1, timeout=60)
    future = pool.submit(signal.pause)
    assert pool.submit(abs, 1).cancel()
    begun = threading.Event()
    future.add_done_callback(lambda _: begun.set())
    while not pool._workers:
        pass
    pool.kill()
    assert begun.wait(20)
    assert isinstance(future.exception(), WorkerDied | ExecutorFailed)
    assert isinstance(pool.submit(abs, 1).exception(), WorkerDied)
    pool.shutdown()


def test_a_call_that_takes_too_long_does_not_disturb_the_next() -> None:
    with Pool(1, timeout=0.1) as pool:
        assert isinstance(pool.submit(signal.pause).exception(), CallTooLong)
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.slow
@pytest.mark.parametrize("busy", ["signal.pause()", "re.match('(a+)+$', 'a' * 60 + 'b')"])  # the second in C code
def test_workers_end_when_their_parent_is_killed(tmp_path: Path, busy: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, re, signal, sys\n"
        "import bounce\n"
        "def f(point):\n"
        "    handle = os.open('fifo', os.O_WRONLY)\n"
        "    os.write(handle, b'x')\n"
        f"    {busy}\n"
        "if __name__ == '__main__':\n"
        "    bounce.minimize(f, bounce.Space([bounce.Real('x', 0, 1)]), 4, workers=2)\n"
    )
    os.mkfifo(tmp_path / "fifo")
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path)
    with (tmp_path / "fifo").open("rb", buffering=0) as fifo:
        assert fifo.read(1) == b"x"
        process.kill()
        process.wait()
        assert fifo.read(2) in (b"", b"x")  # read() returns at the end of the file: the workers are gone
        assert fifo.read() == b""


def test_a_worker_serves_calls_until_the_other_side_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve, args=(theirs,))
    thread.start()
    assert ours.recv() == "ready"
    ours.send_bytes(pickle.dumps((divmod, (7, 2), {})))
    assert ours.recv() is None
    assert pickle.loads(ours.recv_bytes()) == ((3, 1), None)
    assert ours.recv() == "ready"
    ours.send_bytes(b"no pickle")
    assert "Error" in ours.recv()
    thread.join()
    ours.close()


def test_an_answer_holds_what_was_raised() -> None:
    result, error = pickle.loads(answer(int, ("x",), {}))
    assert result is None
    assert "ValueError: invalid literal" in str(error)


SHOUT = "begun \x1b[2J\a" + "x" * 10**6 + " ended"


def shouts(point: objectives.Point) -> float:
    if point["b1"]:
        raise ValueError(SHOUT)
    return value(point)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_error_with_escape_sequences_is_stored_and_logged_in_short(
    workers: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=12, seed=0) as study:
        study.run(shouts, workers=workers)
        errors = {t.error for t in study.trials if t.error is not None}
    (error,) = errors
    assert error.startswith("ValueError: begun \\x1b[2J\\x07xxx")
    assert error.endswith("xxx ended")
    assert f"\n[... cut, {len('ValueError: ' + SHOUT)} characters in all ...]\n" in error
    assert len(error) <= 2000
    assert all("\x1b" not in record.getMessage() for record in caplog.records)
    assert all(len(record.getMessage()) < 30_000 for record in caplog.records)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 10**6


def test_a_reason_given_by_hand_is_stored_in_short_too() -> None:
    with Study.open(space=mixed(), budget=12, seed=0) as study:
        (trial,) = study.ask(1)
        study.fail(trial, "no\tgas\r\n\x1b]0;title\a \ud800" + "." * 5000)
        error = study.trials[0].error
    assert error is not None
    assert error.startswith("no\tgas\\r\n\\x1b]0;title\\x07 \\ud800...")
    assert len(error) <= 2000


def test_runs_are_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "bounce")
    with Study.open(space=mixed(), budget=12, seed=0) as study:
        study.run(objectives.half_fails)
    assert "failed: ValueError: b0 must not be set" in caplog.text


def test_asynchronous_runs_with_the_same_returns_are_the_same() -> None:
    """A batch size of one and one worker less is another run, but each is repeatable."""
    runs = [run_in_threads(3) for _ in range(2)]
    assert all(a == b for a, b in pairwise(runs))


def run_in_threads(workers: int) -> list[Any]:
    """A pool of one thread returns in the order of submission, whatever the number of workers."""
    with Study.open(space=mixed(), budget=16, seed=5) as study, ThreadPoolExecutor(1) as executor:
        study.run(value, executor=executor, workers=workers, batch_size=1)
        return [t.point for t in study.trials]
