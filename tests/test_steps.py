"""Steps: what is proposed, shown and stored is exactly on the grid."""

from __future__ import annotations

import json
import math
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
from bounce import Bounce, Integer, InvalidPoint, InvalidSpace, Real, Space, Study
from bounce.spaces.change import Change
from bounce.spaces.kinds import Kind
from bounce.spec.cells import parsed
from bounce.spec.reading import Table
from bounce.spec.tables import form
from spaces import generators, spaces, stepped
from terminal import Terminal


def wrong(value: Any) -> Any:
    """Return a value of another type than declared."""
    return value


def is_on_grid(parameter: Any, value: Any) -> bool:
    """Return whether a value is the decimal that a person would write for one of the steps."""
    if (
        type(value) is not (int if parameter.type == "integer" else float)
        or not parameter.low <= value <= parameter.high
    ):
        return False
    if parameter.step is None:
        return value == round(value, parameter.digits)
    rungs = (Decimal(repr(value)) - Decimal(repr(parameter.low))) / Decimal(repr(parameter.step))
    return rungs == int(rungs)


@st.composite
def ladders(draw: st.DrawFn) -> Integer | Real:
    return draw(stepped("x", few=draw(st.booleans())))


@given(ladders(), st.floats(0, 1))
def test_every_code_is_a_value_on_the_grid(parameter: Integer | Real, u: float) -> None:
    code = math.floor(u * (parameter.cardinality - 1)) if parameter.cardinality else u
    value = parameter.decode(code)
    assert is_on_grid(parameter, value)
    assert parameter.decode(parameter.encode(value)) == value
    assert parameter.decode(parameter.encode(json.loads(json.dumps(value)))) == value
    assert parsed(parameter, json.dumps(value)) == value


@given(ladders())
def test_both_ends_and_all_values_between_have_codes_of_their_own(parameter: Integer | Real) -> None:
    assert parameter.decode(parameter.encode(parameter.low)) == parameter.low
    assert parameter.decode(parameter.encode(parameter.high)) == parameter.high
    if parameter.size <= 2000:
        codes = parameter.all_codes()
        values = [parameter.decode(code) for code in codes]
        assert values == sorted(set(values))
        assert len(values) == parameter.size
        assert [parameter.encode(value) for value in values] == codes.tolist()


@given(ladders(), st.floats(0, 1), st.floats(0.01, 0.99))
def test_a_value_between_two_steps_is_refused_with_both(parameter: Integer | Real, u: float, share: float) -> None:
    assert parameter.steps is not None
    rung = min(parameter.rungs[0] + int(u * parameter.size), parameter.rungs[1] - 1)
    below, above = parameter.steps.number(rung), parameter.steps.number(rung + 1)
    between = below + share * (above - below)
    if parameter.type == "integer":
        between = min(max(math.floor(between), below + 1), above - 1)
    with pytest.raises(InvalidPoint) as caught:
        parameter.encode(between)
    kind = int if parameter.type == "integer" else float
    assert str(caught.value).endswith(f"the nearest values are {kind(below)!r} and {kind(above)!r}")


@given(spaces(most=6), generators())
def test_points_are_equal_exactly_where_their_keys_are(space: Space, rng: np.random.Generator) -> None:
    codes = space.sample(40, rng=rng)
    points = [json.dumps(point) for point in space.decode(codes)]
    if all(parameter.size < math.inf for parameter in space.parameters):
        assert len(set(points)) == len(set(space.keys(codes)))


def test_a_value_within_rounding_of_a_step_is_that_step() -> None:
    dose = Real("dose", 0, 1, step=0.05)
    assert dose.decode(dose.encode(0.1 + 0.05)) == 0.15
    assert dose.decode(dose.encode(3 * 0.1)) == 0.3
    assert [dose.decode(code) for code in dose.all_codes()][:4] == [0.0, 0.05, 0.1, 0.15]
    third = Real("x", 0, 1, step=1 / 3)
    assert [third.decode(code) for code in third.all_codes()] == [0.0, 1 / 3, 2 / 3, 1.0]
    assert Real("x", 0, 0.3, step=0.1).decode(3) == 0.3
    edge = Real("x", 0, 0.3, step=0.1)
    assert edge.decode(edge.encode(0.1 * 3)) == 0.3


