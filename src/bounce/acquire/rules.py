"""Rules: what the structure of a space asks of latent points, as seen from one embedding.

Variables that a structure names never share a bin, so a rule can be applied in the input space and carried back.

The invariant: `proper` returns only points that may be proposed, in their canonical form.

Shapes: z (n, d) latent codes; x (n, D) input codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.neighbourhood import Neighbourhood
from bounce.spaces.kinds import Codes, on_grid
from bounce.spaces.structure import Structure
from bounce.subspace.embedding import Embedding

Mask = NDArray[np.bool_]

VARIANTS = 256  # values of each composite among which candidates choose
KEPT = 0.5  # the chance that a candidate keeps a composite as it is
FURTHEST = 12  # steps of a walk from the centre, at most
SWEEPS = 20  # of projections onto all linear constraints
HALVINGS = 12  # of a step of the reals that leaves the allowed points


@dataclass(frozen=True, eq=False)
class Rules:
    """A structure and an embedding."""

    structure: Structure
    embedding: Embedding

    @classmethod
    def of(cls, embedding: Embedding) -> Rules | None:
        """Return the rules of an embedding, if its space has a structure."""
        structure = embedding.inputs.structure
        return None if structure is None else cls(structure, embedding)

    @cached_property
    def still(self) -> NDArray[np.intp]:
        """The bins that never move alone: those of composites, and those on which conditions depend."""
        columns = np.union1d(self.structure.composite_columns, self.structure.switches).astype(np.intp)
        return self.embedding.bin_of[columns]

    @cached_property
    def checked(self) -> NDArray[np.intp]:
        """The bins whose moves may break a constraint."""
        return self.embedding.bin_of[self.structure.constrained]

    def asleep(self, z: Codes) -> NDArray[np.intp]:
        """Return the bins of variables that are inactive at a latent point (d,)."""
        if not len(self.structure.switches):
            return np.empty(0, dtype=np.intp)
        active = self.structure.active(self.embedding.up(z[None]))[0]
        return np.unique(self.embedding.bin_of[np.flatnonzero(~active)])

    def _down(self, x: Codes) -> Codes:
        return self.embedding.down(x)[0]

    def canonical(self, z: Codes) -> Codes:
        """Return latent points in which every inactive variable rests."""
        return self._down(self.structure.canonical(self.embedding.up(z))) if len(self.structure.switches) else z

    def allowed(self, z: Codes, *, exact: bool = True) -> Mask:
        """Return which canonical latent points may be proposed."""
        return self.structure.allowed(self.embedding.up(z), exact=exact)

    def proper(self, z: Codes) -> Codes:
        """Return those of some latent points that may be proposed, in their canonical form."""
        z = self.canonical(z)
        return z[self.allowed(z, exact=False)]

    def drawn(self, z: Codes, *, rng: np.random.Generator) -> Codes:
        """Return latent points with all that the structure names drawn again, so that they may be proposed."""
        x, columns = self.embedding.up(z), self.structure.apart
        x[:, columns] = self.structure.draw(len(z), rng=rng)[:, columns]
        return self._down(x)

    def varied(self, z: Codes, centre: Codes, *, rng: np.random.Generator) -> Codes:
        """Return latent points whose composites are values of their own, near that of the centre or anywhere."""
        x, own = self.embedding.up(z), self.embedding.up(centre[None])[0]
        for columns, composite in self.structure.composites:
            near = composite.moves(own[columns], rng=rng)[:VARIANTS]
            further = [composite.moves(row, rng=rng)[:8] for row in near[rng.permutation(len(near))[:16]]]
            pool = np.concatenate([near, *further, composite.draw(VARIANTS // 4, rng=rng)])
            chosen = pool[rng.integers(0, len(pool), len(x))]
            x[:, columns] = np.where(rng.random((len(x), 1)) < KEPT, own[columns], chosen)
        return self._down(x)

    def moves(self, z: Codes, *, rng: np.random.Generator) -> Codes:
        """Return what one latent point (d,) can become by changes of several variables together."""
        return self._down(self.structure.moves(self.embedding.up(z[None])[0], rng=rng))

    def wandered(self, region: Neighbourhood, n: int, *, rng: np.random.Generator) -> Codes:
        """Return the ends of short walks from the centre inside of a region, where random points are seldom allowed."""
        begun = self.embedding.up(np.tile(region.centre, (n, 1)))
        reals = region.space.reals

        def within(x: Codes) -> Mask:
            z = self._down(x)
            low, high = region.box
            near: Mask = region.distance(z) <= region.changes
            near &= ((z[:, reals] >= low) & (z[:, reals] <= high)).all(axis=1)
            return near

        steps = 1 + np.floor(rng.random(n) * FURTHEST).astype(np.intp)
        return self._down(self.structure.walks.walked(begun, steps, within=within, rng=rng))

    def movable(self, z: Codes, row: NDArray[np.intp], column: NDArray[np.intp], code: Codes) -> Mask:
        """Return which moves, each of one bin of a row of z, lead to another point that may be proposed."""
        active = self.structure.active(self.embedding.up(z))  # per variable
        first = np.array([part[0] for part in self.embedding.members])
        good: Mask = active[row, first[column]] & ~np.isin(column, self.still)
        check = np.flatnonzero(good & np.isin(column, self.checked))
        if check.size:
            targets = z[row[check]]
            targets[np.arange(len(check)), column[check]] = code[check]
            good[check] = self.allowed(targets, exact=False)
        return good

    def pulled_back(self, start: Codes, moved: Codes) -> Codes:
        """Return points moved as far from allowed starts as they may: onto linear constraints, or part of the way."""
        bad = np.flatnonzero(~self.allowed(moved))
        if not bad.size:
            return moved
        moved = moved.copy()
        planes = self.structure.walks.planes
        if len(planes):
            moved[bad] = self._down(planes.onto(self.embedding.up(moved[bad]), SWEEPS))
            bad = bad[~self.allowed(moved[bad])]
        reals = self.embedding.latent.reals
        for _ in range(HALVINGS):
            if not bad.size:
                return moved
            moved[np.ix_(bad, reals)] = on_grid(0.5 * (start[bad][:, reals] + moved[bad][:, reals]))
            bad = bad[~self.allowed(moved[bad])]
        moved[bad] = start[bad]
        return moved
