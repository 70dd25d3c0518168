"""Damage: commands that check a study file and save what is intact in a damaged one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bounce.cli.target import AnyPath, StudyPath, path_of

if TYPE_CHECKING:
    from bounce.study.repair import Repaired


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
    space, and costs no budget. What is lost is listed, as far as the file shows it.
    """
    from bounce.study.repair import check as damages
    from bounce.study.repair import repair as save

    path = path_of(target, study)
    whole = not damages(path)
    done = save(path, out)
    if whole:
        print(f"{path} is whole; {done.path} is a copy of it")
    else:
        print("\n".join(_sentences(done)))


def _sentences(done: Repaired) -> Iterator[str]:
    """Yield what a repair has saved, what is lost, and what that means for the run."""
    lost, changes = done.lost, done.lost_history
    if done.exact:
        yield f"{done.path} is written: all {done.saved} trials are intact, and the run continues as before"
    else:
        yield f"{done.path} is written with {done.saved} trials" + (f"; lost: {_listed(lost.ids)}" if lost.ids else "")
    if done.again:
        yield "the search begins again with what is saved, since its position is lost"
    if lost.ids:
        goes_on = "" if done.again else ", and the run continues without them"
        yield f"lost trials keep their ids and cost no budget{goes_on}"
    if not lost.certain:
        yield (
            "whether newer trials are lost too cannot be known: their ids may be given out again"
            if done.again
            else "newer trials that had no result yet may be lost too: their ids may be given out again"
        )
    if changes.ids:
        more = "" if changes.certain else ", and perhaps newer ones"
        yield f"lost of the history: change {_listed(changes.ids)}{more}"
    elif not changes.certain:
        yield "whether changes of the history are lost cannot be known"


def _listed(ids: Sequence[int]) -> str:
    """Return numbers in order, such as 2, 15 to 19."""
    runs: list[tuple[int, int]] = []
    for i in ids:
        if runs and i == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], i
        else:
            runs.append((i, i))
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
