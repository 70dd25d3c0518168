"""Evaluations: a trial goes in, an outcome comes out, on whatever machine.

An evaluator is what an executor is handed: it pickles, and its `evaluate` never raises for what an objective does
wrong. So an exception of a future is a fault of the machinery, never of the objective.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from bounce.errors import EvaluationFailed, InvalidTell
from bounce.trial import Trial, finite

Objective = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of an evaluation: a value, or what was said of its failure."""

    value: float | None
    error: str | None
    seconds: float | None
    """How long it took, where that is known."""
    exception: Exception | None = None
    """The objective's exception, where there was one that can travel between processes."""


@runtime_checkable
class Evaluator(Protocol):
    """What turns a trial into an outcome."""

    @property
    def own_process(self) -> bool:
        """Whether each evaluation starts a process of its own, so that threads are workers enough."""

    def within(self, seconds: float, /) -> Evaluator:
        """Return the same with a limit to the seconds of an evaluation, as far as it can see to that itself."""

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Evaluate a trial; a failure is an outcome too."""

    def stop(self) -> None:
        """End what is running at once; called from another thread, when nobody waits any longer."""


@dataclass(frozen=True)
class Function:
    """A Python function of a point, as an evaluator."""

    objective: Objective
    own_process: ClassVar[bool] = False

    def within(self, seconds: float, /) -> Function:
        """Return the same: what a function does can be limited only from outside, by ending its process."""
        return self

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Call the function with a copy of the point."""
        start = time.perf_counter()
        try:
            value = self.objective(dict(trial.point))
            try:
                number = finite(value)
            except InvalidTell:
                raise EvaluationFailed(f"the objective must return a finite number, not {value!r}") from None
        except Exception as error:
            return Outcome(None, said(error), time.perf_counter() - start, error)
        return Outcome(number, None, time.perf_counter() - start)

    def stop(self) -> None:
        """Do nothing: a function ends with its process."""


def evaluate(evaluator: Evaluator, trial: Trial, again: bool = False) -> Outcome:
    """Evaluate in another process or thread, and return an outcome that can travel.

    That a trial goes out again is an argument, so that an executor that remembers calls takes it for another call.
    """
    try:
        outcome = evaluator.evaluate(trial)
    except SystemExit as error:
        return Outcome(None, said(error), None)
    try:
        pickle.loads(pickle.dumps(outcome.exception))
    except Exception:
        return Outcome(outcome.value, outcome.error, outcome.seconds)
    return outcome


def said(error: BaseException) -> str:
    """Return what an exception says, whatever it is."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # an exception of the user's that cannot be printed
        return type(error).__name__
