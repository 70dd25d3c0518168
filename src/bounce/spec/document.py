"""Documents: the TOML file of a study is read, checked, and becomes a spec.

A spec with a mistake is refused before anything runs. The message names the file, the line and what would be right.
"""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from bounce.errors import InvalidInput, InvalidSpace, InvalidSpec, quoted
from bounce.optimizer.options import SYNONYMS, Options, whole
from bounce.optimizer.stopping import StopWhen
from bounce.running.command import Command, seconds
from bounce.running.imported import Imported
from bounce.spaces.kinds import Parameter
from bounce.spaces.parameters import FIELDS, OPTIONAL, parameter_from_dict
from bounce.spaces.space import Space
from bounce.spec.positions import Path as Keys
from bounce.spec.positions import lines_of
from bounce.spec.shorthand import FLAGS, SEVERAL, spread
from bounce.spec.spec import Spec, parts_of, place_of
from bounce.text import written

RUN = ("budget", "batch_size", "seed", "direction")  # options at the top of the file
HOW = ("workers", "timeout", "max_failures", "stop_when")  # how evaluations run
SPACE = ("parameters", "constraints", "outcomes")
TOP = ("name", *RUN, *HOW, "objective", "command", "options", *SPACE, "start", "fixed")
LISTS = ("values", "choices", "members", "items")  # keys whose entries are in the cells or the header of a table
OPTIONS = tuple(f.name for f in fields(Options) if f.name not in RUN)
ANY = tuple(
    dict.fromkeys(["name", "type", *(key for keys in FIELDS.values() for key in keys), *FLAGS, "default", *SEVERAL])
)
LONGEST_NAME = 200  # bytes: a file name has at most 255, and suffixes are added to this one


def example() -> str:
    """Return an example spec that explains every key and can be run."""
    return resources.files("bounce.spec").joinpath("example.toml").read_text(encoding="utf-8")


def load(path: Path | str) -> Spec:
    """Read a spec; refuse one with a mistake, naming the line."""
    path = Path(path)
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_toml(path, error, text) from None
    return _Document(path, document, lines_of(text)).spec()


