"""Knowledge: commands for what people already know, and for their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bounce.cli.studies import table
from bounce.cli.target import AnyPath, Change, StudyPath, open_study, space_before

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bounce.spaces.space import Space
    from bounce.spec.past import Past
    from bounce.study.study import Study

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Keep this reason in the history.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID", help="The ids of the trials.")]


def add(
    target: AnyPath,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="A CSV file with a column per parameter, one for value and perhaps one for sem, or another study.",
        ),
    ],
    study: StudyPath = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave out rows with a mistake, and print what was wrong.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also add results that the study has: they were measured once more.")
    ] = False,
    change: Change = False,
    reason: Reason = None,
) -> None:
    """Add results that Bounce did not ask for.

    They may be past data, experiments of your own or the trials of another study. They cost no budget. The model learns
    from them, and the search begins around the best of them. Results that the study has already, with the same point
    and value, are left out, so a table that has grown can be added again.
    """
    from bounce.errors import InvalidStudy
    from bounce.spec.past import Past

    of_study = source.suffix.lower() == ".db"
    if of_study and not source.exists():
        raise InvalidStudy(f"the study {source} does not exist")
    space = None if of_study else space_before(target, study, change=change)
    past = None if space is None else table(source, space).past(skip_invalid=skip_invalid)  # before anything changes
    with open_study(target, study, create=True, change=change) as opened:
        if of_study:
            past = _of_study(source, opened, skip_invalid=skip_invalid)
        elif past is None:
            past = table(source, opened.space).past(skip_invalid=skip_invalid)
        new, known = (past, Past()) if again else past.split(opened.trials, opened.space)
        beside = new.constraints if opened.space.limits else None
        reason = reason or f"bounce add {source}"
        if new.points:
            opened.add(new.points, new.values, sems=new.sems, notes=new.notes, constraints=beside, reason=reason)
        for sentence in past.skipped:
            typer.echo(f"skipped: {sentence}", err=True)
        if not again:
            _say_what_is_repeated(known, new.repeated(opened.space))
        skipped = f", {len(past.skipped)} skipped" if past.skipped else ""
        had = f", {len(known.points)} already in the study" if known.points else ""
        print(f"{len(new.points)} added{skipped}{had}; {opened.remaining} left to ask")


def _say_what_is_repeated(known: Past, repeated: Sequence[tuple[str, str]]) -> None:
    """Say which results were left out, and which of the added ones are in the table twice."""
    from bounce.cli.words import listed

    if known.rows:
        typer.echo(
            f"bounce: the study has the results of {listed(known.rows)} already, with the same settings and value. "
            "If they were measured once more, use --again",
            err=True,
        )
    if repeated:
        twice = listed([f"{row} (as {first})" for row, first in repeated])
        typer.echo(f"bounce: added as measured once more, with the same settings and value: {twice}", err=True)


def _of_study(path: Path, opened: Study, *, skip_invalid: bool) -> Past:
    """Return the results of another study that fit this one's space."""
    from bounce.errors import InvalidPoint, InvalidStudy, InvalidTell
    from bounce.spaces.outcomes import measured
    from bounce.spec.past import Past
    from bounce.study.study import Study

    past, limits = Past(), opened.space.limits
    if opened.path is not None and path.samefile(opened.path):
        raise InvalidStudy(f"{path} is the study itself: give another one")
    with Study.open(path) as other:
        if other.options["direction"] != opened.options["direction"]:
            raise InvalidStudy(
                f"{path} is a study to {other.options['direction']}, and this one to {opened.options['direction']}: "
                "export it, change the sign of its values if needed, and add the table"
            )
        for trial in other.trials:
            if trial.value is None:
                continue
            try:
                opened.space.encode([trial.point])
                own = {limit.name: trial.outcomes[limit.name] for limit in limits if limit.name in trial.outcomes}
                measured(limits, own)
            except (InvalidPoint, InvalidTell) as error:
                said = f"{path}, trial {trial.id}: {error}"
                if not skip_invalid:
                    raise InvalidTell(said, trial=trial.id) from None
                past.skipped.append(said)
                continue
            past.points.append(trial.point)
            past.values.append(trial.value)
            past.sems.append(trial.sem)
            past.constraints.append(own)
            past.notes.append(trial.notes)
            past.rows.append(f"trial {trial.id}")
    return past


def enqueue(
    target: AnyPath,
    source: Annotated[Path, typer.Argument(metavar="POINTS", help="A CSV file with a column per parameter.")],
    study: StudyPath = None,
    change: Change = False,
    reason: Reason = None,
) -> None:
    """Queue points to be tried next, in file order.

    Empty cells are filled in when the point is asked for, from the best point so far or at random.
    """
    space = space_before(target, study, change=change)
    read = None if space is None else table(source, space).points()  # before anything changes
    with open_study(target, study, create=True, change=change) as opened:
        points, notes = table(source, opened.space).points() if read is None else read
        queued = opened.enqueue(points, notes=notes, reason=reason)
        print(f"{len(queued)} queued; {opened.remaining} left to ask")


