"""A run in one call: an objective, a space, a budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any

from bounce.errors import InvalidOption
from bounce.running.evaluation import Evaluator, Objective
from bounce.spaces.space import Space
from bounce.study.study import Study
from bounce.trial import Result, Trial


def minimize(
    objective: Objective | Evaluator,
    space: Space,
    budget: int,
    *,
    path: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Any,
) -> Result:
    """Find a point of the space at which the objective is small, within a budget of evaluations.

    The options are those of `Bounce`; with a `path`, the run is a study in that file and goes on where it ended.
    `executor`, `workers`, `timeout` and `callbacks` are those of `Study.run`; by default the evaluations run one
    after the other in this process. An evaluation that raises, or returns no finite number, fails its trial and
    the run goes on; ten failures without a success raise the first error. Every exception that ends the run
    carries the result so far as its attribute `result`. Callbacks see each finished trial.
    """
    return _run("minimize", objective, space, budget, path, options, executor, workers, timeout, callbacks)


def maximize(
    objective: Objective | Evaluator,
    space: Space,
    budget: int,
    *,
    path: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Any,
) -> Result:
    """Find a point of the space at which the objective is large; otherwise the same as `minimize`."""
    return _run("maximize", objective, space, budget, path, options, executor, workers, timeout, callbacks)


def _run(
    direction: str,
    objective: Objective | Evaluator,
    space: Space,
    budget: int,
    path: str | os.PathLike[str] | None,
    options: dict[str, Any],
    executor: Executor | None,
    workers: int | None,
    timeout: float | None,
    callbacks: Iterable[Callable[[Trial], None]],
) -> Result:
    if options.setdefault("direction", direction) != direction:
        raise InvalidOption(f"{direction}() cannot have direction={options['direction']!r}")
    if not isinstance(space, Space):
        raise InvalidOption(f"space must be a bounce.Space, not {space!r}")
    with Study.open(path, space=space, budget=budget, **options) as study:
        return study.run(objective, executor=executor, workers=workers, timeout=timeout, callbacks=callbacks)
