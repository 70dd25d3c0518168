"""Spaces that say what people mean: constraints, conditions, subsets, mixtures and permutations."""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
from bounce import (
    Binary,
    Bounce,
    Categorical,
    Integer,
    InvalidPoint,
    InvalidSpace,
    InvalidSpec,
    InvalidState,
    Mixture,
    NothingToAsk,
    Ordinal,
    Permutation,
    Real,
    Space,
    Study,
    Subset,
)
from bounce.acquire.neighbourhood import Neighbourhood
from bounce.acquire.rules import Rules
from bounce.optimizer.model import structured as structured_region
from bounce.spaces.change import Change
from bounce.spaces.kinds import on_grid
from bounce.spaces.leaves import flattened, folded, leaves
from bounce.spaces.planes import Halfspaces
from bounce.spec.document import load
from bounce.subspace.embedding import Embedding
from spaces import generators, identity
from terminal import Terminal

MEMBERS = ["acid", "base", "salt", "oil", "wax", "dye"]


def not_wet(point: dict[str, Any]) -> bool:
    return not (point["solvent"] == "water" and point["heat"])


@st.composite
def structured(draw: st.DrawFn) -> Space:
    """Draw a space with some of everything."""
    parameters: list[Any] = [Categorical("solvent", ["water", "oil", "ether"]), Binary("heat"), Real("a", 0.0, 10.0)]
    constraints: list[Any] = []
    if draw(st.booleans()):
        parameters.append(Real("power", 1.0, 100.0, log=True, when={"heat": True}))
        if draw(st.booleans()):
            parameters.append(Integer("cycles", 1, 5, when={"heat": True, "solvent": ["oil", "ether"]}))
    if draw(st.booleans()):
        low = draw(st.integers(0, 2))
        parameters.append(Subset("additives", MEMBERS, at_most=draw(st.integers(max(low, 1), 4)), at_least=low))
    if draw(st.booleans()):
        most = draw(st.integers(1, 3))
        parameters.append(Mixture("blend", ["x", "y", "z"], total=draw(st.sampled_from([1.0, 100.0])), most=most))
    if draw(st.booleans()):
        parameters.append(Permutation("order", list(range(draw(st.integers(2, 5))))))
    if draw(st.booleans()):
        parameters += [Real("dose", 0.0, 1.0, step=0.05), Integer("batch", 8, 64, step=8), Real("ph", 1, 9, digits=1)]
        constraints.append("a + batch / 8 <= 12")
    if draw(st.booleans()):
        parameters += [Binary(f"f{i}") for i in range(draw(st.integers(3, 30)))]
        constraints.append("count(f0, f1, f2) <= 1")
    if draw(st.booleans()):
        constraints.append("not (solvent == 'water' and heat)")
    if draw(st.integers(0, 4)) == 0:
        constraints.append(not_wet)
    return Space(parameters, constraints=constraints)


def objective(point: dict[str, Any]) -> float:
    text = json.dumps(point, sort_keys=True)
    return float(sum(map(ord, text)) % 101)


def check(space: Space, point: dict[str, Any]) -> None:
    """Fail if a point is not one of the space, by rules of its own."""
    for parameter in space.parameters:
        p: Any = parameter
        on = all(name in point and point[name] in values for name, values in dict(p.when or ()).items())
        assert (p.name in point) == on
        if not on:
            continue
        value = point[p.name]
        if p.type == "subset":
            assert p.at_least <= len(value) <= p.at_most
            assert set(value) <= set(p.members)
            assert len(set(value)) == len(value)
        elif p.type == "mixture":
            assert math.isclose(sum(value.values()), p.total)
            assert list(value) == list(p.components)
            assert sum(x > 0 for x in value.values()) <= p.most
            assert all(
                x == round(x / p.step) * p.step or math.isclose(x, round(x / p.step) * p.step) for x in value.values()
            )
        elif p.type == "permutation":
            assert sorted(value) == sorted(p.items)
        elif p.name in ("dose", "batch", "ph"):
            step = {"dose": 0.05, "batch": 8, "ph": 0.1}[p.name]
            assert value == round(round(value / step) * step, 10)
    names = {"a": point["a"], **{k: v for k, v in point.items() if isinstance(k, str)}}
    texts = [str(constraint) for constraint in space.constraints]
    if any("count" in text for text in texts):
        assert point["f0"] + point["f1"] + point["f2"] <= 1
    if any("batch" in text for text in texts):
        assert names["a"] + names["batch"] / 8 <= 12
    if any("water" in text or "not_wet" in text for text in texts):
        assert not_wet(point)


@settings(max_examples=12, deadline=None)
@given(structured(), st.integers(0, 10**6), st.integers(1, 4))
def test_whatever_is_proposed_is_a_new_point_of_the_space(space: Space, seed: int, batch: int) -> None:
    optimizer = Bounce(space, 14, seed=seed, batch_size=batch, initial_points=6)
    seen = set()
    while not optimizer.done:
        for trial in optimizer.ask():
            check(space, trial.point)
            assert trial.point in space
            key = json.dumps(trial.point, sort_keys=True)
            assert key not in seen
            seen.add(key)
            optimizer.tell(trial, objective(trial.point))
    assert len(seen) == 14


