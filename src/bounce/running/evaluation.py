"""Evaluations: a trial goes in, an outcome comes out, on any machine.

An evaluator is what an executor receives. It can be pickled, and its `evaluate` turns every error of the objective into
an outcome. So an exception of a future is always a fault of the executor or of a machine, never of the objective.
"""

from __future__ import annotations

import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from bounce.errors import EvaluationFailed, InvalidTell, MachineFailed
from bounce.text import told
from bounce.trial import Trial, finite

LONGEST_TRACEBACK = 20_000  # characters

Objective = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of an evaluation: a value, or why it failed."""

    value: float | None
    error: str | None
    seconds: float | None
    """How long it took, if known."""
    exception: Exception | None = None
    """The objective's exception, if it can be sent between processes."""
    traceback: str | None = None
    """The objective's traceback, as text."""
    constraints: Mapping[str, float] = field(default_factory=dict)
    """What was measured beside the value, by name."""
    exact: bool = True
    """Whether that is all of it; a program may print other numbers too."""

    def __post_init__(self) -> None:
        """Make its texts fit for every file and terminal, whatever the objective has put into them."""
        if self.error is not None:
            object.__setattr__(self, "error", told(self.error))
        if self.traceback is not None:
            object.__setattr__(self, "traceback", told(self.traceback, LONGEST_TRACEBACK))

    def with_all(self, names: Sequence[str]) -> Outcome:
        """Return the same outcome if everything was measured and nothing else; otherwise a failure."""
        if self.value is None or self.constraints.keys() == set(names):
            return self
        if not self.exact and self.constraints.keys() >= set(names):
            return replace(self, constraints={name: self.constraints[name] for name in names})
        error = EvaluationFailed(_unlike(list(self.constraints), names))
        return Outcome.failed(str(error), self.seconds, error)

    @classmethod
    def failed(cls, error: str, seconds: float | None = None, exception: Exception | None = None) -> Outcome:
        """Return the outcome of a failed evaluation."""
        return cls(None, error, seconds, exception)


@runtime_checkable
class Evaluator(Protocol):
    """What turns a trial into an outcome."""

    @property
    def own_process(self) -> bool:
        """Whether each evaluation starts its own process, so that threads can serve as workers."""

    def within(self, seconds: float, /) -> Evaluator:
        """Return an evaluator with a time limit for each evaluation, if it can enforce one itself."""

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Evaluate a trial; a failure is an outcome too. A fault of the machine raises `MachineFailed`."""

    def stop(self) -> None:
        """End what is running at once; called from another thread, when the run has ended."""


@dataclass(frozen=True)
class Function:
    """A Python function of a point, as an evaluator.

    What an evaluation raises is written in full to a file such as `00017.err` in `logs`, if that is given.
    """

    objective: Objective
    logs: Path | None = None
    own_process: ClassVar[bool] = False

    def within(self, seconds: float, /) -> Function:
        """Return the same: only ending its process can limit the time of a function."""
        return self

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Call the function with a copy of the point."""
        start = time.perf_counter()
        try:
            returned = self.objective(dict(trial.point))
            value, beside = split(returned)
            try:
                number = finite(value)
            except InvalidTell:
                raise EvaluationFailed(f"the objective must return a finite number, not {returned!r}") from None
        except Exception as error:
            text = _traceback(error)
            if self.logs is not None:
                _log(self.logs, trial, text or said(error))
            return Outcome(None, said(error), time.perf_counter() - start, error, text)
        return Outcome(number, None, time.perf_counter() - start, constraints=beside)

    def stop(self) -> None:
        """Do nothing: a function ends with its process."""


def _unlike(found: Sequence[str], names: Sequence[str]) -> str:
    """Return in what way measured outcomes are not those of the space."""
    if not names:
        return (
            f"the space has no outcomes, but there was {_listed(found)} beside the value: declare it with its limits "
            f'in the space or the spec, such as outcomes = ["{found[0]} <= 10"], or return the value alone'
        )
    missing = [name for name in names if name not in found]
    if missing:
        what = f"outcome {missing[0]!r} is" if len(missing) == 1 else f"outcomes {_listed(missing)} are"
        return f"the {what} missing beside the value; there was {_listed(found) or 'nothing'}"
    unknown = [name for name in found if name not in names]
    return f"the space has no outcome {_listed(unknown)}; its outcomes are {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def split(returned: Any) -> tuple[Any, dict[str, float]]:
    """Return the value that an objective returned and what it measured beside it, if it returned both as a tuple."""
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], Mapping):
        return returned, {}
    value, beside = returned
    found = {}
    for name, given in beside.items():
        try:
            found[str(name)] = finite(given)
        except InvalidTell:
            raise EvaluationFailed(f"the outcome {name!r} must be a finite number, not {given!r}") from None
    return value, found


def evaluate(evaluator: Evaluator, trial: Trial, before: int = 0) -> Outcome:
    """Evaluate in another process or thread, and return an outcome that can be sent back.

    `before` is the number of earlier attempts, so that an executor that caches calls does not return their result.
    """
    start = time.perf_counter()
    try:
        outcome = evaluator.evaluate(trial)
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _interruptible():
            raise
        return ended(error, time.perf_counter() - start)
    try:
        pickle.loads(pickle.dumps(outcome.exception))
    except Exception:
        return replace(outcome, exception=None)
    return outcome


def ended(error: BaseException, seconds: float) -> Outcome:
    """Return the failure of an evaluation that tried to end its process, as `sys.exit()` does."""
    return Outcome(None, said(error), seconds, traceback=_traceback(error))


def _interruptible() -> bool:
    """Return whether Ctrl-C raises an exception here."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _log(folder: Path, trial: Trial, text: str) -> None:
    """Write a text to the file of a trial; a fault of the disk is one of the machine."""
    path = folder / f"{trial.id:05d}.err"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise MachineFailed(f"{path} could not be written: {said(error)}") from error


def _traceback(error: BaseException) -> str | None:
    """Return the traceback of an exception, beginning with the objective's own frame."""
    try:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_globals.get("__name__", "").startswith("bounce.running."):
            own = own.tb_next
        return "".join(traceback.format_exception(type(error), error, own))
    except Exception:  # the exception's own `__str__` fails
        return None


def said(error: BaseException) -> str:
    """Return an exception as one text: its type and its message."""
    try:
        message = str(error)
        return told(f"{type(error).__name__}: {message}" if message else type(error).__name__)
    except Exception:  # the exception's own `__str__` fails
        return type(error).__name__
