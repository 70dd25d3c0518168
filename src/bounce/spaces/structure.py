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
from bounce.spaces.grammar import mistake
from bounce.spaces.kinds import Codes, Kind, Parameter
from bounce.spaces.numbers import rounded
from bounce.spaces.planes import Halfspaces
from bounce.spaces.walks import Walks

if TYPE_CHECKING:
    from bounce.spaces.space import Space

Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]

ROUNDS = 16  # of drawing points, before a walk from known ones takes over
AT_ONCE = 256  # points drawn at least in each of these rounds
PAIRS = 64  # pairs of changes that are tried together
FROM_HIDDEN = 0.25  # the share of points from walks of these many steps that begin where random points hardly ever are
HIDDEN_STEPS = 40


class Structure:
    """What composites, conditions and constraints ask of codes."""

    def __init__(self, space: Space) -> None:
        self.space = space
        names = [parameter.name for parameter in space.parameters]
        self._linear: dict[Expression, Halfspaces | None] = {}
        self._place = {name: i for i, name in enumerate(names)}
        self._order = self._sorted_conditions()
        self.composites: list[tuple[Columns, Composite]] = [
            (self._slot(i), parameter) for i, parameter in enumerate(space.parameters) if space.is_composite(parameter)
        ]
        self.rest = self._resting_codes()
        """The codes (D,) of inactive variables."""

    def _slot(self, i: int) -> Columns:
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
        needed: dict[int, dict[str, set[float]]] = {}
        for i in order:
            needed[i] = {space.parameters[at].name: set(codes.tolist()) for at, _, codes in found[i]}
            for at, *_ in found[i]:
                for name, some in needed.get(at, {}).items():
                    needed[i][name] = needed[i].get(name, some) & some
                    if not needed[i][name]:
                        raise InvalidSpace(
                            f"{space.parameters[i].name!r} can never be active: its conditions, and those of the "
                            f"parameters that it depends on, need different values of {name!r}",
                            parameter=space.parameters[i].name,
                            key="when",
                        )
        return [(self._slot(i), found[i]) for i in order]

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
        columns = [self.columns_of(constraint) for constraint in self.constraints]
        return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *columns]))

    def columns_of(self, constraint: Constraint) -> Columns:
        """Return the columns that a constraint names: all, if it is a function."""
        if isinstance(constraint, Function):
            return np.arange(len(self.space))
        return np.array(sorted(self._sources[name][0] for name in constraint.names), dtype=np.intp)

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

    @property
    def variables(self) -> dict[str, tuple[int, Parameter, NDArray[Any] | None]]:
        """Per name in constraints: column, variable, and its values by code, None for a real."""
        return {name: (column, variable, table) for name, (column, _, variable, table) in self._sources.items()}

    @property
    def conditioned(self) -> bool:
        """Whether there are conditions."""
        return bool(self._order)

    def check_constants(self) -> None:
        """Refuse an expression that compares a parameter with a value that it never takes, such as a typo.

        And one in which a number or a string stands for true or false.
        """
        for constraint in self.constraints:
            for stated in constraint.stated if isinstance(constraint, Expression) else ():
                table = self._sources[stated.name][3]
                if table is None or table.dtype != bool:
                    number = table is None or table.dtype != object
                    what = (
                        f"a number: compare it, as in '{stated.name} > 0'" if number else "a choice: compare it by =="
                    )
                    raise mistake(str(constraint), stated.at, f"{stated.name!r} is not true or false but {what}")
            for name, constants in constraint.compared.items() if isinstance(constraint, Expression) else ():
                _, _, variable, table = self._sources[name]
                if table is None or variable.type not in ("categorical", "ordinal"):
                    text = next((x for x in constants if isinstance(x, str)), None)
                    if text is not None:
                        takes = "True or False" if variable.kind is Kind.BINARY else "a number"
                        raise InvalidSpace(
                            f"the constraint {str(constraint)!r} compares {name!r} with {text!r}, but its value is "
                            f"{takes}"
                        )
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
            return np.asarray(scale.steps.numbers(rungs))
        if scale.log:
            return np.asarray(np.exp(np.log(scale.low) * (1.0 - own) + np.log(scale.high) * own))
        return np.asarray(scale.low * (1.0 - own) + scale.high * own)

    def _halfspaces(self, expression: Expression) -> Halfspaces | None:
        """Return a constraint as linear inequalities; None if it says something else."""
        if expression not in self._linear:
            own = {name: self.variables[name] for name in expression.names}
            self._linear[expression] = Halfspaces.of(expression, own, self.space.cardinalities)
        return self._linear[expression]

    def judged(
        self, constraint: Constraint, codes: Codes, *, exact: bool = False, graded: bool = False
    ) -> NDArray[Any]:
        """Return which rows satisfy a constraint, or by how much they do not."""
        if isinstance(constraint, Function):
            holds = constraint.holds(self.space.decode(codes))
            return np.where(holds, 0.0, 1.0) if graded else holds
        halfspaces = self._halfspaces(constraint)
        if graded or halfspaces is None:
            columns = {name: self._values(name, codes, exact) for name in constraint.names}
            found = constraint.violation(columns) if graded else constraint.holds(columns)
        else:  # much faster, and the same
            found, sure = halfspaces.judged(codes)
            rows = np.flatnonzero(~sure)
            if rows.size:
                columns = {name: self._values(name, codes[rows], exact) for name in constraint.names}
                found[rows] = constraint.holds(columns)
        if self._order:  # a constraint on something inactive holds
            active = self.active(codes)[:, [self._sources[name][0] for name in sorted(constraint.names)]].all(axis=1)
            found = np.where(active, found, 0.0 if graded else True)
        return found

    def holds_on(self, expression: Expression, columns: Columns, axes: Sequence[Codes]) -> Mask:
        """Return where an expression holds on all combinations of codes of the columns that it names."""
        grids = np.meshgrid(*(np.arange(len(axis)) for axis in axes), indexing="ij")
        values = {}
        for name in expression.names:
            place = int(np.flatnonzero(columns == self._sources[name][0])[0])
            rows = np.tile(self.rest, (len(axes[place]), 1))
            rows[:, columns[place]] = axes[place]
            values[name] = self._values(name, rows, exact=True)[grids[place].ravel()]
        return expression.holds(values)

    def satisfied(self, codes: Codes, *, exact: bool = True) -> Mask:
        """Return which canonical codes satisfy all constraints."""
        good = np.ones(len(codes), dtype=bool)
        for constraint in self.constraints:
            rows = np.flatnonzero(good)
            if not rows.size:
                break
            good[rows] = self.judged(constraint, codes[rows], exact=exact)
        return good

    def broken(self, codes: Codes) -> Constraint | None:
        """Return the first constraint that a point (D,) does not satisfy."""
        return next((c for c in self.constraints if not self.judged(c, codes[None], exact=True)[0]), None)

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

    def drawn(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw canonical codes without regard to constraints."""
        codes = self.space.uniform(n, rng=rng)
        for columns, composite in self.composites:
            codes[:, columns] = composite.draw(n, rng=rng)
        return self.canonical(codes)

    def draw(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw points, with replacement: by rejection, and where that finds too few, by walks from known ones."""
        codes = self.drawn(n, rng=rng)
        if not self.constraints:
            return codes
        codes, hidden = self._completed(codes, rng=rng), self.walks.hidden
        if len(hidden):
            rows = np.flatnonzero(rng.random(n) < FROM_HIDDEN)
            codes[rows] = self.walks.walked(hidden[rng.integers(0, len(hidden), len(rows))], HIDDEN_STEPS, rng=rng)
        return codes

    def _completed(self, codes: Codes, *, rng: np.random.Generator) -> Codes:
        """Return as many points as there are random codes: those of them that are allowed, then further ones."""
        n = len(codes)
        found = [codes[self.allowed(codes, exact=False)]]
        for _ in range(ROUNDS):
            if sum(map(len, found)) >= n or self.walks.rare:
                break
            codes = self.drawn(max(n, AT_ONCE), rng=rng)
            found.append(codes[self.allowed(codes, exact=False)])
        rows = np.concatenate(found)[:n]
        rows = rows[self.allowed(rows)]
        return rows if len(rows) == n else np.concatenate([rows, self.walks.drawn(n - len(rows), rng=rng)])

    @cached_property
    def walks(self) -> Walks:
        """What finds allowed points where drawing does not."""
        return Walks(self)

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
                        rows += [np.where(woken, drawn, row) for drawn in self.drawn(2, rng=rng)]
        return np.array(rows).reshape(len(rows), len(codes))

    def _paired(self, codes: Codes, active: Mask, *, rng: np.random.Generator) -> Codes:
        """Return a point with two constrained variables changed: what one alone may not do, both may."""
        space = self.space
        plain = np.setdiff1d(np.intersect1d(self.constrained, space.combinatorial), self.composite_columns)
        plain = plain[active[plain]]
        listed = [table.into(np.tile(codes, (PAIRS, 1)), rng=rng) for table in self.walks.listed]
        if len(plain) < 2:
            return np.concatenate([np.empty((0, len(codes))), *listed])
        rows = np.tile(codes, (PAIRS, 1))
        pairs = np.argsort(rng.random((PAIRS, len(plain))), axis=1)[:, :2]
        for place in (0, 1):
            columns = plain[pairs[:, place]]
            cards = space.cardinalities[columns]
            shift = 1 + np.floor(rng.random(PAIRS) * (cards - 1))
            rows[np.arange(PAIRS), columns] = (codes[columns] + shift) % cards
        return np.concatenate([rows, *listed])


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