@settings(max_examples=15, deadline=None)
@given(structured(), generators())
def test_points_come_back_from_their_codes_and_tables(space: Space, rng: np.random.Generator) -> None:
    codes = space.sample(20, rng=rng)
    points = space.decode(codes)
    again = space.encode(points)
    for one, other in zip(space.decode(again), points, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():  # a log scale may round the last digits
            assert value == other[name] or math.isclose(value, other[name], rel_tol=1e-12)
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))).to_dict() == space.to_dict()
    names = {leaf.name for leaf in leaves(space)}
    for point in points:
        assert flattened(space, point).keys() <= names
        assert folded(space, flattened(space, point)) == point


@settings(max_examples=5, deadline=None)
@given(structured(), st.integers(0, 10**6))
def test_a_restored_run_continues_with_the_same_points(space: Space, seed: int) -> None:
    whole, parts = (Bounce(space, 16, seed=seed) for _ in range(2))
    for _ in range(16):
        state = json.loads(json.dumps(parts.state_dict()))
        parts = Bounce.from_state_dict(state, space=space)
        (one,), (other,) = whole.ask(), parts.ask()
        assert one.point == other.point
        whole.tell(one, objective(one.point))
        parts.tell(other, objective(other.point))


@settings(max_examples=15, deadline=None)
@given(structured(), generators())
def test_what_a_structure_names_never_shares_a_bin(space: Space, rng: np.random.Generator) -> None:
    embedding = Embedding.random(space, 2, rng=rng)
    alone = {int(part[0]) for part in embedding.members if len(part) == 1}
    assert set(space.apart.tolist()) <= alone
    child = embedding.split(1, rng=rng)
    z = embedding.latent.sample(5, rng=rng)
    x = embedding.up(z)
    again, inside = child.down(x)
    assert inside.all()
    assert np.array_equal(child.up(again), x)


@pytest.mark.parametrize(
    "parameter",
    [
        Subset("s", MEMBERS, at_most=3, at_least=1),
        Mixture("m", ["a", "b", "c"], most=2, step=0.25),
        Permutation("p", list("wxyz")),
    ],
    ids=str,
)
def test_a_composite_has_as_many_values_as_it_says_and_reaches_them_all(parameter: Any) -> None:
    rng = np.random.default_rng(0)
    drawn = {tuple(row) for row in parameter.draw(3000, rng=rng).tolist()}
    assert len(drawn) == parameter.size
    grid = np.array(list(itertools.product(*(range(int(v.size)) for v in parameter.variables))), dtype=float)
    assert int(parameter.valid(grid).sum()) == parameter.size
    reached, front = {next(iter(drawn))}, [next(iter(drawn))]
    while front:  # moves connect all values
        for row in parameter.moves(np.array(front.pop()), rng=rng).tolist():
            if tuple(row) not in reached:
                reached.add(tuple(row))
                front.append(tuple(row))
    assert reached == drawn


def test_the_variables_of_a_mixture_are_its_fractions() -> None:
    (first, *_) = Mixture("m", ["a", "b"], total=100, step=25).variables
    assert [first.decode(code) for code in first.all_codes()] == [0.0, 25.0, 50.0, 75.0, 100.0]


def test_permutations_are_as_far_apart_as_pairs_are_in_another_order() -> None:
    parameter = Permutation("p", list(range(6)))
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = rng.permutation(6).tolist(), rng.permutation(6).tolist()
        pairs = itertools.combinations(range(6), 2)
        kendall = sum((one.index(i) < one.index(j)) != (other.index(i) < other.index(j)) for i, j in pairs)
        assert kendall == np.abs(np.array(parameter.encode(one)) - parameter.encode(other)).sum()


def test_an_inactive_parameter_makes_no_two_points_different() -> None:
    space = Space([Categorical("kernel", ["rbf", "linear"]), Integer("depth", 1, 3, when={"kernel": "rbf"})])
    assert space.size == 4
    optimizer = Bounce(space, 10, seed=0)
    points = []
    while not optimizer.done:
        (trial,) = optimizer.ask()
        points.append(trial.point)
        optimizer.tell(trial, len(points))
    assert sorted(map(str, points)) == sorted(
        map(str, [{"kernel": "linear"}, *({"kernel": "rbf", "depth": depth} for depth in (1, 2, 3))])
    )
    with pytest.raises(NothingToAsk):
        optimizer.ask()


def test_nested_conditions_follow_their_parents() -> None:
    space = Space(
        [
            Binary("deep", when={"use": True}),
            Real("rate", 0, 1, when={"deep": True}),
            Binary("use"),
        ]
    )
    assert {"use": False} in space
    assert {"use": True, "deep": False} in space
    assert {"use": True, "deep": True, "rate": 0.5} in space
    assert {"use": False, "deep": True, "rate": 0.5} not in space
    with pytest.raises(InvalidPoint, match="'rate' is inactive here: it needs deep = True"):
        space.encode([{"use": True, "deep": False, "rate": 0.5}])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ([Real("x", 0, 1, when={"y": 1})], "'x' depends on 'y', which is not a parameter"),
        ([Real("x", 0, 1, when={"y": 0.5}), Real("y", 0, 1)], "must be categorical, ordinal, binary or an integer"),
        ([Real("x", 0, 1, when={"y": 3}), Ordinal("y", [1, 2])], "'y' must be one of"),
        ([Binary("x", when={"y": True}), Binary("y", when={"x": True})], "must not go in a circle"),
        (
            [
                Categorical("k", ["a", "b", "c"]),
                Binary("m", when={"k": ["a", "b"]}),
                Binary("n", when={"m": True}),
                Real("x", 0, 1, when={"k": "c", "n": True}),
            ],
            "'x' can never be active: its conditions, .* need different values of 'k'",
        ),
    ],
)
def test_conditions_that_cannot_be_are_refused(parameters: list[Any], said: str) -> None:
    with pytest.raises(InvalidSpace, match=said):
        Space(parameters)


