"""LA-MCTS: a tree that learns to split the space into good and bad regions, with TuRBO inside the best one.

Nouns: a node has the points in its region. A split clusters them into two by their codes and values (k-means), and
learns the boundary between the clusters (a support vector machine), which cuts the region in two. A visit goes down to
a leaf by upper confidence bounds of the mean value, draws points of the leaf's region, and runs TuRBO from them until
its trust region collapses or 50 points are asked for. The tree is built again for every visit.

The invariant: every point lies on the side of each boundary where its node is.

Wang, Fonseca, Tian: Learning Search Space Partition for Black-box Optimization using Monte Carlo Tree Search, NeurIPS
2020.

Shapes: x (n, D) codes in [0, 1], v (n,) values from 0, the worst, to 1, the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.mcts_vs import goodness
from bounce.baselines.rivals.turbo import Turbo, latin_hypercube
from bounce.gp.kernels import squared_distance
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, on_grid
from bounce.spaces.space import Space

LEAF = 20  # a node with more points is split (θ)
FEWEST = 3  # points on either side of a boundary
EXPLORATION = 0.1  # C_p
VISIT, DESIGN = 50, 10  # points of a visit, and how many of them are its design
PENALTY = 1.0  # C of the support vector machine
TOLERANCE = 1e-3  # of its optimality conditions
STEPS = 10_000  # at most, of its solver
CLUSTERINGS, SWEEPS = 10, 100  # starts of k-means, and its iterations at most
PROBES = 200  # points that test whether a box lies in a region

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Boundary:
    """A support vector machine: a point is on the good side if Σ_i s_i·exp(−‖x − x_i‖²/D) + bias is positive."""

    x: Codes
    weights: Array
    bias: float

    @classmethod
    def between(cls, x: Codes, good: Mask) -> Boundary:
        """Learn the boundary of largest soft margin: steps along the pair that violates its conditions most (SMO)."""
        k = np.exp(-squared_distance(x, x) / x.shape[1])
        label = np.where(good, 1.0, -1.0)
        low, high = np.where(good, 0.0, -PENALTY), np.where(good, PENALTY, 0.0)
        s, error = np.zeros(len(x)), label.copy()  # error = label − k·s
        for _ in range(STEPS):
            up, down = np.where(s < high, error, -np.inf), np.where(s > low, error, np.inf)
            i, j = int(up.argmax()), int(down.argmin())
            if up[i] - down[j] < TOLERANCE:
                break
            step = (up[i] - down[j]) / max(k[i, i] + k[j, j] - 2.0 * k[i, j], 1e-12)
            step = min(step, high[i] - s[i], s[j] - low[j])
            s[i] = high[i] if step == high[i] - s[i] else s[i] + step
            s[j] = low[j] if step == s[j] - low[j] else s[j] - step
            error -= step * (k[i] - k[j])
        return cls(x[s != 0.0], s[s != 0.0], 0.5 * float(up[i] + down[j]))

    def good(self, z: Codes) -> Mask:
        """Return which points are on the good side."""
        k = np.exp(-squared_distance(z, self.x) / z.shape[1])
        return np.asarray(k @ self.weights + self.bias > 0.0)


def clusters(points: Array, *, rng: np.random.Generator) -> Mask:
    """Return which points are in the first of two clusters: the tightest of ten runs of Lloyd's algorithm."""
    best, found = np.inf, np.zeros(len(points), dtype=np.bool_)
    for _ in range(CLUSTERINGS):
        first = points[rng.integers(len(points))]
        far = ((points - first) ** 2).sum(axis=1)
        if not far.any():
            break
        centres = np.stack([first, points[rng.choice(len(points), p=far / far.sum())]])  # k-means++
        before = None
        for _ in range(SWEEPS):
            d2 = squared_distance(points, centres)
            one = d2[:, 0] <= d2[:, 1]
            if before is not None and (one == before).all():
                break
            before = one
            centres = np.stack([points[side].mean(axis=0) if side.any() else first for side in (one, ~one)])
        spread = float(d2.min(axis=1).sum())
        if spread < best:
            best, found = spread, one
    return found


