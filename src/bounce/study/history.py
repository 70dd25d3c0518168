"""The history of a study: what was changed by hand, with what was there before.

Asks and first tells are not in it: every trial has the times at which it was asked for and finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from bounce.text import storable
from bounce.trial import Trial


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Entry:
    """One change."""

    time: str
    """When it was made, in UTC."""
    action: str
    """What was called: begin, add, enqueue, tell, correct, retry, withdraw, note, extend or change."""
    trial: int | None = None
    before: Mapping[str, Any] | None = None
    """What was there before, only what changed."""
    after: Mapping[str, Any] | None = None
    reason: str | None = None

    @classmethod
    def now(cls, action: str, trial: int | None = None, **said: Any) -> Entry:
        """Return a change that is made now."""
        if said.get("reason") is not None:
            said["reason"] = storable(said["reason"])
        return cls(now(), action, trial, **said)

    @classmethod
    def edit(cls, action: str, before: Trial, after: Trial, *, reason: str | None = None) -> Entry:
        """Return the change of a trial: the fields that differ."""
        names = [f.name for f in fields(Trial) if getattr(before, f.name) != getattr(after, f.name)]
        old, new = ({name: getattr(trial, name) for name in names} for trial in (before, after))
        return cls.now(action, after.id, before=old, after=new, reason=reason)
