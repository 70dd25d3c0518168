"""Spaces: points are dicts of native values outside, rows of codes inside.

The one place where native values and codes are converted. Shapes: codes (n, D) for n points of D variables.
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
from bounce.spaces.kinds import Codes, Kind, Parameter, on_grid
from bounce.spaces.numbers import rounded
from bounce.spaces.outcomes import Limit, limits_of
from bounce.spaces.parameters import FIELDS, TYPES, parameter_from_dict
from bounce.trial import Scalar


@dataclass(frozen=True)
class Space:
    """An ordered collection of parameters with distinct names."""

    parameters: Sequence[Parameter]
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
                raise InvalidSpace(f"a space takes Real, Integer, Ordinal, Categorical and Binary, not {parameter!r}")
        names: set[str] = set()
        for parameter in parameters:
            if parameter.name in names:
                raise InvalidSpace(f"parameter names must be distinct, but {parameter.name!r} appears twice")
            names.add(parameter.name)
        limits = limits_of(self.outcomes)
        for limit in limits:
            if limit.name in names:
                raise InvalidSpace(f"{limit.name!r} is a parameter, so it cannot be an outcome")
        if limits and any(name.strip().lower() == "feasible" for name in names):
            raise InvalidSpace("with outcomes, tables have a column 'feasible': rename the parameter of that name")
        object.__setattr__(self, "outcomes", limits)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "_names", frozenset(names))

    def __len__(self) -> int:
        return len(self.parameters)

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
        return tuple(parameter.kind for parameter in self.parameters)

    @cached_property
    def cardinalities(self) -> NDArray[np.intp]:
        """The number of codes of each variable, 0 for reals."""
        return np.array([parameter.cardinality for parameter in self.parameters], dtype=np.intp)

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
        """The number of points: an exact integer, or infinity."""
        if any(parameter.size == math.inf for parameter in self.parameters):
            return math.inf
        return math.prod(int(parameter.size) for parameter in self.parameters)

    def encode(self, points: Iterable[Mapping[str, Any]]) -> Codes:
        """Turn points (dicts of native values) into codes."""
        if isinstance(points, str | Mapping) or not isinstance(points, Iterable):
            raise InvalidPoint(f"encode takes a list of points, not {points!r}")
        rows = []
        for point in points:
            if not isinstance(point, Mapping):
                raise InvalidPoint(f"a point must be a dict of values by name, not {point!r}")
            missing = [parameter.name for parameter in self.parameters if parameter.name not in point]
            unknown = [name for name in point if name not in self._names]
            if missing or unknown:
                raise InvalidPoint(
                    f"a point must name every parameter and nothing else: missing {missing!r}, unknown {unknown!r}"
                )
            rows.append([parameter.encode(point[parameter.name]) for parameter in self.parameters])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self))

    def decode(self, codes: Codes) -> list[dict[str, Scalar]]:
        """Turn codes into points."""
        return [
            {parameter.name: parameter.decode(code) for parameter, code in zip(self.parameters, row, strict=True)}
            for row in codes.tolist()
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
        """Draw n points uniformly, with replacement."""
        codes = np.empty((n, len(self)))
        codes[:, self.reals] = on_grid(rng.random((n, len(self.reals))))
        codes[:, self.combinatorial] = rng.integers(
            0, self.cardinalities[self.combinatorial], (n, len(self.combinatorial))
        )
        return codes

    def grid(self) -> Codes:
        """Return the codes of every point of a finite space."""
        axes = [parameter.all_codes() for parameter in self.parameters]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.intp], tuple[NDArray[Any], ...]]:
        """The columns of real codes that stand for whole numbers, and what rounds them."""
        found = [(j, p.cells, p.log, p.low, p.high) for j, p in enumerate(self.parameters) if p.cells]  # type: ignore[attr-defined]
        columns = np.array([row[0] for row in found], dtype=np.intp)
        ends = np.array([row[1] for row in found]).reshape(len(found), 2).T
        return columns, (ends, *(np.array([row[i] for row in found]) for i in (2, 3, 4)))

    def keys(self, codes: Codes) -> list[bytes]:
        """Return one key per row: equal exactly where the points are equal."""
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
        if len(self) == len(given) and self.outcomes != given.outcomes:
            own, others = ([limit.text for limit in space.limits] for space in (self, given))
            return f"it has the outcomes {own!r}, the given space has {others!r}"
        return f"it has {len(self)} parameters, the given space has {len(given)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the space as JSON values."""
        return {
            "parameters": [
                {"name": parameter.name, "type": parameter.type}
                | {
                    key: list(value) if isinstance(value := getattr(parameter, key), tuple) else value
                    for key in FIELDS[parameter.type]
                }
                for parameter in self.parameters
            ]
        } | ({"outcomes": [limit.text for limit in self.limits]} if self.outcomes else {})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Space:
        """Build a space from what `to_dict` returned."""
        if not isinstance(document, Mapping) or not isinstance(document.get("parameters"), list):
            raise InvalidSpace(f"a space's document must hold a list 'parameters', not {document!r}")
        outcomes = document.get("outcomes", ())
        return cls([parameter_from_dict(item) for item in document["parameters"]], outcomes=outcomes)
