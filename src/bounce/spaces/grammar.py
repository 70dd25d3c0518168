"""Grammar: what an expression may be, as a tree, and the reader of its text.

Python's `ast` parses the text; the reader turns what is allowed into the nodes below and names the place of anything
else. Nothing of it is ever executed. The length and the depth of a text are limited, so that reading it is quick.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeGuard

from bounce.errors import InvalidSpace
from bounce.trial import Scalar

LONGEST = 20_000  # characters of one expression: a sum of a thousand parameters has fewer
DEEPEST = 60  # levels of nesting; a chain of + and − is one level
WINDOW = 90  # characters around the place of a mistake that a message shows

ALLOWED = (
    "names of parameters, numbers, strings, True, False, None, comparisons, + - * / // % **, and, or, not, "
    "in and not in with a list of constants, and the functions min, max, abs, sum and count"
)
FUNCTIONS = ("min", "max", "abs", "sum", "count")
GRAMMAR = frozenset({"and", "or", "not", "in", "True", "False", "None"})
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
ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Node:
    """A part of an expression, with its place in the text."""

    at: int


@dataclass(frozen=True)
class Constant(Node):
    """A number, a string, true, false or None."""

    value: Scalar


@dataclass(frozen=True)
class Name(Node):
    """A parameter."""

    name: str


@dataclass(frozen=True)
class Sum(Node):
    """Terms that are added or subtracted from left to right."""

    terms: tuple[Node, ...]
    signs: tuple[int, ...]


@dataclass(frozen=True)
class Arithmetic(Node):
    """Two numbers and a function of numpy."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Negative(Node):
    """A number with the other sign."""

    item: Node


@dataclass(frozen=True)
class Call(Node):
    """A function of some parts."""

    function: str
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Compare(Node):
    """Two parts and a symbol such as <=."""

    symbol: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Member(Node):
    """A part that must be one of some constants."""

    item: Node
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Negation(Node):
    """What is true where its item is false."""

    item: Node


