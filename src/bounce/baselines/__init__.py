"""Other optimizers with the interface of Bounce, for comparisons.

Two rooms: `packages` has thin adapters over other packages, which run with their recommended settings; `rivals` has
methods of the literature, written on the core of this package. For a given seed, all evaluate the same five points
first, except Bounce, `baxus` and `bodi-published`, whose initial points are part of their methods. A package is
imported when it is used.

>>> from bounce import baselines
>>> optimizer = baselines.make("tpe", space, budget=200, seed=0)
>>> for trial in optimizer.ask():
...     optimizer.tell(trial, objective(trial.point))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from bounce.baselines.baseline import INITIAL, Baseline, initial_points
from bounce.baselines.packages.botorch import Botorch
from bounce.baselines.packages.cmaes import Cmaes
from bounce.baselines.packages.nevergrad import Nevergrad
from bounce.baselines.packages.optuna import gp_sampler, tpe
from bounce.baselines.packages.random_search import RandomSearch
from bounce.baselines.packages.smac import Smac
from bounce.baselines.rivals.catalogue import RIVALS
from bounce.errors import InvalidInput
from bounce.optimizer.bounce import Bounce
from bounce.spaces.space import Space
from bounce.trial import Trial

__all__ = ["Baseline", "Optimizer", "initial_points", "make", "names"]


class Optimizer(Protocol):
    """What `make` returns: something to ask for points and to tell values, which it minimises."""

    def ask(self, n: int = 1) -> list[Trial]:
        """Return up to n new trials."""

    def tell(self, trials: Any, values: Any) -> Any:
        """Give the values of trials."""

    def fail(self, trials: Any, error: str | None = None) -> list[int]:
        """Mark trials as failed, and return their ids; a method ignores them or learns them as the worst value seen."""

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials, by id."""

    @property
    def best(self) -> Trial | None:
        """The trial with the lowest value."""

    @property
    def remaining(self) -> int:
        """How many more trials `ask` can return."""

    @property
    def done(self) -> bool:
        """Whether the budget is used up and no trial is pending."""


@dataclass(frozen=True)
class _Known:
    """A baseline: what makes it, what it takes and what it needs."""

    make: Callable[[Space, int, int, int], Optimizer]
    takes: str = "all kinds"
    needs: str = ""


def _bounce(**options: Any) -> Callable[[Space, int, int, int], Optimizer]:
    """Return what makes Bounce with some options; it has its own initial points, which are part of its method."""
    return lambda space, budget, seed, initial: Bounce(space, budget, seed=seed, **options)


_BASELINES: dict[str, _Known] = {
    "random": _Known(RandomSearch),
    "tpe": _Known(tpe, needs="optuna"),
    "smac": _Known(Smac, needs="smac"),
    "cmaes": _Known(Cmaes, needs="cmaes"),
    "nevergrad": _Known(Nevergrad, needs="nevergrad"),
    "gp-sampler": _Known(gp_sampler, needs="optuna and torch"),
    "botorch": _Known(Botorch, needs="botorch"),
    **{name: _Known(entry.make, entry.takes) for name, entry in RIVALS.items()},
    "bounce": _Known(_bounce()),
    "bounce-paper": _Known(_bounce(method="paper")),
    "bounce-low-sequency": _Known(_bounce(method="paper", low_sequency=True)),
    "bounce-baxus-regions": _Known(_bounce(method="paper", trust_region="baxus")),
    "bounce-casmopolitan-regions": _Known(_bounce(method="paper", trust_region="casmopolitan")),
}


def names() -> dict[str, str]:
    """Return the names that `make` accepts, each with the variables it takes and the package it needs."""
    return {
        name: f"takes {known.takes}" + (f", needs {known.needs}" if known.needs else "")
        for name, known in _BASELINES.items()
    }


def make(name: str, space: Space, budget: int, seed: int, initial: int = INITIAL) -> Optimizer:
    """Return an optimizer by its name; most start with the same random points.

    A space that a method is not defined for is refused.
    """
    if not isinstance(name, str) or name not in _BASELINES:
        near = get_close_matches(str(name).lower(), _BASELINES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InvalidInput(f"there is no baseline {name!r}{hint} The names are {', '.join(_BASELINES)}")
    return _BASELINES[name].make(space, budget, seed, initial)
