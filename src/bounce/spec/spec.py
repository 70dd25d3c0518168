"""Specs: a study described in a TOML file, with the names that Python uses.

A spec is refused before anything runs: the message names the file, the line and what would be right.
"""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from bounce.errors import InvalidInput, InvalidSpec
from bounce.optimizer.options import Options, whole
from bounce.running.command import Command, seconds
from bounce.running.evaluation import Evaluator
from bounce.running.imported import Imported
from bounce.spaces.parameters import FIELDS, Parameter, parameter_from_dict
from bounce.spaces.space import Space
from bounce.spec.positions import Path as Keys
from bounce.spec.positions import lines_of

RUN = ("budget", "batch_size", "seed", "direction")  # options that stand at the top
TOP = ("name", *RUN, "workers", "timeout", "objective", "command", "options", "parameters")
OPTIONS = tuple(f.name for f in fields(Options) if f.name not in RUN)
LONGEST_NAME = 200  # bytes: a file's name has at most 255, and endings come after this


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
    objective: str | None = None
    command: tuple[str, ...] | None = None
    line: int | None = field(default=None, repr=False, compare=False)
    """Where the objective or the command stands."""

    @property
    def study(self) -> Path:
        """Where the study is kept, unless somebody says otherwise."""
        return self.path.with_name(f"{self.name}.db")

    @property
    def settings(self) -> dict[str, Any]:
        """All options of the optimizer: what a spec leaves out has its default, also if it was once there."""
        return vars(Options.of(self.options))

    def evaluator(self, study: Path | None = None) -> Evaluator | None:
        """Return what evaluates a trial, None if people do; refuse a program or function that is not there.

        A command's outputs are kept beside the study.
        """
        try:
            if self.command is not None:
                kept = study or self.study
                logs = kept.with_name(kept.name.removesuffix(".db") + ".trials")
                command = Command(self.command, self.timeout, self.path.parent, logs)
                command.check(self.space)
                return command
            if self.objective is not None:
                imported = Imported(self.objective, self.path.parent)
                imported.function()
                return imported
        except InvalidInput as error:
            raise InvalidSpec(f"{_place(self.path, self.line)}: {error}") from error
        return None


def example() -> str:
    """Return a spec that explains every key, and runs as it is."""
    return resources.files("bounce.study").joinpath("example.toml").read_text(encoding="utf-8")


def load(path: Path | str) -> Spec:
    """Read a spec, or say what is wrong with it and where."""
    path = Path(path)
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_toml(path, error) from None
    return _Source(path, document, lines_of(text)).spec()


def _place(path: Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}, line {line}"