def test_a_condition_on_itself_or_on_nothing_is_refused() -> None:
    with pytest.raises(InvalidSpace, match="cannot depend on itself"):
        Binary("x", when={"x": True})
    with pytest.raises(InvalidSpace, match="such as"):
        Binary("x", when={})
    with pytest.raises(InvalidSpace, match="'y' needs at least one value"):
        Binary("x", when={"y": []})


def test_a_space_without_an_allowed_point_names_the_constraint_that_excludes_most() -> None:
    with pytest.raises(InvalidSpace, match=r"'a > 20' excludes most: 100 %"):
        Space([Real("a", 0, 10), Real("b", 0, 10)], constraints=["a + b <= 15", "a > 20"])
    with pytest.raises(InvalidSpace, match=r"points\. Reals hardly ever meet an equation: allow a difference"):
        Space([Real("a", -5, 5), Real("b", -5, 5)], constraints=["b == a ** 2"])
    with pytest.raises(InvalidSpace, match="If you can, write it as an expression"):
        Space([Real("a", 0, 1)], constraints=[lambda point: point["a"] > 1])


def test_a_tiny_allowed_part_is_found_and_searched() -> None:
    names = [f"x{i}" for i in range(8)]
    space = Space([Real(name, 0, 1) for name in names], constraints=[f"{' + '.join(names)} <= 0.5"])
    assert space.uniform(10_000, rng=np.random.default_rng(0)).sum(axis=1).min() > 0.5  # drawing finds none
    result = bounce.minimize(lambda p: sum((p[n] - i / 56) ** 2 for i, n in enumerate(names)), space, budget=60, seed=0)
    assert all(sum(trial.point.values()) <= 0.5 for trial in result.trials)
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value < 0.01  # a point of the allowed part is 0.02 away on average


def test_a_point_that_breaks_a_constraint_is_refused_by_name() -> None:
    space = Space([Real("a", 0, 10), Real("b", 0, 10)], constraints=["2 * a + b <= 10"])
    optimizer = Bounce(space, 10, seed=0)
    with pytest.raises(InvalidPoint, match=r"breaks the constraint '2 \* a \+ b <= 10'"):
        optimizer.add([{"a": 9, "b": 9}], [1.0])
    with pytest.raises(InvalidPoint, match="breaks the constraint"):
        optimizer.enqueue({"a": 9, "b": 9})
    with pytest.raises(InvalidPoint, match="no completion that satisfies all constraints was found"):
        optimizer.enqueue({"a": 9})
    assert not optimizer.trials


def test_partial_starts_are_completed_inside_the_constraints() -> None:
    space = Space(
        [Real("a", 0, 10), Real("b", 0, 10), Categorical("k", ["x", "y"]), Real("g", 0, 1, when={"k": "y"})],
        constraints=["a + b <= 5"],
    )
    optimizer = Bounce(space, 10, seed=0)
    optimizer.enqueue([{"a": 4.9}, {"g": 0.25}])
    first, second = optimizer.ask(2)
    assert first.point["a"] == 4.9
    assert first.point in space
    assert second.point["g"] == 0.25
    assert second.point["k"] == "y"


def test_a_better_point_beyond_a_constraint_is_not_found_but_that_on_it_is() -> None:
    space = Space([Real("a", 0, 10), Real("b", 0, 10)], constraints=["2 * a + b <= 10"])
    result = bounce.maximize(lambda p: p["a"] + p["b"], space, budget=25, seed=0)
    assert result.best is not None
    assert result.best.value is not None
    assert 9.9 < result.best.value <= 10


def test_a_function_can_be_a_constraint_of_a_study(tmp_path: Path) -> None:
    space = Space([Categorical("solvent", ["water", "oil"]), Binary("heat")], constraints=[not_wet])
    with Study.open(tmp_path / "s.db", space=space, budget=4, seed=0) as study:
        assert study.run(objective).best is not None
        assert len(study.trials) == 3
    wider = Space([Categorical("solvent", ["water", "oil"]), Binary("heat"), Real("x", 0, 1)], constraints=[not_wet])
    for budget in (3, 6):  # the second time, the study is resumed with the same function
        with Study.open(tmp_path / "w.db", space=wider, budget=budget, seed=0) as study:
            study.extend(budget)
            assert all(not_wet(trial.point) for trial in study.run(objective).trials)
    with Study.open(tmp_path / "s.db") as study:  # reading needs no function ...
        assert len(study.trials) == 3
        study.extend(9)
        with pytest.raises(InvalidSpace, match="open the study with the space in Python"):  # ... proposing does
            study.ask()


def test_another_constraint_is_another_space() -> None:
    one = Space([Real("a", 0, 1)], constraints=["a <= 0.5"])
    state = Bounce(one, 5, seed=0).state_dict()
    with pytest.raises(InvalidState, match=r"its constraints are 'a <= 0\.5', those of the given space 'a <= 0.6'"):
        Bounce.from_state_dict(state, space=Space([Real("a", 0, 1)], constraints=["a <= 0.6"]))