@dataclass(frozen=True)
class AllOf(Node):
    """What is true where all its items are."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class AnyOf(Node):
    """What is true where one of its items is."""

    items: tuple[Node, ...]


def walk(node: Node) -> Iterable[Node]:
    """Yield a node and all below it."""
    yield node
    for value in vars(node).values():
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Node):
                yield from walk(child)


def mistake(text: str, at: int, what: str) -> InvalidSpace:
    """Return an error that shows a place of the text."""
    line = "".join(" " if character.isspace() else character for character in text)
    start = max(0, min(at - WINDOW // 2, len(line) - WINDOW))
    shown = ("..." if start else "") + line[start : start + WINDOW] + ("..." if start + WINDOW < len(line) else "")
    caret = " " * (at - start + (3 if start else 0)) + "^"
    return InvalidSpace(
        f"the constraint cannot be used: {what} (character {at + 1})\n    {shown}\n    {caret}", key="constraints"
    )


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
        self.text = text
        self.names = names
        self.known = {unicodedata.normalize("NFKC", name): name for name in reversed(names)}
        self.used: set[str] = set()
        self.quoted: dict[str, str] = {}
        self.source = ""
        self.origin: list[int] = []  # of each byte of the source, its character in the text

    def read(self) -> tuple[Node, tuple[str, ...]]:
        """Return the tree, and the texts of the expressions that must all hold."""
        self._unquote()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of odd backslashes in strings
                tree = ast.parse(self.source, mode="eval").body
        except SyntaxError as error:
            inside = error.lineno == 1 and error.offset
            at = (
                self._place(0, error.offset - 1, characters=True)
                if inside and error.offset
                else len(self.text.rstrip())
            )
            raise self._wrong(
                at, f"it cannot be read ({(error.msg or '').split(';')[0]}); allowed are {ALLOWED}"
            ) from None
        except (ValueError, RecursionError, MemoryError):
            raise self._wrong(
                0, "it is nested too deeply, or too long: a sum of many is written sum(a, b, ...)"
            ) from None
        root = self._truth(tree, 0)
        return root, self._split(tree)

    def _unquote(self) -> None:
        """Copy the text, with identifiers in place of names in backquotes and of names that are words of Python."""
        stem = "quoted"
        while stem in self.text:
            stem += "_"
        text, place, end = self.text, 0, len(self.text)
        while place < end and text[place].isspace():
            place += 1
        while place < end:
            start, character = place, text[place]
            if character in "'\"":
                place += 1
                while place < end and text[place] != character:
                    place += 2 if text[place] == "\\" else 1
                place = min(place + 1, end)
                self._copy(text[start:place], start)
            elif character == "`":
                place = text.find("`", start + 1) + 1
                if not place:
                    raise self._wrong(start, "a name in backquotes does not end")
                self._replace(text[start + 1 : place - 1], start, stem)
            elif character.isidentifier():
                while place < end and (text[place].isidentifier() or text[place].isalnum()):
                    place += 1
                word = text[start:place]
                if keyword.iskeyword(word) and word in self.names and word not in GRAMMAR:
                    self._replace(word, start, stem)
                else:
                    self._copy(word, start)
            else:
                place += 1
                self._copy(" " if character.isspace() else character, start)

    def _copy(self, piece: str, start: int) -> None:
        self.source += piece
        for offset, character in enumerate(piece):
            self.origin += [start + offset] * len(character.encode("utf-8", "surrogatepass"))

    def _replace(self, name: str, start: int, stem: str) -> None:
        if name not in self.names:
            raise self._unknown(start, name)
        placeholder = f"{stem}{len(self.quoted)}"
        self.quoted[placeholder] = name
        self.source += placeholder
        self.origin += [start] * len(placeholder)

    def _place(self, line: int, column: int, *, characters: bool = False) -> int:
        """Return the character of the text at a column of the source."""
        if line:  # a string in three quotes over several lines: columns start again
            return 0
        if characters:
            column = len(self.source[:column].encode("utf-8", "surrogatepass"))
        return self.origin[column] if column < len(self.origin) else len(self.text)

    def _at(self, tree: ast.expr) -> int:
        return self._place(tree.lineno - 1, tree.col_offset)

    def _wrong(self, at: int, what: str) -> InvalidSpace:
        return mistake(self.text, at, what)

    def _unknown(self, at: int, name: str) -> InvalidSpace:
        parts = [known for known in self.names if known.startswith((f"{name}.", f"{name}: "))]
        if parts:
            raise self._wrong(at, f"{name!r} has several parts, each with a name of its own, such as `{parts[0]}`")
        near = difflib.get_close_matches(name, self.names, n=1, cutoff=0.6)
        if not near:
            near = [known for known in self.names if known.lower() == name.lower()]
        known = ", ".join(map(repr, self.names[:8])) + (", ..." if len(self.names) > 8 else "")
        hint = f"did you mean {near[0]!r}?" if near else f"the parameters are {known}"
        if near and not near[0].isidentifier():
            hint = f"did you mean `{near[0]}`, in backquotes?"
        return self._wrong(at, f"there is no parameter {name!r}; {hint}")

    def _split(self, tree: ast.expr) -> tuple[str, ...]:
        """Return the texts of what `and` or a chain of comparisons joins."""
        if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
            return tuple(map(self._segment, tree.values))
        if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
            items = (tree.left, *tree.comparators)
            bare = ast.Name | ast.Constant | ast.List | ast.Tuple | ast.Call
            ends = [self._segment(i) if isinstance(i, bare) else f"({self._segment(i)})" for i in items]
            return tuple(f"{a} {SYMBOLS[type(op)]} {b}" for a, op, b in zip(ends[:-1], tree.ops, ends[1:], strict=True))
        return (self.text,)

    def _segment(self, tree: ast.expr) -> str:
        """Return the text of a part."""
        assert tree.end_col_offset is not None
        assert tree.end_lineno is not None
        start = self._at(tree)
        last = self._place(tree.end_lineno - 1, tree.end_col_offset - 1)
        end = last + 1
        if self.text[last] == "`" or (self.text[last].isidentifier() and self._is_quoted(tree.end_col_offset)):
            # the last byte of a placeholder points at the start of what it replaced
            end = self.text.find("`", last + 1) + 1 if self.text[last] == "`" else self._word_end(last)
        return self.text[start:end]

    def _is_quoted(self, end: int) -> bool:
        source = self.source.encode("utf-8", "surrogatepass")[:end].decode("utf-8", "surrogatepass")
        return any(source.endswith(placeholder) for placeholder in self.quoted)

    def _word_end(self, place: int) -> int:
        while place < len(self.text) and (self.text[place].isidentifier() or self.text[place].isalnum()):
            place += 1
        return place

    def _truth(self, tree: ast.expr, depth: int) -> Node:
        """Read what must be true or false."""
        node = self._node(tree, depth)
        if isinstance(node, Constant) and not isinstance(node.value, bool):
            raise self._wrong(node.at, f"{node.value!r} is neither true nor false: compare it with a parameter")
        if isinstance(node, Sum | Arithmetic | Negative | Call):
            raise self._wrong(node.at, "this is a number, not true or false: compare it, as in '2 * a + b <= 10'")
        return node

    def _number(self, tree: ast.expr, depth: int, reason: str) -> Node:
        """Read what must be a number."""
        node = self._node(tree, depth)
        if isinstance(node, Constant) and (node.value is None or isinstance(node.value, str)):
            raise self._wrong(node.at, f"{node.value!r} is not a number, and {reason}")
        return node

    def _node(self, tree: ast.expr, depth: int) -> Node:
        if depth >= DEEPEST:
            raise self._wrong(self._at(tree), f"it is nested more than {DEEPEST} levels deep")
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
            raise self._wrong(self._at(tree), f"a name with a point in it goes in backquotes: `{part}`")
        raise self._wrong(self._at(tree), f"{what} is not allowed; allowed are {ALLOWED}")

    def _joined(self, tree: ast.BoolOp, depth: int) -> Node:
        items = tuple(self._truth(value, depth) for value in tree.values)
        return (AllOf if isinstance(tree.op, ast.And) else AnyOf)(self._at(tree), items)

    def _signed(self, tree: ast.UnaryOp, depth: int) -> Node:
        at = self._at(tree)
        if isinstance(tree.op, ast.Not):
            return Negation(at, self._truth(tree.operand, depth))
        if isinstance(tree.op, ast.Invert):
            raise self._wrong(at, "'~' is not allowed: write 'not'")
        item = self._number(tree.operand, depth, "a sign takes a number")
        if isinstance(tree.op, ast.UAdd):
            return Sum(at, (item,), (1,))
        if isinstance(item, Constant):
            return Constant(at, -item.value)  # type: ignore[operator]
        return Negative(at, item)

    def _arithmetic(self, tree: ast.BinOp, depth: int) -> Node:
        at = self._at(tree)
        if isinstance(tree.op, ast.Add | ast.Sub):
            return self._sum(tree, depth)
        if type(tree.op) not in ARITHMETIC:
            hint = {ast.BitAnd: "'&' is not allowed: write 'and'", ast.BitOr: "'|' is not allowed: write 'or'"}
            raise self._wrong(at, hint.get(type(tree.op), f"this operator is not allowed; allowed are {ALLOWED}"))
        left = self._number(tree.left, depth, "arithmetic takes numbers")
        right = self._number(tree.right, depth, "arithmetic takes numbers")
        return Arithmetic(at, ARITHMETIC[type(tree.op)], left, right)

    def _constant(self, tree: ast.Constant, depth: int) -> Constant:
        at, value = self._at(tree), tree.value
        if isinstance(value, bool | str) or value is None:
            return Constant(at, value)
        if isinstance(value, int | float):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return Constant(at, value)
            raise self._wrong(at, "the number is too large")
        raise self._wrong(at, f"{value!r} is not allowed; allowed are {ALLOWED}")

    def _name(self, tree: ast.Name, depth: int) -> Name:
        name = self.quoted.get(tree.id) or (tree.id if tree.id in self.names else self.known.get(tree.id))
        if name is None:
            raise self._unknown(self._at(tree), tree.id)
        self.used.add(name)
        return Name(self._at(tree), name)

    def _sum(self, tree: ast.BinOp, depth: int) -> Sum:
        """Read a chain of + and − as one node."""
        at, terms, signs = self._at(tree), [], []
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
                raise self._wrong(self._at(right), "'is' is not allowed: write == or !=")
            pairs.append(self._pair(left, SYMBOLS[type(op)], right, depth))
        return pairs[0] if len(pairs) == 1 else AllOf(self._at(tree), tuple(pairs))

    def _pair(self, left: ast.expr, symbol: str, right: ast.expr, depth: int) -> Node:
        at = self._at(left)
        if symbol in ("in", "not in"):
            if not isinstance(right, ast.List | ast.Tuple) or not right.elts:
                place = self._at(right)
                negated = "not " if symbol == "not in" else ""
                name = left.value if isinstance(left, ast.Constant) and isinstance(left.value, str) else ""
                part = f"{right.id}.{name}" if _is_name(right) else ""
                if part in self.names:
                    raise self._wrong(place, f"whether a member is in a subset is written {negated}`{part}`")
                raise self._wrong(place, f"after '{symbol}' comes a list of constants, such as ['a', 'b']")
            values = [self._node(item, depth) for item in right.elts]
            for value in values:
                if not isinstance(value, Constant):
                    raise self._wrong(value.at, f"the list after '{symbol}' may have only constants")
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
                raise self._wrong(text.at, "this is a string, and what it is compared with is not")
        return Compare(at, symbol, a, b)

    def _call(self, tree: ast.Call, depth: int) -> Call:
        at = self._at(tree)
        if not isinstance(tree.func, ast.Name) or tree.func.id not in FUNCTIONS:
            called = tree.func.id if isinstance(tree.func, ast.Name) else "this"
            raise self._wrong(at, f"{called!r} is not a function; the functions are {', '.join(FUNCTIONS)}")
        function, given = tree.func.id, list(tree.args)
        if tree.keywords:
            raise self._wrong(at, f"{function} takes no named arguments")
        if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple) and function != "abs":
            given = list(given[0].elts)
        if not given or (function == "abs" and len(given) > 1):
            raise self._wrong(
                at, f"{function} takes {'one argument' if function == 'abs' else 'at least one argument'}"
            )
        if function == "count":
            return Call(at, function, tuple(self._truth(item, depth) for item in given))
        return Call(at, function, tuple(self._number(item, depth, f"{function} takes numbers") for item in given))


def _is_name(tree: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(tree, ast.Name)
