"""A run in one call: an objective, a space, a budget."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Unpack

from bounce.errors import InvalidOption
from bounce.optimizer.options import Options, RunOptions, shows_options
from bounce.running.evaluation import Evaluator, Objective
from bounce.running.recorder import ALIKE
from bounce.spaces.space import Space
from bounce.study.study import Study
from bounce.trial import Result, Trial

logger = logging.getLogger("bounce")


class Arguments(RunOptions, total=False):
    """The arguments of `minimize` besides the options of `Bounce`, for editors and type checkers."""

    known: Iterable[Sequence[Any]]
    start: Mapping[str, Any] | Iterable[Mapping[str, Any]]
    path: str | os.PathLike[str] | None
    executor: Executor | None
    workers: int | None
    timeout: float | None
    max_failures: int
    logs: str | os.PathLike[str] | None
    callbacks: Iterable[Callable[[Trial], None]]
    stop_when: str | None
    progress: bool


KNOWN = {"known": (), "start": ()}
HOW = {
    "executor": None,
    "workers": None,
    "timeout": None,
    "max_failures": ALIKE,
    "logs": None,
    "callbacks": (),
    "stop_when": None,
    "progress": False,
}
BESIDE = {**KNOWN, "path": None, **HOW}  # the arguments besides the options, with their defaults


@shows_options(BESIDE)
def minimize(objective: Objective | Evaluator, space: Space, budget: int, **arguments: Unpack[Arguments]) -> Result:
    """Find a point of the space at which the objective is small, within a budget of evaluations.

    The options are those of `Bounce` (docs/options.md). `known` are results that you already have, pairs of a point and
    its value; they cost no budget. `start` are points to try first; values that they leave out are filled in. Where the
    space has outcomes, the objective returns `(value, {"strength": 31.2})`, and `known` has such a dict as its third
    member.

    With a `path`, the run is a study in that file, and the same call resumes it. `executor`, `workers`, `timeout`,
    `max_failures`, `logs`, `callbacks`, `stop_when` and `progress` are those of `Study.run`; by default evaluations run
    one after the other in this process. An evaluation that raises, or returns anything but a finite number, fails its
    trial, and the run continues. If the first three evaluations fail with the same error, or any ten in a row, the run
    ends. An exception that ends the run has the result so far as its attribute `result`. Callbacks are called with each
    finished trial.
    """
    return _run("minimize", objective, space, {"budget": budget, **arguments})


@shows_options({**BESIDE, "direction": "maximize"})
def maximize(objective: Objective | Evaluator, space: Space, budget: int, **arguments: Unpack[Arguments]) -> Result:
    """Find a point of the space at which the objective is large; otherwise the same as `minimize`."""
    return _run("maximize", objective, space, {"budget": budget, **arguments})


def _run(direction: str, objective: Objective | Evaluator, space: Space, arguments: dict[str, Any]) -> Result:
    given = {"direction": direction} | arguments
    if given["direction"] != direction:
        raise InvalidOption(f"{direction}() cannot have direction={given['direction']!r}", option="direction")
    if not isinstance(space, Space):
        raise InvalidOption(f"space must be a bounce.Space, not {space!r}", option="space")
    own = {name: given.pop(name, default) for name, default in BESIDE.items()}
    Options.of(given, beside=BESIDE)
    with Study.open(own["path"], space=space, **given) as study:
        if not study.trials:
            study.begin(own["known"], own["start"])
        elif (own["known"] or own["start"]) and not any(entry.action == "begin" for entry in study.history):
            logger.warning("known and start are only for a new run: use Study.add and Study.enqueue for this one")
        return study.run(objective, **{name: own[name] for name in HOW})