def test_a_new_constraint_leaves_out_the_trials_that_break_it() -> None:
    old = Space([Real("a", 0, 10), Binary("b")])
    optimizer = Bounce(old, 20, seed=0)
    for trial in optimizer.ask(8):
        optimizer.tell(trial, trial.point["a"])
    new = Space([Real("a", 0, 10), Binary("b")], constraints=["a <= 5"])
    outside = optimizer.change(new)
    assert {trial.point["a"] > 5 for trial in outside} == {True}
    assert Change(old, new, {}).sentences == ["the constraint 'a <= 5' is added"]
    assert all(trial.point["a"] <= 5 for trial in optimizer.ask(5))


def test_subsets_and_mixtures_are_optimized_better_than_by_random_search() -> None:
    worth = {name: (7 * i) % 6 for i, name in enumerate(MEMBERS)}
    best = {"x": 0.2, "y": 0.5, "z": 0.3}
    space = Space(
        [Subset("s", MEMBERS, at_most=3), Mixture("m", list(best), step=0.05), Permutation("p", list("abcde"))]
    )

    def loss(p: dict[str, Any]) -> float:
        wrong = sum(abs(i - "abcde".index(item)) for i, item in enumerate(p["p"]))
        return float(wrong - sum(worth[m] for m in p["s"]) + 10 * sum(abs(p["m"][k] - best[k]) for k in best))

    result = bounce.minimize(loss, space, budget=60, seed=0)
    rng = np.random.default_rng(0)
    random = min(loss(point) for point in space.decode(space.sample(600, rng=rng)))
    assert result.best is not None
    assert result.best.value is not None
    assert result.best.value < random


def test_what_is_wrong_with_a_composite_is_said() -> None:
    space = Space([Subset("s", MEMBERS, at_most=2), Mixture("m", ["x", "y"], step=0.1), Permutation("p", [1, 2, 3])])
    good: dict[str, Any] = {"s": ["oil"], "m": {"x": 0.3, "y": 0.7}, "p": [3, 1, 2]}
    assert space.decode(space.encode([good])) == [good]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"s": MEMBERS[:3]}, "'s' must have 0 to 2 members, not 3"),
        ({"s": ["gold"]}, "'s' has no 'gold', only"),
        ({"s": "oil"}, r"'s' must be a list of members such as \[.*, \.\.\.\], not 'oil'"),
        ({"s": ["oil", "oil"]}, "an entry twice"),
        ({"m": {"x": 0.3}}, "'m' must add up to 1.0, not 0.3"),
        ({"m": {"x": 0.25, "y": 0.75}}, "'x' must be a multiple of 0.1"),
        ({"m": {"w": 1.0}}, "'m' has no 'w'"),
        ({"m": [1]}, "'m' must be a dict of fractions"),
        ({"p": [1, 2]}, "'p' must name every item once"),
    ]
    for change, said in wrong:
        with pytest.raises(InvalidPoint, match=said):
            space.encode([good | change])
    with pytest.raises(InvalidSpace, match="total must be a multiple of step"):
        Mixture("m", ["x", "y"], step=0.3)
    with pytest.raises(InvalidSpace, match="at_most must be a whole number from 2 to 6, not 1"):
        Subset("s", MEMBERS, at_most=1, at_least=2)
    with pytest.raises(InvalidSpace, match="at most 50 items, not 51"):
        Permutation("p", list(range(51)))


def test_members_can_be_named_in_constraints() -> None:
    space = Space(
        [Mixture("m", ["x", "y", "z"], step=0.1), Subset("s", MEMBERS)],
        constraints=["`m.x` <= 0.3", "not (`s.oil` and `s.acid`)"],
    )
    optimizer = Bounce(space, 20, seed=1)
    for trial in optimizer.ask(20):
        assert trial.point["m"]["x"] <= 0.3
        assert not {"oil", "acid"} <= set(trial.point["s"])


@pytest.mark.parametrize(
    ("parameters", "constraint"),
    [
        ([Integer("n", 0, 100_000)], "n == 7"),
        ([Real("x", 0, 1), Integer("n", 0, 100)], "x * n > 99.99"),
        ([Integer("n", 0, 1000, step=2)], "n == 734"),
    ],
)
def test_a_rare_whole_number_is_found(parameters: list[Any], constraint: str) -> None:
    space = Space(parameters, constraints=[constraint])
    (trial,) = Bounce(space, 1, seed=0).ask()
    assert trial.point in space


def test_a_condition_that_is_taken_back_gives_the_settings_back() -> None:
    kind = Categorical("k", ["rbf", "lin"])
    always = Space([kind, Integer("w", 1, 9), Real("g", 0.01, 1, log=True)])
    sometimes = Space([kind, Integer("w", 1, 9, when={"k": "lin"}), Real("g", 0.01, 1, log=True)])
    optimizer = Bounce(always, 40, seed=1)
    for trial in optimizer.ask(40):
        optimizer.tell(trial, 1.0)
    before = [trial.point for trial in optimizer.trials]
    assert not optimizer.change(sometimes)
    assert all(("w" in trial.point) == (trial.point["k"] == "lin") for trial in optimizer.trials)
    assert not optimizer.change(always)
    assert [trial.point for trial in optimizer.trials] == before  # to the last digit


