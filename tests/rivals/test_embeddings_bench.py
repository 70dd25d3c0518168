from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.optimize import approx_fprime
from typer.testing import CliRunner

import embeddings
from bounce.baselines.rivals.gaussian import Fit, Matern52
from embeddings import METHODS, PUBLISHED, TASKS, Job, cell, make


@pytest.mark.slow
def test_the_script_makes_missing_runs_only_and_prints_the_table(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(embeddings.main)
    options = ["--methods", "random,hesbo", "--problems", "branin100", "--seeds", "2", "--mark", "12"]
    first = CliRunner().invoke(app, ["--out", str(tmp_path), *options])
    assert first.exit_code == 0, first.output
    assert "4 of 4" in first.output
    assert "| random | " in first.output
    again = CliRunner().invoke(app, ["--out", str(tmp_path), *options])
    assert "of 4" not in again.output
    assert again.output.strip() == first.output[first.output.index("|") :].strip()


def test_a_cell_has_mean_error_and_the_distance_to_the_published_number(tmp_path: Path) -> None:
    jobs = [Job(tmp_path, "alebo", "branin100", seed, 50) for seed in range(3)]
    assert cell(jobs) == "–"
    for job, last in zip(jobs, (0.5, 1.0, 1.5), strict=True):
        job.path.parent.mkdir(exist_ok=True)
        job.path.write_text(json.dumps({"best": [9.0] * 49 + [last]}), encoding="utf-8")
    error = 0.5 / np.sqrt(3.0)
    apart = (1.0 - 0.749) / np.hypot(error, 0.212)
    assert cell(jobs) == f"1.000 ± {error:.3f} (3) [0.749 ± 0.212: {apart:.1f}]"


@pytest.mark.parametrize("method", ["hesbo-ax", "rembo-ax"])
def test_the_versions_of_ax_run(method: str, tmp_path: Path) -> None:
    run = make(Job(tmp_path, method, "branin100", 0, 14))
    assert len(run["best"]) == 14
    assert (np.diff(run["best"]) <= 0.0).all()


def test_the_slope_of_their_acquisition_is_exact() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((12, 3))
    gp = Fit()(Matern52(3, (0.1, 2.0)), x, np.sin(5.0 * x[:, 0]))
    z = np.array([0.3, 0.5, 0.7])
    numeric = approx_fprime(z, lambda p: embeddings._loss(p, gp, -0.5)[0], 1e-7)
    np.testing.assert_allclose(embeddings._loss(z, gp, -0.5)[1], numeric, atol=1e-5)


def test_published_numbers_are_for_known_methods_problems_and_evaluations() -> None:
    assert set(PUBLISHED) <= set(METHODS)
    for own in PUBLISHED.values():
        assert set(own) == set(TASKS)
        assert all(max(marks) == TASKS[name].evaluations for name, marks in own.items())
