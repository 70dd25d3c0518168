"""The ledger: all trials of a run, and the rules by which they change.

A trial is queued or pending, then done or failed; a finished one may be retried, and any may be withdrawn. Added trials
are results that nobody asked for. Every tell has a number; a correction is told again.

The invariant: ids are places in the list, no trial is ever removed, and `keys` holds exactly the points that must not
be proposed.

Shapes: codes (D,) of one point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, cast

import numpy as np

from bounce.errors import InvalidState, InvalidTell
from bounce.optimizer.completion import start_of
from bounce.optimizer.documents import records_from_dicts
from bounce.optimizer.relocation import relocated
from bounce.optimizer.state import Record, spent
from bounce.spaces.change import Change
from bounce.spaces.kinds import Codes
from bounce.spaces.outcomes import feasible, measured
from bounce.spaces.space import Space
from bounce.subspace.stages import Stage
from bounce.text import storable, told
from bounce.trial import State, Trial, finite, is_single, standard_error, standard_errors

Trials = Trial | int | Sequence[Trial | int]
"""One trial or its id, or several of them."""

UNKNOWN = "unknown"  # a standard error that is taken back by a correction


@dataclass(frozen=True)
class Tell:
    """What became of a pending trial, as the user tells it."""

    id: int
    value: Any
    """Its value; None if it failed."""
    error: str | None = None
    point: Mapping[str, Any] | None = None
    """The point that was really used, if it is not the one that was asked for."""
    seconds: float | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    sem: float | None = None
    """The standard error of its value: 0 for an exact value, None if it is unknown."""
    constraints: Mapping[str, Any] | None = field(default_factory=dict)
    """What was measured beside the value, by name."""


class Ledger:
    """The trials of a run."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.records: list[Record] = []
        self.tells = 0
        self.keys: set[bytes] = set()
        self.touched: set[int] = set()
        """The trials that changed since somebody last saved them."""

    @classmethod
    def restored(cls, space: Space, trials: Sequence[Mapping[str, Any]], tells: int) -> Ledger:
        """Build the ledger from the documents of its trials."""
        ledger = cls(space)
        ledger.records = records_from_dicts(space, trials)
        told = [record.told for record in ledger.records if record.told is not None]
        whole = isinstance(tells, int) and not isinstance(tells, bool)
        if not whole or len(set(told)) != len(told) or not max(told, default=-1) < tells:
            raise InvalidState(f"the state has {tells!r} tells, which does not fit its trials")
        ledger.tells = tells
        ledger.keys = ledger._known_keys()
        return ledger

    def copy(self) -> Ledger:
        """Return a ledger of the same trials that changes on its own."""
        other = Ledger(self.space)
        other.records, other.tells = list(self.records), self.tells
        other.keys, other.touched = set(self.keys), set(self.touched)
        return other

    def __len__(self) -> int:
        return len(self.records)

    def of_state(self, *states: State) -> list[Record]:
        """Return the trials in some states, by id."""
        return [record for record in self.records if record.trial.state in states]

    @property
    def spent(self) -> int:
        """How much of the budget has been spent."""
        return spent(self.records)

    @property
    def failures_in_a_row(self) -> int:
        """How many of the latest tells are failures with the same error."""
        told = sorted((r for r in self.records if r.told is not None), key=lambda r: -(r.told or 0))
        last = told[0].trial if told else None
        alike = takewhile(lambda r: r.trial.state == "failed" and last and r.trial.error == last.error, told)
        return sum(1 for _ in alike)

    def remaining(self, budget: int) -> int:
        """Return how many trials may still be asked for."""
        unseen = self.space.size - len(self.keys) + sum(not record.free for record in self.of_state("queued"))
        return int(min(budget - self.spent, unseen))

    def ids(self, trials: Trials, *states: State) -> list[int]:
        """Return the ids of trials in some states; refuse any other."""
        ids: list[int] = []
        for trial in cast(Sequence[Trial | int], [trials] if is_single(trials) else trials):
            try:
                i = operator.index(trial.id if isinstance(trial, Trial) else trial)
            except TypeError:
                raise InvalidTell(f"a trial or its id is needed, not {trial!r}") from None
            record = self[trial if isinstance(trial, bool) else i].trial
            if isinstance(trial, Trial) and not self._belongs(trial):
                raise InvalidTell(f"trial {i} has another point here: it belongs to another run", trial=i)
            if record.state not in states:
                already = "already " if states == ("pending",) and record.state in ("done", "failed") else ""
                needed = "" if already else f", not {one_of(states)}"
                hint = "; correct changes its value" if already and record.state == "done" else ""
                raise InvalidTell(f"trial {i} is {already}{record.state}{needed}{hint}", trial=i)
            if i in ids:
                raise InvalidTell(f"trial {i} is named twice", trial=i)
            ids.append(i)
        return ids

    def id(self, trial: Trial | int, *states: State) -> int:
        """Return the id of one trial in some state; refuse several."""
        if not is_single(trial):
            raise InvalidTell(f"one trial is needed, or its id, not {trial!r}")
        return self.ids(trial, *states)[0]

    def _belongs(self, trial: Trial) -> bool:
        """Return whether a trial is of this run; its point may be from before a correction or a change of the space."""
        record = self[trial.id]
        points = [record.trial.point]
        if record.asked_codes is not None:
            points += self.space.decode(record.asked_codes[None])
        shared = trial.point.keys() & record.trial.point.keys()
        if not shared:  # an enqueued point that left everything open
            return bool(record.enqueued and not trial.point)
        return any(all(_equal(trial.point[name], point[name]) for name in shared) for point in points)

    def __getitem__(self, i: int) -> Record:
        """Return the record of a trial; refuse an id that does not exist."""
        whole = not isinstance(i, bool) and hasattr(i, "__index__")
        if not whole or not 0 <= operator.index(i) < len(self.records):
            n = len(self.records)
            known = "no trial has been asked for yet" if not n else f"the ids are 0 to {n - 1}"
            raise InvalidTell(f"there is no trial {i!r}: {known}", trial=operator.index(i) if whole else None)
        return self.records[i]

    def append(self, records: Iterable[Record]) -> list[int]:
        """Add trials at the end, and return their ids."""
        new = list(records)
        self.records += new
        self.touched.update(record.id for record in new)
        self.keys |= self._keys(new)
        return [record.id for record in new]

    def add(
        self,
        codes: Codes,
        values: Sequence[Any],
        stage: Stage,
        notes: Sequence[Mapping[str, str]] | None = None,
        *,
        sems: Any = None,
        constraints: Sequence[Any] | None = None,
    ) -> list[int]:
        """Take results that nobody asked for; all are taken or none. Return their ids."""
        outcomes = [self._measured(given) for given in several(constraints, len(codes))]
        numbers, errors = [finite(value) for value in values], standard_errors(sems, len(codes))
        texts = checked_notes(notes, len(codes))
        first, tells, points = len(self), self.tells, self.space.decode(codes)
        self.tells += len(numbers)
        return self.append(
            Record(
                Trial(
                    first + i,
                    points[i],
                    number,
                    "added",
                    sem=errors[i],
                    outcomes=outcomes[i],
                    feasible=feasible(self.space.limits, outcomes[i]),
                    stage=stage.number,
                    restart=stage.restart,
                    notes=texts[i],
                ),
                codes[i],
                batch=first + i,
                told=tells + i,
            )
            for i, number in enumerate(numbers)
        )

    def enqueue(
        self, points: Sequence[Mapping[str, Any]], stage: Stage, notes: Sequence[Mapping[str, str]] | None = None
    ) -> list[int]:
        """Have points asked for before any other; return their ids. What they leave out stays open until then."""
        texts, first = checked_notes(notes, len(points)), len(self)
        codes, natives, free = list[Codes](), list[dict[str, Any]](), list[tuple[str, ...]]()
        for i, point in enumerate(points):
            row, known, open_ = start_of(self.space, i, point)
            parameters = {p.name: p for p in self.space.parameters}
            natives.append({name: parameters[name].decode(parameters[name].encode(x)) for name, x in known.items()})
            codes.append(row)
            free.append(open_)
        return self.append(
            Record(
                Trial(
                    first + i,
                    native,
                    state="queued",
                    stage=stage.number,
                    restart=stage.restart,
                    notes=texts[i],
                ),
                codes[i],
                batch=first + i,
                enqueued=True,
                free=free[i],
            )
            for i, native in enumerate(natives)
        )

    def complete(self, i: int, codes: Codes) -> None:
        """Fill in what an enqueued point left open."""
        self._put(i, codes=codes, free=())
        self.edit(i, point=self.space.decode(codes[None])[0])
        self.keys |= self._keys([self.records[i]])

    def edit(self, i: int, **changes: Any) -> None:
        """Change fields of a trial."""
        self._put(i, trial=replace(self.records[i].trial, **changes))

    def _put(self, i: int, **changes: Any) -> None:
        self.records[i] = replace(self.records[i], **changes)
        self.touched.add(i)

    def _told(self, i: int) -> None:
        self._put(i, told=self.tells)
        self.tells += 1

    def checked(self, outcomes: Iterable[Tell]) -> list[tuple[Tell, Codes | None]]:
        """Return outcomes of pending trials in which everything is right, with the codes of the points really used."""
        given = list(outcomes)
        ids = self.ids([outcome.id for outcome in given], "pending")
        return [
            (
                replace(
                    outcome,
                    id=i,
                    value=None if outcome.value is None else finite(outcome.value),
                    sem=_error_of(outcome),
                    constraints=self._outcomes_of(outcome),
                    seconds=_seconds(outcome.seconds),
                    notes=checked_notes([outcome.notes], 1)[0],
                ),
                None if outcome.point is None else self.space.encode([outcome.point])[0],
            )
            for i, outcome in zip(ids, given, strict=True)
        ]

    def finish(self, outcome: Tell, used: Codes | None) -> int:
        """Take one outcome that was checked; return its id."""
        i = outcome.id
        if used is not None:
            self._use(i, used)
        notes = self.records[i].trial.notes | dict(outcome.notes)
        state: State = "failed" if outcome.value is None else "done"
        error = None if outcome.error is None else told(outcome.error)
        known = {"value": outcome.value, "sem": outcome.sem, "seconds_eval": outcome.seconds, "notes": notes}
        outcomes = dict(outcome.constraints or {})
        known |= {"outcomes": outcomes, "feasible": feasible(self.space.limits, outcomes)}
        self.edit(i, state=state, error=error, **known)
        self._told(i)
        return i

    def _use(self, i: int, codes: Codes) -> None:
        """Replace the point of a trial by the one that was really used."""
        record = self.records[i]
        if np.array_equal(codes, record.codes):
            return
        asked = record.codes if record.asked_codes is None else record.asked_codes
        self._put(i, codes=codes, asked_codes=asked)
        self.edit(i, point=self.space.decode(codes[None])[0])
        self.keys = self._known_keys()  # the point that was not used may be proposed again

    def _measured(self, given: Any, *, partial: bool = False) -> dict[str, float]:
        """Return the outcomes of an evaluation that has a value."""
        return measured(self.space.limits, given, partial=partial)

    def _outcomes_of(self, outcome: Tell) -> dict[str, float]:
        """Return what was measured beside a value; refuse outcomes of a failure."""
        if outcome.value is None and outcome.constraints:
            raise InvalidTell(f"trial {outcome.id} failed, so it cannot have outcomes", trial=outcome.id)
        return {} if outcome.value is None else self._measured(outcome.constraints)

    def correct(
        self,
        trial: Trial | int,
        value: Any,
        point: Mapping[str, Any] | None,
        sem: Any = None,
        constraints: Mapping[str, Any] | None = None,
    ) -> int:
        """Replace the value, its standard error, outcomes or the point of a trial that has a value; return its id."""
        i = self.id(trial, "done", "added")
        if value is None and point is None and sem is None and constraints is None:
            raise InvalidTell(f"trial {i}: give the right value, standard error, outcomes or point", trial=i)
        right = self._measured(constraints, partial=True)
        outcomes = self.records[i].trial.outcomes | right
        number = self.records[i].value if value is None else finite(value)
        error = self.records[i].trial.sem if sem is None else _corrected_error(sem)
        if point is not None:
            self._use(i, self.space.encode([point])[0])
        self.edit(i, value=number, sem=error, outcomes=outcomes, feasible=feasible(self.space.limits, outcomes))
        self._told(i)
        return i

    def retry(self, trials: Trials) -> list[int]:
        """Make finished trials pending again, without their results; return their ids."""
        ids = self.ids(trials, "failed", "done")
        for i in ids:
            self._forget(i)
            self.edit(i, state="pending", attempts=0)
        self.keys = self._known_keys()
        return ids

    def withdraw(self, trials: Trials) -> list[int]:
        """Give trials back, without their results; return their ids."""
        ids = self.ids(trials, "pending", "queued", "done", "failed", "added")
        for i in ids:
            self._forget(i)
            self.edit(i, state="withdrawn")
        self.keys = self._known_keys()
        return ids

    def _forget(self, i: int) -> None:
        """Take the result of a trial back: its point is the one that was asked for, if another one was used."""
        asked = self.records[i].asked_codes
        if asked is not None:
            self._put(i, codes=asked, asked_codes=None)
            self.edit(i, point=self.space.decode(asked[None])[0])
        self._put(i, told=None)
        self.edit(i, value=None, sem=None, outcomes={}, feasible=None, error=None, seconds_eval=None)

    def moved(self, change: Change) -> Ledger:
        """Return the same trials in another space: what no longer fits stays, outside of it.

        Pending and queued trials that no longer fit cost nothing. A result that was left outside by an earlier change
        returns if it fits again.
        """
        ledger = Ledger(change.new)
        ledger.tells = self.tells
        for record in self.records:
            other = relocated(record, change)
            ledger.records.append(other)
            if record.was is not None and other.was is None:
                ledger._told(record.id)
        ledger.keys = ledger._known_keys()
        ledger.touched = set(range(len(ledger)))
        return ledger

    def complete_batch(self, i: int) -> list[Record]:
        """Return the batch of a trial if none of it is pending; otherwise nothing."""
        first = self.records[i].batch
        batch = []
        for member in self.records[first:]:
            if member.batch != first:
                break
            batch.append(member)
        return [] if any(member.trial.state == "pending" for member in batch) else batch

    def count(self, records: Iterable[Record]) -> None:
        """Note that trials have moved the region, which they do once."""
        for record in records:
            self._put(record.id, counted=True)

    def _known_keys(self) -> set[bytes]:
        return self._keys(self.records)

    def _keys(self, records: Iterable[Record]) -> set[bytes]:
        codes = [record.codes for record in records if record.known]
        return set(self.space.keys(np.array(codes))) if codes else set()


