"""Source: the text of an expression as Python can parse it, and the way back from its places to the text.

Names in backquotes, and names that are words of Python, become identifiers that the text does not have. Each byte of
the code remembers the character of the text that it comes from, so a message and a part show what the user wrote.
"""

from __future__ import annotations

import ast
import difflib
import keyword

from bounce.errors import InvalidSpace
from bounce.spaces.grammar import mistake

WORDS = frozenset({"and", "or", "not", "in", "True", "False", "None"})  # words of Python that expressions have


class Source:
    """A text on its way to Python's parser."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        self.quoted: dict[str, str] = {}
        """The names by the identifiers that stand for them."""
        self.code = ""
        self.origin: list[int] = []
        """Of each byte of the code, its character in the text."""
        self._unquote()

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
                    raise self.wrong(start, "a name in backquotes does not end")
                self._replace(text[start + 1 : place - 1], start, stem)
            elif character.isidentifier():
                while place < end and (text[place].isidentifier() or text[place].isalnum()):
                    place += 1
                word = text[start:place]
                if keyword.iskeyword(word) and word in self.names and word not in WORDS:
                    self._replace(word, start, stem)
                else:
                    self._copy(word, start)
            else:
                place += 1
                self._copy(" " if character.isspace() else character, start)

    def _copy(self, piece: str, start: int) -> None:
        self.code += piece
        for offset, character in enumerate(piece):
            self.origin += [start + offset] * len(character.encode("utf-8", "surrogatepass"))

    def _replace(self, name: str, start: int, stem: str) -> None:
        if name not in self.names:
            raise self.unknown(start, name)
        placeholder = f"{stem}{len(self.quoted)}"
        self.quoted[placeholder] = name
        self.code += placeholder
        self.origin += [start] * len(placeholder)

    def place(self, line: int, column: int, *, characters: bool = False) -> int:
        """Return the character of the text at a column of the source."""
        if line:  # a string in three quotes over several lines: columns start again
            return 0
        if characters:
            column = len(self.code[:column].encode("utf-8", "surrogatepass"))
        return self.origin[column] if column < len(self.origin) else len(self.text)

    def at(self, tree: ast.expr) -> int:
        """Return the character of the text where a part begins."""
        return self.place(tree.lineno - 1, tree.col_offset)

    def wrong(self, at: int, what: str) -> InvalidSpace:
        """Return an error that shows a place of the text."""
        return mistake(self.text, at, what)

    def unknown(self, at: int, name: str) -> InvalidSpace:
        """Return an error about a name that no parameter has, with one that may be meant."""
        parts = [known for known in self.names if known.startswith((f"{name}.", f"{name}: "))]
        if parts:
            raise self.wrong(at, f"{name!r} has several parts, each with a name of its own, such as `{parts[0]}`")
        if name in ("true", "false", "none", "null"):
            raise self.wrong(
                at, f"there is no parameter {name!r}; did you mean {'None' if 'n' in name[:2] else name.title()}?"
            )
        order, _, pair = name.partition(": ")
        other = f"{order}: {' before '.join(reversed(pair.split(' before ')))}"
        if other in self.names:
            raise self.wrong(at, f"there is no parameter {name!r}; write not `{other}`")
        self.check_bare(at)
        near = difflib.get_close_matches(name, self.names, n=1, cutoff=0.6)
        if not near:
            near = [known for known in self.names if known.lower() == name.lower()]
        known = ", ".join(map(repr, self.names[:8])) + (", ..." if len(self.names) > 8 else "")
        hint = f"did you mean {near[0]!r}?" if near else f"the parameters are {known}"
        if near and not near[0].isidentifier():
            hint = f"did you mean `{near[0]}`, in backquotes?"
        return self.wrong(at, f"there is no parameter {name!r}; {hint}")

    def check_bare(self, at: int) -> None:
        """Refuse a name at a place that has spaces or signs in it and lacks backquotes."""
        for name in self.names:
            start = self.text.find(name, max(0, at - len(name)))
            if not name.isidentifier() and 0 <= start <= at < start + len(name) and self.text[start - 1 : start] != "`":
                raise self.wrong(start, f"a name that is not a Python name goes in backquotes: `{name}`")

    def segment(self, tree: ast.expr) -> str:
        """Return the text of a part."""
        assert tree.end_col_offset is not None
        assert tree.end_lineno is not None
        start = self.at(tree)
        last = self.place(tree.end_lineno - 1, tree.end_col_offset - 1)
        end = last + 1
        if self.text[last] == "`" or (self.text[last].isidentifier() and self._is_quoted(tree.end_col_offset)):
            # the last byte of a placeholder points at the start of what it replaced
            end = self.text.find("`", last + 1) + 1 if self.text[last] == "`" else self._word_end(last)
        return self.text[start:end]

    def _is_quoted(self, end: int) -> bool:
        source = self.code.encode("utf-8", "surrogatepass")[:end].decode("utf-8", "surrogatepass")
        return any(source.endswith(placeholder) for placeholder in self.quoted)

    def _word_end(self, place: int) -> int:
        while place < len(self.text) and (self.text[place].isidentifier() or self.text[place].isalnum()):
            place += 1
        return place
