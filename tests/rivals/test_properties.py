"""What holds for every rival: its points, its budget, its seed, and values of any sort."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Categorical, InvalidSpace, Ordinal, Real, Space, baselines
from bounce.baselines.rivals.catalogue import RIVALS

pytestmark = pytest.mark.slow

REALS = ("turbo", "turbo-m", "baxus", "hesbo", "rembo", "alebo", "gtbo", "la-mcts", "mcts-vs")
BITS = ("bocs",)
DISCRETE = ("combo", "combo-published", "random-projections")
DEAR = {"alebo": 20, "bodi": 20, "bodi-published": 20, "casmopolitan": 16, "combo": 20, "combo-published": 20, "pr": 12}
"""The rivals whose proposals take longest, and from how many points they must have learned something."""


def there(name: str) -> bool:
    return importlib.util.find_spec(f"bounce.baselines.rivals.{RIVALS[name].module}") is not None


EACH = [name for name in RIVALS if there(name)]


def space_for(name: str, n: int = 6) -> Space:
    """A space of n variables that the rival takes, with as many kinds as it takes."""
    if name in REALS:
        return Space([Real(f"x{i}", 0.0, 1.0) for i in range(n)])
    if name in BITS:
        return Space([Binary(f"x{i}") for i in range(n)])
    kinds: list[Callable[[str], Any]] = [
        lambda key: Binary(key),
        lambda key: Categorical(key, ["a", "b", "c"]),
        lambda key: Ordinal(key, [1, 2, 3, 4]),
        lambda key: Real(key, 0.0, 1.0),
    ]
    if name in DISCRETE:
        kinds = kinds[:3]
    if name == "cocabo":
        kinds = [kinds[0], kinds[1], kinds[3]]
    return Space([kinds[i % len(kinds)](f"x{i}") for i in range(n)])


def weight(space: Space) -> Callable[[dict[str, Any]], float]:
    """The less of every code, the better."""
    scale = np.maximum(space.cardinalities - 1, 1)
    return lambda point: float((space.encode([point])[0] / scale).sum())


def run(name: str, space: Space, budget: int, *, seed: int = 0, ask: int = 1, value: Any = None) -> Any:
    optimizer = baselines.make(name, space, budget, seed)
    value = value or weight(space)
    while not optimizer.done:
        trials = optimizer.ask(ask)
        optimizer.tell(trials, [value(trial.point) for trial in trials])
    return optimizer


@pytest.mark.parametrize("name", EACH)
def test_points_are_new_lie_in_the_space_and_are_those_of_the_seed(name: str) -> None:
    space = space_for(name)
    first, second = (run(name, space, 10, seed=3).trials for _ in range(2))
    assert [trial.point for trial in first] == [trial.point for trial in second]
    assert all(trial.point in space for trial in first)
    assert len({str(trial.point) for trial in first}) == len(first) == 10
    assert [t.point for t in first[:4]] != [t.point for t in baselines.make(name, space, 10, 4).ask(4)]


@pytest.mark.parametrize("name", EACH)
def test_batches_and_budgets_that_end_within_one(name: str) -> None:
    space = space_for(name)
    trials = run(name, space, 10, ask=4).trials
    assert len(trials) == 10
    assert len({str(trial.point) for trial in trials}) == 10


@pytest.mark.parametrize("name", EACH)
def test_it_asks_while_trials_are_pending_and_takes_values_in_any_order(name: str) -> None:
    space = space_for(name)
    optimizer = baselines.make(name, space, 12, 0)
    waiting = optimizer.ask(7)
    optimizer.tell(waiting[3], 1.0)
    more = optimizer.ask(3)
    assert len({str(trial.point) for trial in (*waiting, *more)}) == 10
    optimizer.tell([more[2], more[0]], [0.5, 2.0])
    assert optimizer.ask()[0].point in space


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("value", ["constant", "tiny", "huge", "one outlier"])
def test_values_of_any_sort(name: str, value: str) -> None:
    space = space_for(name)
    base = weight(space)
    values: dict[str, Callable[[Any], float]] = {
        "constant": lambda point: 7.0,
        "tiny": lambda point: 1e-12 * base(point),
        "huge": lambda point: 1e300 * base(point),
        "one outlier": lambda point: 1e9 if base(point) > 3.4 else base(point),
    }
    trials = run(name, space, 9, value=values[value]).trials
    assert all(trial.point in space for trial in trials)


@pytest.mark.parametrize("name", EACH)
def test_a_failure_counts_as_the_worst_value_so_far(name: str) -> None:
    """So a run with failures has the points of a run that was told those values."""
    space = space_for(name)
    value = weight(space)
    failing, told = (baselines.make(name, space, 11, 0) for _ in range(2))
    worst = -np.inf
    while not failing.done:
        pair = [optimizer.ask()[0] for optimizer in (failing, told)]
        assert pair[0].point == pair[1].point
        own = value(pair[0].point)
        if pair[0].id in (3, 6, 7):
            failing.fail(pair[0])
            told.tell(pair[1], worst)
        else:
            worst = max(worst, own)
            failing.tell(pair[0], own)
            told.tell(pair[1], own)
    assert [trial.id for trial in failing.trials if trial.state == "failed"] == [3, 6, 7]


@pytest.mark.parametrize("name", EACH)
def test_failures_before_the_first_value_wait_for_it(name: str) -> None:
    space = space_for(name)
    optimizer = baselines.make(name, space, 12, 0)
    for _ in range(7):
        optimizer.fail(optimizer.ask())
    assert optimizer.best is None
    while not optimizer.done:
        trials = optimizer.ask()
        optimizer.tell(trials, [weight(space)(trial.point) for trial in trials])
    assert len({str(trial.point) for trial in optimizer.trials}) == 12


@pytest.mark.parametrize("name", EACH)
def test_two_variables(name: str) -> None:
    space = space_for(name, 2)
    if name == "cocabo":
        space = Space([Categorical("a", ["a", "b", "c"]), Real("b", 0.0, 1.0)])
    count = int(min(space.size, 9))
    assert len(run(name, space, 9).trials) == 9
    assert count >= 4


def lowest(name: str, space: Space, budget: int, seeds: int) -> float:
    """The mean of the best quarter of a run's points, over the seeds."""
    value = weight(space)
    runs = [sorted(value(trial.point) for trial in run(name, space, budget, seed=seed).trials) for seed in range(seeds)]
    return float(np.mean([values[: budget // 4] for values in runs]))


@pytest.mark.parametrize("name", EACH)
def test_it_learns(name: str) -> None:
    """The best quarter of its points is better than that of random search; dear ones must learn from fewer points."""
    space, budget = space_for(name, 8), DEAR.get(name, 35)
    assert lowest(name, space, budget, 2) < lowest("random", space, budget, 20)


@pytest.mark.parametrize("name", EACH)
def test_other_kinds_are_refused_with_the_reason(name: str) -> None:
    if name not in (*REALS, *BITS, *DISCRETE, "cocabo"):
        pytest.skip(f"{name} takes all kinds")
    other = Space([Real("a", 0, 1), Real("b", 0, 1)] if name not in REALS else [Real("a", 0, 1), Binary("b")])
    with pytest.raises(InvalidSpace, match=name):
        baselines.make(name, other, 10, 0)


def test_names_say_what_is_taken_and_needed() -> None:
    found = baselines.names()
    assert found["bocs"] == "takes bits"
    assert found["tpe"] == "takes all kinds, needs optuna"
    assert "bounce-paper" in found
