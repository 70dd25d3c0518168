"""Templates: an argument of a command with placeholders, filled with the values of a point.

Not `str.format`: only a name may stand between the braces, and the text of a value is never interpreted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bounce.errors import InvalidOption
from bounce.text import written


@dataclass(frozen=True)
class Place:
    """A placeholder, and the pairs of braces that touch it.

    Such a pair is a single brace beside the value, as in `{{"c": {C}}}`, unless only the name with the brace in it is
    a parameter.
    """

    name: str
    before: int
    after: int

    def resolved(self, names: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the text before the value, the parameter's name, and the text after the value."""
        for braces in range(self.before + self.after + 1):
            for left in range(max(0, braces - self.after), min(self.before, braces) + 1):
                name = "{" * left + self.name + "}" * (braces - left)
                if name in names:
                    return "{" * (self.before - left), name, "}" * (self.after - braces + left)
        near = difflib.get_close_matches(self.name, names, n=1)
        raise InvalidOption(
            f"the placeholder {{{self.name}}} names no parameter"
            + (f"; did you mean {{{near[0]}}}?" if near else "")
            + " (to write a single brace, double it)"
        )


@dataclass(frozen=True)
class Template:
    """An argument: a sequence of texts and placeholders."""

    parts: tuple[str | Place, ...]

    @property
    def places(self) -> list[Place]:
        """The placeholders."""
        return [part for part in self.parts if isinstance(part, Place)]

    @property
    def whole(self) -> Place | None:
        """The placeholder that is the whole argument, if one is."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Place) else None

    @classmethod
    def of(cls, argument: str) -> Template:
        """Read an argument; refuse braces that do not match."""
        tokens = re.findall(r"\{+|\}+|[^{}]+", argument)
        parts: list[str | Place] = []
        inside: list[str] | None = None  # the pieces of the name, inside a placeholder
        before = 0
        for token in tokens:
            pairs, single = divmod(len(token), 2)
            if token[0] not in "{}":
                (parts if inside is None else inside).append(token)
            elif not single:
                (parts if inside is None else inside).append(token[0] * pairs)
            elif inside is None and token[0] == "{":
                inside, before = [], pairs
            elif inside is not None and token[0] == "}":
                parts.append(Place("".join(inside), before, pairs))
                inside = None
            else:
                break
        else:
            if inside is None:
                return cls(tuple(parts))
        raise InvalidOption(
            f"the braces in the argument {argument!r} do not match; {{{{ and }}}} stand for single braces"
        )

    def filled(self, point: Mapping[str, Any]) -> str:
        """Return the argument for a point."""
        texts = []
        for part in self.parts:
            if isinstance(part, Place):
                before, name, after = part.resolved(point)
                texts.append(before + written(point[name]) + after)
            else:
                texts.append(part)
        return "".join(texts)