def test_kinds_follow_the_number_of_steps() -> None:
    assert Real("x", 0, 1, step=0.05).kind is Kind.ORDINAL
    assert Real("x", 0, 1, step=0.05).cardinality == 21
    assert Real("x", 0, 1, step=0.01).kind is Kind.REAL
    assert Real("x", 0, 1, step=0.01).size == 101
    assert Real("x", 0, 1, digits=1).kind is Kind.ORDINAL
    assert Real("x", 0.1, 1, log=True, digits=1).kind is Kind.REAL
    assert Integer("n", 0, 64, step=8).cardinality == 9
    assert Integer("n", 0, 800, step=8).kind is Kind.REAL
    assert Integer("n", 0, 9, step=1) == Integer("n", 0, 9)


def test_digits_count_from_zero_and_leave_ends_that_have_more() -> None:
    parameter = Real("x", 0.0005, math.pi, digits=2)
    assert parameter.decode(parameter.encode(0.01)) == 0.01
    assert parameter.decode(1.0) == 3.14
    assert parameter.decode(0.0) == 0.01
    log = Real("rate", 1e-3, 1.0, log=True, digits=3)
    values = [log.decode(u) for u in np.linspace(0, 1, 1001)]
    assert values[0] == 0.001
    assert values[-1] == 1.0
    assert all(value == round(value, 3) for value in values)
    assert sum(value <= 0.03 for value in values) > 400  # half of the decades


@pytest.mark.parametrize(
    ("make", "said", "key"),
    [
        (lambda: Real("x", 0, 1, step=0.3), "such as 0.9 or 1.2, not 1.0", "high"),
        (lambda: Integer("n", 0, 10, step=4), "such as 8 or 12, not 10", "high"),
        (lambda: Real("x", 0, 1, step=0), "step must be a positive number, not 0.0", "step"),
        (lambda: Real("x", 0, 1, step=wrong("a")), "step must be a positive number, not 'a'", "step"),
        (lambda: Real("x", 0, 1, step=True), "step must be a positive number, not true", "step"),
        (lambda: Real("x", 0, 1, step=3), "step must be at most 1", "step"),
        (lambda: Integer("n", 0, 10, step=wrong(2.5)), "step must be a positive integer, not 2.5", "step"),
        (lambda: Integer("n", 0, 10, step=0), "step must be a positive integer, not 0", "step"),
        (lambda: Integer("n", 1, 9, log=True, step=2), "a log scale has no equal steps", "step"),
        (lambda: Real("x", 1, 9, log=True, step=2), "a log scale has no equal steps: use digits", "step"),
        (lambda: Real("x", 0, 1, step=0.5, digits=1), "a step or digits, not both", "digits"),
        (lambda: Real("x", 0, 1, digits=-1), "digits must be a whole number from 0 to 12, not -1", "digits"),
        (lambda: Real("x", 0, 1, digits=wrong(1.5)), "digits must be a whole number", "digits"),
        (lambda: Real("x", 0.11, 0.19, digits=1), "at least two numbers with 1 digits", "digits"),
        (lambda: Real("x", 0, 1e6, digits=12), "use fewer digits", "digits"),
        (lambda: Real("x", 0, 1, step=1e-13), "use a longer step", "step"),
        (lambda: Real("x", 1e9, 1e9 + 1, step=1e-4), "use a longer step", "step"),
    ],
)
def test_steps_that_cannot_be_are_refused(make: Any, said: str, key: str) -> None:
    with pytest.raises(InvalidSpace) as caught:
        make()
    assert said in str(caught.value)
    assert caught.value.key == key


def test_documents_without_steps_are_as_before_and_old_ones_open() -> None:
    plain = Space([Real("x", 0, 1), Integer("n", 0, 9)])
    assert plain.to_dict()["parameters"][0] == {"name": "x", "type": "real", "low": 0.0, "high": 1.0, "log": False}
    assert Space.from_dict(plain.to_dict()) == plain
    with_steps = Space([Real("x", 0, 1, step=0.1), Integer("n", 0, 8, step=4), Real("y", 0, 1, digits=2)])
    assert Space.from_dict(json.loads(json.dumps(with_steps.to_dict()))) == with_steps
    assert repr(plain.parameters[0]) == "Real(name='x', low=0.0, high=1.0, log=False)"
    assert repr(with_steps.parameters[1]) == "Integer(name='n', low=0, high=8, log=False, step=4)"


