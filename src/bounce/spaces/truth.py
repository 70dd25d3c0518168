"""Truth: where an expression holds on rows, and by how much it fails.

Shapes: an array is (n,) or () (a constant), of floats, or of objects if it holds strings or None. An error is a number
per row: 0 none, 1 undefined, from 2 on the place of its sentence in a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.spaces.grammar import (
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Compare,
    Constant,
    Member,
    Name,
    Negation,
    Negative,
    Node,
    Sum,
    mistake,
    walk,
)

SMALLEST_VIOLATION = 1e-9  # where `a < b` fails by nothing, as a equals b
UNDEFINED_VIOLATION = 1e6  # where there is no way to tell by how much
NEARLY = 1e-6  # numbers that differ by a larger share do not differ by rounding
ORDERS: dict[str, np.ufunc] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


Array = NDArray[Any]
ZERO = np.zeros(())
ONE = np.ones(())
NO_ERROR = np.zeros((), dtype=int)


@dataclass(frozen=True)
class Truth:
    """True or false per row, its error, and by how much it misses being true (`lack`) and being false (`excess`)."""

    value: Array
    error: Array
    lack: Array
    excess: Array

    @classmethod
    def of(cls, value: Array, error: Array, gap: Array | None, excess: Array | None = None) -> Truth:
        """Return a truth that misses being true by `gap`, and being false by `excess` or also by `gap`.

        Without a gap, nobody asks by how much.
        """
        if gap is None:
            return cls(value, error, ZERO, ZERO)
        gap, broken = np.clip(gap, SMALLEST_VIOLATION, 1e300), error != 0
        return cls(
            value,
            error,
            lack=np.where(broken, np.inf, np.where(value, 0.0, gap)),
            excess=np.where(broken, np.inf, np.where(value, gap if excess is None else excess, 0.0)),
        )

    @property
    def inverse(self) -> Truth:
        """True where this is false."""
        return Truth(~self.value, self.error, self.excess, self.lack)

    def and_(self, other: Truth) -> Truth:
        """Return where both are true. Python stops at the first that is false, and so do errors."""
        return Truth(
            self.value & other.value,
            _first(self.error, other.error if other.error is NO_ERROR else np.where(self.value, other.error, 0)),
            self.lack + other.lack,
            np.minimum(self.excess, other.excess),
        )

    def or_(self, other: Truth) -> Truth:
        """Return where one of both is true."""
        return self.inverse.and_(other.inverse).inverse


_is_text = np.frompyfunc(lambda value: isinstance(value, str), 1, 1)
_is_number = np.frompyfunc(lambda value: isinstance(value, int | float), 1, 1)


class Rows:
    """The evaluation of a tree on rows."""

    def __init__(self, text: str, columns: dict[str, Array], *, graded: bool) -> None:
        self.text = text
        self.graded = graded
        self.columns = columns
        self.sentences: list[InvalidSpace] = []

    def truth(self, node: Node) -> Truth:
        """Return where a node is true."""
        if isinstance(node, AllOf):
            return reduce(Truth.and_, map(self.truth, node.items))
        if isinstance(node, AnyOf):
            return reduce(Truth.or_, map(self.truth, node.items))
        if isinstance(node, Negation):
            return self.truth(node.item).inverse
        if isinstance(node, Compare):
            return self._order(node) if node.symbol in ORDERS else self._equality(node)
        if isinstance(node, Member):
            pairs = (Compare(node.at, "==", node.item, value) for value in node.values)
            return reduce(Truth.or_, map(self._equality, pairs))
        value, error = self.value(node)
        if value.dtype == object:  # None is false, as in Python
            strings = np.asarray(_is_text(value)).astype(bool)
            error = _first(error, self._complaint(strings, value, node.at, "is a string: compare it with =="))
            value = np.where(strings, 0.0, np.asarray(value, dtype=bool))
        return Truth.of(value != 0, error, ONE if self.graded else None)

    def _order(self, node: Compare) -> Truth:
        a, wrong_a = self.number(node.left, f"{node.symbol} compares numbers")
        b, wrong_b = self.number(node.right, f"{node.symbol} compares numbers")
        b = self._tied(node, a, b)
        gap = np.abs(a - b) if self.graded else None
        return Truth.of(ORDERS[node.symbol](a, b), _first(wrong_a, wrong_b), gap)

    def _equality(self, node: Compare) -> Truth:
        (a, wrong_a), (b, wrong_b) = self.value(node.left), self.value(node.right)
        if object not in (a.dtype, b.dtype):
            b = self._tied(node, a, b)
        equal = np.asarray(np.equal(a, b)).astype(bool)
        gap = None if not self.graded else ONE if object in (a.dtype, b.dtype) else np.abs(a - b)
        truth = Truth.of(equal, _first(wrong_a, wrong_b), gap, ONE)
        return truth if node.symbol == "==" else truth.inverse

    def _tied(self, node: Compare, a: Array, b: Array) -> Array:
        """Return b, but a where a number is computed and both differ only by rounding: 0.1 + 0.2 is 0.3."""
        computed = [part for part in (node.left, node.right) if isinstance(part, Sum | Negative | Arithmetic | Call)]
        if not computed:
            return b
        gap = np.abs(a - b)
        near = (gap > 0) & (gap <= NEARLY * (1.0 + np.maximum(np.abs(a), np.abs(b))))
        if not near.any():
            return b
        operations = sum(1 for part in (node.left, node.right) for _ in walk(part))
        rounding = operations * np.finfo(float).eps * (self._size(node.left) + self._size(node.right))
        return np.where(near & (gap <= rounding), a, b)

    def _size(self, node: Node) -> Array:
        """Return how large the numbers are that a number is computed from: it is exact to a part of that."""
        if isinstance(node, Negative):
            return self._size(node.item)
        if isinstance(node, Sum) or (isinstance(node, Call) and node.function != "count"):
            return reduce(np.add, map(self._size, node.terms if isinstance(node, Sum) else node.items))
        if isinstance(node, Arithmetic) and node.operator == "multiply":
            return np.asarray(self._size(node.left) * self._size(node.right))
        if isinstance(node, Arithmetic) and node.operator == "divide":
            return np.asarray(self._size(node.left) / np.abs(self.value(node.right)[0]))
        value, _ = self.value(node)
        return np.zeros(value.shape) if value.dtype == object else np.abs(value)

    def value(self, node: Node) -> tuple[Array, Array]:
        """Return what a node is, as floats or objects, and its error."""
        if isinstance(node, Name):
            return self.columns[node.name], NO_ERROR
        if isinstance(node, Constant):
            is_number = isinstance(node.value, int | float)
            return np.array(node.value, dtype=float if is_number else object), NO_ERROR
        if isinstance(node, Compare | Member | Negation | AllOf | AnyOf):
            truth = self.truth(node)
            return truth.value.astype(float), truth.error
        return self._finite(*self._computed(node))

    def number(self, node: Node, reason: str) -> tuple[Array, Array]:
        """Return what a node is, as floats, with an error where it is none."""
        value, error = self.value(node)
        if value.dtype != object:
            return value, error
        numeric = np.asarray(_is_number(value)).astype(bool)
        complaint = self._complaint(~numeric, value, node.at, f"is not a number, and {reason}")
        return np.where(numeric, value, 0.0).astype(float), _first(error, complaint)

    def _computed(self, node: Node) -> tuple[Array, Array]:
        if isinstance(node, Sum):
            total, error = self.number(node.terms[0], "+ and - take numbers")
            for term, sign in zip(node.terms[1:], node.signs[1:], strict=True):
                value, wrong = self.number(term, "+ and - take numbers")
                total, error = total + value if sign > 0 else total - value, _first(error, wrong)
            return total, error
        if isinstance(node, Negative):
            value, error = self.number(node.item, "- takes a number")
            return -value, error
        if isinstance(node, Arithmetic):
            a, wrong_a = self.number(node.left, "arithmetic takes numbers")
            b, wrong_b = self.number(node.right, "arithmetic takes numbers")
            return getattr(np, node.operator)(a, b), _first(wrong_a, wrong_b)
        assert isinstance(node, Call)
        if node.function == "count":
            graded, self.graded = self.graded, False
            truths = [self.truth(item) for item in node.items]
            self.graded = graded
            counted: Array = reduce(np.add, (truth.value.astype(float) for truth in truths))
            return counted, reduce(_first, (truth.error for truth in truths))
        found = [self.number(item, f"{node.function} takes numbers") for item in node.items]
        error = reduce(_first, (wrong for _, wrong in found))
        values = [value for value, _ in found]
        if node.function == "abs":
            return np.abs(values[0]), error
        return reduce({"sum": np.add, "min": np.minimum, "max": np.maximum}[node.function], values), error

    @staticmethod
    def _finite(value: Array, error: Array) -> tuple[Array, Array]:
        """Mark what is undefined or infinite as an error of its row."""
        value = np.asarray(value)
        finite = np.isfinite(value)
        if finite.all():
            return value, error
        return np.where(finite, value, 0.0), _first(error, np.where(finite, 0, 1))

    def _complaint(self, bad: Array, values: Array, at: int, what: str) -> Array:
        """Return the error of the rows with a value that does not fit."""
        if not bad.any():
            return NO_ERROR
        given = np.broadcast_to(values, bad.shape)[bad].ravel()[0]
        self.sentences.append(mistake(self.text, at, f"{given!r} {what}"))
        return np.where(bad, len(self.sentences) + 1, 0)


def column(given: Any) -> Array:
    """Return values as floats, or as objects if they may be strings or None."""
    array = np.asarray(given)
    return array.astype(np.float64, copy=False) if array.dtype.kind in "fiub" else array.astype(object, copy=False)


def _first(a: Array, b: Array) -> Array:
    """Return the first error of two."""
    if a is NO_ERROR or b is NO_ERROR:
        return b if a is NO_ERROR else a
    return np.where(a, a, b)
