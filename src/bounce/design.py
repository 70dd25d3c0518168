"""The initial design: points chosen before anything is known (section 3, "Batch parallelism").

Reals follow a scrambled Sobol sequence, all other variables are uniform; no point comes twice.
"""

from __future__ import annotations

import numpy as np

from bounce.candidates import Seen
from bounce.embedding import Embedding
from bounce.parameters import Codes, on_grid

TRIES = 64
LISTED = 100_000  # a space with at most this many points is listed when chance finds no new one


def sobol(n_cont: int, start: int, n: int, *, seed: int) -> Codes:
    """Return points start, …, start + n − 1 of the scrambled sequence that a seed names."""
    from scipy.stats import qmc  # slow to import, and of no use to combinatorial spaces

    engine = qmc.Sobol(n_cont, scramble=True, rng=np.random.default_rng(seed))
    return on_grid(engine.random_base2(int(start + n - 1).bit_length())[start : start + n])


def initial_points(
    embedding: Embedding, start: int, n: int, seen: Seen, *, seed: int, rng: np.random.Generator
) -> Codes:
    """Return up to n unseen latent points, from place `start` of the sequence; fewer if there are no more."""
    latent = embedding.latent
    reals = sobol(len(latent.reals), start, n, seed=seed) if len(latent.reals) else np.empty((n, 0))
    chosen = np.empty((0, len(latent)))
    for row in reals:
        candidates = latent.sample(TRIES, rng=rng)
        if len(latent.combinatorial):
            candidates[:, latent.reals] = row
        else:
            candidates[0, latent.reals] = row
        fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            listed = embedding.points(LISTED)
            candidates = np.empty((0, len(latent))) if listed is None else rng.permutation(listed)
            fresh = seen.first_fresh(candidates, 1)
        if not len(fresh):
            break
        chosen = np.concatenate([chosen, candidates[fresh]])
        seen.take(candidates[fresh])
    return chosen
