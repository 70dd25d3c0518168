"""RDUCB: an additive model over a random forest of the variables, a new one for every point.

The nouns: a `Forest` is a decomposition of the variables into cliques (its edges, and the variables without one);
`Additive` is a Gaussian process that is a sum of independent ones, one per clique; the upper confidence bound of the
sum is bounded by the sum of the cliques' bounds, which message passing maximises exactly over a small grid; the grid
zooms in on its best cell.

The invariant: no clique has more than two variables and no path closes, so that a point of the grid is found in time
linear in the number of variables.

As published, the model sees values as they are, with a prior mean of zero, and reals between their own bounds; bits,
ordinals and categories are numbers from 0 to 1, which is how the authors write theirs. `RducbScaled` standardises the
values and scales reals to [0, 1].

Ziomek and Bou-Ammar (2023), Are random decompositions all we need in high dimensional Bayesian optimisation? ICML.
The zooming grid and the fit are those of Han, Arora and Scarlett (2021), High-dimensional Bayesian optimization via
tree-structured additive models, AAAI.

Shapes: x (n, D), each column from 0 to its width, y (n,); a grid has at most V = 4 values per variable, padded by
repeating the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.rival import Rival, from_unit, standardised, unit
from bounce.gp.linalg import Array, cholesky, inverse
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

EDGES = 0.2  # edges of a forest per variable
LENGTHSCALE, SCALE, NOISE = 0.1, 0.5, 0.1  # where the first fit starts; the noise variance is never fitted
LOWEST, HIGHEST = (1e-2, 10.0**-0.5), (1e5, 1e5)  # of a lengthscale and of a scale
GRID = 150  # values of a real
VALUES = 4  # of a variable that message passing looks at
LARGEST = 1e50  # of a value and of a width: the square of its square can be computed
STEPS = 2  # evaluations of a fit per variable, once there are 1,000 points

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Forest:
    """A graph without cycles on d variables."""

    d: int
    edges: Sequence[tuple[int, int]]

    @cached_property
    def lone(self) -> list[int]:
        """The variables without an edge, cliques of their own."""
        linked = {i for edge in self.edges for i in edge}
        return [i for i in range(self.d) if i not in linked]

    @cached_property
    def cliques(self) -> list[tuple[int, ...]]:
        """The largest cliques: every edge, and every variable without one."""
        return [*self.edges, *((i,) for i in self.lone)]

    @cached_property
    def order(self) -> list[tuple[int, int, int]]:
        """Return (variable, its parent, the edge between them), parents first; −1 twice for a root."""
        beside: list[list[tuple[int, int]]] = [[] for _ in range(self.d)]
        for e, (i, j) in enumerate(self.edges):
            beside[i].append((j, e))
            beside[j].append((i, e))
        seen, order = [False] * self.d, []
        for root in range(self.d):
            stack = [] if seen[root] else [(root, -1, -1)]
            while stack:
                node = stack.pop()
                seen[node[0]] = True
                order.append(node)
                stack += [(j, node[0], e) for j, e in beside[node[0]] if j != node[1]]
        return order


def random_forest(d: int, *, rng: np.random.Generator) -> Forest:
    """Draw max(1, ⌊0.2·d⌋) edges: pairs of variables, refused where they would close a path."""
    edges: list[tuple[int, int]] = []
    tree = list(range(d))  # the name of each variable's tree
    while len(edges) < min(d - 1, max(1, int(EDGES * d))):
        i, j = (int(k) for k in rng.integers(d, size=2))
        if tree[i] != tree[j]:
            edges.append((min(i, j), max(i, j)))
            old, new = tree[i], tree[j]
            tree = [new if name == old else name for name in tree]
    return Forest(d, edges)


@dataclass(frozen=True, eq=False)
class Additive:
    """f = Σ_c f_c: a squared exponential per clique, σ²_c = (Σ_{i∈c} s_i²)^½, mean zero, noise known."""

    forest: Forest
    lengthscales: Array
    """ℓ (D,), shared by all cliques of a variable."""
    scales: Array
    """s (D,), each variable's part in the variance of its cliques."""
    x: Array
    y: Array

    def variance(self, clique: tuple[int, ...]) -> float:
        """Return σ²_c."""
        return float(np.sqrt(np.square(self.scales[list(clique)]).sum()))

    def _squares(self, i: int) -> Array:
        """((x_ai − x_bi)/ℓ_i)² for each pair a < b of points."""
        a, b = self._above
        column = self.x[:, i] / self.lengthscales[i]
        return np.asarray(np.square(column[a] - column[b]))

    @cached_property
    def _above(self) -> tuple[Indices, Indices]:
        return np.triu_indices(len(self.x), 1)

    @cached_property
    def factor(self) -> Array:
        """The lower Cholesky factor of Σ_c K_c + noise."""
        a, b = self._above
        above = np.zeros(len(a))
        for clique in self.forest.cliques:
            above += self.variance(clique) * np.exp(-0.5 * sum(self._squares(i) for i in clique))
        total = np.zeros((len(self.x), len(self.x)))
        total[b, a] = above  # only the lower triangle is read
        total[np.diag_indices(len(self.x))] = sum(map(self.variance, self.forest.cliques)) + NOISE
        return cholesky(total)

    @cached_property
    def inverse(self) -> Array:
        """(Σ_c K_c + noise)⁻¹."""
        return inverse(self.factor)

    @cached_property
    def alpha(self) -> Array:
        """K⁻¹·y."""
        return np.asarray(self.inverse @ self.y)

    @cached_property
    def likelihood(self) -> float:
        """The logarithm of p(y) without its constant, at most ½·n·ln 2π, as published."""
        value = -float(np.log(np.diag(self.factor)).sum()) - 0.5 * float(self.y @ self.alpha)
        return min(value, 0.5 * len(self.y) * float(np.log(2.0 * np.pi)))

    @cached_property
    def slopes(self) -> Array:
        """The gradient of the likelihood by (ℓ, s); where the likelihood is cut off, a tiny one back."""
        weights = 0.5 * (np.outer(self.alpha, self.alpha) - self.inverse)  # ∂ log p/∂K
        above, trace = 2.0 * weights[self._above], float(np.trace(weights))
        by_length, by_scale = np.zeros(self.forest.d), np.zeros(self.forest.d)
        for clique in self.forest.cliques:
            squares, variance = [self._squares(i) for i in clique], self.variance(clique)
            weighted = variance * above * np.exp(-0.5 * sum(squares))
            total = float(weighted.sum()) + variance * trace
            for i, own in zip(clique, squares, strict=True):
                by_length[i] += float(weighted @ own) / self.lengthscales[i]
                by_scale[i] += total * self.scales[i] / variance**2
        cut = self.likelihood >= 0.5 * len(self.y) * float(np.log(2.0 * np.pi))
        return np.concatenate([by_length, by_scale]) * (-1e-8 if cut else 1.0)

    def bounds(self, grid: Array, beta: float) -> tuple[Array, Array]:
        """Return each clique's −m_c + β·s_c on a grid (D, V): of edges (E, V, V), and of lone variables (L, V).

        The deviation s_c includes the noise, as in the published code.
        """
        near = np.exp(-0.5 * np.square((grid[:, :, None] - self.x.T[:, None, :]) / self.lengthscales[:, None, None]))
        edges, lone = np.array(self.forest.edges, dtype=np.intp).reshape(-1, 2), self.forest.lone
        pairs = near[edges[:, 0]][:, :, None, :] * near[edges[:, 1]][:, None, :, :]

        def bound(k: Array, cliques: Sequence[tuple[int, ...]]) -> Array:
            variance = np.array([self.variance(clique) for clique in cliques]).reshape((-1,) + (1,) * (k.ndim - 2))
            k = variance[..., None] * k
            rows = k.reshape(-1, len(self.x))
            left = variance + NOISE - np.einsum("ij,ij->i", rows @ self.inverse, rows).reshape(k.shape[:-1])
            return np.asarray(beta * np.sqrt(np.maximum(left, 1e-10)) - k @ self.alpha)

        return bound(pairs, self.forest.edges), bound(near[lone], [(i,) for i in lone])

    def believing(self, z: Array) -> Additive:
        """Return the process that has seen its own means at more rows (mean fantasies)."""
        if not len(z):
            return self
        k = np.zeros((len(z), len(self.x)))
        for clique in self.forest.cliques:
            gaps = ((z[:, i, None] - self.x[:, i]) / self.lengthscales[i] for i in clique)
            k += self.variance(clique) * np.exp(-0.5 * sum(np.square(gap) for gap in gaps))
        x, y = np.concatenate([self.x, z]), np.concatenate([self.y, k @ self.alpha])
        return Additive(self.forest, self.lengthscales, self.scales, x, y)


