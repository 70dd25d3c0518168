"""Repeats: a point that is evaluated once more, because its value may be a lucky one.

Of noisy values the lowest is mostly luck, and a search around it is led astray. A second value of the point that the
model believes to be the best tells merit from luck.

The invariant: points are repeated only while the values look noisy. The model cannot predict much of their variance,
each value from all others, and earlier repeats did not return the very values they repeat. A fitted noise says less:
without repeats, short lengthscales explain noise as well. A point whose value was told to be exact is not repeated.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bounce.optimizer.state import Record, spent
from bounce.trial import VALUED

NOISY_ENOUGH = 0.4  # the share of the variance that the model cannot predict, from which on values look noisy
FEWEST = 20  # values before the first repeat: a fit to fewer predicts little anyway
AGREEING = 2  # repeats that return the values they repeat, and none that does not: the values are exact


def due(records: Sequence[Record], drafts: Sequence[Record], n: int, every: int | None) -> int:
    """Return how many of the next n trials after the drafts are to be repeats, if values look noisy."""
    if every is None or sum(r.trial.state in VALUED for r in records) < FEWEST or are_exact(records):
        return 0
    asked = spent(records) + len(drafts)
    return sum((asked + k) % every == 0 for k in range(n))


def are_exact(records: Sequence[Record]) -> bool:
    """Return whether repeats have shown that the values have no noise.

    A repeat says nothing of it if another point was used than the one that it repeats.
    """
    pairs = [(r, records[r.trial.repeats]) for r in records if r.trial.repeats is not None]
    known = [(one, other) for one, other in pairs if {one.trial.state, other.trial.state} <= set(VALUED)]
    equal = [one.value == other.value for one, other in known if np.array_equal(one.codes, other.codes)]
    return all(equal) and len(equal) >= AGREEING


def firsts(found: Sequence[Record], keys: Sequence[bytes]) -> NDArray[np.intp]:
    """Return the first trial with a value at the point of each of some trials, given the keys of all points.

    A trial whose point has no value is its own.
    """
    first = {keys[r.id]: r.id for r in reversed(found) if r.trial.state in VALUED}
    return np.array([first.get(keys[r.id], r.id) for r in found], dtype=np.intp)


def to_repeat(bounds: Mapping[int, float], busy: Container[int | None], n: int) -> list[int]:
    """Return up to n trials to repeat, those with the lowest bounds first, given the bounds of those that may be.

    Those whose points are being evaluated already are left out.
    """
    return [i for i in sorted(bounds, key=lambda i: (bounds[i], i)) if i not in busy][:n]
