from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Categorical, Ordinal, Real, Space
from bounce.baselines.rivals.gaussian import Fit
from bounce.baselines.rivals.leaf import KAPPA, Bound, SameLeaf, lowest
from bounce.baselines.rivals.rival import standardised
from bounce.baselines.rivals.trees import Trees, split_values

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "leaf.json").read_text())


def space_of(cardinalities: list[int]) -> Space:
    """Reals for 0, bits for 2, ordinals for more, and categories for negative numbers."""
    kinds: list[Any] = []
    for i, c in enumerate(cardinalities):
        if c == 0:
            kinds.append(Real(f"x{i}", 0.0, 1.0))
        elif c == 2:
            kinds.append(Binary(f"x{i}"))
        elif c > 0:
            kinds.append(Ordinal(f"x{i}", list(range(c))))
        else:
            kinds.append(Categorical(f"x{i}", [f"v{k}" for k in range(-c)]))
    return Space(kinds)


MIXED = space_of([0, 2, 5, -3, -5, 0])


def trees_of(space: Space, n: int, seed: int = 0) -> tuple[Trees, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = space.sample(n, rng=rng)
    y = standardised(np.sin(3.0 * x).sum(axis=1) + 0.1 * rng.standard_normal(n))
    return Trees.grown(space, x, y), x, y


@pytest.mark.parametrize("case", list(GOLDEN))
def test_the_kernel_is_that_of_lightgbm(case: str) -> None:
    """Up to splits of equal gain, which small data have many of, and the published rounding of thresholds."""
    g = GOLDEN[case]
    x, y, z = (np.array(g[key], dtype=np.float64) for key in "xyz")
    trees = Trees.grown(space_of(g["cardinalities"]), x, standardised(y))
    assert len(trees.feature) == g["trees"]
    leaves = (trees.leaves(z).astype(np.float64), trees.leaves(x).astype(np.float64))
    gap = np.abs(SameLeaf()(np.zeros(0), *leaves) - np.array(g["kernel"]) / g["trees"])
    if len(x) == 120:
        assert gap.max() <= (0.02 + 1e-9 if case.startswith("reals") else 1e-9)
    else:
        assert gap.mean() < (0.002 if len(x) == 40 else 0.05)


def test_the_kernel_is_the_share_of_equal_leaves() -> None:
    trees, x, _ = trees_of(MIXED, 30)
    leaves = trees.leaves(x)
    k = SameLeaf()(np.zeros(0), leaves.astype(np.float64), leaves.astype(np.float64))
    for a, b in itertools.product(range(5), range(30)):
        assert k[a, b] == pytest.approx(np.mean([p == q for p, q in zip(leaves[a], leaves[b], strict=True)]))


def test_numbers_are_split_after_zero_and_between_three_points_or_more() -> None:
    np.testing.assert_allclose(split_values(np.array([0.0, 1.0, 1.0, 0.0])), [0.0])
    np.testing.assert_allclose(split_values(np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.9])), [0.4, 0.8])
    assert not len(split_values(np.array([0.5, 0.5, 0.5])))


def test_boosting_lowers_the_residual_by_what_the_trees_explain() -> None:
    """A single bit with an effect of one: each tree takes a tenth of what is left, and no other variable is split."""
    space = space_of([2, 2])
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 3)
    trees = Trees.grown(space, x, x[:, 0].copy())
    assert len(trees.feature) == 50
    assert (trees.feature[:, 0] == 0).all()
    assert np.isinf(trees.threshold[:, 1:]).all()


def test_constant_values_grow_no_tree() -> None:
    assert not len(Trees.grown(MIXED, MIXED.sample(9, rng=np.random.default_rng(0)), np.zeros(9)).feature)


def test_the_middle_of_a_cell_lies_in_all_its_leaves() -> None:
    trees, x, _ = trees_of(MIXED, 60)
    rng = np.random.default_rng(1)
    for row in (*x[:10], *MIXED.sample(30, rng=rng)):
        point = trees.middle(row, rng=rng)
        assert MIXED.holds(point[None])
        assert (trees.leaves(point[None]) == trees.leaves(row[None])).all()


def test_a_variable_that_no_tree_splits_is_drawn_freely() -> None:
    space = space_of([2, 2, -4])
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    trees = Trees.grown(space, x, x[:, 0].copy())
    rng = np.random.default_rng(0)
    points = np.array([trees.middle(x[1], rng=rng) for _ in range(60)])
    assert (points[:, 0] == 1).all()
    assert set(points[:, 1]) == {0, 1}
    assert set(points[:, 2]) == {0, 1, 2, 3}


def bound_of(space: Space, n: int) -> tuple[Bound, np.ndarray]:
    trees, x, y = trees_of(space, n)
    return Bound(trees, Fit()(SameLeaf(), trees.leaves(x).astype(np.float64), y)), x


def test_the_bound_is_that_of_the_posterior_with_noise() -> None:
    bound, _ = bound_of(MIXED, 40)
    z = MIXED.sample(15, rng=np.random.default_rng(2))
    mean, sd = bound.gp.posterior(bound.trees.leaves(z).astype(np.float64))
    np.testing.assert_allclose(bound(z), mean - KAPPA * np.sqrt(sd**2 + bound.gp.noise), atol=1e-9)


@pytest.mark.parametrize("cardinalities", [[2] * 9, [5, 4, -3, 3, 2], [0, 0, 2, -3]])
def test_the_search_finds_the_lowest_bound_of_all_cells(cardinalities: list[int]) -> None:
    space = space_of(cardinalities)
    hits = 0
    for seed in range(5):
        trees, x, y = trees_of(space, 25, seed)
        bound = Bound(trees, Fit()(SameLeaf(), trees.leaves(x).astype(np.float64), y))
        choices = trees.choices()
        cells = np.tile(x[:1], (int(np.prod([len(values) for values in choices.values()])), 1))
        cells[:, list(choices)] = list(itertools.product(*choices.values()))
        starts = np.concatenate([x, space.sample(200, rng=np.random.default_rng(seed))])
        hits += float(bound(lowest(bound, starts, choices)[None])[0]) <= bound(cells).min() + 1e-9
    assert hits == 5
