"""Bounce: Bayesian optimization of expensive functions of many variables of any type.

>>> import bounce
>>> space = bounce.Space([bounce.Real("x", -1, 1), bounce.Binary("on")])
>>> result = bounce.minimize(lambda p: p["x"] ** 2 + p["on"], space, budget=20, seed=0)
>>> result.best.value
"""

import logging

from bounce.errors import (
    BounceError,
    EvaluationFailed,
    InvalidInput,
    InvalidOption,
    InvalidPoint,
    InvalidSpace,
    InvalidState,
    InvalidTell,
    NothingToAsk,
)
from bounce.optimizer import Bounce
from bounce.parameters import Binary, Categorical, Integer, Ordinal, Real
from bounce.run import Result, maximize, minimize
from bounce.space import Space
from bounce.state import Trial

__version__ = "0.1.0"

__all__ = [
    "Binary",
    "Bounce",
    "BounceError",
    "Categorical",
    "EvaluationFailed",
    "Integer",
    "InvalidInput",
    "InvalidOption",
    "InvalidPoint",
    "InvalidSpace",
    "InvalidState",
    "InvalidTell",
    "NothingToAsk",
    "Ordinal",
    "Real",
    "Result",
    "Space",
    "Trial",
    "maximize",
    "minimize",
]

logging.getLogger("bounce").addHandler(logging.NullHandler())
