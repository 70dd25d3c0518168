"""Problem: a function to minimise, with the space it is defined on.

Shapes: codes (n, D) for n points of D variables, values (n,).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidInput
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.trial import Scalar

Values = NDArray[np.float64]


class Problem(ABC):
    """A function to minimise. It never changes its arguments, and the same point always has the same value."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What `load` calls this problem."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """Where the function is defined."""

    @property
    def optimum(self) -> float | None:
        """The lowest known value; None if none is known."""
        return None

    @property
    def shifts(self) -> Codes | None:
        """What the published randomised version adds to each code, modulo the number of codes.

        Real variables have 0. None if no such version was published.
        """
        return None

    @abstractmethod
    def evaluate(self, codes: Codes) -> Values:
        """Return the values of points given as codes."""

    def __call__(self, point: Mapping[str, Scalar]) -> float:
        """Return the value of a point given as native values by name."""
        return float(self.evaluate(self.space.encode([point]))[0])


def require(module: str, package: str, problem: str) -> None:
    """Refuse a problem whose extra package is not installed, before its data are read."""
    if find_spec(module) is None:
        raise InvalidInput(f"{problem} needs {package}: pip install 'bounce-bo[benchmarks]'")
