"""Other optimizers with the interface of Bounce, for comparisons: thin adapters over their packages.

Every package runs with its recommended settings. For a given seed, all evaluate the same five points first; Bounce
keeps its own initial design, which is part of its method. A package is imported when it is used.

>>> from bounce import baselines
>>> optimizer = baselines.make("tpe", space, budget=200, seed=0)
>>> for trial in optimizer.ask():
...     optimizer.tell(trial, objective(trial.point))
"""

from __future__ import annotations

from collections.abc import Callable

from bounce.baselines.baseline import INITIAL, Baseline, initial_points
from bounce.baselines.packages.botorch import Botorch
from bounce.baselines.packages.cmaes import Cmaes
from bounce.baselines.packages.nevergrad import Nevergrad
from bounce.baselines.packages.optuna import gp_sampler, tpe
from bounce.baselines.packages.random_search import RandomSearch
from bounce.baselines.packages.smac import Smac
from bounce.errors import InvalidInput
from bounce.spaces.space import Space

__all__ = ["Baseline", "initial_points", "make", "names"]

_BASELINES: dict[str, Callable[[Space, int, int, int], Baseline]] = {
    "random": RandomSearch,
    "tpe": tpe,
    "smac": Smac,
    "cmaes": Cmaes,
    "nevergrad": Nevergrad,
    "gp-sampler": gp_sampler,
    "botorch": Botorch,
}


def names() -> list[str]:
    """Return the names that `make` accepts."""
    return list(_BASELINES)


def make(name: str, space: Space, budget: int, seed: int, initial: int = INITIAL) -> Baseline:
    """Return a baseline by its name; it starts with random points that are the same for all baselines."""
    if name not in _BASELINES:
        raise InvalidInput(f"there is no baseline {name!r}; the names are {', '.join(names())}")
    return _BASELINES[name](space, budget, seed, initial)
