"""Scores: a table and a picture of the traces of several methods on several problems.

A value is the best of a run after a number of evaluations. A run that was stopped earlier has no value there.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, wilcoxon

from bounce.errors import InvalidInput
from bounce.paper.traces import Trace

MARKS = (50, 100, 200)
REFERENCE = "bounce"
SHOWN = 10  # evaluations from which on all values are in the picture
LEVEL = 0.05  # below it, a difference counts as one
AUTHORS = "authors' code"


@dataclass(frozen=True)
class Runs:
    """The runs of one method on one problem, by seed."""

    best: Mapping[int, Mapping[int, float]]
    """Seed, evaluations, best value so far; evaluations that were not reached are absent."""
    length: Mapping[int, int] = field(default_factory=dict)
    """The evaluations each seed reached."""
    seconds: float = float("nan")
    """The median time of an ask, without the first ones."""

    def at(self, mark: int) -> dict[int, float]:
        """Return the best values after n evaluations, by seed."""
        return {seed: values[mark] for seed, values in sorted(self.best.items()) if mark in values}


Scores = dict[str, dict[str, Runs]]  # by problem, by method


def of_traces(traces: Iterable[tuple[str, str, int, Trace]], marks: Sequence[int] = MARKS) -> Scores:
    """Return the scores of traces, each given with its problem, method and seed."""
    cells: dict[tuple[str, str], dict[int, Trace]] = {}
    for problem, method, seed, trace in traces:
        cells.setdefault((problem, method), {})[seed] = trace
    scores: Scores = {}
    for (problem, method), runs in cells.items():
        asks = np.concatenate([trace.column("seconds_ask")[5:] for trace in runs.values()])
        scores.setdefault(problem, {})[method] = Runs(
            {s: {m: float(t.best[m - 1]) for m in marks if m <= len(t.rows)} for s, t in runs.items()},
            {s: len(t.rows) for s, t in runs.items()},
            float(np.median(asks)) if len(asks) else float("nan"),
        )
    return scores


def with_published(scores: Scores, paths: Sequence[Path]) -> Scores:
    """Return the scores with the runs of the authors' code from some tables added as one more method.

    The tables have the columns method, problem_randomized, seed, evaluations, best.
    """
    found: dict[str, dict[tuple[str, str], dict[int, float]]] = {}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            wanted = {"method", "problem_randomized", "seed", "evaluations", "best"}
            if not wanted <= set(rows.fieldnames or ()):
                raise InvalidInput(f"{path} must have the columns {', '.join(sorted(wanted))}")
            for row in rows:
                if row["method"].startswith("authors"):
                    runs = found.setdefault(row["problem_randomized"], {})
                    run = runs.setdefault((row["method"], row["seed"]), {})
                    try:
                        run[int(row["evaluations"])] = float(row["best"])
                    except (ValueError, TypeError) as error:
                        raise InvalidInput(f"{path}, line {rows.line_num}: {error}") from None
    more = {problem: dict(methods) for problem, methods in scores.items()}
    for problem in more:
        if (known := found.get(problem.removesuffix("-randomized"))) is not None:
            values = dict(enumerate(known.values()))
            more[problem][AUTHORS] = Runs(values, {i: max(run) for i, run in values.items()})
    return more


def p_value(one: Mapping[int, float], other: Mapping[int, float]) -> float | None:
    """Return the two-sided p-value of Wilcoxon's signed-rank test over common seeds; None below two seeds."""
    seeds = sorted(one.keys() & other.keys())
    if len(seeds) < 2:
        return None
    differences = np.array([one[seed] - other[seed] for seed in seeds])
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, method="auto").pvalue)


def ranks(scores: Scores, mark: int) -> dict[str, list[float]]:
    """Return the ranks of each method by its mean at a mark, one per problem on which it reached the mark.

    Runs from a table are left out: they are few, of other seeds, and on some of the problems.
    """
    found: dict[str, list[float]] = {}
    for methods in scores.values():
        own = {method: at for method, runs in methods.items() if method != AUTHORS and (at := runs.at(mark))}
        means = [rounded(float(np.mean(list(at.values())))) for at in own.values()]
        for method, rank in zip(own, rankdata(means), strict=True):
            found.setdefault(method, []).append(float(rank))
    return found


def verdict(scores: Scores, method: str, mark: int) -> tuple[int, int]:
    """Return on how many problems the reference is better and worse than a method, beyond chance."""
    better = worse = 0
    for methods in scores.values():
        if REFERENCE not in methods or method not in methods:
            continue
        ours, theirs = methods[REFERENCE].at(mark), methods[method].at(mark)
        p = p_value(ours, theirs)
        if p is not None and p < LEVEL:
            lower = sum(ours[s] - theirs[s] for s in ours.keys() & theirs.keys()) < 0
            better, worse = better + lower, worse + (not lower)
    return better, worse


