"""The initial design: points chosen before anything is known (section 3, "Batch parallelism").

A Latin hypercube: every variable takes values from all parts of its range, and every category if there is room. The
first point has its numbers in the middle of their ranges. Or, as in the paper, reals follow a scrambled Sobol sequence
and all other variables are uniform (`Method.design`). No point comes twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounce.acquire.candidates import LISTED, Seen
from bounce.acquire.rules import Rules
from bounce.method import Method
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding

TRIES = 64  # draws for an unseen point, before the points are listed


def sobol(n_real: int, start: int, n: int, *, seed: int) -> Codes:
    """Return points start, …, start + n − 1 of the scrambled sequence that a seed names."""
    from scipy.stats import qmc  # slow to import, and of no use to combinatorial spaces

    engine = qmc.Sobol(n_real, scramble=True, rng=np.random.default_rng(seed))
    return on_grid(engine.random_base2(int(start + n - 1).bit_length())[start : start + n])


def latin(space: Space, n: int, *, seed: int) -> Codes:
    """Return the Latin hypercube of n points that a seed names.

    Each of n equal parts of a variable's range has one point. If a variable has at most n codes, all of them come
    equally often.
    """
    rng = np.random.default_rng(seed)
    z = np.empty((n, len(space)))
    for j, cardinality in enumerate(space.cardinalities.tolist()):
        strata = rng.permutation(n)
        if cardinality == 0:
            z[:, j] = on_grid((strata + rng.random(n)) / n)
        elif cardinality <= n:
            z[:, j] = rng.permutation(cardinality)[strata % cardinality]
        else:
            z[:, j] = np.minimum(np.floor((strata + rng.random(n)) / n * cardinality), cardinality - 1)
    return z


def centred(space: Space, z: Codes) -> Codes:
    """Return points of which the first has all its reals and ordinals in the middle of their ranges.

    In many dimensions the middle is nearer to wherever the best point is than almost any other point.
    """
    z = z.copy()
    z[0, space.reals] = 0.5
    ordinals = [j for j, kind in enumerate(space.kinds) if kind is Kind.ORDINAL]
    z[0, ordinals] = (space.cardinalities[ordinals] - 1) // 2
    return z


@dataclass(frozen=True)
class Design:
    """Where the initial points of a run, or of a restart, come from."""

    seed: int
    """The seed of the hypercube or of the Sobol sequence."""
    size: int
    """How many initial points there are to be."""
    used: int = 0
    """How many there have been; more than the size where no value came back."""


def initial_points(design: Design, n: int, seen: Seen, method: Method, *, rng: np.random.Generator) -> Codes:
    """Return up to n unseen latent points that follow those already used; fewer if there are no more."""
    latent = seen.embedding.latent
    chosen = np.empty((0, len(latent)))
    for row in _planned(design, n, seen.embedding, method):
        candidates = latent.sample(TRIES, rng=rng)
        if method.design != "sobol" or not len(latent.combinatorial):
            candidates[: len(row)] = row
        else:
            candidates[:, latent.reals] = row
        if seen.rules is not None:
            candidates = _drawn(candidates, seen.rules, rng=rng)
        fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            points = seen.embedding.points(LISTED)
            candidates = candidates[:0] if points is None else rng.permutation(points)
            if seen.rules is not None:
                candidates = seen.rules.proper(candidates)
            fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            break
        chosen = np.concatenate([chosen, candidates[fresh]])
        seen.take(candidates[fresh])
    return chosen


def _drawn(candidates: Codes, rules: Rules, *, rng: np.random.Generator) -> Codes:
    """Return what may become an initial point: what is planned if the structure allows it, then drawn points."""
    drawn = rules.drawn(candidates, rng=rng)
    return np.concatenate([rules.proper(np.concatenate([candidates[:1], drawn[:1]])), drawn])


def _planned(design: Design, n: int, embedding: Embedding, method: Method) -> list[Codes]:
    """Return what is planned of each of the next n points (1 or 0, ...): the whole point, its reals, or nothing.

    Few bins of many reals are not centred: on Branin in 100 dimensions one of eight runs never left the middle.
    """
    latent = embedding.latent
    if method.design != "sobol":
        rows = latin(latent, max(1, design.size), seed=design.seed)
        if method.design == "centred" and (embedding.is_input or len(latent.combinatorial)):
            rows = centred(latent, rows)
        return [rows[i : i + 1] for i in range(design.used, design.used + n)]
    if not len(latent.reals):
        return [np.empty((1, 0))] * n
    return [row[None] for row in sobol(len(latent.reals), design.used, n, seed=design.seed)]
