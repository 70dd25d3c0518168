"""Whole runs to test with: objectives for any space, and what drives an optimizer to its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bounce import Bounce, Trial

Point = dict[str, Any]
GROWING = {"flat": None}
"""The default method, but with an embedding in spaces of few variables too: runs go through several stages."""


def ones(point: Point) -> float:
    """A cheap objective for any space: reals to 0.3 of their size, everything else as numbers or lengths."""
    return float(sum(abs(x - 0.3) if isinstance(x, float) else hash_free(x) for x in point.values()))


def hash_free(x: Any) -> float:
    return float(x) if isinstance(x, int | bool) else float(len(str(x)) + ord(str(x)[0]) % 7)


def sphere(point: Point) -> float:
    return float(sum((x - 0.3) ** 2 for x in point.values()))


def drive(opt: Bounce, objective: Callable[[Point], float] = ones, batch: int | None = None) -> list[Trial]:
    while not opt.done:
        trials = opt.ask(batch)
        opt.tell(trials, [objective(t.point) for t in trials])
    return opt.trials


def facts(trials: list[Trial]) -> list[Any]:
    """Everything about trials but the clock."""
    return [(t.id, t.point, t.value, t.state, t.stage, t.target_dim, t.radius, t.side, t.acquisition) for t in trials]


def through_json(opt: Bounce) -> Bounce:
    return Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict(), allow_nan=False)), space=opt.space)