def _text(path: Path) -> str:
    """Return the text of a file; a byte-order mark, which some editors write, is no part of it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidSpec(f"{path}: there is no such file; bounce init writes an example") from None
    except IsADirectoryError:
        raise InvalidSpec(f"{path}: this is a folder, and a spec is a file") from None
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"{path}: the file cannot be read: {error}") from None
    if content.startswith(b"SQLite format 3\0"):
        raise InvalidSpec(f"{path}: this is a study, but a spec is needed, the TOML file that describes one")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidSpec(f"{_place(path, line)}: a spec must be UTF-8, but this line is not") from None


def _no_toml(path: Path, error: Exception) -> InvalidSpec:
    said = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error), re.DOTALL)
    message = said[1] if said else str(error)
    if message.startswith("Invalid value"):
        message += " (texts need quotes, a number begins with a digit, and the truth values are true and false)"
    return InvalidSpec(f"{_place(path, int(said[2]) if said else None)}: this is no TOML: {message}")


@dataclass(frozen=True)
class _Source:
    """A document, and where its keys stand."""

    path: Path
    document: dict[str, Any]
    lines: dict[Keys, int]

    def error(self, sentence: str, *keys: str | int) -> InvalidSpec:
        """Return the error of a key, or of the nearest thing around it that has a line."""
        around = (keys[:length] for length in range(len(keys), 0, -1))
        line = next((self.lines[part] for part in around if part in self.lines), None)
        return InvalidSpec(f"{_place(self.path, line)}: {sentence}")

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Say where the mistakes are that are found inside."""
        try:
            yield
        except InvalidInput as error:
            raise self.error(str(error), *keys) from None

    def spec(self) -> Spec:
        """Return the spec that the document describes."""
        document = self.document
        self._refuse_unknown(document, TOP)
        space, options = self._space(), self._options()
        workers = timeout = None
        if "workers" in document:
            with self.at("workers"):
                workers = whole("workers", document["workers"], 1)
        if "timeout" in document:
            with self.at("timeout"):
                timeout = seconds(document["timeout"])
        objective, command = self._objective(), self._command(space)
        if objective is not None and command is not None:
            raise self.error("there must be an objective or a command, not both", "command")
        line = self.lines.get(("objective",) if command is None else ("command",))
        path = self.path.absolute()
        return Spec(path, self._name(), space, options, workers, timeout, objective, command, line)

    def _refuse_unknown(self, table: Mapping[str, Any], allowed: Sequence[str], *where: str | int) -> None:
        for key in table:
            if key in allowed:
                continue
            near = difflib.get_close_matches(key, allowed, n=1)
            if where and key in TOP:
                hint = " here: it belongs at the top of the file, above the first [table]."
            elif not where and key in OPTIONS:
                hint = " here: it belongs into the table [options]."
            else:
                hint = f"; did you mean {near[0]!r}?" if near else "."
            raise self.error(f"unknown key {key!r}{hint} The keys are {', '.join(allowed)}", *where, key)

    def _name(self) -> str:
        name = self.document.get("name", self.path.stem)
        if (
            not isinstance(name, str)
            or name in ("", ".", "..")
            or not name.isprintable()
            or set(name) & set("/\\")
            or len(name.encode("utf-8", "replace")) > LONGEST_NAME
        ):
            raise self.error(f"name must be usable as the name of a file, without slashes, not {name!r}", "name")
        return name

    def _options(self) -> dict[str, Any]:
        if "budget" not in self.document:
            raise self.error("budget is missing: how many evaluations there may be, such as budget = 100")
        table = self.document.get("options", {})
        if not isinstance(table, dict):
            raise self.error(f"options must be a table, [options], not {table!r}", "options")
        self._refuse_unknown(table, OPTIONS, "options")
        places: dict[str, Keys] = {key: (key,) for key in RUN if key in self.document}
        places |= {key: ("options", key) for key in table}
        given = {key: (self.document | table)[key] for key in places}
        for key, value in given.items():
            if key == "low_sequency" and not isinstance(value, bool):
                raise self.error(f"low_sequency must be true or false, not {value!r}", *places[key])
            with self.at(*places[key]):
                Options.of({"budget": 1, key: value})
        return given

    def _objective(self) -> str | None:
        objective = self.document.get("objective")
        if objective is not None:
            with self.at("objective"):
                Imported(objective, self.path.parent)
        return objective

    def _command(self, space: Space) -> tuple[str, ...] | None:
        command = self.document.get("command")
        if command is None:
            return None
        if isinstance(command, str):
            raise self.error(f"command must be a list of strings{_split(command)}, not {command!r}", "command")
        for place, argument in enumerate(command if isinstance(command, list) else ()):
            if not isinstance(argument, str):
                raise self.error(f"command must be a list of strings, and {argument!r} is none", "command", place)
        with self.at("command"):
            Command(command, folder=self.path.parent).check_placeholders(space)
        return tuple(command)

    def _space(self) -> Space:
        tables = self.document.get("parameters", [])
        if isinstance(tables, dict):
            raise self.error("parameters need double brackets, [[parameters]], one table each", "parameters")
        if not isinstance(tables, list) or not tables:
            sentence = "parameters are missing" if "parameters" not in self.document else "there must be parameters"
            raise self.error(f"{sentence}: what may be varied, one table [[parameters]] each", "parameters")
        found: dict[str, int] = {}
        parameters = []
        for place, table in enumerate(tables):
            parameter = self._parameter(place, table)
            if parameter.name in found:
                first = self.lines.get(("parameters", found[parameter.name], "name"))
                also = "" if first is None else f" (the first is in line {first})"
                raise self.error(f"two parameters are called {parameter.name!r}{also}", "parameters", place, "name")
            found[parameter.name] = place
            parameters.append(parameter)
        return Space(parameters)

    def _parameter(self, place: int, table: Any) -> Parameter:
        where = ("parameters", place)
        if not isinstance(table, dict):
            raise self.error(f"a parameter must be a table with name and type, not {table!r}", *where)
        for key in ("name", "type"):
            if key not in table:
                raise self.error(f"a parameter lacks {key!r}", *where)
        name, kind = table["name"], table["type"]
        if not isinstance(name, str) or not name:
            raise self.error(f"a parameter's name must be a string that is not empty, not {name!r}", *where, "name")
        if not isinstance(kind, str) or kind not in FIELDS:
            raise self.error(f"{name!r}: type must be one of {', '.join(FIELDS)}, not {kind!r}", *where, "type")
        allowed = ("name", "type", *FIELDS[kind])
        for key in table:
            if key not in allowed and any(key in keys for keys in FIELDS.values()):
                fits = ", ".join(allowed)
                raise self.error(f"{name!r}: {key!r} does not fit type {kind!r}, which takes {fits}", *where, key)
        self._refuse_unknown(table, allowed, *where)
        for key in allowed:
            if key not in table and key != "log":
                raise self.error(f"{name!r}: a parameter of type {kind!r} needs {key!r}", *where)
        if not isinstance(table.get("log", False), bool):
            raise self.error(f"{name!r}: log must be true or false, not {table['log']!r}", *where, "log")
        for key in ("values", "choices"):
            entries = table.get(key, [])
            for entry, value in enumerate(entries if isinstance(entries, list) else ()):
                if not isinstance(value, str | int | float):
                    sentence = f"{name!r}: {key} must be texts, numbers or truth values, not {_toml_type(value)}"
                    raise self.error(sentence, *where, key, entry)
        try:
            return parameter_from_dict(table)
        except InvalidInput as error:
            about = str(error).removeprefix(f"{name!r}: ").split(" ")[0]
            raise self.error(str(error), *where, *([about] if about in table else [])) from None


def _split(command: str) -> str:
    """Return how a command line would be a list, if it is clear."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return f" such as {words!r}" if words else ""


def _toml_type(value: object) -> str:
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else f"the date {value}"
