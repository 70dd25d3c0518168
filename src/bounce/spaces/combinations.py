"""Combinations: the values that one constraint allows its variables together, if these are few enough to list.

`heads * width == 768` allows a few pairs out of a million, and no small step leads from one to the next. So they are
listed, and whole combinations are drawn.

Shapes: codes (m, k) of the k variables of a constraint; codes (n, D) of points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bounce.spaces.constraints import Constraint
from bounce.spaces.expressions import Expression
from bounce.spaces.kinds import Codes

if TYPE_CHECKING:
    from bounce.spaces.structure import Structure

MOST = 2**20  # combinations of values that are looked at
RARE = 0.01  # of them are allowed at most: other constraints are met by random draws and small steps


@dataclass(frozen=True, eq=False)
class Combinations:
    """The allowed codes (m, k) of some columns (k,)."""

    columns: NDArray[np.intp]
    codes: Codes

    def into(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        """Return rows (n, D) with a random combination in each."""
        changed = rows.copy()
        changed[:, self.columns] = self.codes[rng.integers(0, len(self.codes), len(rows))]
        return changed


def combinations(structure: Structure, parts: Iterable[Constraint]) -> tuple[Combinations, ...]:
    """Return the combinations of each constraint that can be listed and allows few of them."""
    found = []
    for part in parts:
        columns = structure.columns_of(part)
        variables = [structure.space.variables[j] for j in columns.tolist()]
        size = math.prod(float(variable.size) for variable in variables)
        if not isinstance(part, Expression) or size > MOST or np.isin(columns, structure.composite_columns).any():
            continue
        axes = [variable.all_codes() for variable in variables]
        allowed = structure.holds_on(part, columns, axes)
        if 0 < allowed.mean() <= RARE:
            places = np.unravel_index(np.flatnonzero(allowed), [len(axis) for axis in axes])
            codes = np.stack([axis[place] for axis, place in zip(axes, places, strict=True)], axis=1)
            found.append(Combinations(columns, codes))
    return tuple(found)
