"""Support vector regression on CT slices: choose features and hyperparameters for a small error.

Shapes: codes (n, 53) or (n, 388). Needs scikit-learn, the extra `benchmarks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.benchmarks.data import locate
from bounce.benchmarks.problem import Problem, Values, require
from bounce.benchmarks.slices import Table, read
from bounce.errors import DataError
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Binary, Real
from bounce.spaces.space import Space

BITS = 50
SCALES = 385


def _error(table: Table, features: NDArray[np.float64], **options: float) -> float:
    """Return the root mean squared error on the test rows, for features (rows, any number)."""
    from sklearn.svm import SVR

    half = len(table.y) // 2
    model = SVR(**options).fit(features[:half], table.y[:half])
    residuals = model.predict(features[half:]) - table.y[half:]
    return float(np.sqrt(np.mean(residuals**2)))


@dataclass(frozen=True, eq=False)
class Svm53(Problem):
    """The error with a subset of 50 features and three hyperparameters (Deshwal et al., 2023).

    The bits say which features are used; then come ε = 0.01·100^u, C = 0.01·10000^u and γ = 0.002·100^u for u in
    [0, 1]. Without features the value is 1. No optimum is known.
    """

    table: Table

    name = "svm53"

    @cached_property
    def space(self) -> Space:
        """The bits, then the reals."""
        bits = [Binary(f"x{i}") for i in range(BITS)]
        return Space([*bits, *(Real(f"x{BITS + i}", 0.0, 1.0) for i in range(3))])

    @cached_property
    def shifts(self) -> Codes:
        """Bits flipped by a fixed string."""
        return np.concatenate([np.random.RandomState(0).choice([0.0, 1.0], BITS), np.zeros(3)])

    def evaluate(self, codes: Codes) -> Values:
        """Return the errors, one fit after the other."""
        return np.array([self._value(row) for row in codes])

    def _value(self, row: Codes) -> float:
        selected = np.flatnonzero(row[:BITS])
        if selected.size == 0:
            return 1.0
        epsilon, C = 0.01 * 10 ** (2 * row[-3]), 0.01 * 10 ** (4 * row[-2])
        gamma = (1 / BITS) * 0.1 * 10 ** (2 * row[-1])
        return _error(self.table, self.table.X[:, selected], epsilon=epsilon, C=C, gamma=gamma)


@dataclass(frozen=True, eq=False)
class Svm388(Problem):
    """The error with a lengthscale per feature and three hyperparameters (Eriksson and Jankowiak, 2021).

    For u in [0, 1]: 385 lengthscales exp(4u − 2), then ε = 0.01·100^u, γ = 0.1·30^u and C = 0.01·500^u. No optimum
    is known.
    """

    table: Table

    name = "svm388"

    @cached_property
    def space(self) -> Space:
        """All variables are real."""
        return Space([Real(f"x{i}", 0.0, 1.0) for i in range(SCALES + 3)])

    def evaluate(self, codes: Codes) -> Values:
        """Return the errors, one fit after the other."""
        return np.array([self._value(row) for row in codes])

    def _value(self, row: Codes) -> float:
        features = self.table.X / np.exp(4.0 * row[:SCALES] - 2.0)
        epsilon, gamma, C = 0.01 * 100 ** row[-3], 0.1 * 30 ** row[-2], 0.01 * 500 ** row[-1]
        return _error(self.table, features, epsilon=epsilon, gamma=gamma, C=C, tol=0.001)


def svm53() -> Svm53:
    """Read the table of the 53-dimensional problem."""
    return Svm53(_table("svm53", "slice53", 53))


def svm388() -> Svm388:
    """Read the table of the 388-dimensional problem."""
    return Svm388(_table("svm388", "slice388", 388))


def _table(problem: str, file: str, dimension: int) -> Table:
    require("sklearn", "scikit-learn", problem)
    try:
        return read(locate(file), dimension)
    except ValueError as error:
        raise DataError(f"{error}: remove it and run `bounce data fetch {file}`") from error
