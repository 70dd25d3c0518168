"""MLflow: a callback that logs each trial as a run, and the values as metrics of the run around them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bounce.errors import InvalidInput
from bounce.integrations.tracking import Tracker
from bounce.text import written
from bounce.trial import Trial

LONGEST_KEY, LONGEST_VALUE, LONGEST_TAG = 250, 6000, 5000  # characters that MLflow takes
MOST = 100  # parameters that it takes at a time


class MLflowCallback(Tracker):
    """Log finished trials to MLflow.

    >>> with mlflow.start_run():
    ...     study.run(objective, callbacks=[MLflowCallback()])

    The active run, or the one with `run_id`, gets the metrics `value` and `best`, with the trial's id as the step. Each
    trial is a run nested in it, with the point as its parameters, unless `nested` is False. A failed trial is a failed
    run with its error as a tag.
    """

    name = "MLflow"

    def __init__(self, run_id: str | None = None, *, direction: str = "minimize", nested: bool = True) -> None:
        super().__init__(direction=direction)
        try:
            import mlflow
        except ImportError:
            raise InvalidInput("this callback needs MLflow: pip install mlflow") from None
        active = mlflow.active_run()
        if run_id is None and active is None:
            raise InvalidInput(
                "no run of MLflow is active: write 'with mlflow.start_run():' around it, or give a run_id"
            )
        self._client: Any = mlflow.MlflowClient()
        self._parent = active.info.run_id if run_id is None else run_id
        self._experiment = self._client.get_run(self._parent).info.experiment_id
        self._nested = nested

    def _log(self, trial: Trial, *, better: bool) -> None:
        if trial.value is not None:
            assert self.best is not None
            self._client.log_metric(self._parent, "value", trial.value, step=trial.id)
            self._client.log_metric(self._parent, "best", self.best.value, step=trial.id)
        if better:
            self._client.set_tag(self._parent, "bounce.best_trial", str(trial.id))
        if self._nested:
            self._log_nested(trial)

    def _log_nested(self, trial: Trial) -> None:
        tags = {"mlflow.parentRunId": self._parent, "bounce.trial": str(trial.id)}
        if trial.error is not None:
            tags["bounce.error"] = trial.error[:LONGEST_TAG]
        own = self._client.create_run(self._experiment, tags=tags, run_name=f"trial {trial.id}").info.run_id
        try:
            self._log_point(own, trial)
        finally:
            self._client.set_terminated(own, "FINISHED" if trial.value is not None else "FAILED")

    def _log_point(self, run_id: str, trial: Trial) -> None:
        from mlflow.entities import Param

        params = [Param(key, value) for key, value in keys(trial.point).items()]
        for start in range(0, len(params), MOST):
            self._client.log_batch(run_id, params=params[start : start + MOST])
        measured = {"value": trial.value, "seconds_eval": trial.seconds_eval}
        for name, number in measured.items():
            if number is not None:
                self._client.log_metric(run_id, name, number, step=trial.id)


def keys(point: Mapping[str, Any]) -> dict[str, str]:
    """Return a point with the names and texts that MLflow takes: other characters become underscores."""
    found: dict[str, str] = {}
    for name, value in point.items():
        key = re.sub(r"[^A-Za-z0-9_\-. :]|^\.+", "_", name)[: LONGEST_KEY - 10] or "_"
        if key in found:
            key = next(other for n in range(2, len(point) + 2) if (other := f"{key}_{n}") not in found)
        found[key] = written(value)[:LONGEST_VALUE]
    return found
