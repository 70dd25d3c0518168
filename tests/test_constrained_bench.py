"""The benchmark with limits on outcomes."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrained
from tasks import designs


def test_a_design_has_its_ratios_as_outcomes() -> None:
    problem = constrained.design(designs.vessel())
    good: dict[str, Any] = {"shell": 13, "head": 7, "radius": 42.0, "length": 178.0}
    value, outcomes = problem.evaluate(good)
    assert list(outcomes) == [limit.name for limit in problem.space.limits]
    assert problem.violation(outcomes) == 0
    assert problem.penalised((value, outcomes)) == value == designs.vessel().value(good)
    bad = good | {"shell": 1}
    assert problem.violation(problem.evaluate(bad)[1]) > 0
    assert problem.penalised(problem.evaluate(bad)) == pytest.approx(designs.vessel().value(bad))


@pytest.mark.parametrize("name", ["bounce", "bounce, penalty", "optuna tpe", "random"])
def test_every_method_evaluates_as_often_as_it_may(name: str) -> None:
    if name.startswith("optuna"):
        pytest.importorskip("optuna")
    problem = constrained.design(designs.spring())
    found = list(constrained.METHODS[name](problem, 7, 0))
    assert len(found) == 7
    curve = constrained.trace(problem, iter(found))
    held = [value for value, outcomes in found if not problem.violation(outcomes)]
    assert curve[-1] == (min(problem.violation(outcomes) for _, outcomes in found), min(held, default=math.inf))
    assert all(after[0] <= before[0] and after[1] <= before[1] for before, after in pairwise(curve))


def test_a_cell_has_the_violation_where_most_runs_have_no_value() -> None:
    assert constrained.cell(np.array([0.0, 0.0, 2.0]), np.array([3.0, 5.0, math.inf])) == "5"
    assert constrained.cell(np.array([0.0, 1.5, 2.0]), np.array([3.0, math.inf, math.inf])) == "+1.5"


def test_a_problem_without_its_executable_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOUNCE_DATA", str(tmp_path))
    assert list(constrained.problems("mopta08")) == []
    assert "mopta08 is left out" in capsys.readouterr().err
