"""Walks: how allowed points are found where random points are not.

Where constraints exclude nearly everything, points come from three sources: corners of what the linear constraints
allow, drawn points that break constraints less and less, and random walks from points that are known. A step changes
one parameter, or two variables of one constraint so that a sum or a count may stay what it is, or all variables of a
constraint whose combinations are listed, or moves all reals and brings them back onto the linear constraints.

The invariant: `witnesses` and the ends of walks are allowed.

Shapes: codes (n, D); G groups, the variables that one constraint names.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.spaces.combinations import Combinations, combinations
from bounce.spaces.constraints import Constraint, Function
from bounce.spaces.expressions import Expression
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.planes import Planes

if TYPE_CHECKING:
    from bounce.spaces.structure import Structure

Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]

DRAWN, ROUNDS = 2048, 4  # points drawn at once in search of witnesses, and how often
WITNESSES = 64  # points that are known to be allowed, at most
CORNERS = 16  # of what the linear constraints allow
DESCENT, PER_VARIABLE = 400, 25  # steps towards an allowed point, and as many more for each constrained variable
LONGEST = 4000  # of these steps, at most
SWEEPS = 100  # of projections onto the linear constraints, at most
WALK, LONGEST_WALK = 20, 220  # steps of a walk, and two more for each variable that is apart, up to this
DECADES = 3.0  # a real moves by up to its range, or by up to this many powers of ten less
TOGETHER = 0.4  # the share of steps that change two variables
SHOWN = 100  # characters of a constraint in a message
LISTED = 0.2  # the share of steps that take a listed combination of values, where there are any
PROJECTED = 0.1  # the share of those that move all reals
HIDDEN = 0.02  # the share of random points with some value of a switch that are allowed, below which it is hidden
REPAIRS, CALLS = 400, 50  # steps towards an allowed point, of each of many; fewer if a function is called for each


class Walks:
    """What finds allowed points of a structure with constraints."""

    def __init__(self, structure: Structure) -> None:
        self.structure, self.space = structure, structure.space

    @cached_property
    def _parts(self) -> list[Constraint]:
        """The constraints, those that `and` or a chain of comparisons joins one by one.

        With conditions they stay together: a constraint that names something inactive holds as a whole.
        """
        if self.structure.conditioned:
            return list(self.structure.constraints)
        return [p for c in self.structure.constraints for p in (c.parts if isinstance(c, Expression) else (c,))]

    @cached_property
    def _groups(self) -> list[Columns]:
        """The columns of each of these."""
        return [self.structure.columns_of(part) for part in self._parts]

    @cached_property
    def planes(self) -> Planes:
        """The linear inequalities that the constraints imply."""
        expressions = [c for c in self.structure.constraints if isinstance(c, Expression)]
        return Planes.of(expressions, self.structure.variables, self.space.cardinalities)

    @cached_property
    def listed(self) -> tuple[Combinations, ...]:
        """The combinations of constraints that allow few, where random points seldom meet them."""
        scarce = not self.structure.conditioned and len(self._found) < WITNESSES
        return combinations(self.structure, self._parts) if scarce else ()

    # Steps

    def _stepped(self, rows: Codes, groups: NDArray[np.intp] | None = None, *, rng: np.random.Generator) -> Codes:
        """Return rows after one step each, for the sake of these constraints if they are given."""
        n = len(rows)
        kind = rng.random(n)
        stepped = np.where((kind < 1.0 - TOGETHER)[:, None], self._single(rows, groups, rng=rng), rows)
        pairs = np.flatnonzero(kind >= 1.0 - TOGETHER)
        stepped[pairs] = self._pair(rows[pairs], None if groups is None else groups[pairs], rng=rng)
        if len(self.planes) and len(self.space.reals):
            shaken = np.flatnonzero(kind < PROJECTED)
            moved = rows[shaken]
            moved[:, self.space.reals] += self._scales(len(shaken), rng=rng) * rng.normal(
                size=(len(shaken), len(self.space.reals))
            )
            moved[:, self.space.reals] = np.clip(moved[:, self.space.reals], 0.0, 1.0)
            stepped[shaken] = self.planes.onto(moved, sweeps=3)
        if self.listed:
            drawn = np.where(rng.random(n) < LISTED, rng.integers(0, len(self.listed), n), -1)
            for i, table in enumerate(self.listed):
                stepped[drawn == i] = table.into(rows[drawn == i], rng=rng)
        return self.structure.canonical(stepped)

    @staticmethod
    def _scales(n: int, *, rng: np.random.Generator) -> Codes:
        return np.asarray(10.0 ** (-DECADES * rng.random((n, 1))))

    def _single(self, rows: Codes, groups: NDArray[np.intp] | None, *, rng: np.random.Generator) -> Codes:
        """Return rows with one parameter of each drawn again, or moved a little."""
        n, slots = len(rows), np.array(self.space.slots)
        if groups is None:
            chosen = slots[rng.integers(0, len(slots), n)]
        else:
            column = self._columns(groups, 1, rng=rng)[:, 0]
            chosen = slots[np.searchsorted(slots[:, 1], column, side="right")]
        columns = np.arange(rows.shape[1])
        mask = (columns >= chosen[:, :1]) & (columns < chosen[:, 1:])
        fresh = self.structure.drawn(n, rng=rng)
        near = rng.random((n, 1)) < 0.5
        shaken = on_grid(np.clip(rows + self._scales(n, rng=rng) * rng.normal(size=rows.shape), 0.0, 1.0))
        real = np.isin(columns, self.space.reals)
        stepped = np.where(mask, np.where(near & real, shaken, fresh), rows)
        for own, composite in self.structure.composites:
            close = np.flatnonzero(near[:, 0] & mask[:, own[0]])
            if close.size:
                stepped[np.ix_(close, own)] = composite.stepped(rows[np.ix_(close, own)], rng=rng)
        return stepped

    def _columns(self, groups: NDArray[np.intp], count: int, *, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return columns (n, count) of groups, each as likely; two may be the same."""
        sizes = np.array([len(group) for group in self._groups])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.floor(rng.random((len(groups), count)) * sizes[groups, None]).astype(np.intp)
        columns: NDArray[np.intp] = np.concatenate(self._groups)[starts[groups, None] + place]
        return columns

    def _pair(self, rows: Codes, groups: NDArray[np.intp] | None, *, rng: np.random.Generator) -> Codes:
        """Return rows with two variables of one constraint changed, often so that a sum stays what it is."""
        n = len(rows)
        if groups is None:
            groups = rng.integers(0, len(self._groups), n)
        a, b = self._columns(groups, 2, rng=rng).T
        each, cards = np.arange(n), self.space.cardinalities
        moved, at_a, at_b = rows.copy(), rows[each, a], rows[each, b]
        fresh_a, fresh_b = (np.floor(rng.random(n) * cards[j]) for j in (a, b))
        step = rng.choice([-1.0, 1.0], n)
        swap = rng.random(n) < 0.5
        swap |= self._categorical[a]
        new_a = np.where(swap, at_b, at_a + step)
        new_b = np.where(swap, at_a, at_b - step)
        unequal = (cards[a] != cards[b]) & swap
        new_a, new_b = np.where(unequal, fresh_a, new_a), np.where(unequal, fresh_b, new_b)
        real_a, real_b = cards[a] == 0, cards[b] == 0
        length = (self._scales(n, rng=rng) * rng.normal(size=(n, 1)))[:, 0]
        slope_a, slope_b = self._slopes[groups, a], self._slopes[groups, b]
        new_a = np.where(real_a, at_a + length * np.where(real_b, slope_b, 1.0), new_a)
        new_b = np.where(real_b, at_b - length * np.where(real_a, slope_a, 1.0), new_b)
        top = np.maximum(cards - 1.0, 1.0)
        moved[each, a] = np.clip(np.where(real_a, on_grid(new_a), new_a), 0.0, top[a])
        moved[each, b] = np.where(a == b, moved[each, b], np.clip(np.where(real_b, on_grid(new_b), new_b), 0.0, top[b]))
        composite = np.isin(a, self.structure.composite_columns) | np.isin(b, self.structure.composite_columns)
        return np.where(composite[:, None], rows, moved)

    @cached_property
    def _categorical(self) -> Mask:
        return np.array([kind is Kind.CATEGORICAL for kind in self.space.kinds], dtype=bool)

    @cached_property
    def _slopes(self) -> Codes:
        """What each variable adds to each constraint (G, D), as a share of the most; 1 where it is not linear."""
        slopes = np.ones((len(self._parts), len(self.space)))
        for row, part in zip(slopes, self._parts, strict=True):
            planes = Planes.of([part] if isinstance(part, Expression) else [], self.structure.variables, self._cards)
            if len(planes):
                row[:] = planes.weights[0] / np.abs(planes.weights[0]).max()
        return slopes

    @property
    def _cards(self) -> NDArray[np.intp]:
        return self.space.cardinalities

    # Walks

    def walked(
        self, rows: Codes, steps: NDArray[np.intp] | int, *, within: Any = None, rng: np.random.Generator
    ) -> Codes:
        """Return the ends of random walks of some steps each, which go where `within` says and points are allowed."""
        begun, left = rows, np.broadcast_to(np.asarray(steps), (len(rows),))
        for step in range(int(left.max(initial=0))):
            going = np.flatnonzero(left > step)
            tried = self._stepped(rows[going], rng=rng)
            good = self.structure.allowed(tried, exact=False)
            if within is not None:
                good &= within(tried)
            rows = rows.copy()
            rows[going[good]] = tried[good]
        moved = np.flatnonzero((rows != begun).any(axis=1))
        ends = begun.copy()
        ends[moved] = np.where(self.structure.allowed(rows[moved])[:, None], rows[moved], begun[moved])
        return ends

    def _allowed(self, codes: Codes) -> Mask:
        """Return which codes are allowed, with exact values only of those that nearly are: these take long."""
        good = self.structure.allowed(codes, exact=False)
        good[good] = self.structure.allowed(codes[good])
        return good

    def drawn(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Return the ends of walks from witnesses."""
        rows = self.witnesses[rng.integers(0, len(self.witnesses), n)]
        return self.walked(rows, self._length, rng=rng)

    @property
    def _length(self) -> int:
        return min(LONGEST_WALK, 2 * len(self.structure.apart) + WALK)

    def check(self) -> None:
        """Refuse a space of which no point can be found."""
        if not len(self._found):
            _ = self.witnesses

    @cached_property
    def _found(self) -> Codes:
        """Points that random draws find."""
        rng = np.random.default_rng(0)
        found = [np.empty((0, len(self.space)))]
        for _ in range(ROUNDS):
            codes = self.structure.drawn(DRAWN, rng=rng)
            found.append(codes[self._allowed(codes)])
            if sum(map(len, found)) >= WITNESSES:
                break
        return np.concatenate(found)[:WITNESSES]

    @cached_property
    def witnesses(self) -> Codes:
        """Points that are known to be allowed; an error if none can be found."""
        rows = self._found
        if len(rows) == WITNESSES:
            return rows
        rng = np.random.default_rng(1)
        drawn = self.structure.drawn(DRAWN, rng=rng)
        few = drawn[:WITNESSES]
        moved = [self.planes.onto(few, SWEEPS), self.planes.corners(few[:CORNERS], rng=rng)]
        if self.listed:
            listed = few
            for table in self.listed:
                listed = table.into(listed, rng=rng)
            moved.append(listed)
        starts = [rows, *map(self.structure.canonical, [*moved, self._as_listed]), drawn]
        rows = self._descended(np.concatenate(starts), drawn, rng=rng)
        return self.walked(np.resize(rows, (WITNESSES, len(self.space))), self._length, rng=rng)

    @property
    def _as_listed(self) -> Codes:
        """A point whose permutations have their items in the order in which they are listed, if there are any."""
        columns = [own for own, composite in self.structure.composites if composite.type == "permutation"]
        row = self.structure.rest[None].copy()
        row[:, np.concatenate([np.empty(0, dtype=np.intp), *columns])] = 1.0
        return row if columns else row[:0]

    @property
    def rare(self) -> bool:
        """Whether hardly any random point is allowed, so that drawing them is a waste."""
        return not len(self._found)

    def _descended(self, codes: Codes, drawn: Codes, *, rng: np.random.Generator) -> Codes:
        """Return allowed points that are found by breaking constraints less and less."""
        violations = self._violations(codes)
        best = np.argsort(violations.sum(axis=1), kind="stable")[:WITNESSES]
        rows, violations = codes[best], violations[best]
        for _ in range(self._patience):
            good = rows[violations.sum(axis=1) == 0]
            good = good[self.structure.allowed(good)]
            if len(good):
                return np.asarray(good)
            rows, violations = self._lowered(rows, violations, rng=rng)
        judged = [(1.0 - float(np.mean(self.structure.judged(c, drawn))), c) for c in self.structure.constraints]
        share, worst = max(judged, key=lambda pair: pair[0])
        raise InvalidSpace(
            f"no point that satisfies all constraints was found. The constraint {_shortened(str(worst))} "
            f"excludes most: {100 * share:.3g} % of {len(drawn):,} random points{self._advice(worst)}"
        )

    def _lowered(
        self, rows: Codes, violations: NDArray[np.float64], *, rng: np.random.Generator
    ) -> tuple[Codes, NDArray[np.float64]]:
        """Return rows after one step each that breaks the constraints no more than before, and by how much they do."""
        broken: Mask = violations > 0
        broken = broken | ~np.asarray(broken.any(axis=1))[:, None]
        groups = np.argmax(broken * rng.random(broken.shape), axis=1)
        tried = self._stepped(rows, groups, rng=rng)
        new = self._violations(tried)
        better = new.sum(axis=1) <= violations.sum(axis=1)
        return np.where(better[:, None], tried, rows), np.where(better[:, None], new, violations)

    def repaired(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return allowed points that some canonical rows become by small steps: of each row one, if it gets there."""
        violations = self._violations(rows)
        called = any(isinstance(part, Function) for part in self._parts)
        for _ in range(CALLS if called else REPAIRS):
            left = np.flatnonzero(violations.sum(axis=1) > 0)
            if not left.size:
                break
            rows[left], violations[left] = self._lowered(rows[left], violations[left], rng=rng)
        return rows[self._allowed(rows)]

    @cached_property
    def hidden(self) -> Codes:
        """Allowed points with values of switches that random points hardly ever have, since a constraint excludes them.

        If 25 bits exist with one solvent only, and at most 3 of them may be on, random points have other solvents.
        """
        structure, rng = self.structure, np.random.default_rng(2)
        found = [np.empty((0, len(self.space)))]
        if not len(structure.switches):
            return found[0]
        codes = structure.drawn(DRAWN, rng=rng)
        good, active = structure.allowed(codes, exact=False), structure.active(codes)
        for column in structure.switches.tolist():
            for code in range(int(self.space.cardinalities[column])):
                own = active[:, column] & (codes[:, column] == code)
                if not own.any() or good[own].mean() >= HIDDEN:
                    continue
                rows = codes[own][:WITNESSES]
                alone = [c for c in structure.constraints if structure.columns_of(c).tolist() == [column]]
                if all(structure.judged(c, rows[:1])[0] for c in alone):  # otherwise there is no such point
                    rows = self.repaired(rows, rng=rng)
                    found.append(rows[rows[:, column] == code])
        return np.concatenate(found)

    def _advice(self, constraint: Constraint) -> str:
        """Return what to do about a constraint that says nothing about the way to where it holds."""
        if isinstance(constraint, Function):
            return ". If you can, write it as an expression, which says how far a point is from being allowed"
        variables = [self.space.variables[j] for j in self.structure.columns_of(constraint).tolist()]
        if "==" in constraint.text and any(variable.size == math.inf for variable in variables):
            return ". Reals hardly ever meet an equation: allow a difference, as in 'abs(a * b - 10) <= 0.01'"
        return ""

    @property
    def _patience(self) -> int:
        """How many steps a descent has; few if a function is called for each, which says nothing about the way."""
        if any(isinstance(part, Function) for part in self._parts):
            return DESCENT
        return min(LONGEST, DESCENT + PER_VARIABLE * len(self.structure.constrained))

    def _violations(self, codes: Codes) -> NDArray[np.float64]:
        """Return by how much codes break each constraint (n, G)."""
        columns = [self.structure.judged(part, codes, graded=True) for part in self._parts]
        return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} ... {text[-SHOWN // 2 :]}")
