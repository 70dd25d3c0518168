"""A run from start to end: an objective, a space, a budget."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bounce.errors import EvaluationFailed, InvalidInput, InvalidOption, InvalidTell
from bounce.optimizer import Bounce
from bounce.parameters import Scalar
from bounce.space import Space
from bounce.state import Trial
from bounce.told import finite

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bounce")

Objective = Callable[[dict[str, Scalar]], Any]
FAILURES = 10  # without a success, before a run gives up


@dataclass(frozen=True)
class Result:
    """What a run found."""

    trials: list[Trial]
    best: Trial | None
    """The trial with the best value; None if none has a value."""
    seed: int
    """What makes the same run again, also if it was drawn."""

    def to_frame(self) -> pd.DataFrame:
        """Return the trials as a pandas table: a column per parameter, then what is known of each trial."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("a table needs pandas: pip install 'bounce-bo[frame]'") from None
        rows = []
        for trial in self.trials:
            facts = asdict(trial)
            point = facts.pop("point")
            rows.append({"id": facts.pop("id")} | {f"point.{name}": x for name, x in point.items()} | facts)
        return pd.DataFrame(rows)


def minimize(
    objective: Objective,
    space: Space,
    budget: int,
    *,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Any,
) -> Result:
    """Find a point of the space at which the objective is small, within a budget of evaluations.

    The options are those of `Bounce`. An evaluation that raises, or returns no finite number, fails its trial and
    the run goes on; ten failures without a success raise the first error. Ctrl-C passes through. Every exception
    that ends the run carries the result so far as its attribute `result`. Callbacks see each finished trial.
    """
    return _run("minimize", objective, space, budget, callbacks, options)


def maximize(
    objective: Objective,
    space: Space,
    budget: int,
    *,
    callbacks: Iterable[Callable[[Trial], None]] = (),
    **options: Any,
) -> Result:
    """Find a point of the space at which the objective is large; otherwise the same as `minimize`."""
    return _run("maximize", objective, space, budget, callbacks, options)


def _run(
    direction: str,
    objective: Objective,
    space: Space,
    budget: int,
    callbacks: Iterable[Callable[[Trial], None]],
    options: dict[str, Any],
) -> Result:
    if not callable(objective):
        raise InvalidOption(f"objective must be a function of a point, not {objective!r}")
    if options.setdefault("direction", direction) != direction:
        raise InvalidOption(f"{direction}() cannot have direction={options['direction']!r}")
    optimizer = Bounce(space, budget, **options)
    callbacks = _checked(callbacks)
    first_error: Exception | None = None
    failures = 0
    try:
        while not optimizer.done:
            for trial in optimizer.ask():
                error = _evaluate(optimizer, trial, objective)
                if error is not None:
                    first_error, failures = first_error or error, failures + 1
                    if optimizer.best is None and failures >= FAILURES:
                        raise first_error
                for callback in callbacks:
                    callback(optimizer.trials[trial.id])
    except BaseException as error:
        error.result = _result(optimizer)  # type: ignore[attr-defined]
        error.add_note("bounce: the result so far is this exception's attribute 'result'")
        raise
    return _result(optimizer)


def _checked(callbacks: Any) -> list[Callable[[Trial], None]]:
    listed: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, listed)):
        raise InvalidOption(f"callbacks must be a list of functions of a trial, not {callbacks!r}")
    return listed


def _evaluate(optimizer: Bounce, trial: Trial, objective: Objective) -> Exception | None:
    """Evaluate one trial and tell the optimizer; return the error if there was one."""
    try:
        value = objective(dict(trial.point))
        try:
            number = finite(value)
        except InvalidTell:
            raise EvaluationFailed(f"the objective must return a finite number, not {value!r}") from None
    except Exception as error:
        said = _said(error)
        logger.warning("trial %d failed: %s", trial.id, said)
        optimizer.fail(trial, said)
        return error
    optimizer.tell(trial, number)
    return None


def _said(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # an exception of the user's that cannot be printed
        return type(error).__name__


def _result(optimizer: Bounce) -> Result:
    return Result(optimizer.trials, optimizer.best, optimizer.options["seed"])
