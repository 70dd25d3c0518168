"""Stages: the sequence of target spaces that a run goes through (algorithm 1).

A stage is one embedding with one trust region and a share of the budget. When its region has collapsed, the bins
are split; in the input space, where nothing is left to split, the region reopens or the run restarts.

The invariant: after a split, every point of the old stage's embedding is a point of the new one's. A stage that is
anchored, or that follows a change of the space or a restart, has an embedding of its own.

Shapes: codes (n, D) of all trials so far.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from bounce.method import Method
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.subspace.schedule import Schedule
from bounce.subspace.trust_region import TrustRegion

logger = logging.getLogger("bounce")


@dataclass(frozen=True, eq=False)
class Stage:
    """One target space of a run."""

    number: int
    restart: int
    """How many restarts preceded it."""
    entered: int
    """How many trials had been asked for when it began, its initial points included."""
    embedding: Embedding
    region: TrustRegion

    @property
    def latent(self) -> Space:
        """The target space."""
        return self.embedding.latent


@dataclass(frozen=True)
class Stages:
    """Which stage follows which, for one space, budget and schedule."""

    space: Space
    budget: int
    schedule: Schedule
    method: Method
    low_sequency: bool = False

    def first(self, *, rng: np.random.Generator) -> Stage:
        """Return the first stage; its initial points are counted as entered."""
        embedding = self._random(self.schedule.initial_dim, rng=rng)
        return self._begun(embedding, 0, 0, self._design(0), np.empty((0, len(self.space))))

    def next(self, stage: Stage, codes: Codes, *, asked: int, rng: np.random.Generator) -> Stage:
        """Return the stage after one whose region has collapsed, when `asked` trials have been asked for."""
        number = stage.number + 1
        if not stage.embedding.is_input:
            embedding = stage.embedding.split(self.schedule.b, rng=rng)
            return self._begun(embedding, number, stage.restart, asked, codes)
        if self.method.restart == "reopen":
            logger.info("the region reopens after %d trials", asked)
            return self._begun(stage.embedding, number, stage.restart, asked, codes)
        # Notes, decision 12: again in the input space, from new points.
        logger.info("restart %d after %d trials", stage.restart + 1, asked)
        embedding = self._random(len(self.space), rng=rng)
        return self._begun(embedding, number, stage.restart + 1, asked + self._design(asked), codes)

    def extended(self, stage: Stage, codes: Codes, *, asked: int) -> Stage:
        """Return the same stage, with its share of what is now the budget.

        A region that collapsed in the input space did so because the run was to end: it reopens.
        """
        if stage.region.collapsed and stage.embedding.is_input:
            return self._begun(stage.embedding, stage.number + 1, stage.restart, asked, codes)
        share = self._share(stage.embedding, stage.entered, stage.region.used, codes)
        return replace(stage, region=stage.region.with_budget(share))

    def moved(
        self, stage: Stage, n_bins: int, anchor: Codes | None, codes: Codes, *, asked: int, rng: np.random.Generator
    ) -> Stage:
        """Return the stage that follows one of another space, anchored at a point of this one."""
        embedding = self._random(n_bins, rng=rng)
        if anchor is not None and not embedding.is_input:
            embedding = embedding.anchored(anchor, rng=rng)
        return self._begun(embedding, stage.number + 1, stage.restart, asked, codes)

    def _design(self, asked: int) -> int:
        """Return how many initial points there is budget for."""
        return min(self.schedule.initial_points, self.budget - asked)

    def _random(self, n_bins: int, *, rng: np.random.Generator) -> Embedding:
        return Embedding.random(self.space, n_bins, low_sequency=self.low_sequency, rng=rng)

    def _begun(self, embedding: Embedding, number: int, restart: int, entered: int, codes: Codes) -> Stage:
        latent = embedding.latent
        share = self._share(embedding, entered, 0, codes)
        logger.info("%d of %d dimensions, %d evaluations", len(latent), len(self.space), share)
        region = TrustRegion.fresh(len(latent.combinatorial), len(latent.reals), share)
        return Stage(number, restart, entered, embedding, region)

    def _share(self, embedding: Embedding, entered: int, used: int, codes: Codes) -> int:
        """Return the evaluations of a stage: the schedule's, limited by the run and by its unseen points."""
        share: float = min(self.schedule.budget(len(embedding.members)), self.budget - entered)
        if not len(embedding.latent.reals):
            known = len(np.unique(codes[embedding.down(codes)[1]], axis=0))
            share = min(share, used + embedding.latent.size - known)
        return max(1, int(share))
