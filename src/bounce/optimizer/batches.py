"""Batches: what the trust region learns from a batch whose trials all have an outcome.

A batch moves the region once, as one success or one failure (notes, decision 11). Only points that the acquisition
chose count, and only in the stage they were chosen in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bounce.optimizer.options import Options
from bounce.optimizer.state import Record, observations, violations
from bounce.spaces.outcomes import Limit
from bounce.subspace.stages import Stage
from bounce.subspace.trust_region import after, improves
from bounce.trial import ASKED


def uncounted(batch: Sequence[Record], stage: Stage) -> list[Record]:
    """Return the trials of a batch that are to move the region of a stage."""
    fresh = [m for m in batch if m.proposed and not m.counted and m.trial.state in ASKED]
    return [m for m in fresh if m.trial.stage == stage.number]


def moved(
    stage: Stage, counted: Sequence[Record], records: Sequence[Record], options: Options, limits: Sequence[Limit]
) -> Stage:
    """Return the stage after a batch, given all records; the trials that count are at least one."""
    ids = {m.id for m in counted}
    others = [r for r in observations(records, stage.restart) if r.id not in ids]
    region = after(
        stage.region,
        _is_success([m for m in counted if m.trial.value is not None], others, options.sign, limits),
        len(counted),
        strategy=options.trust_region,
        in_input=stage.embedding.is_input,
    )
    return replace(stage, region=region)


def _is_success(batch: Sequence[Record], others: Sequence[Record], sign: float, limits: Sequence[Limit]) -> bool:
    """Return whether a batch holds a better point than the others; before one keeps the limits, a lesser evil."""
    if limits:
        held, new = ([r for r in records if r.trial.feasible] for records in (others, batch))
        if not held:
            broken = violations([*others, *batch], limits)
            least, own = (float(min(part, default=math.inf)) for part in np.split(broken, [len(others)]))
            return bool(new) or improves(own, least)
        others, batch = held, new
    incumbent = min((sign * r.value for r in others), default=math.inf)
    best = min((sign * m.value for m in batch), default=math.inf)
    return improves(best, incumbent)