def test_numpy_numbers_are_steps_and_digits_too() -> None:
    assert Real("x", 0, 1, step=np.float64(0.1)) == Real("x", 0, 1, step=0.1)
    assert Real("x", 0, 1, digits=wrong(np.int64(2))) == Real("x", 0, 1, digits=2)
    assert Integer("n", 0, 8, step=wrong(np.int64(4))) == Integer("n", 0, 8, step=4)
    json.dumps(Space([Real("x", 0, 1, digits=wrong(np.int64(2)), step=None)]).to_dict())


SPACE = Space(
    [
        Real("dose", 0, 1, step=0.05),
        Real("rate", 0.001, 1, log=True, digits=3),
        Real("fine", -1, 1, step=0.001),
        Integer("width", 8, 64, step=8),
        Integer("wide", 0, 5000, step=25),
    ]
)


def loss(point: dict[str, Any]) -> float:
    return float((point["dose"] - 0.35) ** 2 + abs(point["rate"] - 0.02) + point["fine"] ** 2 + point["width"] / 64)


def assert_on_grid(points: list[dict[str, Any]]) -> None:
    for point in points:
        assert all(is_on_grid(parameter, point[parameter.name]) for parameter in SPACE.parameters), point


def test_a_run_proposes_the_grid_and_nothing_twice() -> None:
    result = bounce.minimize(loss, SPACE, budget=30, seed=3)
    points = [trial.point for trial in result.trials]
    assert_on_grid(points)
    assert len({json.dumps(point) for point in points}) == 30


@settings(max_examples=5, deadline=None)
@given(spaces(most=4), st.integers(0, 99))
def test_nothing_off_the_grid_is_proposed_in_any_space(space: Space, seed: int) -> None:
    optimizer = Bounce(space, budget=12, seed=seed)
    while not optimizer.done and optimizer.remaining:
        for trial in optimizer.ask():
            for parameter in space.parameters:
                if getattr(parameter, "steps", None) is not None:
                    assert is_on_grid(parameter, trial.point[parameter.name])
            optimizer.tell(trial, float(len(json.dumps(trial.point))))


def test_a_small_grid_is_exhausted_point_by_point() -> None:
    space = Space([Real("x", 0, 1, step=0.25), Real("y", 0.1, 0.3, log=True, digits=1)])
    result = bounce.minimize(lambda point: point["x"] * point["y"], space, budget=40, seed=0)
    assert len({json.dumps(trial.point) for trial in result.trials}) == 15 == space.size


def test_a_resumed_study_proposes_the_same_grid_points_bit_for_bit(tmp_path: Path) -> None:
    def points(path: Path, *, reopened: bool) -> list[dict[str, Any]]:
        study = Study.open(path, space=SPACE, budget=16, seed=1)
        for _ in range(16):
            if reopened:
                study.close()
                study = Study.open(path)
            (trial,) = study.ask()
            study.tell(trial, loss(trial.point))
        found = [trial.point for trial in study.trials]
        study.close()
        return found

    whole = points(tmp_path / "whole.db", reopened=False)
    assert_on_grid(whole)
    assert points(tmp_path / "parts.db", reopened=True) == whole


def test_sheets_carry_the_grid_there_and_back() -> None:
    optimizer = Bounce(SPACE, budget=12, batch_size=4, seed=2)
    trials = optimizer.ask()
    sheet = form(trials)
    assert "0000000" not in sheet
    lines = sheet.splitlines()
    filled = "\n".join([lines[0], *(f"{line}{i}" for i, line in enumerate(lines[1:]))])
    told = Table(filled, SPACE).results(trials)
    assert [outcome.value for outcome in told.outcomes] == [0, 1, 2, 3]
    assert all(outcome.point is None for outcome in told.outcomes)