def one_of(words: Sequence[str]) -> str:
    """Return words as alternatives: "a", "a or b", "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def several(constraints: Any, n: int) -> list[Any]:
    """Return the measured outcomes of n trials, one dict for each, or None for each if none were given."""
    if constraints is None:
        return [None] * n
    ordered = isinstance(constraints, Sequence) and not isinstance(constraints, str | bytes)
    if not ordered or len(constraints) != n:
        raise InvalidTell(f"constraints must be a list of {n} dicts of measured numbers, not {constraints!r}")
    return list(constraints)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two settings are equal; a change of the space may have rounded a real one again."""
    reals = isinstance(one, float) and isinstance(other, float)
    return one == other or (reals and math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-300))


def _error_of(outcome: Tell) -> float | None:
    """Return the standard error of an outcome; refuse one of a failure."""
    if outcome.value is None and outcome.sem is not None:
        raise InvalidTell(f"trial {outcome.id} failed, so it cannot have a standard error", trial=outcome.id)
    return standard_error(outcome.sem)


def _corrected_error(sem: Any) -> float | None:
    return None if isinstance(sem, str) and sem == UNKNOWN else standard_error(sem)


def checked_notes(notes: Any, n: int) -> list[dict[str, str]]:
    """Return the notes of n trials as texts by name; refuse what is not a list of n tables."""
    if notes is None:
        return [{} for _ in range(n)]
    ordered = isinstance(notes, Sequence) and not isinstance(notes, str | bytes)
    if not ordered or len(notes) != n or not all(isinstance(note, Mapping) for note in notes):
        raise InvalidTell(f"notes must be a list of {n} dicts of texts by name, not {notes!r}")
    return [{storable(name): storable(text) for name, text in note.items()} for note in notes]


def _seconds(seconds: float | None) -> float | None:
    """Return the time of an evaluation; refuse one that is not a finite number."""
    try:
        number = None if seconds is None else finite(seconds)
    except InvalidTell:
        number = -1.0
    if number is not None and number < 0:
        raise InvalidTell(f"seconds must be a finite number that is not negative, not {seconds!r}")
    return number
