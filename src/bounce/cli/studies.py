"""Studies: commands to ask and tell by hand, and to show what a study contains."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bounce.cli.best import AsJson, print_command, print_recommendation, print_result
from bounce.cli.outputs import check_file, check_plot, replacing
from bounce.cli.target import AnyPath, Change, StudyPath, as_argument, open_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bounce.spaces.space import Space
    from bounce.spec.reading import Table
    from bounce.study.study import Study
    from bounce.trial import Trial

FEW = 8  # trials; more in one ask may be a mistake, if they are most of what is left


class Format(StrEnum):
    """How trials are printed."""

    table = "table"
    csv = "csv"
    json = "json"


AsFormat = Annotated[
    Format, typer.Option("--format", metavar="FORMAT", help="How to print the trials: table, csv or json.")
]


def init(
    path: Annotated[Path, typer.Argument(metavar="SPEC", help="The file to write.")] = Path("bounce.toml"),
) -> None:
    """Write an example spec that explains every key."""
    from bounce.errors import InvalidInput
    from bounce.spec.document import example

    if path.suffix.lower() != ".toml":
        raise InvalidInput(f"the name of a spec must end in .toml, so that commands tell it from a study: {path}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(example())
    except FileExistsError:
        raise InvalidInput(f"{path} already exists: choose another name") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    print(f"{path} is written. Edit it, then run: {shlex.join(['bounce', 'run', as_argument(path)])}")


def ask(
    target: AnyPath,
    n: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="Ask for this many. The default is the batch size.")
    ] = None,
    study: StudyPath = None,
    pending: Annotated[
        bool, typer.Option("--pending", help="Print the pending trials instead of asking for new ones.")
    ] = False,
    change: Change = False,
    form: AsFormat = Format.table,
) -> None:
    """Print the next trials to evaluate. As CSV, the table can be filled in for `bounce tell`."""
    from bounce.errors import NothingToAsk

    with open_study(target, study, create=change or not pending, change=change) as opened:
        try:
            if not pending:
                _say_what_is_reserved(opened, n)
            found = opened.pending if pending else opened.ask(n)
        except NothingToAsk as error:
            said, out = str(error), opened.status.pending
            if error.reason == "budget":
                said = "the budget is spent: raise it in the spec, then ask with the spec"
            if out:
                said += f" ({out} pending: {shlex.join(['bounce', 'ask', '--pending', str(target)])} shows them)"
            if error.reason == "space":
                said += ". To measure one of them again, queue it with bounce enqueue"
            raise NothingToAsk(said, reason=error.reason) from None
        _print_trials(found, form, opened.space, to_fill=True)
        _say_what_is_repeated(found)


def _say_what_is_repeated(trials: Sequence[Trial]) -> None:
    """Explain why a point comes once more."""
    again = [trial for trial in trials if trial.repeats is not None]
    if again:
        said = ", ".join(f"trial {trial.id} repeats trial {trial.repeats}" for trial in again)
        print(f"bounce: {said}: values look noisy, and a second value tells merit from luck", file=sys.stderr)


def _say_what_is_reserved(opened: Study, n: int | None) -> None:
    """Warn before an ask takes most of what is left of the budget."""
    left = opened.remaining
    taken = min(n or 0, left)
    if taken > FEW and taken > left / 2:
        print(
            f"bounce: this reserves {taken} of the {left} trials that are left. "
            "Points of one ask do not learn from each other. bounce withdraw cancels them",
            file=sys.stderr,
        )
    elif n is not None and n > left > 0:
        print(f"bounce: only {left} of {n} trials are left", file=sys.stderr)


def tell(
    target: AnyPath,
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="A CSV file with the columns id and value, one for each outcome, and perhaps sem. Use - for standard "
            "input.",
        ),
    ],
    study: StudyPath = None,
    as_used: Annotated[
        bool,
        typer.Option("--as-used", help="If settings differ from those asked for, record them as the ones used."),
    ] = False,
) -> None:
    """Store results from a CSV file.

    All rows are stored, or none if one has a mistake. A value can be `failed`. A column `sem` has the standard errors
    of the values. Rows already stored are accepted if unchanged, so the same file can be submitted repeatedly. Other
    columns are kept as notes.
    """
    with open_study(target, study) as opened:
        retries = [entry for entry in opened.history if entry.action == "retry" and entry.trial is not None]
        retried = {entry.trial: entry.before or {} for entry in retries if entry.trial is not None}
        told = table(results, opened.space).results(opened.trials, as_used=as_used, retried=retried)
        opened.settle(told.outcomes)
        for i, notes in told.notes.items():
            for name, text in notes.items():
                opened.note(i, text, name=name)
        status = opened.status
        same = len(told.unchanged) - len(told.notes)
        again = (f", {same} unchanged" if same else "") + (f", {len(told.notes)} with new notes" if told.notes else "")
        print(f"{len(told.outcomes)} stored{again}; {status.pending} pending, {status.remaining} left to ask")


def table(source: Path, space: Space) -> Table:
    """Return a CSV file for a study with this space, or standard input."""
    from bounce.spec.reading import Table

    if str(source) == "-":
        return Table(sys.stdin.buffer.read(), space, "standard input")
    return Table(source, space)


def trials(
    target: AnyPath,
    study: StudyPath = None,
    form: AsFormat = Format.table,
) -> None:
    """Print all trials of a study."""
    with open_study(target, study) as opened:
        _print_trials(opened.trials, form, opened.space)


def best(
    target: AnyPath,
    study: StudyPath = None,
    by_model: Annotated[
        bool,
        typer.Option("--by-model", help="Print the trial that the model believes to be the best: values may be lucky."),
    ] = False,
    command: Annotated[
        bool, typer.Option("--command", help="Print only its command, to paste into a shell. Needs the spec.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the best trial so far."""
    from bounce.errors import InvalidInput

    if command and as_json:
        raise InvalidInput("--command prints a line for a shell: leave out --json")
    with open_study(target, study) as opened:
        if command:
            print_command(opened, target, by_model=by_model)
        elif by_model:
            print_recommendation(opened, as_json=as_json)
        else:
            print_result(opened, as_json=as_json)


