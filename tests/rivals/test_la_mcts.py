"""LA-MCTS: its boundaries and clusters are those of scikit-learn (golden values), its regions hold their points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Real, Space
from bounce.baselines.rivals import la_mcts
from bounce.baselines.rivals.la_mcts import (
    DESIGN,
    EXPLORATION,
    LEAF,
    VISIT,
    Boundary,
    LaMcts,
    LaMctsRandom,
    Leaf,
    best_leaf,
    clusters,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/rivals/la-mcts.json").read_text())


def space(d: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(d)])


@pytest.mark.parametrize("golden", GOLDEN["boundaries"], ids=lambda case: f"{len(case['x'])} points")
def test_boundaries_are_those_of_libsvm(golden: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(la_mcts, "TOLERANCE", 1e-6)
    boundary = Boundary.between(np.array(golden["x"]), np.array(golden["good"]))
    z, decision = np.array(golden["z"]), np.array(golden["decision"])
    k = np.exp(-((z[:, None] - boundary.x) ** 2).sum(axis=2) / z.shape[1])
    np.testing.assert_allclose(k @ boundary.weights + boundary.bias, decision, atol=1e-4)
    np.testing.assert_array_equal(boundary.good(z), decision > 0.0)


@pytest.mark.parametrize("golden", GOLDEN["clusters"], ids=lambda case: f"{len(case['points'])} points")
def test_clusters_are_as_tight_as_those_of_scikit_learn(golden: dict[str, Any]) -> None:
    points = np.array(golden["points"])
    one = clusters(points, rng=np.random.default_rng(0))
    spread = sum(((points[side] - points[side].mean(axis=0)) ** 2).sum() for side in (one, ~one))
    assert spread <= golden["spread"] * 1.01
    agreement = (one == np.array(golden["labels"], dtype=bool)).mean()
    assert max(agreement, 1.0 - agreement) > 0.9


def valley(n: int = 120, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(3).random((n, d))
    return x, 1.0 - ((x - 0.2) ** 2).sum(axis=1)


def test_a_split_puts_the_better_points_on_the_good_side_and_each_part_holds_its_own() -> None:
    x, v = valley()
    parts = Leaf(np.arange(len(x))).split(x, v, rng=np.random.default_rng(0))
    assert parts is not None
    assert v[parts[0].rows].mean() > v[parts[1].rows].mean()
    assert sorted([*parts[0].rows, *parts[1].rows]) == list(range(len(x)))
    for part in parts:
        np.testing.assert_array_equal(np.flatnonzero(part.holds(x)), part.rows)


def test_the_way_down_follows_the_upper_confidence_bounds() -> None:
    x, v = valley()
    leaf = best_leaf(x, v, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(np.flatnonzero(leaf.holds(x)), leaf.rows)
    assert len(leaf.rows) <= LEAF or leaf.split(x, v, rng=np.random.default_rng(1)) is None
    # the first turn, by the formula
    parts = Leaf(np.arange(len(x))).split(x, v, rng=np.random.default_rng(0))
    assert parts is not None
    bounds = [v[part.rows].mean() + 2 * EXPLORATION * np.sqrt(2 * len(x) ** 0.5 / len(part.rows)) for part in parts]
    assert leaf.sides[0][1] is bool(bounds[0] >= bounds[1])


def test_points_drawn_from_a_leaf_lie_in_its_region() -> None:
    x, v = valley()
    rng = np.random.default_rng(0)
    leaf = best_leaf(x, v, rng=rng)
    assert leaf.sides
    z = leaf.sample(x, 30, rng=rng)
    assert leaf.holds(z).all()
    assert ((z >= 0.0) & (z <= 1.0)).all()
    assert len(np.unique(z, axis=0)) == 30


def test_equal_points_and_constant_values_do_not_split() -> None:
    rng = np.random.default_rng(0)
    assert Leaf(np.arange(30)).split(np.full((30, 2), 0.5), np.zeros(30), rng=rng) is None
    assert len(best_leaf(rng.random((30, 2)), np.zeros(30), rng=rng).rows) > 0


@pytest.mark.slow
def test_a_visit_has_fifty_points_and_the_next_one_starts_in_the_best_leaf() -> None:
    optimizer = LaMcts(space(3), 130, 0)
    while optimizer.remaining > 15:
        trial = optimizer.ask()[0]
        x = optimizer.space.encode([trial.point])[0]
        optimizer.tell(trial, float(((x - 0.2) ** 2).sum()))
    numbers = [number for number, _ in optimizer._sources]
    assert numbers[0] == 0
    changes = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1]]
    assert changes
    assert np.diff([0, *changes]).max() <= VISIT + len(optimizer._initial)
    for change in changes:
        design = optimizer._sources[change : change + DESIGN]
        assert design == [(numbers[change], True)] * len(design)
    best = np.argsort(optimizer._values)[:10]
    assert (np.array(optimizer._values)[best] < 0.01).all()


def total(trial: Any) -> float:
    return float(sum(trial.point.values()))


def test_random_search_inside_draws_from_the_best_leaf() -> None:
    optimizer = LaMctsRandom(space(2), 80, 0, 30)
    optimizer.tell(trials := optimizer.ask(30), [total(trial) for trial in trials])
    later = []
    for _ in range(40):
        trial = optimizer.ask()[0]
        later.append(total(trial))
        optimizer.tell(trial, later[-1])
    assert np.mean(later[-20:]) < 0.6
