from __future__ import annotations

import importlib.util
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from bounce import (
    Binary,
    Categorical,
    Integer,
    InvalidInput,
    InvalidSpace,
    InvalidTell,
    NothingToAsk,
    Ordinal,
    Real,
    Space,
    Subset,
    baselines,
)
from bounce.baselines.baseline import INITIAL, codes_of, values_of
from spaces import binary, generators, mixed, spaces

NEEDS = {
    "tpe": ["optuna"],
    "smac": ["smac"],
    "cmaes": ["cmaes"],
    "nevergrad": ["nevergrad"],
    "gp-sampler": ["optuna", "torch"],
    "botorch": ["botorch"],
}


def installed(name: str) -> bool:
    return all(importlib.util.find_spec(module) for module in NEEDS.get(name, []))


EACH = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not installed(name), reason=f"{name} is not installed: pip install 'bounce-bo[peers]'"
        ),
    )
    for name in ("random", *NEEDS)
]


def run(
    name: str, space: Space, budget: int, seed: int, objective: Callable[[dict[str, Any]], float], *, ask: int = 1
) -> baselines.Optimizer:
    optimizer = baselines.make(name, space, budget, seed)
    while not optimizer.done:
        trials = optimizer.ask(ask)
        optimizer.tell(trials, [objective(trial.point) for trial in trials])
    return optimizer


def weight(space: Space) -> Callable[[dict[str, Any]], float]:
    """A trivial objective: the less of every code, the better."""
    scale = np.maximum(space.cardinalities - 1, 1)
    return lambda point: float((space.encode([point])[0] / scale).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_points_of_every_kind_lie_in_the_space_and_a_seed_repeats_them(name: str) -> None:
    space, budget = mixed(1), 7 if name == "botorch" else 14  # seconds per ask
    runs = [run(name, space, budget, 7, weight(space)) for _ in range(2)]
    assert [trial.point for trial in runs[0].trials] == [trial.point for trial in runs[1].trials]
    assert all(trial.point in space for trial in runs[0].trials)
    assert [trial.id for trial in runs[0].trials] == list(range(budget))
    other = baselines.make(name, space, budget, 8).ask(INITIAL)
    assert [trial.point for trial in other] != [trial.point for trial in runs[0].trials[:INITIAL]]


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_the_first_five_points_are_those_of_the_seed(name: str) -> None:
    space = mixed(2)
    first = baselines.make(name, space, 20, 3).ask(INITIAL)
    assert [trial.point for trial in first] == space.decode(baselines.initial_points(space, 3))
    assert not np.array_equal(baselines.initial_points(space, 3), baselines.initial_points(space, 4))


def test_the_first_points_are_distinct_in_small_spaces() -> None:
    """As many as there are; a space whose points are distinct anyway keeps those it had."""
    small, tiny, large = binary(3), binary(2), mixed(2)
    for seed in range(20):
        assert len(np.unique(baselines.initial_points(small, seed), axis=0)) == INITIAL
        assert len(np.unique(baselines.initial_points(tiny, seed), axis=0)) == 4
        drawn = large.sample(INITIAL, rng=np.random.default_rng([seed, INITIAL]))
        np.testing.assert_array_equal(baselines.initial_points(large, seed), drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_it_may_start_with_more_points(name: str) -> None:
    space = mixed(1)
    optimizer = baselines.make(name, space, 14, 3, initial=12)
    first = optimizer.ask(12)
    assert [trial.point for trial in first] == space.decode(baselines.initial_points(space, 3, 12))
    optimizer.tell(first, [weight(space)(trial.point) for trial in first])
    assert optimizer.ask()[0].point in space


FAMILIES = Space(
    [
        Categorical("family", ["forest", "svm", "net"]),
        Integer("trees", 10, 500, step=10, when={"family": "forest"}),
        Categorical("kernel", ["rbf", "poly", "linear"], when={"family": "svm"}),
        Real("gamma", 1e-4, 1, log=True, when={"kernel": ["rbf", "poly"]}),
        Integer("degree", 2, 5, when={"family": "svm", "kernel": "poly"}),
        Ordinal("width", [16, 32, 64], when={"family": "net"}),
        Binary("scaled"),
        Real("rate", 0, 1),
    ]
)
ALLOWED = [
    "not (family == 'svm' and not scaled)",
    "kernel != 'poly' or degree < 5",
    "not (scaled and width == 64)",
    "scaled or width in [32, 64]",
    "family != 'forest' or scaled",  # so the first value of all is forbidden
]


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in EACH if each.values in (("tpe",), ("smac",))])
def test_conditions_are_passed_on(name: str) -> None:
    optimizer = run(name, FAMILIES, 30, 0, lambda point: point["rate"] - len(point))
    assert all(trial.point in FAMILIES for trial in optimizer.trials)
    assert len({trial.point["family"] for trial in optimizer.trials}) == 3
    assert {"trees", "gamma", "width"} <= {name for trial in optimizer.trials for name in trial.point}


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in EACH if each.values == ("smac",)])
def test_forbidden_combinations_are_passed_on(name: str) -> None:
    space = Space(FAMILIES.parameters, constraints=ALLOWED)
    optimizer = run(name, space, 40, 0, lambda point: point["scaled"] + point["rate"])  # which leads to what is not
    assert all(trial.point in space for trial in optimizer.trials)
    assert optimizer.best is not None
    assert not optimizer.best.point["scaled"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in EACH if each.values == ("smac",)])
