"""Composites: parameters whose value has parts: a subset of a list, a mixture of components, an order of items.

Inside, a composite is several binary or ordinal variables. Not every combination of their codes is a value, so a
composite draws, checks and changes its variables together.

The invariant: whatever `draw`, `moves` and `stepped` return is valid, and `decode(encode(value)) == value`.

Shapes: codes (n, k) for n points of k variables.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.spaces.choices import Binary, Ordinal, _check_scalars
from bounce.spaces.kinds import Codes, Shown, When, check_name, checked_when, plain
from bounce.trial import Scalar

MOST_MOVES = 400  # moves of one point; of more, a random part
MOST_ITEMS = 50  # of a permutation: it has a variable for each pair
MOST_PARTS = 10_000  # steps in the total of a mixture
ROUNDING = (
    1e-3  # of a step: how far a fraction may be from a multiple of it, as after a computation in single precision
)


def _some(rows: Codes, *, rng: np.random.Generator) -> Codes:
    """Return moves, or a random part of them if they are many."""
    return rows if len(rows) <= MOST_MOVES else rows[np.sort(rng.choice(len(rows), MOST_MOVES, replace=False))]


def _count(name: str, key: str, given: object, low: int, high: int) -> int:
    number = plain(given)
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise InvalidSpace(
            f"{name!r}: {key} must be a whole number from {low} to {high}, not {quoted(given)}", parameter=name, key=key
        )
    return number


class _Members(Shown):
    """What the three have in common: a name, and a list of distinct members."""

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


@dataclass(frozen=True, repr=False)
class Subset(_Members):
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
        object.__setattr__(self, "at_least", _count(self.name, "at_least", self.at_least, 0, n))
        most = n if self.at_most is None else _count(self.name, "at_most", self.at_most, max(1, self.at_least), n)
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
        return _some(rows, rng=rng)

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


@dataclass(frozen=True, repr=False)
class Mixture(_Members):
    """Fractions of components that add up to `total`, at most `most` of them above zero, in multiples of `step`.

    A point has a dict of all fractions. Without a step it is a hundredth of the total.
    """

    name: str
    components: Sequence[Scalar]
    total: float = 1.0
    most: int | None = None
    step: float | None = None
    when: When = field(default=None, kw_only=True)

    type: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        check_name(self.name)
        components = _check_scalars(self.name, "components", self.components)
        if not all(isinstance(component, str) for component in components):
            raise InvalidSpace(f"{self.name!r}: components must be names", parameter=self.name, key="components")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "total", self._positive("total", self.total))
        step = self.total / 100 if self.step is None else self._positive("step", self.step)
        object.__setattr__(self, "step", step)
        parts = self._exact(self.total) / self._exact(step)
        if parts != int(parts) or not 1 <= parts <= MOST_PARTS:
            raise InvalidSpace(
                f"{self.name!r}: total must be a multiple of step, of at most {MOST_PARTS:,} steps, "
                f"not total={self.total!r} and step={step!r}",
                parameter=self.name,
                key="step",
            )
        n = len(components)
        object.__setattr__(self, "most", n if self.most is None else _count(self.name, "most", self.most, 1, n))
        object.__setattr__(self, "when", checked_when(self.name, self.when))

    def _positive(self, key: str, given: object) -> float:
        number = plain(given)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
            raise InvalidSpace(
                f"{self.name!r}: {key} must be a positive number, not {quoted(given)}", parameter=self.name, key=key
            )
        return float(number)

    @staticmethod
    def _exact(number: float) -> Decimal:
        return Decimal(repr(number))

    @property
    def _members(self) -> tuple[Scalar, ...]:
        return self.components  # type: ignore[return-value]

    @cached_property
    def _parts(self) -> int:
        """How many steps the total has."""
        assert self.step is not None
        return int(self._exact(self.total) / self._exact(self.step))

    @cached_property
    def _values(self) -> tuple[float, ...]:
        """The fraction for each number of steps, as the decimal it is."""
        assert self.step is not None
        return tuple(float(k * self._exact(self.step)) for k in range(self._parts + 1))

    @cached_property
    def variables(self) -> tuple[Ordinal, ...]:
        """The fraction of each component; its code is the number of steps."""
        return tuple(Ordinal(f"{self.name}.{component}"[:1000], self._values) for component in self.components)

    @property
    def size(self) -> int:
        """The number of values."""
        n, parts = len(self.components), self._parts
        return sum(math.comb(n, k) * math.comb(parts - 1, k - 1) for k in range(1, (self.most or n) + 1))

    def encode(self, value: Any) -> list[float]:
        """Return the number of steps of each component; what is not named has none."""
        if not isinstance(value, Mapping):
            raise InvalidPoint(f"{self.name!r} must be a dict of fractions, not {value!r}", parameter=self.name)
        self._places(list(value), "components")
        codes = [self._steps(component, value.get(component, 0.0)) for component in self.components]
        if sum(codes) != self._parts:
            total = math.fsum(map(float, value.values()))
            raise InvalidPoint(f"{self.name!r} must add up to {self.total!r}, not {total:.12g}", parameter=self.name)
        used = sum(code > 0 for code in codes)
        if used > (self.most or used):
            raise InvalidPoint(
                f"{self.name!r} must have at most {self.most} components above zero, not {used}", parameter=self.name
            )
        return codes

    def _steps(self, component: Any, given: object) -> float:
        number = plain(given)
        fits = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        assert self.step is not None
        k = round(float(number) / self.step) if fits else -1  # type: ignore[arg-type]
        if not 0 <= k <= self._parts or abs(self._values[k] - float(number)) > ROUNDING * self.step:  # type: ignore[arg-type]
            raise InvalidPoint(
                f"{self.name!r}: {component!r} must be a multiple of {self.step!r} from 0 to {self.total!r}, "
                f"not {given!r}",
                parameter=self.name,
            )
        return float(k)

    def decode(self, codes: Sequence[float]) -> dict[str, float]:
        """Return the fraction of every component."""
        return {str(c): self._values[int(code)] for c, code in zip(self.components, codes, strict=True)}

    def valid(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which rows add up to the total with few enough components."""
        return np.asarray((codes.sum(axis=1) == self._parts) & (np.count_nonzero(codes, axis=1) <= (self.most or 0)))

    def draw(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw values: a number of components, each as likely, which ones, and how they share the total."""
        k, parts = len(self.components), self._parts
        rows = np.zeros((n, k))
        for row, used in zip(rows, rng.integers(1, min(self.most or k, parts) + 1, n).tolist(), strict=True):
            cuts = np.sort(rng.choice(parts - 1, used - 1, replace=False)) + 1
            row[rng.choice(k, used, replace=False)] = np.diff(np.concatenate([[0], cuts, [parts]]))
        return rows

    def moves(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return what one value (k,) can become: 1, 2, 4, ... steps or all of a component go to another one."""
        rows = []
        for i in np.flatnonzero(codes).tolist():
            have = int(codes[i])
            amounts = {2**power for power in range(have.bit_length())} | {have}
            for j, amount in itertools.product(range(len(codes)), sorted(amounts)):
                if j != i:
                    row = codes.copy()
                    row[i] -= amount
                    row[j] += amount
                    rows.append(row)
        moved = np.array(rows).reshape(len(rows), len(codes))
        return _some(moved[self.valid(moved)], rng=rng)

    def stepped(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return values (n, k) after one random move each: some steps, or all, of a component go to another one."""
        moved, each = codes.copy(), np.arange(len(codes))
        giver = np.where(codes > 0, rng.random(codes.shape), np.inf).argmin(axis=1)
        taker = rng.integers(0, codes.shape[1], len(codes))
        have = codes[each, giver]
        amount = np.ceil(have ** rng.random(len(codes)))  # as likely few as many
        moved[each, giver] -= amount
        moved[each, taker] += amount
        return np.where(self.valid(moved)[:, None], moved, codes)


@dataclass(frozen=True, repr=False)
class Permutation(_Members):
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


COMPOSITES = (Subset, Mixture, Permutation)
Composite = Subset | Mixture | Permutation
