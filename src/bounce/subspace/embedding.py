"""The nested random embedding: every input variable follows one bin of the target space (section 3.1).

The latent space is itself a `Space`, one parameter per bin. A bin holds variables of one kind. A real variable
equals its bin's code or mirrors it; any other variable looks its code up in a table indexed by the bin's code,
which carries signs, reversals, permutations and unequal cardinalities alike.

An embedding can be anchored at a point of the input space, which it then contains: signs and permutations are drawn so
that they pass through it, ordinals and reals follow monotone maps through it that reach both ends. A bin of one
variable needs no such map.

The invariant: after a split, every point of the parent is a point of the child, bit for bit, since the variables' own
maps stay what they were: `child.up(child.down(parent.up(z))) == parent.up(z)`.

Shapes: input codes x (n, D), latent codes z (n, d).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.errors import InvalidState
from bounce.spaces.kinds import GRID, Codes, Kind, Parameter, on_grid
from bounce.spaces.parameters import Binary, Categorical, Ordinal, Real
from bounce.spaces.space import Space
from bounce.subspace.code_tables import CodeTable, bins_per_kind, deal, passing, renumber, shuffle, spread, staircases


def _latent_parameter(name: str, kind: Kind, cardinality: int) -> Parameter:
    if kind is Kind.REAL:
        return Real(name, 0.0, 1.0)
    if kind is Kind.BINARY:
        return Binary(name)
    return (Ordinal if kind is Kind.ORDINAL else Categorical)(name, range(cardinality))


@dataclass(frozen=True, eq=False)
class Embedding:
    """A map from latent codes to the codes of an input space."""

    inputs: Space
    members: tuple[NDArray[np.intp], ...]
    """Per bin, its variables in ascending order."""
    mirrored: NDArray[np.bool_]
    """Per variable, whether a real is mirrored; False for other kinds."""
    tables: tuple[CodeTable, ...]
    """Per variable, its code for each code of its bin; empty for a real."""
    knots: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    """Per variable (D, 2), where a real's map has its knot: the bin's code and the variable's, before it is mirrored;
    NaN for a variable without one. Without any knot, empty."""

    @classmethod
    def random(cls, inputs: Space, n_bins: int, *, low_sequency: bool = False, rng: np.random.Generator) -> Embedding:
        """Draw the first embedding, or with one bin per variable that of the input space itself.

        Each kind of variable needs a bin, and so does each variable that must be apart, so there may be more bins than
        were asked for.
        """
        apart = inputs.apart
        free = {kind: np.setdiff1d(inputs.of_kind(kind), apart) for kind in Kind}
        counts = {kind: len(columns) for kind, columns in free.items() if len(columns)}
        shared = bins_per_kind(counts, max(n_bins - len(apart), len(counts)))
        members = [part for kind, bins in shared.items() for part in deal(free[kind], bins, rng=rng)]
        members += [np.array([i]) for i in apart]
        mirrored = np.zeros(len(inputs), dtype=bool)
        tables: list[CodeTable] = [np.empty(0, dtype=np.intp)] * len(inputs)
        for part in members:
            largest = int(inputs.cardinalities[part].max())
            for i in part:
                kind, cardinality = inputs.kinds[i], int(inputs.cardinalities[i])
                if kind is Kind.REAL:
                    mirrored[i] = not low_sequency and rng.random() < 0.5
                elif low_sequency:
                    tables[i] = spread(cardinality, largest)
                else:
                    tables[i] = shuffle(kind, cardinality, rng=rng)[spread(cardinality, largest)]
        return cls(inputs, tuple(members), mirrored, tuple(tables))

    def anchored(self, anchor: Codes, *, rng: np.random.Generator) -> Embedding:
        """Return an embedding with the same bins that contains a point (D,) of the input space.

        What is random in this one is drawn again where the anchor does not decide it.
        """
        mirrored, tables = self.mirrored.copy(), list(self.tables)
        knots = np.full((len(self.inputs), 2), np.nan)
        for part in self.members:
            kind, codes = self.inputs.kinds[part[0]], anchor[part]
            cardinalities = self.inputs.cardinalities[part]
            if kind is Kind.REAL:
                own = np.where(mirrored[part], 1.0 - codes, codes)
                if (own != own[0]).any():
                    at = np.clip(on_grid(own.mean()), 1.0 / GRID, 1.0 - 1.0 / GRID)
                    knots[part] = np.stack([np.full(len(part), at), own], axis=1)
            elif kind is Kind.ORDINAL:
                flipped = np.array([table[0] > table[-1] for table in (tables[i] for i in part)])
                own = np.where(flipped, cardinalities - 1 - codes, codes).astype(np.intp)
                _, steps = staircases(own, cardinalities)
                for i, step, flip in zip(part, steps, flipped, strict=True):
                    tables[i] = self.inputs.cardinalities[i] - 1 - step if flip else step
            else:
                largest = int(cardinalities.max())
                anchor_code = int(rng.integers(largest))
                for i, code, c in zip(part, codes.astype(np.intp).tolist(), cardinalities.tolist(), strict=True):
                    codes_of = spread(c, largest)
                    tables[i] = passing(shuffle(kind, c, rng=rng), int(codes_of[anchor_code]), code)[codes_of]
        return replace(
            self, mirrored=mirrored, tables=tuple(tables), knots=knots if np.isfinite(knots).any() else knots[:0]
        )

    @cached_property
    def latent(self) -> Space:
        """The target space: one parameter per bin."""
        return Space(
            [
                _latent_parameter(f"z{j}", self.inputs.kinds[part[0]], len(self.tables[part[0]]))
                for j, part in enumerate(self.members)
            ]
        )

    @property
    def is_input(self) -> bool:
        """Whether every bin has one variable, so that the target space is the input space."""
        return len(self.members) == len(self.inputs)

    @cached_property
    def bin_of(self) -> NDArray[np.intp]:
        """The bin of each variable."""
        bin_of = np.empty(len(self.inputs), dtype=np.intp)
        for j, part in enumerate(self.members):
            bin_of[part] = j
        return bin_of

    @cached_property
    def _offsets(self) -> tuple[NDArray[np.intp], CodeTable]:
        """All tables in one array, and where each begins."""
        lengths = [len(table) for table in self.tables]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)
        return starts, np.concatenate(self.tables)

    @cached_property
    def _inverses(self) -> CodeTable:
        """For each code of a variable, a code of its bin that stands for it, laid out as the tables."""
        starts, table = self._offsets
        inverses = np.zeros_like(table)
        for start, own in zip(starts, self.tables, strict=True):
            inverses[start + own] = np.arange(len(own))
        return inverses

    @cached_property
    def _alone(self) -> NDArray[np.intp]:
        """The bins of one variable."""
        return np.flatnonzero([len(part) == 1 for part in self.members])

    def up(self, z: Codes) -> Codes:
        """Return the input codes of latent codes."""
        x = z[:, self.bin_of]
        reals = self.inputs.reals
        if reals.size:
            u = self._bent(x[:, reals], reals)
            x[:, reals] = np.where(self.mirrored[reals], 1.0 - u, u)
        others = self.inputs.combinatorial
        if others.size:
            starts, table = self._offsets
            x[:, others] = table[starts[others] + x[:, others].astype(np.intp)]
        return x

    @cached_property
    def _slopes(self) -> NDArray[np.float64]:
        """Per variable (4, D), its knot, and the slopes of its map on both sides of it; the identity without a knot."""
        at, own = np.where(np.isnan(self.knots), 0.5, self.knots).T
        return np.stack([at, own, own / at, (1.0 - own) / (1.0 - at)])

    def _bent(self, u: Codes, variables: NDArray[np.intp]) -> Codes:
        """Return the codes of reals before mirroring: those of their bins, through the knots."""
        if not len(self.knots):
            return u
        at, own, left, right = self._slopes[:, variables]
        bent = np.where(u < at, u * left, 1.0 - (1.0 - u) * right)
        return np.where(u == at, own, on_grid(np.clip(bent, 0.0, 1.0)))

    def _straight(self, u: Codes, variables: NDArray[np.intp]) -> Codes:
        """Return the codes of the bins that reals with codes u before mirroring come from; of several, the knot's."""
        if not len(self.knots):
            return u
        at, own = self.knots[variables].T
        with np.errstate(divide="ignore", invalid="ignore"):
            straight = np.where(u < own, at * (u / own), 1.0 - (1.0 - at) * ((1.0 - u) / (1.0 - own)))
        straight = np.where(u == own, at, on_grid(np.clip(straight, 0.0, 1.0)))
        return np.where(np.isnan(at), u, straight)

    def _common(self, u: Codes, part: NDArray[np.intp]) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the code (n,) of a bin from its reals' codes u (n, variables) before mirroring, and whether it exists.

        The steepest map tells the code best, and rounding is undone by trying the codes beside it.
        """
        at, own = self.knots[part].T
        steepness = np.where(u < own, own / at, (1.0 - own) / (1.0 - at))
        steepness = np.where(u == own, np.where((own > 0.0) & (own < 1.0), np.inf, -1.0), steepness)
        found = self._straight(u, part)[np.arange(len(u)), np.argmax(steepness, axis=1)]
        inside = np.zeros(len(u), dtype=bool)
        for step in (0, 1, -1, 2, -2):
            tried = np.clip(found + step / GRID, 0.0, 1.0)
            match = (self._bent(np.repeat(tried[:, None], len(part), axis=1), part) == u).all(axis=1) & ~inside
            found, inside = np.where(match, tried, found), inside | match
            if inside.all():
                break
        return found, inside

    def positions(self, x: Codes) -> Codes:
        """Return per variable (n, D) the code of its bin that its value comes from, the mean of several.

        Of a point of the embedding, all variables of a bin have the same position, its latent code. Categories have no
        positions: their own codes are returned.
        """
        v = x.copy()
        reals = self.inputs.reals
        if reals.size:
            v[:, reals] = self._straight(np.where(self.mirrored[reals], 1.0 - x[:, reals], x[:, reals]), reals)
        for i in self.inputs.of_kind(Kind.BINARY, Kind.ORDINAL).tolist():
            table = self.tables[i]
            mean = np.bincount(table, weights=np.arange(len(table))) / np.bincount(table)
            v[:, i] = mean[x[:, i].astype(np.intp)]
        return v

    def down(self, x: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """Return latent codes, and which rows have any: the inverse of `up`."""
        z = np.empty((len(x), len(self.members)))
        inside = np.ones(len(x), dtype=bool)
        variables = np.array([self.members[j][0] for j in self._alone], dtype=np.intp)
        u = x[:, variables]
        real = np.isin(variables, self.inputs.reals)
        starts = self._offsets[0][variables[~real]]
        z[:, self._alone[real]] = np.where(self.mirrored[variables[real]], 1.0 - u[:, real], u[:, real])
        z[:, self._alone[~real]] = self._inverses[starts + u[:, ~real].astype(np.intp)]
        for j in np.setdiff1d(np.arange(len(self.members)), self._alone).tolist():
            part = self.members[j]
            if self.inputs.kinds[part[0]] is Kind.REAL:
                u = np.where(self.mirrored[part], 1.0 - x[:, part], x[:, part])
                if len(self.knots) and np.isfinite(self.knots[part]).any():
                    z[:, j], fits = self._common(u, part)
                    inside &= fits
                else:
                    inside &= (u == u[:, :1]).all(axis=1)
                    z[:, j] = u[:, 0]
            else:
                table = np.stack([self.tables[i] for i in part], axis=1)  # (codes, variables)
                match = (x[:, None, part] == table[None]).all(axis=2)
                inside &= match.any(axis=1)
                z[:, j] = match.argmax(axis=1)
        return z, inside

    def points(self, most: int) -> Codes | None:
        """Return every latent point, if they can be listed and are at most `most`."""
        if not len(self.latent.reals) and self.latent.size <= most:
            return self.latent.grid()
        if self.is_input and math.prod(variable.size for variable in self.inputs.variables) <= most:
            return self.down(self.inputs.grid())[0]
        return None

    def split(self, new_bins: int, *, rng: np.random.Generator) -> Embedding:
        """Divide every bin of more than one variable into at most `new_bins` + 1 (section 3.1).

        A child inherits its parent's codes; those it cannot tell apart become one.
        """
        members: list[NDArray[np.intp]] = []
        tables = list(self.tables)
        for part in self.members:
            children = deal(part, min(new_bins + 1, len(part)), rng=rng) if len(part) > 1 else [part]
            members += children
            if self.inputs.kinds[part[0]] is not Kind.REAL:
                for child in children:
                    for i, table in zip(child, renumber([tables[i] for i in child]), strict=True):
                        tables[i] = table
        alone = [part[0] for part in members if len(part) == 1]
        knots = self.knots.copy()
        if len(knots):
            knots[alone] = np.nan
        return Embedding(self.inputs, tuple(members), self.mirrored, tuple(tables), knots)

    def parents(self, child: Embedding) -> NDArray[np.intp]:
        """Return the bin of this embedding that each bin of a split of it came from."""
        return self.bin_of[[part[0] for part in child.members]]

    def to_dict(self) -> dict[str, Any]:
        """Return the embedding as JSON values, the input space apart."""
        return {
            "members": [part.tolist() for part in self.members],
            "mirrored": np.flatnonzero(self.mirrored).tolist(),
            "tables": [table.tolist() for table in self.tables],
        } | ({"knots": self._knots_to_list()} if len(self.knots) else {})

    def _knots_to_list(self) -> list[list[float]]:
        variables = np.flatnonzero(np.isfinite(self.knots[:, 0]))
        return [[int(i), *self.knots[i].tolist()] for i in variables]

    @classmethod
    def from_dict(cls, inputs: Space, document: Mapping[str, Any]) -> Embedding:
        """Build an embedding from what `to_dict` returned."""
        members = tuple(np.array(part, dtype=np.intp) for part in document["members"])
        mirrored = np.zeros(len(inputs), dtype=bool)
        mirrored[document["mirrored"]] = True
        tables = tuple(np.array(table, dtype=np.intp) for table in document["tables"])
        knots = np.full((len(inputs), 2), np.nan)
        for i, at, own in document.get("knots", ()):
            knots[i] = at, own
        embedding = cls(inputs, members, mirrored, tables, knots if "knots" in document else knots[:0])
        embedding._check()
        return embedding

    def _check(self) -> None:
        """Refuse a document in which bins, kinds and tables do not fit together."""
        dealt = np.sort(np.concatenate(self.members))
        sound = np.array_equal(dealt, np.arange(len(self.inputs))) and len(self.tables) == len(self.inputs)
        sound = sound and not self.mirrored[self.inputs.combinatorial].any()
        for part in self.members if sound else ():
            sound = sound and len({self.inputs.kinds[i] for i in part}) == 1
            sound = sound and len({self.tables[i].shape for i in part}) == 1 and self.tables[part[0]].ndim == 1
        if len(self.knots):
            bent = np.flatnonzero(np.isfinite(self.knots).any(axis=1))
            at, own = self.knots[bent].T
            sound = sound and bool(np.isin(bent, self.inputs.reals).all())
            sound = sound and bool(((at > 0) & (at < 1) & (own >= 0) & (own <= 1)).all())
        for table, cardinality in zip(self.tables, self.inputs.cardinalities, strict=False):
            sound = sound and np.array_equal(np.unique(table), np.arange(cardinality))
        if not sound:
            raise InvalidState("the state's embedding does not fit its space")
