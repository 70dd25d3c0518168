"""Bounce: ask for points, tell their values (algorithm 1 of the paper).

`Bounce` is the only mutable object of the algorithm. Its state is a head of bounded size (`Head`) and one record
per trial; everything else it holds is a cache, a pure function of these two. Values are minimised inside; a run
that maximises flips the sign on the way in and out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from bounce.errors import InvalidInput, InvalidOption, InvalidPoint, InvalidState, InvalidTell, NothingToAsk
from bounce.gp.threads import one_thread
from bounce.optimizer.batches import moved, uncounted
from bounce.optimizer.completion import completed, start_of
from bounce.optimizer.documents import VERSION, head_from_dict, head_to_dict, record_to_dict
from bounce.optimizer.ledger import Ledger, Tell, Trials
from bounce.optimizer.ledger import several as each
from bounce.optimizer.options import Options, RunOptions, shows_options, whole
from bounce.optimizer.planner import Planner
from bounce.optimizer.state import Record, best_of
from bounce.optimizer.upgrades import upgraded
from bounce.optimizer.view import View, snapshot
from bounce.spaces.change import Change
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.text import storable
from bounce.trial import STATES, Trial, is_single, listed, standard_errors


class Bounce(View):
    """An optimizer to ask for points and tell values, in any order, from one thread at a time.

    `budget` is the number of trials, failed ones included. The other options are described in docs/options.md. If a
    constraint is a function, the space may run out of points before `done` knows it: then `ask` raises `NothingToAsk`.

    >>> opt = Bounce(space, budget=200, seed=0)
    >>> while not opt.done:
    ...     for trial in opt.ask():
    ...         opt.tell(trial, objective(trial.point))
    >>> opt.best.point
    """

    @shows_options({})
    def __init__(self, space: Space, budget: int, **options: Unpack[RunOptions]) -> None:
        if not isinstance(space, Space):
            raise InvalidOption(f"space must be a bounce.Space, not {space!r}", option="space")
        checked = Options.of({"budget": budget, **options})
        if checked.seed is None:
            checked = replace(checked, seed=int(np.random.SeedSequence().generate_state(1)[0]))
        self._start(space, checked)
        kinds = len(set(space.kinds))
        if checked.initial_dims is not None and checked.initial_dims < kinds:
            warnings.warn(
                f"initial_dims={checked.initial_dims} is raised to {kinds}: each kind of variable needs a bin",
                stacklevel=2,
            )
        self._head = self._planner.first(rng=self._rng)

    def _start(self, space: Space, options: Options) -> None:
        """Set up everything but the head."""
        self.space = space
        self._planner = Planner(space, options)
        self._rng = np.random.default_rng(options.seed)
        self._ledger = Ledger(space)
        self._outlooks = self._planner, {}

    # Ask and tell

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return up to n new trials (`batch_size` of them by default), fewer where budget or space end.

        Points that were enqueued come first. Raises `NothingToAsk` where there are none; an ask that raises changes
        nothing.
        """
        started = time.perf_counter()
        ledger = self._ledger
        n = self._options.batch_size if n is None else whole("the number of trials", n, 1)
        n = min(n, self.remaining)
        if n <= 0:
            raise self._nothing_left()
        queued = [record.id for record in ledger.of_state("queued")[:n]]
        records = list(ledger.records)
        saved = self._rng.bit_generator.state
        head, drafts = self._head, list[Record]()
        try:
            partial = [ledger[i] for i in queued if ledger[i].free]
            best = best_of(ledger.records, self._options.sign, self.space.limits) if partial else None
            filled = completed(self.space, partial, best, ledger.keys, rng=self._rng)
            if filled:
                self._planner = replace(self._planner)  # its caches have the points before they were complete
            for i in queued:  # what leaves the queue now is pending for the proposals beside it
                trial, codes = replace(records[i].trial, state="pending"), filled.get(i, records[i].codes)
                records[i] = replace(records[i], trial=trial, codes=codes, free=())
            if len(queued) < n:
                known = ledger.keys.union(self.space.keys(np.array(list(filled.values())))) if filled else ledger.keys
                with one_thread():
                    head, drafts = self._planner.plan(head, records, n - len(queued), known=known, rng=self._rng)
            if not drafts and not queued:
                raise NothingToAsk("no unseen point of the space could be found", reason="space")
        except BaseException:
            self._rng.bit_generator.state = saved
            raise
        seconds = (time.perf_counter() - started) / (len(drafts) + len(queued))
        self._head = head
        for i, codes in filled.items():
            ledger.complete(i, codes)
        for i in queued:
            ledger.edit(i, state="pending", seconds_ask=seconds)
        ids = ledger.append(replace(draft, trial=replace(draft.trial, seconds_ask=seconds)) for draft in drafts)
        return [snapshot(ledger[i]) for i in [*queued, *ids]]

    def _nothing_left(self) -> NothingToAsk:
        budget = self._options.budget
        if self._ledger.spent >= budget:
            return NothingToAsk(
                f"all {budget} trials of the budget have been asked for: extend the budget", reason="budget"
            )
        return NothingToAsk(f"all {int(self.space.size)} points of the space have been asked for", reason="space")

    def tell(
        self,
        trials: Trials,
        values: Any,
        *,
        seconds: float | None = None,
        point: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        note: str | None = None,
        sem: float | Sequence[float | None] | None = None,
        constraints: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> list[int]:
        """Give the value of a trial, or the values of several; all are taken or none. Return the ids.

        `sem` is the standard error of the value, in the same units, or one per trial: 0 for an exact value, None if it
        is unknown. `seconds` is how long each evaluation took, for the record. `point` is the point that was really
        used, or one per trial, if it is not the one that was asked for. `note` is free text. `constraints` has what was
        measured beside the value, a number for each outcome of the space: a dict, or one per trial.
        """
        several = [values] if is_single(trials) else listed(values)
        ids = self._ledger.ids(trials, "pending")
        used: list[Any] = [point] * len(ids)
        if point is not None:
            used = [point] if isinstance(point, Mapping) else listed(point)
        for what, given in (("values", several), ("points", used)):
            if len(given) != len(ids):
                raise InvalidTell(f"{len(ids)} trials need {len(ids)} {what}, not {len(given)}")
        notes = {} if note is None else {"note": _text("a note", note)}
        errors = standard_errors(sem, len(ids))
        beside = each([constraints] if is_single(trials) and constraints is not None else constraints, len(ids))
        return self.settle(
            Tell(i, _given(value), point=own, seconds=seconds, notes=notes, sem=error, constraints=given)
            for i, value, own, error, given in zip(ids, several, used, errors, beside, strict=True)
        )

    def fail(self, trials: Trials, error: str | None = None, *, seconds: float | None = None) -> list[int]:
        """Mark trials as failed: they cost budget, have no value and are not proposed again. Return the ids."""
        said = None if error is None else _text("an error", error)
        return self.settle(Tell(i, None, said, seconds=seconds) for i in self._ledger.ids(trials, "pending"))

    def settle(self, outcomes: Iterable[Tell]) -> list[int]:
        """Take what became of pending trials; all are taken or none. Return the ids."""
        checked = self._ledger.checked(outcomes)
        if any(used is not None for _, used in checked):
            self._planner = replace(self._planner)  # its caches have the points that were asked for
        for outcome, used in checked:
            self._resize(self._ledger.complete_batch(self._ledger.finish(outcome, used)))
        return [outcome.id for outcome, _ in checked]

    def count_attempts(self, trial: int, attempts: int) -> None:
        """Set how many evaluations of a trial have begun in the process of a run and not ended."""
        if self._ledger[trial].trial.attempts != attempts:
            self._ledger.edit(trial, attempts=attempts)

    # What people know

    def add(
        self,
        points: Iterable[Mapping[str, Any]],
        values: Iterable[Any],
        *,
        notes: Sequence[Mapping[str, str]] | None = None,
        sems: float | Sequence[float | None] | None = None,
        constraints: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Trial]:
        """Take results that nobody asked for: past data, experiments made by hand. They cost no budget.

        All are taken or none. Points may repeat. The model learns from them, and the search begins around the best.
        `sems` are the standard errors of the values, as `sem` in `tell`, and `constraints` the measured outcomes.
        """
        codes, numbers = self._encoded(points), listed(values)
        if len(numbers) != len(codes):
            raise InvalidTell(f"{len(codes)} points need {len(codes)} values, not {len(numbers)}")
        ids = self._ledger.add(codes, numbers, self._head.stage, notes, sems=sems, constraints=constraints)
        return [snapshot(self._ledger[i]) for i in ids]

    def enqueue(
        self,
        points: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        notes: Sequence[Mapping[str, str]] | None = None,
    ) -> list[Trial]:
        """Have points asked for first, in order.

        What a point leaves out is filled in when it is asked for: from the best point known then, or drawn.
        """
        several = [points] if isinstance(points, Mapping) else list(points)
        ids = self._ledger.enqueue(several, self._head.stage, notes)
        return [snapshot(self._ledger[i]) for i in ids]

    def _encoded(self, points: Iterable[Mapping[str, Any]]) -> Codes:
        """Return the codes of several points; an error says which point has the mistake, counted from 0."""
        rows = []
        for i, point in enumerate(points):
            try:
                rows.append(self.space.encode([point]))
            except InvalidPoint as error:
                raise InvalidPoint(f"point {i}: {error}", parameter=error.parameter) from None
        return np.concatenate(rows) if rows else self.space.encode([])

    def check_starts(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Refuse points that `enqueue` would refuse."""
        for i, point in enumerate(points):
            start_of(self.space, i, point)

    def correct(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        point: Mapping[str, Any] | None = None,
        sem: float | Literal["unknown"] | None = None,
        constraints: Mapping[str, Any] | None = None,
    ) -> int:
        """Replace the value, its standard error, outcomes or the point of a trial that has a value. Return its id.

        What is not given stays. `sem="unknown"` takes a standard error back.
        """
        i = self._ledger.correct(trial, value, point, sem, constraints)
        self._planner = replace(self._planner)  # its caches are of the data before
        return i

    def note(self, trial: Trial | int, text: str, *, name: str = "note") -> int:
        """Write free text beside a trial, in place of the text that is there under this name. Return its id."""
        i = self._ledger.id(trial, *STATES)
        self._ledger.edit(i, notes=self._ledger[i].trial.notes | {storable(name): storable(_text("a note", text))})
        return i

    def retry(self, trials: Trials | None = None) -> list[int]:
        """Make failed trials pending again, all of them by default, or trials whose value is to be measured again.

        Their results are taken back. Return their ids.
        """
        failed = [record.id for record in self._ledger.of_state("failed")]
        ids = self._ledger.retry(failed if trials is None else trials)
        self._planner = replace(self._planner)
        return ids

    def withdraw(self, trials: Trials) -> list[int]:
        """Give trials back, their budget too; their points may be proposed again. Return the ids.

        Pending and queued trials are cancelled. Of others, added ones too, the results are taken back.
        """
        ids = self._ledger.withdraw(trials)
        self._planner = replace(self._planner)  # its caches are of the data before
        for i in ids:
            self._resize(self._ledger.complete_batch(i))
        return ids

    def change(self, space: Space, defaults: Mapping[str, Any] | None = None) -> list[Trial]:
        """Continue in another space. Return the trials that no longer fit; they leave the model.

        `defaults` has the value of each new parameter in all trials so far. A parameter that the new space lacks is
        fixed at the value that `defaults` has for it, so that only trials with that value fit. Without one, it
        no longer counts.
        """
        if not isinstance(space, Space):
            raise InvalidOption(f"space must be a bounce.Space, not {space!r}", option="space")
        change = Change(self.space, space, dict(defaults or {}))
        if space == self.space:
            return []
        ledger = self._ledger.moved(change)
        planner = Planner(space, self._options)
        self._head = planner.moved(self._head, ledger.records, rng=self._rng)
        before = {record.id for record in self._ledger.records if record.was is not None}
        self.space, self._planner, self._ledger = space, planner, ledger
        return [snapshot(r) for r in ledger.records if r.was is not None and r.id not in before]

    def extend(self, budget: int) -> None:
        """Set a new total budget; the current stage's share of it is computed again.

        A run that has ended continues from what it knows.
        """
        budget = whole("budget", budget, 1)
        if budget < self._ledger.spent:
            raise InvalidOption(
                f"budget must be at least {self._ledger.spent}, the trials asked for so far, not {budget}",
                option="budget",
            )
        self._planner = replace(self._planner, options=replace(self._options, budget=budget))
        self._head = self._planner.extended(self._head, self._ledger.records)

    # How it is kept

    def copy(self) -> Bounce:
        """Return an optimizer in the same state that goes its own way; its caches are empty."""
        other = type(self).__new__(type(self))
        other._start(self.space, self._options)
        other._rng.bit_generator.state = self._rng.bit_generator.state
        other._head, other._ledger = self._head, self._ledger.copy()
        return other

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides how the run continues, as JSON values."""
        return {
            "format": "bounce-state",
            "version": VERSION,
            "space": self.space.to_dict(),
            **self.changes(range(len(self._ledger))),
        }

    @property
    def touched(self) -> list[int]:
        """The trials that changed since `forget_touched`, for whoever saves them."""
        return sorted(self._ledger.touched)

    def forget_touched(self) -> None:
        """Count all changes as saved."""
        self._ledger.touched.clear()

    def touch_all(self) -> None:
        """Count all trials as changed, for whoever saves them to another place."""
        self._ledger.touched.update(range(len(self._ledger)))

    def changes(self, trials: Iterable[int]) -> dict[str, Any]:
        """Return what may differ in `state_dict` when nothing happened but to these trials."""
        return {
            "options": self.options,
            "rng": self._rng.bit_generator.state,
            "tells": self._ledger.tells,
            "head": head_to_dict(self._head),
            "trials": [record_to_dict(self._ledger[i]) for i in trials],
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], *, space: Space | None = None) -> Bounce:
        """Build the optimizer that continues where `state_dict` was taken, for the same space if one is given."""
        if not isinstance(state, Mapping) or state.get("format") != "bounce-state":
            raise InvalidState("this is not a state of Bounce: it has no 'format': 'bounce-state'")
        if state.get("version") not in range(1, VERSION + 1):
            raise InvalidState(
                f"the state has version {state.get('version')!r}; this release reads versions 1 to {VERSION}"
            )
        try:
            optimizer = cls._restored(upgraded(state), space)
        except InvalidState:
            raise
        except (InvalidInput, LookupError, AttributeError, TypeError, ValueError, OverflowError) as error:
            raise InvalidState(f"the state is damaged: {type(error).__name__}: {error}") from error
        if space is not None and space != optimizer.space:
            raise InvalidState(f"the state is for another space: {optimizer.space.difference(space)}")
        return optimizer

    @classmethod
    def _restored(cls, state: Mapping[str, Any], given: Space | None) -> Bounce:
        optimizer = cls.__new__(cls)
        space = Space.from_dict(state["space"])
        if given == space:
            space = given  # which has the functions of its constraints
        optimizer._start(space, Options.of(state["options"]))
        optimizer._rng.bit_generator.state = state["rng"]
        optimizer._head = head_from_dict(optimizer.space, state["head"])
        optimizer._ledger = Ledger.restored(optimizer.space, state["trials"], state["tells"])
        fit = optimizer._head.fit
        if fit is not None and fit.tells > optimizer._ledger.tells:
            raise InvalidState(f"the state has {state['tells']!r} tells, fewer than its last fit saw")
        if optimizer._ledger.spent > optimizer._options.budget:
            raise InvalidState("the state has more trials than its budget")
        return optimizer

    def _resize(self, batch: Sequence[Record]) -> None:
        """Let a batch that is complete move the region, once (notes, decision 11)."""
        stage = self._head.stage
        counted = uncounted(batch, stage)
        if counted:
            self._ledger.count(counted)
            stage = moved(stage, counted, self._ledger.records, self._options, self.space.limits)
            self._head = replace(self._head, stage=stage)


def _text(what: str, given: Any) -> str:
    """Return a text, or what an exception says; refuse None and collections."""
    if given is None or (isinstance(given, Iterable) and not isinstance(given, str)):
        raise InvalidTell(f"{what} must be one text, not {given!r}")
    return str(given)


def _given(value: Any) -> Any:
    """Return a value; refuse None, which means a failure."""
    if value is None:
        raise InvalidTell("a value must be a finite number, not None: call fail for a trial without a value")
    return value
