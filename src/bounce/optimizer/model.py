"""The model of a run: data in latent codes, a Gaussian process fitted to them, and the search for proposals.

`Model` holds caches only, each a pure function of head and records: the latent codes of all trials, and the factor
built from the data of the last fit. Data come in a fixed order (those of the last fit, then what came since, both
by id), so that a restored run computes what the uninterrupted one does, bit for bit.

Of many observations, the model takes those nearest to the best one: the region lies there, and what is far away
says little about it. Where there are reals, hyperparameters are fitted to fewer of them, since such a fit needs
dozens of factors. So an ask takes no longer, however long a run lasts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.candidates import Seen
from bounce.acquire.doubt import earned, since_progress
from bounce.acquire.feasibility import Belief, Limits
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.acquire.neighbourhood import Neighbourhood
from bounce.acquire.rules import Rules
from bounce.gp.fit import cold, fit_and_value, noise_of, settled
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import BENDS, bent, targets
from bounce.method import Method
from bounce.optimizer.data import Data, errors_of, nearest_to, ranked
from bounce.optimizer.foreign import points_of
from bounce.optimizer.limits import Group, believed, groups
from bounce.optimizer.repeats import NOISY_ENOUGH, due, firsts, to_repeat
from bounce.optimizer.state import Fit, Head, Record, evidence
from bounce.spaces.outcomes import Limit
from bounce.subspace.embedding import Embedding
from bounce.subspace.stages import Stage
from bounce.trial import VALUED

logger = logging.getLogger("bounce")

REFIT_SHARE = 20  # hyperparameters are fitted again when one in this many observations is new (`Method.refits`)
NOISY = 0.05  # the share of the noise in the fitted variance above which the lowest value may be luck
PENDING_MOST = 512  # pending points that a proposal takes into account, the newest first: a bound on its time


def structured(region: Neighbourhood, rules: Rules) -> Neighbourhood:
    """Return a neighbourhood with room for what a structure needs.

    Two members of a composite can be exchanged. What is inactive at the centre may wake up with any value.
    """
    asleep = rules.asleep(region.centre)
    box = region.box.copy()
    box[:, np.isin(region.space.reals, asleep)] = [[0.0], [1.0]]
    changes = max(region.changes, 2) if rules.structure.composites else region.changes
    return replace(region, changes=changes, box=box, asleep=asleep)


class Model:
    """A Gaussian process that follows a run."""

    def __init__(self, method: Method, noise: str | float = "auto", limits: Sequence[Limit] = ()) -> None:
        self._method, self._noise, self._limits = method, noise, limits
        self._seen_from: tuple[Embedding, Points] | None = None
        self._known_keys = list[bytes]()
        self._base: tuple[tuple[int, int, int | None, float, bytes, bytes], GP] | None = None

    def propose(
        self,
        head: Head,
        records: Sequence[Record],
        drafts: Sequence[Record],
        n: int,
        *,
        seen: Seen,
        sign: float,
        rng: np.random.Generator,
    ) -> tuple[Head, list[Proposal], list[int]]:
        """Choose up to n points beside the pending ones and this ask's drafts, some of them trials to be repeated.

        Return the head after a fit, the new points, and the ids of the trials to be repeated.
        """
        data, before = self._data(head, records, sign), head.fit
        head, order, base = self._fitted(head, data)
        search = self._search(head, data, order, base, seen)
        known = groups(records, head.stage.restart, self._limits, self._method)
        if known or self._limits:
            head, beliefs = self._believed(head, records, known, data, refit=head.fit is not before)
            held = (data.done if data.held is None else data.held)[order]
            best = float(np.min(search.y[held], initial=np.inf))
            search = replace(search, limits=Limits(beliefs, best) if beliefs else None)
        if self._method.doubt is not None:
            stalled, won = _stalled(head, records, sign, bool(self._limits))
            steady = self._method.tolerance == "fixed"
            search = replace(search, stalled=stalled + len(drafts), earned=0 if steady else won)
        search = replace(search, asked=len(records) + len(drafts))
        count = 0 if self._noise == "none" else due(records, drafts, n, self._method.repeats)
        noisy = count > 0 and _unexplained(search) > NOISY_ENOUGH
        again = self._again(head, records, drafts, _bounds(search, data, order), count) if noisy else []
        return head, propose(search, self._pending(head, records, drafts), n - len(again), rng=rng), again

    def _data(self, head: Head, records: Sequence[Record], sign: float) -> Data:
        found, values = evidence(records, head.stage.restart, sign, self._method)
        ids = np.array([record.id for record in found], dtype=np.intp)
        points = self._points(head.stage.embedding, records)[ids]
        done = np.array([record.trial.state in VALUED for record in found])
        tells = np.array([record.tell for record in found])
        known = errors_of(found), *ranked(found, sign, self._limits)
        first = ids if self._method.repeats is None else firsts(found, self._keys(head.stage.embedding, records))
        return Data(head.stage.latent, points, values, done, tells, *known, first=first)

    def _believed(
        self, head: Head, records: Sequence[Record], known: Sequence[Group], data: Data, *, refit: bool
    ) -> tuple[Head, list[Belief]]:
        """Return what is believed about limits, and the head after fits that are due: with those of the values."""
        assert head.fit is not None
        latent, points = head.stage.latent, self._points(head.stage.embedding, records)
        centre = data.points[np.array([int(np.argmin(data.merit))])]

        def nearest(ids: NDArray[np.intp], most: int | None) -> NDArray[np.intp]:
            few = most is None or len(ids) <= most
            return ids if few or most is None else nearest_to(centre, latent, points[ids], ids, most)

        fitted, beliefs = dict[str, Hyper](), list[Belief]()
        for group in known:
            last = head.fit.beliefs.get(group.name)
            starts = [cold(latent)] if last is None or not len(latent.combinatorial) else [last]
            belief, fitted[group.name] = believed(
                group,
                latent,
                points,
                nearest,
                self._method,
                starts=starts if refit or last is None else None,
                hyper=last,
                exact=self._noise == "none",
            )
            beliefs.append(belief)
        return replace(head, fit=replace(head.fit, beliefs=fitted)), beliefs

    def _points(self, embedding: Embedding, records: Sequence[Record]) -> Points:
        """Return all trials as the stage sees them."""
        cached = self._seen_from[1] if self._seen_from and self._seen_from[0] is embedding else None
        known = 0 if cached is None else len(cached)
        if known < len(records):
            new = points_of(embedding, np.stack([record.codes for record in records[known:]]))
            cached = new if cached is None else cached.joined(new)
            self._seen_from = (embedding, cached)
        assert cached is not None
        return cached

    def _keys(self, embedding: Embedding, records: Sequence[Record]) -> list[bytes]:
        """Return the keys of all points: equal exactly where the points are."""
        new = [record.codes for record in records[len(self._known_keys) :]]
        self._known_keys += embedding.inputs.keys(np.stack(new)) if new else []
        return self._known_keys

    def _again(
        self, head: Head, records: Sequence[Record], drafts: Sequence[Record], bounds: Mapping[int, float], n: int
    ) -> list[int]:
        """Return up to n trials to repeat whose points are not being evaluated."""
        keys = self._keys(head.stage.embedding, records)
        pending = {keys[record.id] for record in records if record.trial.state == "pending"}
        busy = {i for i in bounds if keys[i] in pending} | {draft.trial.repeats for draft in drafts}
        return to_repeat(bounds, busy, n)

    def _fitted(self, head: Head, data: Data) -> tuple[Head, NDArray[np.intp], int]:
        """Fit the hyperparameters if a fit is due; return the order of the data, and how many a fit has seen."""
        method = self._method
        since = data.tells >= (0 if head.fit is None else head.fit.tells)
        due = self._is_due(head, since)
        since &= not due
        base = data.nearest(np.flatnonzero(~since), method.nearest)
        if due:
            few = data.nearest(base, method.nearest_fit if len(data.latent.reals) else method.nearest)
            place = np.searchsorted(base, few)
            y = targets(data.values[base], method)
            fitting = _fitting(method, head.stage)
            known, fixed = data.noise(base, method, self._noise)
            known = None if known is None else known[place]
            best: tuple[float, float, Hyper, Array] | None = None
            for bend in self._bends(head, known):
                t, jacobian = bent(y, bend)
                starts = self._starts(head) if best is None else [best[2]]
                how = fitting if best is None else replace(fitting, climbs="one")
                hyper, value = fit_and_value(
                    data.latent, data.points[few], t[place], starts, how, known=known, fixed=fixed
                )
                value += jacobian * len(few) / len(base)
                if best is None or value > best[0]:
                    best = value, bend, hyper, t[place]
            assert best is not None
            _, bend, hyper, t = best
            hyper = settled(data.latent, data.points[few], t, hyper, fitting, known=known, fixed=fixed)
            logger.debug("fit to %d observations: %s", len(few), hyper)
            beliefs = {} if head.fit is None else head.fit.beliefs
            tells = int(data.tells.max()) + 1
            head = replace(head, fit=Fit(hyper, tells, stage=head.stage.number, bend=bend, beliefs=beliefs))
        return head, np.concatenate([base, np.flatnonzero(since)]), len(base)

    def _bends(self, head: Head, known: Array | None) -> list[float]:
        """Return the bends of the targets to choose from: the last one and those beside it."""
        if not self._method.bend or known is not None or not isinstance(self._noise, str):
            return [0.0]  # told errors are in the units of targets as they are
        at = BENDS.index(head.fit.bend) if head.fit is not None else 0
        return [BENDS[i] for i in (at, at - 1, at + 1) if 0 <= i < len(BENDS)]

    def _is_due(self, head: Head, since: NDArray[np.bool_]) -> bool:
        """Return whether to fit the hyperparameters: the stage is new, or enough observations are."""
        new = int(np.count_nonzero(since))
        if head.fit is None or head.fit.stage != head.stage.number:
            return True
        if self._method.refits == "every-ask":
            return new > 0
        old = len(since) - new
        used = old if self._method.nearest is None else min(old, self._method.nearest)
        return new * REFIT_SHARE >= used + new

    @staticmethod
    def _starts(head: Head) -> list[Hyper]:
        """Return where a fit starts.

        Among reals alone, a fit that starts from the last one keeps the variables it once considered important: on
        Branin in 100 dimensions the mean best of 20 seeds was 0.61 with it, and 0.47 from a cold start. With other
        kinds there are few lengthscales, and the last fit is the better start.
        """
        latent, last = head.stage.latent, head.fit
        if last is None or not len(latent.combinatorial):
            return [cold(latent)]
        return [last.hyper, cold(latent)] if last.stage != head.stage.number else [last.hyper]

    def _search(self, head: Head, data: Data, order: NDArray[np.intp], base: int, seen: Seen) -> Search:
        """Condition the process on the data, and say where to look."""
        assert head.fit is not None
        stage, hyper = head.stage, head.fit.hyper
        points, y = data.points[order], targets(data.values[order], self._method, head.fit.bend)
        grain = 1 if data.points.foreign is None else data.points.foreign.grain
        known, fixed = data.noise(order, self._method, self._noise)
        if fixed is not None:
            hyper = replace(hyper, noise=fixed)
        noise = np.full(len(order), hyper.noise) if known is None else noise_of(hyper, known)
        key = (stage.number, head.fit.tells, grain, hyper.noise, noise[:base].tobytes(), order[:base].tobytes())
        if self._base is None or self._base[0] != key:
            self._base = (key, GP.at(Kernel(stage.latent, hyper, grain), points[:base], noise[:base]))
        gp = self._base[1].extended(points[base:], noise=noise[base:])
        merit = np.where(data.done[order], y, np.inf)
        merit = data.merit[order] if self._limits else _on_average(merit, data.first[order])
        centre = points.z[int(np.argmin(merit))]
        reals, box = stage.latent.reals, np.empty((2, 0))
        if len(reals):
            box = stage.region.box(centre[reals], hyper.real_lengthscales, cap=self._cap(stage))
        region = Neighbourhood(stage.latent, centre, stage.region.changes, box, self._method)
        if self._limits and self._method.limit_changes == "two":
            region = replace(region, changes=max(region.changes, min(2, len(stage.latent.combinatorial))))
        if seen.rules is not None:
            region = structured(region, seen.rules)
        mean = gp.mean(y) if self._method.mean == "constant" else 0.0
        noisy = hyper.noise > NOISY * (hyper.noise + hyper.signal)
        return Search(gp, y - mean, region, seen, believes=noisy and self._method.incumbent == "believed")

    def _cap(self, stage: Stage) -> float | None:
        """Return the cap of lengthscales when the box is shaped."""
        everywhere = self._method.capped == "everywhere"
        return self._method.box_cap if everywhere or len(stage.latent.combinatorial) else None

    def _pending(self, head: Head, records: Sequence[Record], drafts: Sequence[Record]) -> Points:
        """Return what is pending, this ask's drafts last."""
        stage = head.stage
        ids = [r.id for r in records if r.trial.state == "pending" and r.trial.restart == stage.restart]
        pending = self._points(stage.embedding, records)[np.array(ids, dtype=np.intp)]
        if drafts:
            pending = pending.joined(points_of(stage.embedding, np.stack([draft.codes for draft in drafts])))
        return pending[slice(-PENDING_MOST, None)]


