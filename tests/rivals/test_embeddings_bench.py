from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.optimize import approx_fprime
from typer.testing import CliRunner

import embeddings
from bounce.baselines.rivals.gaussian import Fit, Matern52
from embeddings import METHODS, PUBLISHED, TASKS, Job, make, row


@pytest.mark.slow
def test_the_script_makes_missing_runs_only_and_prints_the_table(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(embeddings.main)
    options = ["--methods", "random,hesbo", "--problems", "branin100", "--seeds", "2", "--mark", "12"]
    options += ["--out", str(tmp_path), "--kept", str(tmp_path / "kept.csv"), "--keep"]
    first = CliRunner().invoke(app, options)
    assert first.exit_code == 0, first.output
    assert "4 of 4" in first.output
    assert "| method | problem | evaluations | published | " in first.output
    assert len(embeddings.kept(tmp_path / "kept.csv")) == 4
    again = CliRunner().invoke(app, options)
    assert "of 4" not in again.output
    assert again.output.strip() == first.output[first.output.index("|") :].strip()


def values_of(*lasts: float, method: str = "alebo") -> embeddings.Values:
    return {(method, "branin100", seed): {25: 9.0, 50: last} for seed, last in enumerate(lasts)}


def test_a_row_has_both_means_and_errors_and_says_whether_they_agree() -> None:
    assert row("alebo", "branin100", 50, values_of(0.5)) is None
    error = 0.5 / np.sqrt(3.0)
    apart = (1.0 - 0.749) / np.hypot(error, 0.212)
    found = row("alebo", "branin100", 50, values_of(0.5, 1.0, 1.5))
    head = ["`alebo`", "branin100", "50", "0.749 ± 0.212"]
    assert found == [*head, f"1.000 ± {error:.3f} (3)", f"{apart:+.1f}", "yes"]
    assert (row("alebo", "branin100", 50, values_of(3.0, 3.1)) or [])[-1] == "no, worse"
    assert (row("alebo", "branin100", 50, values_of(0.0, 0.1)) or [])[-1] == "no, better"
    assert (row("bounce", "branin100", 50, values_of(3.0, 3.1, method="bounce")) or [])[-1] == "–"


def test_runs_that_were_kept_are_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    assert embeddings.kept(path) == {}
    embeddings.keep(path, values_of(0.5, 1.25))
    assert embeddings.kept(path) == values_of(0.5, 1.25)
    earlier = embeddings.kept(path)
    assert Job(tmp_path, "alebo", "branin100", 1, 50).exists(earlier)
    assert not Job(tmp_path, "alebo", "branin100", 2, 50).exists(earlier)
    assert not Job(tmp_path, "alebo", "branin100", 1, 51).exists(earlier)
    shorter = {("alebo", "branin100", 0): {25: 9.0}}
    assert embeddings.united(earlier, shorter) == earlier == embeddings.united(shorter, earlier)


def test_the_table_of_the_documentation_is_that_of_the_kept_runs() -> None:
    shown = embeddings.table(embeddings.kept(embeddings.KEPT), METHODS, TASKS)
    assert shown in (embeddings.KEPT.parents[2] / "docs" / "rivals.md").read_text(encoding="utf-8")


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
