"""Expressions: what a constraint says about a point.

A row means what Python would compute for it, with `and` and `or` from left to right: `x == 0 or 1 / x < 3` holds where
x is 0. Four rules are our own:
- A constraint that names an inactive parameter holds.
- Where a result is undefined or infinite (1 / 0, 10 ** 400, (-1) ** 0.5), the constraint does not hold.
- Numbers that are computed count as equal if they differ only by rounding: 0.1 + 0.2 == 0.3.
- Strings have no order: `size < 'large'` is an error, as it would compare by the alphabet.

Shapes: columns (n,) by name.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.spaces.cases import Case, Domains, cases
from bounce.spaces.grammar import (
    ORDERS,
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
from bounce.spaces.reader import Reader
from bounce.spaces.truth import SMALLEST_VIOLATION, UNDEFINED_VIOLATION, Array, Rows, column
from bounce.trial import Scalar

Truths = NDArray[np.bool_]
NONE = np.array(None, dtype=object)


@dataclass(frozen=True)
class Expression:
    """A statement about the values of parameters that is true or false for a point."""

    text: str
    names: frozenset[str]
    """The parameters that it names."""
    _root: Node = field(repr=False, compare=False)
    _texts: tuple[str, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, names: Iterable[str]) -> Expression:
        """Read an expression over parameters with these names; InvalidSpace names the place of a mistake."""
        found = cls._read(text, tuple(names))
        if not found.names:
            raise mistake(text, 0, "it names no parameter, so it says nothing about a point")
        return found

    @classmethod
    def _read(cls, text: str, names: tuple[str, ...]) -> Expression:
        reader = Reader(text, names)
        root, parts = reader.read()
        return cls(text=text, names=frozenset(reader.used), _root=root, _texts=parts)

    def __str__(self) -> str:
        return self.text

    @cached_property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that must all hold: those that `and` or a chain of comparisons joins, or this one alone."""
        if len(self._texts) < 2:
            return (self,)
        return tuple(part for text in self._texts for part in Expression._read(text, tuple(self.names)).parts)

    @cached_property
    def compared(self) -> dict[str, tuple[Scalar, ...]]:
        """The constants that a parameter is compared with by ==, != or in: a value that it never takes is a typo."""
        found: dict[str, list[Scalar]] = {}
        for node in walk(self._root):
            if isinstance(node, Member) and isinstance(node.item, Name):
                found.setdefault(node.item.name, []).extend(constant.value for constant in node.values)
            elif isinstance(node, Compare) and node.symbol in ("==", "!="):
                for a, b in ((node.left, node.right), (node.right, node.left)):
                    if isinstance(a, Name) and isinstance(b, Constant):
                        found.setdefault(a.name, []).append(b.value)
        return {name: tuple(values) for name, values in found.items()}

    @cached_property
    def stated(self) -> tuple[Name, ...]:
        """The parameters that stand for true or false themselves, as in `not dry`."""
        return tuple(_stated(self._root))

    def holds(self, columns: Mapping[str, Array], active: Mapping[str, Truths] | None = None) -> Truths:
        """Return where it holds, (n,).

        `active` says where each parameter is active. Without it, None in a column stands for an inactive parameter.
        """
        return self._evaluated(columns, active, graded=False)[0]

    def violation(
        self, columns: Mapping[str, Array], active: Mapping[str, Truths] | None = None
    ) -> NDArray[np.float64]:
        """Return by how much it fails, (n,): 0 exactly where it holds.

        A comparison of numbers fails by their difference, any other by 1; `and` adds, `or` takes the least.
        """
        return self._evaluated(columns, active, graded=True)[1]

    def _evaluated(
        self, columns: Mapping[str, Array], active: Mapping[str, Truths] | None, *, graded: bool
    ) -> tuple[Truths, NDArray[np.float64]]:
        missing = sorted(self.names - columns.keys())
        if missing:
            raise InvalidSpace(f"the constraint {self.text!r} needs a column for {missing}", key="constraints")
        arrays = {name: column(columns[name]) for name in sorted(self.names)}
        n = len(next(iter(columns.values())))
        if active is None:
            missed = [np.asarray(np.equal(a, NONE)).astype(bool) for a in arrays.values() if a.dtype == object]
        else:
            missed = [~np.asarray(active[name], dtype=bool) for name in arrays if name in active]
        applies = ~np.logical_or.reduce(missed) if missed else np.ones(n, dtype=bool)
        if not applies.all():
            arrays = {name: array[applies] for name, array in arrays.items()}
        rows = Rows(self.text, arrays, graded=graded)
        with np.errstate(all="ignore"):
            truth = rows.truth(self._root)
        m = int(applies.sum())
        error = np.broadcast_to(truth.error, (m,))
        if (error > 1).any():
            raise rows.sentences[int(error[error > 1][0]) - 2]
        held = np.ones(n, dtype=bool)
        held[applies] = np.broadcast_to(truth.value, (m,)) & (error == 0)
        lack = np.zeros(n)
        lack[applies] = np.broadcast_to(truth.lack, (m,))
        lack = np.where(np.isfinite(lack), lack, UNDEFINED_VIOLATION)
        return held, np.where(held, 0.0, np.maximum(lack, SMALLEST_VIOLATION))

    def forbidden(self, domains: Domains) -> list[Case] | None:
        """Return what it forbids: combinations of values, one of each name. A point must not have all of one.

        `domains` has the values of parameters with few of them. None if it relates parameters otherwise, or forbids too
        many combinations.
        """
        return cases(self._root, self.text, domains, wanted=False)

    def linear(self, binary: Container[str] = ()) -> tuple[dict[str, float], float] | None:
        """Return a and b if this is one linear inequality a·x <= b (< counts as <=), else None.

        `binary` are the parameters that are true or false, whose count is their sum.
        """
        found = self.planes(binary) if isinstance(self._root, Compare) and self._root.symbol in ORDERS else []
        return found[0] if len(found) == 1 else None

    @property
    def strict(self) -> bool:
        """Whether this is one comparison by < or >."""
        return isinstance(self._root, Compare) and self._root.symbol in ("<", ">")

    def planes(self, binary: Container[str] = ()) -> list[tuple[dict[str, float], float]]:
        """Return a and b of all linear inequalities a·x <= b that hold wherever this does (< counts as <=).

        An equation is two of them, and so is a bound on the absolute value of something linear. `binary` are the
        parameters that are true or false, whose count is their sum.
        """
        if len(self.parts) > 1:
            return [plane for part in self.parts for plane in part.planes(binary)]
        root = self._root
        if not isinstance(root, Compare) or root.symbol not in (*ORDERS, "=="):
            return []
        less, more = (root.left, root.right) if root.symbol in ("<", "<=", "==") else (root.right, root.left)
        absolute = isinstance(less, Call) and less.function == "abs" and root.symbol != "=="
        inner = less.items[0] if absolute and isinstance(less, Call) else less
        left, right = _linear(inner, binary), _linear(more, binary)
        if left is None or right is None:
            return []
        forms = [_added(left, right, -1.0)]
        if absolute:
            forms.append(_added({name: -slope for name, slope in left.items()}, right, -1.0))
        elif root.symbol == "==":
            forms.append(_added(right, left, -1.0))
        slopes = [{name: slope for name, slope in form.items() if name and slope} for form in forms]
        if not all(slopes) or not all(map(math.isfinite, forms[0].values())):
            return []
        return [(own, 0.0 - form.get("", 0.0)) for own, form in zip(slopes, forms, strict=True)]