@pytest.mark.parametrize(
    "constraint", ["rate <= 0.5", "trees * rate <= 9", "kernel == 'rbf' or rate < 0.5", lambda point: point["scaled"]]
)
def test_other_constraints_are_refused_by_name(name: str, constraint: Any) -> None:
    said = "function" if callable(constraint) else constraint
    with pytest.raises(InvalidSpace, match=f"takes only constraints that forbid .*{re.escape(said)}"):
        baselines.make(name, Space(FAMILIES.parameters, constraints=[constraint]), 30, 0)
    with pytest.raises(InvalidSpace, match="takes no subsets: choose 'bounce' or 'random'"):
        baselines.make(name, Space([Subset("s", ["a", "b"])]), 30, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in EACH if each.values != ("random",)])
def test_it_learns(name: str) -> None:
    """On the sum of twelve bits, its ten best points are better than those of random search."""
    space = binary(12)
    seeds = (0,) if name in ("botorch", "smac", "gp-sampler") else (0, 1)  # these take seconds per ask
    budget = 20 if name == "botorch" else 40

    def lowest(name: str, seed: int) -> list[float]:
        return sorted(weight(space)(trial.point) for trial in run(name, space, budget, seed, weight(space)).trials)[:10]

    assert np.mean([lowest(name, seed) for seed in seeds]) < 3.0
    assert np.mean([lowest("random", seed) for seed in range(20)]) > 3.5


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_trials_may_be_asked_for_before_values_are_told(name: str) -> None:
    space = binary(10)
    trials = run(name, space, 15, 0, weight(space), ask=3).trials
    assert [trial.state for trial in trials] == ["done"] * 15


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_the_global_generators_are_left_alone(name: str) -> None:
    space = binary(6)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    run(name, space, 8, 0, weight(space))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]  # noqa: NPY002


@pytest.mark.slow
@given(spaces(), generators())
def test_values_and_codes_are_inverse_up_to_the_rounding_of_reals(space: Space, rng: np.random.Generator) -> None:
    row = space.encode(space.decode(space.sample(1, rng=rng)))[0]
    values = values_of(space, row)
    codes = codes_of(space, values)
    assert np.array_equal(codes[space.combinatorial], row[space.combinatorial])
    assert values_of(space, codes) == pytest.approx(values, rel=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:COBYLA")  # of a thread that Nevergrad starts
@pytest.mark.parametrize("name", [each for each in EACH if each.values[0] in ("tpe", "cmaes", "nevergrad")])
@settings(max_examples=15, deadline=None)
@given(space=spaces(most=4))
def test_any_space_is_understood(name: str, space: Space) -> None:
    assert all(trial.point in space for trial in run(name, space, 12, 0, weight(space)).trials)


@pytest.mark.parametrize("name", list(NEEDS))
def test_a_missing_package_is_said_with_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bounce.baselines.baseline.find_spec", lambda module: None)
    said = f"{name} needs {' and '.join(NEEDS[name])}: pip install 'bounce-bo\\[peers\\]'"
    with pytest.raises(InvalidInput, match=f"^{said}$"):
        baselines.make(name, binary(3), 10, 0)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"no baseline 'bodu'; did you mean 'bodi'\? The names are random, tpe"):
        baselines.make("bodu", binary(3), 10, 0)
    with pytest.raises(InvalidInput, match=r"no baseline \['bodi'\]"):
        baselines.make(["bodi"], binary(3), 10, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"no baseline 'xyz'\. The names are random, tpe"):
        baselines.make("xyz", binary(3), 10, 0)


@pytest.mark.parametrize(("meant", "written"), [("casmopolitan", "Casmopolitain"), ("la-mcts", "lamcts")])
def test_a_misspelt_name_is_answered_with_what_may_be_meant(meant: str, written: str) -> None:
    with pytest.raises(InvalidInput, match=f"did you mean '{meant}'"):
        baselines.make(written, binary(3), 10, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EACH, "bounce"])
def test_failed_trials_cost_budget_and_have_no_value(name: str) -> None:
    """Also if all are failures before the first value."""
    space, budget = mixed(1), 9 if name == "botorch" else 16
    optimizer = baselines.make(name, space, budget, 0)
    failed = []
    while not optimizer.done:
        (trial,) = optimizer.ask()
        if trial.id < 6 or trial.id % 4 == 0:
            failed += optimizer.fail(trial, "no measurement")
        else:
            optimizer.tell(trial, weight(space)(trial.point))
    assert failed == [trial.id for trial in optimizer.trials if trial.state == "failed"]
    assert len(optimizer.trials) == budget
    assert all(trial.point in space for trial in optimizer.trials)
    assert {optimizer.trials[i].error for i in failed} == {"no measurement"}
    assert {optimizer.trials[i].value for i in failed} == {None}
    assert optimizer.best is not None
    assert optimizer.best.id not in failed


