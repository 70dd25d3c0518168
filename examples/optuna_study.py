"""Continue a study of Optuna, made with another sampler, with Bounce."""

import optuna

from bounce.integrations.optuna import BounceSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial: optuna.Trial) -> float:
    layers = trial.suggest_int("layers", 1, 8)
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.5, step=0.05)
    kind = trial.suggest_categorical("kind", ["relu", "tanh", None])
    return abs(layers - 3) + abs(rate - 0.01) + dropout + (kind is not None)


storage = "sqlite:///tuning.db"
study = optuna.create_study(storage=storage, study_name="net", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=15)
print(f"TPE after {len(study.trials)} trials: {study.best_value:.3f}")

# Another day: the same file, another sampler. It learns from the trials that are there.
study = optuna.load_study(storage=storage, study_name="net", sampler=BounceSampler(budget=25, seed=0))
study.optimize(objective, n_trials=25)
print(f"Bounce after {len(study.trials)} trials: {study.best_value:.3f}")
