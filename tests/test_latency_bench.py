from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grid
import latency
import reference
from bounce.errors import InvalidInput
from grid import Case, Cost

ROOT = Path(__file__).parent.parent
SMALL = Case("random", "mixed", 10, 8, 2)


def test_the_whole_grid_holds_every_combination_once_and_the_part_is_a_part() -> None:
    full = grid.cases(["bounce", "tpe"], full=True)
    assert len(full) == len(set(full)) == 2 * 5 * 6 * 5 * 3
    part = grid.cases(["bounce", "tpe"], full=False)
    assert set(part) < set(full)
    assert len(part) == len(set(part))
    assert {case.kind for case in part} == set(grid.KINDS)


@pytest.mark.parametrize("kind", grid.KINDS)
def test_a_space_has_the_variables_its_name_says(kind: str) -> None:
    kinds = [str(kind) for kind in grid.space_of(kind, 25).kinds]
    assert len(kinds) == 25
    if kind == "mixed":
        assert sorted({k: kinds.count(k) for k in kinds}.values()) == [5, 5, 5, 10]
    else:
        assert set(kinds) == {kind}


@pytest.mark.slow
def test_a_case_is_measured_in_a_separate_process() -> None:
    cost = grid.run(replace(SMALL, method="bounce"))
    assert cost.note == ""
    assert cost.asks == grid.ASKS
    assert 0 < cost.median <= cost.p95
    assert cost.units > 0
    assert 20 < cost.mib < 2000


@pytest.mark.slow
def test_every_method_starts_with_the_observations_and_is_asked_for_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    before = grid.optimizer_of

    def watched(case: Case, space: Any) -> Any:
        made.append(before(case, space))
        return made[-1]

    monkeypatch.setattr(grid, "optimizer_of", watched)
    for method in ("random", "bounce"):
        grid.measure(replace(SMALL, method=method))
        trials = made[-1].trials
        assert len(trials) == SMALL.observed + (grid.ASKS + 1) * SMALL.batch
        assert all(trial.state == "done" for trial in trials)
        assert {trial.target_dim for trial in trials} == {SMALL.dims}


def test_an_ask_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def ask(self, n: int) -> list[Any]:
            while n != SMALL.observed:
                pass
            return []

        def tell(self, trials: list[Any], values: list[float]) -> None:
            assert trials == values == []

    monkeypatch.setattr(grid, "MINUTE", 0.05)
    monkeypatch.setattr(grid, "optimizer_of", lambda case, space: Endless())
    cost = grid.measure(SMALL)
    assert cost.note == "stopped: an ask takes over a minute"
    assert cost.asks == 0
    assert "stopped" in grid.markdown({SMALL: cost})


def test_larger_cases_of_a_stopped_method_are_hopeless() -> None:
    known = {SMALL: Cost(note="stopped: an ask takes over a minute")}
    assert grid.hopeless(replace(SMALL, observed=9), known)
    assert not grid.hopeless(SMALL, known)
    assert not grid.hopeless(replace(SMALL, observed=7), known)
    assert not grid.hopeless(replace(SMALL, observed=9, dims=5), known)
    assert not grid.hopeless(replace(SMALL, observed=9, method="tpe"), known)
    assert not grid.hopeless(replace(SMALL, observed=9), {SMALL: Cost(asks=3)})


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "latency.csv"
    assert grid.read(path) == {}
    cost = Cost(9, 0.125, 0.25, 0.15, 2.5, 100.0, "")
    grid.write(path, SMALL, cost)
    grid.write(path, replace(SMALL, dims=99), Cost(note="stopped: it, too"))
    found = grid.read(path)
    assert found[SMALL] == cost
    stopped = found[replace(SMALL, dims=99)]
    assert stopped.note == "stopped: it, too"
    assert math.isnan(stopped.median)
    assert "| 10 mixed | 8 | 2 | random | 0.125 | 0.25 | 0.15 | 2.5 | 100 |" in grid.markdown(found)
    path.write_text("a,b\n")
    with pytest.raises(InvalidInput, match="must have the columns method, kind"):
        grid.read(path)


def test_the_summary_repeats_an_ask_with_and_without_a_fit(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = latency.prepared(grid.space_of("mixed", 10), 40)
    latency.told(optimizer, 1)  # the first fit
    for fit in (True, False):
        caplog.clear()
        with caplog.at_level("DEBUG", logger="bounce"):
            assert latency.again([optimizer], 1, fit=fit) > 0
        fits = [record for record in caplog.records if record.message.startswith("fit to")]
        assert len(fits) == (latency.REPEATS if fit else 0)


def test_a_report_holds_all_rows_and_measures_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "latency.csv"
    for dims in (7, 11):  # not in the grid
        grid.write(table, Case("tpe", "real", dims, 30, 1), Cost(9, 0.1, 0.25, 0.15, 2.5, 100.0, ""))
    latency.main(only_report=True, table=table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == ["7 real", "11 real"]


def test_rows_that_exist_are_shown_and_filed_but_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "latency.csv"
    for i, case in enumerate(grid.cases(["tpe"], full=False)):
        grid.write(table, case, Cost(9, 0.001 * i, 0.25, 0.15, 2.5, 100.0, ""))
    before = table.read_text()
    document = tmp_path / "RESULTS.md"
    document.write_text("<!-- latency: begin --><!-- latency: end -->\n")
    latency.main(over_grid=True, methods="tpe", table=table, results=document)
    shown = capsys.readouterr().out.strip()
    assert table.read_text() == before
    assert "| 50 binary | 200 | 1 | tpe |" in shown
    assert shown in document.read_text()
    assert table.with_suffix(".md").read_text().strip() == shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": "nonsense"}, "there is no method 'nonsense'; the names are bounce, random"),
        ({"reference": Path("nowhere")}, "a checkout with a folder bounce in it, not 'nowhere'"),
        ({"methods": "reference"}, "the method reference needs --reference CHECKOUT"),
        ({"table": Path("/dev/null/x.csv")}, "'/dev/null' must be a folder"),
        (
            {"reference": ROOT / "src", "reference_python": Path("/no/python")},
            "must be a Python that has its packages",
        ),
    ],
)
def test_bad_options_are_refused_before_a_measurement(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"over_grid": True, "table": tmp_path / "latency.csv"} | options
    with pytest.raises(InvalidInput, match=said):
        latency.main(**given)


def test_the_reference_is_driven_from_outside_with_its_own_python(tmp_path: Path) -> None:
    words, environment = reference.command(SMALL, tmp_path, Path("/other/python"), {"PYTHONPATH": "src", "A": "1"})
    assert words[0] == "/other/python"
    assert words[2] == str(tmp_path.resolve())
    assert environment == {"A": "1"}  # nothing of this package is imported by accident
    compile(Path(words[1]).read_text(), words[1], "exec")


def test_what_the_reference_says_is_put_into_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text('print("noise"); print(\'{"times": [1.0, 2.0, 9.0], "note": "", "mib": 7.0}\')')
    monkeypatch.setattr(reference, "command", lambda case, path, python, env: ([str(python), str(driver)], env))
    cost = grid.run(replace(SMALL, method="reference"), (tmp_path, Path(sys.executable)))
    assert (cost.asks, cost.median, cost.mib) == (3, 2.0, 7.0)
    assert cost.units > 1
    driver.write_text("raise SystemExit('it broke')")
    assert grid.run(replace(SMALL, method="reference"), (tmp_path, Path(sys.executable))).note == "failed: it broke"
