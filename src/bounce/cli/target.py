"""Target: the study that a command is about, named by its file or by its spec.

A study is created only where a command asks for it, and its space changes only with `--change`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bounce.spaces.space import Space
    from bounce.spec.spec import Spec
    from bounce.study.study import Study

SpecPath = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The spec, a TOML file. `bounce init` writes an example.")
]
AnyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The file of the study, or its spec.")]
StudyPath = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="PATH",
        help="The file of the study, if it is not NAME.db beside the spec, NAME being the name in the spec.",
    ),
]
Change = Annotated[
    bool,
    typer.Option("--change", help="Continue with the parameters now in the spec. Results that still fit are kept."),
]


def place(described: Spec, study: Path | None) -> Path:
    """Return the file of a spec's study."""
    from bounce.errors import InvalidStudy

    if study is None:
        return described.study
    if not study.name or os.path.isdir(study):
        raise InvalidStudy(f"--study {str(study)!r} is a folder, but a study is a file")
    return study


@contextmanager
def open_study(target: Path, study: Path | None, *, create: bool = False, change: bool = False) -> Iterator[Study]:
    """Open the study that a spec or a path stands for."""
    from bounce.errors import InvalidStudy
    from bounce.spec.document import load
    from bounce.study.place import exists
    from bounce.study.study import Study

    if target.suffix.lower() == ".toml":
        described = load(target)
        path = place(described, study)
        if not create and not exists(path):
            raise InvalidStudy(
                f"the study {path} does not exist; bounce {_next(described)} {as_argument(target)} creates it"
            )
        with described_study(described, path, {}, change=change) if create else Study.open(path) as opened:
            if create:
                say_unused_starts(described, opened)
            yield opened
    else:
        if study is not None:
            raise InvalidStudy(
                f"--study is only for specs, which end in .toml, and {target} is not one: leave --study out"
            )
        if not exists(target):
            raise InvalidStudy(f"the study {target} does not exist; bounce run or bounce ask with its spec creates it")
        with Study.open(target) as opened:
            yield opened


def as_argument(path: Path) -> str:
    """Return a path as a command takes it: what begins with a dash would be an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def path_of(target: Path, study: Path | None) -> Path:
    """Return the existing file of the study that a spec or a path stands for, which may be damaged."""
    from bounce.errors import InvalidStudy
    from bounce.spec.document import load
    from bounce.study.place import exists

    path = place(load(target), study) if target.suffix.lower() == ".toml" else target
    if not exists(path):
        raise InvalidStudy(f"the study {path} does not exist")
    return path


def say_unused_starts(described: Spec, opened: Study) -> None:
    """Warn of start points that were written into a spec after its study was created."""
    begun = next((entry.after["start"] for entry in opened.history if entry.action == "begin" and entry.after), 0)
    if len(described.start) > begun:
        print(
            "bounce: start points of a spec are used only when its study is created. bounce enqueue adds points now",
            file=sys.stderr,
        )


def _next(described: Spec) -> str:
    """Return the command that continues a study."""
    return "ask" if described.objective is None and described.command is None else "run"


def _had(opened: Study) -> set[str]:
    """Return the names of all parameters that a study has had."""
    earlier = [entry.before for entry in opened.history if entry.action == "change" and entry.before]
    had = {parameter["name"] for space in earlier for parameter in space["parameters"]}
    return had | {parameter.name for parameter in opened.space.parameters}


def described_study(
    described: Spec, path: Path, options: dict[str, Any], *, change: bool = False, quiet: bool = False
) -> Study:
    """Create the study of a spec, or open it; with `change`, in the space that the spec has now."""
    from bounce.cli.words import unfit
    from bounce.errors import InvalidStudy
    from bounce.spaces.change import Change as Changed
    from bounce.study.place import is_free
    from bounce.study.study import Study

    settings = described.settings | options
    if is_free(path):
        described.refuse_unknown_fixed(())
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            opened = Study.open(path, space=described.space, **settings)
        for warning in () if quiet else found:
            print(f"bounce: {warning.message}", file=sys.stderr)
        opened.begin((), described.start)
        return opened
    opened = Study.open(path)
    try:
        had = _had(opened)
        described.refuse_unknown_fixed(had)
        if opened.space == described.space:
            if not opened.trials and not opened.history:
                opened.begin((), described.start)  # the process that created the study was killed before this
        else:
            described.check_fixed(opened.space.parameters)
            old = {parameter.name for parameter in opened.space.parameters}
            new = {parameter.name for parameter in described.space.parameters}
            defaults = {name: x for name, x in described.defaults.items() if (name in old) != (name in new)}
            for name in new - old - set(defaults):
                which = "is back. Write its value in the trials since it was removed"
                kept = ": those before have their own"
                if name not in had:
                    which, kept = "is new. Write its value in the trials so far", ""
                raise InvalidStudy(f"{described.path}: {name!r} {which} into its table, as default = ...{kept}")
            said = "; ".join(Changed(opened.space, described.space, defaults).sentences)
            if not change:
                raise InvalidStudy(
                    f"the space of {described.path} is not that of the study {path}: {said}. "
                    f"To continue in the new space, use bounce {_next(described)} with --change: "
                    "old results stay where they fit"
                )
            opened.check_options(**settings)  # before anything changes
            outside = opened.change(described.space, defaults)
            leave = "leaves" if len(outside) == 1 else "leave"
            left = f"; {unfit(len(outside))} and {leave} the model" if outside else ""
            print(f"bounce: changed: {said}{left}", file=sys.stderr)
    finally:
        opened.close()
    return Study.open(path, space=described.space, **settings)


def space_before(target: Path, study: Path | None, *, change: bool) -> Space | None:
    """Return the space that the study of a spec will have, if it does not exist yet or is to change; otherwise None."""
    from bounce.spec.document import load
    from bounce.study.place import exists

    if target.suffix.lower() != ".toml":
        return None
    described = load(target)
    return None if exists(place(described, study)) and not change else described.space
