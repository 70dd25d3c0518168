"""The model of a run: the observations in latent codes, a Gaussian process on them, and what it proposes.

`Model` holds caches only, each a pure function of head and records: the latent codes of all trials, and the factor
built from the data of the last fit. Data come in a fixed order (those of the last fit, then what came since, both
by id), so that a restored run computes what the uninterrupted one does, bit for bit.

Of many observations, the model takes those nearest to the best one: the region lies there, and what is far away
says little about it. Where there are reals, hyperparameters are fitted to fewer of them, since such a fit takes
dozens of factors. So an ask takes no longer, however long a run lasts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bounce.candidates import Seen
from bounce.design import LISTED
from bounce.embedding import Embedding
from bounce.kernels import Kernel, Metric, squared_distance
from bounce.linalg import Array
from bounce.parameters import Codes
from bounce.region import Region
from bounce.search import Proposal, propose
from bounce.state import Head, Record, evidence
from bounce.surrogate import GP, clipped, cold, fit, standardized

logger = logging.getLogger("bounce")

REFIT_SHARE = 20  # hyperparameters are fitted again when one in so many observations is new
NEAREST = 512  # observations at the time of a fit; what comes after it is added
FITTED = 256  # those that hyperparameters are fitted to where there are reals, each with a lengthscale
PENDING_MOST = 512  # pending points that a proposal takes into account, the newest first


class Model:
    """A Gaussian process that follows a run."""

    def __init__(self) -> None:
        self._latents: tuple[Embedding, Codes] | None = None
        self._base: tuple[tuple[int, int], GP] | None = None

    def propose(
        self,
        head: Head,
        records: Sequence[Record],
        drafts: Sequence[Record],
        n: int,
        seen: Seen,
        *,
        sign: float,
        robust: bool,
        rng: np.random.Generator,
    ) -> tuple[Head, list[Proposal]]:
        """Choose up to n points beside the pending ones and this ask's drafts; return the head after a fit."""
        embedding, (data, values) = head.embedding, evidence(records, head.restart, sign)
        latents = self._latent(embedding, records)
        z = latents[[record.id for record in data]]
        done = np.array([record.trial.state == "done" for record in data])
        since = np.array([record.tell >= head.fitted for record in data])
        due = self._is_due(head, since)
        since &= not due
        base = _nearest(embedding, z, values, done, np.flatnonzero(~since), NEAREST)
        if due:
            most = FITTED if len(embedding.latent.reals) else NEAREST
            few = _nearest(embedding, z, values, done, base, most)
            y = standardized(_tame(values[base], robust))[np.searchsorted(base, few)]  # in the units of all
            head = self._fitted(head, data, z[few], y, robust)
        assert head.hyper is not None
        order = np.concatenate([base, np.flatnonzero(since)])
        z, y, done = z[order], standardized(_tame(values[order], robust)), done[order]
        if self._base is None or self._base[0] != (head.space, head.fitted):
            kernel = Kernel(embedding.latent, head.hyper)
            self._base = ((head.space, head.fitted), GP.at(kernel, z[: len(base)]))
        gp = self._base[1].extended(z[len(base) :], noise=head.hyper.noise)
        pending = [r.id for r in records if r.trial.state == "pending" and r.trial.restart == head.restart]
        beside = [latents[pending]]
        if drafts:
            beside.append(embedding.down(np.stack([draft.codes for draft in drafts]))[0])
        centre = z[int(np.argmin(np.where(done, y, np.inf)))]
        reals = embedding.latent.reals
        box = head.region.box(centre[reals], head.hyper.cont) if len(reals) else np.empty((2, 0))
        chosen = propose(
            gp,
            y - gp.mean(y),
            np.concatenate(beside)[-PENDING_MOST:],
            Region(embedding.latent, centre, head.region.radius, box),
            n,
            seen,
            lambda: _everything(embedding),
            robust=robust,
            rng=rng,
        )
        return head, chosen

    def _latent(self, embedding: Embedding, records: Sequence[Record]) -> Codes:
        """Return the latent codes of all trials; those from before a restart have some too, which mean nothing."""
        cached = self._latents[1] if self._latents and self._latents[0] is embedding else None
        known = 0 if cached is None else len(cached)
        if known < len(records):
            new = embedding.down(np.stack([record.codes for record in records[known:]]))[0]
            cached = new if cached is None else np.concatenate([cached, new])
            self._latents = (embedding, cached)
        assert cached is not None
        return cached

    @staticmethod
    def _is_due(head: Head, since: NDArray[np.bool_]) -> bool:
        """Say whether to fit the hyperparameters again: the space is new, or enough observations are."""
        new = int(np.count_nonzero(since))
        used = min(len(since) - new, NEAREST) + new
        return head.hyper is None or head.fitted_space != head.space or new * REFIT_SHARE >= used

    @staticmethod
    def _fitted(head: Head, data: Sequence[Record], z: Codes, y: Array, robust: bool) -> Head:
        """Fit the hyperparameters to some of the data."""
        latent = head.embedding.latent
        starts = [cold(latent)]
        # Among reals alone, a fit that starts from the last one keeps the variables it once took for important:
        # on Branin in 100 dimensions the mean best of 20 seeds was 0.61 so, and 0.47 afresh. With other kinds
        # there are few lengthscales, and the last fit is the better start.
        if head.hyper is not None and len(latent.combinatorial):
            starts = [head.hyper, *starts] if head.fitted_space != head.space else [head.hyper]
        hyper = fit(latent, z, y, starts, apart=robust)
        logger.debug("fit to %d observations: %s", len(z), hyper)
        return replace(head, hyper=hyper, fitted=max(record.tell for record in data) + 1, fitted_space=head.space)


def _tame(values: Array, robust: bool) -> Array:
    return clipped(values) if robust else values


def _nearest(
    embedding: Embedding, z: Codes, values: Array, done: NDArray[np.bool_], among: NDArray[np.intp], most: int
) -> NDArray[np.intp]:
    """Return those of some observations that are nearest to the best of them, by id; all if they are few."""
    if len(among) <= most:
        return among
    z = z[among]
    centre = z[np.argmin(np.where(done[among], values[among], np.inf))][None]
    reals = embedding.latent.reals
    d2 = Metric(embedding.latent)(z, centre)[:, 0] + squared_distance(z[:, reals], centre[:, reals])[:, 0]
    nearest = np.lexsort((-among, d2))[:most]  # of equally near ones, the newest
    return among[np.sort(nearest)]


def _everything(embedding: Embedding) -> Codes:
    points = embedding.points(LISTED)
    return np.empty((0, len(embedding.members))) if points is None else points
