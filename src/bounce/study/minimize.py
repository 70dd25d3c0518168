"""A run in one call: an objective, a space, a budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Unpack

from bounce.errors import InvalidOption
from bounce.optimizer.options import Options, RunOptions, shows_options
from bounce.running.evaluation import Evaluator, Objective
from bounce.running.run import ALIKE
from bounce.spaces.space import Space
from bounce.study.study import Study
from bounce.trial import Result, Trial

HOW = ("path", "executor", "workers", "timeout", "max_failures", "callbacks")  # the arguments besides the options


@shows_options
def minimize(
    objective: Objective | Evaluator,
    space: Space,
    budget: int,
    *,
    path: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    max_failures: int = ALIKE,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Unpack[RunOptions],
) -> Result:
    """Find a point of the space at which the objective is small, within a budget of evaluations.

    The options are those of `Bounce` (docs/options.md). With a `path`, the run is a study in that file, and the same
    call resumes it. `executor`, `workers`, `timeout`, `max_failures` and `callbacks` are those of `Study.run`; by
    default evaluations run one after the other in this process. An evaluation that raises, or returns anything but a
    finite number, fails its trial, and the run continues. If the first three evaluations fail with the same error, the
    run ends. An exception that ends the run has the result so far as its attribute `result`. Callbacks are called
    with each finished trial.
    """
    study = _opened("minimize", space, path, budget, options)
    with study:
        return study.run(
            objective,
            executor=executor,
            workers=workers,
            timeout=timeout,
            max_failures=max_failures,
            callbacks=callbacks,
        )


@shows_options
def maximize(
    objective: Objective | Evaluator,
    space: Space,
    budget: int,
    *,
    path: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    max_failures: int = ALIKE,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Unpack[RunOptions],
) -> Result:
    """Find a point of the space at which the objective is large; otherwise the same as `minimize`."""
    study = _opened("maximize", space, path, budget, options)
    with study:
        return study.run(
            objective,
            executor=executor,
            workers=workers,
            timeout=timeout,
            max_failures=max_failures,
            callbacks=callbacks,
        )


def _opened(direction: str, space: Space, path: str | os.PathLike[str] | None, budget: int, options: Any) -> Study:
    given = {"direction": direction, **options}
    if given["direction"] != direction:
        raise InvalidOption(f"{direction}() cannot have direction={given['direction']!r}", option="direction")
    if not isinstance(space, Space):
        raise InvalidOption(f"space must be a bounce.Space, not {space!r}", option="space")
    Options.of({"budget": budget, **given}, beside=HOW)
    return Study.open(path, space=space, budget=budget, **given)
