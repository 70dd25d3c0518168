"""Members: what subsets, mixtures and permutations have in common: a list of things, of which a value is made.

Inside, such a parameter is several binary or ordinal variables. Not every combination of their codes is a value, so
it draws, checks and changes its variables together.

The invariant: whatever `draw`, `moves` and `stepped` return is valid, and `decode(encode(value)) == value`.

Shapes: codes (n, k) for n points of k variables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.spaces.kinds import Codes, Shown, plain
from bounce.trial import Scalar

MOST_MOVES = 400  # moves of one point; of more, a random part


def some_of(rows: Codes, *, rng: np.random.Generator) -> Codes:
    """Return moves, or a random part of them if they are many."""
    return rows if len(rows) <= MOST_MOVES else rows[np.sort(rng.choice(len(rows), MOST_MOVES, replace=False))]


def counted(name: str, key: str, given: object, low: int, high: int) -> int:
    """Return a count that is given for a key of a parameter; refuse what is not a whole number in its range."""
    number = plain(given)
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise InvalidSpace(
            f"{name!r}: {key} must be a whole number from {low} to {high}, not {quoted(given)}", parameter=name, key=key
        )
    return number


class Members(Shown):
    """A parameter with a name and a list of distinct members."""

    name: str

    @property
    def _members(self) -> tuple[Scalar, ...]:
        raise AssertionError("a composite names its members")

    @cached_property
    def _place(self) -> dict[tuple[type, Scalar], int]:
        return {(type(member), member): i for i, member in enumerate(self._members)}

    @property
    def _shown(self) -> str:
        """A list of the first members as a table has it."""
        return json.dumps(self._members[:3], ensure_ascii=False)[:-1] + (", ...]" if len(self._members) > 3 else "]")

    def _places(self, value: Any, what: str) -> list[int]:
        """Return the places of members in the list; refuse what is not a list of distinct members."""
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise InvalidPoint(
                f"{self.name!r} must be a list of {what} such as {self._shown}, not {value!r}", parameter=self.name
            )
        given = [plain(item) for item in value]
        unknown = [item for item in given if (type(item), item) not in self._place]
        if unknown:
            raise InvalidPoint(
                f"{self.name!r} has no {unknown[0]!r}, only {list(self._members)!r}", parameter=self.name
            )
        places = [self._place[type(item), item] for item in given]  # type: ignore[index]
        if len(set(places)) < len(places):
            raise InvalidPoint(f"{self.name!r} has an entry twice: {given!r}", parameter=self.name)
        return places
