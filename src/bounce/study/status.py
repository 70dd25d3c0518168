"""Status: where a study stands, as a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bounce.trial import Trial


@dataclass(frozen=True)
class Status:
    """Where a study stands, with the number of trials in each state (`bounce.trial.State`)."""

    path: Path | None
    budget: int
    done: int
    failed: int
    pending: int
    queued: int
    added: int
    withdrawn: int
    outside: int
    spent: int
    """How much of the budget has been spent."""
    remaining: int
    """How many trials may still be asked for."""
    best: Trial | None
    target_dim: int
    """The number of bins of the current stage."""
    dimensions: int
    """The number of variables of the space."""
    radius: float
    """The trust region: how many combinatorial bins may change."""
    side: float
    """The trust region: the side of the box of the reals, as a share of their range."""
    restart: int
    seconds_ask: float | None
    """The mean over the trials that were asked for; None before the first."""
    seconds_eval: float | None
    """The mean over the evaluations whose time is known."""
    runner: str | None
    """Who is running the study now; None if nobody is."""

    @property
    def planned(self) -> int:
        """How many trials there will be in the end: the budget, unless the space has fewer points."""
        return self.spent + self.remaining

    def __repr__(self) -> str:
        best = "None" if self.best is None else f"{self.best.value!r} (trial {self.best.id})"
        counts = f"{self.done} done, {self.failed} failed, {self.pending} pending of {self.planned}"
        added = f", {self.added} added" if self.added else ""
        return f"Status({counts}{added}, best={best})"