def markdown(scores: Scores, marks: Sequence[int] = MARKS) -> str:
    """Return the scores as Markdown: a summary, then a table per problem."""
    last = marks[-1]
    text = io.StringIO()
    text.write(
        f"| method | average rank at {last} | problems | Bounce better (p < {LEVEL}) | Bounce worse |\n"
        "|---|---|---|---|---|\n"
    )
    shown = any(REFERENCE in methods for methods in scores.values())
    for method, got in sorted(ranks(scores, last).items(), key=lambda item: float(np.mean(item[1]))):
        compared = ("", "") if method == REFERENCE or not shown else verdict(scores, method, last)
        text.write(f"| {method} | {np.mean(got):.2f} | {len(got)} | {compared[0]} | {compared[1]} |\n")
    for problem, methods in scores.items():
        text.write(f"\n**{problem}**\n\n| method | seeds |")
        text.write("".join(f" {mark} |" for mark in marks) + " p | s per ask |\n|" + "---|" * (len(marks) + 4) + "\n")
        for method, runs in methods.items():
            cells = [mean_and_error(list(runs.at(mark).values()), len(runs.best)) for mark in marks]
            p = None
            if method not in (REFERENCE, AUTHORS) and REFERENCE in methods:
                p = p_value(methods[REFERENCE].at(last), runs.at(last))
            asked = "" if np.isnan(runs.seconds) else f"{runs.seconds:.2g}"
            cells += ["" if p is None else f"{p:.2g}", asked]
            text.write(f"| {method} | {len(runs.best)} | {' | '.join(cells)} |\n")
        for method, runs in methods.items():
            short = sorted(n for n in runs.length.values() if n < last)
            if short and method != AUTHORS:
                n = f"{short[0]}" if short[0] == short[-1] else f"{short[0]} to {short[-1]}"
                text.write(f"\n{method}: {len(short)} of {len(runs.length)} runs were stopped after {n} evaluations.\n")
    return text.getvalue()


def rounded(value: float) -> float:
    """Return a value without its last digits, in which means of equal values differ."""
    return float(f"{value:.13g}")


def mean_and_error(values: Sequence[float], seeds: int) -> str:
    """Return mean ± standard error, with the number of runs where it is not all of them.

    The mean has four digits, or as many as the error calls for.
    """
    if not values:
        return "not reached"
    mean, error = (
        float(np.mean(values)),
        float(np.std(values, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))),
    )
    error = error if error > 1e-13 * abs(mean) else 0.0
    digits = 4 if error == 0 or mean == 0 else int(np.clip(np.ceil(np.log10(abs(mean) / error)) + 1, 4, 15))
    some = f" ({len(values)} of {seeds})" if len(values) < seeds else ""
    return f"{mean:.{digits}g}{f' ± {error:.2g}' if len(values) > 1 else ''}{some}"


def picture(traces: Iterable[tuple[str, str, int, Trace]], path: Path) -> None:
    """Draw the best value so far of every method on every problem, mean and standard error, in few colours."""
    from matplotlib.figure import Figure
    from PIL import Image

    groups: dict[str, dict[str, list[Trace]]] = {}
    for problem, method, _, trace in traces:
        groups.setdefault(problem, {}).setdefault(method, []).append(trace)
    methods = list(dict.fromkeys(method for group in groups.values() for method in group))
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(4 * columns, 3 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (problem, group) in zip(axes, groups.items(), strict=False):
        for method, runs in group.items():
            n = min(len(run.rows) for run in runs)
            curves = np.array([run.best[:n] for run in runs])
            mean = curves.mean(axis=0)
            error = curves.std(axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))
            style = {"color": f"C{methods.index(method)}"}
            axis.plot(np.arange(1, n + 1), mean, label=method, linewidth=2 if method == REFERENCE else 1, **style)
            axis.fill_between(np.arange(1, n + 1), mean - error, mean + error, alpha=0.2, linewidth=0, **style)
        start = max(run.best[min(SHOWN, len(run.rows)) - 1] for runs in group.values() for run in runs)
        axis.set_ylim(top=start + 0.05 * (start - axis.get_ylim()[0]))
        axis.set_title(problem, fontsize="medium")
    for axis in axes[len(groups) :]:
        axis.set_axis_off()
    handles = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(8, len(handles)))
    figure.supxlabel("evaluations", fontsize="medium")
    figure.supylabel("best value so far", fontsize="medium")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=75, format="png")
    Image.open(buffer).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(path, optimize=True)
