"""Permutations: orders of items. Inside, each pair of items has a bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint, InvalidSpace
from bounce.spaces.choices import Binary, _check_scalars
from bounce.spaces.kinds import Codes, When, check_name, checked_when
from bounce.spaces.members import MOST_MOVES, Members
from bounce.trial import Scalar

MOST_ITEMS = 50  # of a permutation: it has a variable for each pair


@dataclass(frozen=True, repr=False)
class Permutation(Members):
    """An order of items. A point has a list of them.

    Inside, each pair of items has a bit: whether the first one of the list comes before the other. The Hamming
    distance of these bits is Kendall's distance, the number of pairs in another order, as in the Mallows kernel.
    """

    name: str
    items: Sequence[Scalar]
    when: When = field(default=None, kw_only=True)

    type: ClassVar[str] = "permutation"

    def __post_init__(self) -> None:
        check_name(self.name)
        items = _check_scalars(self.name, "items", self.items)
        if len(items) > MOST_ITEMS:
            raise InvalidSpace(
                f"{self.name!r}: a permutation has at most {MOST_ITEMS} items, not {len(items)}",
                parameter=self.name,
                key="items",
            )
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "when", checked_when(self.name, self.when))

    @property
    def _members(self) -> tuple[Scalar, ...]:
        return self.items  # type: ignore[return-value]

    @cached_property
    def _pairs(self) -> NDArray[np.intp]:
        """The places (2, pairs) of all pairs in the list of items."""
        return np.array(list(itertools.combinations(range(len(self.items)), 2)), dtype=np.intp).T

    @cached_property
    def _counts(self) -> tuple[Codes, Codes]:
        """What each bit adds to the number of items after an item (pairs, items), and these numbers without bits."""
        first, second = self._pairs
        items = np.arange(len(self.items))
        before, after = (first[:, None] == items).astype(np.float64), (second[:, None] == items).astype(np.float64)
        return before - after, after.sum(axis=0)

    @cached_property
    def variables(self) -> tuple[Binary, ...]:
        """A bit for each pair of items."""
        items = self._members
        return tuple(Binary(f"{self.name}: {items[i]} before {items[j]}"[:1000]) for i, j in self._pairs.T)

    @property
    def size(self) -> int:
        """The number of values."""
        return math.factorial(len(self.items))

    def _bits(self, orders: NDArray[np.intp]) -> Codes:
        """Return the codes of orders (n, items) of places."""
        position = np.argsort(orders, axis=1)
        first, second = self._pairs
        return (position[:, first] < position[:, second]).astype(np.float64)

    def _before(self, codes: Codes) -> NDArray[np.intp]:
        """Return per row and item (n, items) how many items come after it."""
        gains, start = self._counts
        return np.rint(codes @ gains + start).astype(np.intp)

    def encode(self, value: Any) -> list[float]:
        """Return a bit for each pair of items."""
        places = self._places(value, "items")
        if len(places) != len(self.items):
            raise InvalidPoint(f"{self.name!r} must name every item once, not {list(value)!r}", parameter=self.name)
        return self._bits(np.array([places]))[0].tolist()  # type: ignore[no-any-return]

    def decode(self, codes: Sequence[float]) -> list[Scalar]:
        """Return the items in their order."""
        return [self._members[i] for i in np.argsort(-self._before(np.array([codes]))[0])]

    def valid(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which rows are orders: every item has another number of items after it."""
        return np.asarray((np.sort(self._before(codes), axis=1) == np.arange(len(self.items))).all(axis=1))

    def draw(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw orders, each as likely."""
        return self._bits(np.argsort(rng.random((n, len(self.items))), axis=1))

    def moves(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return what one value (k,) can become: one item elsewhere, or two items exchanged."""
        order, n = np.argsort(-self._before(codes[None])[0]), len(self.items)
        places = itertools.permutations(range(n), 2)
        # One step back is one step forward of the other item. An exchange with i > j is that of j and i.
        moves = [(i, j, swap) for i, j in places for swap in (False, True) if (j > i + 1 if swap else j != i - 1)]
        if len(moves) > MOST_MOVES:
            moves = [moves[k] for k in np.sort(rng.choice(len(moves), MOST_MOVES, replace=False))]
        orders = []
        for i, j, swap in moves:
            items = order.tolist()
            if swap:
                items[i], items[j] = items[j], items[i]
            else:
                items.insert(j, items.pop(i))
            orders.append(items)
        return self._bits(np.array(orders, dtype=np.intp))

    def stepped(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return values (n, k) after one random move each: two items exchanged."""
        orders, each = np.argsort(-self._before(codes), axis=1), np.arange(len(codes))
        i, j = rng.integers(0, len(self.items), (2, len(codes)))
        orders[each, i], orders[each, j] = orders[each, j], orders[each, i]
        return self._bits(orders)
