"""Evaluations: a trial goes in, an outcome comes out, on whatever machine.

An evaluator is what an executor is handed: it pickles, and its `evaluate` never raises for what an objective does
wrong. So an exception of a future is a fault of the machinery, never of the objective.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bounce.errors import EvaluationFailed, InvalidTell
from bounce.parameters import Scalar
from bounce.state import Trial
from bounce.told import finite

Objective = Callable[[dict[str, Scalar]], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of an evaluation: a value, or what was said of its failure."""

    value: float | None
    error: str | None
    seconds: float
    exception: Exception | None = None
    """The objective's exception, where there was one that can travel between processes."""


class Evaluator(Protocol):
    """What turns a trial into an outcome."""

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Evaluate a trial; a failure is an outcome too."""

    def stop(self) -> None:
        """End what is running at once; called from another thread, when nobody waits any longer."""


@dataclass(frozen=True)
class Function:
    """A Python function of a point, as an evaluator."""

    objective: Objective

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


def evaluate(evaluator: Evaluator, trial: Trial) -> Outcome:
    """Evaluate in another process or thread, and return an outcome that can travel."""
    outcome = evaluator.evaluate(trial)
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
