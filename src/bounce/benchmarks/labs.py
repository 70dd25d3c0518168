"""Low-autocorrelation binary sequences: find n signs whose shifted copies cancel (section 4.1 of the paper).

Shapes: codes (n, D) for n sequences of D signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bounce.benchmarks.problem import Problem, Values
from bounce.errors import InvalidInput
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Binary
from bounce.spaces.space import Space

# The least energy E of every length from 2 to 66 (Packebusch and Mertens, 2016, table 1; OEIS A102780).
LEAST_ENERGY = (
    *(1, 1, 2, 2, 7, 3, 8, 12, 13, 5, 10, 6, 19, 15, 24, 32, 25, 29, 26, 26, 39, 47, 36, 36, 45, 37, 50, 62),
    *(59, 67, 64, 64, 65, 73, 82, 86, 87, 99, 108, 108, 101, 109, 122, 118, 131, 135, 140, 136, 153, 153, 166),
    *(170, 175, 171, 192, 188, 197, 205, 218, 226, 235, 207, 208, 240, 257),
)


@dataclass(frozen=True)
class Labs(Problem):
    """The merit factor n²/(2E) of a sequence, negated: E sums the squared autocorrelations of all shifts.

    The optimum is known up to n = 66 by exhaustive search (Packebusch and Mertens, 2016); the best merit factor
    for n = 50 is 8.170.
    """

    n: int = 50

    def __post_init__(self) -> None:
        if self.n < 2:
            raise InvalidInput(f"a sequence needs at least 2 signs, not {self.n}")

    @property
    def name(self) -> str:
        """The word labs and the length."""
        return f"labs{self.n}"

    @cached_property
    def space(self) -> Space:
        """One binary variable per position of the sequence."""
        return Space([Binary(f"x{i}") for i in range(self.n)])

    @property
    def optimum(self) -> float | None:
        """The negated merit factor of the best sequence, None for more than 66 signs."""
        if self.n - 2 >= len(LEAST_ENERGY):
            return None
        return -(self.n**2) / (2.0 * LEAST_ENERGY[self.n - 2])

    @cached_property
    def shifts(self) -> Codes:
        """Signs flipped by fixed random signs."""
        return (np.random.RandomState(43).choice([-1, 1], size=self.n) < 0).astype(np.float64)

    def evaluate(self, codes: Codes) -> Values:
        """Return the negated merit factors; the autocorrelations are integers, so the FFT loses nothing."""
        length = 2 * self.n  # zeros behind the sequence keep its two ends apart
        spectrum = np.fft.rfft(2.0 * codes - 1.0, length)
        power = spectrum.real**2 + spectrum.imag**2
        C = np.rint(np.fft.irfft(power, length)[:, 1 : self.n])
        value: Values = -(self.n**2) / (2.0 * (C**2).sum(axis=1))
        return value
