"""A process that runs some trials of a study, and dies within the next one if told to.

python optuna_worker.py sqlite|journal PATH TRIALS [--kill]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from bounce.integrations.optuna import BounceSampler

SMALL: dict[str, Any] = {
    "share": FloatDistribution(0.0, 1.0),
    "width": IntDistribution(0, 8),
    "kernel": CategoricalDistribution(["a", "b", "c"]),
}


def small(trial: Any) -> float:
    """Suggest three parameters and return their cost."""
    share, width, kernel = (trial._suggest(name, distribution) for name, distribution in SMALL.items())
    return float((share - 0.3) ** 2 + abs(width - 5) + "abc".index(kernel))


def load(kind: str, path: Path) -> Any:
    """Return the study in a file, which is made if it does not exist."""
    storage: Any = f"sqlite:///{path}.db"
    if kind == "journal":
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{path}.log"))
    sampler = BounceSampler(seed=5, budget=20)
    return optuna.create_study(storage=storage, study_name="s", sampler=sampler, load_if_exists=True)


def main(kind: str, path: str, trials: str, *options: str) -> None:
    """Run trials."""
    study = load(kind, Path(path))

    def lethal(trial: Any) -> float:
        value = small(trial)
        if options and trial.number == int(trials):
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    study.optimize(lethal, n_trials=int(trials) + len(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
