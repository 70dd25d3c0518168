"""Optimize a small function of a float, an integer and a choice."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return a cost."""
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 0, 10)
    on = trial.suggest_categorical("on", [True, False])
    return x**2 + n + on


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/bounce")
    study = optuna.create_study(sampler=module.BounceSampler(budget=50, seed=0))
    study.optimize(objective, n_trials=50)
    print(study.best_trial.params, study.best_value)
