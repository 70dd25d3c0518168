"""Recorder: outcomes go to the source; failures that look like a broken objective end the run.

The first failures of a run are held back while they have the same error and nothing has succeeded: their trials stay
pending. If the objective is broken, the run ends and has cost no budget.

After a success, failures are recorded at once. Ten in a row with the same error end the run. The source counts them, so
a run that was killed in the middle of a series ends where it would have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from bounce.errors import EvaluationFailed
from bounce.running.evaluation import Outcome
from bounce.text import brief
from bounce.trial import Trial

logger = logging.getLogger("bounce")

ALIKE = 3  # first failures with the same error, before anything succeeds, that end a run
FAILURES = 10  # failures of any kind before anything succeeds, or in a row with the same error, that end a run


class Sink(Protocol):
    """Where outcomes go."""

    def record(self, trial: Trial, outcome: Outcome, /) -> Trial:
        """Keep an outcome and return the finished trial."""

    def end_attempt(self, trial: Trial, /) -> None:
        """Note that an evaluation has ended without an outcome to keep."""

    @property
    def best(self) -> Trial | None:
        """The best trial so far."""

    @property
    def failures_in_a_row(self) -> int:
        """How many of the latest outcomes are failures with the same error."""


class Recorder:
    """What becomes of the outcomes of one run."""

    def __init__(
        self,
        source: Sink,
        max_failures: int,
        callbacks: Sequence[Callable[[Trial], None]],
        outcomes: Sequence[str] = (),
    ) -> None:
        self._source, self._callbacks, self._outcomes = source, callbacks, outcomes
        self._max_failures, self._most = max_failures, max(max_failures, FAILURES)
        self._held: list[tuple[Trial, Outcome]] = []
        self._failures = 0
        self._first: Outcome | None = None
        self._first_id: int | None = None
        self.series: EvaluationFailed | None = None
        """Why the run should end: a series of failures after a success."""
        self.raised: Exception | None = None
        """What a callback raised. No callback is called after that."""

    def finish(self, trial: Trial, outcome: Outcome, *, hold: bool = True) -> None:
        """Record an outcome; before the first success, hold back the first failures if they have the same error."""
        outcome = outcome.with_all(self._outcomes)
        if outcome.value is None:
            self._report(trial, outcome)
            first = hold and self._failures == 0 and self._source.best is None
            if first and all(outcome.error == held.error for _, held in self._held):
                self._held.append((trial, outcome))
                self._source.end_attempt(trial)
                if len(self._held) >= self._max_failures:
                    raise self._broken()
                return
        self.release()
        self._record(trial, outcome)

    def release(self) -> None:
        """Record what was held back: the objective works at other points, or fails in several ways."""
        held, self._held = self._held, []
        for trial, outcome in held:
            self._record(trial, outcome)

    def _record(self, trial: Trial, outcome: Outcome) -> None:
        finished = self._source.record(trial, outcome)
        if outcome.value is None:
            self._failures += 1
            self._count(finished, outcome)
        for callback in () if self.raised else self._callbacks:
            try:
                callback(finished)
            except Exception as error:
                self.raised = error
                return

    def _count(self, failed: Trial, outcome: Outcome) -> None:
        """End the run if it has failed too often: at once if nothing has ever succeeded."""
        if self._source.best is None:
            if self._failures >= self._most:
                assert self._first is not None
                raise EvaluationFailed(
                    f"the first {self._failures} evaluations of this run all failed; the first error was: "
                    f"{self._first.error}",
                    trial=self._first_id,
                ) from self._first.exception
            return
        n = self._source.failures_in_a_row
        if n % self._most == 0:  # the next run does not end at its first failure
            self.series = EvaluationFailed(
                f"the last {n} evaluations all failed with the same error ({outcome.error}), so the run ended. Correct "
                "the cause, then evaluate the failed trials again with bounce run --retry-failed, or Study.retry() in "
                "Python. If such failures are expected, run again to continue with other points, or set max_failures "
                f"to more than {self._most}",
                trial=failed.id,
            )
            self.series.__cause__ = outcome.exception

    def _report(self, trial: Trial, outcome: Outcome) -> None:
        """Show a failure: the first in full, with its traceback, the others in one line."""
        error = outcome.error or "no reason is known"
        if self._first is not None:
            logger.warning("trial %d failed: %s", trial.id, brief(error))
            return
        self._first, self._first_id = outcome, trial.id
        detail = error if outcome.traceback is None else f"{brief(error)}\n{outcome.traceback.rstrip()}"
        logger.warning("trial %d failed: %s", trial.id, detail, extra={"in_full": True})

    def _broken(self) -> EvaluationFailed:
        trial, first = self._held[0]
        n = len(self._held)
        what = "first evaluation of this run failed" if n == 1 else f"first {n} evaluations of this run failed alike"
        message = (
            f"the {what} ({first.error}), so the run ended. This does not count against the budget: correct the "
            f"objective and run again. If such failures are expected, set max_failures to more than {n}"
        )
        failure = EvaluationFailed(message, trial=trial.id)
        failure.__cause__ = first.exception
        return failure
