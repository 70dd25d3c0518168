"""Grammar: what an expression may be, as a tree, and how a mistake in its text is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bounce.errors import InvalidSpace
from bounce.trial import Scalar

WINDOW = 90  # characters around the place of a mistake that a message shows
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
