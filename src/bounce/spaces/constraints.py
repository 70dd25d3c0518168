"""Constraints: which points are known to be impossible. An expression, or a Python function of a point.

The invariant: two constraints are equal if their texts are. Of a function, the text is its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidSpace
from bounce.spaces.expressions import Expression


@dataclass(frozen=True)
class Function:
    """A constraint that is a Python function of a point; without the function, only its name is known."""

    name: str
    call: Callable[[dict[str, Any]], object] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"function {self.name}"

    def holds(self, points: Sequence[dict[str, Any]]) -> NDArray[np.bool_]:
        """Return which points satisfy it."""
        if self.call is None:
            raise InvalidSpace(
                f"the space has the constraint function {self.name!r}, which a file cannot hold: "
                "open the study with the space in Python"
            )
        return np.array([self._holds(point) for point in points], dtype=bool)

    def _holds(self, point: dict[str, Any]) -> bool:
        assert self.call is not None
        try:
            said: Any = self.call(dict(point))
            truth = isinstance(said, bool | np.bool_) or said in (0, 1)
        except Exception as error:
            hint = "; an inactive parameter is not in the point: use point.get" if isinstance(error, KeyError) else ""
            raise InvalidSpace(
                f"the constraint {self.name!r} raised {type(error).__name__}: {error} for the point {point!r}{hint}"
            ) from error
        if not truth:
            raise InvalidSpace(f"the constraint {self.name!r} must return True or False, not {said!r}, for {point!r}")
        return bool(said)


Constraint = Expression | Function


def parsed(constraints: Sequence[Any], names: Sequence[str]) -> tuple[Constraint, ...]:
    """Return constraints given as texts, functions, or documents of either."""
    found: list[Constraint] = []
    for given in constraints:
        if isinstance(given, Expression | Function):
            found.append(Expression.parse(given.text, names) if isinstance(given, Expression) else given)
        elif isinstance(given, str):
            found.append(Expression.parse(given, names))
        elif isinstance(given, Mapping) and isinstance(given.get("function"), str):
            found.append(Function(given["function"]))
        elif callable(given):
            found.append(Function(getattr(given, "__qualname__", type(given).__name__), given))
        else:
            raise InvalidSpace(f"a constraint must be a text such as 'a + b <= 10' or a function, not {given!r}")
    return tuple(found)
