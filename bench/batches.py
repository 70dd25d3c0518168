"""Measure what larger batches gain, and what longer runs cost.

    python bench/batches.py --jobs 2

After the same number of batches, a run with larger batches has seen more points and should be better. Every run is
one trace, FOLDER/batches/EVALUATIONS/PROBLEM/bounce-batchB-seedN.jsonl; runs that are complete are not repeated.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markdown import Markdown

import report
import scores
from bounce.errors import BounceError, InvalidInput
from bounce.paper.traces import Trace
from quality import PROBLEMS, Cell, numbers, run_all, words

SIZES = ((1, 200), (1, 500), (5, 1000), (10, 2000), (20, 2000))  # points per batch, evaluations
MARKS = (25, 50, 100, 200)  # batches
HOUR = 3600.0

Found = Mapping[tuple[str, int, int], Sequence[Trace]]  # by problem, points per batch, evaluations


def markdown(found: Found) -> str:
    """Return a table of the best values after numbers of batches, and the total seconds of all asks."""
    text = io.StringIO()
    for problem in dict.fromkeys(problem for problem, _, _ in found):
        text.write(f"\n**{problem}**\n\n| points per batch | evaluations | seeds |")
        text.write("".join(f" after {mark} batches |" for mark in MARKS) + " at the end | optimizer s |\n")
        text.write("|" + "---|" * (len(MARKS) + 5) + "\n")
        for (name, batch, evals), traces in found.items():
            if name == problem:
                at = [mark * batch if mark * batch <= evals else None for mark in MARKS]
                cells = ["" if n is None else _mean([t.best[n - 1] for t in traces]) for n in at]
                spent = np.mean([t.column("seconds_ask").sum() for t in traces])
                cells += [_mean([t.best[-1] for t in traces]), f"{spent:.0f}"]
                text.write(f"| {batch} | {evals} | {len(traces)} | {' | '.join(cells)} |\n")
    return text.getvalue().lstrip()


def _mean(values: Sequence[float]) -> str:
    return scores.mean_and_error(values, len(values))


def main(
    *,
    problems: Annotated[str, typer.Option(help="Comma-separated names.")] = "labs50,pest25,contamination25",
    seeds: Annotated[str, typer.Option(help="Such as 0-9 or 0,1,5.")] = "0-4",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of the traces.")] = Path("bench/traces"),
    results: Annotated[Path | None, typer.Option(help="The document whose table is replaced.")] = None,
) -> None:
    """Measure what larger batches gain, and print a table."""
    cells = [
        Cell(out / "batches" / str(evals), problem, scores.REFERENCE, seed, evals, HOUR, batch)
        for problem in words(problems, PROBLEMS, "problem")
        for batch, evals in SIZES
        for seed in numbers(seeds)
    ]
    report.check(results, "batches", out=out)
    missing = [cell for cell in cells if cell.missing()]
    if missing:
        run_all(missing, jobs, Console(stderr=True))
    found: dict[tuple[str, int, int], list[Trace]] = {}
    for cell in cells:
        if (trace := cell.trace()) is not None:
            found.setdefault((cell.title, cell.batch, cell.evals), []).append(trace)
    if not found:
        raise InvalidInput(f"no run was finished in {str(out)!r}")
    table = markdown(found)
    if results is not None:
        report.renew(results, "batches", table)
    Console().print(Markdown(table))


if __name__ == "__main__":
    try:
        typer.run(main)
    except BounceError as error:
        raise SystemExit(f"batches: {error}") from None
