"""Commands: a program with arguments as the objective, run without a shell.

Each run is a process group of its own, and the whole group is gone when its trial has an outcome. Only a process
that leaves its group on purpose (a daemon) can stay behind.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, ClassVar

from bounce.errors import EvaluationFailed, InvalidOption, InvalidTell
from bounce.running.evaluation import Outcome, said
from bounce.running.template import Template
from bounce.text import number, written
from bounce.trial import Trial, finite

if TYPE_CHECKING:
    from bounce.spaces.space import Space

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
LONGEST_VARIABLE = 128 * 1024  # bytes of an environment variable on Linux, its name and end included
SEARCHED = 1024 * 1024  # bytes at the end of standard output in which the value must be
QUOTED_LINES, QUOTED_CHARACTERS = 10, 2000  # of standard error, in the text of a failure


@dataclass(frozen=True)
class Command:
    """A program with arguments as an evaluator: what it prints is the value.

    `{NAME}` in an argument stands for the value of a parameter, `{{` and `}}` for braces. Nothing goes through a
    shell, so a value stays one argument whatever is in it; write `--name={x}` rather than `--name`, `{x}` where a
    value may begin with a dash. The point is also JSON on standard input and in `BOUNCE_POINT` (where it fits),
    the trial's id is in `BOUNCE_TRIAL`. The value is the last line of standard output that is a number, or a JSON
    object with a number as `value`.

    A path with a slash is relative to `folder`, where the program runs. Standard output and error are kept as
    `00017.out` and `00017.err` in `logs`. After `timeout` seconds the program and its children are killed.
    A copy, or what comes out of a pickle, is running nothing and has not been stopped.
    """

    arguments: Sequence[str]
    timeout: float | None = None
    folder: Path | None = None
    logs: Path | None = None
    own_process: ClassVar[bool] = True
    _templates: tuple[Template, ...] = field(init=False, repr=False, compare=False)
    _groups: _Groups = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not hasattr(os, "killpg"):
            raise InvalidOption("a command needs the process groups of Linux or macOS; use a Python objective here")
        given = self.arguments
        if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not given:
            raise InvalidOption(f"a command must be a list of strings that is not empty, not {given!r}")
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
        object.__setattr__(self, "_templates", templates)
        object.__setattr__(self, "_groups", _Groups())

    def __reduce__(self) -> tuple[type[Command], tuple[Any, ...]]:
        return Command, (self.arguments, self.timeout, self.folder, self.logs)

    def check(self, space: Space) -> None:
        """Refuse placeholders that name no parameter, and a program that is not there."""
        self.check_placeholders(space)
        self.check_program()

    def check_placeholders(self, space: Space) -> None:
        """Refuse placeholders that name no parameter, or one with values that no argument can hold."""
        parameters = {parameter.name: parameter for parameter in space.parameters}
        for template in self._templates:
            for place in template.places:
                parameter = parameters[place.resolved(parameters)[1]]
                values = map(parameter.decode, parameter.all_codes()) if parameter.cardinality else ()
                for value in values:
                    if "\0" in written(value):
                        raise InvalidOption(f"{parameter.name!r}: {value!r} holds NUL, which no argument can")

    def check_program(self) -> None:
        """Refuse a program that is not there or cannot be executed."""
        assert self.folder is not None
        program = self._templates[0].filled({})
        if "/" not in program:
            if shutil.which(program) is None:
                raise InvalidOption(
                    f"there is no program {program!r} in PATH; './{program}' would be one in {str(self.folder)!r}"
                )
            return
        path = self.folder / program
        if not path.is_file():
            raise InvalidOption(f"there is no program {str(path)!r}")
        if not os.access(path, os.X_OK):
            raise InvalidOption(f"{str(path)!r} cannot be executed: chmod +x makes it a program")

    def within(self, limit: float, /) -> Command:
        """Return the same command with a timeout of no more than some seconds."""
        timeout = seconds(limit)
        assert timeout is not None
        return replace(self, timeout=timeout if self.timeout is None else min(self.timeout, timeout))

    def evaluate(self, trial: Trial, /) -> Outcome:
        """Run the program; whatever goes wrong is an outcome."""
        start = time.perf_counter()
        try:
            value = self._run(trial)
        except EvaluationFailed as error:
            return Outcome.failed(str(error), time.perf_counter() - start, error)
        except Exception as error:  # no such program, no room for its output, no more processes
            hint = "; a script needs a first line such as #!/bin/sh" if _no_format(error) else ""
            failure = EvaluationFailed(f"the command could not be run: {said(error)}{hint}")
            return Outcome.failed(str(failure), time.perf_counter() - start, failure)
        return Outcome(value, None, time.perf_counter() - start)

    def stop(self) -> None:
        """Kill what this object is running, and fail what it is asked to run later."""
        self._groups.stop()

    def _run(self, trial: Trial) -> float:
        point = json.dumps(trial.point).encode("ascii")
        environment = dict(os.environ) | {"BOUNCE_TRIAL": str(trial.id)}
        environment.pop("BOUNCE_POINT", None)
        if len("BOUNCE_POINT=") + len(point) < LONGEST_VARIABLE:
            environment["BOUNCE_POINT"] = point.decode("ascii")
        with ExitStack() as files:
            given = files.enter_context(TemporaryFile())  # a file: the program may leave it unread
            given.write(point + b"\n")
            given.seek(0)
            out, err = (files.enter_context(self._log(trial, suffix)) for suffix in ("out", "err"))
            self._groups.refuse_if_stopped()
            process = subprocess.Popen(
                [template.filled(trial.point) for template in self._templates],
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
            finally:  # its children too, whatever became of it
                self._groups.kill(process.pid)
                process.wait()
            self._groups.refuse_if_stopped()
            if not in_time:
                raise EvaluationFailed(
                    f"the command was killed because it took longer than {self.timeout:g} s{_end_of(err)}"
                )
            if process.returncode:
                raise EvaluationFailed(f"the command ended with {_status(process.returncode)}{_end_of(err)}")
            return _value(out)

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end of a program, and say whether it came in time."""
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
        with self._lock:
            self._running.add(group)
        self.refuse_if_stopped()

    def kill(self, group: int) -> None:
        """Kill what is left of a group; its number was in use a moment ago, so it is nobody else's yet."""
        with self._lock:
            self._running.discard(group)
            _kill(group)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for group in self._running:
                _kill(group)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is gone, or only zombies are left (macOS)
        os.killpg(group, signal.SIGKILL)


