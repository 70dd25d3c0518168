"""bench/structured.py: its problems and its runs."""

import math

import numpy as np
import pytest

import asks
import structured
from bounce import Mixture, Permutation, Space, Subset
from bounce.errors import InvalidSpace


@pytest.mark.parametrize("name", [name for name in structured.PROBLEMS if not name.startswith("pipeline")])
def test_a_problem_has_a_value_for_every_point_of_its_space(name: str) -> None:
    problem = structured.PROBLEMS[name]()
    points = problem.space.decode(problem.space.sample(20, rng=np.random.default_rng(0)))
    values = [problem.objective(point) for point in points]
    assert all(map(math.isfinite, values))
    assert len(set(values)) > 5


def test_a_pipeline_has_only_the_hyperparameters_of_its_family() -> None:
    pytest.importorskip("sklearn")
    problem = structured.pipeline("iris")
    for point in problem.space.decode(problem.space.sample(10, rng=np.random.default_rng(0))):
        families = {name.partition("_")[0] for name in point if "_" in name}
        assert families == {point["family"]}


def test_a_run_is_the_best_value_so_far_and_a_method_that_cannot_is_refused() -> None:
    problem = structured.tour()
    best = structured.run(problem, "random", 0, 30)
    assert len(best) == 30
    assert best == sorted(best, reverse=True)
    with pytest.raises(InvalidSpace, match="takes no permutations"):
        structured.run(problem, "tpe", 0, 30)
    with pytest.raises(InvalidSpace):
        structured.run(problem, "flat", 0, 30)


def test_levels_are_all_that_a_parameter_may_be() -> None:
    subset = structured.levels(Subset("s", ["a", "b", "c"], at_most=2))
    assert len(subset) == 1 + 3 + 3
    assert {"a": 1.0, "b": 0.0, "c": 1.0} in subset
    mixture = structured.levels(Mixture("m", ["x", "y", "z"], most=2, step=0.25))
    assert len(mixture) == 3 + 3 * 3
    assert all(sum(cells.values()) == 1 for cells in mixture)
    assert len({tuple(cells.values()) for cells in mixture}) == len(mixture)
    with pytest.raises(InvalidSpace, match="'order' has no list of levels"):
        structured.levels(Permutation("order", range(4)))


@pytest.mark.parametrize("name", asks.CASES)
def test_every_ask_is_measured_with_constraints_that_exclude_points(name: str) -> None:
    parameters, constraints = asks.CASES[name]
    space = Space(parameters, constraints=constraints)
    assert len(constraints) == 3
    assert space.structure is not None
    drawn = space.uniform(2000, rng=np.random.default_rng(0))
    assert 0.001 < space.structure.allowed(drawn).mean() < 0.9
    seconds = asks.asks(space, 6, 0)
    assert len(seconds) == 6
    assert min(seconds) > 0
