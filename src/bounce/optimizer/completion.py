"""Completion: what a point that is enqueued may leave open, and how it is filled in when the point is asked for.

A completed point satisfies the constraints of the space, and has not been seen if an unseen one is found.

Shapes: codes (D,) of one point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bounce.errors import InvalidPoint
from bounce.optimizer.state import Record
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space

COMPLETIONS = 64  # random completions of a point, of which the first unseen one is taken
MANY = 4096  # points that are drawn to complete one, where constraints exclude most


def start_of(space: Space, i: int, point: Mapping[str, Any]) -> tuple[Codes, dict[str, Any], tuple[str, ...]]:
    """Return the codes of an enqueued point, its known values, and what it leaves open; refuse a point that is not one.

    An error names the point by its place `i` among those that were given.
    """
    parameters = {parameter.name: parameter for parameter in space.parameters}
    if not isinstance(point, Mapping):
        raise InvalidPoint(f"point {i} must be a dict of values by name, not {point!r}")
    for name, value in point.items():
        if name not in parameters:
            raise InvalidPoint(f"point {i}: no parameter is called {name!r}, only {', '.join(parameters)}")
        try:
            parameters[name].encode(value)
        except InvalidPoint as error:
            raise InvalidPoint(f"point {i}: {error}", parameter=name) from None
    codes, known, free = space.partial(point)
    if not free:
        return space.encode([known])[0], known, free
    if not is_completable(space, codes, free):
        raise InvalidPoint(f"point {i}: {_why_incomplete(space, codes, free)}")
    return codes, known, free


def is_completable(space: Space, codes: Codes, free: Sequence[str]) -> bool:
    """Return whether a point that leaves something open can be completed: always, if the space has no structure."""
    return space.structure is None or len(_some_completions(space, codes, free)) > 0


def completed(
    space: Space, partial: Sequence[Record], best: Record | None, keys: Iterable[bytes], *, rng: np.random.Generator
) -> dict[int, Codes]:
    """Return the codes of points that leave something open, by id: from the best one known, or drawn."""
    chosen: dict[int, Codes] = {}
    known = set(keys)
    for record in partial:
        rest = space.sample(COMPLETIONS, rng=rng)
        if best is not None:
            rest = np.vstack([best.codes, rest])
        rows = space.merged(record.codes, record.free, rest)
        if not len(rows):
            rows = _some_completions(space, record.codes, record.free)
        found = space.keys(rows)
        place = next((place for place, key in enumerate(found) if key not in known), 0)
        chosen[record.id] = rows[place]
        known.add(found[place])
    return chosen


def _why_incomplete(space: Space, codes: Codes, free: Sequence[str]) -> str:
    """Return what stands against a point that nothing completes: the constraint that most completions break."""
    assert space.structure is not None
    rows = space.merged(codes, free, space.structure.drawn(MANY, rng=np.random.default_rng(0)), checked=False)
    share, worst = max(
        ((1.0 - float(space.structure.judged(c, rows).mean()), c) for c in space.constraints), key=lambda pair: pair[0]
    )
    every = "all" if share == 1.0 else f"{100 * share:.3g} % of"
    return f"no completion that satisfies all constraints was found: {every} {MANY:,} random ones break {str(worst)!r}"


def _some_completions(space: Space, codes: Codes, free: Sequence[str]) -> Codes:
    """Return points that complete one that leaves something open, always the same ones; none if none was found."""
    return space.completed(codes, free, MANY, rng=np.random.default_rng(0))
