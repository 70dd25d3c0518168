"""Pictures of runs. They need matplotlib, the extra `plot`.

Trials are counted by id, from 0. A pane whose content never changes is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bounce.gp.linalg import Array
from bounce.paper.traces import Trace, grouped
from bounce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHTS = {"values": 3.6, "region": 1.8, "dimension": 1.4}  # inches of the panes


def convergence(trials: Sequence[Trial], path: Path, *, title: str, maximize: bool = False) -> None:
    """Write a plot of a run: its values, the best so far, failed trials, and the target dimension if it changes."""
    dims = [trial.target_dim for trial in trials]
    figure, panes = _panes(["values"] + ["dimension"] * (len(set(dims)) > 1))
    _draw_values(panes["values"], trials, maximize=maximize)
    panes["values"].set_title(title, parse_math=False)  # a file name may contain dollar signs
    if "dimension" in panes:
        panes["dimension"].step([trial.id for trial in trials], dims, where="post", color="C1")
        panes["dimension"].set(ylabel="target dimension", ylim=(0, None))
    figure.savefig(path, dpi=150)


def _draw_values(pane: Axes, trials: Sequence[Trial], *, maximize: bool) -> None:
    """Draw a point for each value, the best so far as a line, and marks at the bad edge for failures."""
    done = [trial for trial in trials if trial.value is not None]
    ids = np.array([trial.id for trial in done])
    values = np.array([trial.value for trial in done], dtype=float)
    edge = worst_shown(values, maximize=maximize)
    broken = np.array([trial.feasible is False for trial in done], dtype=bool)  # breaks limits on outcomes
    counted = np.where(broken, -np.inf if maximize else np.inf, values)
    best = (np.maximum if maximize else np.minimum).accumulate(counted)
    best[~np.isfinite(best)] = np.nan
    best = np.maximum(best, edge) if maximize else np.minimum(best, edge)  # an outlier is drawn at the edge
    beyond = values < edge if maximize else values > edge
    pane.plot(ids[~beyond & ~broken], values[~beyond & ~broken], ".", color="0.65", label="value")
    if broken.any():
        shown = ids[~beyond & broken], values[~beyond & broken]
        pane.plot(*shown, "x", markersize=4, color="C1", label="value that breaks limits")
    if beyond.any():
        marker, side = ("v", "below") if maximize else ("^", "above")
        pane.plot(ids[beyond], np.full(beyond.sum(), edge), marker, color="0.65", label=f"value {side} the plot")
    if np.isfinite(best).any():
        pane.step(ids, best, where="post", color="C0", label="best so far")
    failed = [trial.id for trial in trials if trial.state == "failed"]
    if failed:
        at_edge = np.full(len(failed), 0.02 if maximize else 0.98)  # shares of the height of the pane
        pane.plot(failed, at_edge, "x", color="C3", label="failed", transform=pane.get_xaxis_transform())
    pane.set(ylabel="value")
    pane.legend()


def worst_shown(values: Array, *, maximize: bool = False) -> float:
    """Return the worst value that a plot shows, chosen so that a few outliers do not flatten the rest."""
    if not len(values):
        return 0.0
    bad = -values if maximize else values
    usual = np.quantile(bad, 0.9)
    edge = float(min(bad.max(), usual + (usual - bad.min())))
    return -edge if maximize else edge


def comparison(traces: Sequence[Trace], path: Path) -> None:
    """Write a plot of traces by label: the best value so far (mean and standard error), and how the search moved.

    The panes of the trust region and of the target dimension are left out if nothing in them changes.
    """
    groups = grouped(traces)
    lengths = {
        f"{label}, {name}": (color, style, _mean(group, name))
        for color, (label, group) in enumerate(groups.items())
        for name, style in (("radius", "-"), ("side", "--"))
        if _mean(group, name).any()
    }
    dims = {label: _mean(group, "target_dim") for label, group in groups.items()}
    names = ["values"]
    names += ["region"] * any(_varies(length) for _, _, length in lengths.values())
    names += ["dimension"] * any(_varies(dim) for dim in dims.values())
    figure, panes = _panes(names)
    _draw_best(panes["values"], groups)
    if "region" in panes:
        for label, (color, style, length) in lengths.items():
            panes["region"].plot(length, style, color=f"C{color}", label=label)
        panes["region"].set(ylabel="trust region", yscale="log")
        panes["region"].legend(fontsize="small")
    if "dimension" in panes:
        for color, dim in enumerate(dims.values()):
            panes["dimension"].plot(dim, color=f"C{color}")
        panes["dimension"].set(ylabel="target dimension", ylim=(0, None))
    figure.savefig(path, dpi=150)


def _draw_best(pane: Axes, groups: Mapping[str, Sequence[Trace]]) -> None:
    for color, (label, group) in enumerate(groups.items()):
        curves = np.array([trace.best[: _length(group)] for trace in group])
        mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=min(1, len(group) - 1)) / np.sqrt(len(group))
        trials = np.arange(_length(group))
        pane.plot(trials, mean, color=f"C{color}", label=f"{label} ({len(group)})")
        pane.fill_between(trials, mean - error, mean + error, color=f"C{color}", alpha=0.25, linewidth=0)
    pane.set(ylabel="best value so far", title="mean and standard error over seeds")
    pane.legend()


def _length(group: Sequence[Trace]) -> int:
    return min(len(trace.rows) for trace in group)


def _mean(group: Sequence[Trace], name: str) -> Array:
    """Return a column of traces, averaged over them."""
    mean: Array = np.array([trace.column(name)[: _length(group)] for trace in group]).mean(axis=0)
    return mean


def _varies(values: Array) -> bool:
    return bool(np.ptp(values) > 0)


def _panes(names: Sequence[str]) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure and its panes, one below the other, with the ids of trials as their common axis."""
    from matplotlib.figure import Figure  # the object, not pyplot: no window, no global state

    heights = [HEIGHTS[name] for name in names]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    axes = figure.subplots(len(names), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    axes[-1].set(xlabel="trial")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure, dict(zip(names, axes, strict=True))
