"""Planning: which points an ask returns, and the head that explains them (algorithm 1).

The invariant: a plan changes nothing but caches and the generator. A run is its head and its records; whoever
keeps these two keeps the run.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bounce.acquire.candidates import Seen
from bounce.acquire.design import Design, initial_points
from bounce.acquire.remainder import remaining
from bounce.gp.kernels import Hyper
from bounce.optimizer.model import Model
from bounce.optimizer.options import Options
from bounce.optimizer.state import Fit, Head, Record, best_of, observations, spent
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.subspace.schedule import Schedule
from bounce.subspace.stages import Stage, Stages
from bounce.trial import ASKED, VALUED, Trial

INITIAL_POINTS = 5  # (notes, decision 14); more where the first stage has many bins
PER_BRANCH = 3  # initial points for each value on which conditions depend: with one, a good branch may look bad
INITIAL_DIMS = 5  # bins of the first stage (notes, decision 14) unless `Method.flat` says so ...
INITIAL_DIMS_REAL = 2  # ... where every variable is real


def _known(records: Sequence[Record], restart: int) -> int:
    """Return how many points of the user take the place of initial points."""
    return sum(
        (r.trial.state == "added" or (r.enqueued and r.trial.state in (*ASKED, "queued")))
        and r.trial.restart == restart
        for r in records
    )


def _known_codes(space: Space, records: Sequence[Record]) -> Codes:
    """Return the codes (n, D) of the trials whose points are not to be proposed again (`Record.known`)."""
    codes = [record.codes for record in records if record.known]
    return np.array(codes).reshape(len(codes), len(space))


@dataclass(frozen=True, eq=False)
class Planner:
    """What chooses the next points of a run, under its options."""

    space: Space
    options: Options

    @cached_property
    def _model(self) -> Model:
        return Model(self.options.method, self.options.noise, self.space.limits)

    @property
    def stages(self) -> Stages:
        """Which stage follows which."""
        options, space = self.options, self.space
        to_input = options.budget / 2
        if options.method.arrival == "dimension":
            to_input = min(to_input, len(space) / 2)
        schedule = Schedule(
            input_dim=len(space),
            initial_dim=self.initial_dims,
            new_bins=options.new_bins,
            budget_to_input=options.budget_to_input or to_input,
            initial_points=self.initial_points,
        )
        return Stages(space, options.budget, schedule, options.method, options.low_sequency)

    @property
    def initial_dims(self) -> int:
        """The bins of the first stage: at least one for each kind of variable, and one for each that must be apart."""
        space, flat = self.space, self.options.method.flat
        default = (flat or INITIAL_DIMS) if len(space.combinatorial) else INITIAL_DIMS_REAL
        if flat is not None and len(space) <= flat:
            default = len(space)
        shared = np.setdiff1d(np.arange(len(space)), space.apart)
        fewest = len(space.apart) + len({space.kinds[i] for i in shared})
        return min(max(self.options.initial_dims or default, fewest), len(space))

    @property
    def initial_points(self) -> int:
        """The initial points of a run."""
        if self.options.initial_points is not None:
            return self.options.initial_points
        flat = self.options.method.flat
        usual = max(INITIAL_POINTS, 0 if flat is None else min(self.initial_dims, flat) // 2)
        return max(usual, min(PER_BRANCH * self._branches, self.options.budget // 4))

    @property
    def _branches(self) -> int:
        """The most values that a parameter has on which others depend; 0 if there are no conditions."""
        structure = self.space.structure
        return 0 if structure is None else int(self.space.cardinalities[structure.switches].max(initial=0))

    def first(self, *, rng: np.random.Generator) -> Head:
        """Return the head of a run that begins."""
        stage = self.stages.first(rng=rng)
        return Head(stage, _design(stage.entered, rng=rng), None)

    def extended(self, head: Head, records: Sequence[Record]) -> Head:
        """Return the head under a new budget; a design gets its size under it, unless the model has taken over."""
        design, stage = head.design, head.stage
        size = min(self.initial_points, self.options.budget - (stage.entered - design.size))
        begun = any(record.proposed and record.trial.restart == stage.restart for record in records)
        more = 0 if begun else max(0, size - design.size)
        stage = replace(stage, entered=stage.entered + more)
        stage = self.stages.extended(stage, _known_codes(self.space, records), asked=spent(records))
        return replace(head, stage=stage, design=replace(design, size=design.size + more))

    def moved(self, head: Head, records: Sequence[Record], *, rng: np.random.Generator) -> Head:
        """Return the head of a run that continues in this planner's space, with as many bins as it had in another one.

        Of the model only the data carry over. The search continues around the best point that is left.
        """
        best = best_of(observations(records, head.stage.restart), self.options.sign, self.space.limits)
        codes = _known_codes(self.space, records)
        anchor = None if best is None else best.codes
        bins = len(self.space) if head.stage.embedding.is_input else len(head.stage.embedding.members)
        stage = self.stages.moved(head.stage, bins, anchor, codes, asked=spent(records), rng=rng)
        return replace(head, stage=stage, fit=None)

    def plan(
        self, head: Head, records: Sequence[Record], n: int, *, known: Container[bytes], rng: np.random.Generator
    ) -> tuple[Head, list[Record]]:
        """Choose up to n points whose keys are not known, and return the head that explains them."""
        drafts = list[Record]()
        seen = Seen(head.stage.embedding, known)
        while len(drafts) < n:
            if head.stage.region.collapsed:
                head = self._next(head, records, len(drafts), rng=rng)
            head = self._around_best(head, records, rng=rng)
            stage, need = head.stage, n - len(drafts)
            seen = seen.within(stage.embedding)
            design_left = head.design.size - head.design.used
            if design_left > 0:
                design_left -= _known(records, stage.restart)
            learned = any(r.trial.state in VALUED and r.trial.restart == stage.restart for r in records)
            if design_left > 0 or not learned:
                count = min(need, design_left) if learned else need
                design = replace(head.design, size=self.initial_points)  # all of it, even if the budget cuts it short
                z = initial_points(design, count, seen, self.options.method, rng=rng)
                found: list[tuple[Codes, float | None]] = [(row, None) for row in z]
                again: list[int] = []
                head = replace(head, design=replace(head.design, used=head.design.used + len(z)))
            else:
                count, sign = need, self.options.sign
                head, chosen, again = self._model.propose(head, records, drafts, count, seen=seen, sign=sign, rng=rng)
                found = [(proposal.z, proposal.value) for proposal in chosen]
            for i in again:
                drafts.append(_draft(stage, len(records), len(drafts), records[i].codes, None, repeats=i))
            for z_row, value in found:
                codes = stage.embedding.up(z_row[None])[0]
                drafts.append(_draft(stage, len(records), len(drafts), codes, value))
            if len(found) + len(again) < count:  # the target space holds no unseen point: split at once
                if not stage.embedding.is_input:
                    head = self._next(head, records, len(drafts), rng=rng)
                    continue
                known_codes = _known_codes(self.space, [*records, *drafts])
                rest = remaining(seen, known_codes, n - len(drafts), rng=rng)
                if design_left > 0:
                    head = replace(head, design=replace(head.design, used=head.design.used + len(rest)))
                for codes in stage.embedding.up(rest):
                    drafts.append(_draft(stage, len(records), len(drafts), codes, None))
                break
        return head, self._with_points(drafts)

    def _around_best(self, head: Head, records: Sequence[Record], *, rng: np.random.Generator) -> Head:
        """Return a head whose stage contains the best point that is known: one the user brought anchors it."""
        stage = head.stage
        if stage.embedding.is_input:
            return head
        best = best_of(observations(records, stage.restart), self.options.sign, self.space.limits)
        if best is None:
            return head
        own = best.trial.stage == stage.number and best.asked_codes is None and best.proposed  # surely inside
        if own or stage.embedding.down(best.codes[None])[1].all():
            return head
        embedding = stage.embedding.anchored(best.codes, rng=rng)
        return replace(head, stage=replace(stage, number=stage.number + 1, embedding=embedding))

    def _next(self, head: Head, records: Sequence[Record], drafted: int, *, rng: np.random.Generator) -> Head:
        """Return the head at the beginning of the next stage."""
        asked = spent(records) + drafted
        stage = self.stages.next(head.stage, _known_codes(self.space, records), asked=asked, rng=rng)
        if stage.restart != head.stage.restart:
            return Head(stage, _design(stage.entered - asked, rng=rng), None)
        return replace(head, stage=stage, fit=_inherited(head, stage))

    def _with_points(self, drafts: list[Record]) -> list[Record]:
        """Return drafts with the points that their codes stand for."""
        points = self.space.decode(np.stack([draft.codes for draft in drafts])) if drafts else []
        return [
            replace(draft, trial=replace(draft.trial, point=point)) for draft, point in zip(drafts, points, strict=True)
        ]


def _design(size: int, *, rng: np.random.Generator) -> Design:
    return Design(seed=int(rng.integers(2**32)), size=size)


def _draft(
    stage: Stage, batch: int, place: int, codes: Codes, value: float | None, *, repeats: int | None = None
) -> Record:
    trial = Trial(
        id=batch + place,
        point={},
        stage=stage.number,
        target_dim=len(stage.embedding.members),
        radius=float(stage.region.radius),
        side=float(stage.region.side),
        restart=stage.restart,
        acquisition=value,
        repeats=repeats,
    )
    return Record(trial, codes, batch)


def _inherited(head: Head, stage: Stage) -> Fit | None:
    """Return the last fit for the next stage, each new bin with the lengthscale of its parent."""
    if head.fit is None:
        return None
    old, new, fit = head.stage.embedding, stage.embedding, head.fit
    parents = old.parents(new)
    reals = np.searchsorted(old.latent.reals, parents[new.latent.reals])
    others = np.searchsorted(old.latent.combinatorial, parents[new.latent.combinatorial])

    def child(hyper: Hyper) -> Hyper:
        hyper = replace(hyper, real_lengthscales=hyper.real_lengthscales[reals])
        own = hyper.combinatorial_lengthscales
        return replace(hyper, combinatorial_lengthscales=own[others]) if hyper.per_bin else hyper

    return replace(fit, hyper=child(fit.hyper), beliefs={name: child(own) for name, own in fit.beliefs.items()})
