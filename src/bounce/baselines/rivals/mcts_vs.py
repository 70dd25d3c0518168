"""MCTS-VS: Bayesian optimization of a few variables at a time, which a Monte Carlo tree search selects.

Nouns: a group is a set of variables that were optimized together. A variable's score is how good the best points of its
groups are. A node of the tree has variables; a split gives those that score above their mean to the left child, and the
others to the right one. A visit goes down to a leaf by upper confidence bounds and optimizes random halves of its
variables, while all others take values from the best points.

The invariant: a value counts for the group that it was asked for, in every node of the path of that visit.

Song, Xue, Huang, Qian: Monte Carlo Tree Search based Variable Selection for High Dimensional Bayesian Optimization,
NeurIPS 2022.

Shapes: x (n, D) codes in [0, 1], v (n,) values from 0, the worst, to 1, the best; a group is a mask (D,).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

GROUPS = 2  # random groups per visit, each with its complement (N_v)
POINTS = 3  # per group (N_s)
EXPLORATION = 0.1  # C_p
FEWEST = 3  # a node with fewer variables is not split (N_split)
RIGHT_TURNS = 5  # visits of right children until the tree is built again (N_bad)
BEST = 20  # how many of the best points give the other variables their values (k)
CANDIDATES = 1024
MARGIN = 1e-4  # of the expected improvement
FIT = Fit(signal=(1e-5, 1e5), noise=(0.01, 0.01), start_noise=0.01, constant=False)
LENGTHSCALES = (1e-5, 1e5)

Mask = NDArray[np.bool_]


@dataclass
class Node:
    """Some variables, and the values of the groups that count for them."""

    variables: NDArray[np.intp]
    bag: dict[bytes, list[int]]
    """By group, the places of its values in the order of the tells."""
    visits: int = 0
    children: list[Node] = field(default_factory=list)

    def scores(self, v: Array, size: int) -> Array:
        """Return the score (D,) of every variable: the best values of its groups, over all values of its groups."""
        best, count = np.zeros(size), np.full(size, 1e-6)
        for group, places in self.bag.items():
            if places:
                mask = np.frombuffer(group, dtype=np.bool_)
                best += mask * v[places].max()
                count += mask * len(places)
        return np.asarray(best / count)

    def bound(self, v: Array, size: int, above: int) -> float:
        """Return the upper confidence bound of the best variable, `above` being the visits of the parent."""
        if not self.visits:
            return np.inf
        explore = 2.0 * EXPLORATION * np.sqrt(2.0 * np.sqrt(above) / self.visits)
        return float(self.scores(v, size)[self.variables].max() + explore)

    def split(self, v: Array, size: int) -> None:
        """Give the leaf two children, unless there are too few variables or they all score the same."""
        if len(self.variables) < FEWEST:
            return
        scores = self.scores(v, size)[self.variables]
        good = scores >= scores.mean()
        if max(good.sum(), (~good).sum()) >= FEWEST and not good.all() and good.any():
            parts = self.variables[good], self.variables[~good]
            self.children = [Node(part, {group: [*places] for group, places in self.bag.items()}) for part in parts]

    def groups(self, size: int, *, rng: np.random.Generator) -> list[Mask]:
        """Draw random halves of the variables and their complements, none of them empty."""
        found: dict[bytes, Mask] = {}
        for _ in range(GROUPS):
            chosen = rng.random(len(self.variables)) < 0.5
            if chosen.all() or not chosen.any():
                i = rng.integers(len(chosen))
                chosen[i] = not chosen[i]
            for part in (chosen, ~chosen):
                mask = np.zeros(size, dtype=np.bool_)
                mask[self.variables[part]] = True
                if part.any():
                    found.setdefault(mask.tobytes(), mask)
        return list(found.values())


class MctsVs(Rival):
    """MCTS-VS with Bayesian optimization inside."""

    name = "mcts-vs"
    takes = (Kind.REAL,)
    why = ", which its candidates cannot be drawn from"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        masks = np.random.default_rng([seed, len(space)]).random((GROUPS, len(space))) < 0.5
        first = [mask.tobytes() for pair in zip(masks, ~masks, strict=True) for mask in pair]
        self._first = list(dict.fromkeys(first))  # the groups that the initial points count for, in turn
        self._bag: dict[bytes, list[int]] = {}
        self._path: list[Node] = []  # of this visit, from the root to a leaf
        self._right_turns = RIGHT_TURNS  # the first visit builds the tree
        self._root: Node | None = None
        self._groups: list[Mask] = []  # what is left of this visit
        self._points: list[Array] = []  # what is left of this group: values of its variables
        self._mask = np.ones(len(space), dtype=np.bool_)

    def _propose(self) -> tuple[Codes, Any]:
        row, _ = super()._propose()
        return row, (self._mask.tobytes(), self._path)

    def _given(self, row: Codes) -> Any:
        super()._given(row)
        return self._first[len(self.trials) % len(self._first)], []

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        super()._learn(row, token, value)
        group, path = token
        for bag in (self._bag, *(node.bag for node in path)):
            bag.setdefault(group, []).append(len(self._values) - 1)

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        if not self._points:
            self._next_group(goodness(y), rng=rng)
            self._points = self._candidates(x, standardised(y), pending, rng=rng)
        best = np.argsort(y, kind="stable")[:BEST]
        row = x[rng.choice(best, len(self.space)), np.arange(len(self.space))]  # each from any of the best points
        row[self._mask] = self._points.pop(0)
        return on_grid(row)

    def _next_group(self, v: Array, *, rng: np.random.Generator) -> None:
        """Take the next group of the visit; if there is none, split the leaf and start the next visit."""
        if not self._groups:
            if self._path:
                self._path[-1].split(v, len(self.space))
            self._path = self._visit(v, rng=rng)
            self._groups = self._path[-1].groups(len(self.space), rng=rng)
        self._mask = self._groups.pop(0)
        for node in self._path:
            node.visits += 1

    def _visit(self, v: Array, *, rng: np.random.Generator) -> list[Node]:
        """Return the path from the root to the leaf with the highest bounds."""
        if self._root is None or self._right_turns >= RIGHT_TURNS:
            copied = {group: [*places] for group, places in self._bag.items()}
            self._root, self._right_turns = Node(np.arange(len(self.space)), copied), 0
        path = [self._root]
        while path[-1].children:
            bounds = np.array([child.bound(v, len(self.space), path[-1].visits) for child in path[-1].children])
            turn = int(rng.choice(np.flatnonzero(bounds == bounds.max())))
            self._right_turns += turn
            path.append(path[-1].children[turn])
        return path

    def _candidates(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> list[Array]:
        """Return the values of the group's variables with the highest expected improvement, the highest last."""
        from scipy.stats import qmc  # slow to import

        columns = np.flatnonzero(self._mask)
        covariance = Matern52(len(columns), LENGTHSCALES, shared=True, start=1.0)
        gp = FIT(covariance, x[:, columns], y).believing(pending[:, columns])
        u = qmc.Sobol(len(columns), scramble=True, rng=rng.spawn(1)[0]).random(CANDIDATES)
        return list(u[np.argsort(improvement(gp, u), kind="stable")[-POINTS:]])


def improvement(gp: Gaussian, z: Array) -> Array:
    """Return the expected improvement at rows on the lowest posterior mean at the data, less a margin."""
    mean, sd = gp.posterior(z)
    gain = gp.posterior(gp.x)[0].min() - mean - MARGIN
    ratio = gain / sd
    return np.asarray(gain * ndtr(ratio) + sd * np.exp(-0.5 * ratio**2) / np.sqrt(2.0 * np.pi))


def goodness(y: Array) -> Array:
    """Return values from 0, the worst, to 1, the best, so that their scale does not matter to the bounds."""
    scaled = y / (float(np.abs(y).max()) or 1.0)
    span = float(np.ptp(scaled))
    return (scaled.max() - scaled) / span if span > 0.0 else np.zeros_like(scaled)
