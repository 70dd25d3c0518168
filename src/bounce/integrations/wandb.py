"""Weights & Biases: a callback that logs each trial as a row of a run's history."""

from __future__ import annotations

from typing import Any

from bounce.errors import InvalidInput
from bounce.integrations.tracking import Tracker
from bounce.trial import Trial


class WandbCallback(Tracker):
    """Log finished trials to a run of Weights & Biases.

    >>> with wandb.init(project="tuning") as run:
    ...     study.run(objective, callbacks=[WandbCallback(run)])

    Without a run, it is the active one. Each trial is a row of the run's history: `trial` (its id), `state`, `value`,
    `best` (the best value so far), `seconds_eval`, and `point/NAME` for each parameter. The summary has `best`,
    `best_trial` and `best_point`.
    """

    name = "Weights & Biases"

    def __init__(self, run: Any = None, *, direction: str = "minimize") -> None:
        super().__init__(direction=direction)
        if run is None:
            try:
                import wandb
            except ImportError:
                raise InvalidInput("this callback needs Weights & Biases: pip install wandb") from None
            run = wandb.run
        if run is None:
            raise InvalidInput("no run of Weights & Biases is active: call wandb.init first, or give a run")
        self._run = run

    def _log(self, trial: Trial, *, better: bool) -> None:
        row: dict[str, Any] = {"trial": trial.id, "state": trial.state}
        if trial.value is not None:
            assert self.best is not None
            row |= {"value": trial.value, "best": self.best.value}
        if trial.seconds_eval is not None:
            row["seconds_eval"] = trial.seconds_eval
        self._run.log(row | {f"point/{name}": value for name, value in trial.point.items()})
        if better:
            self._run.summary["best"] = trial.value
            self._run.summary["best_trial"] = trial.id
            self._run.summary["best_point"] = dict(trial.point)
