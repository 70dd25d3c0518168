"""What can go wrong, as one tree.

BounceError
├── InvalidInput            (also ValueError)   the caller gave something that cannot be used
│   ├── InvalidSpace        a parameter or a space
│   ├── InvalidPoint        a point that is not in its space
│   ├── InvalidOption       a budget, a batch size, any other option
│   ├── InvalidTell         a trial or a value handed to `tell` or `fail`
│   ├── InvalidState        a state document
│   ├── InvalidStudy        a file that is no study, or one this release cannot read
│   └── InvalidSpec         a spec file
├── NothingToAsk            (also RuntimeError) the budget is spent or the space is exhausted
├── EvaluationFailed        (also RuntimeError) the objective gave no usable value
├── ExecutorFailed          (also RuntimeError) the workers cannot be started, or cannot evaluate anything
├── StudyLocked             (also RuntimeError) another process runs the study
├── StorageFailed           (also OSError)      the study's file could not be written
└── DataError               (also RuntimeError) a data file is missing, damaged or cannot be brought
"""


class BounceError(Exception):
    """The root of every error that Bounce raises on purpose."""


class InvalidInput(BounceError, ValueError):
    """The caller gave something that cannot be used."""


class InvalidSpace(InvalidInput):
    """A parameter or a space that cannot be built."""


class InvalidPoint(InvalidInput):
    """A point that does not lie in its space."""


class InvalidOption(InvalidInput):
    """An option with an unknown name or an impossible value."""


class InvalidTell(InvalidInput):
    """A trial that cannot be told, or a value that is no finite number."""


class InvalidState(InvalidInput):
    """A state document that is damaged, of another version or for another space."""


class InvalidStudy(InvalidInput):
    """A file that is no study, is damaged, or was made by a newer release."""


class InvalidSpec(InvalidInput):
    """A spec file that cannot be used: the message names the file, the line and what would be right."""


class NothingToAsk(BounceError, RuntimeError):
    """The budget is spent or every point of the space has been handed out."""


class EvaluationFailed(BounceError, RuntimeError):
    """The objective returned something that is no finite number."""


class ExecutorFailed(BounceError, RuntimeError):
    """The workers could not be started, or could not read their calls: no other call would fare better."""


class StudyLocked(BounceError, RuntimeError):
    """Another process, or another object of this one, is running the study."""


class StorageFailed(BounceError, OSError):
    """The study's file could not be read or written; what was stored before is safe."""


class DataError(BounceError, RuntimeError):
    """A data file of a benchmark that is missing, damaged, or cannot be brought."""
