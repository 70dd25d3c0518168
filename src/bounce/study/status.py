"""Where a study stands, as a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bounce.trial import Trial


@dataclass(frozen=True)
class Status:
    """Where a study stands."""

    path: Path | None
    budget: int
    done: int
    failed: int
    pending: int
    remaining: int
    best: Trial | None
    target_dim: int
    """The number of bins of the present space."""
    dimensions: int
    """The number of variables of the input space."""
    radius: float
    side: float
    restart: int
    seconds_ask: float | None
    """The mean over all trials."""
    seconds_eval: float | None
    """The mean over the evaluations whose time is known."""
    runner: str | None
    """Who is running the study now."""

    @property
    def planned(self) -> int:
        """How many trials there are to be: the budget, unless the space has fewer points."""
        return self.done + self.failed + self.pending + self.remaining
