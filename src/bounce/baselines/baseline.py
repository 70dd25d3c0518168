"""Baseline: an optimizer of another package, behind the same ask and tell as Bounce.

For a given seed, every baseline first evaluates the same few points. A package sees a point as values on its own
scales (`values_of`): numbers for reals and integers, rungs for numbers with steps (`Steps`), which are whole numbers
too, and positions in the list of values for all others.
"""

from __future__ import annotations

import operator
import random
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from bounce.errors import InvalidInput, InvalidOption, InvalidSpace, InvalidTell, NothingToAsk
from bounce.optimizer.options import whole
from bounce.spaces.kinds import Codes, Parameter
from bounce.spaces.space import Space
from bounce.trial import Trial, finite, is_single, listed

INITIAL = 5
REDRAWS = 64  # of points that come twice, in small spaces
SEEDS = 2**32  # of the legacy numpy generators in the packages


def initial_points(space: Space, seed: int, n: int = INITIAL) -> Codes:
    """Return the points that every baseline evaluates first with this seed: uniform, and distinct if n points exist."""
    rng = np.random.default_rng([seed, n])
    rows = space.sample(n, rng=rng)
    for _ in range(REDRAWS):
        _, first = np.unique(np.array(space.keys(rows)), return_index=True)
        if len(first) >= min(n, space.size):
            break
        again = np.setdiff1d(np.arange(n), first)
        rows[again] = space.sample(len(again), rng=rng)
    return rows


def values_of(space: Space, row: Codes) -> list[Any]:
    """Convert codes to what packages accept: numbers or rungs, and positions in lists; None for what is inactive."""
    active = space.decode(row[None])[0].keys()
    return [
        value_of(parameter, code) if parameter.name in active else None
        for parameter, code in zip(space.parameters, row, strict=True)
    ]


def value_of(parameter: Parameter, code: float) -> Any:
    """Convert the code of a parameter to what packages accept."""
    scale: Any = parameter
    if is_stepped(parameter):
        return scale.rung_at(code)
    return scale.decode(code) if scale.type in ("real", "integer") else int(code)


def is_stepped(parameter: Parameter) -> bool:
    """Return whether a parameter is a number with steps: a whole number from one rung to another."""
    return getattr(parameter, "steps", None) is not None


def codes_of(space: Space, values: Sequence[Any]) -> Codes:
    """Convert values on the packages' scales to codes; clip a number that rounding moved out of its range.

    None stands for an inactive parameter.
    """
    rest = np.zeros(len(space)) if space.structure is None else space.structure.rest
    pairs = zip(space.parameters, values, rest, strict=True)
    return np.array([own if value is None else code_of(parameter, value) for parameter, value, own in pairs])


def code_of(parameter: Parameter, value: Any) -> float:
    """Convert what a package says of a parameter to its code."""
    scale: Any = parameter
    if is_stepped(parameter):
        first, last = scale.rungs
        return float(scale.code_at(min(max(round(value), first), last)))
    if parameter.type in ("real", "integer"):
        return float(parameter.encode(min(max(value, scale.low), scale.high)))
    return float(value)


def require(name: str, *modules: str) -> None:
    """Raise an error if a package that the baseline needs is not installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise InvalidInput(f"{name} needs {' and '.join(missing)}: pip install 'bounce-bo[peers]'")


@contextmanager
def quiet(seed: int | None = None) -> Iterator[None]:
    """Suppress the warnings of a package; seed the global generators inside the block and restore them after it."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    if seed is not None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


