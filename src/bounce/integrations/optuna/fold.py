"""The fold: an optimizer that follows the events of a study.

The invariant: a fold is a pure function of its options, its space and the events that it has taken, in their order.
Values are minimised in here, as elsewhere; the optimizer itself is told the values of the study.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from bounce.errors import NothingToAsk
from bounce.integrations.optuna.distributions import Mapped, Point
from bounce.integrations.optuna.history import Event, constraints, fixed_of
from bounce.optimizer.bounce import Bounce

EXTENSION = 2  # a budget that is spent is multiplied by this


class Fold:
    """An optimizer, and the events of a study that it knows."""

    def __init__(self, mapped: Mapped, options: Mapping[str, Any]) -> None:
        self.mapped = mapped
        self.optimizer = Bounce(mapped.space, **options)
        self.taken: list[bytes] = []
        """The digests of the events so far."""
        self._sign = 1.0 if options["direction"] == "minimize" else -1.0
        self._ids: dict[int, int] = {}  # pending trials: number in the study, id in the optimizer
        self._feasible: list[float] = []  # the values of complete trials without a violation, in ascending order
        self._infeasible: list[tuple[int, float]] = []  # id and violation

    def copy(self) -> Fold:
        """Return a fold in the same state that goes its own way."""
        other = Fold.__new__(Fold)
        other.mapped, other.optimizer, other.taken = self.mapped, self.optimizer.copy(), list(self.taken)
        other._sign, other._ids = self._sign, dict(self._ids)
        other._feasible, other._infeasible = list(self._feasible), list(self._infeasible)
        return other

    def follow(self, events: Sequence[Event]) -> None:
        """Take the events after those that are known."""
        for event in events[len(self.taken) :]:
            if event.kind == "ask":
                self.ask(event)
            else:
                self._learn(event.trial)
                self.taken.append(event.digest)

    def ask(self, event: Event) -> Point | None:
        """Propose the point of a trial; None if no point of the space is left."""
        self.taken.append(event.digest)
        self._has_room()
        partial = self.mapped.partial(fixed_of(event.trial))
        return self._ask(event.trial.number, partial)

    def hold(self, number: int, point: Point) -> None:
        """Count a point as pending that somebody else proposed."""
        self._has_room()
        self._ask(number, point)

    def again(self, number: int) -> Point | None:
        """Propose another point for a trial, and keep the last one from being proposed."""
        self._has_room()
        return self._ask(number, {})

    def _ask(self, number: int, partial: Point) -> Point | None:
        opt = self.optimizer
        queued = opt.enqueue(partial) if partial else []
        try:
            (trial,) = opt.ask(1)
        except NothingToAsk:
            opt.withdraw(queued)
            return None
        self._ids[number] = trial.id
        return trial.point

    def _has_room(self) -> None:
        """Extend a budget that is spent."""
        if self.optimizer.spent >= self.optimizer.budget:
            self.optimizer.extend(EXTENSION * self.optimizer.budget)

    def _learn(self, trial: FrozenTrial) -> None:
        """Take the result of a trial."""
        opt, id = self.optimizer, self._ids.pop(trial.number, None)
        given = constraints(trial)
        broken, outcomes = sum(max(value, 0.0) for value in given.values()), self.mapped.measured(given)
        value = None if outcomes is None else self._value(trial, broken)
        if id is None:  # of another sampler, of another space, enqueued, or added
            point = self.mapped.point(trial.params)
            if point is None or value is None or outcomes is None:
                return
            (added,) = opt.add([point], [value], constraints=[outcomes])
            id = added.id
        elif value is None:
            opt.fail(id, trial.state.name)
            return
        else:
            proposed = opt.trial(id).point
            used = {**proposed, **self.mapped.partial(trial.params)}
            opt.tell(id, value, point=None if used == proposed else used, constraints=outcomes)
        if broken > 0 and not self.mapped.limits:
            self._infeasible.append((id, broken))
        elif broken == 0 and trial.state == TrialState.COMPLETE:
            self._widen(self._sign * value)

    def _value(self, trial: FrozenTrial, broken: float) -> float | None:
        """Return what the optimizer is told about a trial; None if it has no usable value.

        A pruned trial was stopped since it was not promising. Its last value is censored: it counts as that value or
        as the median of the complete trials, whichever is worse.
        """
        values = trial.values
        if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED) or not values or not math.isfinite(values[0]):
            return None
        if broken > 0 and not self.mapped.limits:
            return self._penalty(broken)
        x = self._sign * float(values[0])
        if trial.state == TrialState.PRUNED and self._feasible:
            x = max(x, self._feasible[len(self._feasible) // 2])
        return self._sign * x

    # Constraints that not all trials have cannot be modelled: there is a penalty for those that are violated.

    def _penalty(self, broken: float) -> float:
        """Return the value of an infeasible trial: worse than the worst feasible one, and ordered by violation."""
        best, worst = (self._feasible[0], self._feasible[-1]) if self._feasible else (0.0, 0.0)
        span = worst - best or max(1.0, abs(worst))
        share = broken / (1.0 + broken) if math.isfinite(broken) else 1.0
        return self._sign * (worst + span * (1.0 + share))

    def _widen(self, x: float) -> None:
        """Count a feasible value; if it is a new best or worst one, the penalties change."""
        insort(self._feasible, x)
        if x in (self._feasible[0], self._feasible[-1]):
            for id, broken in self._infeasible:
                value = self._penalty(broken)
                if value != self.optimizer.trial(id).value:
                    self.optimizer.correct(id, value)
