"""Bounce: Bayesian optimization of expensive functions of many inputs of any type.

>>> import bounce
>>> space = bounce.Space([bounce.Real("x", -1, 1), bounce.Binary("on")])
>>> result = bounce.minimize(lambda p: p["x"] ** 2 + p["on"], space, budget=20, seed=0)
>>> result.best.value
"""

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
        MachineFailed,
        NothingToAsk,
        StorageFailed,
        StudyLocked,
    )
    from bounce.method import Method
    from bounce.optimizer.bounce import Bounce
    from bounce.optimizer.importance import Importance
    from bounce.running.command import Command
    from bounce.spaces.parameters import (
        Binary,
        Categorical,
        Integer,
        Mixture,
        Ordinal,
        Permutation,
        Real,
        Subset,
    )
    from bounce.spaces.space import Space
    from bounce.study.minimize import maximize, minimize
    from bounce.study.status import Status
    from bounce.study.study import Study
    from bounce.trial import Recommendation, Result, Trial

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
    "Importance",
    "Integer",
    "InvalidInput",
    "InvalidOption",
    "InvalidPoint",
    "InvalidSpace",
    "InvalidSpec",
    "InvalidState",
    "InvalidStudy",
    "InvalidTell",
    "MachineFailed",
    "Method",
    "Mixture",
    "NothingToAsk",
    "Ordinal",
    "Permutation",
    "Real",
    "Recommendation",
    "Result",
    "Space",
    "Status",
    "StorageFailed",
    "Study",
    "StudyLocked",
    "Subset",
    "Trial",
    "maximize",
    "minimize",
]

_MODULES = (
    "errors",
    "trial",
    "method",
    "spaces.parameters",
    "spaces.space",
    "running.command",
    "optimizer.bounce",
    "optimizer.importance",
    "study.status",
    "study.study",
    "study.minimize",
)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a worker, and the command line's help, need neither numpy nor scipy."""
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"bounce.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'bounce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
