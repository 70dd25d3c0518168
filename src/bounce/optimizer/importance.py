"""Importance: how much each parameter matters, and with whom.

From the model: a process is fitted to all results in the input space, and the variance of its mean over the whole space
is shared among the parameters (`sensitivity`). How sure that is follows from functions drawn from the same process.
Whether a parameter does nothing anywhere, or only where the search has settled, is looked at again in fewer results
that are spread out (`looks`). Whether another one could have done its part is tried out (`substitutes`). From the data
alone: what the best trials have in common (`densities`). The invariant: nothing changes, and the same trials give the
same answer.

Shapes: codes (n, D); functions (n, 1 + s), the posterior mean first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.gp.paths import Paths
from bounce.gp.points import Points
from bounce.gp.targets import Scale
from bounce.optimizer.data import Data, errors_of
from bounce.optimizer.densities import importances
from bounce.optimizer.looks import Look, plain
from bounce.optimizer.options import Options
from bounce.optimizer.sensitivity import Sample, averaged, codes_at, design
from bounce.optimizer.state import Record, best_of, evidence
from bounce.optimizer.substitutes import Substitutes
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.trial import VALUED, Scalar

Verdict = Literal["matters", "unclear", "inert"]
Band = tuple[float, float]
FEWEST = 8  # values, below which there is no model
MOST = 400  # observations of the model, spread over the run: a bound on its time
FUNCTIONS = 24  # drawn from the posterior
ROWS = 2**15  # points at which functions are evaluated for the indices, about
SIZES = (64, 512)  # least and most points of each sample of the design
OTHERS = 64  # points over which an effect is averaged
STEPS = 21  # values of a curve
CELLS = 11  # values of each parameter of a surface
LISTED = 64  # values of a parameter of which each has its own effect
CURVES = 16  # parameters with an effect, the most important ones
PAIRED = 10  # parameters whose pairs are examined, the most important ones
SURFACES = 3  # pairs with a surface
BEST = 0.4  # of the trials are the best ones (`densities`)
BAND = (0.05, 0.95)  # the quantiles that intervals show
INERT = 0.02  # a parameter that explains less of the variance for sure does not matter
CHANCE = 0.05  # unless the data of a parameter that does not matter look like its data less often than this
POOR = 0.5  # the quality below which a model has no verdicts
PARTS = (0.25, 1 / 3, 0.5)  # of the observations, spread out, in which what seems inert is looked at again


@dataclass(frozen=True)
class Influence:
    """How much one parameter matters, as shares of the variance over the whole space."""

    name: str
    first: float
    """What it explains alone."""
    first_interval: tuple[float, float]
    """The 5 % and 95 % quantiles over functions drawn from the posterior, widened to hold the share itself. It begins
    at 0 if the results are nearly as likely without the parameter, and ends at what the parameters that the trials do
    not tell apart explain together."""
    total: float
    """What it explains alone and together with others."""
    total_interval: tuple[float, float]
    data: float
    """Its share of the importance from the data alone (PED-ANOVA); all shares add up to 1."""
    chance: float
    """How often the data of a parameter that does not matter would look as important: a p-value."""
    verdict: Verdict
    """`matters` if the interval of its total begins above 0.02; `inert` if the interval ends below 0.02, its part of
    what the model does not predict included, if models of fewer results that are spread out agree, and the data alone
    say nothing else (`chance` above 0.05); otherwise, and if the quality of the model is below 0.5, `unclear`."""
    substitutes: tuple[str, ...] = ()
    """Parameters that could have done its part, the likeliest first: trials do not tell which of them it was."""


@dataclass(frozen=True)
class Pair:
    """What two parameters do only together."""

    names: tuple[str, str]
    share: float
    """Of the variance, also together with others."""
    interval: tuple[float, float]


@dataclass(frozen=True)
class Effect:
    """What the model expects at values of one parameter, on average over all others."""

    name: str
    values: tuple[Scalar, ...]
    places: tuple[float, ...]
    """Where each value lies on the parameter's scale, from 0 to 1; for choices, their numbers."""
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    """The standard deviation of each mean, by the model."""