def fitted(start: Additive) -> Additive:
    """Return the process after a few steps of truncated Newton up the likelihood, (2·D)^(n/1000) evaluations."""
    from scipy.optimize import fmin_tnc  # slow to import

    d, n = start.forest.d, len(start.y)

    def at(parameters: Array) -> Additive:
        return Additive(start.forest, parameters[:d], parameters[d:], start.x, start.y)

    def loss(parameters: Array) -> tuple[float, Array]:
        process = at(parameters)
        return -process.likelihood, -process.slopes

    limits = [(LOWEST[0], HIGHEST[0])] * d + [(LOWEST[1], HIGHEST[1])] * d
    first = np.concatenate([start.lengthscales, start.scales])
    evaluations = int((STEPS * d) ** min(n / 1000, 1.0))
    found = at(np.asarray(fmin_tnc(loss, first, bounds=limits, maxfun=evaluations, disp=0)[0]))
    return found if found.likelihood > start.likelihood else start


def message_passing(forest: Forest, pairs: Array, lone: Array) -> Indices:
    """Return the places (D,) in the grid that maximise the sum of tables of edges (E, V, V) and variables (L, V)."""
    total = np.zeros((forest.d, pairs.shape[-1] if len(pairs) else lone.shape[-1]))
    total[forest.lone] = lone
    choice: dict[int, Indices] = {}
    for node, parent, e in reversed(forest.order):  # up: the best of a variable's tree for each value of its parent
        if parent >= 0:
            table = pairs[e] if forest.edges[e][0] == parent else pairs[e].T
            table = table + total[node]
            choice[node] = table.argmax(axis=1)
            total[parent] += table.max(axis=1)
    places = np.zeros(forest.d, dtype=np.intp)
    for node, parent, _ in forest.order:  # down: what each variable is for the value of its parent
        places[node] = total[node].argmax() if parent < 0 else choice[node][places[parent]]
    return places


