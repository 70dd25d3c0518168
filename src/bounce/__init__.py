"""Bounce: Bayesian optimization of expensive functions of many variables of any type.

>>> import bounce
>>> space = bounce.Space([bounce.Real("x", -1, 1), bounce.Binary("on")])
>>> result = bounce.minimize(lambda p: p["x"] ** 2 + p["on"], space, budget=20, seed=0)
>>> result.best.value
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bounce.errors import (
        BounceError,
        DataError,
        EvaluationFailed,
        ExecutorFailed,
        InvalidInput,
        InvalidOption,
        InvalidPoint,
        InvalidSpace,
        InvalidSpec,
        InvalidState,
        InvalidStudy,
        InvalidTell,
        NothingToAsk,
        StorageFailed,
        StudyLocked,
    )
    from bounce.optimizer import Bounce
    from bounce.parameters import Binary, Categorical, Integer, Ordinal, Real
    from bounce.result import Result
    from bounce.run import maximize, minimize
    from bounce.space import Space
    from bounce.state import Trial
    from bounce.study import Command, Study

__version__ = "0.1.0"

__all__ = [
    "Binary",
    "Bounce",
    "BounceError",
    "Categorical",
    "Command",
    "DataError",
    "EvaluationFailed",
    "ExecutorFailed",
    "Integer",
    "InvalidInput",
    "InvalidOption",
    "InvalidPoint",
    "InvalidSpace",
    "InvalidSpec",
    "InvalidState",
    "InvalidStudy",
    "InvalidTell",
    "NothingToAsk",
    "Ordinal",
    "Real",
    "Result",
    "Space",
    "StorageFailed",
    "Study",
    "StudyLocked",
    "Trial",
    "maximize",
    "minimize",
]

_MODULES = ("errors", "parameters", "space", "state", "optimizer", "result", "study", "run")


def __getattr__(name: str) -> Any:
    """Import what is used, when it is used: the command line answers before numpy and scipy are loaded."""
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"bounce.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'bounce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


logging.getLogger("bounce").addHandler(logging.NullHandler())
