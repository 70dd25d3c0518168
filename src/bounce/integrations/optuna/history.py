"""The history of a study, as events in a fixed order.

An event is an ask (a trial that the sampler proposed) or a result (a trial that is finished, whoever proposed it). With
every proposal the sampler stores which trials it had seen finished. So everybody who reads the same study puts its
events into the same order: asks by how much they had seen and by number; before each, the results that it had seen and
no ask before it, by time of completion and number; at the end all other results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from optuna.trial import FrozenTrial, TrialState

ASK = "bounce:ask"
"""The system attribute of a trial that says from what it was proposed."""


@dataclass(frozen=True)
class Asked:
    """What a proposal was made from."""

    key: str
    """The space and the options, as a digest."""
    seed: int
    seen: tuple[tuple[int, int], ...]
    """The trials that were finished: ranges of numbers, both ends included."""
    point: tuple[Any, ...]
    """What was proposed, in the order of the space: others may read it before the trial has its parameters."""

    @cached_property
    def count(self) -> int:
        """How many trials were finished."""
        return sum(last - first + 1 for first, last in self.seen)

    def saw(self, number: int) -> bool:
        """Return whether a trial was finished."""
        return any(first <= number <= last for first, last in self.seen)

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        seen = ",".join(f"{first}-{last}" for first, last in self.seen)
        return {"key": self.key, "seed": self.seed, "seen": seen, "point": list(self.point)}

    @classmethod
    def of(cls, trial: FrozenTrial) -> Asked | None:
        """Read it from a trial; None if the sampler did not propose the trial."""
        given = trial.system_attrs.get(ASK)
        if not isinstance(given, dict):
            return None
        ranges = [part.split("-") for part in given["seen"].split(",") if part]
        seen = tuple((int(first), int(last)) for first, last in ranges)
        return cls(given["key"], given["seed"], seen, tuple(given["point"]))


def ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending numbers as ranges."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def constraints(trial: FrozenTrial) -> dict[str, float]:
    """Return the values of a trial's constraints, by name or number: those above 0 are violated."""
    attrs = trial.system_attrs
    several = {f"#{i}": value for i, value in enumerate(attrs.get("constraints") or ())}
    prefix = "constraints:"
    several |= {name: value for name, value in attrs.items() if name.startswith(prefix)}
    return {name: float(several[name]) for name in sorted(several)}


@dataclass(frozen=True)
class Event:
    """An ask or a result."""

    kind: Literal["ask", "result"]
    trial: FrozenTrial
    digest: bytes
    """Equal for equal events: for a result, of everything that it says."""


def fixed_of(trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that a trial was enqueued with."""
    return dict(trial.system_attrs.get("fixed_params", {}))


def ask_event(trial: FrozenTrial) -> Event:
    """Return the event of a proposal."""
    asked = repr((trial.number, sorted(fixed_of(trial).items(), key=lambda item: item[0])))
    return Event("ask", trial, b"ask" + hashlib.blake2b(asked.encode(), digest_size=16).digest())


@dataclass(frozen=True)
class Fact:
    """What the order of events needs to know about a trial."""

    trial: FrozenTrial
    asked: Asked | None
    ask: Event
    result: Event
    shape: str
    """All distributions, as text."""
    limits: tuple[str, ...]
    """The names of its constraints."""

    @classmethod
    def of(cls, trial: FrozenTrial) -> Fact:
        """Read a trial."""
        beside = constraints(trial)
        told = (trial.number, trial.state.name, trial.values, trial.params, beside)
        shape = repr(sorted(trial.distributions.items()))
        result = Event("result", trial, hashlib.blake2b(repr(told).encode(), digest_size=16).digest())
        return cls(trial, Asked.of(trial), ask_event(trial), result, shape, tuple(beside))


class Facts:
    """The facts of trials, kept for those that can no longer change."""

    def __init__(self) -> None:
        self._known: dict[int, Fact] = {}

    def of(self, trials: Sequence[FrozenTrial]) -> list[Fact]:
        """Return the facts of trials, by number."""
        found = []
        for trial in trials:
            fact = self._known.get(trial.number)
            if fact is None or fact.trial is not trial:  # another study, or another copy of the trial
                fact = Fact.of(trial)
                if trial.state.is_finished():
                    self._known[trial.number] = fact
            found.append(fact)
        return sorted(found, key=lambda fact: fact.trial.number)


def events(facts: Sequence[Fact], key: str, before: int) -> list[Event]:
    """Return the events that a trial about to be proposed follows; `before` is its number.

    It has seen all that is finished, so only asks that saw as much and have a higher number come after it.
    """
    finished = [fact for fact in facts if fact.trial.state.is_finished()]
    asks = [(fact.asked.count, fact.trial.number, fact) for fact in facts if fact.asked and fact.asked.key == key]
    ordered = sorted((one for one in asks if one[:2] < (len(finished), before)), key=lambda one: one[:2])
    found: list[Event] = []
    coming, waiting = iter(finished), list[Fact]()
    ahead = next(coming, None)
    for _, _, fact in ordered:
        asked = fact.asked
        assert asked is not None
        last = asked.seen[-1][1] if asked.seen else -1
        while ahead is not None and ahead.trial.number <= last:
            waiting.append(ahead)
            ahead = next(coming, None)
        seen = [one for one in waiting if asked.saw(one.trial.number)]
        if seen:
            waiting = [one for one in waiting if not asked.saw(one.trial.number)]
            found += _results(seen)
        found.append(fact.ask)
    rest = [*waiting, *([] if ahead is None else [ahead]), *coming]
    return found + _results(rest)


def _results(facts: Iterable[Fact]) -> list[Event]:
    def when(fact: Fact) -> tuple[Any, int]:
        return fact.trial.datetime_complete, fact.trial.number

    return [fact.result for fact in sorted(facts, key=when)]


def common(facts: Sequence[Fact]) -> dict[str, Any]:
    """Return the distributions that all complete trials share, by name; those of pruned ones if none is complete."""
    for state in (TrialState.COMPLETE, TrialState.PRUNED):
        shapes = {fact.shape: fact.trial for fact in facts if fact.trial.state == state}
        if shapes:
            first, *others = shapes.values()
            shared = dict(first.distributions)
            for trial in others:
                shared = {name: d for name, d in shared.items() if trial.distributions.get(name) == d}
            return dict(sorted(shared.items()))
    return {}


def limits(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the names of the constraints, if all complete trials have the same ones; none otherwise."""
    found = {fact.limits for fact in facts if fact.trial.state == TrialState.COMPLETE}
    return found.pop() if len(found) == 1 else ()