def test_past_results_are_stored_on_the_grid_or_refused() -> None:
    header = "dose,rate,fine,width,wide,value\n"
    past = Table(header + "0.15000000000000002,0.02,-.5,16.0,25,1.5\n", SPACE).past()
    assert past.points == [{"dose": 0.15, "rate": 0.02, "fine": -0.5, "width": 16, "wide": 25}]
    with pytest.raises(
        bounce.InvalidTell, match=r"row 2: 'dose' must be .* not 0.17; the nearest values are 0.15 and 0.2"
    ):
        Table(header + "0.17,0.02,-.5,16,25,1.5\n", SPACE).past()
    optimizer = Bounce(SPACE, budget=5, seed=0)
    optimizer.add([{"dose": 0.1 + 0.05, "rate": 0.02, "fine": -0.5, "width": 16, "wide": 25}], [1.0])
    assert optimizer.trials[0].point["dose"] == 0.15


def test_a_change_of_steps_keeps_what_still_fits() -> None:
    fine = Space([Real("x", 0, 1, step=0.05), Integer("n", 0, 64)])
    coarse = Space([Real("x", 0, 1, step=0.1), Integer("n", 0, 64, step=8)])
    assert Change(fine, coarse, {}).sentences == [
        "x ranges from 0.0 to 1.0 in steps of 0.1 instead of 0.0 to 1.0 in steps of 0.05",
        "n ranges from 0 to 64 in steps of 8 instead of 0 to 64",
    ]
    optimizer = Bounce(fine, budget=20, seed=0)
    optimizer.add([{"x": 0.3, "n": 8}, {"x": 0.35, "n": 8}, {"x": 0.3, "n": 9}], [1.0, 2.0, 3.0])
    outside = optimizer.change(coarse)
    assert len(outside) == 2
    assert [trial.state for trial in optimizer.trials] == ["added", "outside", "outside"]
    (trial,) = optimizer.ask()
    assert is_on_grid(coarse.parameters[0], trial.point["x"])
    digits = Space([Real("x", 0, 1, digits=2), Integer("n", 0, 64)])
    assert "with 2 digits after the point" in Change(fine, digits, {}).sentences[0]


def test_a_change_of_the_scale_alone_says_nothing_of_the_range() -> None:
    log, plain, wide = (Space([r]) for r in (Real("x", 0.1, 5, log=True), Real("x", 0.1, 5), Real("x", 0.1, 9)))
    assert Change(log, plain, {}).sentences == ["x loses its log scale"]
    assert Change(plain, log, {}).sentences == ["x gains its log scale"]
    assert Change(log, wide, {}).sentences == ["x ranges from 0.1 to 9.0 instead of 0.1 to 5.0 and loses its log scale"]


# Specs and sheets, from the command line

PARAMETERS = """
[[parameters]]
name = "dose"
type = "real"
low = 0
high = 1
step = 0.05

[[parameters]]
name = "rate"
type = "real"
low = 0.001
high = 1
log = true
digits = 3

[[parameters]]
name = "fine"
type = "real"
low = -1
high = 1
step = 0.001

[[parameters]]
name = "width"
type = "integer"
low = 8
high = 64
step = 8

[[parameters]]
name = "wide"
type = "integer"
low = 0
high = 5000
step = 25
"""
PROGRAM = """
import os, pathlib, signal, sys
dose, rate, width, trial = map(float, sys.argv[1:4] + [os.environ["BOUNCE_TRIAL"]])
killed = pathlib.Path("killed")
if trial == 9 and pathlib.Path("to-kill").exists() and not killed.exists():
    killed.touch()
    os.kill(os.getppid(), signal.SIGKILL)
print((dose - 0.35) ** 2 + abs(rate - 0.02) + width / 64)
"""
COMMAND = [sys.executable, "program.py", "{dose}", "{rate}", "{width}"]


def test_a_spec_runs_on_the_grid_and_a_killed_run_continues_there(bounce: Terminal) -> None:
    (bounce.folder / "program.py").write_text(PROGRAM)
    for name in ("whole", "killed"):
        bounce.spec(name, command=COMMAND, parameters=PARAMETERS, budget=16)
    assert bounce("run", "whole.toml", "--quiet").code == 0
    (bounce.folder / "to-kill").touch()
    with bounce.start("run", "killed.toml", "--quiet") as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert bounce("run", "killed.toml", "--quiet").code == 0
    whole, killed = ([trial["point"] for trial in bounce.trials(f"{name}.toml")] for name in ("whole", "killed"))
    assert_on_grid(whole)
    assert len(whole) == 16
    assert killed == whole


