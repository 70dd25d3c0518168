"""Damage: commands that check a study file and save what is intact in a damaged one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bounce.cli.target import AnyPath, StudyPath, path_of


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

    The damaged file is not changed. Trials keep their ids and states. A trial that is lost keeps its id, outside the
    space.
    """
    from bounce.study.repair import check as damages
    from bounce.study.repair import repair as save

    path = path_of(target, study)
    whole = not damages(path)
    done = save(path, out)
    if whole:
        print(f"{path} is whole; {done.path} is a copy of it")
    elif done.exact:
        print(f"{done.path} is written: all {done.saved} trials are intact, and the run continues as before")
    else:
        lost = f"; lost: {', '.join(map(str, done.lost))}" if done.lost else ""
        print(f"{done.path} is written with {done.saved} trials{lost}")
