"""Importances: Sobol indices of functions with known answers, densities, and what a run says about its parameters."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bounce import Binary, Bounce, Categorical, Integer, Real, Space, Study
from bounce.cli import app
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.paths import Paths
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.optimizer.densities import importances
from bounce.optimizer.importance import Importance
from bounce.optimizer.looks import Look
from bounce.optimizer.sensitivity import Sample, averaged, codes_at, design

MIXED = Space(
    [Real("x", -1, 1), Real("y", 1e-3, 1, log=True), Integer("n", 1, 6), Categorical("c", ["a", "b", "c"]), Binary("b")]
)


def ishigami(codes: np.ndarray) -> np.ndarray:
    x = (2 * codes - 1) * math.pi
    return np.asarray(np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))[:, None]


def test_the_indices_of_ishigami_are_those_of_the_literature() -> None:
    space = Space([Real(f"x{i}", 0, 1) for i in range(4)])
    sample = Sample(ishigami, *design(space, 4096, rng=np.random.default_rng(0)))
    first, total = sample.indices([np.array([i]) for i in range(4)])
    np.testing.assert_allclose(first[:, 0], [0.3139, 0.4424, 0, 0], atol=0.02)
    np.testing.assert_allclose(total[:, 0], [0.5576, 0.4424, 0.2437, 0], atol=0.02)
    assert total[3, 0] == 0
    pairs = sample.together([(0, 1), (0, 2), (1, 2)])
    np.testing.assert_allclose(pairs[:, 0], [0, 0.2437, 0], atol=0.02)


def test_a_group_of_variables_explains_what_it_holds() -> None:
    space = Space([Real(f"x{i}", 0, 1) for i in range(4)])
    sample = Sample(ishigami, *design(space, 1024, rng=np.random.default_rng(0)))
    _, total = sample.indices([np.arange(3), np.array([1]), np.array([0, 2])])
    np.testing.assert_allclose(total[:, 0], [1.0, 0.4424, 0.5576], atol=0.05)


def test_constant_functions_have_no_important_variable() -> None:
    sample = Sample(lambda codes: np.ones((len(codes), 2)), *design(MIXED, 64, rng=np.random.default_rng(0)))
    first, total = sample.indices([np.array([i]) for i in range(len(MIXED))])
    assert (first == 0).all()
    assert (total == 0).all()


def test_a_design_holds_points_of_the_space_with_all_codes() -> None:
    a, b = design(MIXED, 256, rng=np.random.default_rng(3))
    assert MIXED.holds(a)
    assert MIXED.holds(b)
    for j in MIXED.combinatorial:
        assert set(a[:, j]) == set(range(MIXED.cardinalities[j]))
    assert MIXED.holds(codes_at(MIXED, np.zeros((1, 5))))


def test_an_averaged_effect_is_the_mean_over_the_others() -> None:
    others = MIXED.sample(50, rng=np.random.default_rng(0))
    found = averaged(lambda codes: codes[:, :1] + 10 * codes[:, 2:3], others, np.array([2]), np.array([[0.0], [5.0]]))
    np.testing.assert_allclose(found[:, 0], others[:, 0].mean() + np.array([0.0, 50.0]))


def _hyper(rho: float = 0.4) -> Hyper:
    return Hyper(np.array([1.0, 2.0, 0.8]), np.array([0.4, 0.7]), 1.3, 1e-2, rho, per_bin=True)


@pytest.mark.parametrize(
    ("space", "hyper"),
    [
        (MIXED, _hyper()),
        (Space(MIXED.parameters[:2]), Hyper(np.empty(0), np.array([0.4, 0.7]), 1.3, 1e-2, 0.5, per_bin=True)),
        (Space(MIXED.parameters[2:]), Hyper(np.array([1.0, 2.0, 0.8]), np.empty(0), 1.3, 1e-2, 0.5, per_bin=True)),
    ],
    ids=["mixed", "real", "combinatorial"],
)
def test_functions_drawn_from_a_posterior_have_its_mean_and_variance(space: Space, hyper: Hyper) -> None:
    rng = np.random.default_rng(1)
    known, new = space.sample(12, rng=rng), space.sample(30, rng=rng)
    y = rng.standard_normal(12)
    gp = GP.at(Kernel(space, hyper), Points(known))
    mean, variance = gp.posterior(Points(new), y - 0.3)
    paths = Paths(gp, y, 1500, rng=rng, mean=0.3)
    found = paths(new)
    np.testing.assert_allclose(found[:, 0], mean + 0.3, atol=1e-9)
    np.testing.assert_allclose(found[:, 1:].mean(axis=1), mean + 0.3, atol=0.2)
    np.testing.assert_allclose(found[:, 1:].std(axis=1), np.sqrt(variance), atol=0.2)
    np.testing.assert_allclose(paths(new[:3]), found[:3], atol=1e-12)


def test_the_density_ratio_finds_what_the_best_trials_share() -> None:
    rng = np.random.default_rng(0)
    codes = MIXED.sample(200, rng=rng)
    values = (codes[:, 0] - 0.3) ** 2 + 0.3 * (codes[:, 3] != 1)
    shares, chance = importances(MIXED, codes, values, 0.4, rng=rng)
    assert shares.sum() == pytest.approx(1)
    assert set(np.argsort(-shares)[:2]) == {0, 3}
    assert chance[[0, 3]].max() < 0.02 < chance[[1, 2, 4]].min()


def test_too_few_trials_have_no_densities() -> None:
    shares, chance = importances(MIXED, MIXED.sample(5, rng=np.random.default_rng(0)), np.arange(5.0), 0.4,
                                 rng=np.random.default_rng(0))  # fmt: skip
    assert (shares == 0).all()
    assert (chance == 1).all()


def _told(space: Space, n: int, function, seed: int = 0, **options) -> Bounce:  # type: ignore[no-untyped-def]
    opt = Bounce(space, budget=max(n, 1), seed=seed, **options)
    points = space.decode(space.sample(n, rng=np.random.default_rng(seed)))
    opt.add(points, [function(point) for point in points])
    return opt


def _loss(point) -> float:  # type: ignore[no-untyped-def]
    return float(point["x"] ** 2 + 0.5 * (point["c"] == "b") + 0.1 * point["n"] * (point["c"] == "a"))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_run_says_what_matters(direction: str) -> None:
    sign = 1 if direction == "minimize" else -1
    opt = _told(MIXED, 80, lambda point: sign * _loss(point), direction=direction)
    before = json.dumps(opt.state_dict())
    found = opt.importance()
    assert isinstance(found, Importance)
    assert json.dumps(opt.state_dict()) == before
    assert {each.name for each in found.parameters} == {"x", "y", "n", "c", "b"}
    assert {each.name for each in found.parameters[:2]} == {"x", "c"}
    assert {each.name for each in found.parameters if each.verdict == "inert"} == {"y", "b"}
    assert found["x"].verdict == found["c"].verdict == "matters"
    assert set(found.pairs[0].names) == {"n", "c"}
    assert found.quality > 0.8
    # the effects are in the user's units, and of a parameter without one they are flat
    effect = found.effects["c"]
    assert effect.values == ("a", "b", "c")
    a, b, c = (sign * each for each in effect.mean)
    assert b - c == pytest.approx(0.5, abs=0.1)
    assert a - c == pytest.approx(0.35, abs=0.1)
    curve = found.effects["x"]
    assert (curve.values[0], curve.values[-1]) == (-1, 1)
    assert sign * (curve.mean[0] - curve.mean[10]) == pytest.approx(1, abs=0.15)
    assert max(found.effects["y"].mean) - min(found.effects["y"].mean) < 0.05
    assert repr(found).startswith(("Importance(c", "Importance(x"))


def test_the_same_trials_give_the_same_importance() -> None:
    opt = _told(MIXED, 30, _loss)
    again = Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict())))
    assert opt.importance() == again.importance()


@given(n=st.integers(8, 14), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_shares_are_shares_and_lie_in_their_intervals(n: int, seed: int) -> None:
    found = _told(MIXED, n, lambda point: hash(str(point)) % 7 + point["x"], seed=seed).importance()
    if found is not None:
        for each in found.parameters:
            assert 0 <= each.first <= each.total <= 1
            assert 0 <= each.total_interval[0] <= each.total <= each.total_interval[1] <= 1
            assert each.first_interval[0] <= each.first <= each.first_interval[1]
            assert 0 <= each.data <= 1


def test_without_enough_different_values_there_is_no_importance() -> None:
    assert Bounce(MIXED, budget=5, seed=0).importance() is None
    assert _told(MIXED, 7, _loss).importance() is None
    assert _told(MIXED, 12, lambda point: 1.0).importance() is None


def test_bins_of_the_first_stage_hold_those_of_the_present_one() -> None:
    space = Space([Real(f"x{i}", 0, 1) for i in range(12)])
    opt = Bounce(space, budget=60, seed=1, initial_dims=3)
    first = [set(part.tolist()) for part in opt.stage.embedding.members]
    while opt.stage.number < 1 or len(opt.trials) < 10:
        for trial in opt.ask():
            opt.tell(trial, sum((float(value or 0) - 0.4) ** 2 for value in trial.point.values()))
    found = opt.importance()
    assert found is not None
    names = [parameter.name for parameter in space.parameters]
    assert sorted(sorted(each.names) for each in found.bins) == sorted(sorted(names[i] for i in part) for part in first)
    for each in found.bins:
        assert sorted(name for part in each.parts for name in part.names) == sorted(each.names)
        assert 0 <= each.total <= 1


def test_a_run_that_began_otherwise_shows_the_present_bins() -> None:
    space = Space([Real(f"x{i}", 0, 1) for i in range(12)])
    opt = Bounce(space, budget=60, seed=1, initial_dims=3)
    rng = np.random.default_rng(0)
    opt.add(space.decode(space.sample(10, rng=rng)), rng.random(10).tolist())
    opt.tell(opt.ask(3), [0.5, 0.6, 0.7])
    found = opt.importance()
    assert found is not None
    now = [sorted(f"x{i}" for i in part) for part in opt.stage.embedding.members]
    assert sorted(sorted(each.names) for each in found.bins) == sorted(now)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Study.open(tmp_path / "lab.db", space=MIXED, budget=50, seed=0) as study:
        points = MIXED.decode(MIXED.sample(40, rng=np.random.default_rng(0)))
        study.add(points, [_loss(point) for point in points])
    return tmp_path / "lab.db"


def test_the_command_prints_the_shares_and_changes_nothing(file: Path) -> None:
    before = file.read_bytes()
    result = CliRunner().invoke(app, ["importance", str(file), "--bins", "--most", "3"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["parameter", "total", "(5", "%", "-", "95", "%)", "first", "data"]
    assert lines[1].split()[0] in ("x", "c")
    assert "... and 2 more" in lines[4]
    assert any(line.endswith("n x c") for line in lines)
    assert "by a model of 40 results" in result.output
    assert file.read_bytes() == before
    document = json.loads(CliRunner().invoke(app, ["importance", str(file), "--json"]).output)
    assert len(document["parameters"]) == 5
    assert document["observations"] == 40
    fewer = json.loads(CliRunner().invoke(app, ["importance", str(file), "--json", "-n", "2"]).output)
    assert fewer["parameters"] == document["parameters"][:2]


def test_the_command_refuses_a_study_without_values(tmp_path: Path) -> None:
    Study.open(tmp_path / "new.db", space=MIXED, budget=5).close()
    result = CliRunner().invoke(app, ["importance", str(tmp_path / "new.db")])
    assert result.exit_code != 0
    assert "at least 8 values" in str(result.exception)


def test_what_is_idle_only_where_the_search_settled_is_not_called_inert() -> None:
    """Of x·y, y does nothing where x is 0, which is where nearly all results are."""
    names = ["x", "y", *(f"z{i}" for i in range(6))]
    space = Space([Real(name, 0, 1) for name in names])
    rng = np.random.default_rng(0)
    anywhere, settled = rng.random((16, 8)), rng.random((84, 8)) * ([0.0] + [1.0] * 7)
    optimizer = Bounce(space, 10, seed=0)
    points = space.decode(np.concatenate([anywhere, settled]))
    optimizer.add(points, [point["x"] * (1 + point["y"]) + 0.5 * point["z0"] ** 2 for point in points])
    found = optimizer.importance()
    assert found is not None
    assert found["y"].total_interval[1] < 0.02  # by all results together
    assert found["y"].verdict != "inert"
    assert all(found[f"z{i}"].verdict == "inert" for i in (3, 4, 5))


def test_observations_that_are_spread_out_leave_out_what_others_tell() -> None:
    space = Space([Real("x", 0, 1), Real("y", 0, 1)])
    rng = np.random.default_rng(1)
    codes = np.concatenate([0.01 * rng.random((40, 2)), rng.random((10, 2))])
    hyper = Hyper(np.array([]), np.array([0.3, 0.3]), 1.0, 1e-3, 0.5)
    look = Look(GP.at(Kernel(space, hyper), Points(codes)), np.arange(50.0))
    few, more = look.spread([8, 12])
    assert set(few) <= set(more)
    assert (np.diff(more) > 0).all()
    assert (more < 40).sum() <= 3  # of 40 results in one place


def _together(space: Space, n: int, apart: int) -> Bounce:
    """Return a run in which x moves with its mirror image, and c with a like choice, but for the last trials."""
    rng = np.random.default_rng(2)
    codes = space.sample(n + apart, rng=rng)
    codes[:n, 1] = 1.0 - codes[:n, 0]
    codes[:n, -1] = codes[:n, -2]
    opt = Bounce(space, budget=100, seed=0)
    points = space.decode(codes)
    opt.add(points, [3 * point["x"] + (point["c"] == "b") + point["z0"] ** 2 for point in points])
    return opt


TOGETHER = Space(
    [
        Real("x", 0, 1),
        Real("mirror", 0, 1),
        *(Real(f"z{i}", 0, 1) for i in range(3)),
        Categorical("c", ["a", "b", "c"]),
        Categorical("like c", ["d", "e", "f"]),
    ]
)


def test_parameters_that_always_moved_together_are_not_told_apart() -> None:
    found = _together(TOGETHER, 40, 0).importance()
    assert found is not None
    assert found.quality > 0.8
    for one, other in (("x", "mirror"), ("c", "like c")):
        pair = found[one], found[other]
        assert [each.verdict for each in pair] == ["unclear", "unclear"]
        largest = max(pair, key=lambda each: each.total)
        assert {largest.name, *largest.substitutes} == {one, other}
        highs = {each.total_interval[1] for each in pair}
        assert len(highs) == 1  # each may be all that both explain
        assert highs.pop() >= sum(each.total for each in pair) - 0.05
        assert largest.total_interval[0] == largest.first_interval[0] == 0
    assert found["z0"].verdict == "matters"
    assert found["z0"].substitutes == ()


def test_few_trials_tell_apart_what_moved_together() -> None:
    found = _together(TOGETHER, 40, 12).importance()
    assert found is not None
    assert [found[name].verdict for name in ("x", "c", "z0")] == ["matters"] * 3
    assert found["mirror"].total_interval[1] < 0.02
    assert not any(each.substitutes for each in found.parameters)


def test_a_parameter_of_another_kind_can_be_a_substitute() -> None:
    space = Space(
        [Real("x", 0, 1), Binary("b"), Integer("n", 1, 9), Categorical("c", ["p", "q", "r"]), Real("z", 0, 1)]
    )
    rng = np.random.default_rng(0)
    codes = space.sample(40, rng=rng)
    codes[:, 0] = 0.2 + 0.6 * codes[:, 1]
    codes[:, 2] = 4 * codes[:, 3]
    points = space.decode(codes)
    opt = Bounce(space, budget=100, seed=0)
    opt.add(points, [2 * point["b"] + {"p": 1, "q": 0, "r": 3}[point["c"]] + point["z"] for point in points])
    found = opt.importance()
    assert found is not None
    assert {each.name for each in found.parameters if each.verdict == "matters"} == {"z"}
    named = {name: each.substitutes for each in found.parameters for name in [each.name] if each.substitutes}
    assert all(set(others) <= {"x", "b", "n", "c"} - {name} for name, others in named.items())
    assert {frozenset([name, *others]) for name, others in named.items()} == {
        frozenset(["x", "b"]),
        frozenset(["n", "c"]),
    }
    assert repr(found).count("(unclear)") == 4


def test_the_command_names_what_is_not_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "lab.db"
    with Study.open(path, space=TOGETHER, budget=50, seed=0) as study:
        source = _together(TOGETHER, 40, 0)
        study.add([trial.point for trial in source.trials], [trial.value for trial in source.trials])
    said = CliRunner().invoke(app, ["importance", str(path)])
    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("not told apart"))
    assert {frozenset(line.strip().split(" or ")) for line in lines[at + 1 : at + 3]} == {
        frozenset(["x", "mirror"]),
        frozenset(["c", "like c"]),
    }
    assert all(line.endswith("unclear") for line in lines if line.startswith(("x ", "mirror ")))


def test_the_rest_of_the_parameters_have_a_bound_that_holds(tmp_path: Path) -> None:
    space = Space([Real(f"x{i}", 0, 1) for i in range(8)])
    path = tmp_path / "lab.db"
    with Study.open(path, space=space, budget=50, seed=0) as study:
        points = space.decode(space.sample(40, rng=np.random.default_rng(0)))
        study.add(points, [point["x0"] for point in points])
    said = CliRunner().invoke(app, ["importance", str(path), "--most", "3"]).output
    assert "... and 5 more, each below 0.1 %: --most shows them" in said


def test_values_near_the_largest_number_have_importances_without_a_warning() -> None:
    study = Study.open(space=Space([Real("x", 0, 1), Real("y", 0, 1)]), budget=14, seed=0)
    study.run(lambda point: 1.79e308 if point["x"] > 0.5 else -1.79e308)
    found = study.importance()  # warnings are errors in these tests
    assert found is not None
    assert all(math.isfinite(value) for effect in found.effects.values() for value in effect.mean)
