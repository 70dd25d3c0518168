"""The course of a run: its first target space, the splits, the restarts, and the budget of each (algorithm 1)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from bounce.embedding import Embedding
from bounce.kernels import Hyper
from bounce.options import Options
from bounce.parameters import Codes
from bounce.schedule import Schedule
from bounce.space import Space
from bounce.state import Head
from bounce.trust_region import TrustRegion

logger = logging.getLogger("bounce")


@dataclass(frozen=True)
class Course:
    """Where a run goes from a head. `asked` counts its trials so far, `codes` (n, D) are their points."""

    space: Space
    options: Options

    @property
    def initial_dims(self) -> int:
        """The number of bins to begin with: 5, or 2 for reals alone, and at least one per kind."""
        default = 5 if len(self.space.combinatorial) else 2
        kinds = len(set(self.space.kinds))
        return min(max(self.options.initial_dims or default, kinds), len(self.space))

    @property
    def schedule(self) -> Schedule:
        """The schedule that fits the options."""
        return Schedule(
            input_dim=len(self.space),
            initial_dim=self.initial_dims,
            new_bins=self.options.new_bins,
            budget_to_input=self.options.budget_to_input or self.options.budget / 2,
            initial_points=self.options.initial_points,
        )

    def first(self, *, rng: np.random.Generator) -> Head:
        """Begin the run."""
        embedding = self._random(self.initial_dims, rng=rng)
        return self._fresh(embedding, space=0, restart=0, asked=0, codes=np.empty((0, len(self.space))), rng=rng)

    def next(self, head: Head, asked: int, codes: Codes, *, rng: np.random.Generator) -> Head:
        """Split the bins, or in the input space start again elsewhere (notes, decision 12)."""
        if head.embedding.is_input:
            logger.info("restart %d after %d trials", head.restart + 1, asked)
            embedding = self._random(len(self.space), rng=rng)
            return self._fresh(
                embedding, space=head.space + 1, restart=head.restart + 1, asked=asked, codes=codes, rng=rng
            )
        embedding = head.embedding.split(self.schedule.b, rng=rng)
        return replace(
            head,
            embedding=embedding,
            region=self._region(embedding, asked, codes),
            space=head.space + 1,
            entered=asked,
            hyper=_inherited(head, embedding),
        )

    def extended(self, head: Head, codes: Codes) -> Head:
        """Return the head of the same space under a new budget."""
        return replace(
            head,
            region=head.region.with_budget(self._share(head.embedding, head.entered, head.region.used, codes)),
        )

    def _random(self, n_bins: int, *, rng: np.random.Generator) -> Embedding:
        return Embedding.random(self.space, n_bins, low_sequency=self.options.low_sequency, rng=rng)

    def _fresh(
        self, embedding: Embedding, *, space: int, restart: int, asked: int, codes: Codes, rng: np.random.Generator
    ) -> Head:
        """Begin a space that nothing is known of, with initial points."""
        size = min(self.options.initial_points, self.options.budget - asked)
        return Head(
            embedding,
            self._region(embedding, asked + size, codes),
            space=space,
            restart=restart,
            entered=asked + size,
            design_seed=int(rng.integers(2**32)),
            design_size=size,
            design_used=0,
            hyper=None,
            fitted=0,
            fitted_space=-1,
        )

    def _region(self, embedding: Embedding, entered: int, codes: Codes) -> TrustRegion:
        latent = embedding.latent
        share = self._share(embedding, entered, 0, codes)
        logger.info("%d of %d dimensions, %d evaluations", len(latent), len(self.space), share)
        return TrustRegion.fresh(len(latent.combinatorial), len(latent.reals), share)

    def _share(self, embedding: Embedding, entered: int, used: int, codes: Codes) -> int:
        """Return the evaluations of a target space: the schedule's, capped by the run and by its points."""
        share: float = min(self.schedule.budget(len(embedding.members)), self.options.budget - entered)
        if not len(embedding.latent.reals):
            known = int(np.count_nonzero(embedding.down(codes)[1]))
            share = min(share, used + embedding.latent.size - known)
        return max(1, int(share))


def _inherited(head: Head, child: Embedding) -> Hyper | None:
    """Return the last hyperparameters, each new bin with the lengthscale of its parent."""
    if head.hyper is None:
        return None
    parents = head.embedding.parents(child)[child.latent.reals]
    place = np.searchsorted(head.embedding.latent.reals, parents)
    return replace(head.hyper, cont=head.hyper.cont[place])
