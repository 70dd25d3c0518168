"""The problems of the paper, one file each.

>>> from bounce import benchmarks
>>> problem = benchmarks.load("labs50", randomized=True)
>>> problem({f"x{i}": True for i in range(50)})
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from bounce.benchmarks.ackley import Ackley53
from bounce.benchmarks.branin import Branin
from bounce.benchmarks.contamination import Contamination25
from bounce.benchmarks.hartmann import Hartmann6
from bounce.benchmarks.labs import Labs
from bounce.benchmarks.lasso import lasso_dna, lasso_hard
from bounce.benchmarks.maxsat import cluster60, maxsat60, maxsat125
from bounce.benchmarks.mopta import mopta08
from bounce.benchmarks.pest import Pest25
from bounce.benchmarks.problem import Problem
from bounce.benchmarks.svm import svm53, svm388
from bounce.benchmarks.wrappers import Noisy, Padded, Randomized
from bounce.errors import DataError, InvalidInput

__all__ = ["DataError", "Labs", "Noisy", "Padded", "Problem", "Randomized", "load", "names"]

_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "labs50": lambda: Labs(50),
    "maxsat60": maxsat60,
    "maxsat125": maxsat125,
    "cluster60": cluster60,
    "pest25": Pest25,
    "contamination25": Contamination25,
    "ackley53": Ackley53,
    "svm53": svm53,
    "svm388": svm388,
    "lasso-dna": lasso_dna,
    "lasso-hard": lasso_hard,
    "mopta08": mopta08,
    "branin500": lambda: Padded(Branin(), 500, title="branin500"),
    "hartmann500": lambda: Padded(Hartmann6(), 500, title="hartmann500"),
}


def names() -> list[str]:
    """Return the names that `load` accepts; it also accepts `labs` with any other length."""
    return list(_PROBLEMS)


def load(name: str, randomized: bool = False) -> Problem:
    """Return a problem by its name, in its published randomised version if asked for.

    Problems with data read it here, from the files that `bounce data fetch` downloads.
    """
    if not isinstance(name, str) or not isinstance(randomized, bool):
        raise InvalidInput(f"name must be a string and randomized a boolean, not {name!r} and {randomized!r}")
    length = re.fullmatch(r"labs([1-9][0-9]{0,5})", name)
    if length is None and name not in _PROBLEMS:
        near = get_close_matches(name.lower(), names(), n=1)
        hint = f"; did you mean {near[0]!r}? The" if near else "; the"
        known = ", ".join(names())
        raise InvalidInput(f"there is no problem {name!r}{hint} names are {known}, and labs with any other length")
    problem = Labs(int(length[1])) if length else _PROBLEMS[name]()
    return Randomized(problem) if randomized else problem
