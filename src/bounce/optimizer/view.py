"""View: what can be seen of a run. Nothing here changes it.

Trials are shown as snapshots. What a model of all results says (`recommend`, `improvement_expected`, `importance`) is
computed when it is asked for, and draws nothing from the generator of the run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bounce.gp.threads import one_thread
from bounce.optimizer.importance import Importance, importance_of
from bounce.optimizer.ledger import Ledger
from bounce.optimizer.options import Options
from bounce.optimizer.outlook import improvement_expected
from bounce.optimizer.planner import Planner
from bounce.optimizer.recommendation import recommended
from bounce.optimizer.state import Head, Record, best_of
from bounce.optimizer.stopping import Standing, StopWhen
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.subspace.stages import Stage
from bounce.trial import Recommendation, Trial, best_in_words, counts_in_words


class View:
    """A run as its user sees it; `Bounce` changes what is seen."""

    space: Space
    _planner: Planner
    _ledger: Ledger
    _head: Head
    _outlooks: tuple[Planner, dict[int, float | None]]
    """What could be gained, by the number of tells; it holds as long as the planner is the same."""

    @property
    def _options(self) -> Options:
        return self._planner.options

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
        return [snapshot(record) for record in self._ledger.records]

    def trial(self, id: int) -> Trial:
        """Return one trial, without the others."""
        return snapshot(self._ledger[id])

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return [snapshot(record) for record in self._ledger.of_state("pending")]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value.

        Where the space has limits on outcomes, it is the best of the trials that keep them. Before there is one, it is
        the trial that breaks them least, and its `feasible` is False.
        """
        best = best_of(self._ledger.records, self._options.sign, self.space.limits)
        return None if best is None else snapshot(best)

    def recommend(self) -> Recommendation | None:
        """Return the evaluated point that the model believes to be the best; None before the first value.

        A model of all results is fitted in the space itself, so the answer does not depend on the stage of the
        search. It averages the noise: the best value may be a lucky one, so this point need not be that of `best`. With
        `noise="none"` it is, unless standard errors were told. Nothing in the run changes.
        """
        with one_thread():
            found = recommended(self.space, self._ledger.records, self._options)
        return None if found is None else replace(found, trial=snapshot(self._ledger[found.trial.id]))

    def improvement_expected(self) -> float | None:
        """Return an upper bound on how much better the best value can still become, as far as the model can tell.

        It is in the units of the values. None before two values that differ, and if the space has outcomes. A model of
        all results is fitted in the space itself, and the bound holds for the points of a search in the whole space.
        Nothing in the run changes.
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
        condition = StopWhen.of(stop_when, self._options.direction, limited=bool(self.space.limits))
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

    def __repr__(self) -> str:
        counts = counts_in_words(record.trial for record in self._ledger.records)
        best = best_in_words(self.best)
        return f"Bounce({len(self.space)} parameters, budget={self.budget}, {counts}, best: {best})"


def snapshot(record: Record) -> Trial:
    """Return a trial that belongs to the caller."""
    point = {name: x.copy() if isinstance(x, list | dict) else x for name, x in record.trial.point.items()}
    return replace(record.trial, point=point, outcomes=dict(record.trial.outcomes))
