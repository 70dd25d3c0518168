"""Progress: what a display knows about a run."""

from __future__ import annotations

import time
from typing import Any, Protocol

from bounce.live.words import seconds
from bounce.trial import Trial


class Standing(Protocol):
    """How far a run is."""

    @property
    def done(self) -> int:
        """How many trials have a value."""

    @property
    def failed(self) -> int:
        """How many trials have failed."""

    @property
    def pending(self) -> int:
        """How many trials are being evaluated."""

    @property
    def spent(self) -> int:
        """How much of the budget has been spent."""

    @property
    def planned(self) -> int:
        """How many trials there will be in the end."""

    @property
    def dimensions(self) -> int:
        """The number of variables of the space."""


class Watched(Protocol):
    """What a display asks of a study."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run."""

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id."""

    @property
    def status(self) -> Standing:
        """Where the study stands."""

    @property
    def best(self) -> Trial | None:
        """The best trial."""

    @property
    def in_flight(self) -> int:
        """How many evaluations are running."""

    @property
    def stopped(self) -> str | None:
        """Why the last run ended before its budget was spent."""


class Progress:
    """The counts, times and best values of a run so far. A finished trial is done, with a value, or failed."""

    def __init__(self, study: Watched) -> None:
        self._study = study
        options = study.options
        self.maximize = options["direction"] == "maximize"
        status = study.status
        self.budget = status.planned
        self.gone = status.spent - status.done - status.failed - status.pending
        self.dimensions = status.dimensions
        self.done, self.failed, self.here = 0, 0, 0
        self.best: Trial | None = None
        self.last: Trial | None = None
        self.curve: list[float] = []
        self._ask, self._eval, self._evals = 0.0, 0.0, 0
        self._start = time.monotonic()
        for trial in study.trials:
            if trial.state in ("done", "failed"):
                self._count(trial)
            elif trial.state == "added":
                self._rank(trial)

    def tell(self, trial: Trial) -> None:
        """Add a finished trial of this run."""
        self.here += 1
        self._count(trial)
        if trial.feasible is False:
            self.best = self._study.best  # which trial breaks limits least depends on all of them

    def _count(self, trial: Trial) -> None:
        self.last = trial
        self._ask += trial.seconds_ask
        if trial.seconds_eval is not None:
            self._eval, self._evals = self._eval + trial.seconds_eval, self._evals + 1
        if trial.value is None:
            self.failed += 1
            return
        self.done += 1
        self.curve.append(self._rank(trial))

    def _rank(self, trial: Trial) -> float:
        """Take a value into account, and return the best one so far."""
        assert trial.value is not None
        sign = 1.0 if self.maximize else -1.0
        best = None if self.best is None else self.best.value
        if self.best is None or best is None:
            better = True
        else:
            own, others = (trial.feasible is not False, self.best.feasible is not False)
            better = (own, sign * trial.value) > (others, sign * best)
        if better or best is None:
            self.best, best = trial, trial.value
        return best

    @property
    def finished(self) -> int:
        """How many trials are done or failed, those that a change of the space left outside included."""
        return self.done + self.failed + self.gone

    @property
    def counts(self) -> str:
        """How many trials are finished, and how."""
        return (
            f"{self.finished} of {self.budget} finished: {self.done} done, {self.failed} failed"
            + (f", {self.gone} outside the space" if self.gone else "")
            + f"; {self.in_flight} in flight"
        )

    @property
    def in_flight(self) -> int:
        """How many evaluations are running."""
        return self._study.in_flight

    @property
    def seconds_ask(self) -> float | None:
        """The mean time of an ask, per trial."""
        return self._ask / self.finished if self.finished else None

    @property
    def seconds_eval(self) -> float | None:
        """The mean time of an evaluation."""
        return self._eval / self._evals if self._evals else None

    @property
    def elapsed(self) -> float:
        """How many seconds this run has taken so far."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float | None:
        """How many more seconds the run will take, at the pace so far."""
        return self.elapsed / self.here * max(self.budget - self.finished, 0) if self.here else None

    @property
    def end(self) -> str:
        """How long the run will take, or why it has ended, for people."""
        if self.finished >= self.budget:
            return "finished"
        if self._study.stopped is not None:
            return f"stopped: {self._study.stopped}"
        left = self.left
        return "time left unknown" if left is None else f"about {seconds(left)} left"