def test_a_function_that_fails_is_named_with_its_point() -> None:
    def low(point: dict[str, Any]) -> bool:
        return bool(point["y"] < 0.5)

    with pytest.raises(InvalidSpace, match=r"low' raised KeyError: 'y' for the point \{'k': 'b'\}.*use point\.get"):
        Space([Categorical("k", ["a", "b"]), Real("y", 0, 1, when={"k": "a"})], constraints=[low])


@pytest.mark.parametrize("said", [None, 0.5, "no", [True]])
def test_a_function_that_returns_neither_true_nor_false_is_refused(said: Any) -> None:
    with pytest.raises(InvalidSpace, match="must return True or False, not " + re.escape(repr(said))):
        Space([Real("y", 0, 1)], constraints=[lambda point: said])
    assert {"y": 0.5} in Space([Real("y", 0, 1)], constraints=[lambda point: np.float64(point["y"]) < 0.7, lambda _: 1])


def test_a_member_has_a_name_of_its_own() -> None:
    with pytest.raises(InvalidSpace, match=r"'s\.a' is the name of a member and of something else"):
        Space([Subset("s", ["a", "b"]), Binary("s.a")])


def test_an_order_can_be_constrained_by_its_pairs() -> None:
    space = Space([Permutation("order", ["heat", "mix", "press"])], constraints=["`order: heat before press`"])
    assert space.size == 3
    points = [trial.point["order"] for trial in Bounce(space, 3, seed=0).ask(3)]
    assert all(order.index("heat") < order.index("press") for order in points)
    with pytest.raises(InvalidSpace, match="write not `order: heat before press`"):
        Space(space.parameters, constraints=["`order: press before heat`"])


LAB = """
budget = 9
seed = 0
[[parameters]]
name = "solvent"
type = "categorical"
choices = ["water", "ether"]
[[parameters]]
name = "heat"
type = "real"
low = 20
high = 90
step = 5
when = { solvent = "water" }
[[parameters]]
name = "additives"
type = "subset"
members = ["a", "b", "c"]
[[parameters]]
name = "blend"
type = "mixture"
components = ["x", "y"]
step = 0.1
"""


def test_the_command_line_adds_corrects_and_refuses_structured_points(bounce: Terminal) -> None:
    (bounce.folder / "lab.toml").write_text(LAB)
    (bounce.folder / "past.csv").write_text(
        "solvent,heat,additives.a,additives.b,additives.c,blend.x,blend.y,value\n"
        "water,35,true,,,0.3,0.7,1.5\n"
        "ether,,false,true,true,1,0,2.5\n"
    )
    assert bounce("add", "lab.toml", "past.csv").out == "2 added; 9 left to ask\n"
    assert bounce("correct", "lab.toml", "0", "--set", "blend.x=0.6", "--set", "blend.y=0.4").code == 0
    assert bounce("correct", "lab.toml", "0", "--set", 'additives=["b", "c"]').code == 0
    assert bounce("correct", "lab.toml", "0", "--set", "solvent=ether").code == 0
    with Study.open(bounce.folder / "lab.db") as study:
        assert study.trials[0].point == {
            "solvent": "ether",
            "additives": ["b", "c"],
            "blend": {"x": 0.6, "y": 0.4},
        }
    said = bounce("correct", "lab.toml", "0", "--set", "heat=35")
    assert said.code == 2
    assert "'heat' is inactive here" in said.err
    asked = bounce("ask", "lab.toml", "-n", "6", "--format", "csv").out.splitlines()
    row = next(row for row in asked[1:] if ",ether,," in row)
    (bounce.folder / "told.csv").write_text(f"{asked[0]}\n{row.replace(',ether,,', ',ether,40,')}3\n")
    said = bounce("tell", "lab.toml", "told.csv")
    assert said.code == 2
    assert "which is inactive with its other settings: empty the cell" in said.err
    (bounce.folder / "told.csv").write_text(f"{asked[0]}\n{row}3\n")
    assert bounce("tell", "lab.toml", "told.csv").code == 0


def test_settings_that_were_used_may_switch_others_on_and_off(bounce: Terminal) -> None:
    (bounce.folder / "lab.toml").write_text(LAB)
    ideas = "solvent,heat,blend.x,blend.y\nether,,1,0\nwater,35,1,0\nether,,0.5,0.5\n"
    (bounce.folder / "ideas.csv").write_text(ideas)
    assert bounce("enqueue", "lab.toml", "ideas.csv").code == 0
    asked = bounce("ask", "lab.toml", "-n", "3", "--format", "csv").out

    def tell(row: str) -> str:
        (bounce.folder / "told.csv").write_text(f"id,solvent,heat,value\n{row}\n")
        said = bounce("tell", "lab.toml", "told.csv", "--as-used")
        return said.err if said.code else said.out

    assert "told.csv, row 2: the row has no value for 'heat'" in tell("0,water,,1.5")
    assert "told.csv, row 2: 'heat' must be between 20.0 and 90.0 in steps of 5" in tell("0,water,42,1.5")
    assert "1 stored" in tell("0,water,40,1.5")
    assert "told.csv, row 2: 'heat' is inactive here" in tell("1,ether,40,2.5")
    assert "1 stored" in tell("1,ether,35,2.5")  # the cell as it was printed
    assert "1 unchanged" in tell("1,ether,35,2.5")
    assert bounce("correct", "lab.toml", "1", "--set", 'blend={"x": 0.5, "y": 0.5}').code == 0
    with Study.open(bounce.folder / "lab.db") as study:
        points = [trial.point for trial in study.trials]
    assert [point.get("heat") for point in points] == [40.0, None, None]
    assert len(asked.splitlines()) == 4
    history = bounce("history", "lab.toml").out
    assert 'tell trial 0: solvent "ether" -> "water", heat 40.0' in history
    assert 'tell trial 1: solvent "water" -> "ether", heat 35.0 -> none' in history
    assert "correct trial 1: blend.x 1.0 -> 0.5, blend.y 0.0 -> 0.5" in history


