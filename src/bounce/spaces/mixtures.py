"""Mixtures: fractions of components that add up to a total. Inside, each component has its number of steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint, InvalidSpace, quoted
from bounce.spaces.choices import Ordinal, _check_scalars
from bounce.spaces.kinds import Codes, When, check_name, checked_when, plain
from bounce.spaces.members import Members, counted, some_of
from bounce.trial import Scalar

MOST_PARTS = 10_000  # steps in the total of a mixture
ROUNDING = 1e-3  # of a step: how far a fraction may be from a multiple of it, as in single precision


@dataclass(frozen=True, repr=False)
class Mixture(Members):
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
        object.__setattr__(self, "most", n if self.most is None else counted(self.name, "most", self.most, 1, n))
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
        assert self.step is not None
        fits = (
            isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= self.total + self.step
        )
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
        return some_of(moved[self.valid(moved)], rng=rng)

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
