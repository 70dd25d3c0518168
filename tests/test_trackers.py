"""Callbacks for MLflow, where it is installed, and for Weights & Biases, with a run that only remembers."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bounce
from bounce import InvalidInput, InvalidOption, Real, Space, Trial
from bounce.integrations.mlflow import MLflowCallback, keys
from bounce.integrations.wandb import WandbCallback

SPACE = Space([Real("a<b>/c", 0, 1), Real("a(b)/c", 0, 1)])


def objective(point: dict[str, Any]) -> float:
    if point["a<b>/c"] > 0.8:
        raise ValueError("too large")
    return float(point["a<b>/c"] + point["a(b)/c"])


class Remembered:
    """A run of Weights & Biases, as far as the callback uses one."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}

    def log(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> Remembered:
    """The active run of a module that stands for wandb."""
    wandb, run = ModuleType("wandb"), Remembered()
    wandb.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return run


def test_every_trial_is_a_row_and_the_summary_has_the_best(active: Remembered) -> None:
    result = bounce.minimize(objective, SPACE, budget=12, seed=0, callbacks=[WandbCallback()])
    best = None
    assert {trial.state for trial in result.trials} == {"done", "failed"}
    for trial, row in zip(result.trials, active.rows, strict=True):
        assert (row["trial"], row["state"], row.get("value")) == (trial.id, trial.state, trial.value)
        assert {name.removeprefix("point/"): row[name] for name in row if name.startswith("point/")} == trial.point
        if trial.value is not None:
            best = trial.value if best is None else min(best, trial.value)
            assert row["best"] == best
    assert result.best is not None
    assert active.summary == {
        "best": result.best.value,
        "best_trial": result.best.id,
        "best_point": result.best.point,
    }


def test_a_run_that_maximises_has_the_largest_value_as_its_best() -> None:
    run = Remembered()
    callback = WandbCallback(run, direction="maximize")
    for i, value in enumerate([1.0, 3.0, 2.0]):
        callback(Trial(i, {"x": 0.5}, value, state="done"))
    assert [row["best"] for row in run.rows] == [1.0, 3.0, 3.0]
    assert run.summary["best_trial"] == 1


def test_a_tracker_that_fails_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Offline(Remembered):
        def log(self, row: dict[str, Any]) -> None:
            raise ConnectionError("no network")

    with caplog.at_level(logging.WARNING, "bounce"):
        result = bounce.minimize(lambda point: point["a<b>/c"], SPACE, budget=8, callbacks=[WandbCallback(Offline())])
    assert len(result.trials) == 8
    said = [record.getMessage() for record in caplog.records]
    assert said == ["Weights & Biases did not take trial 0, and the run continues: no network"]


def test_a_callback_without_a_run_or_a_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = ModuleType("wandb")
    empty.run = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", empty)
    with pytest.raises(InvalidInput, match=r"call wandb\.init first"):
        WandbCallback()
    for name, callback in (("wandb", WandbCallback), ("mlflow", MLflowCallback)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InvalidInput, match=f"pip install {name}"):
            callback()
    with pytest.raises(InvalidOption, match="direction must be 'minimize' or 'maximize', not 'up'"):
        WandbCallback(Remembered(), direction="up")


@given(st.dictionaries(st.text(min_size=1, max_size=300), st.floats() | st.text(max_size=50), max_size=8))
def test_mlflow_gets_a_name_of_its_own_for_each_parameter(point: dict[str, Any]) -> None:
    found = keys(point)
    assert len(found) == len(point)
    for key in found:
        assert key
        assert len(key) <= 250
        assert all(c.isascii() and (c.isalnum() or c in "_-. :") for c in key)
        assert not key.startswith(".")


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow with a store of its own: files, which the small package mlflow-skinny has too."""
    found = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found.set_tracking_uri(tmp_path.as_uri())
    return found


def test_mlflow_has_a_run_for_each_trial(mlflow: Any) -> None:
    mlflow.set_experiment("tuning")
    with mlflow.start_run() as parent:
        result = bounce.minimize(objective, SPACE, budget=10, seed=0, callbacks=[MLflowCallback()])
    client = mlflow.MlflowClient()
    around = parent.info.run_id
    assert result.best is not None
    assert client.get_run(around).data.metrics["best"] == result.best.value
    assert client.get_run(around).data.tags["bounce.best_trial"] == str(result.best.id)
    values = {metric.step: metric.value for metric in client.get_metric_history(around, "value")}
    assert values == {trial.id: trial.value for trial in result.trials if trial.value is not None}
    runs = client.search_runs(
        [parent.info.experiment_id], filter_string=f"tags.`mlflow.parentRunId` = '{around}'", max_results=100
    )
    assert len(runs) == len(result.trials) == 10
    for run in runs:
        trial = result.trials[int(run.data.tags["bounce.trial"])]
        assert run.info.status == ("FINISHED" if trial.value is not None else "FAILED")
        assert run.data.metrics.get("value") == trial.value
        assert run.data.params == {"a_b__c": repr(trial.point["a<b>/c"]), "a_b__c_2": repr(trial.point["a(b)/c"])}
        assert run.data.tags.get("bounce.error") == trial.error


@pytest.mark.usefixtures("mlflow")
def test_mlflow_needs_an_active_run() -> None:
    with pytest.raises(InvalidInput, match="no run of MLflow is active"):
        MLflowCallback()