def test_a_point_to_try_that_does_not_fit_is_refused_with_its_row(bounce: Terminal) -> None:
    (bounce.folder / "lab.toml").write_text(LAB)
    for row, said in (
        ("ether,40,0.5,0.5", "'heat' is inactive here"),
        ("water,40,0.5,", "'blend' must add up to 1.0, not 0.5"),
    ):
        (bounce.folder / "ideas.csv").write_text(f"solvent,heat,blend.x,blend.y\nwater,35,1,0\n{row}\n")
        refused = bounce("enqueue", "lab.toml", "ideas.csv")
        assert refused.code == 2
        assert f"ideas.csv, row 3: {said}" in refused.err
    assert not (bounce.folder / "lab.db").exists()


def test_an_argument_of_an_inactive_parameter_is_left_out(tmp_path: Path) -> None:
    command = ["echo", "--solvent={solvent}", "--heat={heat}", "{additives}"]
    text = f"command = {json.dumps(command)}\n{LAB}"
    (tmp_path / "lab.toml").write_text(text)
    spec = load(tmp_path / "lab.toml")
    hot = {"solvent": "water", "heat": 35.0, "additives": ["a"], "blend": {"x": 1.0, "y": 0.0}}
    cold = {name: x for name, x in hot.items() if name != "heat"} | {"solvent": "ether"}
    assert "--solvent=water --heat=35.0 '[\"a\"]'" in spec.command_line(hot, tmp_path)
    assert "--solvent=ether '[\"a\"]'" in spec.command_line(cold, tmp_path)


def test_a_command_can_name_the_parts_of_subsets_and_mixtures(tmp_path: Path) -> None:
    command = ["echo", "--acid={additives.a}", "-x", "{blend.x}", "{blend}", "{additives.c}", "{heat}"]
    (tmp_path / "lab.toml").write_text(f"command = {json.dumps(command)}\n{LAB}")
    spec = load(tmp_path / "lab.toml")
    point = {"solvent": "water", "heat": 35.0, "additives": ["a"], "blend": {"x": 0.7, "y": 0.3}}
    line = spec.command_line(point, tmp_path)
    assert line.endswith('echo --acid=true -x 0.7 \'{"x": 0.7, "y": 0.3}\' false 35.0')
    (tmp_path / "lab.toml").write_text(f"command = {json.dumps(['echo', '{blend.z}'])}\n{LAB}")
    with pytest.raises(InvalidSpec, match=r"\{blend.z\} names no parameter; did you mean"):
        load(tmp_path / "lab.toml")


def test_arguments_that_name_every_part_need_no_further_input(tmp_path: Path) -> None:
    names = ["{solvent}", "{heat}", "{additives.a}", "{additives.b}", "{additives.c}", "{blend.x}", "{blend.y}"]
    (tmp_path / "lab.toml").write_text(f"command = {json.dumps(['echo', *names])}\n{LAB}")
    point = {"solvent": "water", "heat": 35.0, "additives": ["a", "c"], "blend": {"x": 1.0, "y": 0.0}}
    line = load(tmp_path / "lab.toml").command_line(point, tmp_path)
    assert line == "echo water 35.0 true false true 1.0 0.0"


def test_a_constant_that_a_parameter_never_takes_is_a_typo() -> None:
    with pytest.raises(InvalidSpace, match=r"compares 'k' with 'watr', which is not one of .*did you mean 'water'"):
        Space([Categorical("k", ["water", "oil"])], constraints=["k != 'watr'"])
    Space([Ordinal("n", [1, 2, 4]), Real("x", 0, 1)], constraints=["n in [1, 4]", "x != 0.25"])
    with pytest.raises(InvalidSpace, match="compares 'f' with 'on', but its value is True or False"):
        Space([Binary("f")], constraints=["f == 'on'"])
    with pytest.raises(InvalidSpace, match="compares 'i' with 'high', but its value is a number"):
        Space([Integer("i", 1, 9)], constraints=["i != 'high'"])
    with pytest.raises(InvalidSpace, match="compares 'n' with 3"):
        Space([Ordinal("n", [1, 2, 4])], constraints=["n in [1, 3]"])


def test_every_branch_of_a_condition_is_seen_several_times_before_the_model_decides() -> None:
    families = ["a", "b", "c", "d", "e"]
    space = Space([Categorical("f", families), *(Real(f"x{f}", 0, 1, when={"f": f}) for f in families)])
    optimizer = Bounce(space, 100, seed=0)
    first = optimizer.ask(15)
    assert all(trial.acquisition is None for trial in first)
    counts = [sum(trial.point["f"] == family for trial in first) for family in families]
    assert counts == [3] * 5
    assert len([t for t in Bounce(space, 20, seed=0).ask(20) if t.acquisition is None]) >= 5


