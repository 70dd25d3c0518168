"""Damage: commands that check a study file and save what is intact in a damaged one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bounce.cli.studies import AnyPath, StudyPath, path_of


def check(target: AnyPath, study: StudyPath = None) -> None:
    """Check that a study file is whole.

    Reads everything in the file and changes nothing. The exit code is 0 if the file is whole, and 1 if it is not.
    """
    from bounce.study.repair import check as damages

    path = path_of(target, study)
    found = damages(path)
    for sentence in found:
        print(f"bounce: {sentence}", file=sys.stderr)
    if found:
        raise typer.Exit(1)
    print(f"{path} is whole")


def repair(
    target: AnyPath,
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="The new file.")],
    study: StudyPath = None,
) -> None:
    """Save what is intact in a damaged study to a new file.

    The damaged file is not changed. If only its history is damaged, the new study continues as the old one would have.
    Otherwise all intact values are known results of a new study with the same parameters and options, and the rest of
    the budget is left.
    """
    from bounce.study.repair import repair as save

    done = save(path_of(target, study), out)
    if done.exact:
        print(f"{done.path} is written: all trials are intact, and the run continues as before")
        return
    ids = ", ".join(map(str, done.lost[:20])) + (", ..." if len(done.lost) > 20 else "")
    print(f"{done.path} is written with {done.saved} values" + (f"; lost: trials {ids}" if done.lost else ""))
