"""Tracking: what callbacks for experiment trackers have in common.

The invariant: a tracker never ends a run. What it cannot log is reported once, as a warning; the study has it anyway.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod

from bounce.errors import InvalidOption, quoted
from bounce.optimizer.options import DIRECTIONS
from bounce.trial import Trial

logger = logging.getLogger("bounce")


class Tracker(ABC):
    """A callback that logs finished trials, and the best of those it has seen."""

    name: str

    def __init__(self, *, direction: str = "minimize") -> None:
        if direction not in DIRECTIONS:
            names = " or ".join(map(repr, DIRECTIONS))
            raise InvalidOption(f"direction must be {names}, not {quoted(direction)}", option="direction")
        self._sign = 1.0 if direction == "minimize" else -1.0
        self._warned = False
        self.best: Trial | None = None
        """The best trial that was seen."""

    def __call__(self, trial: Trial) -> None:
        """Log a finished trial."""
        better = self._is_better(trial)
        if better:
            self.best = trial
        try:
            self._log(trial, better=better)
        except Exception as error:  # whatever a foreign package raises, such as for a lost connection
            if not self._warned:
                logger.warning("%s did not take trial %d, and the run continues: %s", self.name, trial.id, error)
            self._warned = True

    def _is_better(self, trial: Trial) -> bool:
        if trial.value is None:
            return False
        return self.best is None or self.best.value is None or self._sign * trial.value < self._sign * self.best.value

    @abstractmethod
    def _log(self, trial: Trial, *, better: bool) -> None:
        """Log a trial, which may be the best so far."""
