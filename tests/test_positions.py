from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce.spec.positions import Path, lines_of

Piece = tuple[str, list[tuple[Path, int]]]  # a text, and where in it which paths begin

tricky = st.text(st.sampled_from("ab\"'\\\n#[]{}=,. \té"), max_size=12)
fakes = st.sampled_from(
    ["\nbudget = 3\n", "\n[[parameters]]\n", "# no comment", "\n[options]\n", '"', "''", '""', "\\", "]", "}", ""]
)
texts = st.one_of(tricky, fakes)


def basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@st.composite
def strings(draw: st.DrawFn) -> str:
    text = draw(texts)
    forms = [basic(text), '"""' + text.replace("\\", "\\\\").replace('"""', '""\\"') + '"""']
    if "'" not in text and "\n" not in text:
        forms.append(f"'{text}'")
    if "'''" not in text:
        forms.append(f"'''{text}'''")
    return draw(st.sampled_from(forms))


gaps = st.sampled_from(["", " ", "\n", "\n\n  ", " # ] } , = [[parameters]]\n", "\n# budget = 1\n"])
plain = st.sampled_from(["1", "-2.5e3", "true", "inf", "1979-05-27 07:32:00", "0x10", "1979-05-27T07:32:00Z"])
keys = st.one_of(st.from_regex(r"[A-Za-z0-9_-]{1,5}", fullmatch=True), texts)


def key_text(draw: st.DrawFn, key: str) -> str:
    bare = bool(key) and key.isascii() and key.replace("-", "a").replace("_", "a").isalnum()
    forms = [basic(key)] + [key] * bare + [f"'{key}'"] * ("'" not in key and "\n" not in key)
    return draw(st.sampled_from(forms))


def joined(pieces: list[Piece | str]) -> Piece:
    text, marks = "", []
    for piece in pieces:
        found, inside = (piece, []) if isinstance(piece, str) else piece
        marks += [(path, len(text) + at) for path, at in inside]
        text += found
    return text, marks


def below(path: Path, piece: Piece) -> Piece:
    return piece[0], [(path + inner, at) for inner, at in piece[1]]


@st.composite
def pairs(draw: st.DrawFn, key: str, value: Piece) -> Piece:
    dotted = draw(st.sampled_from([(key,), (key, "x.y", "z")]))
    marks: list[tuple[Path, int]] = [(dotted[: n + 1], 0) for n in range(len(dotted))]
    dot = draw(st.sampled_from([".", " . "]))
    written = dot.join(key_text(draw, part) for part in dotted)
    equals = draw(st.sampled_from(["=", " = ", "\t=  "]))
    return joined([(written, marks), equals, below(dotted, value)])


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Piece]) -> Piece:
    entries = draw(st.lists(inner, max_size=3))
    pieces: list[Piece | str] = ["[", draw(gaps)]
    for place, entry in enumerate(entries):
        pieces += [("", [((place,), 0)]), below((place,), entry), draw(gaps)]
        pieces += [",", draw(gaps)] if place < len(entries) - 1 or draw(st.booleans()) else []
    return joined([*pieces, "]"])


@st.composite
def inline(draw: st.DrawFn, inner: st.SearchStrategy[Piece]) -> Piece:
    pieces: list[Piece | str] = ["{ "]
    for place, key in enumerate(draw(st.lists(keys, max_size=3, unique=True))):
        pieces += [", "] * (place > 0) + [draw(pairs(key, draw(inner)))]
    return joined([*pieces, " }"])


values: st.SearchStrategy[Piece] = st.recursive(
    st.one_of(strings(), plain).map(lambda text: (text, [])),
    lambda inner: st.one_of(arrays(inner), inline(inner)),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> Piece:
    def body(path: Path) -> None:
        for key in draw(st.lists(keys.filter(lambda key: not key.startswith("T")), max_size=3, unique=True)):
            ends = draw(st.sampled_from(["\n", " # budget = 1\n", "\n\n", "\r\n"]))
            pieces.extend([draw(st.sampled_from(["", "  "])), below(path, draw(pairs(key, draw(values)))), ends])

    def header(path: Path, *names: str, brackets: int) -> None:
        opened: list[tuple[Path, int]] = [(path, 0)]
        if path[-1] == 0:
            opened.append((path[:-1], 0))
        dot = draw(st.sampled_from([".", " . "]))
        written = "[" * brackets + dot.join(key_text(draw, name) for name in names) + "]" * brackets
        pieces.extend([(written, opened), draw(st.sampled_from(["\n", " # [other]\n"]))])
        body(path)

    pieces: list[Piece | str] = [draw(gaps), "\n"]
    body(())
    if draw(st.booleans()):
        header(("T [[x]]",), "T [[x]]", brackets=1)
    for place in range(draw(st.integers(0, 3))):
        header(("Tables", place), "Tables", brackets=2)
        if draw(st.booleans()):
            header(("Tables", place, "Tsub"), "Tables", "Tsub", brackets=1)
        for inner in range(draw(st.integers(0, 2))):
            header(("Tables", place, "Tinner", inner), "Tables", "Tinner", brackets=2)
    return joined(pieces)


def paths(document: Any, path: Path = ()) -> Iterator[Path]:
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield (*path, key)
        yield from paths(value, (*path, key))


@pytest.mark.slow
@given(documents())
def test_every_key_and_entry_is_found_in_its_line(document: Piece) -> None:
    text, marks = document
    expected: dict[Path, int] = {}
    for path, at in marks:
        expected.setdefault(path, text.count("\n", 0, at) + 1)
    assert lines_of(text) == expected
    assert set(expected) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('a = """\nbudget = 1\n"""\nbudget = 2', ("budget",), 4),
        ("a = '''\nbudget = 1\n'''''\nbudget = 2", ("budget",), 4),
        ('a = "budget = 1 \\" [x"\n\nbudget = 2', ("budget",), 3),
        ("# budget = 1\nbudget = 2", ("budget",), 2),
        ('parameters = [{name = "x"},\n\n {name = "[[parameters]]"}]', ("parameters", 1), 3),
        ("options.new_bins = 3", ("options", "new_bins"), 1),
        ("a.b = 1\n[c]\n\na.b = 2", ("c", "a", "b"), 4),
        ('["a.b"]\nc = 1', ("a.b", "c"), 2),
        ('"budg\\u0065t" = 1', ("budget",), 1),
        ("[a]\n[a.b.c]\nd = 1", ("a", "b", "c", "d"), 3),
        ("a = 1\r\nb = 2\r\n", ("b",), 2),
    ],
)
def test_lines_by_example(text: str, path: Path, line: int) -> None:
    assert lines_of(text)[path] == line