class Baseline(ABC):
    """An optimizer to ask for points and tell values; it minimises.

    It proposes one point at a time, after the `initial` points of its seed. `ask` may be called again before all
    values are known. A failed trial counts as the worst value seen so far, as in Bounce, unless the method has a way of
    its own (`_learn_failure`); failures before the first value wait for it.
    """

    name: ClassVar[str]
    """What messages call it: the name that `baselines.make` knows."""
    structures: ClassVar[Container[str]] = ()
    """What of a space's structure the package can take: conditions, constraints, subset, mixture, permutation."""

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        if not isinstance(space, Space):
            raise InvalidOption(f"space must be a bounce.Space, not {space!r}")
        self._check_structure(space)
        self.space = space
        self.budget = whole("budget", budget, 1)
        self.seed = whole("seed", seed, 0)
        if self.seed >= SEEDS:
            raise InvalidOption(f"seed must be less than {SEEDS}, not {seed!r}")
        self._initial = initial_points(space, self.seed, whole("initial", initial, 1))
        self._trials: list[Trial] = []
        self._tokens: dict[int, Any] = {}
        self._failures: list[tuple[int, Any]] = []  # ids and tokens of those before the first value
        self._worst: float | None = None

    def _check_structure(self, space: Space) -> None:
        """Refuse limits on outcomes, and conditions, constraints and composites that the package has nothing for."""
        if space.limits:
            raise InvalidSpace(f"{self.name} takes no limits on outcomes: choose 'bounce'")
        structure = space.structure
        if structure is None:
            return
        found = {"conditions": len(structure.switches), "constraints": len(space.constraints)}
        found |= {parameter.type: 1 for parameter in space.parameters if space.is_composite(parameter)}
        other = [what for what, count in found.items() if count and what not in self.structures]
        if other:
            names = {"subset": "subsets", "mixture": "mixtures", "permutation": "permutations"}
            words = " and ".join(names.get(what, what) for what in other)
            raise InvalidSpace(f"{self.name} takes no {words}: choose 'bounce' or 'random'")

    @abstractmethod
    def _propose(self) -> tuple[Codes, Any]:
        """Return a new point as codes, and a token that `_learn` needs with its value."""

    @abstractmethod
    def _given(self, row: Codes) -> Any:
        """Register an initial point, and return a token that `_learn` needs with its value."""

    @abstractmethod
    def _learn(self, row: Codes, token: Any, value: float) -> None:
        """Register the value of a point."""

    def _learn_failure(self, row: Codes, token: Any, worst: float) -> None:
        """Register a failure, given the worst value so far."""
        self._learn(row, token, worst)

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id."""
        return list(self._trials)

    @property
    def best(self) -> Trial | None:
        """The trial with the lowest value; None before the first value."""
        done = [trial for trial in self._trials if trial.value is not None]
        return min(done, key=lambda trial: finite(trial.value), default=None)

    @property
    def remaining(self) -> int:
        """How many more trials `ask` can return."""
        return self.budget - len(self._trials)

    @property
    def done(self) -> bool:
        """Whether the budget is used up and no trial is pending."""
        return self.remaining == 0 and not self._tokens

    def ask(self, n: int = 1) -> list[Trial]:
        """Return n new trials, or fewer at the end of the budget."""
        n = whole("the number of trials", n, 1)
        if self.remaining <= 0:
            raise NothingToAsk(f"all {self.budget} trials of the budget have been asked for")
        return [self._ask() for _ in range(min(n, self.remaining))]

    def _ask(self) -> Trial:
        start, i = time.perf_counter(), len(self._trials)
        with quiet((self.seed + i) % SEEDS):
            if i < len(self._initial):
                row = self._initial[i]
                token = self._given(row)
            else:
                row, token = self._propose()
        trial = Trial(
            id=i,
            point=self.space.decode(row[None])[0],
            target_dim=len(self.space),
            seconds_ask=time.perf_counter() - start,
        )
        self._trials.append(trial)
        self._tokens[i] = (row, token)
        return trial

    def tell(self, trials: Trial | int | Sequence[Trial | int], values: Any) -> None:
        """Give the value of a trial, or the values of several."""
        numbers = [finite(value) for value in ([values] if is_single(trials) else listed(values))]
        ids = self._pending(trials)
        if len(numbers) != len(ids):
            raise InvalidTell(f"{len(ids)} trials need {len(ids)} values, not {len(numbers)}")
        for i, number in zip(ids, numbers, strict=True):
            row, token = self._tokens.pop(i)
            with quiet((self.seed + i) % SEEDS):
                self._learn(row, token, number)
            self._trials[i] = replace(self._trials[i], value=number, state="done")
            self._worst = number if self._worst is None else max(self._worst, number)
            self._learn_failures()

    def fail(self, trials: Trial | int | Sequence[Trial | int], error: str | None = None) -> list[int]:
        """Mark trials as failed: they cost budget and have no value. Return the ids."""
        ids = self._pending(trials)
        for i in ids:
            self._failures.append((i, self._tokens.pop(i)))
            self._trials[i] = replace(self._trials[i], state="failed", error=None if error is None else str(error))
        self._learn_failures()
        return ids

    def _learn_failures(self) -> None:
        while self._failures and self._worst is not None:
            i, (row, token) = self._failures.pop(0)
            with quiet((self.seed + i) % SEEDS):
                self._learn_failure(row, token, self._worst)

    def _pending(self, trials: Trial | int | Sequence[Trial | int]) -> list[int]:
        """Return the ids of pending trials; refuse any others, one of another run, and one that is given twice."""
        several: Sequence[Any] = [trials] if is_single(trials) else trials  # type: ignore[assignment]
        ids: list[int] = []
        for trial in several:
            given = trial.id if isinstance(trial, Trial) else trial
            try:
                i = operator.index(given)
            except TypeError:
                raise InvalidTell(f"a trial or its id is needed, not {trial!r}") from None
            if i not in self._tokens or isinstance(given, bool):
                raise InvalidTell(f"there is no pending trial {given!r}")
            if isinstance(trial, Trial) and trial.point != self._trials[i].point:
                raise InvalidTell(f"trial {i} has another point here: it belongs to another run")
            if i in ids:
                raise InvalidTell(f"trial {i} is given twice")
            ids.append(i)
        return ids
