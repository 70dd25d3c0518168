"""Stopping: conditions under which a run ends before its budget is spent, written as sentences.

A condition belongs to a run, not to the state of the optimizer. The invariant: whether it holds is a pure function of
the trials and of the order in which they were told. So a run that was killed and resumed ends where it would have
ended.

    no improvement expected above 0.01      the outlook is at most 0.01, at three checks in a row
    no improvement in 50 evaluations        the last 50 evaluations, failed ones included, were not better than the best
    value below 0.1                         the target is reached (value above, for a run that maximises)

Several are joined by "or".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bounce.errors import InvalidOption, quoted
from bounce.optimizer.options import LARGEST, Options
from bounce.optimizer.outlook import improvement_expected
from bounce.optimizer.state import Record, best_of, ranks
from bounce.spaces.space import Space
from bounce.text import number
from bounce.trial import VALUED

SENTENCES = (
    "'no improvement expected above X', 'no improvement in N evaluations', 'value below X' (or 'value above X' for a "
    "run that maximises), or several of them joined by 'or'"
)
SHARE = 20  # a check is due when one in this many tells is new: a check fits a model of all results
IN_A_ROW = 3  # checks at which nothing may be expected
FEWEST = 5  # evaluations that the model chose before the first check
Outlook = Callable[[int], float | None]
"""What can still be gained after a number of tells."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What a condition may ask about a run."""

    space: Space
    records: Sequence[Record]
    options: Options
    tells: int
    outlook: Outlook | None = None
    """A cache of the outlook, if there is one."""

    def expected(self, tells: int) -> float | None:
        """Return what can still be gained, as it was after some number of tells."""
        if self.outlook is not None:
            return self.outlook(tells)
        return improvement_expected(self.space, self.records, self.options, tells)


class Condition(Protocol):
    """One sentence."""

    def reached(self, now: Standing) -> str | None:
        """Return why the run should end; None if it should go on."""

    def check(self, direction: str, *, limited: bool) -> None:
        """Refuse a direction that the condition is not for, or a space with limits on outcomes."""


@dataclass(frozen=True)
class Target:
    """A value that is good enough."""

    threshold: float
    below: bool

    def reached(self, now: Standing) -> str | None:
        """Return that the best value is beyond the threshold, if it is."""
        best = best_of(now.records, now.options.sign, now.space.limits)
        if (
            best is None
            or best.trial.feasible is False
            or not (best.value < self.threshold if self.below else best.value > self.threshold)
        ):
            return None
        return f"the best value, {best.value:g}, is {'below' if self.below else 'above'} {self.threshold:g}"

    def check(self, direction: str, *, limited: bool) -> None:
        """Refuse a target on the wrong side, which the first bad value would reach."""
        if (direction == "minimize") != self.below:
            right, wrong = ("below", "above") if direction == "minimize" else ("above", "below")
            raise _invalid(
                f"stop_when: 'value {wrong}' does not fit direction {direction!r}: write 'value {right} "
                f"{self.threshold:g}'"
            )


@dataclass(frozen=True)
class Patience:
    """A number of evaluations without a better value."""

    evaluations: int

    def reached(self, now: Standing) -> str | None:
        """Return that nothing has improved for long enough, if so; evaluations count in the order of their tells."""
        finished = sorted((r for r in now.records if r.told is not None), key=lambda r: r.tell)
        valued = [record for record in finished if record.trial.state in VALUED]
        losses = [now.options.sign * record.value for record in valued]
        if now.space.limits:  # a trial that keeps the limits is better than one that breaks them
            losses = ranks(valued, now.options.sign, now.space.limits).tolist()
        loss = {record.id: value for record, value in zip(valued, losses, strict=True)}
        best, since = math.inf, 0
        for record in finished:
            if loss.get(record.id, math.inf) < best:
                best, since = loss[record.id], 0
            elif record.spent:
                since += 1
        if best == math.inf or since < self.evaluations:
            return None
        last = "evaluation" if since == 1 else f"{since} evaluations"
        return f"the last {last} brought no improvement"

    def check(self, direction: str, *, limited: bool) -> None:
        """Accept everything."""


@dataclass(frozen=True)
class Outlooks:
    """A gain that is too small to go on for."""

    gain: float

    def reached(self, now: Standing) -> str | None:
        """Return that the model expects no larger gain, if it did not at the last checks."""
        first = _first_check(now)
        due = [tells for tells in range(max(first, 1), now.tells + 1) if tells % max(1, tells // SHARE) == 0]
        if first == 0 or len(due) < IN_A_ROW:
            return None
        expected: float | None = None
        for tells in reversed(due[-IN_A_ROW:]):  # the newest first: it is the one that most often says no
            found = now.expected(tells)
            if found is None or found > self.gain:
                return None
            expected = found if expected is None else expected
        return f"the model expects at most {expected:.2g} of further improvement"

    def check(self, direction: str, *, limited: bool) -> None:
        """Refuse limits: better points that break them say nothing about what can be gained, so there is no bound."""
        if limited:
            raise _invalid(
                "stop_when: 'no improvement expected' does not fit a space with outcomes, where Bounce has no bound on "
                "what can be gained: write 'no improvement in N evaluations'"
            )


def _first_check(now: Standing) -> int:
    """Return after how many tells the model is asked for the first time; 0 if it is too early."""
    chosen = sorted(r.tell for r in now.records if r.proposed and r.told is not None)
    return chosen[FEWEST - 1] + 1 if len(chosen) >= FEWEST else 0


@dataclass(frozen=True)
class StopWhen:
    """A condition as it was written; it holds if one of its sentences does."""

    text: str
    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, given: object, direction: str, *, limited: bool = False) -> StopWhen:
        """Read a condition; refuse what is not one, or does not fit the direction of the run or limits on outcomes."""
        if isinstance(given, StopWhen):
            given = given.text
        if not isinstance(given, str) or not given.strip():
            raise _invalid(f"stop_when must be {SENTENCES}, not {quoted(given)}")
        conditions = tuple(_condition(part, given) for part in re.split(r"\s+or\s+", given.strip().lower()))
        for condition in conditions:
            condition.check(direction, limited=limited)
        return cls(given.strip(), conditions)

    def reached(self, now: Standing) -> str | None:
        """Return why the run should end; None if it should go on."""
        return next((why for condition in self.conditions if (why := condition.reached(now)) is not None), None)


def _invalid(sentence: str) -> InvalidOption:
    return InvalidOption(sentence, option="stop_when")


def _condition(part: str, given: str) -> Condition:
    words = " ".join(part.split())
    if found := re.fullmatch(r"no improvement expected above (\S+)", words):
        gain = _number(found[1], given)
        if gain <= 0:
            raise _invalid(f"stop_when: the improvement must be a positive number, not {found[1]!r}, in {given!r}")
        return Outlooks(gain)
    if found := re.fullmatch(r"no improvement in (\S+) evaluations?", words):
        if not re.fullmatch(r"[0-9]{1,10}", found[1]) or not 1 <= int(found[1]) <= LARGEST:
            raise _invalid(
                f"stop_when: the number of evaluations must be a whole number from 1 to {LARGEST}, not {found[1]!r}, "
                f"in {given!r}"
            )
        return Patience(int(found[1]))
    if found := re.fullmatch(r"value (below|above) (\S+)", words):
        return Target(_number(found[2], given), found[1] == "below")
    raise _invalid(f"stop_when must be {SENTENCES}, not {given!r}")


def _number(text: str, given: str) -> float:
    value = number(text)
    if value is None or not math.isfinite(value):
        raise _invalid(f"stop_when needs a finite number, not {text!r}, in {given!r}")
    return value
