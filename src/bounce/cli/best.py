"""Best: the best trial of a study, by its value or by the model, in words, as JSON or as a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bounce.study.study import Study
    from bounce.trial import Trial

AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object instead of text.")]


def print_command(opened: Study, target: Path, *, by_model: bool) -> None:
    """Print the command of the best trial, with nothing around it."""
    from bounce.errors import InvalidInput
    from bounce.spec.document import load

    if target.suffix.lower() != ".toml":
        raise InvalidInput(f"--command needs the spec, which has the command, and {target} is a study")
    spec = load(target)
    if spec.command is None:
        raise InvalidInput(f"{target} has no command")
    found = opened.recommend() if by_model else None
    trial = opened.best if found is None else found.trial
    if trial is None:
        status = opened.status
        raise InvalidInput(f"there are no values yet; {status.pending} pending, {status.failed} failed")
    print(spec.command_line(trial.point, Path.cwd()))


def print_recommendation(opened: Study, *, as_json: bool) -> None:
    """Print the trial that the model believes to be the best, and what it believes."""
    import json
    from dataclasses import asdict

    from bounce.cli.sheet import lines, shown

    found = opened.recommend()
    if as_json:
        belief = {"trial": None, "mean": None, "deviation": None} if found is None else asdict(found)
        print(json.dumps({"best": belief.pop("trial")} | belief | {"study": str(opened.path)}))
        return
    if found is None:
        print_result(opened, as_json=False)  # which says that there are no values
        return
    trial, mean, deviation = found.trial, shown(found.mean), shown(found.deviation)
    if found.deviation == 0 and trial.sem is None and opened.options["noise"] == "auto":
        deviation = "unknown, as no two values differ"
    _say_what_is_broken(trial)
    print(f"best mean {mean}, standard deviation {deviation} (trial {trial.id}; its value is {trial.value!r})")
    for line in lines(trial, opened.space.limits):
        print(line)
    print(f"study {opened.path}")


def print_result(opened: Study, *, as_json: bool) -> None:
    """Print the best trial of a study, and how many trials are done and failed."""
    import json
    from dataclasses import asdict

    from bounce.cli.sheet import lines

    best, status = opened.best, opened.status
    if as_json:
        counts = {name: getattr(status, name) for name in ("done", "failed", "pending", "remaining")}
        print(json.dumps({"best": None if best is None else asdict(best), "study": str(opened.path)} | counts))
        return
    if best is None:
        print(f"no values yet; {status.pending} pending, {status.failed} failed")
        return
    _say_what_is_broken(best)
    print(f"best value {best.value!r} (trial {best.id}; {status.done} done, {status.failed} failed)")
    for line in lines(best, opened.space.limits):
        print(line)
    print(f"study {opened.path}")


def _say_what_is_broken(best: Trial) -> None:
    """Explain why the best trial breaks limits."""
    if best.feasible is False:
        print("no trial keeps the limits yet; this one breaks them least")
