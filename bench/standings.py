"""Standings: regrets as text and as a picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regret import Board, Duel, duel, rows
from scores import LEVEL

COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c")  # Okabe and Ito
STYLES = ("-", "--", ":", "-.")
FIRST = 5  # the first evaluation in the picture
LEGEND = (
    "Regret is 0 for the best value that any run found and 1 for the median of random search at the same mark "
    "(values above 10 count as 10); the mean over problems ± its standard error, each problem being the mean of its "
    "seeds. The worst seed is that of any problem. Worse: problems on which the mean is higher than that of random "
    f"search; clearly: with p < {LEVEL}, one-sided Wilcoxon signed-rank test over seeds, which takes five of them."
)


def summary(board: Board, marks: Sequence[int]) -> str:
    """Return a Markdown table of what is said of every label at every mark."""
    text = io.StringIO()
    text.write("| evaluations | method | problems | average rank | regret | worst seed | worse | clearly |\n")
    text.write("|---|---|---|---|---|---|---|---|\n")
    for mark in marks:
        for row in rows(board, mark):
            compared = [("" if count is None else str(count)) for count in (row.worse, row.clearly)]
            text.write(
                f"| {mark} | {row.label} | {row.problems} | {row.rank:.2f} | {row.regret:.3f} ± {row.error:.3f} | "
                f"{row.worst:.2f} ({row.worst_at}) | {' | '.join(compared)} |\n"
            )
    return text.getvalue()


def details(board: Board, marks: Sequence[int]) -> str:
    """Return a Markdown table of the mean values of all labels, one row per problem."""
    text = io.StringIO()
    text.write(f"| problem | seeds | {' | '.join(board.labels)} |\n|---|---|{'---|' * len(board.labels)}\n")
    for problem in board.problems:
        values = [board.common(problem, mark) for mark in marks]
        seeds = sorted({len(own) for at in values for own in at.values()})
        cells = []
        for label in board.labels:
            means = [f"{np.mean(list(at[label].values())):.4g}" if at else "–" for at in values]
            cells.append(" / ".join(means))
        text.write(f"| {problem} | {'–'.join(map(str, seeds))} | {' | '.join(cells)} |\n")
    return text.getvalue()


def document(board: Board, marks: Sequence[int], left_out: int) -> str:
    """Return both tables with their legend."""
    at = ", ".join(map(str, marks))
    missing = f"\n{left_out} problems are left out: not every method has a run on them.\n" if left_out else ""
    return (
        f"{LEGEND}\n\n{summary(board, marks)}{missing}\n"
        f"Mean values after {at} evaluations, the true values for problems with noise:\n\n{details(board, marks)}"
    )


def comparison(board: Board, marks: Sequence[int]) -> str:
    """Return how the two labels of a board compare, as a Markdown table."""
    first, second = board.labels
    text = io.StringIO()
    text.write(
        f"{first} against {second}. Won and lost: p < {LEVEL}, one-sided Wilcoxon signed-rank test over seeds, which "
        "takes five of them. Lower and higher: the means alone. The difference of regrets is the first minus the "
        "second, so a negative one is in favour of the first.\n\n"
        "| evaluations | won | lost | tied | lower | higher | difference of regrets | worst problem |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    for mark in marks:
        found: Duel = duel(board, mark)
        text.write(
            f"| {mark} | {found.won} | {found.lost} | {found.tied} | {found.lower} | {found.higher} | "
            f"{found.difference:+.3f} ± {found.error:.3f} | {found.worst:+.2f} ({found.worst_at}) |\n"
        )
    return text.getvalue()


def picture(board: Board, last: int, path: Path) -> None:
    """Draw the mean regret of every label and its standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axis = figure.subplots()
    steps = board.steps(FIRST, last)
    curves: dict[str, list[list[float]]] = {label: [] for label in board.labels}
    for problem in board.problems:
        found = [board.regrets(problem, n) for n in steps]
        if all(found):
            for label in board.labels:
                curves[label].append([float(np.mean(at[label])) for at in found])
    for i, (label, own) in enumerate(curves.items()):
        if not own:
            continue
        mean = np.mean(own, axis=0)
        error = np.std(own, axis=0, ddof=min(1, len(own) - 1)) / np.sqrt(len(own))
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        axis.plot(steps, mean, color=colour, linestyle=style, linewidth=2 if i == 0 else 1.3, label=label)
        axis.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
    axis.set_xlabel("evaluations")
    axis.set_ylabel("normalised regret, mean over problems")
    axis.set_ylim(bottom=0)
    axis.set_title(f"{len(next(iter(curves.values())))} problems", fontsize="medium")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=100)
