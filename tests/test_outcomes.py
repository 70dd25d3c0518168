"""Limits on outcomes: what is measured beside the value, and which trials keep the limits."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import (
    Bounce,
    Categorical,
    EvaluationFailed,
    Integer,
    InvalidSpace,
    InvalidTell,
    Real,
    Space,
    Study,
    minimize,
)
from bounce.spaces.outcomes import Limit, feasible, limits_of
from terminal import Terminal

NUMBERS = st.floats(-1e9, 1e9).map(lambda x: x + 0.0)


def space(*outcomes: str) -> Space:
    kinds: list[Any] = [Real("x", 0.0, 1.0), Integer("n", 1, 9), Categorical("c", ["a", "b", "d"])]
    return Space(kinds, outcomes=outcomes or ("strength >= 0.5", "1 <= ph < 3"))


def measured(point: dict[str, Any]) -> tuple[float, dict[str, float]]:
    return point["x"] + point["n"], {"strength": point["x"], "ph": point["n"] / 2}


def driven(opt: Bounce, n: int) -> list[dict[str, Any]]:
    points = []
    for _ in range(n):
        for trial in opt.ask():
            value, beside = measured(trial.point)
            opt.tell(trial, value, constraints=beside)
            points.append(trial.point)
    return points


# limits


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("strength >= 30", Limit("strength", low=30)),
        ("  cost<=5.5 ", Limit("cost", high=5.5)),
        ("cost < 5", Limit("cost", high=5, open_high=True)),
        ("30 < tensile strength", Limit("tensile strength", low=30, open_low=True)),
        ("1 <= ph <= 3", Limit("ph", 1, 3)),
        ("3 > ph >= -1e-2", Limit("ph", -0.01, 3, open_high=True)),
    ],
)
def test_a_limit_is_read_from_text(text: str, limit: Limit) -> None:
    assert Limit.of(text) == limit
    assert Limit.of(limit.text) == limit


@pytest.mark.parametrize(
    "text",
    [
        "strength",
        "strength == 3",
        "strength = 3",
        "a >= b",
        "3 >= 2",
        "1 <= a >= 3",
        "a >= 1 >= b",
        "a <= 1 <= 2",
        ">= 3",
    ],
)
def test_a_text_that_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidSpace, match=r"strength >= 30|1 <= ph <= 3"):
        Limit.of(text)


@pytest.mark.parametrize("text", ["value >= 3", "ID < 4", "feasible > 0", "point.x > 1", "3 <= ph <= 1", "a >= inf"])
def test_a_name_or_a_bound_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InvalidSpace):
        Limit.of(text)


def test_a_space_refuses_two_limits_of_one_outcome_and_the_name_of_a_parameter() -> None:
    with pytest.raises(InvalidSpace, match="write them together"):
        space("ph > 1", "ph < 3")
    with pytest.raises(InvalidSpace, match="is a parameter"):
        space("x > 1")
    with pytest.raises(InvalidSpace, match="must be a list"):
        Space([Real("x", 0, 1)], outcomes="ph > 1")
    with pytest.raises(InvalidSpace, match="rename the parameter"):
        Space([Real("feasible", 0, 1)], outcomes=["ph > 1"])


@given(low=NUMBERS, high=NUMBERS, value=NUMBERS, ends=st.tuples(st.booleans(), st.booleans()))
def test_a_violation_is_zero_exactly_where_the_limit_holds(
    low: float, high: float, value: float, ends: tuple[bool, bool]
) -> None:
    low, high = sorted((low, high))
    if low == high:
        ends = (False, False)
    limit = Limit("a", low, high, *ends)
    holds = (low < value if ends[0] else low <= value) and (value < high if ends[1] else value <= high)
    assert (limit.violation(value) == 0) == holds
    assert 0 <= limit.violation(value) < math.inf
    assert Limit.of(limit.text) == limit
    assert feasible([limit], {"a": value}) is holds
    assert feasible([limit], {}) is None


def test_limits_are_part_of_a_space() -> None:
    own = space()
    assert Space.from_dict(json.loads(json.dumps(own.to_dict()))) == own
    assert own != Space(own.parameters)
    assert "strength >= 0.5" in own.difference(Space(own.parameters))
    assert "outcomes" not in Space(own.parameters).to_dict()
    assert limits_of(own.outcomes) == own.limits


# tell


def test_a_value_needs_all_outcomes_and_no_others() -> None:
    opt = Bounce(space(), budget=9, seed=0)
    (trial,) = opt.ask()
    for wrong, said in (
        (None, "missing 'strength', 'ph'"),
        ({"strength": 1.0}, "missing 'ph'"),
        ({"strength": 1.0, "ph": 2, "cost": 3}, "no outcome 'cost'; its outcomes are strength, ph"),
        ({"strength": 1.0, "ph": math.nan}, "'ph' must be a finite number"),
        ([1.0, 2.0], "must be a dict"),
    ):
        with pytest.raises(InvalidTell, match=said):
            opt.tell(trial, 1.0, constraints=wrong)  # type: ignore[arg-type]
    assert opt.pending == [trial]
    opt.tell(trial, 1.0, constraints={"strength": np.float64(1.0), "ph": 2})
    assert opt.trials[0].outcomes == {"strength": 1.0, "ph": 2.0}
    assert opt.trials[0].feasible is True


def test_outcomes_that_were_not_declared_are_refused() -> None:
    opt = Bounce(Space([Real("x", 0, 1)]), budget=3, seed=0)
    with pytest.raises(InvalidTell, match="no outcome 'cost'; it has none"):
        opt.tell(opt.ask(), [1.0], constraints=[{"cost": 1.0}])
    opt.tell(opt.pending, [1.0])
    assert opt.trials[0].feasible is None


def test_several_trials_need_a_dict_each() -> None:
    opt = Bounce(space(), budget=9, batch_size=2, seed=0)
    trials = opt.ask()
    with pytest.raises(InvalidTell, match="a list of 2 dicts"):
        opt.tell(trials, [1.0, 2.0], constraints={"strength": 1.0, "ph": 2.0})
    opt.tell(trials, [1.0, 2.0], constraints=[{"strength": 1.0, "ph": 2.0}, {"strength": 0.0, "ph": 2.0}])
    assert [trial.feasible for trial in opt.trials] == [True, False]


def test_a_failed_trial_has_no_outcomes() -> None:
    opt = Bounce(space(), budget=9, seed=0)
    opt.fail(opt.ask(), "it broke")
    assert opt.trials[0].feasible is None
    assert opt.trials[0].outcomes == {}


# best


def test_the_best_trial_keeps_the_limits() -> None:
    opt = Bounce(space("strength >= 30"), budget=9, seed=0, initial_points=5)
    told = [(1.0, 20.0), (2.0, 29.0), (0.0, 10.0), (3.0, 31.0), (2.5, 30.0)]
    best = []
    for value, strength in told:
        opt.tell(opt.ask(), [value], constraints=[{"strength": strength}])
        assert opt.best is not None
        best.append((opt.best.id, opt.best.feasible))
    assert best == [(0, False), (1, False), (1, False), (3, True), (4, True)]


def test_of_equal_violations_the_best_value_counts_whatever_the_direction() -> None:
    for direction, expected in (("minimize", 0), ("maximize", 1)):
        opt = Bounce(space("a >= 1", "b <= 0"), budget=9, seed=0, direction=direction)
        opt.tell(opt.ask(), [1.0], constraints=[{"a": 0.5, "b": 0.0}])
        opt.tell(opt.ask(), [2.0], constraints=[{"a": 0.5, "b": -1.0}])
        assert opt.best is not None
        assert opt.best.id == expected


def test_violations_of_outcomes_in_different_units_count_alike() -> None:
    opt = Bounce(space("pressure <= 0", "ratio <= 0"), budget=9, seed=0)
    for pressure, ratio in ((1e5, 1e-3), (2e5, 2e-3), (1.9e5, 0.0), (0.0, 9e-3)):
        opt.tell(opt.ask(), [1.0], constraints=[{"pressure": pressure, "ratio": ratio}])
    assert opt.best is not None
    assert opt.best.id == 2


# corrections, past data, other limits


def test_a_correction_can_make_a_trial_feasible() -> None:
    opt = Bounce(space(), budget=9, seed=0)
    opt.tell(opt.ask(), [1.0], constraints=[{"strength": 0.1, "ph": 2.0}])
    opt.correct(0, constraints={"strength": 0.9})
    assert opt.trials[0].outcomes == {"strength": 0.9, "ph": 2.0}
    assert opt.trials[0].feasible is True
    with pytest.raises(InvalidTell, match="no outcome 'cost'"):
        opt.correct(0, constraints={"cost": 0.9})


def test_past_data_have_outcomes_too() -> None:
    opt = Bounce(space(), budget=9, seed=0)
    points = [{"x": 0.7, "n": 4, "c": "a"}, {"x": 0.2, "n": 4, "c": "b"}]
    with pytest.raises(InvalidTell, match="missing 'strength'"):
        opt.add(points, [1.0, 0.0])
    assert not opt.trials
    opt.add(points, [1.0, 0.0], constraints=[measured(point)[1] for point in points])
    assert opt.best is not None
    assert (opt.best.id, opt.best.feasible) == (0, True)


def test_other_limits_change_which_trials_keep_them(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=space("strength >= 0.5"), budget=9, seed=0) as study:
        for strength in (0.6, 0.8):
            study.tell(study.ask(), [strength], constraints=[{"strength": strength}])
        study.change(space("strength >= 0.7"))
        assert [trial.feasible for trial in study.trials] == [False, True]
        study.change(space("strength >= 0.7", "cost <= 1"))
        assert [trial.feasible for trial in study.trials] == [False, None]  # the first is known to break one
        assert study.best is not None
        assert study.best.id == 1
        study.correct(1, constraints={"cost": 0.5})
        study.tell(study.ask(), [0.1], constraints=[{"strength": 0.1, "cost": 0.0}])
    with Study.open(tmp_path / "a.db") as study:
        assert [trial.feasible for trial in study.trials] == [False, True, False]
        assert study.best == study.trials[1]


# state


def test_a_run_with_outcomes_resumes_bit_for_bit() -> None:
    whole = Bounce(space(), budget=30, seed=1)
    expected = driven(whole, 24)
    opt, points = Bounce(space(), budget=30, seed=1), list[dict[str, Any]]()
    for _ in range(24):
        points += driven(opt, 1)
        opt = Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict())))
    assert points == expected
    assert opt.trials == [*map(_timeless(opt), whole.trials)]


def _timeless(opt: Bounce) -> Any:
    from dataclasses import replace

    return lambda trial: replace(trial, seconds_ask=opt.trials[trial.id].seconds_ask)


def test_a_study_keeps_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=space(), budget=12, seed=0) as study:
        study.run(measured)
        trials = study.trials
    with Study.open(path) as study:
        assert study.trials == trials
        assert {trial.feasible for trial in trials} == {True, False}
        assert study.best is not None
        assert study.best.value == min(t.value for t in trials if t.feasible)  # type: ignore[type-var]


# runs


def test_an_objective_returns_outcomes_with_the_value() -> None:
    result = minimize(measured, space(), budget=8, seed=0)
    assert all(trial.outcomes == measured(trial.point)[1] for trial in result.trials)


def test_an_objective_without_the_outcomes_is_broken() -> None:
    for beside, said in (
        ({}, r"\(the outcomes 'strength', 'ph' are missing beside the value; there was nothing\)"),
        ({"strength": 1.0}, r"\(the outcome 'ph' is missing beside the value; there was 'strength'\)"),
        ({"strength": 1.0, "hp": 2.0}, "'ph' is missing beside the value; there was 'strength', 'hp'"),
        (
            {"strength": 1.0, "ph": 2.0, "cost": 3.0},
            "the space has no outcome 'cost'; its outcomes are 'strength', 'ph'",
        ),
        ({"ph": "x"}, "'ph' must be a finite number"),
    ):
        with pytest.raises(EvaluationFailed, match=said):
            minimize(lambda point, beside=beside: (1.0, beside) if beside else 1.0, space(), budget=8, seed=0)  # type: ignore[misc]


def test_an_objective_with_outcomes_in_a_space_without_any_is_told_to_declare_them() -> None:
    said = (
        "the space has no outcomes, but there was 'cost' beside the value: declare it with its limits in the space or "
        'the spec, such as outcomes = ["cost <= 10"], or return the value alone'
    )
    with pytest.raises(EvaluationFailed, match=re.escape(f"({said})")):
        minimize(lambda point: (1.0, {"cost": 1.0}), Space([Real("x", 0, 1)]), budget=8, seed=0)


def test_a_program_that_leaves_an_outcome_out_is_told_which(bounce: Terminal) -> None:
    (bounce.folder / "a.toml").write_text(SPEC.replace("echo strength = $0;", "").replace("'strength = 1e-3'", "s=1"))
    said = bounce("run", "a.toml")
    assert "failed: the outcome 'strength' is missing beside the value; there was 's', 'steps', 'cost'\n" in said.err
    assert "EvaluationFailed" not in said.err


def test_known_results_have_outcomes() -> None:
    known = [({"x": 0.7, "n": 4, "c": "a"}, 1.0, {"strength": 0.7, "ph": 2.0})]
    result = minimize(measured, space(), budget=6, seed=0, known=known)
    assert result.trials[0].outcomes == {"strength": 0.7, "ph": 2.0}


# programs, tables, the command line

SPEC = """
budget = 6
seed = 1
outcomes = ["strength >= 0.5", "cost <= 1.2"]
command = [
    "sh", "-c",
    "echo 'strength = 1e-3'; echo strength = $0; echo steps=3; echo '{{\\"value\\": 1, \\"cost\\": '$1'}}'",
    "{x}", "{n}",
]

