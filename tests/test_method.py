from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Bounce, Categorical, Integer, InvalidOption, Method, Ordinal, Real, Space
from runs import Point, facts, ones, sphere, through_json
from spaces import binary, mixed, reals

NAMES = [choice.name for choice in fields(Method)]


# The document


@pytest.mark.parametrize(
    "method",
    [
        Method(),
        Method.paper(),
        Method.first_release(),
        *(replace(Method(), **{name: getattr(Method.paper(), name)}) for name in NAMES),
        *(replace(Method.paper(), **{name: getattr(Method(), name)}) for name in NAMES),
        Method(caution=2, nearest=7),
    ],
)
def test_a_method_goes_through_its_document(method: Method) -> None:
    document = json.loads(json.dumps(method.document()))
    assert Method.of(document) == method
    assert Method.of(method) is method


def test_a_document_names_the_method_or_what_differs_from_the_default() -> None:
    assert Method().document() == "default"
    assert Method.paper().document() == "paper"
    assert Method.first_release().document() == "0.1"
    assert Method(nearest=None, caution=1.0).document() == {"nearest": None, "caution": 1.0}


def test_a_table_starts_from_its_base() -> None:
    assert Method.of({}) == Method()
    assert Method.of({"base": "paper"}) == Method.paper()
    assert Method.of({"base": "paper", "caution": 1.4}) == replace(Method.paper(), caution=1.4)
    assert Method.of({"base": "default", "mean": "zero"}) == Method(mean="zero")


