from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from bounce import Bounce, Categorical, Integer, Real, Space
from bounce.gp.threads import one_thread
from bounce.optimizer.planner import Planner
from bounce.optimizer.state import Head, Record
from bounce.trial import Scalar
from spaces import reals

BLAS = ThreadpoolController().select(internal_api="openblas")

if not BLAS.info() or not all(
    ".libs" in library["filepath"] or ".dylibs" in library["filepath"] for library in BLAS.info()
):
    pytest.skip("numpy and scipy have no OpenBLAS of their own here", allow_module_level=True)


def threads() -> set[int]:
    """Return how many threads the loaded OpenBLAS libraries have, as someone else counts them."""
    return {library["num_threads"] for library in BLAS.info()}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    with BLAS.limit(limits=2):
        assert threads() == {2}
        yield


def test_an_ask_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, inside = Planner.plan, list[set[int]]()

    def watched(self: Planner, *args: Any, **options: Any) -> tuple[Head, list[Record]]:
        inside.append(threads())
        return plan(self, *args, **options)

    monkeypatch.setattr(Planner, "plan", watched)
    optimizer = Bounce(reals(3), 10, seed=0)
    trial = optimizer.ask()[0]
    assert inside == [{1}]
    assert threads() == {2}
    optimizer.tell(trial, 1.0)
    monkeypatch.setattr(Planner, "plan", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        optimizer.ask()
    assert threads() == {2}


def test_the_last_one_out_restores_what_there_was() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            entered.set()
            assert leave.wait(60)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(60)
    assert threads() == {1}
    leave.set()
    thread.join()
    assert threads() == {2}


@pytest.mark.slow
def test_a_run_does_not_depend_on_the_number_of_threads() -> None:
    def points() -> list[dict[str, Scalar]]:
        optimizer = Bounce(reals(60), 40, seed=0)
        while not optimizer.done:
            trial = optimizer.ask()[0]
            optimizer.tell(trial, float(np.cos(optimizer.space.encode([trial.point])).sum()))
        return [trial.point for trial in optimizer.trials]

    two_threads = points()
    with BLAS.limit(limits=1):
        assert points() == two_threads


def test_values_underflow_whatever_a_program_has_told_numpy() -> None:
    space = Space([Real("x", 0, 1), Integer("k", 0, 30), Categorical("c", list("abc"))])
    with np.errstate(all="raise"):
        optimizer = Bounce(space, 24, seed=1)
        while not optimizer.done:
            optimizer.tell(optimizer.ask(), [1e-3 * len(optimizer.trials)])
        assert optimizer.recommend() is not None
        assert optimizer.importance() is not None
