"""The state of a run: its trials, and a head of bounded size that says where the algorithm stands.

`optimizer.documents` turns both into JSON values and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bounce.acquire.design import Design
from bounce.gp.kernels import Hyper
from bounce.gp.linalg import Array
from bounce.method import Method
from bounce.spaces.kinds import Codes
from bounce.spaces.outcomes import Limit
from bounce.subspace.stages import Stage
from bounce.trial import ASKED, VALUED, Scalar, State, Trial


@dataclass(frozen=True, eq=False)
class Record:
    """A trial with what only the optimizer needs."""

    trial: Trial
    codes: Codes
    batch: int
    """The id of the first trial of its batch."""
    told: int | None = None
    """Its place in the order of tells."""
    asked_codes: Codes | None = None
    """The codes of the point that was asked for, where another one was used."""
    enqueued: bool = False
    """Whether the user chose its point."""
    counted: bool = False
    """Whether it has moved the trust region; it does so once."""
    was: State | None = None
    """The state it had before the space was changed and it was left outside; its codes then mean nothing."""
    former: Mapping[str, Scalar] = field(default_factory=dict)
    """Its values of parameters that the space no longer has."""
    free: tuple[str, ...] = ()
    """The parameters that an enqueued point leaves open until it is asked for; their codes then mean nothing.

    Of a trial that was left outside, those that were fixed at another value than its own.
    """

    @property
    def spent(self) -> bool:
        """Whether it has cost budget."""
        return (self.was or self.trial.state) in ASKED

    @property
    def known(self) -> bool:
        """Whether its point is known and must not be proposed again."""
        return not self.free and self.trial.state not in ("withdrawn", "outside")

    @property
    def id(self) -> int:
        """The trial's id."""
        return self.trial.id

    @property
    def value(self) -> float:
        """The value of a trial that has one."""
        assert self.trial.value is not None
        return self.trial.value

    @property
    def tell(self) -> int:
        """The place of a finished trial in the order of tells."""
        assert self.told is not None
        return self.told

    @property
    def proposed(self) -> bool:
        """Whether the acquisition chose it.

        Initial points, starts, repeats, doubting points and auditions neither move the region nor use its budget.
        """
        return self.trial.acquisition is not None


@dataclass(frozen=True, eq=False)
class Fit:
    """The last fit of the hyperparameters."""

    hyper: Hyper
    tells: int
    """How many tells it had seen."""
    stage: int
    """The number of the stage it was made in."""
    bend: float = 0.0
    """How much the targets are bent."""
    beliefs: Mapping[str, Hyper] = field(default_factory=dict)
    """The hyperparameters of what is believed about limits, by the names of `bounce.optimizer.limits`."""


@dataclass(frozen=True, eq=False)
class Head:
    """Where the algorithm stands."""

    stage: Stage
    design: Design
    fit: Fit | None


def observations(records: Sequence[Record], restart: int | None) -> list[Record]:
    """Return the trials with a value since a restart, by id; with None, all trials with a value."""
    return [r for r in records if r.trial.state in VALUED and restart in (None, r.trial.restart)]


def best_of(records: Iterable[Record], sign: float, limits: Sequence[Limit] = ()) -> Record | None:
    """Return the trial with the best value, the first of several; None if none has a value.

    With limits, it is the best of those that keep them. Before there is one, it is the trial that breaks them least.
    """
    valued = [record for record in records if record.trial.state in VALUED]
    if not limits:
        return min(valued, key=lambda record: sign * record.value, default=None)
    return valued[int(ranks(valued, sign, limits).argmin())] if valued else None


def ranks(records: Sequence[Record], sign: float, limits: Sequence[Limit]) -> Array:
    """Return the ranks (n,) of trials with a value: by violation, then by value, then by place; 0 for the best.

    Trials of which not all outcomes are known come last, those first that break least of what is known.
    """
    known, total = _violations(records, limits)
    order = np.lexsort((np.array([sign * r.value for r in records]), known, total))
    ranks = np.empty(len(records))
    ranks[order] = np.arange(len(records))
    return ranks


def violations(records: Sequence[Record], limits: Sequence[Limit]) -> Array:
    """Return by how much each of some trials breaks the limits, all of them together; infinite if that is not known.

    The violation of each limit is divided by the median of those of the trials that break it, so that outcomes in
    different units count alike, and one outlier does not set the scale.
    """
    return _violations(records, limits)[1]


def _violations(records: Sequence[Record], limits: Sequence[Limit]) -> tuple[Array, Array]:
    """Return the violations (n,) of what is known, and of all limits."""
    known, unknown = np.zeros(len(records)), np.zeros(len(records), dtype=bool)
    for limit in limits:
        measured = [r.trial.outcomes.get(limit.name) for r in records]
        own = np.array([0.0 if x is None else limit.violation(x) for x in measured])
        broken = own[own > 0]
        with np.errstate(over="ignore"):
            known += own / np.median(broken) if len(broken) else own
        unknown |= np.array([x is None for x in measured], dtype=bool)
    held = np.array([bool(r.trial.feasible) for r in records], dtype=bool)
    total = np.where(held, 0.0, np.maximum(known, np.finfo(float).tiny))
    return known, np.where(unknown, np.inf, total)


def spent(records: Iterable[Record]) -> int:
    """Return how much of the budget trials have cost."""
    return sum(record.spent for record in records)


def evidence(records: Sequence[Record], restart: int | None, sign: float, method: Method) -> tuple[list[Record], Array]:
    """Return the trials that the model learns from, by id, and what it is told about each, to be minimised.

    They are those since a restart, or with None all of them. A failed trial counts as the worst value seen, or not at
    all (`Method.failures`).
    """
    done = observations(records, restart)
    if method.failures != "worst":
        return done, np.array([sign * r.value for r in done])
    found = [r for r in records if r.told is not None and restart in (None, r.trial.restart)]
    worst = max(sign * r.value for r in done)
    return found, np.array([sign * r.value if r.trial.state in VALUED else worst for r in found])
