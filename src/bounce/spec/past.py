"""Past: results that nobody asked for, and which of them a study has already.

A table may be added again when it has grown. Its results that the study has are then left out: each of them once, so
that a result which the table has twice is there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bounce.spaces.space import Space
from bounce.trial import VALUED, Trial


@dataclass(frozen=True)
class Past:
    """Results that nobody asked for."""

    points: list[dict[str, Any]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    sems: list[float | None] = field(default_factory=list)
    """Their standard errors, None where they are unknown."""
    constraints: list[dict[str, float]] = field(default_factory=list)
    """What was measured beside their values, by name."""
    notes: list[dict[str, str]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    """Where each result is from, such as `row 3`."""
    skipped: list[str] = field(default_factory=list)
    """What was wrong with the rows that were left out."""

    def split(self, trials: Iterable[Trial], space: Space) -> tuple[Past, Past]:
        """Return the results that are new to a study with these trials, and those that it has, without `skipped`."""
        old = [trial for trial in trials if trial.state in VALUED]
        had = Counter(_keys(space, [trial.point for trial in old], [trial.value for trial in old]))
        new, known = list[int](), list[int]()
        for i, key in enumerate(_keys(space, self.points, self.values)):
            (known if had[key] else new).append(i)
            had[key] -= had[key] > 0
        return self._only(new), self._only(known)

    def repeated(self, space: Space) -> list[tuple[str, str]]:
        """Return the rows that say the same as an earlier one, each with that one."""
        first: dict[Hashable, str] = {}
        keys = _keys(space, self.points, self.values)
        return [
            (row, first[key]) for key, row in zip(keys, self.rows, strict=True) if first.setdefault(key, row) != row
        ]

    def _only(self, places: Sequence[int]) -> Past:
        def picked(found: Sequence[Any]) -> list[Any]:
            return [found[i] for i in places]

        lists: Iterable[Sequence[Any]] = (self.points, self.values, self.sems, self.constraints, self.notes, self.rows)
        return Past(*map(picked, lists))


def _keys(space: Space, points: Sequence[Any], values: Sequence[float | None]) -> list[Hashable]:
    """Return what tells results apart: the point and the value."""
    return list(zip(space.keys(space.encode(points)), values, strict=True)) if points else []
