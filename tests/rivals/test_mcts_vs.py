"""MCTS-VS: its scores, splits, bounds and acquisition are those of the published code (golden values)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Real, Space
from bounce.baselines.rivals.gaussian import Matern52
from bounce.baselines.rivals.mcts_vs import (
    FIT,
    LENGTHSCALES,
    POINTS,
    RIGHT_TURNS,
    MctsVs,
    Node,
    goodness,
    improvement,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/rivals/mcts-vs.json").read_text())


def space(d: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(d)])


def node_of(golden: dict[str, Any]) -> tuple[Node, np.ndarray]:
    groups = np.array(golden["groups"], dtype=np.bool_)
    v = np.concatenate(golden["values"])
    ends = np.cumsum([0, *map(len, golden["values"])])
    bag = {group.tobytes(): list(range(a, b)) for group, a, b in zip(groups, ends, ends[1:], strict=False)}
    return Node(np.arange(groups.shape[1]), bag, visits=7), v


@pytest.mark.parametrize("golden", GOLDEN["trees"], ids=lambda case: f"{len(case['scores'])} variables")
def test_scores_splits_and_bounds_are_those_of_the_published_code(golden: dict[str, Any]) -> None:
    node, v = node_of(golden)
    d = len(golden["scores"])
    np.testing.assert_allclose(node.scores(v, d), golden["scores"])
    node.split(v, d)
    assert [child.variables.tolist() for child in node.children] == golden["children"]
    for child, visits, bound in zip(node.children, (3, 2), golden["bounds"], strict=True):
        assert child.bound(v, d, 7) == np.inf
        child.visits = visits
        assert child.bound(v, d, 7) == pytest.approx(bound)


@pytest.mark.parametrize("golden", GOLDEN["models"], ids=lambda case: f"{len(case['x'])} points")
def test_fit_and_expected_improvement_are_those_of_the_published_code(golden: dict[str, Any]) -> None:
    x = np.array(golden["x"])
    gp = FIT(Matern52(x.shape[1], LENGTHSCALES, shared=True, start=1.0), x, np.array(golden["minus_y"]))
    assert [gp.signal, float(np.exp(gp.theta[0]))] == pytest.approx([golden["signal"], golden["lengthscale"]], rel=0.01)
    np.testing.assert_allclose(improvement(gp, np.array(golden["z"])), golden["improvement"], rtol=0.02, atol=1e-9)


def test_few_variables_are_not_split_and_children_have_bags_of_their_own() -> None:
    node = Node(np.arange(2), {np.array([True, False]).tobytes(): [0], np.array([False, True]).tobytes(): [1]})
    node.split(np.array([0.0, 1.0]), 2)
    assert not node.children
    wide, v = node_of(GOLDEN["trees"][0])
    wide.split(v, 6)
    wide.children[0].bag.clear()
    assert wide.bag
    assert wide.children[1].bag == wide.bag


def test_groups_are_halves_and_their_complements() -> None:
    node = Node(np.array([1, 3, 4, 8]), {})
    rng = np.random.default_rng(0)
    for _ in range(20):
        masks = node.groups(10, rng=rng)
        assert 2 <= len(masks) <= 4
        for mask in masks:
            assert 1 <= mask.sum() <= 3
            assert set(np.flatnonzero(mask)) <= {1, 3, 4, 8}
            assert any(
                (np.flatnonzero(mask ^ other) == [1, 3, 4, 8]).all() for other in masks if (mask ^ other).sum() == 4
            )


def run(optimizer: MctsVs, n: int) -> list[Any]:
    trials = []
    for _ in range(n):
        trial = optimizer.ask()[0]
        trials.append(trial)
        x = optimizer.space.encode([trial.point])[0]
        optimizer.tell(trial, float(x[0] + x[1]))
    return trials


def test_other_variables_take_their_values_from_the_best_points() -> None:
    optimizer = MctsVs(space(10), 60, 0)
    run(optimizer, 40)
    known = np.array(optimizer._rows)
    best = known[np.argsort(optimizer._values, kind="stable")[:20]]
    row = optimizer.space.encode([optimizer.ask()[0].point])[0]
    others = np.flatnonzero(~optimizer._mask)
    assert len(others) >= 5
    assert all(row[j] in best[:, j] for j in others)


def test_a_group_gets_three_points_and_its_values_count_on_its_path() -> None:
    optimizer = MctsVs(space(6), 60, 0)
    run(optimizer, 5)
    run(optimizer, 1)
    group, path = optimizer._mask.tobytes(), optimizer._path
    assert len(optimizer._points) == POINTS - 1
    run(optimizer, 2)
    assert [node.bag[group][-3:] for node in path] == [[5, 6, 7]] * len(path)
    assert optimizer._bag[group][-3:] == [5, 6, 7]
    assert sorted(i for places in optimizer._bag.values() for i in places) == list(range(8))


def test_right_turns_rebuild_the_tree() -> None:
    optimizer = MctsVs(space(12), 100, 0)
    run(optimizer, 50)
    root = optimizer._root
    optimizer._right_turns, optimizer._points, optimizer._groups = RIGHT_TURNS, [], []
    optimizer.ask()
    assert optimizer._root is not None
    assert optimizer._root is not root
    assert not optimizer._root.children
    assert optimizer._root.bag == optimizer._bag


def test_goodness_does_not_depend_on_the_scale() -> None:
    y = np.array([3.0, -1.0, 1.0])
    for scale in (1e-300, 1.0, 1e300):
        np.testing.assert_allclose(goodness(scale * y), [0.0, 1.0, 0.5])
    np.testing.assert_array_equal(goodness(np.full(3, 7.0)), 0.0)
