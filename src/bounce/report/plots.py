"""Pictures of runs. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bounce.benchmarks.traces import Trace, grouped
from bounce.gp.linalg import Array
from bounce.trial import Trial


def convergence(trials: Sequence[Trial], path: Path, *, title: str, maximize: bool = False) -> None:
    """Draw the values of a run, the best so far, and the dimension of the target space, and write the picture."""
    from matplotlib.figure import Figure  # the object, not pyplot: no window, no global state

    done = [trial for trial in trials if trial.value is not None]
    evaluation = np.array([trial.id + 1 for trial in done])
    values = np.array([trial.value for trial in done], dtype=float)
    best = (np.maximum if maximize else np.minimum).accumulate(values)
    edge = worst_shown(values, maximize=maximize)
    best = np.maximum(best, edge) if maximize else np.minimum(best, edge)  # an outlier is drawn at the edge
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    beyond = values < edge if maximize else values > edge
    upper.plot(evaluation[~beyond], values[~beyond], ".", color="0.65", label="evaluation")
    if beyond.any():
        marker, label = ("v", "below") if maximize else ("^", "above")
        upper.plot(evaluation[beyond], np.full(beyond.sum(), edge), marker, color="0.65", label=f"evaluation {label}")
    upper.step(evaluation, best, where="post", color="C0", label="best so far")
    upper.set_title(title, parse_math=False)  # the name of a file may hold dollars
    upper.set(ylabel="value")
    upper.legend()
    lower.step([t.id + 1 for t in trials], [t.target_dim for t in trials], where="post", color="C1")
    lower.set(xlabel="evaluations", ylabel="target dimension", ylim=(0, None))
    lower.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, dpi=150)


def worst_shown(values: Array, *, maximize: bool = False) -> float:
    """Return how far a picture reaches on the bad side, so that a few outliers do not flatten the rest."""
    if not len(values):
        return 0.0
    bad = -values if maximize else values
    usual = np.quantile(bad, 0.9)
    edge = float(min(bad.max(), usual + (usual - bad.min())))
    return -edge if maximize else edge


def comparison(traces: Sequence[Trace], path: Path) -> None:
    """Draw traces by label: best so far (mean and standard error), lengths of the region, target dimension."""
    from matplotlib.figure import Figure

    groups = grouped(traces)
    figure = Figure(figsize=(8, 9), layout="constrained")
    best, lengths, dims = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1.5, 1.5])
    for color, (label, group) in enumerate(groups.items()):
        n = min(len(trace.rows) for trace in group)
        evaluation = np.arange(1, n + 1)
        curves = np.array([trace.best[:n] for trace in group])
        mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=min(1, len(group) - 1)) / np.sqrt(len(group))
        best.plot(evaluation, mean, color=f"C{color}", label=f"{label} ({len(group)})")
        best.fill_between(evaluation, mean - error, mean + error, color=f"C{color}", alpha=0.25, linewidth=0)
        for name, style in (("radius", "-"), ("side", "--")):
            length = np.array([trace.column(name)[:n] for trace in group]).mean(axis=0)
            if length.any():
                lengths.plot(evaluation, length, style, color=f"C{color}", label=f"{label}, {name[7:]}")
        dims.plot(
            evaluation,
            np.array([trace.column("target_dim")[:n] for trace in group]).mean(axis=0),
            color=f"C{color}",
        )
    best.set(ylabel="best value so far", title="mean and standard error over seeds")
    best.legend()
    lengths.set(ylabel="trust-region length", yscale="log")
    if lengths.lines:
        lengths.legend(fontsize="small")
    dims.set(xlabel="evaluations", ylabel="target dimension", ylim=(0, None))
    figure.savefig(path, dpi=150)
