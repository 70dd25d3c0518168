"""Words: how times, regions and best values are shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bounce.trial import Trial

BLOCKS = "▁▂▃▄▅▆▇█"
LONGEST = 1e9  # seconds; longer times are shown as this


def sparkline(values: Sequence[float], width: int) -> str:
    """Return numbers as small bars; if there are more than `width`, evenly spaced ones, including both ends."""
    count = min(width, len(values))
    picked = [values[-1 - round(i * (len(values) - 1) / max(count - 1, 1))] for i in reversed(range(count))]
    low, high = min(picked, default=0.0) / 2, max(picked, default=0.0) / 2  # halves, so that a difference is finite
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[round(top * ((x / 2 - low) / (high - low))) if high > low else 0] for x in picked)


def seconds(number: float | None) -> str:
    """Return a time for people: 12 ms, 3.4 s, 2:10:05, 3 days, 4:05:06."""
    if number is None:
        return "unknown"
    if number < 0.9995:
        return f"{1000 * number:.0f} ms"
    return f"{number:.1f} s" if number < 119.95 else str(timedelta(seconds=round(min(number, LONGEST))))


def clock(left: float, now: datetime) -> str:
    """Return when a run will end: a time of today, or a date."""
    end = now + timedelta(seconds=min(left, LONGEST))
    return f"{end:%H:%M}" if end.date() == now.date() else f"{end:%Y-%m-%d %H:%M}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def region(radius: float, side: float) -> str:
    """Return the size of a trust region."""
    parts = []
    if radius:
        plural = "" if radius == 1 else "s"
        parts.append(f"up to {radius:.3g} combinatorial bin{plural} may change")
    if side:
        parts.append(f"reals within {side:.3g} of their range")
    return ", ".join(parts) or "the whole space"


def best_of(trial: Trial | None) -> str:
    """Return the best value and its trial."""
    if trial is None or trial.value is None:
        return "none yet"
    broken = ", which breaks limits least" if trial.feasible is False else ""
    return f"{trial.value:.6g} (trial {trial.id}{broken})"
