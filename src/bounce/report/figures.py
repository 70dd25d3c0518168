"""The figures of the paper, drawn from runs: mean and standard error, in one style, readable without colours.

A method has the same colour and line style in all figures. The legend says how many repetitions its curves have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from bounce.baselines.rivals.dictionaries import published
from bounce.gp.linalg import Array
from bounce.paper.analyses import (
    ACTIONS,
    CATEGORIES,
    DIMENSIONS,
    SIZES,
    STATIONS,
    graph_of,
    one_category_table,
    prior_of,
    zero_sequency_table,
)
from bounce.paper.audit import Report
from bounce.paper.figures import Curve, Figure
from bounce.paper.traces import INITIAL, Seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

Runs = Callable[[Curve], Sequence[Seen]]

# The colours of Okabe and Ito, which people with any colour vision can tell apart, and a line style for each.
STYLES: dict[str, dict[str, Any]] = {
    "bounce": {"color": "#0072B2", "linestyle": "-"},
    "bounce-default": {"color": "#000000", "linestyle": "-"},
    "bounce-low": {"color": "#56B4E9", "linestyle": "-"},
    "bounce-casmopolitan": {"color": "#009E73", "linestyle": "--"},
    "bounce-baxus": {"color": "#CC79A7", "linestyle": "--"},
    "baxus": {"color": "#CC79A7", "linestyle": "-."},
    "bodi": {"color": "#E69F00", "linestyle": "--"},
    "casmopolitan": {"color": "#009E73", "linestyle": "-."},
    "combo": {"color": "#D55E00", "linestyle": ":"},
    "combo-fixed": {"color": "#D55E00", "linestyle": "-"},
    "rducb": {"color": "#CC79A7", "linestyle": ":"},
    "smac": {"color": "#8B8B00", "linestyle": "--"},
    "random": {"color": "#999999", "linestyle": ":"},
}
SHADES = {1: 1.0, 3: 0.85, 5: 0.7, 10: 0.55, 20: 0.4}  # how strong a curve with batches is
WIDTH, HEIGHT, ACROSS = 3.6, 2.9, 4  # inches of a panel, and panels in a row
LETTER, HANDLE = 0.058, 0.6  # inches of a letter of a legend, and of the line before a label
TITLE = 0.1  # inches of a letter of a title
DRAWS = 20_000
PUBLISHED, FIXED = "#D55E00", "#0072B2"  # the two graphs of COMBO


def summary(curve: Curve, traces: Sequence[Seen]) -> dict[str, Any]:
    """Return what is kept of a curve's runs: mean and standard error after each evaluation, and the repetitions."""
    length = min(len(trace.best) for trace in traces)
    best = np.array([trace.best[:length] for trace in traces])
    error = best.std(axis=0, ddof=1) / np.sqrt(len(best)) if len(best) > 1 else np.zeros(length)
    return {
        "problem": curve.problem,
        "version": curve.version,
        "method": curve.method.key,
        "batch": curve.batch,
        "repetitions": len(best),
        "mean": _rounded(best.mean(axis=0)),
        "error": _rounded(error),
    }


def _rounded(values: Array) -> list[float]:
    """Return values with six digits, which is more than a picture shows."""
    return [float(f"{value:.6g}") for value in values]


def draw(figure: Figure, runs: Runs, out: Path) -> list[Path]:
    """Write a figure as PNG, SVG and, if it shows runs, the summaries as JSON; return the files, none without runs."""
    stem = out / f"figure-{figure.number:02d}"
    if figure.analysis is not None:
        picture = _ANALYSES[figure.analysis](figure, runs)
        kept = None
    else:
        found = [(curve, list(runs(curve))) for curve in figure.curves()]
        shown = [(curve, traces) for curve, traces in found if traces]
        if not shown:
            return []
        kept = [summary(curve, traces) for curve, traces in shown]
        picture = _curves(figure, list(zip([curve for curve, _ in shown], kept, strict=True)))
    out.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for path in paths:
        picture.savefig(path, dpi=110)
    if kept is not None:
        paths.append(stem.with_suffix(".json"))
        paths[-1].write_text(json.dumps(kept), encoding="utf-8")
    return paths


