"""Measure everything and update RESULTS.md: how good the methods get, what batches gain, what suggestions cost.

BOUNCE_DATA=FOLDER python bench/results.py --quick --jobs 2
BOUNCE_DATA=FOLDER python bench/results.py --jobs 2
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import report
from bounce.errors import BounceError
from reference import check

HERE = Path(__file__).parent
FAST = "bounce,random,tpe,smac,cmaes,nevergrad"
SLOW = "gp-sampler,botorch"  # seconds to minutes per ask: fewer seeds, and a limit
QUICK = "bounce,tpe"


def commands(
    document: Path,
    *,
    quick: bool,
    jobs: int,
    out: Path,
    published: Sequence[Path] = (),
    reference: tuple[Path, Path] | None = None,
) -> list[list[str]]:
    """Return the commands to run, in order."""
    quality = [str(HERE / "quality.py"), "--jobs", str(jobs), "--out", str(out)]
    batches = [str(HERE / "batches.py"), "--jobs", str(jobs), "--out", str(out), "--results", str(document)]
    theirs = [] if reference is None else ["--reference", str(reference[0]), "--reference-python", str(reference[1])]
    whole = [[str(HERE / "whole.py"), *theirs, "--results", str(document)]] if theirs else []
    latency = [str(HERE / "latency.py"), "--grid", "--table", str(out / "latency.csv"), "--results", str(document)]
    shown = ["--results", str(document), *(word for path in published for word in ("--published", str(path)))]
    if quick:
        return [
            [*quality, "--quick", *shown],
            [*batches, "--problems", "labs50", "--seeds", "0"],
            *whole,
            [*latency, "--methods", QUICK, "--patience", "60"],
        ]
    return [
        [*quality, "--methods", FAST],
        [*quality, "--methods", SLOW, "--seeds", "0-2", "--limit", "300"],
        [*quality, "--only-report", *shown],
        batches,
        *whole,
        [*latency, *theirs],
    ]


def main(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Few methods, problems and seeds.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of traces and rows.")] = HERE / "traces",
    document: Annotated[Path, typer.Option(help="The document whose tables are replaced.")] = HERE / "RESULTS.md",
    published: Annotated[list[Path] | None, typer.Option(help="Runs of the authors' code to show (CSV).")] = None,
    reference: Annotated[Path | None, typer.Option(help="A checkout of the authors' code.")] = None,
    reference_python: Annotated[Path | None, typer.Option(help="The Python that has its packages.")] = None,
) -> None:
    """Measure everything and update the document."""
    report.check(document, "quality", "batches", "whole", "latency", out=out, files=published or [])
    if reference is not None:
        check(reference, reference_python)
    theirs = None if reference is None else (reference, reference_python or Path(sys.executable))
    chosen = commands(document, quick=quick, jobs=jobs, out=out, published=published or [], reference=theirs)
    for command in chosen:
        if (code := subprocess.run([sys.executable, *command]).returncode) != 0:
            raise typer.Exit(code)


if __name__ == "__main__":
    try:
        typer.run(main)
    except BounceError as error:
        raise SystemExit(f"results: {error}") from None
