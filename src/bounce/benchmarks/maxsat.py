"""Weighted MaxSAT: find the truth values that satisfy clauses of the largest total weight.

A point is packed into words of 64 bits. A clause is broken exactly if every positive literal's bit is 0 and every
negative literal's bit is 1, that is if (x & mask) == broken: one pass over all clauses per word.

Shapes: codes (n, D); masks and broken (W, m) for m clauses and W words.
"""

from __future__ import annotations

import gzip
import lzma
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from bounce.benchmarks.data import locate
from bounce.benchmarks.problem import Problem, Values
from bounce.errors import DataError
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Binary
from bounce.spaces.space import Space

WORD = 64
BEST_125 = 118261114081858.0  # least known weight of the broken clauses (MaxSAT evaluation 2018)


@dataclass(frozen=True, eq=False)
class Formula:
    """Clauses with weights over a number of variables."""

    variables: int
    masks: NDArray[np.uint64]
    broken: NDArray[np.uint64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, variables: int, clauses: Iterable[tuple[float, list[int]]]) -> Formula:
        """Build a formula from weights and literals, counted from 1, negative if negated."""
        rows, weights = [], []
        for weight, literals in clauses:
            positive = sum(1 << (v - 1) for v in {v for v in literals if v > 0})
            negative = sum(1 << (-v - 1) for v in {v for v in literals if v < 0})
            never = 1 << variables if positive & negative else 0  # a bit that no point has: x or not x holds
            rows.append((positive | negative, negative | never))
            weights.append(weight)
        words = variables // WORD + 1
        table = np.array([[_words(number, words) for number in row] for row in rows], dtype=np.uint64)
        masks, broken = np.ascontiguousarray(table.reshape(len(rows), 2, words).transpose(1, 2, 0))
        return cls(variables, masks, broken, np.array(weights, dtype=np.float64))

    def normalized(self) -> Formula:
        """Give the weights mean zero and standard deviation one."""
        return replace(self, weights=(self.weights - self.weights.mean()) / self.weights.std())

    @cached_property
    def total(self) -> tuple[float, float]:
        """The sum of all weights: the nearest float, and the remainder."""
        nearest = math.fsum(self.weights)
        return nearest, math.fsum([*self.weights, -nearest])

    def satisfied(self, codes: Codes) -> Values:
        """Return the weight of the satisfied clauses, rounded once from its exact value."""
        words = len(self.masks)
        bits = np.zeros((len(codes), words * WORD), dtype=np.uint8)
        bits[:, : self.variables] = codes
        packed = np.packbits(bits, axis=1, bitorder="little").view("<u8")
        values = np.empty(len(codes))
        for i, x in enumerate(packed):
            hit = (x[0] & self.masks[0]) == self.broken[0]
            for w in range(1, words):
                hit &= (x[w] & self.masks[w]) == self.broken[w]
            values[i] = math.fsum((*self.total, *(-self.weights[np.flatnonzero(hit)]).tolist()))
        return values


def _words(number: int, words: int) -> list[int]:
    return [(number >> (WORD * w)) & (2**WORD - 1) for w in range(words)]


def read(path: Path) -> Formula:
    """Read a formula from a wcnf file, which may be compressed with gzip or xz.

    Hard clauses count with the weight that the file gives them, as in the published code.
    """
    openers: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open}
    try:
        with openers.get(path.suffix, open)(path, "rt", encoding="ascii") as lines:
            return _parse(lines)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise DataError(f"{path} is not a weighted formula in the wcnf format: {error}") from error


def _parse(lines: Iterable[str]) -> Formula:
    header: tuple[int, int] | None = None
    clauses: list[tuple[float, list[int]]] = []
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "p":
            if words[1:2] != ["wcnf"] or len(words) < 4:
                raise ValueError(f"line {number} should be 'p wcnf VARIABLES CLAUSES [TOP]', not {line.strip()!r}")
            header = int(words[2]), int(words[3])
            continue
        if header is None:
            raise ValueError(f"line {number} comes before the line 'p wcnf'")
        weight, *literals, end = map(int, words)
        if end != 0 or weight < 0 or any(not 1 <= abs(v) <= header[0] for v in literals):
            raise ValueError(f"line {number} should be a weight, literals and 0, not {line.strip()!r}")
        clauses.append((float(weight), literals))
    if header is None or len(clauses) != header[1]:
        raise ValueError(f"the header is {header}, but there are {len(clauses)} clauses")
    return Formula.of(header[0], clauses)


@dataclass(frozen=True, eq=False)
class MaxSat(Problem):
    """The negated weight of the satisfied clauses of a formula."""

    title: str
    formula: Formula
    least: float | None
    """The weight of the broken clauses in the best known assignment."""

    @property
    def name(self) -> str:
        """The title."""
        return self.title

    @cached_property
    def space(self) -> Space:
        """One binary variable per variable of the formula."""
        return Space([Binary(f"x{i}") for i in range(self.formula.variables)])

    @property
    def optimum(self) -> float | None:
        """The value of the best known assignment."""
        return None if self.least is None else -math.fsum((*self.formula.total, -self.least))

    @cached_property
    def shifts(self) -> Codes:
        """Bits flipped by a fixed string."""
        return np.random.RandomState(43).choice([False, True], size=self.formula.variables).astype(np.float64)

    def evaluate(self, codes: Codes) -> Values:
        """Return the negated weights."""
        return -self.formula.satisfied(codes)


def maxsat60() -> MaxSat:
    """Read frb10-6-4 of the MaxSAT evaluation, weights normalised; the all-zero assignment is optimal.

    It breaks the 60 unit clauses, whose normalised weights are negative, and no other (notes, facts).
    """
    formula = read(locate("frb10-6-4")).normalized()
    return MaxSat("maxsat60", formula, math.fsum(formula.weights[formula.weights < 0]))


def maxsat125() -> MaxSat:
    """Read the paper's cluster-expansion instance; the best known cost is from the MaxSAT evaluation 2018."""
    path = locate("cluster125")
    formula = read(path)
    if formula.variables != 125 or formula.total[0] < BEST_125:
        raise DataError(
            f"{path} is not the 125-variable instance: it has {formula.variables} variables "
            f"and a total weight of {formula.total[0]:.0f}"
        )
    return MaxSat("maxsat125", formula, BEST_125)


def cluster60() -> MaxSat:
    """Read another cluster-expansion instance, of 60 variables; no best value is published."""
    return MaxSat("cluster60", read(locate("cluster60")), None)
