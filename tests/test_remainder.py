"""The remainder: every point is found where conditions and constraints leave few of very many combinations."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bounce
from bounce import Binary, Categorical, Integer, Mixture, Permutation, Real, Space, Subset
from bounce.subspace.embedding import Embedding

BITS = [f"b{i}" for i in range(25)]
LETTERS = "ABCDEFGHIJ"


def ordered(items: str) -> list[str]:
    return [f"`o: {a} before {b}`" for a, b in itertools.pairwise(items)]


def chain() -> Space:
    return Space([Binary("k0"), *(Binary(f"k{i}", when={f"k{i - 1}": True}) for i in range(1, 20))])


def one_branch_of_few() -> Space:
    some = [Binary(name, when={"k": "x"}) for name in BITS]
    return Space([Categorical("k", ["x", "y", "z"]), *some], constraints=[f"sum({','.join(BITS)}) <= 3"])


WHOLE: dict[str, tuple[Callable[[], Space], int]] = {
    "a chain of conditions": (chain, 21),
    "a subset of many with one member": (
        lambda: Space([Subset("s", [f"m{i}" for i in range(28)], at_most=1)], constraints=["not `s.m0`"]),
        28,
    ),
    "orders of which most pairs are given": (
        lambda: Space([Permutation("o", list(LETTERS[:8]))], constraints=ordered(LETTERS[:7])),
        8,
    ),
    "one order": (lambda: Space([Permutation("o", list(LETTERS))], constraints=ordered(LETTERS)), 1),
    "a corner of a mixture": (
        lambda: Space(
            [Mixture("m", list("abcdef"), step=0.01)], constraints=["`m.a` >= 0.9", "`m.b` >= 0.08", "`m.c` >= 0.01"]
        ),
        6,
    ),
    "equal integers": (
        lambda: Space([Integer(f"i{k}", 0, 12) for k in range(4)], constraints=[f"i{k} == i{k + 1}" for k in range(3)]),
        13,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_every_point_of_a_few_among_very_many_combinations_is_proposed_once(name: str) -> None:
    make, count = WHOLE[name]
    space = make()
    optimizer = bounce.Bounce(space, budget=count + 10, seed=0, noise="none")
    points: list[dict[str, Any]] = []
    with contextlib.suppress(bounce.NothingToAsk):
        for _ in range(count + 10):
            (trial,) = optimizer.ask()
            optimizer.tell(trial, float(len(points) % 3))
            points.append(trial.point)
    assert len({str(point) for point in points}) == len(points) == count
    assert all(point in space for point in points)


@pytest.mark.slow
def test_a_branch_that_a_constraint_almost_empties_is_searched_too() -> None:
    space = one_branch_of_few()
    drawn = space.sample(200, rng=np.random.default_rng(0))
    assert 10 <= np.count_nonzero(drawn[:, 0] == 0) <= 100  # random combinations never have it

    def objective(point: dict[str, Any]) -> float:
        return -10.0 - sum(value for name, value in point.items() if name != "k") if point["k"] == "x" else 0.0

    result = bounce.minimize(objective, space, budget=30, seed=0)
    assert len(result.trials) == 30
    assert result.best is not None
    assert result.best.value == -13.0


@pytest.mark.slow
def test_the_search_goes_on_with_its_model_where_the_initial_design_finds_no_point() -> None:
    space = one_branch_of_few()
    space = Space(space.parameters, constraints=[*space.constraints, "k == 'x'"])
    result = bounce.minimize(lambda p: -float(p["b3"] + p["b7"] + p["b11"]), space, budget=40, seed=0)
    assert len(result.trials) == 40
    assert any(trial.acquisition is not None for trial in result.trials)
    assert result.best is not None
    assert result.best.value == -3.0


def test_the_combinations_of_a_structure_are_not_listed_where_they_are_many() -> None:
    space = Space([Subset("s", [f"m{i}" for i in range(28)], at_most=1)])
    assert space.size == 29
    assert Embedding.random(space, len(space), rng=np.random.default_rng(0)).points(100_000) is None


@pytest.mark.parametrize(
    ("space", "other"),
    [
        (Space([Subset("s", list(range(6)), at_least=2, at_most=4)]), 1),
        (Space([Mixture("m", list("abcd"), most=3, step=0.1)]), 2),
        (Space([Permutation("o", list("abcdef"))]), 3),
    ],
)
def test_a_step_of_a_composite_is_another_value_of_it(space: Space, other: int) -> None:
    rng = np.random.default_rng(other)
    assert space.structure is not None
    ((_, composite),) = space.structure.composites
    codes = composite.draw(200, rng=rng)
    moved = composite.stepped(codes, rng=rng)
    assert composite.valid(moved).all()
    assert (moved != codes).any(axis=1).mean() > 0.5
    reached = codes
    for _ in range(30):
        reached = composite.stepped(reached, rng=rng)
    assert len(np.unique(reached, axis=0)) > 15


def test_a_bound_on_an_absolute_value_is_two_planes() -> None:
    space = Space([Real("a", 0, 1), Real("b", 0, 1)], constraints=["abs(a - b) <= 1e-6"])
    points = space.decode(space.sample(50, rng=np.random.default_rng(0)))
    assert all(abs(point["a"] - point["b"]) <= 1e-6 for point in points)
    assert np.ptp([point["a"] for point in points]) > 0.5
    (constraint,) = space.constraints
    assert sorted(bound for _, bound in constraint.planes()) == [1e-6, 1e-6]
    assert constraint.linear() is None


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 8])
def test_a_batch_has_all_the_points_that_are_left(n: int) -> None:
    optimizer = bounce.Bounce(chain(), budget=40, seed=0, noise="none")
    counts, points = list[int](), set[str]()
    with contextlib.suppress(bounce.NothingToAsk):
        while True:
            trials = optimizer.ask(n)
            optimizer.tell(trials, [-float(len(trial.point)) for trial in trials])
            counts.append(len(trials))
            points.update(str(trial.point) for trial in trials)
    assert counts == [n] * (21 // n) + [21 % n] * (21 % n > 0)
    assert len(points) == 21


def test_a_function_is_not_called_for_branches_where_there_are_none() -> None:
    calls = list[dict[str, Any]]()

    def allowed(point: dict[str, Any]) -> bool:
        calls.append(point)
        return bool(point["x"] < 0.9)

    space = Space([Real("x", 0, 1), Integer("i", 1, 9)], constraints=[allowed])
    before = len(calls)
    space.sample(8, rng=np.random.default_rng(0))
    assert len(calls) - before < 600
