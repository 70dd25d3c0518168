"""The bench of all optimizers of the literature: it shares the runs of the paper's figures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

import literature
from bounce import baselines
from bounce.paper import kept, runs
from bounce.paper.figures import figures
from bounce.paper.kept import Kept


def test_every_rival_takes_part_and_runs_of_the_figures_are_shared() -> None:
    figure, reals = literature.comparisons()
    assert {method.method for method in figure.methods} >= {
        name for name in baselines.names() if not name.startswith("bounce")
    }
    keys = [method.key for method in figure.methods]
    assert len(keys) == len(set(keys))
    assert {"bodi", "bodi-fixed", "combo", "combo-fixed", "pr", "leaf"} <= set(keys)
    ours = {curve.name for curve in figure.curves()}
    for number in (2, 3, 4, 8, 9, 10):
        randomised = {curve.name for curve in figures()[number].curves() if curve.version == "randomized"}
        assert randomised <= ours
    shared = {curve.name for number in (11, 17) for curve in figures()[number].curves() if curve.batch == 1}
    assert shared <= {curve.name for curve in reals.curves()}


def test_methods_that_do_not_take_a_problem_are_left_out(tmp_path: Path) -> None:
    wanted = runs.wanted(
        literature.comparisons(),
        tmp_path,
        repetitions=1,
        methods=["turbo", "bocs", "random"],
        problems=["labs50", "branin500"],
    )
    assert len(wanted) == 6
    assert {(run.setup.method, run.setup.name) for run in literature.possible(wanted)} == {
        *(("bocs", "labs50"), ("random", "labs50"), ("turbo", "branin500"), ("random", "branin500"))
    }


def kept_run(key: str, seed: int, last: float, evaluations: int = 200, problem: str = "pest25") -> Kept:
    (curve,) = [
        curve
        for figure in literature.comparisons()
        for curve in figure.curves()
        if (curve.problem, curve.method.key) == (problem, key)
    ]
    return Kept(curve.name, seed, evaluations, "1", ((1, 17.0), (60, last))[: 1 + (evaluations > 60)], {})


def test_the_best_method_comes_first_and_numbers_say_of_how_many_seeds_they_are(tmp_path: Path) -> None:
    some = [kept_run("random", seed, 15.0 + seed) for seed in range(2)]
    some += [kept_run("leaf", seed, 13.0) for seed in range(3)]
    some += [kept_run("pr", 0, 12.0), *(kept_run("rducb", seed, 12.0, evaluations=50 + seed) for seed in (0, 1))]
    path, page = tmp_path / "runs.csv", tmp_path / "page.md"
    kept.write(path, some)
    page.write_text("before\n<!-- literature: begin -->\nold\n<!-- literature: end -->\nafter\n")
    done = CliRunner().invoke(literature.app, ["table", "--kept", str(path), "--into", str(page)])
    assert done.exit_code == 0, done.output
    assert page.read_text().splitlines()[3:8] == [
        "| pest25 | 50 | 100 | 200 |",
        "| --- | --- | --- | --- |",
        "| `leaf` | 17.000 ± 0.000 (3) | 13.000 ± 0.000 (3) | 13.000 ± 0.000 (3) |",
        "| `random` | 17.000 ± 0.000 (2) | 15.50 ± 0.50 (2) | 15.50 ± 0.50 (2) |",
        "| `rducb` | 17.000 ± 0.000 (2) | – | – |",
    ]
    assert literature.number(some[:1], 50) == (math.inf, "–")


def test_large_values_are_shown_above_the_lowest_of_them(tmp_path: Path) -> None:
    found = [
        kept_run("random", 0, -3e19 + 2e10, problem="cluster60"),
        kept_run("random", 1, -3e19, problem="cluster60"),
    ]
    text = literature.tables({own.key: own for own in found})
    assert text.startswith("| cluster60, above the lowest value | 50 | 100 | 200 |")
    assert "| 3e+19 ± 0 (2) | 1e+10 ± 1e+10 (2) | 1e+10 ± 1e+10 (2) |" in text
    assert literature.baseline({own.key: own for own in found}, "pest25") == ("pest25", 0.0)


def test_the_default_is_shown_beside_the_method_of_the_paper_and_what_is_lower_is_bold(tmp_path: Path) -> None:
    some = [kept_run("bounce", seed, 14.0) for seed in range(6)]
    some += [kept_run("bounce-default", seed, 13.0) for seed in range(6)]
    some += [kept_run("leaf", 0, 15.0, evaluations=100), kept_run("turbo", 0, 1.0, problem="branin500")]
    path, page = tmp_path / "runs.csv", tmp_path / "page.md"
    kept.write(path, some)
    page.write_text(
        "".join(f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in ("versions", "claims", "kept"))
    )
    done = CliRunner().invoke(literature.app, ["paper", "--kept", str(path), "--into", str(page)])
    assert done.exit_code == 0, done.output
    same, low, high = "17.000 ± 0.000 (6)", "13.000 ± 0.000 (6)", "14.000 ± 0.000 (6)"
    assert page.read_text().splitlines()[2:6] == [
        "| problem | version | method | 50 | 100 | 200 |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| pest25 | randomized | `bounce` | {same} | {high} | {high} |",
        f"| pest25 | randomized | `bounce-default` | {same} | **{low}** | **{low}** |",
    ]
    assert "| 18 | 0.986 for 60 bits and 128 anchors | computed | holds |" in page.read_text()
    assert page.read_text().splitlines()[-11:-2] == [
        "| method | pest25 |",
        "| --- | --- |",
        "| `bounce` | – / 6 × 200 |",
        "| `bounce-default` | – / 6 × 200 |",
        "| `leaf` | – / 1 × 100 |",
        "",
        "| method | branin500 |",
        "| --- | --- |",
        "| `turbo` | 1 × 200 |",
    ]


def test_kept_runs_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "runs.csv"
    kept.write(path, [kept_run("random", 0, 15.0)])
    words = ["run", "--methods", "random", "--problems", "pest25", "--evaluations", "6", "--kept", str(path)]
    done = CliRunner().invoke(literature.app, [*words, "--seeds", "1"])
    assert "0 runs were made" in done.output
    done = CliRunner().invoke(literature.app, [*words, "--seeds", "2"])
    assert "1 runs were made" in done.output, done.output
    done = CliRunner().invoke(literature.app, ["run", "--methods", "randon"])
    assert "no method 'randon'" in str(done.exception)


def test_speed_measures_what_a_rival_takes_and_leaves_a_dash_for_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert literature.cost("turbo", "binary") is None
    spent = literature.cost("hesbo", "real", observed=9)
    assert spent is not None
    assert 0.0 < spent < 5.0
    monkeypatch.setattr(literature, "cost", lambda name, kind: None if kind == "real" else 0.5)
    page = tmp_path / "page.md"
    page.write_text("<!-- speed: begin -->\nold\n<!-- speed: end -->\n")
    done = CliRunner().invoke(literature.app, ["speed", "--methods", "leaf", "--into", str(page)])
    assert done.exit_code == 0, done.output
    assert "| `leaf` | 0.50 | 0.50 | 0.50 | – |" in page.read_text()
    wrong = CliRunner().invoke(literature.app, ["speed", "--methods", "leav"])
    assert "no rival 'leav'" in str(wrong.exception)
