"""Bounce: ask for points, tell their values (algorithm 1 of the paper).

`Bounce` is the only mutable object of the algorithm. Its state is a head of bounded size (`Head`) and one record
per trial; everything else it holds is a cache, a pure function of these two. Values are minimised inside; a run
that maximises flips the sign on the way in and out.
"""

from __future__ import annotations

import math
import operator
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np

from bounce.errors import InvalidInput, InvalidOption, InvalidState, InvalidTell, NothingToAsk
from bounce.gp.threads import one_thread
from bounce.optimizer.options import Options, RunOptions, shows_options, whole
from bounce.optimizer.planner import Planner, all_codes
from bounce.optimizer.state import (
    VERSION,
    Record,
    head_from_dict,
    head_to_dict,
    observations,
    record_from_dict,
    record_to_dict,
    upgraded,
)
from bounce.spaces.space import Space
from bounce.subspace.stages import Stage
from bounce.subspace.trust_region import after, improves
from bounce.trial import Trial, finite, is_single, listed


class Bounce:
    """An optimizer to ask for points and tell values, in any order, from one thread at a time.

    `budget` is the number of trials, failed ones included. The other options are described in docs/options.md.

    >>> opt = Bounce(space, budget=200, seed=0)
    >>> while not opt.done:
    ...     for trial in opt.ask():
    ...         opt.tell(trial, objective(trial.point))
    >>> opt.best.point
    """

    @shows_options
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
        self._records: list[Record] = []
        self._tells = 0
        self._keys: set[bytes] = set()

    @property
    def _options(self) -> Options:
        return self._planner.options

    # What a user sees

    @property
    def options(self) -> dict[str, Any]:
        """The options of this run as JSON values, the seed included even if it was drawn."""
        return self._options.document()

    @property
    def budget(self) -> int:
        """The number of trials, failed ones included."""
        return self._options.budget

    @property
    def stage(self) -> Stage:
        """Where the search looks now."""
        return self._head.stage

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id: snapshots, yours to keep and to change."""
        return [_snapshot(record) for record in self._records]

    def trial(self, id: int) -> Trial:
        """Return one trial, without the others."""
        if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id < len(self._records):
            raise self._no_trial(id)
        return _snapshot(self._records[id])

    def _no_trial(self, given: object) -> InvalidTell:
        n = len(self._records)
        known = "no trial has been asked for yet" if not n else f"the ids are 0 to {n - 1}"
        return InvalidTell(f"there is no trial {given!r}: {known}", trial=given if type(given) is int else None)

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return [_snapshot(record) for record in self._records if record.trial.state == "pending"]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value."""
        done = [record for record in self._records if record.trial.state == "done"]
        best = min(done, key=lambda record: self._options.sign * record.value, default=None)
        return None if best is None else _snapshot(best)

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""
        return int(min(self._options.budget, self.space.size)) - len(self._records)

    @property
    def done(self) -> bool:
        """Whether nothing can be asked for and nothing is pending."""
        return self.remaining == 0 and all(record.trial.state != "pending" for record in self._records)

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return up to n new trials (`batch_size` of them by default), fewer where budget or space end.

        Raises `NothingToAsk` where there are none; an ask that raises changes nothing.
        """
        started = time.perf_counter()
        n = self._options.batch_size if n is None else whole("the number of trials", n, 1)
        if self.remaining <= 0:
            if len(self._records) >= self._options.budget:
                raise NothingToAsk(
                    f"all {self._options.budget} trials of the budget have been asked for: extend the budget",
                    reason="budget",
                )
            raise NothingToAsk(f"all {int(self.space.size)} points of the space have been asked for", reason="space")
        saved = self._rng.bit_generator.state
        try:
            with one_thread():
                head, drafts = self._planner.plan(
                    self._head, self._records, min(n, self.remaining), known=self._keys, rng=self._rng
                )
            if not drafts:
                raise NothingToAsk("no unseen point of the space could be found", reason="space")
        except BaseException:
            self._rng.bit_generator.state = saved
            raise
        seconds = (time.perf_counter() - started) / len(drafts)
        drafts = [replace(d, trial=replace(d.trial, seconds_ask=seconds)) for d in drafts]
        self._head = head
        self._records += drafts
        self._keys.update(self.space.keys(np.stack([draft.codes for draft in drafts])))
        return [_snapshot(draft) for draft in drafts]

    def tell(self, trials: Trial | int | Sequence[Trial | int], values: Any, *, seconds: float | None = None) -> None:
        """Give the value of a trial, or the values of several; all are taken or none.

        `seconds` is how long each evaluation took, for the record.
        """
        seconds = _seconds(seconds)
        several = [values] if is_single(trials) else listed(values)
        ids = self._pending_ids(trials)
        if len(several) != len(ids):
            raise InvalidTell(f"{len(ids)} trials need {len(ids)} values, not {len(several)}")
        numbers = [finite(value) for value in several]
        for i, number in zip(ids, numbers, strict=True):
            self._finish(i, value=number, state="done", seconds_eval=seconds)

    def fail(
        self,
        trials: Trial | int | Sequence[Trial | int],
        error: str | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """Mark trials as failed: they cost budget, have no value and are never proposed again."""
        seconds = _seconds(seconds)
        for i in self._pending_ids(trials):
            self._finish(i, state="failed", error=None if error is None else str(error), seconds_eval=seconds)

    def settle(self, outcomes: Iterable[tuple[int, float | None, str | None]]) -> list[int]:
        """Take ids with their values, or with None and an error; all are taken or none. Return the ids."""
        given = list(outcomes)
        ids = self._pending_ids([i for i, _, _ in given])
        numbers = [None if value is None else finite(value) for _, value, _ in given]
        for i, number, (_, _, error) in zip(ids, numbers, given, strict=True):
            if number is None:
                self._finish(i, state="failed", error=error)
            else:
                self._finish(i, value=number, state="done")
        return ids

    def extend(self, budget: int) -> None:
        """Set a new total budget; the current stage's share of it is computed again.

        A run that has ended continues from what it knows.
        """
        budget = whole("budget", budget, 1)
        if budget < len(self._records):
            raise InvalidOption(
                f"budget must be at least {len(self._records)}, the trials asked for so far, not {budget}",
                option="budget",
            )
        self._planner = replace(self._planner, options=replace(self._options, budget=budget))
        self._head = self._planner.extended(self._head, self._records)

    # How it is kept

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides how the run continues, as JSON values."""
        return {
            "format": "bounce-state",
            "version": VERSION,
            "space": self.space.to_dict(),
            **self.changes(range(len(self._records))),
        }

    def changes(self, trials: Iterable[int]) -> dict[str, Any]:
        """Return what may differ in `state_dict` when nothing happened but to these trials."""
        return {
            "options": self.options,
            "rng": self._rng.bit_generator.state,
            "tells": self._tells,
            "head": head_to_dict(self._head),
            "trials": [record_to_dict(self._records[i]) for i in trials],
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
            optimizer = cls._restored(upgraded(state))
        except InvalidState:
            raise
        except (InvalidInput, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InvalidState(f"the state is damaged: {type(error).__name__}: {error}") from error
        if space is not None and space != optimizer.space:
            raise InvalidState(f"the state is for another space: {optimizer.space.difference(space)}")
        return optimizer

    @classmethod
    def _restored(cls, state: Mapping[str, Any]) -> Bounce:
        optimizer = cls.__new__(cls)
        optimizer._start(Space.from_dict(state["space"]), Options.of(state["options"]))
        optimizer._rng.bit_generator.state = state["rng"]
        optimizer._head = head_from_dict(optimizer.space, state["head"])
        records = [record_from_dict(optimizer.space, t, i) for i, t in enumerate(state["trials"])]
        fitted = 0 if optimizer._head.fit is None else optimizer._head.fit.tells
        told = sorted(record.told for record in records if record.told is not None)
        if told != list(range(len(told))) or state["tells"] != len(told) or fitted > len(told):
            raise InvalidState(f"the state has {state['tells']!r} tells, but its trials say {len(told)}")
        optimizer._records, optimizer._tells = records, len(told)
        optimizer._keys = set(optimizer.space.keys(all_codes(optimizer.space, records)))
        if len(optimizer._keys) != len(records) or len(records) > optimizer._options.budget:
            raise InvalidState("the state has a trial twice, or more trials than its budget")
        return optimizer

    # What comes back

    def _pending_ids(self, trials: Trial | int | Sequence[Trial | int]) -> list[int]:
        """Return ids of pending trials of this run; refuse any other."""
        ids: list[int] = []
        several = [trials] if is_single(trials) else trials
        for trial in cast(Sequence[Trial | int], several):
            try:
                i = operator.index(trial.id if isinstance(trial, Trial) else trial)
            except TypeError:
                raise InvalidTell(f"a trial or its id is needed, not {trial!r}") from None
            if isinstance(trial, bool) or not 0 <= i < len(self._records):
                raise self._no_trial(trial)
            record = self._records[i].trial
            if isinstance(trial, Trial) and trial.point != record.point:
                raise InvalidTell(f"trial {i} has another point here: it belongs to another run", trial=i)
            if record.state != "pending":
                raise InvalidTell(f"trial {i} is already {record.state}", trial=i)
            if i in ids:
                raise InvalidTell(f"trial {i} is named twice", trial=i)
            ids.append(i)
        return ids

    def _finish(self, i: int, **outcome: Any) -> None:
        record = self._records[i]
        self._records[i] = replace(record, trial=replace(record.trial, **outcome), told=self._tells)
        self._tells += 1
        first = record.batch
        batch = []
        for member in self._records[first:]:
            if member.batch != first:
                break
            batch.append(member)
        if all(member.trial.state != "pending" for member in batch):
            self._close(batch)

    def _close(self, batch: Sequence[Record]) -> None:
        """Resize the region once the last trial of a batch is in (notes, decision 11)."""
        stage, sign = self._head.stage, self._options.sign
        counted = [m for m in batch if m.proposed and m.trial.stage == stage.number]
        if not counted:
            return
        ids = {m.id for m in counted}
        others = [r for r in observations(self._records, stage.restart) if r.id not in ids]
        incumbent = min((sign * r.value for r in others), default=math.inf)
        best = min((sign * m.value for m in counted if m.trial.state == "done"), default=math.inf)
        region = after(
            stage.region,
            improves(best, incumbent),
            len(counted),
            strategy=self._options.trust_region,
            in_input=stage.embedding.is_input,
        )
        self._head = replace(self._head, stage=replace(stage, region=region))


def _seconds(seconds: float | None) -> float | None:
    """Return the time of an evaluation; refuse one that is not a finite number."""
    try:
        return None if seconds is None else finite(seconds)
    except InvalidTell:
        raise InvalidTell(f"seconds must be a finite number, not {seconds!r}") from None


def _snapshot(record: Record) -> Trial:
    return replace(record.trial, point=dict(record.trial.point))
