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
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np

from bounce.candidates import Seen
from bounce.course import Course
from bounce.design import initial_points
from bounce.errors import InvalidInput, InvalidOption, InvalidState, InvalidTell, NothingToAsk
from bounce.model import Model
from bounce.options import Options, whole
from bounce.parameters import Codes
from bounce.space import Space
from bounce.state import (
    Head,
    Record,
    Trial,
    head_from_dict,
    head_to_dict,
    observations,
    record_from_dict,
    record_to_dict,
)
from bounce.threads import one_thread
from bounce.told import finite, is_single, listed
from bounce.trust_region import after, improves

STATE_VERSION = 1


class Bounce:
    """An optimizer to ask for points and tell values, in any order, from one thread at a time.

    `budget` is the number of trials, failed ones included; `batch_size` how many an ask returns; `seed` repeats a
    run; `direction` is "minimize" or "maximize". The others change how the method works (docs/budgets.md):
    `initial_points` before the model speaks, `initial_dims` of the first space, `new_bins` per bin and split,
    `budget_to_input` shared out among the spaces, `low_sequency` for points with long runs of equal values,
    `trust_region` "bounce", or "baxus" or "casmopolitan" to compare with; `robust` keeps outliers
    and lucky values from misleading the model, and departs from the paper in two more ways (docs/budgets.md).

    >>> opt = Bounce(space, budget=200, seed=0)
    >>> while not opt.done:
    ...     for trial in opt.ask():
    ...         opt.tell(trial, objective(trial.point))
    >>> opt.best.point
    """

    def __init__(
        self,
        space: Space,
        budget: int,
        *,
        batch_size: int = 1,
        seed: int | None = None,
        direction: str = "minimize",
        initial_points: int = 5,
        initial_dims: int | None = None,
        new_bins: int = 2,
        budget_to_input: int | None = None,
        low_sequency: bool = False,
        trust_region: str = "bounce",
        robust: bool = True,
        **unknown: Any,
    ) -> None:
        if not isinstance(space, Space):
            raise InvalidOption(f"space must be a bounce.Space, not {space!r}")
        options = Options.of(
            {
                "budget": budget,
                "batch_size": batch_size,
                "seed": seed,
                "direction": direction,
                "initial_points": initial_points,
                "initial_dims": initial_dims,
                "new_bins": new_bins,
                "budget_to_input": budget_to_input,
                "low_sequency": low_sequency,
                "trust_region": trust_region,
                "robust": robust,
                **unknown,
            }
        )
        if options.seed is None:
            options = replace(options, seed=int(np.random.SeedSequence().generate_state(1)[0]))
        self._start(space, options)
        kinds = len(set(space.kinds))
        if options.initial_dims is not None and options.initial_dims < kinds:
            warnings.warn(
                f"initial_dims={options.initial_dims} is raised to {kinds}: each kind of variable needs a bin",
                stacklevel=2,
            )
        self._head = self._course.first(rng=self._rng)

    def _start(self, space: Space, options: Options) -> None:
        """Set up everything but the head."""
        self.space, self._options = space, options
        self._rng = np.random.default_rng(options.seed)
        self._records: list[Record] = []
        self._tells = 0
        self._keys: set[bytes] = set()
        self._model = Model()

    # What a user sees

    @property
    def options(self) -> dict[str, Any]:
        """The options of this run, the seed included even if it was drawn."""
        return asdict(self._options)

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id: snapshots, yours to keep and to change."""
        return [_snapshot(record) for record in self._records]

    def trial(self, id: int) -> Trial:
        """Return one trial, without the others."""
        return _snapshot(self._records[id])

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return [_snapshot(record) for record in self._records if record.trial.state == "pending"]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value."""
        done = [record for record in self._records if record.trial.state == "done"]
        best = min(done, key=lambda record: self._sign * record.value, default=None)
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
            raise NothingToAsk(
                f"all {self._options.budget} trials of the budget have been asked for: a larger budget gives more"
                if len(self._records) >= self._options.budget
                else f"all {int(self.space.size)} points of the space have been asked for"
            )
        saved = self._rng.bit_generator.state
        try:
            with one_thread():
                head, drafts = self._plan(min(n, self.remaining))
            if not drafts:
                raise NothingToAsk("no further point of the space could be found")
        except BaseException:
            self._rng.bit_generator.state = saved
            raise
        seconds = (time.perf_counter() - started) / len(drafts)
        drafts = [replace(d, trial=replace(d.trial, seconds_ask=seconds)) for d in drafts]
        self._head = head
        self._records += drafts
        self._keys.update(self.space.keys(np.stack([draft.codes for draft in drafts])))
        return [_snapshot(draft) for draft in drafts]

    def tell(
        self, trials: Trial | int | Sequence[Trial | int], values: Any, *, seconds: float | None = None
    ) -> None:
        """Give the value of a trial, or the values of several; all are taken or none.

        `seconds` is how long each evaluation took, for the record.
        """
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
        """Say that trials have no value: they cost budget and are never proposed again."""
        for i in self._pending_ids(trials):
            self._finish(i, state="failed", error=None if error is None else str(error), seconds_eval=seconds)

    def extend(self, budget: int) -> None:
        """Set a new total budget; the current space's share of it is computed again."""
        budget = whole("budget", budget, 1)
        if budget < len(self._records):
            raise InvalidOption(
                f"budget must be at least {len(self._records)}, the trials asked for so far, not {budget}"
            )
        self._options = replace(self._options, budget=budget)
        self._head = self._course.extended(self._head, self._codes())

    # How it is kept

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides how the run goes on, as JSON values."""
        return {
            "format": "bounce-state",
            "version": STATE_VERSION,
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
        """Build the optimizer that goes on where `state_dict` was taken, for the same space if one is given."""
        if not isinstance(state, Mapping) or state.get("format") != "bounce-state":
            raise InvalidState("this is no state of Bounce: it has no 'format': 'bounce-state'")
        if state.get("version") != STATE_VERSION:
            raise InvalidState(
                f"the state has version {state.get('version')!r}; this release reads version {STATE_VERSION}"
            )
        try:
            optimizer = cls._restored(state)
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
        told = sorted(record.told for record in records if record.told is not None)
        if told != list(range(len(told))) or state["tells"] != len(told) or optimizer._head.fitted > len(told):
            raise InvalidState(f"the state has {state['tells']!r} tells, but its trials say {len(told)}")
        optimizer._records, optimizer._tells = records, len(told)
        optimizer._keys = set(optimizer.space.keys(optimizer._codes()))
        if len(optimizer._keys) != len(records) or len(records) > optimizer._options.budget:
            raise InvalidState("the state has a trial twice, or more trials than its budget")
        return optimizer

    # Where the algorithm goes

    @property
    def _course(self) -> Course:
        return Course(self.space, self._options)

    @property
    def _sign(self) -> float:
        return 1.0 if self._options.direction == "minimize" else -1.0

    def _codes(self) -> Codes:
        return np.array([record.codes for record in self._records]).reshape(len(self._records), len(self.space))

    def _plan(self, n: int) -> tuple[Head, list[Record]]:
        """Choose n points, and the head that explains them; nothing of this object changes but caches."""
        head, drafts = self._head, list[Record]()
        seen = Seen(lambda z: [], self._keys)
        asked = len(self._records)
        while len(drafts) < n:
            if head.region.collapsed:
                head = self._course.next(head, asked + len(drafts), self._codes(), rng=self._rng)
            embedding = head.embedding
            seen.keys = lambda z, embedding=embedding: self.space.keys(embedding.up(z))  # type: ignore[misc]
            need = n - len(drafts)
            design_left = head.design_size - head.design_used
            known = bool(observations(self._records, head.restart))
            if design_left > 0 or not known:
                count = min(need, design_left) if known else need
                z = initial_points(embedding, head.design_used, count, seen, seed=head.design_seed, rng=self._rng)
                found: list[tuple[Codes, float | None]] = [(row, None) for row in z]
                head = replace(head, design_used=head.design_used + len(z))
            else:
                count = need
                head, chosen = self._model.propose(
                    head,
                    self._records,
                    drafts,
                    count,
                    seen,
                    sign=self._sign,
                    robust=self._options.robust,
                    rng=self._rng,
                )
                found = [(proposal.z, proposal.value) for proposal in chosen]
            for z_row, value in found:
                drafts.append(self._draft(head, z_row, value, asked, len(drafts)))
            if len(found) < count:  # the target space holds no unseen point: split at once
                if embedding.is_input:
                    break
                head = self._course.next(head, asked + len(drafts), self._codes(), rng=self._rng)
        points = self.space.decode(np.stack([draft.codes for draft in drafts])) if drafts else []
        return head, [
            replace(draft, trial=replace(draft.trial, point=point))
            for draft, point in zip(drafts, points, strict=True)
        ]

    def _draft(self, head: Head, z: Codes, value: float | None, batch: int, place: int) -> Record:
        trial = Trial(
            id=batch + place,
            point={},
            space=head.space,
            target_dim=len(head.embedding.members),
            length_comb=float(head.region.comb),
            length_cont=float(head.region.cont),
            restart=head.restart,
            acquisition=value,
        )
        return Record(trial, head.embedding.up(z[None])[0], batch)

    # What comes back

    def _pending_ids(self, trials: Trial | int | Sequence[Trial | int]) -> list[int]:
        """Return ids of pending trials of this run, or say what is wrong with one."""
        ids: list[int] = []
        several = [trials] if is_single(trials) else trials
        for trial in cast(Sequence[Trial | int], several):
            try:
                i = operator.index(trial.id if isinstance(trial, Trial) else trial)
            except TypeError:
                raise InvalidTell(f"a trial or its id is needed, not {trial!r}") from None
            if isinstance(trial, bool) or not 0 <= i < len(self._records):
                raise InvalidTell(f"there is no trial {trial!r}; {len(self._records)} have been asked for")
            record = self._records[i].trial
            if isinstance(trial, Trial) and trial.point != record.point:
                raise InvalidTell(f"trial {i} has another point here: it belongs to another run")
            if record.state != "pending":
                raise InvalidTell(f"trial {i} is {record.state} already")
            if i in ids:
                raise InvalidTell(f"trial {i} is named twice")
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
        head = self._head
        counted = [m for m in batch if m.proposed and m.trial.space == head.space]
        if not counted:
            return
        ids = {m.id for m in counted}
        others = [r for r in observations(self._records, head.restart) if r.id not in ids]
        incumbent = min((self._sign * r.value for r in others), default=math.inf)
        best = min((self._sign * m.value for m in counted if m.trial.state == "done"), default=math.inf)
        region = after(
            head.region,
            improves(best, incumbent),
            len(counted),
            strategy=self._options.trust_region,
            in_input=head.embedding.is_input,
        )
        self._head = replace(head, region=region)


def _snapshot(record: Record) -> Trial:
    return replace(record.trial, point=dict(record.trial.point))
