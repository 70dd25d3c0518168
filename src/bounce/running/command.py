"""Commands: a program with arguments as the objective, run without a shell.

Each evaluation runs in a process group of its own, and the whole group is killed before the trial gets its outcome, or
when this process dies. Only a process that leaves its group on purpose (a daemon) survives.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, ClassVar

from bounce.errors import EvaluationFailed, InvalidOption, InvalidTell, MachineFailed, quoted
from bounce.running.evaluation import Outcome, said
from bounce.running.output import end_of, value_of
from bounce.running.reaper import REAPER
from bounce.running.template import Template
from bounce.text import written
from bounce.trial import Trial, finite

if TYPE_CHECKING:
    from bounce.spaces.space import Space

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
LONGEST_VARIABLE = 128 * 1024  # bytes of an environment variable on Linux, including its name and the final NUL
FLAGS = "flags"  # the placeholder of all flags that have none of their own


@dataclass(frozen=True)
class Command:
    """A program with arguments as an evaluator: the value is what it prints.

    `{NAME}` in an argument stands for the value of a parameter, `{{` and `}}` for single braces. No shell is involved,
    so a value is always one argument, with any characters in it. Write `--name={x}` rather than `--name`, `{x}` if a
    value may begin with a dash. The program also gets the point as JSON, on standard input and in the environment
    variable `BOUNCE_POINT` (unless it is too long for one), and the trial's id in `BOUNCE_TRIAL`. The value is the
    last line of standard output that is a number, or a JSON object with a number as `value`; a line with control
    characters is neither. Outcomes of the space are numbers in JSON objects too, or lines such as `strength = 31.2`.

    `flags` are binary parameters that stand for arguments: `{"lto": {"on": "-flto", "off": "-fno-lto"}}`. An argument
    `{lto}` becomes what is on or off, split as a shell would, or no argument if that is empty. Inside a longer
    argument, the text is inserted. `{flags}` stands for all flags without a placeholder of their own, in order.

    `optional` are parameters that may be inactive: an argument that names one is left out if the point lacks it.

    `parts` are subsets and mixtures with their members: `{"blend": ["x", "y"]}`. `{blend.x}` stands for a fraction of a
    mixture, or for whether a subset has a member.

    The program runs in `folder`; its own path, if it has a slash, is relative to that. Standard output and error are
    kept as `00017.out` and `00017.err` in `logs`. After `timeout` seconds the program and its children are killed.
    A copy, or an unpickled object, runs nothing and has not been stopped.
    """

    arguments: Sequence[str]
    timeout: float | None = None
    folder: Path | None = None
    logs: Path | None = None
    flags: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    optional: Sequence[str] = ()
    parts: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)
    own_process: ClassVar[bool] = True
    _templates: tuple[Template, ...] = field(init=False, repr=False, compare=False)
    _groups: _Groups = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not hasattr(os, "killpg"):
            raise InvalidOption("a command needs process groups, which Windows lacks: use a Python objective instead")
        given = self.arguments
        if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not given:
            raise InvalidOption(f"a command must be a non-empty list of strings, not {given!r}")
        for argument in given:
            if not isinstance(argument, str) or "\0" in argument:
                raise InvalidOption(f"a command's arguments must be strings without NUL, not {argument!r}")
        templates = tuple(Template.of(argument) for argument in given)
        if templates[0].places or not given[0]:
            raise InvalidOption(f"a command must begin with the name of a program, not {given[0]!r}")
        object.__setattr__(self, "arguments", tuple(given))
        object.__setattr__(self, "timeout", seconds(self.timeout))
        object.__setattr__(self, "folder", Path("" if self.folder is None else self.folder).absolute())
        object.__setattr__(self, "logs", None if self.logs is None else Path(self.logs).absolute())
        object.__setattr__(self, "flags", {name: _checked(name, flag) for name, flag in self.flags.items()})
        object.__setattr__(self, "_templates", templates)
        object.__setattr__(self, "_groups", _Groups())

    def __reduce__(self) -> tuple[type[Command], tuple[Any, ...]]:
        return Command, (self.arguments, self.timeout, self.folder, self.logs, self.flags, self.optional, self.parts)

    def check(self, space: Space) -> None:
        """Refuse placeholders that name no parameter, and a program that does not exist."""
        self.check_placeholders(space)
        self.check_program()

    def check_placeholders(self, space: Space) -> None:
        """Refuse placeholders that name no parameter, and parameters with a value that cannot be an argument."""
        parameters = {parameter.name: parameter for parameter in space.parameters}
        self._check_flags(space)
        for name in self._named(parameters):
            if name in parameters and name not in self.flags:
                parameter = parameters[name]
                values = map(parameter.decode, parameter.all_codes()) if getattr(parameter, "cardinality", 0) else ()
                for value in values:
                    if "\0" in written(value):
                        raise InvalidOption(
                            f"{parameter.name!r}: the value {value!r} contains NUL, so it cannot be an argument"
                        )

    def _check_flags(self, space: Space) -> None:
        """Refuse flags that are not binary, or that have no place in the command."""
        types = {parameter.name: parameter.type for parameter in space.parameters}
        named = self._named(types)
        for name in self.flags:
            if types.get(name) != "binary":
                raise InvalidOption(f"the flag {name!r} must be a binary parameter")
            if name not in named and (FLAGS in types or FLAGS not in named):
                raise InvalidOption(
                    f"{name!r} has on or off, but no place in the command: add the argument '{{{name}}}', or "
                    f"'{{{FLAGS}}}' for all flags"
                )

    def _named(self, names: Mapping[str, Any]) -> set[str]:
        """Return what the placeholders name, of these parameters and all flags together."""
        known = self._known(names)
        return {place.resolved(known)[1] for template in self._templates for place in template.places}

    def _known(self, names: Mapping[str, Any]) -> dict[str, None]:
        return dict.fromkeys(
            (*names, *(name for name in self._owners if name not in names), *([FLAGS] * bool(self.flags)))
        )

    @cached_property
    def _owners(self) -> dict[str, tuple[str, Any]]:
        """Per placeholder of a part, the parameter and its member."""
        return {f"{name}.{member}": (name, member) for name, members in self.parts.items() for member in members}

    def _value(self, name: str, member: Any, point: Mapping[str, Any]) -> Any:
        """Return the fraction of a component, or whether a subset has a member."""
        value = point[name]
        return value[member] if isinstance(value, Mapping) else member in value

    def _is_active(self, template: Template, point: Mapping[str, Any]) -> bool:
        """Return whether a point has all optional parameters that an argument names."""
        absent = {name for name in self.optional if name not in point}
        known = self._known({**point, **dict.fromkeys(absent)})
        absent |= {part for part, (owner, _) in self._owners.items() if owner in absent}
        return not absent or all(place.resolved(known)[1] not in absent for place in template.places)

    def _used(self, point: Mapping[str, Any]) -> tuple[list[Template], set[str]]:
        """Return the arguments for a point, without those that name an inactive parameter, and what they name."""
        templates = [template for template in self._templates if self._is_active(template, point)]
        known = self._known(point)
        return templates, {place.resolved(known)[1] for template in templates for place in template.places}

    def unnamed(self, point: Mapping[str, Any]) -> list[str]:
        """Return the parameters that no argument shows: the program reads them from its input, or not at all."""
        _, named = self._used(point)
        shown = named | (set(self.flags) if FLAGS in named and FLAGS not in point else set())
        shown |= {
            name for name, members in self.parts.items() if all(f"{name}.{member}" in named for member in members)
        }
        return [name for name in point if name not in shown]

    def filled(self, point: Mapping[str, Any]) -> list[str]:
        """Return the program and its arguments for a point; one that names an inactive parameter is left out."""
        templates, named = self._used(point)
        texts = {name: flag["on" if point[name] else "off"] for name, flag in self.flags.items() if name in point}
        parts = {part: self._value(*owner, point) for part, owner in self._owners.items() if owner[0] in point}
        values: dict[str, Any] = {**parts, **point, **texts}
        together = bool(self.flags) and FLAGS not in point
        if together:
            values[FLAGS] = " ".join(text for name, text in texts.items() if name not in named and text)
        arguments: list[str] = []
        for template in templates:
            name = None if template.whole is None else template.whole.resolved(values)[1]
            if name in texts or (together and name == FLAGS):
                arguments += shlex.split(template.filled(values))
            else:
                arguments.append(template.filled(values))
        return arguments

    def check_program(self) -> None:
        """Refuse a program that does not exist or cannot be executed."""
        assert self.folder is not None
        program = self._templates[0].filled({})
        if "/" not in program:
            if shutil.which(program) is None:
                raise InvalidOption(
                    f"the program {program!r} is not in PATH; write './{program}' if it is in {str(self.folder)!r}"
                )
            return
        path = self.folder / program
        if not path.is_file():
            said = f"the program {program!r} does not exist: {str(path)!r} is a folder"
            raise InvalidOption(said if path.is_dir() else f"the program {str(path)!r} does not exist")
        if not os.access(path, os.X_OK):
            raise InvalidOption(f"{str(path)!r} cannot be executed: make it executable with chmod +x")

    def within(self, limit: float, /) -> Command:
        """Return the same command with a timeout of at most this many seconds."""
        timeout = seconds(limit)
        assert timeout is not None
        return replace(self, timeout=timeout if self.timeout is None else min(self.timeout, timeout))

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Run the program; a failure is an outcome, unless the machine is at fault."""
        start = time.perf_counter()
        try:
            value, beside = self._run(trial)
        except EvaluationFailed as error:
            return Outcome.failed(str(error), time.perf_counter() - start, error)
        except Exception as error:
            sentence = f"the command could not be run: {said(error)}"
            if isinstance(error, OSError) and error.errno != errno.E2BIG:
                # The program is missing, the disk is full, there are too many processes: so for every point.
                raise MachineFailed(sentence + self._hint(error)) from error
            failure = EvaluationFailed(sentence)  # a value is too long for an argument, or cannot be one
            return Outcome.failed(str(failure), time.perf_counter() - start, failure)
        return Outcome(value, None, time.perf_counter() - start, constraints=beside, exact=False)

    def _hint(self, error: OSError) -> str:
        """Return what may be wrong with a script that cannot be started."""
        assert self.folder is not None
        program = self._templates[0].filled({})
        found = self.folder / program if "/" in program else Path(shutil.which(program) or "")
        if error.errno == errno.ENOEXEC:
            return "; a script needs a first line such as #!/bin/sh"
        if error.errno == errno.ENOENT and error.filename == program and found.is_file():
            return "; it exists, but its first line names a program that does not"
        return ""

    def stop(self) -> None:
        """Kill what this object is running, and fail every later evaluation."""
        self._groups.stop()

    def _run(self, trial: Trial) -> tuple[float, dict[str, float]]:
        point = json.dumps(trial.point).encode("ascii")
        environment = dict(os.environ) | {"BOUNCE_TRIAL": str(trial.id)}
        environment.pop("BOUNCE_POINT", None)
        if len("BOUNCE_POINT=") + len(point) < LONGEST_VARIABLE:
            environment["BOUNCE_POINT"] = point.decode("ascii")
        with ExitStack() as files:
            given = files.enter_context(TemporaryFile())  # a file, not a pipe: the program need not read it
            given.write(point + b"\n")
            given.seek(0)
            out, err = (files.enter_context(self._log(trial, suffix)) for suffix in ("out", "err"))
            self._groups.refuse_if_stopped()
            process = subprocess.Popen(
                self.filled(trial.point),
                stdin=given,
                stdout=out,
                stderr=err,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
            try:
                self._groups.add(process.pid)
                in_time = self._wait(process)
            finally:  # its children too, however it ended
                self._groups.kill(process.pid)
                process.wait()
            self._groups.refuse_if_stopped()
            if not in_time:
                raise EvaluationFailed(
                    f"the command was killed because it took longer than {self.timeout:g} s{end_of(err)}"
                )
            if process.returncode:
                raise EvaluationFailed(f"the command ended with {_status(process.returncode)}{end_of(err)}")
            return value_of(out)

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for a program to end; return whether it ended in time."""
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            return False
        return True

    def _log(self, trial: Trial, suffix: str) -> IO[bytes]:
        if self.logs is None:
            return TemporaryFile()
        self.logs.mkdir(parents=True, exist_ok=True)
        return (self.logs / f"{trial.id:05d}.{suffix}").open("w+b")


class _Groups:
    """The process groups that one object is running in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[int] = set()
        self._stopped = False

    def refuse_if_stopped(self) -> None:
        if self._stopped:
            raise EvaluationFailed("the command was killed because the run was stopped")

    def add(self, group: int) -> None:
        REAPER.add(group)
        with self._lock:
            self._running.add(group)
        self.refuse_if_stopped()

    def kill(self, group: int) -> None:
        """Kill what is left of a group, at once: later its number could belong to another group."""
        with self._lock:
            self._running.discard(group)
            _kill(group)
        REAPER.discard(group)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for group in self._running:
                _kill(group)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended, or only zombies are left (macOS)
        os.killpg(group, signal.SIGKILL)


def _checked(name: str, flag: object) -> dict[str, str]:
    """Return what a flag is when on and when off; refuse what cannot be arguments."""
    if not isinstance(flag, Mapping) or not flag or not flag.keys() <= {"on", "off"}:
        raise InvalidOption(f"the flag {name!r} must have 'on', 'off' or both, not {quoted(flag)}")
    texts = {key: flag.get(key, "") for key in ("on", "off")}
    for key, text in texts.items():
        if not isinstance(text, str) or "\0" in text:
            raise InvalidOption(f"{name!r}: {key} must be a string without NUL, not {quoted(text)}")
        try:
            shlex.split(text)
        except ValueError as error:
            raise InvalidOption(f"{name!r}: {key} cannot be split into arguments: {error}: {text!r}") from None
    return texts


def seconds(timeout: object) -> float | None:
    """Return a timeout as a positive number; refuse anything else."""
    if timeout is None:
        return None
    try:
        seconds = 0.0 if isinstance(timeout, bool) else finite(timeout)
    except InvalidTell:
        seconds = 0.0
    if seconds <= 0:
        raise InvalidOption(f"timeout must be a positive number of seconds, not {quoted(timeout)}", option="timeout")
    return seconds


def _status(code: int) -> str:
    if code > 0:
        return f"exit status {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
