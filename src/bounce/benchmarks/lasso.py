"""The weighted Lasso: choose a penalty per feature for a small error (LassoBench, Šehić et al., 2022).

Shapes: codes (n, p) for p features, X (rows, p), y (rows,). Needs celer and scikit-learn, the extra `benchmarks`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bounce.benchmarks.data import locate
from bounce.benchmarks.problem import Problem, Values, require
from bounce.errors import DataError
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Real
from bounce.spaces.space import Space

FOLDS, SEED, TEST = 5, 42, 0.15


@dataclass(frozen=True, eq=False)
class Lasso(Problem):
    """The mean squared error over five folds, in units of a given error.

    A variable of 1 is the smallest penalty that alone makes all weights zero. A variable of −1 is smaller by a
    factor; the scale in between is logarithmic. No optimum is known.
    """

    title: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    factor: float
    unit: float

    @property
    def name(self) -> str:
        """The title."""
        return self.title

    @cached_property
    def space(self) -> Space:
        """One real variable per feature."""
        return Space([Real(f"x{i}", -1.0, 1.0) for i in range(self.X.shape[1])])

    def evaluate(self, codes: Codes) -> Values:
        """Return the errors, one cross-validation after the other."""
        largest = np.abs(self.X.T @ self.y).max() / len(self.y)
        penalties = np.exp(np.log(largest) - (1.0 - codes) * np.log(self.factor))
        return np.array([self._error(row) for row in penalties]) / self.unit

    def _error(self, penalties: NDArray[np.float64]) -> float:
        from celer import Lasso as Model
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import KFold

        errors = []
        for train, test in KFold(FOLDS, shuffle=True, random_state=SEED).split(self.X):
            # Without pruning: the published values are reproduced to 1e-3, with it to 1.3e-3.
            model = Model(alpha=1.0, weights=penalties, fit_intercept=False, max_iter=100, tol=1e-4, prune=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations are part of the problem
                model.fit(self.X[train], self.y[train])
            errors.append(np.mean((self.X[test] @ model.coef_ - self.y[test]) ** 2))
        return float(np.mean(errors))


def lasso_dna() -> Lasso:
    """Read the DNA data of 180 features; the classes 1, 2, 3 are the targets."""
    require("celer", "celer", "lasso-dna")
    from sklearn.model_selection import train_test_split

    X, _, y, _ = train_test_split(*_read(locate("dna")), test_size=TEST, random_state=SEED)
    return Lasso("lasso-dna", X, y, factor=1e5, unit=1.0)


def lasso_hard() -> Lasso:
    """Make correlated data of 1000 features, of which every 20th has a weight: 1, −1, 1 and so on.

    The unit is the error of these weights on the training rows.
    """
    require("celer", "celer", "lasso-hard")
    from celer.datasets import make_correlated_data
    from sklearn.model_selection import train_test_split

    truth = np.zeros(1000)
    truth[::20] = (-1.0) ** np.arange(50)
    X, y, _ = make_correlated_data(500, 1000, corr=0.6, snr=10, w_true=truth, random_state=SEED)
    X, _, y, _ = train_test_split(X, y, test_size=TEST, random_state=SEED)
    return Lasso("lasso-hard", X, y, factor=1e2, unit=float(np.mean((X @ truth - y) ** 2)))


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read the rows of a file of LIBSVM: a target, then pairs of a feature's number and its value."""
    X, y = np.zeros((2000, 180)), np.zeros(2000)
    try:
        for i, line in enumerate(path.read_text(encoding="ascii").splitlines()):
            target, *pairs = line.split()
            y[i] = float(target)
            for feature, value in (pair.split(":") for pair in pairs):
                X[i, int(feature) - 1] = float(value)
    except (ValueError, IndexError) as error:
        raise DataError(f"{path} is not the file dna.scale of LIBSVM: {error}") from error
    return X, y
