"""Content: what the report of a study shows, as JSON values of bounded size.

The page draws and this module prepares; neither knows how the other works beyond the names in the document. Columns are
base64 of little-endian numbers: a page with 5,000 trials of 200 parameters is read in a moment. The values of a number
are rounded to seven digits there where these tell them apart; the table of the best trial has them exactly.

The invariant: everything that a user wrote is a JSON string, and nothing is markup.
"""

from __future__ import annotations

import json
import math
import platform
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bounce.errors import InvalidInput
from bounce.optimizer.importance import Bin, Importance
from bounce.running.template import Template
from bounce.spaces.kinds import Parameter
from bounce.spaces.leaves import flat_trials, leaves
from bounce.spaces.outcomes import Limit
from bounce.spaces.space import Space
from bounce.spec.spec import Spec
from bounce.study.history import Entry
from bounce.study.study import Study
from bounce.trial import STATES, Trial

TRIALS = 20_000  # that are shown: the latest ones, and the best
CELLS = 2_000_000  # values of parameters that are shown: of the most important parameters, if there are more
TEXT = 300  # characters of a text
LISTED = 200  # values of a parameter that are told apart, where it has no list of its own
CHANGES = 1000  # of the history: the latest ones
EXACT = 2.0**24  # whole numbers up to this are exact in four bytes
NARROW = 10.0  # a real is larger than its range by this factor, or more: it needs eight bytes
SHORT = (1e-30, 1e30)  # sizes that four bytes can hold
MISSING = 65535  # the code of a value that is not there
FARTHEST = 1e300  # ends of a range of outcomes, so that their difference is finite


@dataclass(frozen=True)
class Source:
    """What a report is made of, besides the trials."""

    title: str
    study: Study
    spec: Spec | None
    describe: Callable[[Entry], str]
    """Says what a change of the history did."""
    resume: Sequence[str] = ()
    """Commands that continue the study."""


