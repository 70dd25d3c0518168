"""Specs: a study as its file describes it, with the names that Python uses."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from bounce.errors import InvalidInput, InvalidPoint, InvalidSpec
from bounce.optimizer.options import Options
from bounce.running.command import Command
from bounce.running.evaluation import Evaluator
from bounce.running.imported import Imported
from bounce.spaces.kinds import Parameter
from bounce.spaces.space import Space
from bounce.text import did_you_mean


@dataclass(frozen=True)
class Spec:
    """A study as its file describes it."""

    path: Path
    name: str
    space: Space
    options: Mapping[str, Any]
    """The optimizer's options, only those that were given."""
    workers: int | None = None
    timeout: float | None = None
    max_failures: int | None = None
    stop_when: str | None = None
    objective: str | None = None
    command: tuple[str, ...] | None = None
    flags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The arguments that binary parameters stand for in the command."""
    start: tuple[dict[str, Any], ...] = ()
    """Points to try first, perhaps partial."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values for trials of another space: defaults of parameters, and values at which former ones are fixed."""
    fixed: Mapping[str, int | None] = field(default_factory=dict, repr=False, compare=False)
    """The names in [fixed], with their lines."""
    line: int | None = field(default=None, repr=False, compare=False)
    """The line of the objective or the command."""

    @property
    def study(self) -> Path:
        """The study's file, unless `--study` names another one."""
        return self.path.with_name(f"{self.name}.db")

    @property
    def settings(self) -> dict[str, Any]:
        """All options of the optimizer: an option that the spec leaves out has its default."""
        return Options.of(self.options).document()

    def evaluator(self, study: Path | None = None) -> Evaluator | None:
        """Return what evaluates a trial, or None if people do; refuse a program or function that does not exist.

        A command's output is kept beside the study, and what a function raises.
        """
        try:
            kept = (study or self.study).absolute()
            logs = kept.with_name(kept.name.removesuffix(".db") + ".trials")
            if self.command is not None:
                command = self._made(self.command, self.timeout, logs)
                command.check(self.space)
                return command
            if self.objective is not None:
                imported = Imported(self.objective, self.path.parent, logs)
                imported.function()
                return imported
        except InvalidInput as error:
            raise InvalidSpec(f"{place_of(self.path, self.line)}: {error}", line=self.line) from error
        return None

    def _made(self, command: Sequence[str], timeout: float | None = None, logs: Path | None = None) -> Command:
        """Return the command as it is for this space."""
        optional = tuple(parameter.name for parameter in self.space.parameters if parameter.when is not None)
        return Command(command, timeout, self.path.parent, logs, self.flags, optional, parts_of(self.space))

    def refuse_unknown_fixed(self, had: Iterable[str]) -> None:
        """Refuse a name in [fixed] that is not among the parameters that the study has had."""
        known = sorted(set(had) - {parameter.name for parameter in self.space.parameters})
        for name in self.fixed:
            if name not in known:
                hint = did_you_mean(name, known, ". Remove it from [fixed]")
                self._refuse_fixed(name, f"[fixed] has {name!r}, which the study never had{hint}")

    def check_fixed(self, former: Iterable[Parameter]) -> None:
        """Refuse a value in [fixed] that its parameter, one of a former space, does not take."""
        for parameter in former:
            if parameter.name in self.fixed:
                try:
                    parameter.encode(self.defaults[parameter.name])
                except InvalidPoint as error:
                    self._refuse_fixed(parameter.name, f"[fixed]: {error}")

    def _refuse_fixed(self, name: str, sentence: str) -> NoReturn:
        line = self.fixed[name]
        raise InvalidSpec(f"{place_of(self.path, line)}: {sentence}", line=line) from None

    def command_line(self, point: Mapping[str, Any], here: Path) -> str:
        """Return the command for a point, as a line to paste into a shell in the folder `here`.

        A program whose arguments do not show the whole point also gets it as a run would: on standard input and in the
        environment variable `BOUNCE_POINT`.
        """
        if self.command is None:
            raise InvalidInput(f"{self.path} has no command")
        if point.keys() != self.space.active_names(point):
            raise InvalidInput(
                f"{self.path} has other parameters than the study: run it with --change, or undo the change"
            )
        command = self._made(self.command)
        line = shlex.join(command.filled(point))
        if command.unnamed(point):
            document = shlex.quote(json.dumps(point))
            line = f"printf '%s\\n' {document} | BOUNCE_POINT={document} {line}"
        return line if here == self.path.parent else f"cd {shlex.quote(str(self.path.parent))} && {line}"


def place_of(path: Path, line: int | None) -> str:
    """Return a file, and the line in it if there is one, for a message."""
    return str(path) if line is None else f"{path}, line {line}"


def parts_of(space: Space) -> dict[str, tuple[Any, ...]]:
    """Return the members of subsets and the components of mixtures, by parameter."""
    members = {p.name: getattr(p, "members", getattr(p, "components", None)) for p in space.parameters}
    return {name: tuple(own) for name, own in members.items() if own is not None}