def test_a_method_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Method().caution = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Paper", "method must be 'default' or 'paper' or '0.1', or a table of its fields, not 'Paper'"),
        (True, "method must be 'default' or 'paper' or '0.1', or a table of its fields, not true"),
        (None, "method must be 'default' or 'paper' or '0.1', or a table of its fields, not None"),
        ({"base": "best"}, "method must be 'default' or 'paper' or '0.1', or a table of its fields, not 'best'"),
        ({"cautious": 2.0}, f"method has no field 'cautious'; its fields are {', '.join(NAMES)}"),
        ({3: 2.0}, f"method has no field 3; its fields are {', '.join(NAMES)}"),
        ({"mean": "median"}, "method.mean must be one of 'constant', 'zero', not 'median'"),
        ({"mean": None}, "method.mean must be one of 'constant', 'zero', not None"),
        ({"targets": ["raw"]}, "method.targets must be one of 'clipped', 'raw', not ['raw']"),
        ({"leaps": 1}, "method.leaps must be true or false, not 1"),
        ({"leaps": "yes"}, "method.leaps must be true or false, not 'yes'"),
        ({"caution": 0}, "method.caution must be a positive number, not 0"),
        ({"caution": -1.0}, "method.caution must be a positive number, not -1.0"),
        ({"caution": math.nan}, "method.caution must be a positive number, not nan"),
        ({"caution": math.inf}, "method.caution must be a positive number, not inf"),
        ({"caution": "1"}, "method.caution must be a positive number, not '1'"),
        ({"caution": True}, "method.caution must be a positive number, not true"),
        ({"caution": None}, "method.caution must be a positive number, not None"),
        ({"nearest": 0}, "method.nearest must be a positive whole number, not 0"),
        ({"nearest": 2.5}, "method.nearest must be a positive whole number, not 2.5"),
        ({"nearest": True}, "method.nearest must be a positive whole number, not true"),
        ({"box_cap": -0.5}, "method.box_cap must be a positive number, not -0.5"),
        ({"noise_floor": 0.0}, "method.noise_floor must be a positive number, not 0.0"),
        ({"spread": 1000.0}, "method.spread must be at most 10, not 1000.0"),
    ],
)
def test_what_is_not_a_method_is_refused_with_what_would_be_right(given: Any, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Bounce(binary(3), 5, method=given)
    assert str(caught.value) == said
    assert caught.value.option == "method"


# Every choice is one


def test_the_paper_decides_every_choice_and_differs_in_all_but_three() -> None:
    same = [name for name in NAMES if getattr(Method(), name) == getattr(Method.paper(), name)]
    assert same == [
        "spread",
        "real_noise_floor",
        "incumbent",
    ]  # the paper has no use for the first
    assert list(CASES) == NAMES


def test_every_choice_says_what_it_is_and_what_the_paper_does() -> None:
    body = ast.parse(inspect.getsource(Method)).body[0]
    assert isinstance(body, ast.ClassDef)
    said: dict[str, str] = {}
    for before, after in itertools.pairwise(body.body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            assert isinstance(after, ast.Expr), before.target.id
            assert isinstance(after.value, ast.Constant), before.target.id
            said[before.target.id] = str(after.value.value)
    assert list(said) == NAMES
    assert [name for name, text in said.items() if "aper" not in text] == ["real_noise_floor"]


@dataclass(frozen=True)
class Case:
    """A small run in which one choice of the method shows."""

    space: Space
    evaluations: int
    options: dict[str, Any] = field(default_factory=dict)
    objective: Callable[[int, Point], float | None] = lambda i, point: math.sin(ones(point))
    """Of an id and a point; None for a failure."""
    base: Method = field(default_factory=Method)
    other: Any = None
    """The other value of the field; that of the paper unless one is given."""

    def run(self, method: Method) -> list[Point]:
        """Return the points of a run."""
        return list(self.points(method))

    def points(self, method: Method) -> Iterator[Point]:
        """Yield the points of a run that goes on as long as they are wanted."""
        optimizer = Bounce(self.space, self.evaluations, seed=1, method=method, **self.options)
        while not optimizer.done:
            for trial in optimizer.ask():
                yield trial.point
                value = self.objective(trial.id, trial.point)
                outcomes = {limit.name: ones(trial.point) for limit in self.space.limits}
                optimizer.fail(trial) if value is None else optimizer.tell(trial, value, constraints=outcomes or None)


def wide(n: int, **others: Any) -> dict[str, Any]:
    """Return options with all bins from the beginning."""
    return {"initial_dims": n, **others}


def levels(n: int, size: int) -> Space:
    return Space([Ordinal(f"o{i}", range(size)) for i in range(n)])


def hill(size: int) -> Callable[[int, Point], float]:
    """Return a smooth objective of such levels, best somewhere in the middle."""

    def objective(i: int, point: Point) -> float:
        return float(sum((level / size - 0.4 - j / 99) ** 2 for j, level in enumerate(point.values())))

    return objective


def dip(point: Point) -> float:
    """Return an objective to which the first five reals matter."""
    return -math.exp(-3.0 * sum((x - 0.2 * i) ** 2 for i, x in enumerate(list(point.values())[:5])))


def families(point: Point) -> float:
    """Return an objective with a choice that decides much."""
    return "abcd".index(point["family"]) + sphere({name: x for name, x in point.items() if name != "family"})


LUCKY = [0.3, -0.2, 0.1, -30.0, 0.4, 0.2, -0.1, 0.05]
FIRST = Method.first_release()
CASES = {
    "mean": Case(binary(12), 12),
    "targets": Case(binary(12), 12, objective=lambda i, point: 1e6 if point["x0"] else ones(point)),
    "bend": Case(reals(3), 20, objective=lambda i, point: sphere(point)),
    "failures": Case(binary(12), 12, objective=lambda i, point: None if i == 4 else ones(point)),
    "limit_unit": Case(Space(reals(3).parameters, outcomes=["load <= 0.8"]), 16, objective=lambda i, p: -sphere(p)),
    "limit_changes": Case(
        Space([Integer("a", 1, 9), Integer("b", 1, 9)], outcomes=["load <= 12"]), 20, objective=lambda i, p: -sphere(p)
    ),
    "lengthscales": Case(Space([*binary(6).parameters, *levels(6, 5).parameters]), 12),
    "spread": Case(binary(12), 16, other=0.1),
    "lengthscale_prior": Case(
        binary(20), 28, wide(20), lambda i, point: ones(point) + 20.0 * math.sin(7.0 * i * i), base=Method(doubt=None)
    ),
    "real_lengthscales": Case(reals(4), 16, objective=lambda i, point: sphere(point)),
    "climbs": Case(reals(60), 30, wide(60), objective=lambda i, point: dip(point)),
    "noise_floor": Case(Space([Binary("b"), *reals(2).parameters]), 20, objective=lambda i, point: sphere(point)),
    "real_noise_floor": Case(reals(3), 12, other=0.3),
    "nearest": Case(binary(12), 16, base=Method(nearest=8)),
    "nearest_fit": Case(reals(3), 16, base=Method(nearest_fit=8)),
    "refits": Case(binary(12), 28),
    "flat": Case(binary(12), 6),
    "arrival": Case(binary(30), 100),
    "box_cap": Case(mixed(2), 16),
    "capped": Case(reals(3), 20, objective=lambda i, point: sphere(point)),
    "restart": Case(reals(2), 40, {"trust_region": "baxus", "budget_to_input": 10}, lambda i, point: 1.0),
    "design": Case(binary(12), 6),
    "caution": Case(binary(12), 12),
    "doubt": Case(binary(12), 20, objective=lambda i, point: 1.0),
    "auditions": Case(
        Space([Categorical("family", list("abcd")), *reals(3).parameters]), 40, objective=lambda i, p: families(p)
    ),
    "tolerance": Case(
        binary(40), 60, objective=lambda i, point: -float([*point.values(), False].index(False)), other="fixed"
    ),
    "incumbent": Case(
        binary(12), 24, objective=lambda i, point: ones(point) + 3.0 * math.sin(7.0 * i * i), other="believed"
    ),
    "repeats": Case(binary(12), 40, objective=lambda i, point: ones(point) + 3.0 * math.sin(7.0 * i * i)),
    "doubt_best": Case(
        binary(12), 30, objective=lambda i, point: LUCKY[i % 8] if i < 8 else 0.1 * math.sin(i), base=FIRST
    ),
    "real_moves": Case(mixed(2), 12),
    "search": Case(mixed(4), 16, wide(20), base=FIRST),
    "leaps": Case(levels(10, 30), 12, wide(10), hill(30), base=FIRST),
    "strides": Case(levels(3, 500), 17, {"batch_size": 4}, hill(500), base=FIRST),
    "sampling": Case(binary(400), 8, wide(400), base=FIRST),
    "batches": Case(mixed(2), 16, {"batch_size": 4}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_choice_changes_what_is_proposed(name: str) -> None:
    case = CASES[name]
    other = getattr(Method.paper(), name) if case.other is None else case.other
    assert other != getattr(case.base, name)
    ours = case.run(case.base)
    assert case.run(case.base) == ours
    others = case.points(replace(case.base, **{name: other}))
    assert any(one != another for one, another in zip(ours, others, strict=True))  # up to the first that differs


def test_without_noise_the_lowest_value_is_what_is_believed() -> None:
    case = replace(CASES["incumbent"], options={"noise": "none"})
    assert case.run(Method(incumbent="believed")) == case.run(Method())


# Whole runs of the paper's method


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "space",
    [
        binary(25),
        Space([Categorical(f"c{i}", list("abcde")[: 2 + i % 4]) for i in range(12)]),
        levels(10, 7),
        mixed(2),
        reals(6),
        Space([Binary("b"), Ordinal("o", [1, 2, 3]), Categorical("c", list("xyz"))]),
        Space([Real("x", 0, 1)]),
    ],
    ids=["binary", "categorical", "ordinal", "mixed", "real", "tiny", "one real"],
)
def test_a_run_of_the_paper_ends_with_its_budget_and_resumes_bit_for_bit(space: Space, batch: int) -> None:
    def run(*, restore: bool) -> list[Any]:
        optimizer = Bounce(space, 26, seed=3, batch_size=batch, method="paper")
        while not optimizer.done:
            if restore:
                optimizer = through_json(optimizer)
            for trial in optimizer.ask():
                if trial.id % 7 == 2:
                    optimizer.fail(trial, "crashed")
                else:
                    optimizer.tell(trial, math.sin(ones(trial.point)))
        assert optimizer.options["method"] == "paper"
        return facts(optimizer.trials)

    trials = run(restore=False)
    assert len(trials) == min(26, space.size)
    assert len({json.dumps(point) for _, point, *_ in trials}) == len(trials)
    assert run(restore=False) == trials
    assert run(restore=True) == trials


@pytest.mark.slow
def test_a_run_of_the_paper_finds_what_a_default_run_finds() -> None:
    target = np.random.default_rng(0).random(20) < 0.5
    for method in ("default", "paper"):
        optimizer = Bounce(binary(20), 60, seed=0, method=method)
        while not optimizer.done:
            trial = optimizer.ask()[0]
            optimizer.tell(trial, float(np.sum(np.array(list(trial.point.values())) != target)))
        assert optimizer.best is not None
        assert optimizer.best.value is not None
        assert optimizer.best.value <= 2, method  # random search: 4
