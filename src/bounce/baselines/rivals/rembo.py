"""REMBO: Bayesian optimization in a random linear subspace.

The map from latent points to the cube [−1, 1]^D is a matrix of independent normal numbers. The latent box is
[−√d, √d]^d, large enough to hold an optimum with a fair probability; most of its images leave the cube and are clipped,
so far from the centre many latent points have almost the same image. The kernel is k_Y: the model sees the latent
points as they are, not their images. All else is shared with HeSBO.

The invariant: after the common initial points, every proposed point is the image of a latent point, and the model knows
exactly the points that are.

Z. Wang, F. Hutter, M. Zoghi, D. Matheson, N. de Freitas. Bayesian Optimization in a Billion Dimensions via Random
Embeddings. JAIR 55, 2016.

Shapes: as in `hesbo`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bounce.baselines.rivals.hesbo import Embedding, Sampled


def gaussian_map(variables: int, d: int, *, rng: np.random.Generator) -> Embedding:
    """Draw REMBO's map: x = clip(A·z) with A_ij ~ N(0, 1), for z in [−√d, √d]^d."""
    return Embedding(rng.standard_normal((variables, d)), float(np.sqrt(d)))


class Rembo(Sampled):
    """REMBO with expected improvement and the kernel k_Y."""

    name: ClassVar[str] = "rembo"
    noise: ClassVar[float] = 1e-6

    def _embedding(self, d: int, *, rng: np.random.Generator) -> Embedding:
        return gaussian_map(len(self.space), d, rng=rng)