@dataclass(frozen=True, eq=False)
class Leaf:
    """A region: the points in it, and the boundaries that it lies on a side of."""

    rows: NDArray[np.intp]
    sides: tuple[tuple[Boundary, bool], ...] = ()

    def holds(self, z: Codes) -> Mask:
        """Return which points lie in the region."""
        inside = np.ones(len(z), dtype=np.bool_)
        for boundary, good in self.sides:
            inside &= boundary.good(z) == good
        return inside

    def split(self, x: Codes, v: Array, *, rng: np.random.Generator) -> tuple[Leaf, Leaf] | None:
        """Return the good and the bad part of the region, or None if it cannot be split."""
        points, values = x[self.rows], v[self.rows]
        deviation = float(values.std())
        # the published clusters have values centred in the space, with half its width as their standard deviation
        height = 0.5 + 0.5 * (values - values.mean()) / (deviation or 1.0)
        label = clusters(np.column_stack([points, height]), rng=rng)
        if not label.any() or label.all():
            return None
        boundary = Boundary.between(points, label if values[label].mean() >= values[~label].mean() else ~label)
        good = boundary.good(points)
        if min(good.sum(), (~good).sum()) < FEWEST:
            return None
        one, two = (Leaf(self.rows[side], (*self.sides, (boundary, b))) for side, b in ((good, True), (~good, False)))
        return one, two

    def sample(self, x: Codes, n: int, *, rng: np.random.Generator) -> Codes:
        """Draw points of the region: each from a box around one of its points that has just grown out of it."""
        d = x.shape[1]
        if not self.sides:
            return latin_hypercube(n, d, rng=rng)
        drawn = []
        for centre in x[rng.choice(self.rows, n)]:
            side, found = 1e-4, centre[None]
            while side < 2.0:
                low, high = np.clip(centre - 0.5 * side, 0.0, 1.0), np.clip(centre + 0.5 * side, 0.0, 1.0)
                z = low + (high - low) * rng.random((PROBES, d))
                inside = self.holds(z)
                found = z[inside] if inside.any() else found
                if not inside.all():
                    break
                side *= 2.0
            drawn.append(found[rng.integers(len(found))])
        return np.array(drawn)


def best_leaf(x: Codes, v: Array, *, rng: np.random.Generator) -> Leaf:
    """Return the leaf that upper confidence bounds lead to; only the nodes on the way need to be split."""
    node = Leaf(np.arange(len(x)))
    while len(node.rows) > LEAF:
        parts = node.split(x, v, rng=rng)
        if parts is None:
            break
        # v̄ + 2·C_p·√(2·√n_parent/n): the published code has the root of the parent's count where the paper has its log
        explore = 2.0 * EXPLORATION * np.sqrt(2.0 * np.sqrt(len(node.rows)))
        bounds = [v[part.rows].mean() + explore / np.sqrt(len(part.rows)) for part in parts]
        node = parts[int(np.argmax(bounds))]
    return node


class LaMcts(Turbo):
    """LA-MCTS with TuRBO-1 inside."""

    name = "la-mcts"
    why = ", which lie in no trust region"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        # The first visit has all of the space as its leaf; the initial points are part of its design.
        more = max(0, DESIGN - len(self._initial))
        rng = np.random.default_rng([seed, len(space)])
        self._design = [(0, row) for row in latin_hypercube(more, len(space), rng=rng)] if more else []
        self._visited = 0  # points asked for in this visit

    def _propose(self) -> tuple[Codes, Any]:
        self._visited += 1
        return super()._propose()

    def _close(self, y: Array, *, rng: np.random.Generator) -> None:
        super()._close(y, rng=rng)
        if self._visited > VISIT:
            self._collapse(next(iter(self._regions)), rng=rng)

    def _collapse(self, number: int, *, rng: np.random.Generator) -> None:
        self._design, self._visited = [], 1
        super()._collapse(number, rng=rng)

    def _latin(self, *, rng: np.random.Generator) -> Codes:
        """Return the design of a visit: points of the best leaf."""
        return self._leaf(rng=rng).sample(np.array(self._rows), DESIGN, rng=rng)

    def _leaf(self, *, rng: np.random.Generator) -> Leaf:
        return best_leaf(np.array(self._rows), goodness(np.array(self._values)), rng=rng)


class LaMctsRandom(LaMcts):
    """LA-MCTS with random search inside: every point is drawn from the best leaf of a new tree."""

    name = "la-mcts-random"

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        return on_grid(self._leaf(rng=rng).sample(x, 1, rng=rng)[0])
