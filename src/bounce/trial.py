"""Trials: points that were asked for, what became of them, and what a run found.

A leaf: it needs nothing but the standard library, so a worker process that evaluates a function loads little more.
A trial is a frozen snapshot; its fields are defined here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from bounce.errors import InvalidInput, InvalidTell
from bounce.markup import facts

if TYPE_CHECKING:
    import pandas as pd

Scalar = str | int | float | bool | None
State = Literal["queued", "pending", "done", "failed", "added", "withdrawn", "outside"]
"""Queued: to be asked for; pending: asked for; done: has a value; failed: has none; added: a result that nobody asked
for; withdrawn: was given back, with its result if it had one; outside: no longer in the space, which was changed."""
STATES: tuple[State, ...] = get_args(State)
ASKED: tuple[State, ...] = ("pending", "done", "failed")
VALUED: tuple[State, ...] = ("done", "added")


@dataclass(frozen=True)
class Trial:
    """A point that was asked for, and what is known about it: a snapshot."""

    id: int
    point: dict[str, Any]
    """Scalars; a list for a subset and a permutation, a dict for a mixture."""
    value: float | None = None
    sem: float | None = field(default=None, kw_only=True)
    """The standard error of the value, if it was told: 0 for an exact value."""
    outcomes: dict[str, float] = field(default_factory=dict, kw_only=True)
    """What was measured beside the value, by name."""
    feasible: bool | None = field(default=None, kw_only=True)
    """Whether its outcomes keep the limits of the space; None if there are none, or an outcome is not known."""
    state: State = "pending"
    error: str | None = None
    """Why it failed."""
    stage: int = 0
    """The number of the stage (target space) it was proposed in."""
    target_dim: int = 0
    """The number of bins of that stage."""
    radius: float = 0.0
    """The trust region of that moment: how many combinatorial bins could change."""
    side: float = 0.0
    """The trust region of that moment: the side of the box of the reals, as a share of their range."""
    restart: int = 0
    """How many restarts preceded it."""
    acquisition: float | None = None
    """The log of the expected improvement; None for a point that was not chosen by it: an initial point, a start, a
    repeat, a doubting point or an audition. If the space has limits on outcomes, the log of the probability that they
    hold is added, and stands alone before the first trial that keeps them."""
    seconds_ask: float = 0.0
    """Its share of the time that its ask took."""
    seconds_eval: float | None = None
    """How long its evaluation took, if known."""
    repeats: int | None = field(default=None, kw_only=True)
    """The trial whose point it was to evaluate once more, since values look noisy (`Method.repeats`)."""
    attempts: int = 0
    """How many of its evaluations began in the process of a run and did not end: that process died."""
    notes: dict[str, str] = field(default_factory=dict)
    """Free text by name: `note`, and further columns of the tables it was told with."""

    def __hash__(self) -> int:
        return hash(self.id)


FACTS = tuple(f.name for f in fields(Trial) if f.name not in ("id", "point", "notes", "outcomes", "feasible"))
"""What is known about a trial besides its id, its point, its outcomes and its notes, in the order of every table."""
RESERVED = ("id", *FACTS, "feasible", "failed", "note")
"""Columns of tables that no outcome can be called after."""


def column(name: str) -> str:
    """Return the column of a parameter in a table: its name, with `point.` before it where that is ambiguous."""
    return f"point.{name}" if name.strip().lower() in ("id", *FACTS) or name.startswith("point.") else name


def outcomes_of(trials: Iterable[Trial]) -> list[str]:
    """Return the names of the outcomes of trials."""
    return list(dict.fromkeys(name for trial in trials for name in trial.outcomes))


def parameters_of(trials: Iterable[Trial]) -> list[str]:
    """Return the names in the points of trials, which differ where the space was changed: the newest first.

    Points that leave parameters open do not change the order.
    """
    given = list(trials)
    inside = max((trial.point for trial in given if trial.state != "outside"), key=len, default={})
    names = dict.fromkeys(inside) | dict.fromkeys(name for t in given if t.state != "outside" for name in t.point)
    return list(names | dict.fromkeys(name for trial in given for name in trial.point))


def counts_in_words(trials: Iterable[Trial]) -> str:
    """Return how many trials there are in each state: "18 done, 2 failed"; a state that no trial has is left out."""
    states = [trial.state for trial in trials]
    shown = [state for state in ("done", "failed", *STATES) if state in states]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(shown)) or "no trials"


def best_in_words(best: Trial | None) -> str:
    """Return the best value with its trial: "0.7 (trial 3)"."""
    return "none yet" if best is None else f"{best.value!r} (trial {best.id})"


@dataclass(frozen=True)
class Result:
    """What a run found."""

    trials: list[Trial]
    best: Trial | None
    """The trial with the best value; None if no trial has a value. Where the space has limits on outcomes, it is the
    best of those that keep them, or before there is one, the trial that breaks them least."""
    seed: int
    """The seed that repeats the run, whether it was given or drawn."""

    def __repr__(self) -> str:
        done = sum(trial.state == "done" for trial in self.trials)
        failed = sum(trial.state == "failed" for trial in self.trials)
        broken = ", which breaks limits" if self.best is not None and self.best.feasible is False else ""
        best = "None" if self.best is None else f"{self.best.value!r} (trial {self.best.id}{broken})"
        return f"Result(best={best}, done={done}, failed={failed}, seed={self.seed})"

    def _repr_html_(self) -> str:
        rows = {"best": best_in_words(self.best), "trials": counts_in_words(self.trials), "seed": str(self.seed)}
        return facts("Result", rows, None if self.best is None else self.best.point)

    def to_frame(self) -> pd.DataFrame:
        """Return the trials as a pandas table, with the columns that an exported CSV file has.

        A subset, a mixture or a permutation is one column here, with its value as in a point.
        """
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("a table needs pandas: pip install 'bounce-bo[frame]'") from None
        rows, names = [], outcomes_of(self.trials)
        for trial in self.trials:
            facts = asdict(trial)
            point, notes, outcomes = facts.pop("point"), facts.pop("notes"), facts.pop("outcomes")
            first, feasible = {"id": facts.pop("id")}, facts.pop("feasible")
            known = {column(name): value for name, value in point.items()} | facts
            known |= outcomes | {"feasible": feasible} if names else {}
            free = {name: text for name, text in notes.items() if name not in (*known, *names)}
            rows.append(first | known | free)
        more = [*names, "feasible"] if names else []
        usual = dict.fromkeys(["id", *map(column, parameters_of(self.trials)), *FACTS, *more])
        order = list(usual | dict.fromkeys(name for row in rows for name in row))
        return pd.DataFrame(rows, columns=order if rows else None)


@dataclass(frozen=True)
class Recommendation:
    """The trial whose point is the best one in the belief of the model, which averages the noise of the values."""

    trial: Trial
    """Of several trials of this point, the one with the best value."""
    mean: float
    """What the model expects of the point: the mean of its belief, without noise."""
    deviation: float
    """How sure it is: the standard deviation of its belief."""

    @property
    def point(self) -> dict[str, Any]:
        """The point to use."""
        return self.trial.point


def is_single(trials: object) -> bool:
    """Return whether one trial or id was given, rather than several."""
    if hasattr(trials, "ndim"):  # a numpy array or scalar
        return bool(trials.ndim == 0)
    return not isinstance(trials, Sequence) or isinstance(trials, str | bytes)


def listed(values: Any) -> list[Any]:
    """Return several values as a list; refuse a collection without an order."""
    unordered = isinstance(values, str | bytes | Mapping | Set)
    if not isinstance(values, Iterable) or unordered or getattr(values, "ndim", 1) == 0:
        raise InvalidTell(f"several trials need a list of values, not {values!r}")
    return list(values)


def finite(value: Any) -> float:
    """Return a value as a finite float; refuse anything else."""
    try:
        plain = value.item() if hasattr(value, "item") else value  # a numpy scalar, or an array of one number
        if isinstance(plain, str | bytes | complex):
            raise TypeError
        number = float(plain)
    except Exception:  # whatever a foreign object's conversion raises
        raise InvalidTell(f"a value must be a finite number, not {value!r}") from None
    if not math.isfinite(number):
        raise InvalidTell(f"a value must be a finite number, not {number!r}")
    return number + 0.0  # a negative zero becomes zero


def standard_error(sem: Any) -> float | None:
    """Return the standard error of a value, None if it is unknown; refuse what is not a number of at least 0."""
    if sem is None:
        return None
    try:
        number = -1.0 if isinstance(sem, bool) else finite(sem)
    except InvalidTell:
        number = -1.0
    if number < 0:
        raise InvalidTell(f"a standard error must be a finite number that is not negative, not {sem!r}")
    return number


def standard_errors(sems: Any, n: int) -> list[float | None]:
    """Return the standard errors of n values, given as one for all or as one for each."""
    several = [sems] * n if is_single(sems) else listed(sems)
    if len(several) != n:
        raise InvalidTell(f"{n} values need {n} standard errors, not {len(several)}")
    return [standard_error(sem) for sem in several]
