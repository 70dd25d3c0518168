"""Reader: the text of an expression becomes a tree.

Python's `ast` parses the text; the reader turns what is allowed into nodes and names the place of anything else.
Nothing of it is ever executed. The length and the depth of a text are limited, so that reading it is quick.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
import warnings
from collections.abc import Callable
from typing import TypeGuard

from bounce.errors import InvalidSpace
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
)
from bounce.spaces.source import Source

LONGEST = 20_000  # characters of one expression: a sum of a thousand parameters has fewer
DEEPEST = 60  # levels of nesting; a chain of + and − is one level

ALLOWED = (
    "names of parameters, numbers, strings, True, False, None, comparisons, + - * / // % **, and, or, not, "
    "in and not in with a list of constants, and the functions min, max, abs, sum and count"
)
SLIPS = {"&&": "'and'", "||": "'or'", "=<": "<=", "=>": ">=", "<>": "!=", "!": "'not'", "=": "=="}  # of other languages
FUNCTIONS = ("min", "max", "abs", "sum", "count")
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
}
SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
FORBIDDEN: dict[type[ast.expr], str] = {
    ast.Attribute: "an attribute",
    ast.Subscript: "an index",
    ast.List: "a list outside of 'in'",
    ast.Tuple: "a tuple outside of 'in'",
    ast.IfExp: "'if'",
    ast.Lambda: "a function",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "':='",
}


class Reader:
    """One text on its way to a tree. `used` collects the parameters that it names."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        if not isinstance(text, str):
            raise InvalidSpace(
                f"a constraint must be a string such as '2 * a + b <= 10', not {text!r}", key="constraints"
            )
        if not text.strip():
            raise InvalidSpace(
                "a constraint must be an expression such as '2 * a + b <= 10', not empty", key="constraints"
            )
        if len(text) > LONGEST:
            raise InvalidSpace(
                f"a constraint must have at most {LONGEST:,} characters, not {len(text):,}: {text[:40]!r}...",
                key="constraints",
            )
        self.names = names
        self.known = {unicodedata.normalize("NFKC", name): name for name in reversed(names)}
        self.used: set[str] = set()
        self.source = Source(text, names)

    def read(self) -> tuple[Node, tuple[str, ...]]:
        """Return the tree, and the texts of the expressions that must all hold."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of odd backslashes in strings
                tree = ast.parse(self.source.code, mode="eval").body
        except SyntaxError as error:
            inside = error.lineno == 1 and error.offset
            at = (
                self.source.place(0, error.offset - 1, characters=True)
                if inside and error.offset
                else len(self.source.text.rstrip())
            )
            self.source.check_bare(at)
            near = [self.source.text[max(at + 1 - len(sign), 0) : at + len(sign)] for sign in SLIPS]
            slip = next((word for text, (sign, word) in zip(near, SLIPS.items(), strict=True) if sign in text), None)
            meant = f"allowed are {ALLOWED}" if slip is None else f"write {slip}"
            raise self.source.wrong(
                at, f"it cannot be read ({(error.msg or '').split(';')[0].split('. Maybe')[0]}); {meant}"
            ) from None
        except (ValueError, RecursionError, MemoryError):
            raise self.source.wrong(
                0, "it is nested too deeply, or too long: a sum of many is written sum(a, b, ...)"
            ) from None
        root = self._truth(tree, 0)
        return root, self._split(tree)

    def _split(self, tree: ast.expr) -> tuple[str, ...]:
        """Return the texts of what `and` or a chain of comparisons joins."""
        if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
            return tuple(map(self.source.segment, tree.values))
        if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
            items = (tree.left, *tree.comparators)
            bare = ast.Name | ast.Constant | ast.List | ast.Tuple | ast.Call
            ends = [self.source.segment(i) if isinstance(i, bare) else f"({self.source.segment(i)})" for i in items]
            return tuple(f"{a} {SYMBOLS[type(op)]} {b}" for a, op, b in zip(ends[:-1], tree.ops, ends[1:], strict=True))
        return (self.source.text,)

    def _truth(self, tree: ast.expr, depth: int) -> Node:
        """Read what must be true or false."""
        node = self._node(tree, depth)
        if isinstance(node, Constant) and not isinstance(node.value, bool):
            raise self.source.wrong(node.at, f"{node.value!r} is neither true nor false: compare it with a parameter")
        if isinstance(node, Sum | Arithmetic | Negative | Call):
            raise self.source.wrong(node.at, "this is a number, not true or false: compare it, as in '2 * a + b <= 10'")
        return node

    def _number(self, tree: ast.expr, depth: int, reason: str) -> Node:
        """Read what must be a number."""
        node = self._node(tree, depth)
        if isinstance(node, Constant) and (node.value is None or isinstance(node.value, str)):
            raise self.source.wrong(node.at, f"{node.value!r} is not a number, and {reason}")
        return node

    def _node(self, tree: ast.expr, depth: int) -> Node:
        if depth >= DEEPEST:
            raise self.source.wrong(self.source.at(tree), f"it is nested more than {DEEPEST} levels deep")
        read: dict[type[ast.expr], Callable[..., Node]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.BoolOp: self._joined,
            ast.UnaryOp: self._signed,
            ast.BinOp: self._arithmetic,
            ast.Compare: self._comparison,
            ast.Call: self._call,
        }
        if type(tree) in read:
            return read[type(tree)](tree, depth + 1)
        what = FORBIDDEN.get(type(tree), "this")
        part = f"{tree.value.id}.{tree.attr}" if isinstance(tree, ast.Attribute) and _is_name(tree.value) else ""
        if part in self.names:
            raise self.source.wrong(self.source.at(tree), f"a name with a point in it goes in backquotes: `{part}`")
        comma = re.search(r"\d+,\d+", self.source.text) if isinstance(tree, ast.Tuple) else None
        if comma:
            number = comma[0].replace(",", ".")
            raise self.source.wrong(comma.start(), f"numbers have a decimal point: write {number}, not {comma[0]}")
        raise self.source.wrong(self.source.at(tree), f"{what} is not allowed; allowed are {ALLOWED}")

    def _joined(self, tree: ast.BoolOp, depth: int) -> Node:
        items = tuple(self._truth(value, depth) for value in tree.values)
        return (AllOf if isinstance(tree.op, ast.And) else AnyOf)(self.source.at(tree), items)

    def _signed(self, tree: ast.UnaryOp, depth: int) -> Node:
        at = self.source.at(tree)
        if isinstance(tree.op, ast.Not):
            return Negation(at, self._truth(tree.operand, depth))
        if isinstance(tree.op, ast.Invert):
            raise self.source.wrong(at, "'~' is not allowed: write 'not'")
        item = self._number(tree.operand, depth, "a sign takes a number")
        if isinstance(tree.op, ast.UAdd):
            return Sum(at, (item,), (1,))
        if isinstance(item, Constant):
            return Constant(at, -item.value)  # type: ignore[operator]
        return Negative(at, item)

    def _arithmetic(self, tree: ast.BinOp, depth: int) -> Node:
        at = self.source.at(tree)
        if isinstance(tree.op, ast.Add | ast.Sub):
            return self._sum(tree, depth)
        if type(tree.op) not in ARITHMETIC:
            hint: dict[type[ast.operator], str] = {
                ast.BitAnd: "'&' is not allowed: write 'and'",
                ast.BitOr: "'|' is not allowed: write 'or'",
                ast.BitXor: "'^' is not allowed: a power is written **",
            }
            raise self.source.wrong(at, hint.get(type(tree.op), f"this operator is not allowed; allowed are {ALLOWED}"))
        left = self._number(tree.left, depth, "arithmetic takes numbers")
        right = self._number(tree.right, depth, "arithmetic takes numbers")
        return Arithmetic(at, ARITHMETIC[type(tree.op)], left, right)

    def _constant(self, tree: ast.Constant, depth: int) -> Constant:
        at, value = self.source.at(tree), tree.value
        if isinstance(value, bool | str) or value is None:
            return Constant(at, value)
        if isinstance(value, int | float):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return Constant(at, value)
            raise self.source.wrong(at, "the number is too large")
        raise self.source.wrong(at, f"{value!r} is not allowed; allowed are {ALLOWED}")

    def _name(self, tree: ast.Name, depth: int) -> Name:
        name = self.source.quoted.get(tree.id) or (tree.id if tree.id in self.names else self.known.get(tree.id))
        if name is None:
            raise self.source.unknown(self.source.at(tree), tree.id)
        self.used.add(name)
        return Name(self.source.at(tree), name)

    def _sum(self, tree: ast.BinOp, depth: int) -> Sum:
        """Read a chain of + and − as one node."""
        at, terms, signs = self.source.at(tree), [], []
        rest: ast.expr = tree
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add | ast.Sub):
            terms.append(self._number(rest.right, depth, "+ and - take numbers"))
            signs.append(1 if isinstance(rest.op, ast.Add) else -1)
            rest = rest.left
        terms.append(self._number(rest, depth, "+ and - take numbers"))
        return Sum(at, tuple(reversed(terms)), (1, *reversed(signs)))

    def _comparison(self, tree: ast.Compare, depth: int) -> Node:
        operands, pairs = [tree.left, *tree.comparators], []
        for left, op, right in zip(operands[:-1], tree.ops, operands[1:], strict=True):
            if type(op) not in SYMBOLS:
                raise self.source.wrong(self.source.at(right), "'is' is not allowed: write == or !=")
            pairs.append(self._pair(left, SYMBOLS[type(op)], right, depth))
        return pairs[0] if len(pairs) == 1 else AllOf(self.source.at(tree), tuple(pairs))

    def _pair(self, left: ast.expr, symbol: str, right: ast.expr, depth: int) -> Node:
        at = self.source.at(left)
        if symbol in ("in", "not in"):
            if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
                place = self.source.at(right)
                negated = "not " if symbol == "not in" else ""
                name = left.value if isinstance(left, ast.Constant) and isinstance(left.value, str) else ""
                part = f"{right.id}.{name}" if _is_name(right) else ""
                if part in self.names:
                    raise self.source.wrong(place, f"whether a member is in a subset is written {negated}`{part}`")
                raise self.source.wrong(place, f"after '{symbol}' comes a list of constants, such as ['a', 'b']")
            values = [self._node(item, depth) for item in right.elts]
            for value in values:
                if not isinstance(value, Constant):
                    raise self.source.wrong(value.at, f"the list after '{symbol}' may have only constants")
            member = Member(at, self._node(left, depth), tuple(values))  # type: ignore[arg-type]
            return member if symbol == "in" else Negation(at, member)
        if symbol in ORDERS:
            reason = f"{symbol} compares numbers"
            return Compare(at, symbol, self._number(left, depth, reason), self._number(right, depth, reason))
        a, b = self._node(left, depth), self._node(right, depth)
        for text, other in ((a, b), (b, a)):
            is_text = isinstance(text, Constant) and isinstance(text.value, str)
            may_be = isinstance(other, Name) or (isinstance(other, Constant) and isinstance(other.value, str))
            if is_text and not may_be:
                raise self.source.wrong(text.at, "this is a string, and what it is compared with is not")
        return Compare(at, symbol, a, b)

    def _call(self, tree: ast.Call, depth: int) -> Call:
        at = self.source.at(tree)
        if not isinstance(tree.func, ast.Name) or tree.func.id not in FUNCTIONS:
            called = tree.func.id if isinstance(tree.func, ast.Name) else "this"
            raise self.source.wrong(at, f"{called!r} is not a function; the functions are {', '.join(FUNCTIONS)}")
        function, given = tree.func.id, list(tree.args)
        if tree.keywords:
            raise self.source.wrong(at, f"{function} takes no named arguments")
        if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple) and function != "abs":
            given = list(given[0].elts)
        if not given or (function == "abs" and len(given) > 1):
            raise self.source.wrong(
                at, f"{function} takes {'one argument' if function == 'abs' else 'at least one argument'}"
            )
        if function == "count":
            return Call(at, function, tuple(self._truth(item, depth) for item in given))
        return Call(at, function, tuple(self._number(item, depth, f"{function} takes numbers") for item in given))


def _is_name(tree: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(tree, ast.Name)