@dataclass(frozen=True)
class Surface:
    """What the model expects at values of two parameters, on average over all others."""

    names: tuple[str, str]
    values: tuple[tuple[Scalar, ...], tuple[Scalar, ...]]
    mean: tuple[tuple[float, ...], ...]
    """A row for each value of the first parameter."""


@dataclass(frozen=True)
class Bin:
    """Variables that the search moves together, or moved together at first."""

    names: tuple[str, ...]
    total: float
    """What they explain, alone and together with others, as a share of the variance."""
    parts: tuple[Bin, ...] = ()
    """The bins it was split into."""


@dataclass(frozen=True)
class Importance:
    """How much the parameters matter, by a model of all results and by the data alone."""

    parameters: tuple[Influence, ...]
    """The most important first, by their total."""
    pairs: tuple[Pair, ...]
    """The strongest first, of the pairs of the most important parameters."""
    effects: Mapping[str, Effect]
    """By name, of the most important parameters."""
    surfaces: tuple[Surface, ...]
    """Of the strongest pairs."""
    bins: tuple[Bin, ...]
    """The bins of the first stage and what they were split into, as far as it is known; those of the present stage
    otherwise. Empty if every variable has a bin of its own from the start."""
    observations: int
    """How many results the model was fitted to."""
    quality: float
    """The share of the variance of the results that the model predicts when it does not know them (leave one out). Near
    0 or below, its importances mean little."""

    def __getitem__(self, name: str) -> Influence:
        """Return the influence of one parameter."""
        for influence in self.parameters:
            if influence.name == name:
                return influence
        raise KeyError(name)

    def __repr__(self) -> str:
        unclear = {"unclear": " (unclear)"}
        shown = ", ".join(f"{e.name} {e.total:.2f}{unclear.get(e.verdict, '')}" for e in self.parameters[:5])
        more = ", ..." if len(self.parameters) > 5 else ""
        return f"Importance({shown}{more}; quality {self.quality:.2f})"


def importance_of(
    space: Space, records: Sequence[Record], options: Options, first: Embedding | None, now: Embedding
) -> Importance | None:
    """Return how much the parameters matter; None if there are too few values, or if all are equal.

    `first` is the embedding of the first stage, if it is known, and `now` that of the present one.
    """
    method, sign = plain(options.method), options.sign
    if best_of(records, sign) is None:
        return None
    found, values = evidence(records, None, sign, method)
    if len(found) < FEWEST or Scale.of(values, method).deviation == 0:
        return None
    codes = np.stack([record.codes for record in found])
    done = np.array([record.trial.state in VALUED for record in found])
    data = Data(space, Points(codes), values, done, np.array([record.tell for record in found]), errors_of(found))
    rng = np.random.default_rng(options.seed)
    rows = _spread(values, done)
    whole = Look.at(data, rows, options)
    parts = whole.spread([min(len(rows), max(FEWEST, round(share * len(rows)))) for share in PARTS])
    looks = [
        Look.at(data, rows[part], options) for part in parts if values[rows[part]].min() < values[rows[part]].max()
    ]
    paths = Paths(whole.gp, whole.y, FUNCTIONS, rng=rng, mean=whole.mean)
    own = importances(space, codes, values, BEST, rng=rng)
    scale = Scale.of(values[rows], method)
    study = _Study(space, paths, whole, tuple(looks), scale, sign, rng)
    return study.importance(own, (first, now), len(rows), whole.quality)