def test_what_wakes_up_may_take_any_value_however_small_the_region() -> None:
    space = Space(
        [Binary("on"), Real("x", 0, 1, when={"on": True}), Ordinal("n", [1, 2], when={"on": True}), Real("y", 0, 1)]
    )
    rules = Rules.of(identity(space))
    assert rules is not None
    (off, on) = space.encode([{"on": False, "y": 0.5}, {"on": True, "x": 0.5, "n": 1, "y": 0.5}])
    narrow = np.array([[0.49, 0.49], [0.51, 0.51]])
    region = structured_region(Neighbourhood(space, off, 1, narrow), rules)
    assert region.asleep.tolist() == [1, 2]
    assert region.box.tolist() == [[0.0, 0.49], [1.0, 0.51]]
    woken = space.encode([{"on": True, "x": 0.9, "n": 2, "y": 0.5}])
    assert region.distance(woken).tolist() == [1]  # only the switch counts
    awake = structured_region(Neighbourhood(space, on, 1, narrow), rules)
    assert awake.box.tolist() == narrow.tolist()
    assert not len(awake.asleep)


def listed(stem: str, n: int) -> str:
    return ", ".join(f"{stem}{i}" for i in range(n))


RESTRICTED: dict[str, tuple[list[Any], list[Any]]] = {
    "a few of many": ([Binary(f"f{i}") for i in range(80)], [f"count({listed('f', 80)}) <= 2"]),
    "an exact number of many": ([Binary(f"f{i}") for i in range(60)], [f"count({listed('f', 60)}) == 5"]),
    "one of each group": (
        [Binary(f"f{i}") for i in range(24)],
        [f"count({', '.join(f'f{i}' for i in range(k, k + 4))}) == 1" for k in range(0, 24, 4)],
    ),
    "a small sum": ([Real(f"x{i}", 0, 1) for i in range(40)], [f"sum({listed('x', 40)}) <= 1"]),
    "nearly an equation": ([Real(f"x{i}", 0, 1) for i in range(30)], [f"4.99 <= sum({listed('x', 30)}) <= 5.01"]),
    "an order": ([Real(f"x{i}", 0, 1) for i in range(12)], [" < ".join(f"x{i}" for i in range(12))]),
    "an exact sum": ([Integer(f"n{i}", 0, 20) for i in range(30)], [f"sum({listed('n', 30)}) == 60"]),
    "a small part by products": (
        [Real(f"x{i}", 0, 1) for i in range(12)],
        ["x0 * x1 * x2 * x3 * x4 >= 0.9", "x5 + x6 >= 1.95"],
    ),
}


@pytest.mark.parametrize("name", RESTRICTED)
def test_a_strongly_restricted_space_is_searched_all_the_same(name: str) -> None:
    space = Space(RESTRICTED[name][0], constraints=RESTRICTED[name][1])
    drawn = Space(space.parameters).sample(2000, rng=np.random.default_rng(1))
    assert space.structure is not None
    assert space.structure.allowed(drawn).mean() < 0.01  # random points are no help
    optimizer = Bounce(space, 12, seed=0)
    points = []
    while not optimizer.done:
        (trial,) = optimizer.ask()
        assert trial.point in space
        points.append(json.dumps(trial.point))
        optimizer.tell(trial, objective(trial.point))
    assert len(set(points)) == 12


def test_rare_combinations_of_whole_numbers_are_all_within_reach() -> None:
    space = Space(
        [Integer("heads", 1, 1000), Integer("width", 1, 1000), Real("rate", 0, 1), Ordinal("depth", [1, 2, 4])],
        constraints=["heads * width == 720", "depth != 2"],
    )
    drawn = space.sample(200, rng=np.random.default_rng(0))
    heads = {point["heads"] for point in space.decode(drawn)}
    assert heads == {n for n in range(1, 721) if 720 % n == 0}
    result = bounce.minimize(lambda p: abs(p["heads"] - 24) / 24 + (p["rate"] - 0.3) ** 2, space, budget=30, seed=0)
    assert all(trial.point in space for trial in result.trials)
    assert result.best is not None
    assert result.best.point["heads"] == 24


def test_a_space_of_rare_combinations_is_exhausted() -> None:
    space = Space([Integer("a", 1, 1000), Integer("b", 1, 1000)], constraints=["a * b == 96"])
    result = bounce.minimize(lambda p: float(p["a"]), space, budget=40, seed=0)
    assert sorted(trial.point["a"] for trial in result.trials) == [n for n in range(1, 97) if 96 % n == 0]


def test_a_long_constraint_is_shortened_in_a_message() -> None:
    many = [Binary(f"f{i}") for i in range(60)]
    with pytest.raises(
        InvalidSpace, match=r"constraint 'count\(f0, f1, .* \.\.\. .*f59\) >= 50' excludes most"
    ) as error:
        Space(many, constraints=[f"count({listed('f', 60)}) >= 50", f"count({listed('f', 60)}) <= 10"])
    assert len(str(error.value)) < 300


