"""Words: how changes and lists are shown to people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bounce.live.words import count
from bounce.study.history import Entry

MOST = 6  # members of a list that are shown


def listed(words: Sequence[str]) -> str:
    """Return words as a list; of many, the first ones and how many more there are."""
    more = len(words) - MOST
    return ", ".join(words) if more <= 1 else f"{', '.join(words[:MOST])} and {more} more"


def change(entry: Entry) -> str:
    """Return what a change of the history did."""
    before, after = dict(entry.before or {}), dict(entry.after or {})
    if entry.action == "change":
        return _space_change(before, after)
    if entry.action == "begin":
        return f"{count(after['known'], 'known result')}, {count(after['start'], 'start point')}"
    if entry.action == "add":
        first, last = after["trials"]
        return f"trial {first}" if first == last else f"trials {first} to {last}"
    if entry.action == "tell":  # the settings that were really used; the trial itself has the rest
        return ", ".join(_differences(before["point"], after["point"])) or "nothing"
    return ", ".join(_of_trial(before, after)) or "nothing"


def _space_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    from bounce.spaces.change import Change
    from bounce.spaces.space import Space

    said = Change(Space.from_dict(before), Space.from_dict(after), after["defaults"]).sentences
    outside = len(after["outside"])
    if outside:
        said.append(unfit(outside))
    return "; ".join(said)


def unfit(outside: int) -> str:
    """Return how many trials a change of the space leaves outside."""
    return f"{count(outside, 'trial')} no longer fit{'s' if outside == 1 else ''}"


def _of_trial(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs in the fields of a trial, and inside those that hold several values."""
    for name, new in after.items():
        if isinstance(new, Mapping):
            yield from _differences(before.get(name) or {}, new)
        else:
            yield from _differences({name: before[name]} if name in before else {}, {name: new})


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield what differs in values by name; a mixture has its components as `name.component`."""
    for name, new in after.items():
        old = before.get(name)
        if isinstance(new, Mapping):
            yield from _differences(old or {}, new, f"{within}{name}.")
        elif name not in before:
            yield f"{within}{name} {json.dumps(new, ensure_ascii=False)}"
        elif old != new:
            yield f"{within}{name} {json.dumps(old, ensure_ascii=False)} -> {json.dumps(new, ensure_ascii=False)}"
    for name, old in before.items():
        if name not in after:  # it became inactive
            yield f"{within}{name} {json.dumps(old, ensure_ascii=False)} -> none"
