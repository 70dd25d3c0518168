"""The sampler in packages that build on Optuna, and in the layout of OptunaHub; each test runs where its package is."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from bounce.integrations.optuna import BounceSampler  # noqa: E402
from bounce.integrations.optuna.history import ASK  # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
HUB = ROOT / "integrations" / "optunahub" / "package"


def cost(trial: Any) -> float:
    return float(trial.suggest_float("x", 0, 1) ** 2 + trial.suggest_int("n", 0, 5))


def test_the_folder_for_optunahub_has_what_the_registry_asks_for() -> None:
    folder = HUB / "samplers" / "bounce"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {"README.md", "__init__.py", "LICENSE", "example.py", "requirements.txt"}
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    head = (folder / "README.md").read_text().split("---\n")[1]
    fields = re.findall(r"^(\w+): \S", head, re.MULTILINE)
    assert fields == ["author", "title", "description", "tags", "optuna_versions", "license"]


@pytest.mark.filterwarnings("ignore")
def test_optunahub_loads_the_sampler() -> None:
    hub = pytest.importorskip("optunahub")
    module = hub.load_local_module(package="samplers/bounce", registry_root=str(HUB))
    study = optuna.create_study(sampler=module.BounceSampler(budget=8, seed=0))
    study.optimize(cost, n_trials=8)
    assert sum(ASK in trial.system_attrs for trial in study.trials) == 7


@pytest.mark.filterwarnings("ignore")
def test_optuna_search_cv_searches_with_bounce() -> None:
    integration = pytest.importorskip("optuna_integration")
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC

    study = optuna.create_study(direction="maximize", sampler=BounceSampler(budget=8, seed=0))
    space = {"C": FloatDistribution(1e-3, 1e3, log=True), "kernel": CategoricalDistribution(["linear", "rbf"])}
    search = integration.OptunaSearchCV(SVC(), space, n_trials=8, study=study)
    search.fit(*load_iris(return_X_y=True))
    assert search.best_score_ > 0.9
    assert sum(ASK in trial.system_attrs for trial in study.trials) == 7


@pytest.mark.filterwarnings("ignore")
def test_ray_tune_searches_with_bounce() -> None:
    search = pytest.importorskip("ray.tune.search.optuna")
    space = {"x": FloatDistribution(0, 1), "n": IntDistribution(0, 5)}
    searcher = search.OptunaSearch(space, sampler=BounceSampler(budget=8, seed=0), metric="loss", mode="min")
    for i in range(8):
        config = searcher.suggest(str(i))
        searcher.on_trial_complete(str(i), {"loss": config["x"] ** 2 + config["n"], "training_iteration": 1})
    assert sum(ASK in trial.system_attrs for trial in searcher._ot_study.trials) == 7


def test_the_dashboard_shows_a_study_of_bounce(tmp_path: Path) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/d.db")
        study = optuna.create_study(storage=storage, sampler=BounceSampler(budget=6, seed=0))
        study.optimize(cost, n_trials=6)
        request = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": f"/api/studies/{study._study_id}",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
        }
        said: list[str] = []
        body = b"".join(dashboard.wsgi(storage)(request, lambda status, *_: said.append(status)))
        storage.engine.dispose()
    assert said == ["200 OK"]
    assert len(json.loads(body)["trials"]) == 6


def test_a_sweep_of_hydra_runs_with_bounce(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    group = tmp_path / "conf" / "hydra" / "sweeper" / "sampler"
    group.mkdir(parents=True)
    (group / "bounce.yaml").write_text("_target_: bounce.integrations.optuna.BounceSampler\nseed: 0\nbudget: 6\n")
    (tmp_path / "conf" / "config.yaml").write_text(
        "defaults:\n  - override hydra/sweeper: optuna\n  - override hydra/sweeper/sampler: bounce\n"
        "hydra:\n  sweeper:\n    n_trials: 6\n    n_jobs: 1\n    storage: sqlite:///h.db\n    study_name: s\n"
        "    params:\n      x: interval(0, 1)\n      n: choice(0, 1)\n"
        "x: 0.5\nn: 1\n"
    )
    (tmp_path / "app.py").write_text(
        "import hydra\n\n\n"
        '@hydra.main(version_base=None, config_path="conf", config_name="config")\n'
        "def main(config):\n    return config.x**2 + config.n\n\n\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "app.py", "--multirun"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("multirun/*/*/optimization_results.yaml"))
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/h.db")
    trials = optuna.load_study(storage=storage, study_name="s").trials
    storage.engine.dispose()
    assert [ASK in trial.system_attrs for trial in trials] == [False, *[True] * 5]
