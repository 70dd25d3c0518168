"""Imported functions: an objective named as `module:function`, imported where it runs."""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass
from importlib import import_module, invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import ClassVar

from bounce.errors import InvalidOption, MachineFailed
from bounce.running.evaluation import Function, Objective, Outcome, said
from bounce.trial import Trial


@dataclass(frozen=True)
class Imported:
    """A function in a module as an evaluator; only its name is sent to other processes.

    `folder` is searched for the module first. `logs` is that of `Function`.
    """

    name: str
    folder: Path
    logs: Path | None = None
    own_process: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parts = self.name.split(":") if isinstance(self.name, str) else []
        if len(parts) != 2 or not all(word.isidentifier() for part in parts for word in part.split(".")):
            raise InvalidOption(
                f"objective must be 'module:function', such as 'simulation:loss' for loss in simulation.py, "
                f"not {self.name!r}"
            )
        object.__setattr__(self, "folder", Path(self.folder).absolute())

    def function(self) -> Objective:
        """Import the function; refuse a name that cannot be imported."""
        module_name, function_name = self.name.split(":")
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        if module_name not in sys.modules:
            invalidate_caches()  # the file may be newer than the cached listing of its folder
        try:
            module = import_module(module_name)
        except (Exception, SystemExit) as error:
            raise InvalidOption(f"objective {self.name!r} cannot be imported: {said(error)}") from error
        top = module_name.partition(".")[0]
        meant, loaded = PathFinder.find_spec(top, [str(self.folder)]), sys.modules[top]
        if meant is not None and meant.origin not in (None, getattr(loaded, "__file__", None)):
            raise InvalidOption(
                f"objective {self.name!r} cannot be imported: another module {top!r} is already loaded, "
                "so rename the file"
            )
        try:
            function = operator.attrgetter(function_name)(module)
        except AttributeError:
            raise InvalidOption(
                f"module {module_name!r} has no {function_name!r}: objective is {self.name!r}"
            ) from None
        if not callable(function):
            raise InvalidOption(f"objective {self.name!r} must be a function of a point, not {function!r}")
        found: Objective = function
        return found

    def within(self, seconds: float, /) -> Imported:
        """Return the same: only ending its process can limit the time of a function."""
        return self

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Call the function with a copy of the point; that it cannot be imported here is no fault of the point."""
        try:
            function = self.function()
        except InvalidOption as error:
            raise MachineFailed(str(error)) from error
        return Function(function, self.logs).evaluate(trial)

    def stop(self) -> None:
        """Do nothing: a function ends with its process."""