def test_a_study_by_hand_goes_through_sheets_and_processes(bounce: Terminal) -> None:
    bounce.spec("hand", command=None, parameters=PARAMETERS, budget=12, batch_size=3)
    for _ in range(4):
        sheet = bounce("ask", "hand.toml", "--format", "csv").out
        lines = sheet.splitlines()
        values = [f"{line}{len(line)}.5" for line in lines[1:]]
        (bounce.folder / "results.csv").write_text("\n".join([lines[0], *values]))
        said = bounce("tell", "hand.toml", "results.csv")
        assert said.out.startswith("3 stored"), said.err
    points = [trial["point"] for trial in bounce.trials("hand.db")]
    assert len({json.dumps(point) for point in points}) == 12
    assert_on_grid(points)
    (bounce.folder / "past.csv").write_text("dose,rate,fine,width,wide,value\n0.30000000000000004,0.02,0.5,16,25,2\n")
    assert bounce("add", "hand.toml", "past.csv").code == 0
    assert bounce.trials("hand.db")[-1]["point"]["dose"] == 0.3
    (bounce.folder / "past.csv").write_text("dose,rate,fine,width,wide,value\n0.3,0.02,0.5,12,25,2\n")
    refusal = bounce("add", "hand.toml", "past.csv")
    assert refusal.code == 2
    assert "not 12; the nearest values are 8 and 16" in refusal.err


def test_a_spec_with_another_step_asks_for_a_change(bounce: Terminal) -> None:
    (bounce.folder / "program.py").write_text(PROGRAM)
    bounce.spec(command=COMMAND, parameters=PARAMETERS, budget=6)
    assert bounce("run", "a.toml", "--quiet").code == 0
    bounce.spec(command=COMMAND, parameters=PARAMETERS.replace("step = 0.05", "step = 0.1"), budget=8)
    refusal = bounce("run", "a.toml", "--quiet")
    assert refusal.code == 2
    assert "in steps of 0.1 instead of 0.0 to 1.0 in steps of 0.05" in refusal.err
    assert bounce("run", "a.toml", "--quiet", "--change").code == 0
    for trial in bounce.trials("a.db"):
        tenths = trial["point"]["dose"] * 10
        assert (trial["state"] == "outside") == (abs(tenths - round(tenths)) > 1e-9)


def test_a_spec_with_a_wrong_step_is_refused_with_its_line(bounce: Terminal) -> None:
    bounce.spec(command=COMMAND, parameters=PARAMETERS.replace("step = 0.05", "step = 0.3"))
    said = bounce("run", "a.toml").err
    assert (
        "a.toml, line 9: 'dose': high must be low plus a multiple of the step 0.3, such as 0.9 or 1.2, not 1.0" in said
    )


@pytest.mark.parametrize("form", [{"step": 0.1}, {"digits": 1}])
def test_a_constraint_sees_the_numbers_that_a_user_sees(form: Any) -> None:
    space = Space([Real("x", 0, 10, **form), Real("y", 0, 10, **form)], constraints=["x in [0.3, 0.7]", "x + y <= 0.9"])
    result = bounce.minimize(lambda point: float(point["x"]), space, budget=20, seed=0)
    seen = {(trial.point["x"], trial.point["y"]) for trial in result.trials}
    assert sorted(seen) == [(0.3, i / 10) for i in range(7)] + [(0.7, i / 10) for i in range(3)]


@given(ladders())
def test_the_numbers_of_many_rungs_are_those_of_each(parameter: Integer | Real) -> None:
    if isinstance(parameter, Real):
        assert parameter.steps is not None
        rungs = np.arange(parameter.steps.first, parameter.steps.last + 1.0)[:50]
        assert parameter.steps.numbers(rungs).tolist() == [parameter.steps.number(int(rung)) for rung in rungs]
