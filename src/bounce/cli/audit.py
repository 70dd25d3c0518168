"""Audit: the command that tests whether an optimizer depends on how a problem is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bounce.paper.audit import Report


def audit(
    methods: Annotated[
        list[str],
        typer.Argument(metavar="METHOD", help="Names such as bounce, tpe or bodi, or module:function for your own."),
    ],
    *,
    problem: Annotated[str | None, typer.Option(metavar="NAME", help="A problem of the paper, such as pest25.")] = None,
    spec: Annotated[Path | None, typer.Option(metavar="FILE", help="A spec with an objective or a command.")] = None,
    evals: Annotated[int, typer.Option(min=2, metavar="N", help="Evaluations of each run.")] = 100,
    repetitions: Annotated[
        int, typer.Option(min=5, metavar="N", help="Runs of each method on the problem as it is, and in disguise.")
    ] = 10,
    changes: Annotated[
        str, typer.Option(metavar="NAMES", help="What a disguise changes; shifts can be added.")
    ] = "labels,bits,direction,order",
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Make this many runs at the same time.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a picture, as PNG, SVG or PDF.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the picture if it already exists.")] = False,
) -> None:
    """Test whether methods depend on how a problem is written.

    Each method runs on the problem as it is, and with its categories renamed, its bits flipped, its scales reversed and
    its variables in another order, all at random. A reliable method is as good on one as on the other.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    from bounce.cli.outputs import check_plot
    from bounce.cli.table import show_table
    from bounce.errors import InvalidInput
    from bounce.paper.audit import Source, refuse
    from bounce.paper.audit import audit as compare
    from bounce.paper.runs import processes

    if (problem is None) == (spec is None):
        raise InvalidInput("give either --problem or --spec")
    if out is not None:
        check_plot(out, overwrite=overwrite)
    columns = ("runs", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    chosen, changed = list(dict.fromkeys(methods)), [word.strip() for word in changes.split(",")]
    refuse(Source(problem, spec), chosen, budget=evals, changes=changed)
    with processes(jobs) as executor, Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("runs", total=2 * repetitions * len(chosen))
        reports = compare(
            Source(problem, spec),
            chosen,
            executor,
            budget=evals,
            repetitions=repetitions,
            changes=changed,
            progress=lambda finished: progress.update(task, completed=finished),
        )
    show_table(("method", "evaluations", "as given", "in disguise", "difference", "p", "verdict"), _rows(reports))
    if out is not None:
        from bounce.report.figures import audited

        audited(reports, out, title=f"{problem or (spec and spec.stem)}: as given and in disguise")
        print(out)


def _rows(reports: Sequence[Report]) -> list[tuple[str, ...]]:
    """Return the lines of the table: two for each method, the verdict in the second."""
    rows = []
    for report in reports:
        for mark in report.marks:
            given, disguised = report.given[:, mark - 1], report.disguised[:, mark - 1]
            cells = [f"{own.mean():.5g} ± {own.std(ddof=1) / len(own) ** 0.5:.2g}" for own in (given, disguised)]
            last = mark == report.marks[-1]
            verdict = "depends on how it is written" if report.depends else "no dependence found"
            verdict += f" (p {report.p_value:.2g} for both marks)"
            gap = f"{disguised.mean() - given.mean():+.3g}"
            rows.append((report.method, str(mark), *cells, gap, f"{report.p(mark):.2g}", verdict if last else ""))
    return rows