def _stated(node: Node) -> Iterable[Name]:
    """Yield the names in a node that must be true or false."""
    if isinstance(node, Name):
        yield node
    elif isinstance(node, Negation):
        yield from _stated(node.item)
    elif isinstance(node, AllOf | AnyOf):
        for item in node.items:
            yield from _stated(item)
    else:
        counts = (part for part in walk(node) if isinstance(part, Call) and part.function == "count")
        for item in (item for call in counts for item in call.items):
            yield from _stated(item)


def _linear(node: Node, binary: Container[str]) -> dict[str, float] | None:
    """Return a node as slopes by name, with the constant under the empty name; None if it is not linear."""
    form: dict[str, float] | None = None
    if isinstance(node, Constant) and isinstance(node.value, int | float):
        form = {"": float(node.value)}
    elif isinstance(node, Name):
        form = {node.name: 1.0}
    elif isinstance(node, Negative):
        form = _scaled(_linear(node.item, binary), -1.0)
    elif isinstance(node, Sum):
        form = _totalled(node.terms, node.signs, binary)
    elif isinstance(node, Call) and (node.function == "sum" or _counts(node, binary)):
        form = _totalled(node.items, (1,) * len(node.items), binary)
    elif isinstance(node, Arithmetic):
        form = _product(node, binary)
    return form


def _counts(node: Call, binary: Container[str]) -> bool:
    """Return whether a node counts parameters that are true or false."""
    return node.function == "count" and all(isinstance(item, Name) and item.name in binary for item in node.items)


def _totalled(items: tuple[Node, ...], signs: tuple[int, ...], binary: Container[str]) -> dict[str, float] | None:
    total: dict[str, float] = {}
    for item, sign in zip(items, signs, strict=True):
        form = _linear(item, binary)
        if form is None:
            return None
        total = _added(total, form, float(sign))
    return total


def _product(node: Arithmetic, binary: Container[str]) -> dict[str, float] | None:
    """Return a product with a constant, or a quotient by one."""
    left, right = _linear(node.left, binary), _linear(node.right, binary)
    if left is None or right is None:
        return None
    if node.operator == "divide":
        return _scaled(left, 1.0 / right[""]) if right.keys() == {""} and right[""] else None
    if node.operator == "multiply" and right.keys() == {""}:
        return _scaled(left, right[""])
    return _scaled(right, left[""]) if node.operator == "multiply" and left.keys() == {""} else None


def _scaled(form: dict[str, float] | None, factor: float) -> dict[str, float] | None:
    return None if form is None else {name: slope * factor for name, slope in form.items()}


def _added(a: dict[str, float], b: dict[str, float], factor: float) -> dict[str, float]:
    return a | {name: a.get(name, 0.0) + factor * slope for name, slope in b.items()}