@settings(max_examples=20, deadline=None)
@given(generators())
def test_what_is_moved_onto_planes_or_is_a_corner_satisfies_the_linear_constraints(rng: np.random.Generator) -> None:
    space = Space(
        [
            *(Real(f"x{i}", -1.0, float(rng.uniform(0.5, 3))) for i in range(4)),
            *(Integer("n", 0, 7), Integer("wide", 0, 500), Binary("b"), Ordinal("o", [1, 3, 5])),
        ],
        constraints=[
            f"{rng.uniform(0.1, 2):.3f} * x0 + x1 - x2 <= {rng.uniform(0.5, 2):.3f} + n",
            "0 <= x1 + wide / 100 < x3 + o",
            "count(b) + n == 4",
        ],
    )
    structure = space.structure
    assert structure is not None
    planes = structure.walks.planes
    assert len(planes) == 5
    allowed = space.sample(20, rng=rng)
    assert (allowed @ planes.weights.T <= planes.bounds + 0.01).all()  # a wide integer is rounded
    codes = space.uniform(20, rng=rng)
    for found in (planes.onto(codes, 200), planes.corners(codes[:4], rng=rng)):
        assert len(found)
        assert space.holds(found)
        solvable = planes.real_weights.any(axis=1) | (len(found) == 4)
        assert (found @ planes.weights.T <= planes.bounds + 1e-3)[:, solvable].all()


LINEAR = [
    "x + y <= 1.2",
    "x < 0.5",
    "2 * x - y / 3 >= n / 10",
    "sum(x, y, n) <= 3 and x > 0.1",
    "0.3 <= x <= 0.6",
    "count(f, g) <= 1",
    "count(f, g) + n < 3",
    "n <= 2",
    "n + 2 * o > 5",
    "0.1 * n <= 0.3",
    "o / 3 - n / 3 >= 1 / 3",
]


@pytest.mark.parametrize("text", LINEAR)
def test_linear_constraints_are_judged_as_the_expression_says(text: str) -> None:
    parameters: list[Any] = [Real("x", -1, 1), Real("y", 1e-9, 3), Integer("n", -2, 6), Ordinal("o", [1, 2, 3])]
    space = Space([*parameters, Binary("f"), Binary("g")], constraints=[text])
    structure = space.structure
    assert structure is not None
    rng = np.random.default_rng(0)
    codes = space.uniform(4000, rng=rng)
    edge = rng.random((4000, 2)).round(1)  # where inequalities are met exactly, or nearly so
    codes[:2000, :2] = on_grid(np.clip(edge + rng.choice([0, 1e-16, -1e-15, 1e-12], (4000, 2)), 0, 1))[:2000]
    codes = codes[rng.permutation(4000)]
    (constraint,) = space.constraints
    halfspaces = Halfspaces.of(constraint, structure.variables, space.cardinalities)
    assert halfspaces is not None
    found, sure = halfspaces.judged(codes)
    columns = {name: np.array([point[name] for point in space.decode(codes)]) for name in constraint.names}
    assert sure.mean() > 0.4
    assert (found == constraint.holds(columns))[sure].all()
    assert (structure.judged(constraint, codes, exact=True) == constraint.holds(columns)).all()


@pytest.mark.parametrize("text", ["x * y < 1", "x == 0.5", "z < 0.5", "big + x <= 9", "step + x <= 2", "not x < 0.5"])
def test_what_codes_do_not_say_is_left_to_the_expression(text: str) -> None:
    numbers: list[Any] = [Real("x", 0, 1), Real("y", 0, 9), Real("z", 0.1, 1, log=True)]
    space = Space([*numbers, Integer("big", 0, 900), Real("step", 0, 9, step=0.1)], constraints=[text])
    assert space.structure is not None
    assert Halfspaces.of(space.constraints[0], space.structure.variables, space.cardinalities) is None


def test_a_walk_reaches_every_allowed_point() -> None:
    space = Space([Binary(f"f{i}") for i in range(6)], constraints=["count(f0, f1, f2, f3, f4, f5) == 3"])
    assert space.structure is not None
    start = np.tile(space.structure.walks.witnesses[:1], (400, 1))
    ends = space.structure.walks.walked(start, 40, rng=np.random.default_rng(0))
    assert len(np.unique(ends, axis=0)) == math.comb(6, 3)


def test_a_mixture_takes_fractions_of_single_precision() -> None:
    space = Space([Mixture("m", ["u", "v"], step=0.1)])
    (point,) = space.decode(space.encode([{"m": {"u": np.float32(0.3), "v": np.float32(0.7)}}]))
    assert point == {"m": {"u": 0.3, "v": 0.7}}
    for wrong in (0.299, 1e308, 10**400, math.nan, -0.1):
        with pytest.raises(InvalidPoint, match=r"must be a multiple of 0\.1"):
            space.encode([{"m": {"u": wrong, "v": 0.701}}])


def test_a_partial_point_that_nothing_completes_is_refused_with_the_constraint_it_breaks() -> None:
    space = Space([Integer("a", 0, 10), Integer("b", 0, 10)], constraints=["a + b <= 25", "a <= 5 or b <= -1"])
    with pytest.raises(
        InvalidPoint, match=r"point 0: no completion .* all 4,096 random ones break 'a <= 5 or b <= -1'"
    ):
        bounce.Bounce(space, budget=5).enqueue([{"a": 7}])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("n", "a number"),
        ("not x", "a number"),
        ("b and n", "a number"),
        ("count(b, x) <= 1", "a number"),
        ("s", "a choice"),
    ],
)
def test_only_what_is_true_or_false_may_stand_alone(text: str, what: str) -> None:
    parameters = [Integer("n", 0, 5), Real("x", 0, 1), Binary("b"), Categorical("s", ["u", "v"])]
    with pytest.raises(InvalidSpace, match=f"is not true or false but {what}"):
        Space(parameters, constraints=[text])
    Space([*parameters, Categorical("t", [True, False])], constraints=["b or not t"])