def content(source: Source, importance: Importance | None, *, live: bool = False) -> dict[str, Any]:
    """Return everything that the page shows."""
    study = source.study
    trials, best = study.trials, study.best
    shown = flat_trials(study.space, _latest(trials, best))
    columns = leaves(study.space)
    order = _order(study.space, columns, importance)
    most = max(1, CELLS // max(1, len(shown)))
    status = study.status
    return {
        "title": brief(source.title),
        "live": live,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "direction": study.options["direction"],
        "status": {
            name: getattr(status, name)
            for name in ("done", "failed", "pending", "queued", "added", "withdrawn", "outside", "remaining", "budget")
        }
        | {
            name: getattr(status, name)
            for name in ("planned", "spent", "dimensions", "target_dim", "radius", "side", "restart")
        }
        | {"parameters": len(study.space.parameters)}
        | {"seconds_ask": status.seconds_ask, "seconds_eval": status.seconds_eval, "runner": status.runner},
        "states": STATES,
        "left_out": len(trials) - len(shown),
        "parameters": [_parameter(columns[i], shown, with_values=at < most) for at, i in enumerate(order)],
        "outcomes": [_outcome(limit, shown) for limit in study.space.limits],
        "constraints": [brief(constraint, 1000) for constraint in study.space.constraints],
        "trials": _trials(shown),
        "best": None if best is None else _best(best, study.space.limits, source.spec),
        "importance": None if importance is None else _importance(importance),
        "history": [_change(entry, source.describe) for entry in study.history[-CHANGES:]],
        "resume": list(source.resume),
        "options": [[name, _text(value)] for name, value in study.options.items()],
        "versions": _versions(),
    }


def brief(text: object, most: int = TEXT) -> str:
    """Return a text that is not too long, and that every file can hold."""
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _text(value: Any) -> str:
    """Return a value as text: a string as it is, anything else as JSON."""
    return brief(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _versions() -> list[list[str]]:
    import scipy

    from bounce import __version__

    return [
        ["bounce", __version__],
        ["python", platform.python_version()],
        ["numpy", np.__version__],
        ["scipy", scipy.__version__],
        ["platform", sys.platform],
    ]


def _latest(trials: Sequence[Trial], best: Trial | None) -> list[Trial]:
    """Return the trials that are shown, by id."""
    if len(trials) <= TRIALS:
        return list(trials)
    first = trials[-TRIALS].id
    return [trial for trial in trials if trial.id >= first or (best is not None and trial.id == best.id)]


def _order(space: Space, columns: Sequence[Parameter], importance: Importance | None) -> list[int]:
    """Return the columns, the most important first; one that holds several variables has the place of its first."""
    places = {parameter.name: i for i, parameter in enumerate(columns)}
    whole = {v.name: p.name for p in space.parameters if space.is_composite(p) for v in p.variables}
    names = [] if importance is None else [each.name for each in importance.parameters]
    ranked = [name if name in places else whole.get(name) for name in names]
    return [places[name] for name in dict.fromkeys([*ranked, *places]) if name in places]


def packed(numbers: Any, kind: str) -> dict[str, str]:
    """Return numbers as base64, with their kind: `u1`, `u2`, `u4`, `f4` or `f8`."""
    return {"kind": kind, "data": b64encode(np.asarray(numbers, dtype=f"<{kind}").tobytes()).decode("ascii")}


def _parameter(parameter: Parameter, trials: Sequence[Trial], *, with_values: bool) -> dict[str, Any]:
    """Return a parameter, and the values that trials have of it."""
    known: dict[str, Any] = {"name": brief(parameter.name, 1000), "type": parameter.type}
    values = [trial.point.get(parameter.name, _ABSENT) for trial in trials] if with_values else []
    low, high = getattr(parameter, "low", None), getattr(parameter, "high", None)
    if isinstance(low, int | float) and isinstance(high, int | float):
        known |= {
            "low": low,
            "high": high,
            "log": bool(getattr(parameter, "log", False)),
            "whole": isinstance(low, int),
        }
        if with_values:
            numbers = [float(x) if isinstance(x, int | float) else math.nan for x in values]
            known["values"] = packed(numbers, "f4" if _short(low, high, log=known["log"]) else "f8")
        return known
    listed = getattr(parameter, "choices", None) or getattr(parameter, "values", None)
    texts = [_text(x) for x in listed] if listed else (["false", "true"] if parameter.type == "binary" else [])
    keys = [json.dumps(x, default=str) for x in (listed or ([False, True] if texts else []))]
    if not keys:  # no list of its own: what was seen
        keys = list(dict.fromkeys(json.dumps(x, default=str) for x in values if x is not _ABSENT))[:LISTED]
        texts = [_text(json.loads(key)) for key in keys]
    code = {key: at for at, key in enumerate(keys)}
    known["choices"] = texts
    if with_values:
        codes = [MISSING if x is _ABSENT else code.get(json.dumps(x, default=str), MISSING) for x in values]
        known["values"] = packed(codes, "u2")
    return known


def _short(low: float, high: float, *, log: bool) -> bool:
    """Return whether four bytes hold the values of a range well: whole numbers exactly, reals to a millionth of it."""
    size = max(abs(low), abs(high))
    if isinstance(low, int):
        return size <= EXACT
    return size <= NARROW * (high - low) and SHORT[0] <= (low if log else size) and size <= SHORT[1]


def _outcome(limit: Limit, trials: Sequence[Trial]) -> dict[str, Any]:
    """Return an outcome like a parameter, with its limits and the range of what was measured."""
    numbers = [trial.outcomes.get(limit.name, math.nan) for trial in trials]
    ends = [max(-FARTHEST, min(FARTHEST, x)) for x in (limit.low, limit.high, *numbers) if math.isfinite(x)]
    low, high = min(ends), max(ends)
    room = 0.0 if high > low else max(0.5, 0.1 * abs(low))
    return {
        "name": brief(limit.name, 1000),
        "type": "outcome",
        "low": low - room,
        "high": high + room,
        "log": False,
        "whole": False,
        "limits": [x for x in (limit.low, limit.high) if math.isfinite(x)],
        "values": packed(numbers, "f8"),
    }


_ABSENT = object()


def _trials(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return what is known about trials, as columns."""

    def numbers(name: str) -> list[float]:
        found = (getattr(trial, name, None) for trial in trials)
        return [math.nan if x is None else float(x) for x in found]

    errors = {trial.id: brief(trial.error) for trial in trials if trial.error}
    texts = list(dict.fromkeys(errors.values()))
    place = {text: at for at, text in enumerate(texts)}
    columns = {
        "id": packed([trial.id for trial in trials], "u4"),
        "value": packed(numbers("value"), "f8"),
        "state": packed([STATES.index(trial.state) for trial in trials], "u1"),
        "stage": packed([trial.stage for trial in trials], "u4"),
        "restart": packed([trial.restart for trial in trials], "u4"),
        "bins": packed([trial.target_dim for trial in trials], "u4"),
        "radius": packed(numbers("radius"), "f4"),
        "side": packed(numbers("side"), "f4"),
        "ask": packed(numbers("seconds_ask"), "f4"),
        "eval": packed(numbers("seconds_eval"), "f4"),
    }
    if any(trial.sem for trial in trials):
        columns["sem"] = packed(numbers("sem"), "f8")
    feasible = [getattr(trial, "feasible", None) for trial in trials]
    if any(each is False for each in feasible):
        columns["infeasible"] = packed([each is False for each in feasible], "u1")
    return {
        "columns": columns,
        "errors": texts,
        "error_of": {str(i): place[text] for i, text in errors.items()},
        "notes": {str(trial.id): brief(trial.notes["note"]) for trial in trials if trial.notes.get("note")},
    }


def _best(best: Trial, limits: Sequence[Limit], spec: Spec | None) -> dict[str, Any]:
    """Return the best trial with its settings and outcomes as text, and as a command if the spec has one."""
    command = None
    if spec is not None and spec.command is not None:
        try:
            command = shlex.join([Template.of(argument).filled(best.point) for argument in spec.command])
        except InvalidInput:  # the spec was changed and names other parameters
            command = None
    return {
        "id": best.id,
        "value": repr(best.value),
        "sem": None if best.sem is None else f"{best.sem:.6g}",
        "rows": [[brief(name, 1000), brief(_text(value), 2000)] for name, value in best.point.items()],
        "outcomes": [
            [
                limit.text,
                repr(best.outcomes[limit.name]),
                "broken" if limit.violation(best.outcomes[limit.name]) else "kept",
            ]
            for limit in limits
            if limit.name in best.outcomes
        ],
        "command": command,
    }


def _importance(found: Importance) -> dict[str, Any]:
    """Return importances, with values as text and numbers that JSON can hold."""
    return {
        "parameters": [asdict(each) for each in found.parameters],
        "pairs": [asdict(pair) for pair in found.pairs[:10]],
        "effects": [
            asdict(effect) | {"values": [_value(x) for x in effect.values]} for effect in found.effects.values()
        ],
        "surfaces": [
            asdict(surface) | {"values": [[_value(x) for x in axis] for axis in surface.values]}
            for surface in found.surfaces
        ],
        "bins": [_bin(each) for each in found.bins],
        "observations": found.observations,
        "quality": found.quality,
    }


def _value(value: Any) -> Any:
    """Return a value of a parameter: a number as it is, anything else as text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _bin(each: Bin) -> dict[str, Any]:
    names = [brief(name, 60) for name in each.names]
    return {"names": names, "total": each.total, "parts": [_bin(part) for part in each.parts]}


def _change(entry: Entry, describe: Callable[[Entry], str]) -> list[Any]:
    time = entry.time[:19].replace("T", " ")
    return [time, entry.action, entry.trial, brief(describe(entry)), brief(entry.reason or "")]
