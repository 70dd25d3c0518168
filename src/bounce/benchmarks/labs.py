"""Low-autocorrelation binary sequences: find n signs whose shifted copies cancel (section 4.1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.parameters import Binary, Scalar
from bounce.space import Space


@dataclass(frozen=True)
class Labs:
    """The merit factor n²/(2E) of a sequence, negated: E sums the squared autocorrelations of all shifts.

    The best known merit factor for n = 50 is 8.170 (Packebusch and Mertens, 2016).
    """

    n: int = 50

    @cached_property
    def space(self) -> Space:
        """One binary variable per place of the sequence."""
        return Space([Binary(f"x{i}") for i in range(self.n)])

    def __call__(self, point: Mapping[str, Scalar]) -> float:
        """Return the negated merit factor of a point."""
        signs = np.array([1.0 if point[f"x{i}"] else -1.0 for i in range(self.n)])
        autocorrelations = np.correlate(signs, signs, "full")[self.n :]
        return -(self.n**2) / (2.0 * float(autocorrelations @ autocorrelations))
