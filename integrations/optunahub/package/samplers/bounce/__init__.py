"""The sampler of the package bounce-bo."""

from bounce.integrations.optuna import BounceSampler

__all__ = ["BounceSampler"]
