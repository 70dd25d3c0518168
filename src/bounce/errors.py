"""What can go wrong, as one tree.

BounceError
├── InvalidInput            (also ValueError)   the caller gave something that cannot be used
│   ├── InvalidSpace        a parameter or a space (`parameter`, `key`)
│   ├── InvalidPoint        a point that is not in its space (`parameter`)
│   ├── InvalidOption       a budget, a batch size, any other option (`option`)
│   ├── InvalidTell         a trial or a value handed to `tell` or `fail` (`trial`)
│   ├── InvalidState        a state document
│   ├── InvalidStudy        a file that is not a study, or one that this release cannot read
│   └── InvalidSpec         a spec file (`line`)
├── NothingToAsk            (also RuntimeError) no trial is left (`reason`)
├── EvaluationFailed        (also RuntimeError) the objective gave no usable value (`trial`)
├── ExecutorFailed          (also RuntimeError) the workers cannot be started, or cannot evaluate anything
├── MachineFailed           (also RuntimeError) a machine could not evaluate, whatever the point: no trial failed
├── StudyLocked             (also RuntimeError) another process runs the study
├── StorageFailed           (also OSError)      the study's file could not be read or written
└── DataError               (also RuntimeError) a data file is missing, damaged or cannot be downloaded

The message is for people. A program reads the parts in parentheses, which are attributes, None where unknown.
"""

from __future__ import annotations

from datetime import date, time
from typing import Any, Literal


def quoted(value: object) -> str:
    """Return a value as a message shows it: true, false and dates as in TOML, anything else as in Python."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else repr(value)


class BounceError(Exception):
    """The root of every error that Bounce raises on purpose."""

    result: Any = None
    """The `Result` so far, if the error ended a run."""


class InvalidInput(BounceError, ValueError):
    """The caller gave something that cannot be used."""


class InvalidSpace(InvalidInput):
    """A parameter or a space that cannot be built."""

    def __init__(self, message: str, *, parameter: str | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The name of the parameter."""
        self.key = key
        """The field of the parameter, such as `low`."""


class InvalidPoint(InvalidInput):
    """A point that does not lie in its space."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The name of the parameter whose value does not fit."""


class InvalidOption(InvalidInput):
    """An option with an unknown name or an impossible value."""

    def __init__(self, message: str, *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option
        """The name of the option."""


class InvalidTell(InvalidInput):
    """A trial that cannot be told, or a value that is not a finite number."""

    def __init__(self, message: str, *, trial: int | None = None) -> None:
        super().__init__(message)
        self.trial = trial
        """The id of the trial."""


class InvalidState(InvalidInput):
    """A state document that is damaged, of another version or for another space."""


class InvalidStudy(InvalidInput):
    """A file that is not a study, is damaged, or was made by a newer release."""


class InvalidSpec(InvalidInput):
    """A spec file that cannot be used: the message names the file, the line and what would be right."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        """The line of the file."""


class NothingToAsk(BounceError, RuntimeError):
    """No trial is left: the budget is spent, or every point of the space has been asked for."""

    def __init__(self, message: str, *, reason: Literal["budget", "space"] = "budget") -> None:
        super().__init__(message)
        self.reason = reason
        """What has run out."""


class EvaluationFailed(BounceError, RuntimeError):
    """The objective returned something that is not a finite number, or nothing at all."""

    def __init__(self, message: str, *, trial: int | None = None) -> None:
        super().__init__(message)
        self.trial = trial
        """The id of the trial that failed first."""


class ExecutorFailed(BounceError, RuntimeError):
    """The workers could not be started, or could not read their calls: no other call would succeed either."""


class MachineFailed(BounceError, RuntimeError):
    """A program, a file or an import failed on the machine of an evaluation, whatever the point; no trial failed."""


class StudyLocked(BounceError, RuntimeError):
    """Another process, or another object of this one, is running the study."""


class StorageFailed(BounceError, OSError):
    """The study's file could not be read or written; what was stored before is safe."""


class DataError(BounceError, RuntimeError):
    """A data file of a benchmark that is missing, damaged, or cannot be downloaded."""
