"""Spaces: points are dicts of native values outside, rows of codes inside.

The one place where native values and codes are converted. A parameter is one variable, or several if it is a
composite (a subset, a mixture, a permutation).

Shapes: codes (n, D) for n points of D variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidPoint, InvalidSpace
from bounce.spaces.constraints import Function, parsed
from bounce.spaces.kinds import Codes, Kind, Parameter, on_grid
from bounce.spaces.numbers import rounded
from bounce.spaces.outcomes import Limit, limits_of
from bounce.spaces.parameters import COMPOSITES, TYPES, document_of, parameter_from_dict
from bounce.spaces.structure import Structure

LISTED = 100_000  # points that are counted one by one, where a structure excludes some


@dataclass(frozen=True)
class Space:
    """An ordered collection of parameters with distinct names.

    `constraints` are expressions such as `"a + b <= 10"`, or functions of a point that return whether it is allowed. No
    other point is ever proposed.
    """

    parameters: Sequence[Any]
    """Of the types in `bounce.spaces.parameters`."""
    constraints: Sequence[Any] = field(default=(), kw_only=True)
    outcomes: Sequence[Limit | str] = field(default=(), kw_only=True)
    """What is measured beside the value, with its limits: `strength >= 30`, `1 <= ph <= 3`."""
    _names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.parameters, str | Mapping) or not isinstance(self.parameters, Iterable):
            raise InvalidSpace(f"a space takes a list of parameters, not {self.parameters!r}")
        parameters = tuple(self.parameters)
        if not parameters:
            raise InvalidSpace("a space needs at least one parameter, but the list is empty")
        for parameter in parameters:
            if not isinstance(parameter, tuple(TYPES.values())):
                types = ", ".join(t.__name__ for t in TYPES.values())
                raise InvalidSpace(f"a space takes parameters of these types: {types}; not {parameter!r}")
        names: set[str] = set()
        for parameter in parameters:
            if parameter.name in names:
                raise InvalidSpace(f"parameter names must be distinct, but {parameter.name!r} appears twice")
            names.add(parameter.name)
        parts = [v.name for p in parameters if self.is_composite(p) for v in p.variables]
        twice = next((name for name in parts if name in names or parts.count(name) > 1), None)
        if twice is not None:
            raise InvalidSpace(f"{twice!r} is the name of a member and of something else: rename one of them")
        limits = limits_of(self.outcomes)
        for limit in limits:
            if limit.name in names:
                raise InvalidSpace(f"{limit.name!r} is a parameter, so it cannot be an outcome")
        if limits and any(name.strip().lower() == "feasible" for name in names):
            raise InvalidSpace("with outcomes, tables have a column 'feasible': rename the parameter of that name")
        object.__setattr__(self, "outcomes", limits)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "_names", frozenset(names))
        given = self.constraints
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise InvalidSpace(f"constraints must be a list, not {given!r}")
        object.__setattr__(self, "constraints", tuple(given))
        if self.constraints:
            object.__setattr__(self, "constraints", parsed(self.constraints, Structure(self).names))
        structure = self.structure
        if structure is not None and not any(isinstance(c, Function) and c.call is None for c in self.constraints):
            structure.check_constants()
            structure.walks.check()

    def __len__(self) -> int:
        return len(self.variables)

    @cached_property
    def variables(self) -> tuple[Parameter, ...]:
        """The variables, one code each: the parameters, and the parts of composites."""
        return tuple(v for p in self.parameters for v in (p.variables if self.is_composite(p) else (p,)))

    @cached_property
    def slots(self) -> tuple[tuple[int, int], ...]:
        """The first column of each parameter, and that after its last."""
        counts = [len(p.variables) if self.is_composite(p) else 1 for p in self.parameters]
        stops = np.cumsum(counts).tolist()
        return tuple(zip([0, *stops[:-1]], stops, strict=True))

    @staticmethod
    def is_composite(parameter: Parameter) -> bool:
        """Return whether a parameter is several variables."""
        return isinstance(parameter, COMPOSITES)

    @cached_property
    def structure(self) -> Structure | None:
        """What not every combination of codes satisfies; None if all are points."""
        composite = any(self.is_composite(parameter) for parameter in self.parameters)
        conditional = any(parameter.when is not None for parameter in self.parameters)
        return Structure(self) if composite or conditional or self.constraints else None

    @cached_property
    def apart(self) -> NDArray[np.intp]:
        """The columns of variables that never share a bin with others."""
        return np.empty(0, dtype=np.intp) if self.structure is None else self.structure.apart

    def __contains__(self, point: object) -> bool:
        try:
            self.encode([point])  # type: ignore[list-item]
        except InvalidPoint:
            return False
        return True

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits on outcomes."""
        return self.outcomes  # type: ignore[return-value]

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each variable."""
        return tuple(variable.kind for variable in self.variables)

    @cached_property
    def cardinalities(self) -> NDArray[np.intp]:
        """The number of codes of each variable, 0 for reals."""
        return np.array([variable.cardinality for variable in self.variables], dtype=np.intp)

    def of_kind(self, *kinds: Kind) -> NDArray[np.intp]:
        """Return the columns of the variables of some kinds."""
        if len(kinds) == 1:
            return self._columns[kinds[0]]
        return np.sort(np.concatenate([self._columns[kind] for kind in kinds]))

    @cached_property
    def _columns(self) -> dict[Kind, NDArray[np.intp]]:
        return {kind: np.array([j for j, own in enumerate(self.kinds) if own is kind], dtype=np.intp) for kind in Kind}

    @cached_property
    def reals(self) -> NDArray[np.intp]:
        """The columns of the real variables."""
        return self.of_kind(Kind.REAL)

    @cached_property
    def combinatorial(self) -> NDArray[np.intp]:
        """The columns of all other variables."""
        return self.of_kind(Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)

    @cached_property
    def combinatorial_kinds(self) -> tuple[Kind, ...]:
        """The kinds of the combinatorial variables, in an order that states rely on."""
        return tuple(k for k in (Kind.BINARY, Kind.CATEGORICAL, Kind.ORDINAL) if len(self.of_kind(k)))

    @cached_property
    def is_mixed(self) -> bool:
        """Whether there are reals and others."""
        return bool(len(self.reals) and len(self.combinatorial))

    @cached_property
    def size(self) -> float:
        """The number of points: an integer, or infinity; an upper bound, if there are conditions or constraints."""
        if any(parameter.size == math.inf for parameter in self.parameters):
            return math.inf
        product = math.prod(int(parameter.size) for parameter in self.parameters)
        listable = math.prod(int(variable.size) for variable in self.variables) <= LISTED
        if self.structure is None or not listable or any(isinstance(c, Function) for c in self.constraints):
            return product
        codes = self.structure.canonical(self.grid())
        return len(set(self.keys(codes[self.structure.allowed(codes)])))

    def encode(self, points: Iterable[Mapping[str, Any]]) -> Codes:
        """Turn points (dicts of native values) into codes; refuse one that breaks a constraint."""
        if isinstance(points, str | Mapping) or not isinstance(points, Iterable):
            raise InvalidPoint(f"encode takes a list of points, not {points!r}")
        rows = np.array([self._row(point) for point in points], dtype=np.float64).reshape(-1, len(self))
        if self.constraints and self.structure is not None:
            for row in rows[~self.structure.satisfied(rows)]:
                raise InvalidPoint(f"the point breaks the constraint {str(self.structure.broken(row))!r}")
        return rows

    def _row(self, point: Mapping[str, Any]) -> list[float]:
        """Return the codes of one point."""
        if not isinstance(point, Mapping):
            raise InvalidPoint(f"a point must be a dict of values by name, not {point!r}")
        active = self.active_names(point) if self.structure is not None else self._names
        missing = [p.name for p in self.parameters if p.name not in point and p.name in active]
        unknown = [name for name in point if name not in self._names]
        if missing or unknown:
            raise InvalidPoint(
                f"a point must name every parameter and nothing else: missing {missing!r}, unknown {unknown!r}"
            )
        codes: list[float] = []
        for parameter, (start, stop) in zip(self.parameters, self.slots, strict=True):
            if parameter.name not in active:
                if point.get(parameter.name) is not None:
                    raise InvalidPoint(
                        f"{parameter.name!r} is inactive here: it needs {shown_condition(parameter)}. Leave it out",
                        parameter=parameter.name,
                    )
                codes += self.structure.rest[start:stop].tolist()  # type: ignore[union-attr]
                continue
            code: Any = parameter.encode(point[parameter.name])
            codes += code if self.is_composite(parameter) else [code]
        return codes

    def active_names(self, point: Mapping[str, Any]) -> frozenset[str]:
        """Return the parameters that are active with the values of a point, which may leave some out."""
        known: dict[str, bool] = {}
        parameters = {parameter.name: parameter for parameter in self.parameters}

        def active(name: str) -> bool:
            if name not in known:
                conditions = dict(parameters[name].when or ())
                known[name] = all(
                    active(other) and point.get(other) is not None and self._among(parameters[other], point[other], on)
                    for other, on in conditions.items()
                )
            return known[name]

        return frozenset(name for name in parameters if active(name))

    def partial(self, point: Mapping[str, Any]) -> tuple[Codes, dict[str, Any], tuple[str, ...]]:
        """Return codes (D,) of a point that leaves parameters out, its known values, and what is open.

        A parameter that is given but active only with some value of another one decides that one too.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        known = dict(point) | self._implied(point)
        active = self.active_names(known)
        maybe = {
            name: all(
                other not in known or self._among(parameters[other], known[other], values)
                for other, values in dict(parameter.when or ()).items()
            )
            for name, parameter in parameters.items()
        }
        for name in point:
            if name not in active:
                raise InvalidPoint(
                    f"{name!r} is inactive here: it needs {shown_condition(parameters[name])}. Leave it out",
                    parameter=name,
                )
        base = np.zeros(len(self)) if self.structure is None else self.structure.rest.copy()
        for parameter, (start, stop) in zip(self.parameters, self.slots, strict=True):
            if parameter.name in known:
                base[start:stop] = parameter.encode(known[parameter.name])
            elif self.structure is None:
                base[start] = parameter.encode(parameter.decode(0.0))
        free = tuple(name for name in parameters if name not in known and maybe[name])
        return base, {name: known[name] for name in parameters if name in known}, free

    def _implied(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of what a point leaves out, with which the parameters that it has are active, if there are any.

        Of several values that all of them allow, it is the first.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        allowed: dict[str, set[float]] = {}
        waiting = list(point)
        while waiting:
            for other, values in dict(parameters[waiting.pop()].when or ()).items():
                if other in point:
                    continue
                codes = {float(parameters[other].encode(value)) for value in values}
                if other not in allowed:
                    waiting.append(other)
                allowed[other] = allowed.get(other, codes) & codes
        return {name: parameters[name].decode(min(codes)) for name, codes in allowed.items() if codes}

    def completed(self, codes: Codes, free: Iterable[str], n: int, *, rng: np.random.Generator) -> Codes:
        """Return up to n points with the codes (D,) of one, and what is free in it drawn."""
        return self.merged(codes, free, self.sample(n, rng=rng))

    def merged(self, codes: Codes, free: Iterable[str], others: Codes, *, checked: bool = True) -> Codes:
        """Return what takes what is free in codes (D,) from other points: what is allowed, or all of it."""
        names = set(free)
        slots = zip(self.parameters, self.slots, strict=True)
        columns = [j for parameter, (start, stop) in slots if parameter.name in names for j in range(start, stop)]
        rows = np.tile(codes, (len(others), 1))
        rows[:, columns] = others[:, columns]
        if self.structure is None:
            return rows
        rows = self.structure.canonical(rows)
        return rows[self.structure.allowed(rows)] if checked else rows

    @staticmethod
    def _among(parameter: Parameter, value: Any, values: Any) -> bool:
        return parameter.encode(value) in [parameter.encode(other) for other in values]

    def decode(self, codes: Codes) -> list[dict[str, Any]]:
        """Turn codes into points, without parameters that are inactive."""
        if self.structure is None:
            return [
                {parameter.name: parameter.decode(code) for parameter, code in zip(self.parameters, row, strict=True)}
                for row in codes.tolist()
            ]
        active = self.structure.active(codes)
        return [
            {
                p.name: p.decode(row[start:stop] if self.is_composite(p) else row[start])
                for p, (start, stop) in zip(self.parameters, self.slots, strict=True)
                if on[start]
            }
            for row, on in zip(codes.tolist(), active, strict=True)
        ]

    def holds(self, codes: Codes) -> bool:
        """Return whether codes have the right shape and range, the reals on their grid."""
        if codes.ndim != 2 or codes.shape[1] != len(self) or not np.isfinite(codes).all():
            return False
        combinatorial, reals = codes[:, self.combinatorial], codes[:, self.reals]
        return bool(
            (combinatorial >= 0).all()
            and (combinatorial < self.cardinalities[self.combinatorial]).all()
            and (combinatorial == np.floor(combinatorial)).all()
            and (reals >= 0).all()
            and (reals <= 1).all()
            and (reals == on_grid(reals)).all()
        )

    def sample(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw n points uniformly, with replacement; where there is a structure, as it can be done."""
        return self.uniform(n, rng=rng) if self.structure is None else self.structure.draw(n, rng=rng)

    def uniform(self, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw n rows of codes uniformly, which need not be points if there is a structure."""
        codes = np.empty((n, len(self)))
        codes[:, self.reals] = on_grid(rng.random((n, len(self.reals))))
        codes[:, self.combinatorial] = rng.integers(
            0, self.cardinalities[self.combinatorial], (n, len(self.combinatorial))
        )
        return codes

    def grid(self) -> Codes:
        """Return every combination of codes of a finite space."""
        axes = [variable.all_codes() for variable in self.variables]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.intp], tuple[NDArray[Any], ...]]:
        """The columns of real codes that stand for whole numbers, and what rounds them."""
        found = [(j, p.cells, p.log, *p.rungs) for j, p in enumerate(self.variables) if p.cells]  # type: ignore[attr-defined]
        columns = np.array([row[0] for row in found], dtype=np.intp)
        ends = np.array([row[1] for row in found]).reshape(len(found), 2).T
        return columns, (ends, *(np.array([row[i] for row in found]) for i in (2, 3, 4)))

    def keys(self, codes: Codes) -> list[bytes]:
        """Return one key per row: equal exactly where the points are equal."""
        if self.structure is not None:
            codes = self.structure.canonical(codes)
        positions = codes + 0.0  # a copy, in which −0 became 0
        columns, cells = self._cells
        if columns.size:
            positions[:, columns] = rounded(codes[:, columns], *cells) + 0.0
        return [row.tobytes() for row in positions]

    def difference(self, given: Space) -> str:
        """Return how another space differs from this one, in words."""
        for a, b in zip(self.parameters, given.parameters, strict=False):
            if a != b:
                return f"it has {a!r} where the given space has {b!r}"
        if len(self.parameters) != len(given.parameters):
            return f"it has {len(self.parameters)} parameters, the given space has {len(given.parameters)}"
        if self.outcomes != given.outcomes:
            mine, others = ([limit.text for limit in space.limits] for space in (self, given))
            return f"it has the outcomes {mine!r}, the given space has {others!r}"
        own, other = (", ".join(repr(str(c)) for c in space.constraints) or "none" for space in (self, given))
        return f"its constraints are {own}, those of the given space {other}"

    def to_dict(self) -> dict[str, Any]:
        """Return the space as JSON values."""
        document: dict[str, Any] = {"parameters": [document_of(parameter) for parameter in self.parameters]}
        if self.constraints:
            document["constraints"] = [
                {"function": c.name} if isinstance(c, Function) else c.text for c in self.constraints
            ]
        if self.outcomes:
            document["outcomes"] = [limit.text for limit in self.limits]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Space:
        """Build a space from what `to_dict` returned."""
        if not isinstance(document, Mapping) or not isinstance(document.get("parameters"), list):
            raise InvalidSpace(f"a space's document must hold a list 'parameters', not {document!r}")
        parameters = [parameter_from_dict(item) for item in document["parameters"]]
        return cls(parameters, constraints=document.get("constraints", ()), outcomes=document.get("outcomes", ()))


def shown_condition(parameter: Parameter) -> str:
    """Return the condition of a parameter in words."""
    parts = [f"{name} = {' or '.join(map(repr, values))}" for name, values in dict(parameter.when or ()).items()]
    return " and ".join(parts)
