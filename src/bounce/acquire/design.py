"""The initial design: points chosen before anything is known (section 3, "Batch parallelism").

Reals follow a scrambled Sobol sequence, all other variables are uniform; no point comes twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounce.acquire.candidates import LISTED, Seen
from bounce.spaces.kinds import Codes, on_grid

TRIES = 64  # draws for an unseen point, before the points are listed


def sobol(n_real: int, start: int, n: int, *, seed: int) -> Codes:
    """Return points start, …, start + n − 1 of the scrambled sequence that a seed names."""
    from scipy.stats import qmc  # slow to import, and of no use to combinatorial spaces

    engine = qmc.Sobol(n_real, scramble=True, rng=np.random.default_rng(seed))
    return on_grid(engine.random_base2(int(start + n - 1).bit_length())[start : start + n])


@dataclass(frozen=True)
class Design:
    """Where the initial points of a run, or of a restart, come from."""

    seed: int
    """The seed of the Sobol sequence."""
    size: int
    """How many initial points there are to be."""
    used: int = 0
    """How many there have been; more than the size where no value came back."""


def initial_points(design: Design, n: int, seen: Seen, *, rng: np.random.Generator) -> Codes:
    """Return up to n unseen latent points that follow those already used; fewer if there are no more."""
    latent = seen.embedding.latent
    reals = sobol(len(latent.reals), design.used, n, seed=design.seed) if len(latent.reals) else np.empty((n, 0))
    chosen = np.empty((0, len(latent)))
    for row in reals:
        candidates = latent.sample(TRIES, rng=rng)
        if len(latent.combinatorial):
            candidates[:, latent.reals] = row
        else:
            candidates[0, latent.reals] = row
        fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            points = seen.embedding.points(LISTED)
            candidates = candidates[:0] if points is None else rng.permutation(points)
            fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            break
        chosen = np.concatenate([chosen, candidates[fresh]])
        seen.take(candidates[fresh])
    return chosen