def correct(
    target: AnyPath,
    trial: Annotated[int, typer.Argument(metavar="ID", help="The id of the trial.")],
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="The corrected value.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting that was actually used.")
    ] = None,
    sem: Annotated[
        str | None,
        typer.Option("--sem", metavar="SEM", help="The corrected standard error of the value, or `unknown`."),
    ] = None,
    outcomes: Annotated[
        list[str] | None, typer.Option("--outcome", metavar="NAME=NUMBER", help="The corrected number of an outcome.")
    ] = None,
    study: StudyPath = None,
    reason: Reason = None,
) -> None:
    """Correct the value or the settings of a trial. The history keeps the previous ones.

    `--sem` corrects the standard error of the value, `--outcome` what was measured beside it. What is not given stays.
    """
    from bounce.errors import InvalidInput
    from bounce.optimizer.ledger import UNKNOWN
    from bounce.text import number

    with open_study(target, study) as opened:
        right = None if value is None else number(value)
        if value is not None and right is None:
            raise InvalidInput(f"the corrected value must be a number, such as 0.82, not {value!r}")
        error: Any = sem if sem in (None, UNKNOWN) else number(sem)
        if sem is not None and error is None:
            raise InvalidInput(f"the corrected standard error must be a number, such as 0.1, or unknown, not {sem!r}")
        known = {found.id: found for found in opened.trials}
        point = _corrected(opened.space, known[trial].point, settings or ()) if trial in known else None
        beside: dict[str, Any] | None = None
        for text in outcomes or ():
            name, _, given = text.rpartition("=")
            if not name.strip() or number(given) is None:
                raise InvalidInput(f"--outcome takes NAME=NUMBER, such as strength=31.2, not {text!r}")
            if not opened.space.limits:
                raise InvalidInput(
                    f"the study has no outcomes, so {name.strip()!r} cannot be corrected. The spec names them, as in "
                    f'outcomes = ["{name.strip()} >= 3"]'
                )
            beside = (beside or {}) | {name.strip(): number(given)}
        opened.correct(trial, right, point=point, sem=error, constraints=beside, reason=reason)
        same = known[trial] == next(found for found in opened.trials if found.id == trial)
        done = "said so already" if same else "is corrected; bounce history shows what was there before"
        print(f"trial {trial} {done}")


def _corrected(space: Space, before: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any] | None:
    """Return a point with some settings corrected, without what they make inactive; None if there are no settings."""
    from bounce.errors import InvalidInput
    from bounce.spaces.leaves import flattened, folded, leaves
    from bounce.spec.cells import parsed
    from bounce.trial import column

    if not settings:
        return None
    given_by = (*leaves(space), *space.parameters)
    parameters = {column(each.name): each for each in given_by} | {each.name: each for each in given_by}
    point, given = flattened(space, before), set[str]()
    for setting in settings:
        name, text = _split(setting, parameters)
        parameter = parameters[name]
        if parameter.name in given:
            raise InvalidInput(f"--set has {parameter.name!r} twice")
        given.add(parameter.name)
        point |= flattened(space, {parameter.name: parsed(parameter, text)})
    whole = folded(space, point)
    active = space.active_names(whole)
    if missing := [p.name for p in space.parameters if p.name in active and p.name not in whole]:
        raise InvalidInput(f"with these settings {missing[0]!r} exists too: add --set {missing[0]}=VALUE")
    return {name: x for name, x in whole.items() if name in active or name in given}


def _split(setting: str, names: Collection[str]) -> tuple[str, str]:
    """Return the name and the value of a setting; names may contain an equals sign, so the longest one that fits."""
    from bounce.errors import InvalidInput

    places = [place for place, sign in enumerate(setting) if sign == "="]
    for exact in (True, False):
        for place in reversed(places):
            name, text = setting[:place], setting[place + 1 :]
            if (name if exact else name.strip()) in names:
                return (name, text) if exact else (name.strip(), text.strip())
    raise InvalidInput(f"--set takes NAME=VALUE with the name of a parameter ({', '.join(names)}), not {setting!r}")


def retry(
    target: AnyPath,
    trials: Annotated[
        list[int] | None, typer.Argument(metavar="ID", help="The ids of the trials. The default is all failed ones.")
    ] = None,
    study: StudyPath = None,
    reason: Reason = None,
) -> None:
    """Make failed trials pending again, at no further cost.

    If you name a trial that has a value, it becomes pending again too. The history keeps the value.
    """
    with open_study(target, study) as opened:
        again = opened.retry(trials or None, reason=reason)
        print(f"{len(again)} pending again" if again else "no trial has failed")


def withdraw(target: AnyPath, trials: Ids, study: StudyPath = None, reason: Reason = None) -> None:
    """Cancel pending or queued trials, or take results back.

    Their budget is returned, and their points may be proposed again. The history keeps the results.
    """
    with open_study(target, study) as opened:
        opened.withdraw(trials, reason=reason)
        status = opened.status
        print(f"{len(trials)} withdrawn; {status.pending} pending, {status.remaining} left to ask")


def note(
    target: AnyPath,
    trial: Annotated[int, typer.Argument(metavar="ID", help="The id of the trial.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note.")],
    study: StudyPath = None,
) -> None:
    """Add a note to a trial, replacing any existing note."""
    with open_study(target, study) as opened:
        opened.note(trial, text)
        print(f"trial {trial} has a note")


def history(
    target: AnyPath,
    study: StudyPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of text.")] = False,
) -> None:
    """Print what was changed by hand, with the previous values."""
    import json
    from dataclasses import asdict

    from bounce.cli.words import change
    from bounce.text import printable

    with open_study(target, study) as opened:
        entries = opened.history
    if as_json:
        print("[" + ",".join("\n" + json.dumps(asdict(entry)) for entry in entries) + "\n]")
        return
    for entry in entries:
        trial = "" if entry.trial is None else f" trial {entry.trial}"
        reason = "" if entry.reason is None else f" ({entry.reason})"
        print(printable(f"{entry.time[:19].replace('T', ' ')} {entry.action}{trial}: {change(entry)}{reason}"))
    if not entries:
        print("nothing was changed by hand")
