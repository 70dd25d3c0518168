"""Relocation: what becomes of a trial when the space of its run is replaced by another one.

A trial that fits the new space is there with the codes of its point; one that does not is left outside, with the state
it had. It returns if a later space has a place for it, so a change loses nothing.

Shapes: codes (D,) of one point in the new space.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bounce.errors import InvalidPoint
from bounce.optimizer.completion import is_completable
from bounce.optimizer.state import Record
from bounce.spaces.change import Change
from bounce.spaces.kinds import Codes
from bounce.spaces.outcomes import feasible
from bounce.trial import State


def relocated(record: Record, change: Change) -> Record:
    """Return a trial in the new space of a change, or outside of it. Pending and queued ones outside cost nothing."""
    codes = _codes(record, change)
    return _outside(record, change) if codes is None else _inside(record, change, codes)


def _codes(record: Record, change: Change) -> Codes | None:
    """Return the codes of a trial's point in the new space; None if it does not fit."""
    trial, space = record.trial, change.new
    point = None
    if record.was is not None:
        back = record.was != "withdrawn" and not change.contradicted(trial.point, record.free)
        point = change.returned(trial.point) if back else None
    elif record.free:
        return _open_codes(record, change)
    else:
        point = change.translated(trial.point, record.former)
    if point is None:
        return None
    try:
        codes = space.encode([point])[0]
    except InvalidPoint:
        return None
    return change.kept(record.codes, codes, trial.point) if record.was is None else codes


def _open_codes(record: Record, change: Change) -> Codes | None:
    """Return the codes of a point that leaves something open; None if nothing completes it in the new space."""
    space, free = change.new, _open(record, change)
    known = change.known(record.trial.point, record.former)
    if known is None:
        return None
    try:
        codes = space.partial(known)[0] if free else space.encode([known])[0]
    except InvalidPoint:
        return None
    return codes if not free or is_completable(space, codes, free) else None


def _open(record: Record, change: Change) -> tuple[str, ...]:
    """Return the parameters of the new space that an enqueued point leaves open."""
    names = {parameter.name for parameter in change.new.parameters}
    return tuple(name for name in record.free if name in names and record.was is None)


def _inside(record: Record, change: Change, codes: Codes) -> Record:
    trial, space = record.trial, change.new
    known = {**record.former, **trial.point}
    free = _open(record, change)
    fitted = {name: x for name, x in space.decode(codes[None])[0].items() if name not in free}
    fitting = replace(trial, point=fitted, state=record.was or trial.state)
    fitting = replace(fitting, feasible=feasible(space.limits, trial.outcomes))
    former = {name: value for name, value in known.items() if name not in fitted and name not in free}
    return replace(record, trial=fitting, codes=codes, asked_codes=None, was=None, free=free, former=former)


def _outside(record: Record, change: Change) -> Record:
    trial, space = record.trial, change.new
    names = {parameter.name for parameter in space.parameters}
    was: State = "withdrawn" if trial.state in ("pending", "queued") else record.was or trial.state
    added = {name: value for name, value in change.defaults.items() if name in names}
    left = replace(trial, state="outside", point=added | {**record.former, **trial.point})
    left = replace(left, feasible=feasible(space.limits, trial.outcomes))
    none = np.zeros(len(space))
    fixed = change.contradicted(trial.point, () if record.was is None else record.free)
    return replace(record, trial=left, codes=none, was=was, told=None, asked_codes=None, former={}, free=fixed)
