"""Tables of the SVM problems, computed from the CT slices of the UCI repository.

The raw file has 53,500 rows of a patient's number, 384 histogram features and the slice's position in the body. The
tables equal the published ones bit for bit; a digest of their numbers checks this.

Shapes: X (rows, features), y (rows,).
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROWS = 53_500
# The 50 most important features, the most important first (XGBoost 1.7.6, max_depth 8, on the rows of `table53`).
FEATURES = (
    *(
        19,
        379,
        315,
        208,
        270,
        228,
        274,
        371,
        292,
        128,
        29,
        115,
        111,
        5,
        238,
        323,
        177,
        119,
        365,
        227,
        136,
        154,
        259,
    ),
    *(46, 277, 174, 64, 107, 11, 231, 325, 4, 137, 117, 253, 129, 155, 222, 215, 105, 204, 176, 333, 216, 48, 301),
    *(242, 10, 84, 9),
)
# Mean and standard deviation of y as in the published table: their last digits depend on the order of summation.
MEAN, SD = 47.02803928188785, 22.346833008059892
DIGESTS = {
    53: "07f18e09369b222d46b3f2ee4cd0f146b3769652341655587172efead919538b",
    388: "23560fd43c6be52043c921bf28cd8a6c7c5750000fbc1e645065d8d89888e054",
}


@dataclass(frozen=True, eq=False)
class Table:
    """Features and targets; the first half of the rows is for training, the rest for testing."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]

    @property
    def digest(self) -> str:
        """The sha256 of all numbers."""
        return hashlib.sha256(np.ascontiguousarray(self.X).tobytes() + self.y.tobytes()).hexdigest()


def read(path: Path, problem: int) -> Table:
    """Read the table of the 53- or the 388-dimensional problem, and check every bit of it."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            table = Table(np.ascontiguousarray(arrays["X"]), arrays["y"])
        if table.digest == DIGESTS[problem]:
            return table
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        pass
    raise ValueError(f"{path} is not the table of the {problem}-dimensional SVM problem")


def sound(path: Path, problem: int) -> bool:
    """Return whether a file is the table of a problem."""
    try:
        read(path, problem)
    except ValueError:
        return False
    return True


def make(raw: Path, problem: int) -> bytes:
    """Compute the table of the 53- or the 388-dimensional problem from the raw file; return it as an npz file."""
    data = np.loadtxt(raw, delimiter=",", skiprows=1)
    if data.shape != (ROWS, 386):
        raise ValueError(f"{raw} should have {ROWS} rows of 386 numbers, not {data.shape}")
    table = (_table53 if problem == 53 else _table388)(data)
    if table.digest != DIGESTS[problem]:
        raise ValueError(f"{raw} does not give the table of the {problem}-dimensional SVM problem")
    content = io.BytesIO()
    np.savez_compressed(content, X=table.X, y=table.y)
    return content.getvalue()


def _table53(data: NDArray[np.float64]) -> Table:
    """Scale the 50 features to [−1, 1], standardise y, keep 10,000 rows (Deshwal et al., 2023, public code)."""
    rows = np.random.RandomState(0).permutation(ROWS)[:10_000]
    X = data[:, FEATURES]
    X = X - X.min(axis=0)
    X = 2.0 * (X / X.max(axis=0)) - 1.0
    return Table(np.ascontiguousarray(X[rows]), (data[rows, -1] - MEAN) / SD)


def _table388(data: NDArray[np.float64]) -> Table:
    """Scale everything to [0, 1], keep 500 rows (Eriksson and Jankowiak, 2021)."""
    rows = np.random.RandomState(388).choice(ROWS, 500, replace=False)
    low, span = data.min(axis=0), np.ptp(data, axis=0)
    scale = 1.0 / np.where(span > 0.0, span, 1.0)
    scaled = data * scale + (0.0 - low * scale)
    return Table(np.ascontiguousarray(scaled[rows, :-1]), scaled[rows, -1])
