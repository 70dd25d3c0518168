"""Local search over the combinatorial bins: rows advance together, each to its best unseen neighbour.

The invariant: a row moves to the best of its unseen neighbours in the region, or in a long search to an unseen
point of the region that is worth more than any of them. A neighbour's exact worth needs a variance, which is
costly, so each first gets a bound, and only those whose bound reaches the best are computed.

Shapes: z (n, d) latent codes; moves (m,) of rows to neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bounce.acquire.candidates import Seen
from bounce.acquire.improvement import Acquisition
from bounce.acquire.neighbourhood import Neighbourhood, neighbours
from bounce.acquire.rules import Rules
from bounce.gp.linalg import Array, blocks
from bounce.gp.points import Points
from bounce.spaces.kinds import Codes

CONTENDERS = 4  # searches that go on to the end; of more, the better half after every step (`Method.search`)
LONG = 8  # steps after which a search makes several moves at once (`Method.leaps`)
LOOKS = 16  # moves of a row whose exact worth is computed together at first, then twice as many, and so on
MOST = 2**14  # moves per row; of more, a random part, so that the matrices fit into memory
SMALL = 2**25  # moves times squared observations below which bounds do not pay (measured with bench/latency.py)


@dataclass(eq=False)
class Moves:
    """Steps from rows to their neighbours, and what each is worth: at most so much, until it is exact."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    code: Array
    worth: Array
    exact: NDArray[np.bool_]

    @classmethod
    def inside(
        cls,
        region: Neighbourhood,
        z: Codes,
        rows: NDArray[np.intp],
        rules: Rules | None = None,
        *,
        rng: np.random.Generator,
    ) -> Moves:
        """Return the moves of some rows of z that stay in the region, and lead to points of the space."""
        row, column, code = neighbours(region, z[rows])
        changed = z[rows[row], column] != region.centre[column]
        change = (code != region.centre[column]).astype(np.intp) - changed
        if len(region.asleep):
            change[np.isin(column, region.asleep)] = 0
        distance = region.distance(z[rows])[row] + change
        near = distance <= region.changes
        if rules is not None:
            near &= rules.movable(z[rows], row, column, code)
        kept = np.flatnonzero(near)
        if len(kept) > MOST * len(rows):
            kept = kept[np.sort(rng.choice(len(kept), MOST * len(rows), replace=False))]
        n = len(kept)
        return cls(rows[row[kept]], column[kept], code[kept], np.full(n, np.inf), np.zeros(n, dtype=bool))

    def best(self, n_rows: int) -> NDArray[np.intp]:
        """Return the best move of each row, or -1 where it has none."""
        return _best_of_each(self.row, self.worth, n_rows)

    def leading(self, rows: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """Return the n best moves of each of some rows whose worth is not exact yet."""
        theirs = np.zeros(int(self.row.max()) + 1, dtype=bool)
        theirs[rows] = True
        found = np.flatnonzero(theirs[self.row] & ~self.exact)
        found = found[np.lexsort((-self.worth[found], self.row[found]))]
        row = self.row[found]
        return found[np.arange(len(found)) - np.searchsorted(row, row) < n]


class _Search:
    """Rows on their way, with what the model knows of where they stand."""

    def __init__(self, acquisition: Acquisition, z: Codes, values: Array) -> None:
        self.acquisition, self.z, self.values = acquisition, z.copy(), values.copy()
        self.gp, self.kernel = acquisition.gp, acquisition.gp.kernel
        self.d2 = np.empty((len(z), len(self.gp.points)))
        # k_r stays as it is while bins change.
        self.k_r = self.kernel.real(Points(z), self.gp.points) if len(self.kernel.space.reals) else None

    def bound(self, moves: Moves, rows: NDArray[np.intp]) -> None:
        """Give all moves of these rows their bounds, or at once their worth where that is as fast."""
        self.d2[rows] = self.kernel.metric(Points(self.z[rows]), self.gp.points)
        if len(moves.row) * len(self.gp.points) ** 2 < SMALL:
            self._look(moves, np.arange(len(moves.row)))
            return
        screen = self.acquisition.screen(self.gp.whitened(self._mixed(self.d2[rows], rows)))
        for block in blocks(len(moves.row), len(self.gp.points)):
            moves.worth[block] = self.acquisition.bound(self._covariances(moves, block), screen)

    def step(self, moves: Moves, rows: NDArray[np.intp], seen: Seen) -> NDArray[np.intp]:
        """Move these rows to their best unseen neighbours where these are better; return which moved."""
        moved = [np.empty(0, dtype=np.intp)]
        waiting, looks = rows, LOOKS
        while len(waiting):
            best = moves.best(len(self.z))
            waiting = waiting[best[waiting] >= 0]
            waiting = waiting[moves.worth[best[waiting]] > self.values[waiting]]
            unsure = waiting[~moves.exact[best[waiting]]]
            if len(unsure):
                self._look(moves, moves.leading(unsure, looks))
                looks *= 2
                continue
            chosen = best[waiting]
            targets = self.z[waiting]
            targets[np.arange(len(waiting)), moves.column[chosen]] = moves.code[chosen]
            fresh = seen.fresh(targets)
            moved.append(waiting[fresh])
            self.z[moved[-1]], self.values[moved[-1]] = targets[fresh], moves.worth[chosen[fresh]]
            moves.worth[chosen] = -np.inf
            waiting = waiting[~fresh]
        return np.sort(np.concatenate(moved))

    def leap(self, moves: Moves, rows: NDArray[np.intp], region: Neighbourhood, seen: Seen) -> NDArray[np.intp]:
        """Make the best 2, 4, 8, … moves of a row at once where this beats any single one; return which leapt."""
        better = np.flatnonzero(moves.worth > self.values[moves.row])
        better = better[np.argsort(-moves.worth[better], kind="stable")]
        origin, points = [], []
        for row in rows.tolist():
            mine = better[moves.row[better] == row]
            mine = mine[np.sort(np.unique(moves.column[mine], return_index=True)[1])]  # the best of each bin
            for power in range(1, len(mine).bit_length()):
                made = mine[: 2**power]
                points.append(self.z[row].copy())
                points[-1][moves.column[made]] = moves.code[made]
                origin.append(row)
        if not points:
            return rows[:0]
        targets = np.array(points)
        allowed = (region.distance(targets) <= region.changes) & seen.fresh(targets)
        worth = np.where(allowed, self.acquisition(targets), -np.inf)
        single = moves.best(len(self.z))
        several = _best_of_each(np.array(origin), worth, len(self.z))
        leaping: NDArray[np.intp] = np.intersect1d(rows, origin)
        leaping = leaping[worth[several[leaping]] > moves.worth[single[leaping]]]
        self.z[leaping], self.values[leaping] = targets[several[leaping]], worth[several[leaping]]
        return leaping

    def together(
        self, rows: NDArray[np.intp], region: Neighbourhood, seen: Seen, *, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Make the best change of several variables of a row where it is better; return which rows changed."""
        assert seen.rules is not None
        changed = []
        for row in rows.tolist():
            targets = seen.rules.moves(self.z[row], rng=rng)
            targets = targets[region.distance(targets) <= region.changes]
            worth = self.acquisition(targets) if len(targets) else np.empty(0)
            better = np.flatnonzero(worth > self.values[row])
            first = seen.first_fresh(targets, 1, better[np.argsort(-worth[better], kind="stable")])
            if len(first):
                self.z[row], self.values[row] = targets[first[0]], worth[first[0]]
                changed.append(row)
                if self.k_r is not None:
                    self.k_r[row] = self.kernel.real(Points(self.z[row : row + 1]), self.gp.points)[0]
        return np.array(changed, dtype=np.intp)

    def _look(self, moves: Moves, part: NDArray[np.intp]) -> None:
        whitened = self.gp.whitened(self._covariances(moves, part))
        worth = self.acquisition.of_whitened(whitened, partial(self._targets, moves, part))
        moves.worth[part], moves.exact[part] = worth, True

    def _targets(self, moves: Moves, part: NDArray[np.intp]) -> Codes:
        """Return the points that some moves lead to."""
        z = self.z[moves.row[part]]
        z[np.arange(len(z)), moves.column[part]] = moves.code[part]
        return z

    def _covariances(self, moves: Moves, part: slice | NDArray[np.intp]) -> Array:
        """Return the covariances of the points that some moves lead to with the model's points."""
        row, column = moves.row[part], moves.column[part]
        d2 = self.kernel.metric.moved(self.d2[row], column, self.z[row, column], moves.code[part], self.gp.points)
        return self._mixed(d2, row)

    def _mixed(self, d2: Array, row: NDArray[np.intp]) -> Array:
        return self.kernel.mix(self.kernel.combinatorial(d2), None if self.k_r is None else self.k_r[row])


def local_search(
    acquisition: Acquisition,
    region: Neighbourhood,
    starts: tuple[Codes, Array],
    seen: Seen,
    *,
    rng: np.random.Generator,
) -> tuple[Codes, Array]:
    """Improve starts, points with their values, until no neighbour is better; reals stay as they are."""
    search = _Search(acquisition, *starts)
    rows, steps = np.arange(len(search.z)), 0
    while len(rows):
        moves = Moves.inside(region, search.z, rows, seen.rules, rng=rng)
        search.bound(moves, rows)
        if steps < LONG or not region.method.leaps:
            moved = search.step(moves, rows, seen)
        else:
            leapt = search.leap(moves, rows, region, seen)
            moved = np.union1d(leapt, search.step(moves, np.setdiff1d(rows, leapt), seen))
        if seen.rules is not None:
            moved = np.union1d(moved, search.together(np.setdiff1d(rows, moved), region, seen, rng=rng))
        rows = contenders(region, search.values, first_of_each(search.z, moved))
        steps += 1
    return search.z, search.values


def _best_of_each(row: NDArray[np.intp], worth: Array, n_rows: int) -> NDArray[np.intp]:
    """Return where the best of each row is, the last of equals, or -1 where there is none."""
    order = np.argsort(worth, kind="stable")
    best = np.full(n_rows, -1)
    best[row[order]] = order
    return best


def first_of_each(z: Codes, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Drop rows whose point another row already stands on."""
    first: dict[bytes, int] = {}
    for row in rows.tolist():
        first.setdefault(z[row].tobytes(), row)
    return np.array(list(first.values()), dtype=np.intp)


def contenders(region: Neighbourhood, values: Array, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows that go on: all, or the better half, though not fewer than `CONTENDERS` (`Method.search`)."""
    if region.method.search == "full":
        return np.sort(rows)
    keep = max(CONTENDERS, (len(rows) + 1) // 2)
    return np.sort(rows[np.argsort(-values[rows], kind="stable")[:keep]])
