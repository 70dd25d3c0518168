"""The structure of a space: which points there are, where not every combination of codes is one.

Three things make a structure: composites, whose variables go together; conditions, under which a parameter is active;
constraints, which exclude points. A space without any of them has no structure.

The invariant: `draw` and `moves` return only codes that are `canonical` and `allowed`.

Shapes: codes (n, D) for n points of D variables.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.spaces.composites import Composite
from bounce.spaces.constraints import Constraint, Function
from bounce.spaces.expressions import Expression
from bounce.spaces.kinds import Codes, Kind, Parameter, on_grid
from bounce.spaces.numbers import rounded

if TYPE_CHECKING:
    from bounce.spaces.space import Space

Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]

ROUNDS = 16  # of drawing points, before a walk from known ones takes over
AT_ONCE = 256  # points drawn at least in each of these rounds
WITNESSES = 64  # points that are known to be allowed, at most
DESCENT = 400  # steps towards an allowed point, if drawing finds none
PAIRS = 64  # pairs of changes that are tried together
STEP = 0.1  # of a real in a walk, as a share of its range


class Structure:
    """What composites, conditions and constraints ask of codes."""

    def __init__(self, space: Space) -> None:
        self.space = space
        names = [parameter.name for parameter in space.parameters]
        self._place = {name: i for i, name in enumerate(names)}
        self._order = self._sorted_conditions()
        self.composites: list[tuple[Columns, Composite]] = [
            (self._columns_of(i), parameter)
            for i, parameter in enumerate(space.parameters)
            if space.is_composite(parameter)
        ]
        self.rest = self._resting_codes()
        """The codes (D,) of inactive variables."""

    def _columns_of(self, i: int) -> Columns:
        start, stop = self.space.slots[i]
        return np.arange(start, stop)

    def _sorted_conditions(self) -> list[tuple[Columns, list[tuple[int, int, Codes]]]]:
        """Return, parents first, the columns of each conditional parameter and its conditions.

        A condition is the place of the other parameter, its column, and the codes with which this one is active.
        """
        space, found = self.space, dict[int, list[tuple[int, int, Codes]]]()
        for i, parameter in enumerate(space.parameters):
            if parameter.when is None:
                continue
            found[i] = []
            for name, values in dict(parameter.when).items():
                at = self._place.get(name)
                wrong = f"{parameter.name!r} depends on {name!r}, "
                if at is None:
                    raise InvalidSpace(f"{wrong}which is not a parameter", parameter=parameter.name, key="when")
                other = space.parameters[at]
                if space.is_composite(other) or other.kind is Kind.REAL:
                    raise InvalidSpace(
                        f"{wrong}which must be categorical, ordinal, binary or an integer with few values",
                        parameter=parameter.name,
                        key="when",
                    )
                try:
                    codes = np.array([other.encode(value) for value in values])
                except Exception as error:
                    raise InvalidSpace(f"{wrong}but {error}", parameter=parameter.name, key="when") from None
                found[i].append((at, space.slots[at][0], codes))
        order: list[int] = []
        while len(order) < len(found):
            ready = [i for i in found if i not in order and all(at in order or at not in found for at, *_ in found[i])]
            if not ready:
                circle = [space.parameters[i].name for i in found if i not in order]
                raise InvalidSpace(f"conditions must not go in a circle, as those of {', '.join(map(repr, circle))} do")
            order += ready
        return [(self._columns_of(i), found[i]) for i in order]

    def _resting_codes(self) -> Codes:
        """Return the codes (D,) that inactive variables have."""
        space = self.space
        rest = np.where(space.cardinalities > 0, (space.cardinalities - 1) // 2, 0.5).astype(np.float64)
        for columns, composite in self.composites:
            rest[columns] = composite.draw(1, rng=np.random.default_rng(0))[0]
        return rest

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints of the space."""
        return tuple(self.space.constraints)

    @cached_property
    def switches(self) -> Columns:
        """The columns on which conditions depend."""
        return np.unique([column for _, conditions in self._order for _, column, _ in conditions]).astype(np.intp)

    @cached_property
    def composite_columns(self) -> Columns:
        """The columns of composites."""
        return np.concatenate([np.empty(0, dtype=np.intp), *(columns for columns, _ in self.composites)])

    @cached_property
    def constrained(self) -> Columns:
        """The columns that constraints name; all, if one is a function."""
        if any(isinstance(constraint, Function) for constraint in self.constraints):
            return np.arange(len(self.space))
        names = {name for constraint in self.constraints for name in constraint.names}  # type: ignore[union-attr]
        return np.array(sorted(self._sources[name][0] for name in names), dtype=np.intp)

    @cached_property
    def apart(self) -> Columns:
        """The columns that never share a bin, so that every stage has all their allowed combinations."""
        conditional = [columns for columns, _ in self._order]
        return np.unique(
            np.concatenate([self.composite_columns, self.switches, self.constrained, *conditional])
        ).astype(np.intp)

    # Conditions

    def active(self, codes: Codes) -> Mask:
        """Return which variables (n, D) are active."""
        active = np.ones(codes.shape, dtype=bool)
        for columns, conditions in self._order:
            on = np.ones(len(codes), dtype=bool)
            for _, column, wanted in conditions:
                on &= active[:, column] & np.isin(codes[:, column], wanted)
            active[:, columns] = on[:, None]
        return active

    def canonical(self, codes: Codes) -> Codes:
        """Return codes in which every inactive variable rests, so that equal points have equal codes."""
        return np.where(self.active(codes), codes, self.rest) if self._order else codes

    # Constraints

    @cached_property
    def _sources(self) -> dict[str, tuple[int, int, Parameter, NDArray[Any] | None]]:
        """Per name in constraints: column, place of the parameter, the variable, and its values by code."""
        found: dict[str, tuple[int, int, Parameter, NDArray[Any] | None]] = {}
        for i, parameter in enumerate(self.space.parameters):
            start, stop = self.space.slots[i]
            if not self.space.is_composite(parameter):
                found[parameter.name] = (start, i, parameter, _table(parameter))
                continue
            composite: Any = parameter
            for column, variable in zip(range(start, stop), composite.variables, strict=True):
                scale = composite._values if parameter.type == "mixture" else (False, True)
                found[variable.name] = (column, i, variable, np.array(scale))
        return found

    def check_constants(self) -> None:
        """Refuse an expression that compares a categorical or ordinal parameter with a value that it never takes."""
        for constraint in self.constraints:
            for name, constants in constraint.compared.items() if isinstance(constraint, Expression) else ():
                _, _, variable, table = self._sources[name]
                if table is None or variable.type not in ("categorical", "ordinal"):
                    continue
                values = table.tolist()
                wrong = [x for x in constants if x not in values]
                if wrong:
                    near = difflib.get_close_matches(str(wrong[0]), [str(x) for x in values], n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise InvalidSpace(
                        f"the constraint {str(constraint)!r} compares {name!r} with {wrong[0]!r}, which is not one of "
                        f"its values, {values!r}{hint}"
                    )

    @property
    def names(self) -> list[str]:
        """The names that expressions may use: parameters, and the members of composites as `name.member`."""
        return list(self._sources)

    def _values(self, name: str, codes: Codes, exact: bool) -> NDArray[Any]:
        column, _, variable, table = self._sources[name]
        own = codes[:, column]
        if table is not None:
            return table[own.astype(np.intp)]
        scale: Any = variable
        if exact:
            unique, of = np.unique(own, return_inverse=True)
            return np.array([variable.decode(code) for code in unique])[of]
        if scale.cells is not None:
            rungs = rounded(own, scale.cells, scale.log, *scale.rungs)
            if scale.steps is None:  # whole numbers are their own rungs
                return np.asarray(rungs)
            return np.asarray(float(scale.steps.start) + rungs * float(scale.steps.step))
        if scale.log:
            return np.asarray(np.exp(np.log(scale.low) * (1.0 - own) + np.log(scale.high) * own))
        return np.asarray(scale.low * (1.0 - own) + scale.high * own)

    def _judged(self, constraint: Constraint, codes: Codes, *, exact: bool, graded: bool = False) -> NDArray[Any]:
        """Return which rows satisfy a constraint, or by how much they do not."""
        if isinstance(constraint, Function):
            holds = constraint.holds(self.space.decode(codes))
            return np.where(holds, 0.0, 1.0) if graded else holds
        columns = {name: self._values(name, codes, exact) for name in constraint.names}
        found = constraint.violation(columns) if graded else constraint.holds(columns)
        if self._order:  # a constraint on something inactive holds
            active = self.active(codes)[:, [self._sources[name][0] for name in sorted(constraint.names)]].all(axis=1)
            found = np.where(active, found, 0.0 if graded else True)
        return found

    def satisfied(self, codes: Codes, *, exact: bool = True) -> Mask:
        """Return which canonical codes satisfy all constraints."""
        good = np.ones(len(codes), dtype=bool)
        for constraint in self.constraints:
            rows = np.flatnonzero(good)
            if not rows.size:
                break
            good[rows] = self._judged(constraint, codes[rows], exact=exact)
        return good

    def broken(self, codes: Codes) -> Constraint | None:
        """Return the first constraint that a point (D,) does not satisfy."""
        return next((c for c in self.constraints if not self._judged(c, codes[None], exact=True)[0]), None)

    def allowed(self, codes: Codes, *, exact: bool = True) -> Mask:
        """Return which canonical codes are points of the space.

        Values of reals are those that a user sees. If not `exact`, they may differ from these by rounding.
        """
        good = np.ones(len(codes), dtype=bool)
        for columns, composite in self.composites:
            good &= composite.valid(codes[:, columns])
        rows = np.flatnonzero(good)
        good[rows] = self.satisfied(codes[rows], exact=exact)
        return good

    # Drawing

    def _drawn(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw canonical codes without regard to constraints."""
        codes = self.space.uniform(n, rng=rng)
        for columns, composite in self.composites:
            codes[:, columns] = composite.draw(n, rng=rng)
        return self.canonical(codes)

    def draw(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw points, with replacement: by rejection, and where that finds too few, by walks from known ones."""
        codes = self._drawn(n, rng=rng)
        if not self.constraints:
            return codes
        found = [codes[self.allowed(codes, exact=False)]]
        for _ in range(ROUNDS):
            if sum(map(len, found)) >= n:
                break
            codes = self._drawn(max(n, AT_ONCE), rng=rng)
            found.append(codes[self.allowed(codes, exact=False)])
        rows = np.concatenate(found)[:n]
        rows = rows[self.allowed(rows)]
        return rows if len(rows) == n else np.concatenate([rows, self._walked(n - len(rows), rng=rng)])

    def _walked(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Return points at the ends of random walks from known ones; a step outside is not made."""
        begun = rows = self.witnesses[rng.integers(0, len(self.witnesses), n)]
        for _ in range(2 * len(self.apart) + 20):
            tried = self._stepped(rows, rng=rng)
            good = self.allowed(tried, exact=False)
            rows = np.where(good[:, None], tried, rows)
        return np.where(self.allowed(rows)[:, None], rows, begun)

    def _stepped(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return rows with one parameter of each drawn again, or a real moved a little."""
        n = len(rows)
        fresh, slots = self._drawn(n, rng=rng), np.array(self.space.slots)
        chosen = slots[rng.integers(0, len(slots), n)]
        columns = np.arange(rows.shape[1])
        mask = (columns >= chosen[:, :1]) & (columns < chosen[:, 1:])
        near = rng.random((n, 1)) < 0.5
        shaken = on_grid(np.clip(rows + STEP * rng.normal(size=rows.shape), 0.0, 1.0))
        real = np.isin(columns, self.space.reals)
        return self.canonical(np.where(mask, np.where(near & real, shaken, fresh), rows))

    @cached_property
    def witnesses(self) -> Codes:
        """Points that are known to be allowed; an error if none can be found."""
        rng = np.random.default_rng(0)
        found = [np.empty((0, len(self.space)))]
        drawn = [self._drawn(8 * AT_ONCE, rng=rng) for _ in range(4)]
        for codes in drawn:
            found.append(codes[self.allowed(codes)])
            if sum(map(len, found)) >= WITNESSES:
                break
        rows = np.concatenate(found)[:WITNESSES]
        return rows if len(rows) else self._descended(drawn[0], rng=rng)

    def _descended(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return allowed points that are found by breaking constraints less and less."""
        violation = self._violation(codes)
        best = np.argsort(violation, kind="stable")[:WITNESSES]
        rows, violation = codes[best], violation[best]
        for _ in range(DESCENT):
            tried = self._stepped(rows, rng=rng)
            new = self._violation(tried)
            rows, violation = np.where((new <= violation)[:, None], tried, rows), np.minimum(new, violation)
            good = violation == 0
            if good.any() and self.allowed(rows[good]).any():
                return np.asarray(rows[good][self.allowed(rows[good])])
        shares = [(1.0 - float(np.mean(self._judged(c, codes, exact=False))), str(c)) for c in self.constraints]
        share, worst = max(shares)
        raise InvalidSpace(
            f"no point that satisfies all constraints was found. The constraint {worst!r} excludes most: "
            f"{100 * share:.3g} % of {len(codes):,} random points"
        )

    def _violation(self, codes: Codes) -> NDArray[np.float64]:
        total: NDArray[Any] = np.zeros(len(codes))
        for constraint in self.constraints:
            total = total + self._judged(constraint, codes, exact=False, graded=True)
        return np.asarray(total, dtype=np.float64)

    # Moves

    def moves(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return what one point (D,) can become by changes that only several variables can make together."""
        active = self.active(codes[None])[0]
        rows = [np.empty((0, len(codes)))]
        for columns, composite in self.composites:
            if active[columns[0]]:
                moved = composite.moves(codes[columns], rng=rng)
                block = np.tile(codes, (len(moved), 1))
                block[:, columns] = moved
                rows.append(block)
        rows.append(self._switched(codes, active, rng=rng))
        if self.constraints:
            rows.append(self._paired(codes, active, rng=rng))
        found = self.canonical(np.concatenate(rows))
        return found[self.allowed(found, exact=False)]

    def _switched(self, codes: Codes, active: Mask, *, rng: np.random.Generator) -> Codes:
        """Return a point with another value of a parameter on which others depend; these rest, or are drawn."""
        rows = []
        for column in self.switches[active[self.switches]].tolist():
            for code in range(int(self.space.cardinalities[column])):
                if code != codes[column]:
                    row = codes.copy()
                    row[column] = code
                    woken = self.active(row[None])[0] & ~active
                    rows.append(row)
                    if woken.any():
                        rows += [np.where(woken, drawn, row) for drawn in self._drawn(2, rng=rng)]
        return np.array(rows).reshape(len(rows), len(codes))

    def _paired(self, codes: Codes, active: Mask, *, rng: np.random.Generator) -> Codes:
        """Return a point with two constrained variables changed: what one alone may not do, both may."""
        space = self.space
        plain = np.setdiff1d(np.intersect1d(self.constrained, space.combinatorial), self.composite_columns)
        plain = plain[active[plain]]
        if len(plain) < 2:
            return np.empty((0, len(codes)))
        rows = np.tile(codes, (PAIRS, 1))
        pairs = np.argsort(rng.random((PAIRS, len(plain))), axis=1)[:, :2]
        for place in (0, 1):
            columns = plain[pairs[:, place]]
            cards = space.cardinalities[columns]
            shift = 1 + np.floor(rng.random(PAIRS) * (cards - 1))
            rows[np.arange(PAIRS), columns] = (codes[columns] + shift) % cards
        return rows

    # Linear constraints on reals

    @cached_property
    def planes(self) -> list[tuple[Columns, NDArray[np.float64], str]]:
        """The linear constraints whose variables are all reals on a linear scale: columns, coefficients, and text."""
        found = []
        for constraint in self.constraints:
            linear = constraint.linear() if isinstance(constraint, Expression) else None
            if linear is None:
                continue
            weights, _ = linear
            sources = [self._sources[name] for name in weights]
            if all(table is None and not variable.log for _, _, variable, table in sources):
                spans = np.array([variable.high - variable.low for _, _, variable, _ in sources])  # type: ignore[attr-defined]
                columns = np.array([column for column, *_ in sources], dtype=np.intp)
                found.append((columns, np.array(list(weights.values())) * spans, str(constraint)))
        return found

    def onto_planes(self, codes: Codes) -> Codes:
        """Return codes moved, as little as possible, to where each linear constraint on reals holds, one by one."""
        moved = codes.copy()
        linear = {str(c): c.linear() for c in self.constraints if isinstance(c, Expression)}
        for columns, weights, text in self.planes:
            known = linear[text]
            assert known is not None
            lows = np.array([self._sources[name][2].low for name in known[0]])  # type: ignore[attr-defined]
            bound = known[1] - float(np.array(list(known[0].values())) @ lows)
            excess = np.maximum(moved[:, columns] @ weights - (bound - 1e-9 * max(1.0, abs(bound))), 0.0)
            moved[:, columns] -= excess[:, None] * weights / float(weights @ weights)
        return on_grid(np.clip(moved, 0.0, 1.0))


def _table(variable: Parameter) -> NDArray[Any] | None:
    """Return the values of a variable by code, as an array that can be compared; None for a real."""
    if variable.kind is Kind.REAL:
        return None
    values = [variable.decode(code) for code in variable.all_codes()]
    numeric = all(isinstance(value, int | float) for value in values)
    table = np.empty(len(values), dtype=np.float64 if numeric and not _is_bool(values) else object)
    if _is_bool(values):
        table = np.empty(len(values), dtype=bool)
    table[:] = values
    return table


def _is_bool(values: Sequence[object]) -> bool:
    return all(isinstance(value, bool) for value in values)
