"""Subsets: some of a list, within limits of how many. Inside, each member has a bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint
from bounce.spaces.choices import Binary, _check_scalars
from bounce.spaces.kinds import Codes, When, check_name, checked_when
from bounce.spaces.members import Members, counted, some_of
from bounce.trial import Scalar


@dataclass(frozen=True, repr=False)
class Subset(Members):
    """Some of a list: at least `at_least` and at most `at_most` of its members. A point has a list of them."""

    name: str
    members: Sequence[Scalar]
    at_most: int | None = None
    at_least: int = 0
    when: When = field(default=None, kw_only=True)

    type: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "members", _check_scalars(self.name, "members", self.members))
        n = len(self.members)
        object.__setattr__(self, "at_least", counted(self.name, "at_least", self.at_least, 0, n))
        most = n if self.at_most is None else counted(self.name, "at_most", self.at_most, max(1, self.at_least), n)
        object.__setattr__(self, "at_most", most)
        object.__setattr__(self, "when", checked_when(self.name, self.when))

    @property
    def _members(self) -> tuple[Scalar, ...]:
        return self.members  # type: ignore[return-value]

    @property
    def _limits(self) -> tuple[int, int]:
        assert self.at_most is not None
        return self.at_least, self.at_most

    @cached_property
    def variables(self) -> tuple[Binary, ...]:
        """One bit for each member."""
        return tuple(Binary(f"{self.name}.{member}"[:1000]) for member in self.members)

    @property
    def size(self) -> int:
        """The number of values."""
        low, high = self._limits
        return sum(math.comb(len(self.members), k) for k in range(low, high + 1))

    def encode(self, value: Any) -> list[float]:
        """Return one bit for each member."""
        places = self._places(value, "members")
        low, high = self._limits
        if not low <= len(places) <= high:
            many = f"exactly {low}" if low == high else f"{low} to {high}"
            raise InvalidPoint(f"{self.name!r} must have {many} members, not {len(places)}", parameter=self.name)
        return [float(i in places) for i in range(len(self.members))]

    def decode(self, codes: Sequence[float]) -> list[Scalar]:
        """Return the members whose bits are set, in the order of the list."""
        return [member for member, code in zip(self._members, codes, strict=True) if code]

    def valid(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which rows have an allowed number of members."""
        low, high = self._limits
        count = codes.sum(axis=1)
        return np.asarray((count >= low) & (count <= high))

    def draw(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw values: a number of members, each as likely, then which."""
        low, high = self._limits
        counts = rng.integers(low, high + 1, n)
        ranks = np.argsort(rng.random((n, len(self.members))), axis=1).argsort(axis=1)
        return (ranks < counts[:, None]).astype(np.float64)

    def moves(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return what one value (k,) can become: one member more, one less, or another one."""
        low, high = self._limits
        on, off = np.flatnonzero(codes), np.flatnonzero(codes == 0)
        changes = [[i] for i in on] if len(on) > low else []
        changes += [[i] for i in off] if len(on) < high else []
        changes += [[i, j] for i in on for j in off]
        rows = np.tile(codes, (len(changes), 1))
        for row, change in zip(rows, changes, strict=True):
            row[change] = 1.0 - row[change]
        return some_of(rows, rng=rng)

    def stepped(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return values (n, k) after one random move each: one member more or less, or another one."""
        order = rng.random(codes.shape)
        moved, each = codes.copy(), np.arange(len(codes))
        first = order.argmin(axis=1)
        other = np.where(codes != codes[each, first][:, None], order, np.inf).argmin(axis=1)
        moved[each, first] = 1.0 - codes[each, first]
        swap = (rng.random(len(codes)) < 0.5) | ~self.valid(moved)
        moved[each[swap], other[swap]] = codes[each[swap], first[swap]]
        return np.where(self.valid(moved)[:, None], moved, codes)
