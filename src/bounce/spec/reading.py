"""Reading tables: results, past data and points to try, from CSV files that people fill in.

A note stays with its trial. A mistake is refused with its row, and then nothing is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bounce.errors import InvalidPoint, InvalidTell
from bounce.optimizer.ledger import Tell
from bounce.spaces.leaves import flat_trials, folded
from bounce.spec.cells import differs, number_hint
from bounce.spec.past import Past
from bounce.spec.rows import Rows
from bounce.text import number, written
from bounce.trial import STATES, Trial


@dataclass(frozen=True)
class Told:
    """What a table of results says."""

    outcomes: list[Tell]
    unchanged: list[int]
    """Trials that were told before, with the same result."""
    notes: dict[int, dict[str, str]] = field(default_factory=dict)
    """The notes of these that are new or have changed."""


@dataclass(frozen=True)
class Table(Rows):
    """A CSV file that is read as results of trials, as past data or as points to try."""

    # Results of trials

    def results(
        self, trials: Sequence[Trial], *, as_used: bool = False, retried: Mapping[int, Mapping[str, Any]] | None = None
    ) -> Told:
        """Read the results of pending trials.

        The columns `id` and `value` are required, and `sem` may have the standard errors of the values. A trial has
        failed if its value or its state is `failed`. A row without a value is still pending and is left out, and so is
        one that says again what is known. Settings that differ from what was asked for are refused, or taken as those
        that were really used. `retried` has what was known of trials before they were retried: a row that says it again
        is older than that.
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
            if trial.state == "pending" and trial.id in (retried or {}):
                self._refuse_old(line, trial, outcome, (retried or {})[trial.id], self._notes(cells))
            if trial.state != "pending":
                self._repeated(line, trial, outcome)
                told.unchanged.append(trial.id)
                new = {name: text for name, text in self._notes(cells).items() if trial.notes.get(name) != text}
                if new:
                    told.notes[trial.id] = new
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

    def _outcome(self, line: int, trial: Trial, cells: Mapping[str, str]) -> Tell | None:
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
            return Tell(trial.id, None, error or None)
        number_of = self._number(line, value, " or 'failed'")
        return Tell(trial.id, number_of, sem=sem, constraints=self._measured(line, trial, cells))

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
                hint = number_hint(cell)
                raise self._error(line, f"the outcome {name!r} must be a finite number, not {cell!r}{hint}")
            found[name] = value + 0.0
        return found

    def _used(self, line: int, trial: Trial, cells: Mapping[str, str], *, as_used: bool) -> dict[str, Any] | None:
        """Return the point that was really used, if it is not the one that was asked for."""
        said = {name: cell for name, cell in cells.items() if not self._is_asked(trial, name, cell)}
        used = trial.point | self._settings(line, said)
        known = [p for p in self._parameters.values() if p.name in trial.point]  # a queued point may leave some open
        differing = [p.name for p in known if differs(p, used[p.name], trial.point[p.name])]
        extra = [name for name in used if name not in trial.point]
        if extra and trial.state == "pending" and not differing:
            raise self._error(
                line, f"trial {trial.id} has no {extra[0]!r}, which is inactive with its other settings: empty the cell"
            )
        if not differing:
            return None
        if trial.state == "pending" and as_used:
            return self._switched(line, trial, {name: used[name] for name in (*differing, *extra)})
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

    def _switched(self, line: int, trial: Trial, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the point that was asked for with other settings, without what they make inactive."""
        point = folded(self.space, {**trial.point, **settings})
        kept = self.space.active_names(point) | folded(self.space, settings).keys()
        point = {name: value for name, value in point.items() if name in kept}
        self._check(line, point)
        return point

    def _is_asked(self, trial: Trial, name: str, cell: str) -> bool:
        """Return whether a cell is that of the form, which may stand for several choices, such as 1 and "1"."""
        parameter = self._parameters.get(name)
        return parameter is not None and cell == written(trial.point.get(parameter.name))

    def _refuse_old(
        self, line: int, trial: Trial, outcome: Tell, before: Mapping[str, Any], notes: Mapping[str, str]
    ) -> None:
        """Refuse a row that says of a retried trial what was said before."""
        if outcome.value is None:
            if before.get("state", "failed") == "failed" and outcome.error in (None, before.get("error")):
                raise self._error(
                    line,
                    f"trial {trial.id} was retried after this failure: leave its value empty until there is a result. "
                    "If it failed again, write another reason in the column error",
                )
        elif outcome.value == before.get("value") and notes.items() <= trial.notes.items():
            raise self._error(
                line,
                f"trial {trial.id} was retried after this value: leave it empty until there is a new one. If the new "
                "value is the same, say so in a column of notes",
            )

    def _repeated(self, line: int, trial: Trial, outcome: Tell) -> None:
        """Refuse a row that says of a finished trial what is not known of it."""
        another_error = outcome.sem not in (None, trial.sem)
        if trial.state in ("queued", "withdrawn") or (
            trial.state == "outside" and (outcome.value != trial.value or another_error)
        ):
            hints = {
                "queued": ": bounce ask gives it out first",
                "outside": ": bounce add takes results like this one",
                "withdrawn": ": empty its value, or add its result with bounce add",
            }
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
                known, what = f"without {name}", "add"
                if name in trial.outcomes:
                    known, what = f"with {name} = {written(trial.outcomes[name])}", "correct"
                raise self._error(
                    line,
                    f"trial {trial.id} is already {trial.state} {known}. "
                    f"To {what} it: bounce correct STUDY {trial.id} --outcome {name}={written(measured)}",
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
                self._check(line, point)
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
            past.rows.append(f"row {line}")
        if not past.points and not past.skipped:
            raise self._error(None, "the table has no rows below the header")
        return past

    def _past_value(self, line: int, cell: str) -> float:
        if cell.lower() in ("", "failed"):
            raise self._error(line, "the row has no value: only results can be added, not failed or open experiments")
        return self._number(line, cell)

    def _check(self, line: int, point: Mapping[str, Any]) -> None:
        """Refuse a point that lacks a value, or that the space does not have."""
        active = self.space.active_names(point)
        missing = [p.name for p in self.space.parameters if p.name in active and p.name not in point]
        if missing:
            raise self._error(line, f"the row has no value for {', '.join(map(repr, missing))}")
        try:
            self.space.encode([point])
        except InvalidPoint as error:
            raise self._error(line, str(error)) from None

    def points(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        """Read points to try and their notes: a column per parameter, empty where the choice is open."""
        found = []
        for line, cells in self._rows(()):
            if cells.get("value", "").strip():
                raise self._error(line, "a point to try has no value yet: bounce add takes results")
            settings = self._settings(line, cells)
            self._refuse_half_a_subset(line, settings)
            point = folded(self.space, settings)
            try:
                _, known, free = self.space.partial(point)
                if not free:
                    self.space.encode([known])
            except InvalidPoint as error:
                raise self._error(line, str(error)) from None
            found.append((point, self._notes(cells)))
        if not found:
            raise self._error(None, "the table has no rows below the header")
        return [point for point, _ in found], [notes for _, notes in found]

    def _refuse_half_a_subset(self, line: int, settings: Mapping[str, Any]) -> None:
        """Refuse a point to try with only some members of a subset: the others may be open, or left out."""
        for parameter in self.space.parameters:
            if parameter.type != "subset":
                continue
            cells = [f"{parameter.name}.{member}" for member in parameter.members]
            empty = [name for name in cells if name not in settings]
            if 0 < len(empty) < len(cells):
                raise self._error(
                    line,
                    f"{parameter.name!r} has cells for some members, but none for {', '.join(map(repr, empty))}: "
                    "write true or false for all of them, or leave all empty",
                )

    def _number(self, line: int, cell: str, otherwise: str = "") -> float:
        found = number(cell)
        if found is not None and math.isfinite(found):
            return found + 0.0  # a negative zero becomes zero
        hint = number_hint(cell)
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
            f"not {cell!r}{number_hint(cell)}. If it is something else, give it another name",
        )