def test_wrong_failures_are_refused() -> None:
    optimizer = baselines.make("random", binary(3), 4, 0)
    first, second = optimizer.ask(2)
    optimizer.fail(first)
    for trials, said in ((first, "no pending trial 0"), ([second, 1], "trial 1 is given twice"), (7, "trial 7")):
        with pytest.raises(InvalidTell, match=said):
            optimizer.fail(trials)
    with pytest.raises(InvalidTell, match="trial 1 is given twice"):
        optimizer.tell([1, 1], [0.0, 1.0])
    optimizer.tell(second, 1.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None, 10, 0), "space must be a bounce.Space, not None"),
        ((binary(3), 0, 0), "budget must be"),
        ((binary(3), 10, -1), "seed must be"),
        ((binary(3), 10, 2**32), "seed must be less than"),
        ((binary(3), 10, 0, 0), "initial must be"),
    ],
)
def test_bad_arguments_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        baselines.make("random", *arguments)


def test_wrong_tells_and_asks_are_refused() -> None:
    optimizer = baselines.make("random", binary(3), 2, 0)
    assert optimizer.best is None
    trials = optimizer.ask(5)
    assert len(trials) == 2
    with pytest.raises(NothingToAsk, match="all 2 trials"):
        optimizer.ask()
    with pytest.raises(InvalidTell, match="2 trials need 2 values, not 1"):
        optimizer.tell(trials, [1.0])
    with pytest.raises(InvalidTell, match="finite"):
        optimizer.tell(trials[0], float("nan"))
    optimizer.tell(0, 1.0)
    with pytest.raises(InvalidTell, match="no pending trial 0"):
        optimizer.tell(trials[0], 1.0)
    assert not optimizer.done
    optimizer.tell(trials[1], 0.5)
    assert optimizer.best is not None
    assert optimizer.best.id == 1


@pytest.mark.parametrize("name", ["random", "casmopolitan"])
def test_trials_are_named_by_any_whole_number_and_others_are_refused_before_anything_changes(name: str) -> None:
    optimizer = baselines.make(name, binary(8), 9, 0)
    trials = optimizer.ask(2)
    for wrong in (0.0, "0", None, {"x0": 1}):
        with pytest.raises(InvalidTell, match=re.escape(f"a trial or its id is needed, not {wrong!r}")):
            optimizer.tell(wrong, 1.0)
    with pytest.raises(InvalidTell, match="no pending trial True"):
        optimizer.tell(True, 1.0)
    other = baselines.make(name, binary(8), 9, 1).ask(2)
    with pytest.raises(InvalidTell, match="trial 1 has another point here: it belongs to another run"):
        optimizer.tell([trials[0], other[1]], [1.0, 2.0])
    optimizer.tell(np.arange(2), np.array([1.0, 2.0], dtype=np.float32))
    assert [trial.value for trial in optimizer.trials] == [1.0, 2.0]
    assert optimizer.ask()[0].id == 2


@pytest.mark.parametrize("name", ["random", "pr", "bodi"])
def test_limits_on_outcomes_are_refused_since_they_would_be_ignored(name: str) -> None:
    space = Space([Real("a", 0, 1), Integer("n", 0, 3)], outcomes=["strength >= 3"])
    with pytest.raises(InvalidSpace, match=f"^{name} takes no limits on outcomes: choose 'bounce'$"):
        baselines.make(name, space, 10, 0)


def test_a_structure_is_refused_by_the_name_of_the_method() -> None:
    space = Space([Real("a", 0, 1), Real("b", 0, 1)], constraints=["a + b <= 1"])
    with pytest.raises(InvalidSpace, match=r"^pr takes no constraints: choose 'bounce' or 'random'$"):
        baselines.make("pr", space, 10, 0)


def test_no_package_is_imported_before_it_is_used() -> None:
    heavy = ["torch", "botorch", "optuna", "smac", "nevergrad", "cmaes"]
    code = f"import sys, bounce.baselines; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:COBYLA")  # of a thread that Nevergrad starts
@pytest.mark.parametrize("name", EACH)
def test_numbers_with_steps_stay_on_them(name: str) -> None:
    space = Space(
        [
            Real("few", 0, 1, step=0.05),
            Real("many", -1, 1, step=0.001),
            Real("log", 0.01, 10, log=True, digits=2),
            Integer("n", 8, 64, step=8),
            Integer("wide", 0, 5000, step=25),
        ]
    )
    points = [trial.point for trial in run(name, space, 8 if name == "botorch" else 14, 3, weight(space)).trials]
    assert points == space.decode(space.encode(points))
    assert len({point["many"] for point in points}) > 3
    row = space.encode(points)[-1]
    np.testing.assert_array_equal(codes_of(space, values_of(space, row)), row)