def _spread(values: Array, done: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the observations that the model holds: all, or some from the whole run and the best one."""
    if len(values) <= MOST:
        return np.arange(len(values))
    best = int(np.argmin(np.where(done, values, np.inf)))
    return np.union1d(np.linspace(0, len(values) - 1, MOST - 1).astype(np.intp), [best])


@dataclass(frozen=True, eq=False)
class _Study:
    """Functions of a space, in units of targets, and what turns these into the user's."""

    space: Space
    paths: Paths
    whole: Look
    """The process that the functions are drawn from."""
    looks: tuple[Look, ...]
    """The same fitted to fewer results that are spread out."""
    scale: Scale
    sign: float
    rng: np.random.Generator

    def importance(
        self,
        own: tuple[Array, Array],
        embeddings: tuple[Embedding | None, Embedding],
        observations: int,
        quality: float,
    ) -> Importance:
        """Return everything, given the importances from the data alone and how often chance reaches them."""
        space = self.space
        size = int(np.clip(2 ** int(np.log2(ROWS / (len(space) + 2))), *SIZES))
        sample = Sample(self.paths, *design(space, size, rng=self.rng))
        each = [np.array([i]) for i in range(len(space))]
        alone, total = sample.indices(each)
        again = [Sample(look, sample.a, sample.b).indices(each)[1][:, 0] for look in self.looks]
        elsewhere = np.max([np.zeros(len(space)), *again], axis=0)
        order = np.argsort(-total[:, 0], kind="stable")
        tried = {i: Substitutes.of(self.whole, space, i) for i in order.tolist() if total[i, 0] >= INERT}
        bands = self._bands(sample, (alone, total), tried)
        facts = np.stack([alone[:, 0], total[:, 0], elsewhere, *own], axis=1).tolist()
        named = {i: tuple(space.variables[j].name for j in found.others) for i, found in tried.items()}
        parameters = tuple(
            replace(self._influence(i, facts[i], bands[i], quality), substitutes=named.get(i, ()))
            for i in order.tolist()
        )
        pairs = self._pairs(sample, order[:PAIRED].tolist())
        others = codes_at(space, self.rng.random((OTHERS, len(space))))
        effects = [self._effect(i, others) for i in order[:CURVES].tolist()]
        surfaces = tuple(self._surface(pair, others) for pair in pairs[:SURFACES])
        bins = self._bins(sample, *embeddings)
        return Importance(parameters, pairs, {e.name: e for e in effects}, surfaces, bins, observations, quality)

    def _bands(
        self, sample: Sample, shares: tuple[Array, Array], tried: Mapping[int, Substitutes]
    ) -> list[tuple[Band, Band]]:
        """Return the intervals of the first-order and total shares, wide enough for what trials do not tell apart."""
        bands = np.array([[_interval(each) for each in share] for share in shares])
        for i, found in tried.items():
            if found.others or found.idle:
                bands[:, i, 0] = 0.0
            group = [i, *found.others]
            for band, share in zip(bands, sample.indices([np.array(group)]), strict=True):
                band[group, 1] = np.maximum(band[group, 1], _interval(share[0])[1])
        return [((a, b), (c, d)) for (a, b), (c, d) in zip(*bands.tolist(), strict=True)]

    def _influence(self, i: int, facts: Sequence[float], bands: tuple[Band, Band], quality: float) -> Influence:
        first, total, elsewhere, data, chance = facts
        interval = bands[1]
        hidden = (1.0 - quality) / len(self.space)  # what the model does not predict, shared evenly
        verdict: Verdict = "unclear"
        if quality >= POOR and max(interval[1] + hidden, elsewhere) < INERT and chance > CHANCE:
            verdict = "inert"
        elif quality >= POOR and interval[0] >= INERT:
            verdict = "matters"
        return Influence(self.space.variables[i].name, first, bands[0], total, interval, data, chance, verdict)

    def _pairs(self, sample: Sample, among: list[int]) -> tuple[Pair, ...]:
        couples = list(combinations(sorted(among), 2))
        if not couples:
            return ()
        shares = sample.together(couples)
        names = [parameter.name for parameter in self.space.variables]
        found = [
            Pair((names[i], names[j]), float(share[0]), _interval(share))
            for (i, j), share in zip(couples, shares, strict=True)
        ]
        return tuple(sorted(found, key=lambda pair: -pair.share))

    def _grid(self, i: int, most: int) -> tuple[Codes, tuple[Scalar, ...]]:
        """Return codes of a parameter, at most `most` for a number, and their values."""
        parameter = self.space.variables[i]
        if self.space.kinds[i] is Kind.REAL:
            codes = np.linspace(0.0, 1.0, most)
        else:
            codes = np.arange(float(self.space.cardinalities[i]))
            if len(codes) > LISTED or (self.space.kinds[i] is Kind.ORDINAL and len(codes) > most):
                codes = np.unique(np.linspace(0, len(codes) - 1, most).round())
        named = {parameter.decode(code): code for code in codes.tolist()[::-1]}
        values = tuple(reversed(named))
        return np.array([named[value] for value in values]), values

    def _in_units(self, found: Array) -> Array:
        """Return targets in the user's units, as far as these have numbers so large."""
        with np.errstate(over="ignore"):
            return np.nan_to_num(self.sign * (self.scale.centre + self.scale.deviation * found))

    def _effect(self, i: int, others: Codes) -> Effect:
        codes, values = self._grid(i, STEPS)
        found = averaged(self.paths, others, np.array([i]), codes[:, None])
        mean = self._in_units(found[:, 0])
        with np.errstate(over="ignore"):
            deviation = np.nan_to_num(self.scale.deviation * found[:, 1:].std(axis=1))
        places = codes if self.space.kinds[i] is Kind.REAL else codes.round()
        return Effect(
            self.space.variables[i].name,
            values,
            tuple(places.tolist()),
            tuple(mean.tolist()),
            tuple(deviation.tolist()),
        )

    def _surface(self, pair: Pair, others: Codes) -> Surface:
        names = [parameter.name for parameter in self.space.variables]
        i, j = (names.index(name) for name in pair.names)
        (codes_i, values_i), (codes_j, values_j) = self._grid(i, CELLS), self._grid(j, CELLS)
        both = np.stack([axis.ravel() for axis in np.meshgrid(codes_i, codes_j, indexing="ij")], axis=1)
        found = averaged(self.paths, others, np.array([i, j]), both)[:, 0].reshape(len(codes_i), -1)
        mean = self._in_units(found)
        return Surface(pair.names, (values_i, values_j), tuple(tuple(row) for row in mean.tolist()))

    def _bins(self, sample: Sample, first: Embedding | None, now: Embedding) -> tuple[Bin, ...]:
        """Return the bins of the first stage, each with those that it was split into."""
        if now.is_input and first is None:
            return ()
        names = [parameter.name for parameter in self.space.variables]
        leaves = {tuple(part.tolist()): total for part, total in _totals(sample, now)}

        def leaf(part: tuple[int, ...]) -> Bin:
            return Bin(tuple(names[i] for i in part), leaves[part])

        if first is None or first.is_input:
            return () if now.is_input else tuple(leaf(part) for part in leaves)
        found = []
        for part, total in _totals(sample, first):
            children = [child for child in leaves if set(child) <= set(part.tolist())]
            parts = tuple(leaf(child) for child in children) if len(children) > 1 else ()
            found.append(Bin(tuple(names[i] for i in part.tolist()), total, parts))
        return tuple(found)


def _totals(sample: Sample, embedding: Embedding) -> list[tuple[NDArray[np.intp], float]]:
    """Return the bins of an embedding with their total indices, by the posterior mean."""
    totals = sample.indices(embedding.members)[1][:, 0].tolist()
    return sorted(zip(embedding.members, totals, strict=True), key=lambda pair: -pair[1])


def _interval(shares: Array) -> Band:
    """Return the band of a share over the functions, which holds that of the posterior mean."""
    low, high = np.quantile(shares[1:], BAND)
    return float(min(low, shares[0])), float(max(high, shares[0]))