[[parameters]]
name = "x"
type = "real"
low = 0.0
high = 1.0

[[parameters]]
name = "n"
type = "integer"
low = 0
high = 9
"""


def test_a_program_prints_outcomes_and_a_sheet_has_columns(bounce: Terminal) -> None:
    (bounce.folder / "a.toml").write_text(SPEC)
    assert bounce("run", "a.toml", "--quiet").code == 0
    with Study.open(bounce.folder / "a.db") as study:
        for trial in study.trials:
            assert trial.outcomes == {"strength": trial.point["x"], "cost": float(trial.point["n"])}
    assert "keep the limits: strength >= 0.5, cost <= 1.2" in bounce("status", "a.toml").out
    assert "┃ feasible ┃" in bounce("trials", "a.toml").out
    (bounce.folder / "a.toml").write_text(SPEC.replace("budget = 6", "budget = 8"))
    header, *rows = bounce("ask", "a.toml", "-n", "2", "--format", "csv").out.splitlines()
    assert header == "id,x,n,value,strength,cost"
    filled = [row.removesuffix(",,,") + ending for row, ending in zip(rows, (",1.5,0.7,1", ",1.5,0.7,"), strict=True)]
    sheet = bounce.folder / "b.csv"
    sheet.write_text("\n".join([header, *filled]) + "\n")
    assert "row 3: the outcome 'cost' must be a finite number, not ''" in bounce("tell", "a.toml", "b.csv").err
    sheet.write_text("\n".join([header, filled[0], filled[1] + "9"]) + "\n")
    assert bounce("tell", "a.toml", "b.csv").out.startswith("2 stored")
    assert bounce("tell", "a.toml", "b.csv").out.startswith("0 stored, 2 unchanged")
    sheet.write_text("\n".join([header, filled[0] + "0", filled[1] + "9"]) + "\n")
    assert "already done with cost = 1.0. To correct it: bounce correct" in bounce("tell", "a.toml", "b.csv").err
    bounce("correct", "a.toml", "7", "--outcome", "cost=1")
    with Study.open(bounce.folder / "a.db") as study:
        assert [trial.feasible for trial in study.trials[6:]] == [True, True]
        trials = study.trials
    assert "cost 9.0 -> 1.0, feasible false -> true" in bounce("history", "a.toml").out
    bounce("export", "a.toml", "out.csv")
    assert bounce("add", "a.toml", "out.csv", "--study", "b.db").out.startswith("8 added")
    assert bounce("add", "a.toml", "a.db", "--study", "c.db").out.startswith("8 added")
    for name in ("b.db", "c.db"):
        with Study.open(bounce.folder / name) as study:
            assert [trial.outcomes for trial in study.trials] == [trial.outcomes for trial in trials]


def test_best_says_if_no_trial_keeps_the_limits(bounce: Terminal) -> None:
    (bounce.folder / "a.toml").write_text(
        SPEC.replace("strength >= 0.5", "strength >= 2").replace("budget = 6", "budget = 2")
    )
    said = bounce("run", "a.toml", "--quiet").out
    assert said.startswith("no trial keeps the limits yet; this one breaks them least\nbest value 1.0")
    believed = bounce("best", "a.toml", "--by-model").out
    assert believed.startswith("no trial keeps the limits yet; this one breaks them least\nbest mean ")
    assert "strength >= 2.0: 0." in said
    assert "(broken)" in said
    assert "breaks limits least)" in bounce("status", "a.toml").out


def test_a_table_without_the_column_of_an_outcome_is_refused(bounce: Terminal) -> None:
    (bounce.folder / "a.toml").write_text(SPEC)
    bounce("ask", "a.toml")
    (bounce.folder / "b.csv").write_text("id,value,strength\n0,1,0.5\n")
    assert "the column 'cost' of an outcome is missing" in bounce("tell", "a.toml", "b.csv").err


def test_a_spec_with_a_wrong_limit_is_refused_with_its_line(bounce: Terminal) -> None:
    (bounce.folder / "a.toml").write_text(SPEC.replace("cost <= 1.2", "cost = 3"))
    said = bounce("run", "a.toml")
    assert said.code == 2
    assert "line 4: an outcome must be compared with numbers" in said.err


def test_a_plot_of_a_study_with_limits_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from bounce.report.plots import convergence

    result = minimize(measured, space(), budget=8, seed=0)
    convergence(result.trials, tmp_path / "a.png", title="limits")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_an_outcome_may_be_written_in_backquotes_as_names_in_constraints_are() -> None:
    space = Space([Real("x", 0, 1)], outcomes=["`a b` >= 3", "1 <= `c d` <= 2"])
    assert space.limits == limits_of(["a b >= 3", "1 <= c d <= 2"])


def frame(point: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Return a cost that grows with the sizes, and a strength that is nearly their product: no size alone may fall."""
    a, b, x = point["a"], point["b"], point["x"]
    return a + 1.3 * b + (x - 0.4) ** 2, {"strength": a * b * (1.0 - 0.2 * x)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_sizes_change_together_where_one_alone_breaks_a_limit(seed: int) -> None:
    space = Space([Integer("a", 1, 20), Integer("b", 1, 20), Real("x", 0, 1)], outcomes=["strength >= 62"])
    best = minimize(frame, space, budget=26, seed=seed).best
    assert best is not None
    assert (best.point["a"], best.point["b"]) == (9, 7)


def test_a_run_with_limits_of_version_7_continues_with_the_changes_of_its_radius() -> None:
    document = json.loads((Path(__file__).parent / "fixtures" / "state_v7.json").read_text())
    former = Bounce.from_state_dict(document["state"])
    assert former.options["method"] == {"limit_changes": "radius"}
    for expected in document["next"]:
        (trial,) = former.ask()
        assert {name: trial.point[name] for name in ("a", "b")} == expected
        value, outcomes = frame(trial.point)
        former.tell(trial, value, constraints=outcomes)
    state = Bounce.from_state_dict(document["state"]).state_dict()
    today = Bounce.from_state_dict(state | {"options": state["options"] | {"method": "default"}})
    (trial,) = today.ask()
    centre = today.best
    assert centre is not None
    assert trial.point["a"] != centre.point["a"]
    assert trial.point["b"] != centre.point["b"]


def test_outcomes_of_any_size_are_searched_without_a_warning() -> None:
    space = Space([Real("w", 1, 4), Integer("l", 1, 20)], outcomes=["strength >= 30", "1 <= ph <= 3"])
    huge = minimize(lambda p: (p["w"], {"strength": 1e300 * p["l"], "ph": -1e300 * p["w"]}), space, budget=12, seed=0)
    assert len(huge.trials) == 12
