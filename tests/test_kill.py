"""A run that is killed, at any instant, continues as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bounce import InvalidStudy, Study, Trial
from bounce.running import run
from bounce.study.storage import Storage
from objectives import Logged, mixed, value
from test_study import facts as all_facts

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kill")]

KILLS = 30  # for each batch size
OPTIONS: dict[str, Any] = {"budget": 24, "seed": 7, "initial_points": 3, "noise": "none"}  # so no point comes twice


def in_a_child(work: Callable[[], object]) -> int:
    """Start work in a forked process and return its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    return pid


def facts(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """What must be the same in two runs: not how often one of them was killed."""
    return all_facts([replace(trial, attempts=0) for trial in trials])


def killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def whole_run(path: Path, batch_size: int, budget: int) -> list[tuple[Any, ...]]:
    with Study.open(path, space=mixed(), **OPTIONS | {"budget": budget, "batch_size": batch_size}) as study:
        return facts(study.run(value, workers=1).trials)


def resume(path: Path, batch_size: int, budget: int, log: Path) -> None:
    with Study.open(path, space=mixed(), **OPTIONS | {"budget": budget, "batch_size": batch_size}) as study:
        study.run(Logged(log), workers=1)


def evaluations(log: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how often each point was begun and done."""
    lines = log.read_text().splitlines()
    begun = Counter(line.removeprefix("begun ") for line in lines if line.startswith("begun "))
    return begun, Counter(line.removeprefix("done ") for line in lines if line.startswith("done "))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_kills_at_random_instants_change_nothing(
    tmp_path: Path, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "DEATHS", KILLS)  # here they are no fault of the trial that two of them may hit
    straight = whole_run(tmp_path / "whole.db", batch_size, budget=24)
    rng = random.Random(batch_size)
    kills = 0
    while kills < KILLS:  # a run that is over is followed by another
        path, log = tmp_path / f"{kills}.db", tmp_path / f"{kills}.log"
        log.touch()
        stored, of_this = list[tuple[Any, ...]](), 0
        for facts_now, was_killed in killings(path, batch_size, log, rng):
            assert set(stored) <= set(facts_now)  # no told value is lost
            stored, of_this = facts_now, of_this + was_killed
        assert stored == straight
        begun, done = evaluations(log)
        assert set(done) == set(begun)
        assert len(done) == 24  # the same 24 points, and no other
        assert sum(begun.values()) - 24 <= of_this  # at most the one that was in flight, each time
        kills += of_this


def killings(
    path: Path, batch_size: int, log: Path, rng: random.Random
) -> Iterator[tuple[list[tuple[Any, ...]], bool]]:
    """Start a run again and again and kill it after a while, until it ends; yield what is done each time.

    The while is random, and longer in the mean as long as nothing gets done: machines differ.
    """
    status, mean, before = 1, 0.05, 0
    while status != 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = in_a_child(lambda: resume(path, batch_size, 24, log))
        signal.sigtimedwait([signal.SIGCHLD], rng.expovariate(1 / mean))  # its end, or some moment before
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert status == 0 or killed(status)
        done = []
        if path.exists():
            with suppress(InvalidStudy), Study.open(path) as study:  # none before the first transaction
                done = [fact for fact in facts(study.trials) if "done" in fact]
        mean, before = mean * (1.2 if len(done) == before else 1 / 1.2), len(done)
        yield done, status != 0


class Poison:
    """Kill this process at the points where a bit is set."""

    def __call__(self, point: dict[str, Any]) -> float:
        if point["b1"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return value(point)


def test_a_trial_that_kills_the_process_twice_is_failed_and_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        study.enqueue([{"b1": False}, {"b1": True}, {"b1": False}])

    def poisoned() -> None:
        with Study.open(path) as study:
            study.run(Poison(), callbacks=[enough])

    def enough(trial: Trial) -> None:
        if trial.id == 2:
            os._exit(0)

    for dead in (1, 2):
        _, status = os.waitpid(in_a_child(poisoned), 0)
        assert killed(status)
        with Study.open(path) as study:
            assert [(t.state, t.attempts) for t in study.trials[:2]] == [("done", 0), ("pending", dead)]
    _, status = os.waitpid(in_a_child(poisoned), 0)
    assert status == 0
    with Study.open(path) as study:
        assert [t.state for t in study.trials[:3]] == ["done", "failed", "done"]
        assert str(study.trials[1].error).startswith(
            "the process of the run ended twice while this trial was evaluated"
        )
        assert [(t.state, t.attempts) for t in study.retry()] == [("pending", 0)]
        study.run(value)
        assert [t.attempts for t in study.trials] == [0] * 24
        assert {t.state for t in study.trials} == {"done"}


def test_a_trial_that_killed_the_process_of_a_run_is_evaluated_by_workers(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), **OPTIONS) as study:
        (trial,) = study.ask(1)
        for deaths in range(2):
            study.begin_attempt(replace(trial, attempts=deaths))
    with Study.open(tmp_path / "a.db") as study:
        assert study.trials[0].attempts == 2
        study.run(value, workers=2)
        assert {t.state for t in study.trials} == {"done"}


@contextmanager
def dying_at(event: int) -> Iterator[None]:
    """Kill this process at the n-th boundary of a transaction: before it begins, before and after its commit."""
    count = 0
    whole = Storage._transaction

    def passes() -> None:
        nonlocal count
        count += 1
        if count > event:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def transaction(self: Storage) -> Iterator[sqlite3.Connection]:
        passes()
        with whole(self) as connection:
            yield connection
            passes()
        passes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "_transaction", transaction)
        yield


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_kill_at_any_boundary_of_a_transaction_changes_nothing(tmp_path: Path, batch_size: int) -> None:
    straight = whole_run(tmp_path / "whole.db", batch_size, budget=5)
    event, status = 0, 1
    while status != 0:  # until a run has fewer boundaries than this
        path, log = tmp_path / f"{event}.db", tmp_path / f"{event}.log"
        log.touch()

        def dying(path: Path = path, log: Path = log, event: int = event) -> None:
            with dying_at(event):
                resume(path, batch_size, 5, log)

        _, status = os.waitpid(in_a_child(dying), 0)
        assert status == 0 or killed(status)
        resume(path, batch_size, 5, log)
        with Study.open(path) as study:
            assert facts(study.trials) == straight
        begun, _ = evaluations(log)
        assert len(begun) == 5
        assert sum(begun.values()) <= 6
        event += 1
    assert event > 3 * 2 * 5 / batch_size  # begin, commit, end; ask, tell


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from objectives import Logged, mixed
from bounce import InvalidStudy, Study, Trial
from bounce.running import run

if __name__ == "__main__":
    with Study.open("a.db", space=mixed(), budget=32, seed=0, initial_points=20) as study:
        study.run(Logged(Path("log").absolute()), workers=8, batch_size=1)
"""


def test_kills_of_a_run_with_eight_workers_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(tests=str(Path(__file__).parent)))
    log = tmp_path / "log"
    rng = random.Random(0)
    told: dict[int, float | None] = {}
    kills = 0
    code: int | None = 1
    while code != 0:
        process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path)
        lines = len(log.read_bytes().splitlines()) if log.exists() else 0
        until = lines + rng.randrange(1, 20)
        while (code := process.poll()) is None and kills < 3:
            if log.exists() and len(log.read_bytes().splitlines()) >= until:
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)  # leaves the processor to the workers
        code = process.wait()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
        with Study.open(tmp_path / "a.db") as study:
            now = {t.id: t.value for t in study.trials if t.state == "done"}
            assert told.items() <= now.items()
            told = now
    assert kills == 3
    with Study.open(tmp_path / "a.db") as study:
        assert [t.id for t in study.trials] == list(range(32))
        assert all(t.value == value(t.point) for t in study.trials)
        assert sorted(r.tell for r in study._keeper.optimizer._ledger.records) == list(range(32))
    begun, _ = evaluations(log)
    assert len(begun) == 32
    assert sum(begun.values()) <= 32 + 8 * kills
