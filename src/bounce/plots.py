"""Pictures of runs. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bounce.state import Trial


def convergence(trials: Sequence[Trial], path: Path, *, title: str, maximize: bool = False) -> None:
    """Draw the values of a run, the best so far, and the dimension of the target space, and write the picture."""
    from matplotlib.figure import Figure  # the object, not pyplot: no window, no global state

    done = [trial for trial in trials if trial.value is not None]
    evaluation = np.array([trial.id + 1 for trial in done])
    values = np.array([trial.value for trial in done], dtype=float)
    best = (np.maximum if maximize else np.minimum).accumulate(values)
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot(evaluation, values, ".", color="0.65", label="evaluation")
    upper.step(evaluation, best, where="post", color="C0", label="best so far")
    upper.set(title=title, ylabel="value")
    upper.legend()
    lower.step([t.id + 1 for t in trials], [t.target_dim for t in trials], where="post", color="C1")
    lower.set(xlabel="evaluations", ylabel="target dimension", ylim=(0, None))
    figure.savefig(path, dpi=150)