def status(target: AnyPath, study: StudyPath = None, as_json: AsJson = False) -> None:
    """Print trial counts, best value, stage and times."""
    import json
    from dataclasses import asdict

    from bounce.live.words import best_of, count, region, seconds
    from bounce.text import brief, printable

    with open_study(target, study) as opened:
        s, failures = opened.status, [trial for trial in opened.trials if trial.state == "failed"]
        limits = ", ".join(limit.text for limit in opened.space.limits)
        known = [trial for trial in opened.trials if trial.value is not None and trial.state != "outside"]
        held = sum(trial.feasible is True for trial in known)
        outside = f"{count(s.outside, 'trial')} that no longer fit{'s' if s.outside == 1 else ''}"
    if as_json:
        print(json.dumps(asdict(s) | {"path": str(s.path)}))
        return
    exhausted = f" (the space has no more points; the budget is {s.budget})" if s.planned < s.budget else ""
    failed = str(s.failed)
    if failures and failures[-1].error:
        failed += f" (trial {failures[-1].id}: {printable(brief(failures[-1].error))})"
    for name, text in (
        ("study", str(s.path)),
        ("done", f"{s.done} of {s.planned}, {s.remaining} left to ask{exhausted}"),
        ("pending", f"{s.pending}, {s.queued} queued" if s.queued else str(s.pending)),
        *([("added", f"{s.added} results that were not asked for")] if s.added else []),
        *([("outside", f"{outside} the space")] if s.outside else []),
        ("failed", failed),
        ("best", best_of(s.best)),
        *([("feasible", f"{held} of {count(len(known), 'trial')} keep the limits: {limits}")] if limits else []),
        (
            "stage",
            f"{count(s.target_dim, 'bin')}, {count(s.dimensions, 'variable')}, {count(s.restart, 'restart')}",
        ),
        ("region", region(s.radius, s.side)),
        ("time", f"{seconds(s.seconds_ask)} per ask, {seconds(s.seconds_eval)} per evaluation"),
        ("run by", s.runner or "nobody now"),
    ):
        print(f"{name:<9}{text}")


def export(
    target: AnyPath,
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write. Its name ends in .csv, .json or .parquet.")
    ],
    study: StudyPath = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it already exists.")] = False,
) -> None:
    """Write all trials to a CSV, JSON or Parquet file."""
    from bounce.spaces.leaves import flat_trials
    from bounce.spec import tables

    check_file(out, (".csv", ".json", ".parquet"), overwrite=overwrite)
    with open_study(target, study) as opened:
        found = opened.trials
        if out.suffix.lower() != ".json":
            found = flat_trials(opened.space, found)
    with replacing(out) as part:
        if out.suffix.lower() == ".parquet":
            tables.to_parquet(found, part, called=out)
        else:
            write = tables.to_csv if out.suffix.lower() == ".csv" else tables.to_json
            part.write_bytes(write(found).encode())
    print(f"{len(found)} trials written to {out}")


def plot(
    targets: Annotated[
        list[Path],
        typer.Argument(metavar="STUDY|TRACE", help="A study or its spec, or traces. Traces are averaged over seeds."),
    ],
    study: StudyPath = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The plot to write, a PNG, SVG or PDF file.")] = Path(
        "bounce.png"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the plot if it already exists.")] = False,
) -> None:
    """Plot the values of a study, or compare benchmark traces."""
    from bounce.errors import InvalidInput

    check_plot(out, overwrite=overwrite)
    if all(target.suffix == ".jsonl" for target in targets):
        from bounce.paper.traces import read
        from bounce.report.plots import comparison

        for target in targets:
            if not target.exists():
                raise InvalidInput(f"the trace {target} does not exist")
        traces = [read(target) for target in targets]
        with replacing(out) as part:
            comparison(traces, part)
    else:
        from bounce.report.plots import convergence

        if len(targets) > 1:
            raise InvalidInput("give one study, or one or more traces that end in .jsonl")
        with open_study(targets[0], study) as opened:
            maximize = opened.options["direction"] == "maximize"
            if opened.best is None:
                raise InvalidInput(f"{targets[0]} has no values yet, so there is nothing to plot")
            with replacing(out) as part:
                convergence(opened.trials, part, title=targets[0].stem, maximize=maximize)
    print(out)


def _print_trials(found: Sequence[Trial], form: Format, space: Space, *, to_fill: bool = False) -> None:
    from rich.console import Console

    from bounce.cli.sheet import show
    from bounce.spaces.leaves import flat_trials
    from bounce.spec import tables

    if form is Format.json:
        sys.stdout.write(tables.to_json(found))
        return
    found = flat_trials(space, found)
    if form is Format.csv:
        outcomes = [limit.name for limit in space.limits]
        sys.stdout.write(tables.form(found, outcomes) if to_fill else tables.to_csv(found))
    elif not found:
        print("no trial is pending" if to_fill else "no trials yet")
    else:
        show(found, Console(), to_fill=to_fill)
