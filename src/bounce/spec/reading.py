"""Reading tables: results, past data and points to try, from CSV files that people fill in.

Column names of facts are read in any case. A column that is neither a fact nor a parameter is a note, and stays with
its trial. A mistake is refused with its row, and then nothing is read.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bounce.errors import InvalidPoint, InvalidTell
from bounce.optimizer.ledger import Outcome
from bounce.spaces.kinds import Parameter
from bounce.spaces.leaves import flat_trials, folded, leaves
from bounce.spaces.space import Space
from bounce.text import number, written
from bounce.trial import FACTS, STATES, Trial, column

ROUNDED = 5.1e-6  # relative: numbers that agree in the six digits that spreadsheets and tables show
CLOSE = 1e-4  # as a share of the range: in a narrow range, six digits tell settings apart
TRUE, FALSE = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")


@dataclass(frozen=True)
class Told:
    """What a table of results says."""

    outcomes: list[Outcome]
    unchanged: list[int]
    """Trials that were told before, with the same result."""


@dataclass(frozen=True)
class Past:
    """Results that nobody asked for."""

    points: list[dict[str, Any]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    sems: list[float | None] = field(default_factory=list)
    """Their standard errors, None where they are unknown."""
    constraints: list[dict[str, float]] = field(default_factory=list)
    """What was measured beside their values, by name."""
    notes: list[dict[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """What was wrong with the rows that were left out."""


@dataclass(frozen=True)
class Table:
    """A CSV file that is being read, for one space."""

    source: Path | str | bytes
    space: Space
    name: str = "the table"

    def _error(self, row: int | None, sentence: str) -> InvalidTell:
        name = str(self.source) if isinstance(self.source, Path) else self.name
        return InvalidTell(f"{name}{'' if row is None else f', row {row}'}: {sentence}")

    @cached_property
    def _parameters(self) -> dict[str, Parameter]:
        return {column(parameter.name): parameter for parameter in leaves(self.space)}

    @cached_property
    def _outcomes(self) -> list[str]:
        return [limit.name for limit in self.space.limits]

    @cached_property
    def _choices(self) -> dict[str, dict[str, Any]]:
        """By column, the choices by what is written for them; the first of those that are written alike."""
        return {
            name: {written(value): value for value in reversed(_choices(parameter))}
            for name, parameter in self._parameters.items()
        }

    def _text(self) -> str:
        """Return the text, without the byte-order mark that spreadsheets write."""
        content = self.source
        if isinstance(content, Path):
            try:
                content = content.read_bytes()
            except (OSError, ValueError) as error:
                said = getattr(error, "strerror", None) or error
                raise self._error(None, f"the file cannot be read: {said}") from None
        if isinstance(content, str):
            return content.removeprefix("\ufeff")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            row = content.count(b"\n", 0, error.start) + 1
            raise self._error(row, "the table must be UTF-8; save it as 'CSV UTF-8'") from None

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not empty, each with its first line."""
        reader = csv.reader(io.StringIO(self._text(), newline=""), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._error(line, f"this is not valid CSV: {error}") from None
            if any(cell.strip() for cell in row):
                yield line, row

    def _rows(self, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield each row with its cells by column; refuse a header without a column that is needed.

        Spaces around a cell do not count, except in the columns of parameters, whose choices may have them.
        """
        lines = self._lines()
        first, given = next(lines, (None, []))
        if first is None:
            raise self._error(
                None, f"the table is empty; it needs the columns {' and '.join(needed or self._parameters)}"
            )
        header = [self._column(name) for name in given]
        for name in header:
            if name and header.count(name) > 1:
                raise self._error(first, f"the column {name!r} appears twice")
        self._check_names(first, header, needed)
        for line, row in lines:
            row = row if any(cell.strip() for cell in row[len(header) :]) else row[: len(header)]
            if len(row) != len(header):
                hint = "; numbers need a decimal point, not a comma" if len(row) > len(header) else ""
                raise self._error(line, f"the row has {len(row)} fields, but the header has {len(header)}{hint}")
            cells = {name: cell for name, cell in zip(header, row, strict=True) if name}
            yield line, {name: cell if name in self._parameters else cell.strip() for name, cell in cells.items()}

    def _column(self, given: str) -> str:
        """Return the name of a column: that of a parameter exactly, that of a fact in any case."""
        name = given if given in self._parameters else given.strip()
        return name.lower() if name.lower() in ("id", *FACTS) and name not in self._parameters else name

    def _check_names(self, first: int, header: Sequence[str], needed: Sequence[str]) -> None:
        """Refuse a header without a column that is needed, or with a column that is almost a parameter."""
        for name in self._parameters:
            near = [given for given in header if name not in header and _begins(given, name)]
            if near:
                raise self._error(first, f"the column {near[0]!r} must be called {name!r}, the name of the parameter")
        missing = [f"the column {name!r} is missing" for name in needed if name not in header]
        if needed and not missing:
            missing = [f"the column {name!r} of an outcome is missing" for name in self._outcomes if name not in header]
        if not needed and not any(name in header for name in self._parameters):
            missing = [f"no column is a parameter ({', '.join(self._parameters)})"]
        if missing:
            for separator, said in ((";", "semicolons"), ("\t", "tabs")):
                if any(separator in cell for cell in header):
                    raise self._error(first, f"the columns are separated by {said}: save the table with commas")
            raise self._error(first, f"{missing[0]}; the columns are {', '.join(filter(None, header))}")

    def _notes(self, cells: Mapping[str, str]) -> dict[str, str]:
        known = ("id", *FACTS, *(["feasible", *self._outcomes] if self._outcomes else []))
        return {
            name: cell for name, cell in cells.items() if cell and name not in known and name not in self._parameters
        }

    def _settings(self, line: int, cells: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the parameters in a row; an empty cell has none."""
        point = {}
        for name, parameter in self._parameters.items():
            cell = cells.get(name, "")
            if name in cells and cell in self._choices[name]:  # as an empty one may be
                point[parameter.name] = self._choices[name][cell]
            elif cell.strip():
                try:
                    point[parameter.name] = parsed(parameter, cell.strip())
                except InvalidPoint as error:
                    raise self._error(line, str(error)) from None
        return point

    # Results of trials

    def results(
        self, trials: Sequence[Trial], *, as_used: bool = False, retried: Mapping[int, str | None] | None = None
    ) -> Told:
        """Read the results of pending trials.

        The columns `id` and `value` are required, and `sem` may have the standard errors of the values. A trial has
        failed if its value or its state is `failed`. A row without a value is still pending and is left out, and so is
        one that says again what is known. Settings that differ from what was asked for are refused, or taken as those
        that were really used. `retried` has the reason of each failure after which a trial was retried: a row that says
        it again is older than that.
        """
        by_id = {trial.id: trial for trial in flat_trials(self.space, trials)}
        told, seen = Told([], []), dict[int, int]()
        for line, cells in self._rows(("id", "value")):
            trial = self._trial(line, cells["id"], by_id)
            if trial.id in seen:
                raise self._error(line, f"trial {trial.id} is already in row {seen[trial.id]}")
            seen[trial.id] = line
            outcome = self._outcome(line, trial, cells)
            if outcome is None:
                continue
            used = None if trial.state == "outside" else self._used(line, trial, cells, as_used=as_used)
            if trial.state == "pending" and outcome.value is None and trial.id in (retried or {}):
                self._refuse_old_failure(line, trial, outcome, (retried or {})[trial.id])
            if trial.state != "pending":
                self._repeated(line, trial, outcome)
                told.unchanged.append(trial.id)
                continue
            told.outcomes.append(replace(outcome, point=used, notes=self._notes(cells)))
        if not told.outcomes and not told.unchanged:
            what = "no row has a value yet" if seen else "the table has no rows below the header"
            raise self._error(None, f"{what}; write a number or 'failed' in the column value")
        return told

    def _trial(self, line: int, cell: str, trials: Mapping[int, Trial]) -> Trial:
        if not re.fullmatch(r"\d{1,18}", cell, re.ASCII):
            raise self._error(line, f"an id must be the number of a trial, not {cell!r}")
        if int(cell) not in trials:
            raise self._error(line, f"trial {cell} does not exist")
        return trials[int(cell)]

    def _outcome(self, line: int, trial: Trial, cells: Mapping[str, str]) -> Outcome | None:
        """Return the result in a row; None if the trial is still pending."""
        value, given, error = cells["value"], cells.get("state", ""), cells.get("error", "")
        state = given.lower()
        if state not in ("", *STATES):
            raise self._error(line, f"a state must be one of {', '.join(STATES)}, not {given!r}")
        failed = value.lower() == "failed" or (state == "failed" and not value)
        if not value and not failed:
            if state == "done":
                raise self._error(line, f"trial {trial.id} is done, so it must have a value")
            if error:
                raise self._error(
                    line, f"trial {trial.id} has an error but no value; if it failed, write 'failed' as its value"
                )
            return None
        if state == ("done" if failed else "failed"):
            raise self._error(line, f"trial {trial.id} cannot be {state} with the value {value!r}")
        sem = self._error_of(line, cells)
        if failed:
            if sem is not None:
                raise self._error(line, f"trial {trial.id} failed, so it cannot have a standard error: empty its sem")
            return Outcome(trial.id, None, error or None)
        number_of = self._number(line, value, " or 'failed'")
        return Outcome(trial.id, number_of, sem=sem, constraints=self._measured(line, trial, cells))

    def _measured(self, line: int, trial: Trial | None, cells: Mapping[str, str]) -> dict[str, float]:
        """Return the outcomes in a row with a value; refuse an empty cell, unless the trial never had that outcome."""
        found = {}
        old = trial is not None and trial.state != "pending"
        for name in self._outcomes:
            cell = cells[name]
            if not cell and old and trial is not None and name not in trial.outcomes:
                continue
            value = number(cell)
            if value is None or not math.isfinite(value):
                hint = _decimal_point(cell)
                raise self._error(line, f"the outcome {name!r} must be a finite number, not {cell!r}{hint}")
            found[name] = value + 0.0
        return found

    def _used(self, line: int, trial: Trial, cells: Mapping[str, str], *, as_used: bool) -> dict[str, Any] | None:
        """Return the point that was really used, if it is not the one that was asked for."""
        said = {name: cell for name, cell in cells.items() if not self._is_asked(trial, name, cell)}
        used = trial.point | self._settings(line, said)
        known = [p for p in self._parameters.values() if p.name in trial.point]  # a queued point may leave some open
        differing = [p.name for p in known if _differs(p, used[p.name], trial.point[p.name])]
        extra = [name for name in used if name not in trial.point]
        if extra and trial.state == "pending" and not differing:
            raise self._error(
                line, f"trial {trial.id} has no {extra[0]!r}, which is inactive with its other settings: empty the cell"
            )
        if not differing:
            return None
        if trial.state == "pending" and as_used:
            return folded(self.space, trial.point | {name: used[name] for name in differing})
        both = ", ".join(f"{n} is {written(used[n])}, not {written(trial.point[n])}" for n in differing)
        raise self._error(
            line,
            f"trial {trial.id} has other settings here: {both}. "
            + (
                "If these were really used, add --as-used"
                if trial.state == "pending"
                else f"To correct it: bounce correct STUDY {trial.id} --set NAME=VALUE"
            ),
        )

    def _is_asked(self, trial: Trial, name: str, cell: str) -> bool:
        """Return whether a cell is that of the form, which may stand for several choices, such as 1 and "1"."""
        parameter = self._parameters.get(name)
        return parameter is not None and cell == written(trial.point.get(parameter.name))

    def _refuse_old_failure(self, line: int, trial: Trial, outcome: Outcome, before: str | None) -> None:
        """Refuse a row that says of a retried trial what was said before."""
        if outcome.error in (None, before):
            raise self._error(
                line,
                f"trial {trial.id} was retried after this failure: leave its value empty until there is a result. "
                "If it failed again, write another reason in the column error",
            )

    def _repeated(self, line: int, trial: Trial, outcome: Outcome) -> None:
        """Refuse a row that says of a finished trial what is not known of it."""
        another_error = outcome.sem not in (None, trial.sem)
        if trial.state in ("queued", "withdrawn") or (
            trial.state == "outside" and (outcome.value != trial.value or another_error)
        ):
            hints = {"queued": ": bounce ask gives it out first", "outside": ": bounce add takes results like this one"}
            hint = hints.get(trial.state, "")
            raise self._error(line, f"trial {trial.id} is {trial.state} and cannot be told{hint}")
        if outcome.value != trial.value:
            sentence = f"failed. To give it a value: bounce retry STUDY {trial.id}, then tell it"
            if trial.value is not None:
                known = f"{trial.state} with the value {written(trial.value)}"
                sentence = f"{known}. To correct it: bounce correct STUDY {trial.id} VALUE"
            raise self._error(line, f"trial {trial.id} is already {sentence}")
        for name, measured in (outcome.constraints or {}).items():
            if trial.outcomes.get(name) != measured:
                known = written(trial.outcomes.get(name))
                raise self._error(
                    line,
                    f"trial {trial.id} is already {trial.state} with {name} = {known}. "
                    f"To correct it: bounce correct STUDY {trial.id} --outcome {name}={written(measured)}",
                )
        if another_error:
            known = "no standard error" if trial.sem is None else f"the standard error {written(trial.sem)}"
            raise self._error(
                line,
                f"trial {trial.id} is already {trial.state} with {known}. "
                f"To correct it: bounce correct STUDY {trial.id} --sem {written(outcome.sem)}",
            )

    # Points

    def past(self, *, skip_invalid: bool = False) -> Past:
        """Read results that nobody asked for: a column per parameter, one for the value and perhaps one for `sem`."""
        past = Past()
        for line, cells in self._rows((*self._parameters, "value")):
            try:
                point = folded(self.space, self._settings(line, cells))
                self._complete(line, point)
                value = self._past_value(line, cells["value"])
                sem = self._error_of(line, cells)
                measured = self._measured(line, None, cells)
            except InvalidTell as error:
                if not skip_invalid:
                    raise
                past.skipped.append(str(error))
                continue
            past.points.append(point)
            past.values.append(value)
            past.sems.append(sem)
            past.constraints.append(measured)
            past.notes.append(self._notes(cells))
        if not past.points and not past.skipped:
            raise self._error(None, "the table has no rows below the header")
        return past

    def _past_value(self, line: int, cell: str) -> float:
        if cell.lower() in ("", "failed"):
            raise self._error(line, "the row has no value: only results can be added, not failed or open experiments")
        return self._number(line, cell)

    def _complete(self, line: int, point: Mapping[str, Any]) -> None:
        active = self.space.active_names(point)
        missing = [p.name for p in self.space.parameters if p.name in active and p.name not in point]
        if missing:
            raise self._error(line, f"the row has no value for {', '.join(map(repr, missing))}")

    def points(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        """Read points to try and their notes: a column per parameter, empty where the choice is open."""
        found = []
        for line, cells in self._rows(()):
            if cells.get("value", "").strip():
                raise self._error(line, "a point to try has no value yet: bounce add takes results")
            found.append((folded(self.space, self._settings(line, cells)), self._notes(cells)))
        if not found:
            raise self._error(None, "the table has no rows below the header")
        return [point for point, _ in found], [notes for _, notes in found]

    def _number(self, line: int, cell: str, otherwise: str = "") -> float:
        found = number(cell)
        if found is not None and math.isfinite(found):
            return found + 0.0  # a negative zero becomes zero
        hint = _decimal_point(cell)
        raise self._error(line, f"a value must be a finite number{otherwise}, not {cell!r}{hint}")

    def _error_of(self, line: int, cells: Mapping[str, str]) -> float | None:
        """Return the standard error in a row; None if its cell is empty, or there is no such column."""
        cell = cells.get("sem", "")
        if not cell:
            return None
        found = number(cell)
        if found is not None and 0 <= found < math.inf:
            return found + 0.0
        raise self._error(
            line,
            "the column sem has the standard errors of the values, finite numbers that are not negative, "
            f"not {cell!r}{_decimal_point(cell)}. If it is something else, give it another name",
        )


def parsed(parameter: Parameter, cell: str) -> Any:
    """Return the native value that a text stands for; refuse one that the parameter does not take."""
    if parameter.type == "binary":
        if cell.lower() in TRUE + FALSE:
            return cell.lower() in TRUE
        raise InvalidPoint(f"{parameter.name!r} must be true or false, not {cell!r}", parameter=parameter.name)
    if parameter.type in ("permutation", "subset", "mixture"):
        try:
            value = json.loads(cell)
        except ValueError:
            value = cell
        return parameter.decode(parameter.encode(value))
    if parameter.type in ("real", "integer"):
        found = number(cell)
        if found is None:
            raise InvalidPoint(
                f"{parameter.name!r} must be a number, not {cell!r}{_decimal_point(cell)}", parameter=parameter.name
            )
        found = int(found) if parameter.type == "integer" and found.is_integer() else found
        code = parameter.encode(found)
        if getattr(parameter, "steps", None) is not None:
            return parameter.decode(code)
        return int(found) if parameter.type == "integer" else found
    values = _choices(parameter)
    for value in values:
        if written(value) == cell:
            return value
    found = number(cell)
    for value in values:
        if found is not None and isinstance(value, int | float) and not isinstance(value, bool) and value == found:
            return value
    choices = ", ".join(written(value) for value in values)
    raise InvalidPoint(f"{parameter.name!r} must be one of {choices}, not {cell!r}", parameter=parameter.name)


def _differs(parameter: Parameter, used: Any, asked: Any) -> bool:
    """Return whether a setting is not the one that was asked for; spreadsheets round numbers when they save them."""
    if parameter.type == "permutation":
        return bool(used != asked)
    moved = abs(parameter.encode(used) - parameter.encode(asked))
    if parameter.type == "real":
        return moved > (CLOSE if abs(used - asked) <= ROUNDED * abs(asked) else 0)
    return moved > 0


def _decimal_point(cell: str) -> str:
    """Return a hint about a number with a decimal comma."""
    point = cell.replace(",", ".", 1)
    return "" if "," not in cell or number(point) is None else f": write a decimal point, {point}"


def _begins(given: str, name: str) -> bool:
    """Return whether a column is named like a parameter, in another case or with a unit behind it."""
    rest = given.casefold().removeprefix(name.casefold())
    return len(rest) < len(given) and re.fullmatch(r"\s*([\[(/].*)?", rest) is not None


def _choices(parameter: Parameter) -> list[Any]:
    """Return the values of an ordinal or categorical parameter; none of any other."""
    listed = parameter.type in ("ordinal", "categorical")
    return [parameter.decode(code) for code in parameter.all_codes()] if listed else []
