"""The remainder: points beside those that are known, for spaces of which random draws find hardly any.

Where conditions and constraints leave a few points of very many combinations, most points are next to other ones: one
variable, one member of a subset or one exchange of two items away, or between two of them. So they are looked for
there, and where random points end up that break constraints less and less.

The invariant: what is returned is allowed, and if the changes that are tried connect all points, the search ends only
when every point is known.

Shapes: x (n, D) input codes; z (m, d) latent codes of an embedding of the whole input space.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bounce.acquire.candidates import Seen
from bounce.acquire.rules import Rules
from bounce.spaces.kinds import Codes, on_grid

TOGETHER = 16  # known points whose neighbours are looked at together
CHANGES = 4096  # of these, changes of one variable, at most
REPAIRED = 64  # random points on their way to an allowed one
ROUNDS = 4  # of such points


def remaining(seen: Seen, known: Codes, n: int, *, rng: np.random.Generator) -> Codes:
    """Return up to n unseen latent points, found from the known input points; none if no more can be found."""
    found = last = _beside(seen, known, n, rng=rng)
    while len(last) > 0 and len(found) < n:  # beside those that were just found
        last = _beside(seen, seen.embedding.up(last), n - len(found), rng=rng)
        found = np.concatenate([found, last])
    return found


def _beside(seen: Seen, known: Codes, n: int, *, rng: np.random.Generator) -> Codes:
    """Take up to n unseen points beside known ones, and return them."""
    found = np.empty((0, len(seen.embedding.members)))
    if seen.rules is None:
        return found
    for x in _neighbours(seen.rules, known, rng=rng):
        keys = seen.embedding.inputs.keys(x)
        new = [i for i, key in enumerate(keys) if key not in seen.known and key not in seen.taken]
        z = seen.rules.proper(seen.embedding.down(x[new])[0])
        z = z[seen.first_fresh(z, n - len(found))]
        seen.take(z)
        found = np.concatenate([found, z])
        if len(found) == n:
            break
    return found


def _neighbours(rules: Rules, known: Codes, *, rng: np.random.Generator) -> Iterator[Codes]:
    """Yield canonical points that differ little from known ones, and points that were made to be allowed."""
    structure = rules.structure
    known = structure.canonical(known[structure.allowed(known)])
    if structure.constraints:
        known = np.concatenate([known, structure.walks.witnesses])
    known = known[rng.permutation(len(known))]
    for start in range(0, len(known), TOGETHER):
        some = known[start : start + TOGETHER]
        yield structure.canonical(_changed(rules, some, rng=rng))
        yield np.concatenate([structure.moves(row, rng=rng) for row in some])
    if len(known):
        yield structure.canonical(_between(rules, known, rng=rng))
    for _ in range(ROUNDS if structure.constraints else 0):
        yield structure.walks.repaired(structure.drawn(REPAIRED, rng=rng), rng=rng)


def _changed(rules: Rules, some: Codes, *, rng: np.random.Generator) -> Codes:
    """Return points with another code of one variable: all of these changes, or many random ones."""
    cards = rules.structure.space.cardinalities
    column = np.repeat(np.arange(len(cards)), np.maximum(cards - 1, 1))  # a real moves once
    row, change = np.divmod(np.arange(len(some) * len(column)), len(column))
    if len(row) > CHANGES:
        chosen = rng.choice(len(row), CHANGES, replace=False)
        row, change = row[chosen], change[chosen]
    first = np.searchsorted(column, np.arange(len(cards)))
    at = column[change]
    other = (some[row, at] + 1 + change - first[at]) % np.maximum(cards[at], 1)
    x, each = some[row], np.arange(len(row))
    x[each, at] = np.where(cards[at] > 0, other, on_grid(rng.random(len(row))))
    return x


def _between(rules: Rules, known: Codes, *, rng: np.random.Generator) -> Codes:
    """Return points whose reals lie between those of two known points: linear constraints that both satisfy hold."""
    reals = rules.structure.space.reals
    x, other = (known[rng.integers(0, len(known), CHANGES)] for _ in range(2))
    share = rng.random((CHANGES, 1))
    x[:, reals] = on_grid(x[:, reals] + share * (other[:, reals] - x[:, reals]))
    return x
