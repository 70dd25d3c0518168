"""Checking a study file, and saving what is intact in a damaged one (`salvage`).

The invariant: neither changes the file. What is saved was written by Bounce, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bounce.errors import BounceError, InvalidInput, InvalidStudy
from bounce.optimizer.bounce import Bounce
from bounce.study import rows
from bounce.study.history import Entry
from bounce.study.keeper import Keeper
from bounce.study.place import followed
from bounce.study.salvage import Lost, salvaged
from bounce.study.storage import Storage


def check(path: Path) -> list[str]:
    """Return what is wrong with a study file, as sentences; nothing if it is whole."""
    try:
        if not followed(path).exists():
            return [f"the study {path} does not exist"]
        storage = Storage(path)
    except BounceError as error:
        return [str(error)]
    try:
        damages = storage.integrity()
        _, state = storage.load()
        optimizer = Bounce.from_state_dict(state)
        storage.history()
    except BounceError as error:
        return [str(error)]
    finally:
        storage.close()
    return damages + [
        f"the point of trial {trial.id} is not the one of its codes"
        for trial, document in zip(optimizer.trials, state["trials"], strict=True)
        if trial.point != document["point"]
    ]


@dataclass(frozen=True)
class Repaired:
    """What a repair did."""

    path: Path
    exact: bool
    """Whether the run continues as if nothing had happened."""
    again: bool
    """Whether the search begins again, since its position is lost."""
    saved: int
    """How many trials were saved."""
    lost: Lost
    """The trials that could not be read."""
    lost_history: Lost
    """The changes in the history that could not be read."""


def repair(path: Path, out: Path) -> Repaired:
    """Save what is intact in a damaged study to a new file.

    Trials keep their ids and states. If only the history is damaged, the new study is the old one. If the position of
    the algorithm is damaged, the search begins again with all results that are intact.
    """
    if followed(out).exists():
        raise InvalidInput(f"{out} already exists: choose another name")
    if not followed(path).exists():
        raise InvalidStudy(f"the study {path} does not exist")
    try:
        saved = salvaged(followed(path))
    except rows.Unfit as error:
        raise InvalidStudy(f"{path} {error}") from error
    if saved is None:
        raise InvalidStudy(f"{path} cannot be repaired: its parameters or its options are lost")
    optimizer, there = saved.optimizer()
    said = {"from": str(path), "lost": saved.lost.ids, "lost_history": saved.lost_history.ids}
    _write(optimizer, out, [*saved.history.values(), Entry.now("repair", after=said)])
    exact = there and saved.lost == Lost([], certain=True)
    return Repaired(out, exact, not there, len(saved.trials), saved.lost, saved.lost_history)


def _write(optimizer: Bounce, out: Path, entries: list[Entry]) -> None:
    """Write a whole optimizer to a new file."""
    keeper = Keeper(out)
    try:
        keeper.create(optimizer)
        with keeper.changing() as same:
            same.touch_all()
            keeper.save(same, entries)
    finally:
        keeper.close()
