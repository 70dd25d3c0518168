"""A sampler for Optuna (the extra `optuna`).

>>> study = optuna.create_study(sampler=BounceSampler(budget=200, seed=0))
"""

from bounce.integrations.optuna.sampler import BounceSampler

__all__ = ["BounceSampler"]