def _picture(panels: int, title: str) -> tuple[Picture, list[Axes]]:
    """Return an empty picture of some panels."""
    from matplotlib.figure import Figure as Picture

    across = min(panels, ACROSS)
    down = -(-panels // across)
    picture = Picture(figsize=(WIDTH * across + 0.6, HEIGHT * down + 1.3), layout="constrained")
    axes = np.atleast_1d(picture.subplots(down, across, squeeze=False)).ravel().tolist()
    for unused in axes[panels:]:
        unused.set_axis_off()
    letters = int(picture.get_figwidth() / TITLE)
    picture.suptitle("\n".join(wrap(title, letters)))
    return picture, axes[:panels]


def _curves(figure: Figure, curves: Sequence[tuple[Curve, dict[str, Any]]]) -> Picture:
    """Draw one panel for each problem and version, or for each problem."""
    keys = [(curve.problem, "" if figure.together else curve.version) for curve, _ in curves]
    panels = list(dict.fromkeys(keys))
    picture, axes = _picture(len(panels), f"Figure {figure.number}: {figure.title}")
    lines: dict[str, Any] = {}
    repetitions: dict[str, list[int]] = {}
    for (problem, version), axis in zip(panels, axes, strict=True):
        axis.set_title(f"{problem}, {version}" if version else problem, fontsize=10)
        shown = []
        for (curve, kept), key in zip(curves, keys, strict=True):
            if key == (problem, version):
                style = dict(STYLES[curve.method.key], alpha=SHADES.get(curve.batch, 1.0))
                label = curve.label
                if figure.together:
                    style["linestyle"] = "-" if curve.version == "original" else "--"
                    label = f"{curve.method.label}, {curve.version}"
                shown.append(_line(axis, kept, figure.axis, style, label))
                repetitions.setdefault(label, []).append(kept["repetitions"])
        _zoom(axis, shown)
        axis.set(xlabel=figure.axis, ylabel="best value")
        for line in axis.get_lines():
            lines.setdefault(str(line.get_label()), line)
    labels = [f"{label} ({_span(repetitions[label])})" for label in lines]
    widest = LETTER * max(map(len, labels)) + HANDLE
    across = min(4, max(1, int(picture.get_figwidth() / widest)))
    picture.legend(lines.values(), labels, loc="outside lower center", ncols=across, fontsize=8)
    return picture


def _span(counts: Sequence[int]) -> str:
    """Return the number of repetitions, or the fewest and the most of the panels: `5` or `5 to 10`."""
    fewest, most = min(counts), max(counts)
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


def _line(axis: Axes, kept: dict[str, Any], counted: str, style: dict[str, Any], label: str) -> Array:
    """Draw mean and standard error; return the mean."""
    mean, error = np.array(kept["mean"]), np.array(kept["error"])
    x = np.arange(1, len(mean) + 1)
    if counted == "batches":
        last = np.arange(kept["batch"] - 1, len(mean), kept["batch"])
        mean, error, x = mean[last], error[last], np.arange(1, len(last) + 1)
    axis.plot(x, mean, label=label, linewidth=1.4, **style)
    axis.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0)
    return mean