def _text(path: Path) -> str:
    """Return the text of a file, without the byte-order mark that some editors write."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidSpec(f"{path}: this file does not exist; bounce init writes an example") from None
    except IsADirectoryError:
        raise InvalidSpec(f"{path}: this is a folder, but a spec is a file") from None
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"{path}: the file cannot be read: {error}") from None
    if content.startswith(b"SQLite format 3\0"):
        raise InvalidSpec(f"{path}: this is a study, but a spec is needed: the TOML file that describes the study")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidSpec(f"{place_of(path, line)}: a spec must be UTF-8, but this line is not", line=line) from None


def _invalid_toml(path: Path, error: Exception, text: str) -> InvalidSpec:
    single = re.search(r"^[ \t]*\[[ \t]*(parameters|start)[ \t]*\]", text, re.MULTILINE)
    if single is not None:
        place = text.count("\n", 0, single.start()) + 1
        sentence = f"{single[1]} need double brackets: one table [[{single[1]}]] for each"
        return InvalidSpec(f"{place_of(path, place)}: {sentence}", line=place)
    # Before Python 3.14, tomllib gives the line only in its message.
    found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error), re.DOTALL)
    message, line = (found[1], int(found[2])) if found else (str(error), None)
    hint = " (strings need quotes, numbers begin with a digit, booleans are true and false)"
    return InvalidSpec(f"{place_of(path, line)}: this is not valid TOML: {message}{hint}", line=line)


@dataclass(frozen=True)
class _Document:
    """A document, and the lines of its keys."""

    path: Path
    document: dict[str, Any]
    lines: dict[Keys, int]

    def error(self, sentence: str, *keys: str | int) -> InvalidSpec:
        """Return the error for a key, with its line or that of the nearest table around it."""
        around = (keys[:length] for length in range(len(keys), 0, -1))
        line = next((self.lines[part] for part in around if part in self.lines), None)
        return InvalidSpec(f"{place_of(self.path, line)}: {sentence}", line=line)

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Add the line of a key to the errors that are raised inside."""
        try:
            yield
        except InvalidInput as error:
            raise self.error(str(error), *keys) from None

    def spec(self) -> Spec:
        """Return the spec that the document describes."""
        document = self.document
        self._refuse_unknown(document, TOP)
        space, options = self._space(), self._options()
        how: dict[str, Any] = {}
        for key in ("workers", "max_failures"):
            if key in document:
                with self.at(key):
                    how[key] = whole(key, document[key], 1)
        if "timeout" in document:
            with self.at("timeout"):
                how["timeout"] = seconds(document["timeout"])
        if "stop_when" in document:
            with self.at("stop_when"):
                direction = Options.of(options).direction
                how["stop_when"] = StopWhen.of(document["stop_when"], direction, limited=bool(space.limits)).text
        flags = self._flags()
        objective, command = self._objective(), self._command(space, flags)
        if objective is not None and command is not None:
            raise self.error("a spec has an objective or a command, not both", "command")
        line = self.lines.get(("objective",) if command is None else ("command",))
        what: dict[str, Any] = {"objective": objective, "command": command, "line": line}
        if flags and command is None:
            place, table = next((place, table) for place, table in self._tables() if table["name"] in flags)
            key = next(key for key in FLAGS if key in table)
            sentence = f"{table['name']!r}: {key} is an argument of the command, but the spec has no command"
            raise self.error(sentence, "parameters", place, key)
        what |= {"flags": flags, "start": self._start(space), "defaults": self._defaults(space)}
        what["fixed"] = {name: self.lines.get(("fixed", name)) for name in document.get("fixed", {})}
        return Spec(self.path.absolute(), self._name(), space, options, **how, **what)

    def _refuse_unknown(self, table: Mapping[str, Any], allowed: Sequence[str], *where: str | int) -> None:
        for key in table:
            if key in allowed:
                continue
            meant = SYNONYMS.get(key, key)
            near = [meant] if meant in allowed else difflib.get_close_matches(key, allowed, n=1)
            elsewhere = None
            if where and meant in TOP:
                elsewhere = "at the top of the file, above the first [table]."
            elif not where and meant in OPTIONS:
                elsewhere = "in the table [options]."
            if elsewhere is not None:
                hint = (
                    f" here: it belongs {elsewhere}"
                    if meant == key
                    else f"; did you mean {meant!r}? It belongs {elsewhere}"
                )
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
            raise self.error(f"name must be a valid file name without slashes, not {quoted(name)}", "name")
        return name

    def _options(self) -> dict[str, Any]:
        table = self.document.get("options", {})
        if not isinstance(table, dict):
            raise self.error(f"options must be a table, [options], not {quoted(table)}", "options")
        self._refuse_unknown(table, OPTIONS, "options")
        if "budget" not in self.document:
            raise self.error("budget is missing: the number of evaluations, such as budget = 100")
        places: dict[str, Keys] = {key: (key,) for key in RUN if key in self.document}
        places |= {key: ("options", key) for key in table}
        given = {key: (self.document | table)[key] for key in places}
        for key, value in given.items():
            with self.at(*places[key]):
                Options.of({"budget": 1, key: value})
        return given

    def _start(self, space: Space) -> tuple[dict[str, Any], ...]:
        """Return the points of [[start]]."""
        tables = self.document.get("start", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error("start points need double brackets, [[start]], one table each", "start")
        parameters = {parameter.name: parameter for parameter in space.parameters}
        for place, point in enumerate(tables):
            for name, value in point.items():
                if name not in parameters:
                    raise self.error(f"a start point has no parameter {name!r}", "start", place, name)
                with self.at("start", place, name):
                    parameters[name].encode(value)
            with self.at("start", place):
                _, known, free = space.partial(point)
                if not free:
                    space.encode([known])
        return tuple(tables)

    def _defaults(self, space: Space) -> dict[str, Any]:
        """Return the defaults of parameters, and the values of [fixed]."""
        fixed = self.document.get("fixed", {})
        if not isinstance(fixed, dict):
            raise self.error("fixed must be a table, [fixed], of former parameters and their values", "fixed")
        for name in fixed:
            if any(parameter.name == name for parameter in space.parameters):
                raise self.error(f"{name!r} is a parameter, so it is not fixed", "fixed", name)
        found = dict(fixed)
        parameters = {parameter.name: parameter for parameter in space.parameters}
        for place, table in self._tables():
            if "default" in table:
                with self.at("parameters", place, "default"):
                    parameters[table["name"]].encode(table["default"])
                found[table["name"]] = table["default"]
        return found

    def _tables(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield a table for each parameter, with the place of the table that describes it."""
        for place, table in enumerate(self.document["parameters"]):
            where = ("parameters", place)
            if not isinstance(table, dict):
                raise self.error(f"a parameter must be a table with name and type, not {quoted(table)}", *where)
            if not ("type" in table and table.keys() & {"name", "names"}):
                self._refuse_unknown(table, ANY, *where)  # first: a key that is missing may be there, misspelt
            try:
                found = spread(table)
            except InvalidSpace as error:
                raise self.error(
                    str(error), *where, *([error.key] if error.key is not None and error.key in table else [])
                ) from None
            for single in found:
                yield place, single

    def _flags(self) -> dict[str, dict[str, str]]:
        """Return the arguments that binary parameters stand for."""
        tables = (table for _, table in self._tables() if any(key in table for key in FLAGS))
        return {table["name"]: {key: table[key] for key in FLAGS if key in table} for table in tables}

    def _objective(self) -> str | None:
        objective = self.document.get("objective")
        if objective is not None:
            with self.at("objective"):
                Imported(objective, self.path.parent)
        return objective

    def _command(self, space: Space, flags: Mapping[str, Mapping[str, str]]) -> tuple[str, ...] | None:
        command = self.document.get("command")
        if command is None:
            return None
        if isinstance(command, str):
            raise self.error(f"command must be a list of strings{_split(command)}, not {quoted(command)}", "command")
        for place, argument in enumerate(command if isinstance(command, list) else ()):
            if not isinstance(argument, str):
                raise self.error(f"command must be a list of strings, not {quoted(argument)}", "command", place)
        with self.at("command"):
            made = Command(command, folder=self.path.parent, flags=flags, parts=parts_of(space))
            made.check_placeholders(space)
        return tuple(command)

    def _space(self) -> Space:
        tables = self.document.get("parameters", [])
        if isinstance(tables, dict):
            raise self.error("parameters need double brackets: one table [[parameters]] for each", "parameters")
        if not isinstance(tables, list) or not tables:
            raise self.error("parameters are missing: add a table [[parameters]] for each", "parameters")
        found: dict[str, int] = {}
        parameters = []
        for place, table in self._tables():
            parameter = self._parameter(place, table)
            if parameter.name in found:
                other = self.document["parameters"][found[parameter.name]]
                first = self.lines.get(("parameters", found[parameter.name], "names" if "names" in other else "name"))
                key = "names" if "names" in self.document["parameters"][place] else "name"
                also = "" if first is None else f" (the first is in line {first})"
                raise self.error(f"two parameters are called {parameter.name!r}{also}", "parameters", place, key)
            found[parameter.name] = place
            parameters.append(parameter)
        return self._limited(self._structured(parameters))

    def _limited(self, space: Space) -> Space:
        """Return a space with the limits in the list `outcomes`."""
        given = self.document.get("outcomes", [])
        if not isinstance(given, list):
            raise self.error(f'outcomes must be a list such as ["strength >= 30"], not {quoted(given)}', "outcomes")
        for place, text in enumerate(given):
            with self.at("outcomes", place):
                replace(space, outcomes=[text])
        with self.at("outcomes"):
            return replace(space, outcomes=given)

    def _structured(self, parameters: list[Parameter]) -> Space:
        """Return the space of parameters, with the constraints of the document."""
        constraints = self.document.get("constraints", [])
        if not isinstance(constraints, list) or not all(isinstance(text, str) for text in constraints):
            sentence = f"constraints must be a list of texts such as 'a + b <= 10', not {quoted(constraints)}"
            raise self.error(sentence, "constraints")
        try:
            return Space(parameters, constraints=constraints)
        except InvalidSpace as error:
            names = [parameter.name for parameter in parameters]
            if error.parameter in names and error.key is not None:
                place = next(place for place, table in self._tables() if table["name"] == error.parameter)
                raise self.error(str(error), "parameters", place, error.key) from None
            raise self.error(str(error), *(["constraints"] if constraints else ["parameters"])) from None

    def _parameter(self, place: int, table: dict[str, Any]) -> Parameter:
        where = ("parameters", place)
        if "type" not in table:
            raise self.error("a parameter lacks 'type'", *where)
        name, kind = table["name"], table["type"]
        if not isinstance(kind, str) or kind not in FIELDS:
            raise self.error(f"{name!r}: type must be one of {', '.join(FIELDS)}, not {quoted(kind)}", *where, "type")
        allowed = ("name", "type", *FIELDS[kind], *(FLAGS if kind == "binary" else ()), "default", *SEVERAL)
        for key in table:
            if key not in allowed and any(key in keys for keys in (*FIELDS.values(), FLAGS)):
                fits = ", ".join(allowed)
                raise self.error(f"{name!r}: type {kind!r} has no key {key!r}; its keys are {fits}", *where, key)
        self._refuse_unknown(table, allowed, *where)
        for key in allowed:
            if key in FIELDS[kind] and key not in table and key not in OPTIONAL[kind]:
                raise self.error(f"{name!r}: a parameter of type {kind!r} needs {key!r}", *where)
        for key in ("values", "choices"):
            entries = table.get(key, [])
            for entry, value in enumerate(entries if isinstance(entries, list) else ()):
                if not isinstance(value, str | int | float):
                    sentence = f"{name!r}: {key} must be strings, numbers or booleans, not {_toml_type(value)}"
                    raise self.error(sentence, *where, key, entry)
        try:
            made = parameter_from_dict({key: value for key, value in table.items() if key not in ("default", *FLAGS)})
        except InvalidSpace as error:
            at = [error.key] if error.key is not None and error.key in table else []
            raise self.error(str(error), *where, *at) from None
        for key in LISTS:
            if key in table:
                self._refuse_alike(table[key], f"{name!r}: {key}", *where, key)
        return made

    def _refuse_alike(self, entries: Sequence[Any], what: str, *keys: str | int) -> None:
        """Refuse distinct entries that a table would write alike, such as 1 and "1": it could not be read back."""
        seen: dict[str, Any] = {}
        for place, entry in enumerate(entries):
            other = seen.setdefault(written(entry), entry)
            if other is not entry:
                sentence = f"{what} have {quoted(other)} and {quoted(entry)}, which look alike in a table: rename one"
                raise self.error(sentence, *keys, place)


def _split(command: str) -> str:
    """Return a command line as a list of strings, if it can be split."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return f" such as {words!r}" if words else ""


def _toml_type(value: object) -> str:
    return "a list" if isinstance(value, list) else "a table" if isinstance(value, dict) else f"the date {value}"