def _unexplained(search: Search) -> float:
    """Return the share of the variance of the targets that the model cannot predict: of each from all others."""
    spread = float(search.y.var())
    return float((search.gp.left_out(search.y) ** 2).mean()) / spread if spread else 0.0


def _bounds(search: Search, data: Data, order: NDArray[np.intp]) -> dict[int, float]:
    """Return bounds of the true values of trials, by id: the posterior mean, worsened by one standard deviation.

    With limits on outcomes, they are those of trials that keep them, once there is one. Points whose value is told to
    be exact are left out.
    """
    mean, variance = search.gp.posterior(search.gp.points, search.y)
    held = (data.done if data.held is None or not data.held.any() else data.held)[order]
    held &= ~np.isin(data.first, data.first[data.errors == 0])[order]
    first, bounds = data.first[order][held], (mean + np.sqrt(variance))[held]
    return dict(zip(first.tolist(), bounds.tolist(), strict=True))


def _on_average(merit: Array, first: NDArray[np.intp]) -> Array:
    """Return the merit (n,) of points that were evaluated several times: the mean over what is finite."""
    groups, of, counts = np.unique(first, return_inverse=True, return_counts=True)
    if counts.max(initial=0) <= 1:
        return merit
    known = np.isfinite(merit)
    sums = np.bincount(of[known], merit[known], len(groups))
    return np.where(known, sums[of] / np.maximum(np.bincount(of[known], minlength=len(groups)), 1)[of], merit)


def _fitting(method: Method, stage: Stage) -> Method:
    """Return the method of a fit in a stage: bins of many reals, most of which may not matter, are not tied."""
    sparse = not stage.embedding.is_input and not len(stage.latent.combinatorial)
    return replace(method, real_lengthscales="apart") if sparse else method


def _stalled(head: Head, records: Sequence[Record], sign: float, limited: bool) -> tuple[int, int]:
    """Return how many trials after the initial design have come without progress, and what doubt has earned in them.

    Only values that keep the limits count as progress.
    """
    spent = [r for r in records if r.spent and r.trial.restart == head.stage.restart and r.trial.repeats is None]
    asked = [record.trial for record in spent]
    without = [trial.value is None or (limited and not trial.feasible) for trial in asked]
    values = np.array([np.nan if no else sign * (t.value or 0.0) for t, no in zip(asked, without, strict=True)])
    stalled = min(since_progress(values), len(asked) - head.design.used)
    # Auditions count too: they also try what the model does not believe in.
    tests = [not (r.proposed or r.enqueued) and r.trial.state != "pending" for r in spent]
    doubting = np.array(tests, dtype=np.bool_)
    doubting[: len(asked) - stalled] = False
    return stalled, earned(values, doubting)