def _zoom(axis: Axes, means: Sequence[Array]) -> None:
    """Show the values from the best one to where methods are after a twentieth of the evaluations, at least five."""
    means = [mean for mean in means if len(mean)]  # a run that has just begun has no whole batch
    if not means:
        return
    low = min(float(mean.min()) for mean in means)
    high = max(float(mean[min(max(len(mean) // 20, INITIAL), len(mean)) - 1]) for mean in means)
    if high > low:
        axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _grid(values: Array, axis: Axes) -> None:
    """Draw probabilities by the size of the dictionary, a line for each dimension."""
    markers = zip(("#0072B2", "#E69F00", "#009E73", "#D55E00", "#000000"), "osD^v", strict=True)
    for d, row, (color, marker) in zip(DIMENSIONS, values, markers, strict=True):
        axis.plot(SIZES, row, marker=marker, markersize=4, label=f"{d} variables", color=color)
    axis.set_xscale("log", base=2)
    axis.set_xticks(SIZES, [str(m) for m in SIZES])
    axis.set(xlabel="anchors in the dictionary", ylabel="probability", ylim=(-0.02, 1.02))


def _zero_sequency(figure: Figure, runs: Runs) -> Picture:
    picture, (axis,) = _picture(1, f"Figure {figure.number}: {figure.title}")
    _grid(zero_sequency_table(), axis)
    axis.legend(fontsize=8)
    return picture


def _one_category(figure: Figure, runs: Runs) -> Picture:
    """Draw a panel for each number of categories."""
    picture, axes = _picture(len(CATEGORIES), f"Figure {figure.number}: {figure.title}")
    for categories, axis in zip(CATEGORIES, axes, strict=True):
        _grid(one_category_table(categories), axis)
        axis.set_title(f"{categories} categories", fontsize=10)
    axes[-1].legend(fontsize=8)
    return picture


def _category_shares(figure: Figure, runs: Runs) -> Picture:
    """Draw how many entries of an anchor have each category."""
    picture, axes = _picture(ACTIONS, f"Figure {figure.number}: {figure.title}")
    anchors = published(np.full(STATIONS, ACTIONS), DRAWS, rng=np.random.default_rng(0))
    for category, axis in enumerate(axes):
        counts = (anchors == category).sum(axis=1)
        axis.hist(counts, bins=[k - 0.5 for k in range(STATIONS + 2)], color="#0072B2")
        axis.set_title(f"category {category + 1}: a share of {counts.mean() / STATIONS:.4f}", fontsize=10)
        axis.set(xlabel="entries of an anchor", ylabel="anchors")
    _level(axes)
    return picture


def _level(axes: Sequence[Axes]) -> None:
    """Give panels that are to be compared the same scale."""
    highest = max((axis.get_ylim()[1] for axis in axes), default=1.0)
    for axis in axes:
        axis.set_ylim(0.0, highest)


def _combo_categories(figure: Figure, runs: Runs) -> Picture:
    """Draw the graphs of a variable, the prior variance of each category, and what COMBO proposed where it was run."""
    found = [(curve, list(runs(curve))) for curve in figure.curves()]
    shown = [(curve, traces) for curve, traces in found if traces]
    picture, (published, fixed, prior, *others) = _picture(3 + len(shown), f"Figure {figure.number}: {figure.title}")
    _matrix(published, graph_of(fixed=False), PUBLISHED, "adjacency matrix, COMBO")
    _matrix(fixed, graph_of(fixed=True), FIXED, "adjacency matrix, fixed")
    places = np.arange(1, ACTIONS + 1)
    prior.bar(places - 0.2, prior_of(fixed=False), 0.4, label="COMBO", color=PUBLISHED)
    prior.bar(places + 0.2, prior_of(fixed=True), 0.4, label="fixed", color=FIXED)
    prior.set(xlabel="category", ylabel="prior variance at β = 1")
    prior.set_title("variance before any data", fontsize=10)
    prior.legend(fontsize=8)
    for (curve, traces), axis in zip(shown, others, strict=True):
        counts = np.array([sum(trace.proposed.get(action, 0) for trace in traces) for action in range(1, ACTIONS + 1)])
        color = FIXED if curve.method.key == "combo-fixed" else PUBLISHED
        axis.bar(places, counts / max(1, counts.sum()), color=color)
        axis.axhline(1.0 / ACTIONS, color="0.3", linestyle=":")
        axis.set_title(f"{curve.method.label}, {curve.version} ({len(traces)})", fontsize=10)
        axis.set(xlabel="category", ylabel="share of proposals")
    _level(others)
    return picture


def _matrix(axis: Axes, graph: Array, color: str, title: str) -> None:
    """Draw an adjacency matrix: edges are coloured, and every entry is written."""
    from matplotlib.colors import ListedColormap

    n = len(graph)
    axis.imshow(graph, cmap=ListedColormap(["white", color]), extent=(0.5, n + 0.5, n + 0.5, 0.5))
    for i, j in np.ndindex(graph.shape):
        axis.text(
            j + 1, i + 1, f"{graph[i, j]:.0f}", ha="center", va="center", color="white" if graph[i, j] else "black"
        )
    axis.set(xlabel="category", ylabel="category", xticks=range(1, n + 1), yticks=range(1, n + 1))
    axis.set_title(title, fontsize=10)


_ANALYSES: dict[str, Callable[[Figure, Runs], Picture]] = {
    "zero_sequency": _zero_sequency,
    "one_category": _one_category,
    "category_shares": _category_shares,
    "combo_categories": _combo_categories,
}


def audited(reports: Sequence[Report], path: Path, *, title: str) -> None:
    """Write the picture of an audit: a panel for each method, the problem as it is and in disguise."""
    picture, axes = _picture(len(reports), title)
    for report, axis in zip(reports, axes, strict=True):
        for values, label, color, style in (
            (report.given, "as given", "#E69F00", "-"),
            (report.disguised, "in disguise", "#009E73", "--"),
        ):
            mean, n = values.mean(axis=0), len(values)
            error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros_like(mean)
            x = np.arange(1, len(mean) + 1)
            axis.plot(x, mean, label=f"{label} ({n})", color=color, linestyle=style)
            axis.fill_between(x, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
        axis.set_title(f"{report.method}, p = {report.p_value:.2g}", fontsize=10, parse_math=False)
        axis.set(xlabel="evaluations", ylabel="best value")
        axis.legend(fontsize=8)
    picture.savefig(path, dpi=110)