def seconds(timeout: object) -> float | None:
    """Return a timeout, or say that it is none."""
    if timeout is None:
        return None
    try:
        seconds = 0.0 if isinstance(timeout, bool) else finite(timeout)
    except InvalidTell:
        seconds = 0.0
    if seconds <= 0:
        raise InvalidOption(f"timeout must be a positive number of seconds, not {timeout!r}")
    return seconds


def _no_format(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ENOEXEC


def _status(code: int) -> str:
    if code > 0:
        return f"exit status {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _last(file: IO[bytes], most: int) -> tuple[bytes, bool]:
    """Return the last bytes of a file, and whether these are all there is."""
    size = os.fstat(file.fileno()).st_size
    start = max(0, size - most)
    return os.pread(file.fileno(), size - start, start), start == 0  # a daemon that goes on writing is not disturbed


def _end_of(err: IO[bytes]) -> str:
    lines = _last(err, 4 * QUOTED_CHARACTERS)[0].decode("utf-8", "replace").splitlines()
    text = "\n".join(lines[-QUOTED_LINES:]).strip()
    if len(text) > QUOTED_CHARACTERS:
        text = "…" + text[-QUOTED_CHARACTERS:]
    return f"; its standard error ends with:\n{text}" if text else ""


def _value(out: IO[bytes]) -> float:
    """Return the value that was printed last, or say why there is none."""
    end, whole = _last(out, SEARCHED + 1)  # a byte more, to see whether a line begins after it
    lines = [line.decode("utf-8", "replace").strip() for line in end.splitlines()]
    if not whole:
        del lines[0]  # its beginning is missing
    lines = [line for line in lines if line]
    for line in reversed(lines):
        printed = _printed(line)
        if printed is not None:
            try:
                return finite(printed)
            except InvalidTell:
                raise EvaluationFailed(
                    f"the command's value must be a finite number, but it printed {_short(line)}"
                ) from None
    if whole and not lines:
        raise EvaluationFailed("the command printed nothing; it must print its value on standard output")
    where = "no line" if whole else f"no whole line in the last {SEARCHED // 1024} KiB"
    last = f"; the last one is {_short(lines[-1])}" if lines else ""
    raise EvaluationFailed(f"{where} of the command's standard output is a number{last}")


def _printed(line: str) -> float | None:
    """Return the value that a line gives, NaN if it gives one that is no number; None if it gives none."""
    if not line.startswith("{"):
        return number(line)
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if "value" not in document:
        return None
    value = document["value"]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _short(line: str) -> str:
    return repr(line if len(line) <= 100 else line[:100] + "…")