def zoomed(process: Additive, domains: Sequence[Array], beta: float, *, rng: np.random.Generator) -> Array:
    """Return the point (D,) of the highest bound: a value per chunk of each domain, then the best chunks, and so on."""
    while True:
        steps = [-(-len(domain) // VALUES) for domain in domains]
        chunks = [[d[i : i + step] for i in range(0, len(d), step)] for d, step in zip(domains, steps, strict=True)]
        draws = rng.random((len(domains), VALUES))
        drawn = [
            [c[int(u * len(c))] for c, u in zip(own, row, strict=False)] for own, row in zip(chunks, draws, strict=True)
        ]
        grid = np.array([row + row[-1:] * (VALUES - len(row)) for row in drawn])
        places = message_passing(process.forest, *process.bounds(grid, beta))
        if all(len(domain) <= VALUES for domain in domains):
            return grid[np.arange(len(grid)), places]
        domains = [own[min(place, len(own) - 1)] for own, place in zip(chunks, places, strict=True)]


class Rducb(Rival):
    """Random decompositions with upper confidence bounds, as published."""

    name: ClassVar[str] = "rducb"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._lengthscales, self._scales = np.full(len(space), LENGTHSCALE), np.full(len(space), SCALE)
        self._widths = self._ranges()
        grids = [np.linspace(0.0, 1.0, c or GRID) for c in space.cardinalities.tolist()]
        self._domains = [width * grid for width, grid in zip(self._widths, grids, strict=True)]

    def _ranges(self) -> Array:
        """Return how far apart the ends of each variable are in the model; the kernel does not see where they are."""
        widths = np.array([_range(v) if v.kind is Kind.REAL else 1.0 for v in self.space.variables])
        return np.asarray(np.clip(widths, 1.0 / LARGEST, LARGEST))

    def _seen(self, y: Array) -> Array:
        """Return the values that the model sees."""
        return np.asarray(np.clip(y, -LARGEST, LARGEST))

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        forest = random_forest(len(self.space), rng=rng)
        known = self._widths * unit(self.space, x)
        process = fitted(Additive(forest, self._lengthscales, self._scales, known, self._seen(y)))
        self._lengthscales, self._scales = process.lengthscales, process.scales  # the next fit starts here
        t = max(1, len(x) + len(pending) - len(self._initial) + 1)
        beta = 0.5 * float(np.log(2 * t))
        process = process.believing(self._widths * unit(self.space, pending))
        return from_unit(self.space, zoomed(process, self._domains, beta, rng=rng) / self._widths)


def _range(variable: Any) -> float:
    """Return the width of a real between its bounds, on its scale."""
    return float(np.log(variable.high / variable.low) if variable.log else variable.high - variable.low)


class RducbScaled(Rducb):
    """The same with standardised values, and with reals in [0, 1]."""

    name: ClassVar[str] = "rducb-scaled"

    def _ranges(self) -> Array:
        return np.ones(len(self.space))

    def _seen(self, y: Array) -> Array:
        return standardised(y)
