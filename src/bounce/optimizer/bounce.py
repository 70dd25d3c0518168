"""Bounce: ask for points, tell their values (algorithm 1 of the paper).

`Bounce` is the only mutable object of the algorithm. Its state is a head of bounded size (`Head`) and one record
per trial; everything else it holds is a cache, a pure function of these two. Values are minimised inside; a run
that maximises flips the sign on the way in and out.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from bounce.errors import InvalidInput, InvalidOption, InvalidPoint, InvalidState, InvalidTell, NothingToAsk
from bounce.gp.threads import one_thread
from bounce.optimizer.importance import Importance, importance_of
from bounce.optimizer.ledger import Ledger, Outcome, Trials, some_completions
from bounce.optimizer.ledger import several as each
from bounce.optimizer.options import Options, RunOptions, shows_options, whole
from bounce.optimizer.outlook import improvement_expected
from bounce.optimizer.planner import Planner
from bounce.optimizer.recommendation import recommended
from bounce.optimizer.state import (
    VERSION,
    Record,
    best_of,
    head_from_dict,
    head_to_dict,
    observations,
    record_to_dict,
    upgraded,
    violations,
)
from bounce.optimizer.stopping import Standing, StopWhen
from bounce.spaces.change import Change
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.subspace.stages import Stage
from bounce.subspace.trust_region import after, improves
from bounce.text import storable
from bounce.trial import (
    ASKED,
    STATES,
    Recommendation,
    Trial,
    best_in_words,
    counts_in_words,
    is_single,
    listed,
    standard_errors,
)

COMPLETIONS = 64  # random completions of a point that leaves something open, of which the first unseen one is taken


class Bounce:
    """An optimizer to ask for points and tell values, in any order, from one thread at a time.

    `budget` is the number of trials, failed ones included. The other options are described in docs/options.md.

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
        self._outlooks: tuple[Planner, dict[int, float | None]] = self._planner, {}

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
        return [_snapshot(record) for record in self._ledger.records]

    def trial(self, id: int) -> Trial:
        """Return one trial, without the others."""
        return _snapshot(self._ledger[id])

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return [_snapshot(record) for record in self._ledger.of_state("pending")]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value.

        Where the space has limits on outcomes, it is the best of the trials that keep them. Before there is one, it is
        the trial that breaks them least, and its `feasible` is False.
        """
        best = best_of(self._ledger.records, self._options.sign, self.space.limits)
        return None if best is None else _snapshot(best)

    def recommend(self) -> Recommendation | None:
        """Return the evaluated point that the model believes to be the best; None before the first value.

        A model of all results is fitted in the space itself, so the answer does not depend on the stage of the
        search. It averages the noise: the best value may be a lucky one, so this point need not be that of `best`. With
        `noise="none"` it is, unless standard errors were told. Nothing in the run changes.
        """
        with one_thread():
            found = recommended(self.space, self._ledger.records, self._options)
        return None if found is None else replace(found, trial=_snapshot(self._ledger[found.trial.id]))

    def improvement_expected(self) -> float | None:
        """Return an upper bound on how much better the best value can still become, as far as the model can tell.

        It is in the units of the values. None before two values that differ. A model of all results is fitted in the
        space itself, and the bound holds for the points of a search in the whole space. Nothing in the run changes.
        """
        return self._outlook(self._ledger.tells)

    def _outlook(self, tells: int) -> float | None:
        """Return what could be gained after some tells; kept until something else than a tell changes the data."""
        if self._outlooks[0] is not self._planner:
            self._outlooks = self._planner, {}
        kept = self._outlooks[1]
        if tells not in kept:
            with one_thread():
                kept[tells] = improvement_expected(self.space, self._ledger.records, self._options, tells)
        return kept[tells]

    def reached(self, stop_when: str | StopWhen) -> str | None:
        """Return why a run with this condition should end now; None if it should go on (`Study.run`)."""
        condition = StopWhen.of(stop_when, self._options.direction)
        ledger = self._ledger
        return condition.reached(Standing(self.space, ledger.records, self._options, ledger.tells, self._outlook))

    def importance(self) -> Importance | None:
        """Return how much each parameter matters and with whom; None with fewer than 8 values, or if all are equal.

        A model of all results is fitted in the space itself, and the variance of its mean is shared among the
        parameters (docs/report.md). It takes seconds. Nothing in the run changes.
        """
        with one_thread():
            return importance_of(
                self.space, self._ledger.records, self._options, self._first_embedding(), self.stage.embedding
            )

    def _first_embedding(self) -> Embedding | None:
        """Return the embedding of the first stage, which follows from the seed; None if the run began otherwise."""
        embedding = (
            Planner(self.space, self._options).first(rng=np.random.default_rng(self._options.seed)).stage.embedding
        )
        own = [r for r in self._ledger.records if r.trial.stage == 0 and r.spent and not r.enqueued and r.was is None]
        if self.stage.restart or not own:
            return None
        asked = np.stack([r.codes if r.asked_codes is None else r.asked_codes for r in own])
        return embedding if embedding.down(asked)[1].all() else None

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""
        return self._ledger.remaining(self._options.budget)

    @property
    def spent(self) -> int:
        """How much of the budget has been spent: trials that were given back cost nothing."""
        return self._ledger.spent

    @property
    def failures_in_a_row(self) -> int:
        """How many of the latest outcomes are failures with the same error."""
        return self._ledger.failures_in_a_row

    @property
    def done(self) -> bool:
        """Whether nothing can be asked for and nothing is pending."""
        return self.remaining <= 0 and not self._ledger.of_state("pending")

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
        saved = self._rng.bit_generator.state
        head, drafts = self._head, list[Record]()
        try:
            completed = self._completed([ledger[i] for i in queued])
            if len(queued) < n:
                known = (
                    ledger.keys.union(self.space.keys(np.array(list(completed.values())))) if completed else ledger.keys
                )
                with one_thread():
                    head, drafts = self._planner.plan(head, ledger.records, n - len(queued), known=known, rng=self._rng)
            if not drafts and not queued:
                raise NothingToAsk("no unseen point of the space could be found", reason="space")
        except BaseException:
            self._rng.bit_generator.state = saved
            raise
        seconds = (time.perf_counter() - started) / (len(drafts) + len(queued))
        self._head = head
        for i, codes in completed.items():
            ledger.complete(i, codes)
        if completed:
            self._planner = replace(self._planner)  # its caches have the points before they were complete
        for i in queued:
            ledger.edit(i, state="pending", seconds_ask=seconds)
        ids = ledger.append(replace(draft, trial=replace(draft.trial, seconds_ask=seconds)) for draft in drafts)
        return [_snapshot(ledger[i]) for i in [*queued, *ids]]

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
        notes = {} if note is None else {"note": str(note)}
        errors = standard_errors(sem, len(ids))
        beside = each([constraints] if is_single(trials) and constraints is not None else constraints, len(ids))
        return self.settle(
            Outcome(i, _given(value), point=own, seconds=seconds, notes=notes, sem=error, constraints=given)
            for i, value, own, error, given in zip(ids, several, used, errors, beside, strict=True)
        )

    def fail(self, trials: Trials, error: str | None = None, *, seconds: float | None = None) -> list[int]:
        """Mark trials as failed: they cost budget, have no value and are not proposed again. Return the ids."""
        said = None if error is None else str(error)
        return self.settle(Outcome(i, None, said, seconds=seconds) for i in self._ledger.ids(trials, "pending"))

    def settle(self, outcomes: Iterable[Outcome]) -> list[int]:
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
        return [_snapshot(self._ledger[i]) for i in ids]

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
        self.check_partial(several)
        ids = self._ledger.enqueue(several, self._head.stage, notes)
        return [_snapshot(self._ledger[i]) for i in ids]

    def _encoded(self, points: Iterable[Mapping[str, Any]]) -> Codes:
        """Return the codes of several points; an error says which point has the mistake, counted from 0."""
        rows = []
        for i, point in enumerate(points):
            try:
                rows.append(self.space.encode([point]))
            except InvalidPoint as error:
                raise InvalidPoint(f"point {i}: {error}", parameter=error.parameter) from None
        return np.concatenate(rows) if rows else self.space.encode([])

    def check_partial(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Refuse points with a name or a value that the space does not have; they need not be complete."""
        parameters = {parameter.name: parameter for parameter in self.space.parameters}
        for i, point in enumerate(points):
            if not isinstance(point, Mapping):
                raise InvalidPoint(f"point {i} must be a dict of values by name, not {point!r}")
            for name, value in point.items():
                if name not in parameters:
                    raise InvalidPoint(f"point {i}: no parameter is called {name!r}, only {', '.join(parameters)}")
                try:
                    parameters[name].encode(value)
                except InvalidPoint as error:
                    raise InvalidPoint(f"point {i}: {error}", parameter=name) from None

    def _completed(self, queued: Iterable[Record]) -> dict[int, Codes]:
        """Return the codes of enqueued points that left something open, by id: unseen ones, if any are found."""
        completed: dict[int, Codes] = {}
        partial = [record for record in queued if record.free]
        if not partial:
            return completed
        best = best_of(self._ledger.records, self._options.sign, self.space.limits)
        known = set(self._ledger.keys)
        for record in partial:
            rest = self.space.sample(COMPLETIONS, rng=self._rng)
            if best is not None:
                rest = np.vstack([best.codes, rest])
            rows = self.space.merged(record.codes, record.free, rest)
            if not len(rows):
                rows = some_completions(self.space, record.codes, record.free)
            keys = self.space.keys(rows)
            place = next((place for place, key in enumerate(keys) if key not in known), 0)
            completed[record.id] = rows[place]
            known.add(keys[place])
        return completed

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

    def note(self, trial: Trial | int, text: str) -> int:
        """Write free text beside a trial, in place of the text that is there. Return its id."""
        (i,) = self._ledger.ids(trial, *STATES)
        self._ledger.edit(i, notes=self._ledger[i].trial.notes | {"note": storable(text)})
        return i

    def retry(self, trials: Trials | None = None) -> list[int]:
        """Make failed trials pending again, all of them by default. Return their ids."""
        failed = [record.id for record in self._ledger.of_state("failed")]
        ids = self._ledger.retry(failed if trials is None else trials)
        self._planner = replace(self._planner)
        return ids

    def withdraw(self, trials: Trials) -> list[int]:
        """Give pending or queued trials back, their budget too; their points may be proposed again. Return the ids."""
        ids = self._ledger.withdraw(trials)
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
        return [_snapshot(r) for r in ledger.records if r.was is not None and r.id not in before]

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

    def __repr__(self) -> str:
        counts = counts_in_words(record.trial for record in self._ledger.records)
        best = best_in_words(self.best)
        return f"Bounce({len(self.space)} parameters, budget={self.budget}, {counts}, best: {best})"

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
        except (InvalidInput, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
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
        fresh = [m for m in batch if m.proposed and not m.counted and m.trial.state in ASKED]
        counted = [m for m in fresh if m.trial.stage == stage.number]
        if not counted:
            return
        self._ledger.count(counted)
        ids = {m.id for m in counted}
        others = [r for r in observations(self._ledger.records, stage.restart) if r.id not in ids]
        region = after(
            stage.region,
            self._is_success([m for m in counted if m.trial.value is not None], others),
            len(counted),
            strategy=self._options.trust_region,
            in_input=stage.embedding.is_input,
        )
        self._head = replace(self._head, stage=replace(stage, region=region))

    def _is_success(self, batch: Sequence[Record], others: Sequence[Record]) -> bool:
        """Return whether a batch holds a better point than the others; before one keeps the limits, a lesser evil."""
        sign, limits = self._options.sign, self.space.limits
        if limits:
            held, new = ([r for r in records if r.trial.feasible] for records in (others, batch))
            if not held:
                broken = violations([*others, *batch], limits)
                least, own = (float(min(part, default=math.inf)) for part in np.split(broken, [len(others)]))
                return bool(new) or improves(own, least)
            others, batch = held, new
        incumbent = min((sign * r.value for r in others), default=math.inf)
        best = min((sign * m.value for m in batch), default=math.inf)
        return improves(best, incumbent)


def _given(value: Any) -> Any:
    """Return a value; refuse None, which means a failure."""
    if value is None:
        raise InvalidTell("a value must be a finite number, not None: call fail for a trial without a value")
    return value


def _snapshot(record: Record) -> Trial:
    point = {name: x.copy() if isinstance(x, list | dict) else x for name, x in record.trial.point.items()}
    return replace(record.trial, point=point, outcomes=dict(record.trial.outcomes))
