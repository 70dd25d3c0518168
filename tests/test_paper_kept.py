"""Kept runs: what figures and claims need of runs, in one small file that grows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import InvalidInput
from bounce.paper import kept, runs
from bounce.paper.claims import check
from bounce.paper.figures import Curve, Figure, Method
from bounce.paper.kept import Kept, fullest, method_of, united
from bounce.paper.traces import FIELDS, Seen, Trace
from bounce.report.figures import draw, summary
from terminal import Said, typed

RANDOM = Method("random", "Random search", "random", {})
PESTS = Figure(
    21,
    "small",
    problems=("pest25",),
    methods=(RANDOM, replace(RANDOM, key="random-again")),
    evaluations={1: 9},
    claims=({"kind": "better", "method": "random", "than": "random-again", "says": "so"},),
)


def trace(values: list[float | None], seed: int = 0) -> Trace:
    row = dict.fromkeys(FIELDS, 0) | {"point": {"x": 1}, "state": "done"}
    return Trace(Path(f"p-original/m-b1-n9-abc-seed{seed}.jsonl"), [row | {"value": value} for value in values])


@given(st.lists(st.none() | st.floats(-1e300, 1e300), min_size=1, max_size=30))
def test_a_kept_run_has_the_best_values_of_its_trace_to_the_last_digit(values: list[float | None]) -> None:
    own = trace(values)
    found = kept._run(dict(zip(kept.NAMES, map(str, kept._line(kept.kept("p/m", own, "1"))), strict=True)), "here")
    np.testing.assert_array_equal(found.best, own.best)  # NaN is NaN, and -0.0 is 0.0
    assert found.proposed == own.proposed


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Runs of random search on a small problem, three seeds."""
    for run in runs.wanted([PESTS], tmp_path / "runs", repetitions=3):
        runs.make(run)
    return tmp_path / "runs"


def both_ways(folder: Path) -> tuple[Any, Any]:
    """Return readers of the runs of a folder: from its traces, and from what is kept of them."""
    path = folder.parent / "kept.csv"
    kept.write(path, runs.keep_all(folder, "1", {}))
    known = kept.read(path)
    return (lambda curve: runs.traces(curve, folder)), (lambda curve: runs.seen(curve, [], known))


def test_figures_and_claims_are_the_same_from_kept_runs_as_from_traces(made: Path, tmp_path: Path) -> None:
    from_traces, from_kept = both_ways(made)
    assert check(PESTS, from_traces) == check(PESTS, from_kept)
    for curve in PESTS.curves():
        assert summary(curve, from_traces(curve)) == summary(curve, from_kept(curve))
        assert [run.proposed for run in from_traces(curve)] == [run.proposed for run in from_kept(curve)]
        assert sum(from_kept(curve)[0].proposed.values()) == 25 * (9 - 5)
    shares = replace(PESTS, analysis="combo_categories")
    for reader, name in ((from_traces, "a"), (from_kept, "b")):
        draw(shares, reader, tmp_path / name)
    pictures = [(tmp_path / name / "figure-21.png").read_bytes() for name in "ab"]
    assert pictures[0] == pictures[1]


def test_two_machines_with_the_same_runs_have_the_same_file(made: Path, tmp_path: Path) -> None:
    found = runs.keep_all(made, "1", {})
    kept.write(tmp_path / "a.csv", found)
    kept.write(tmp_path / "b.csv", reversed(found))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def run(evaluations: int, seed: int = 0, revision: str = "1") -> Kept:
    return Kept("p-original/random-b1-n200-abc", seed, evaluations, revision, ((1, 2.0),), {})


def test_of_a_run_that_comes_twice_the_longer_one_stays() -> None:
    assert united([run(9)], [run(5)]) == united([run(5)], [run(9)]) == [run(9)]
    assert united([run(9, revision="1")], [run(9, revision="2")]) == [run(9, revision="2")]
    assert united([run(9, 1)], [run(5, 0)]) == [run(5, 0), run(9, 1)]


@pytest.mark.parametrize(
    ("lengths", "left"),
    [
        ([200] * 5 + [3], [200] * 5),
        ([200, 100, 100], [200, 100, 100]),
        ([200, 200, 60], [200, 200]),
        ([200, 100], [200, 100]),
        ([], []),
    ],
)
def test_a_run_that_has_just_begun_does_not_cut_the_others(lengths: list[int], left: list[int]) -> None:
    found: list[Seen] = [run(length, seed) for seed, length in enumerate(lengths)]
    assert [len(own.best) for own in fullest(found)] == left


def test_a_trace_and_a_kept_run_of_a_seed_count_once_and_the_longer_one_is_shown(made: Path) -> None:
    curve = PESTS.curves()[0]
    found = runs.traces(curve, made)
    longer = Kept(curve.name, 1, 9 + 1, "1", ((1, 0.5),), {})
    other = Kept(curve.name, 7, 9, "1", ((1, 0.25),), {})
    shorter = Kept(curve.name, 2, 1, "1", ((1, 0.0),), {})
    shown = runs.seen(curve, found, {own.key: own for own in (longer, other, shorter)})
    assert [own.seed for own in shown] == [0, 1, 2, 7]
    assert [float(own.best[-1]) for own in shown][1::2] == [0.5, 0.25]
    assert float(shown[2].best[-1]) > 0.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("p/m,0,9,1,1:2.0 4:3.0,", "line 3, is not a run: its best values must fall"),
        ("p/m,0,9,1,4:3.0 1:2.0,", "line 3, is not a run: its best values must fall"),
        ("p/m,0,9,1,10:3.0,", "at evaluations 1 to 9"),
        ("p/m,0,9,1,1:nan,", "its best values must fall"),
        ("p/m,0,9,1,one,", "line 3, is not a run: invalid literal"),
        ("p/m,0", "line 3, is not a run"),
    ],
)
def test_a_line_that_is_no_run_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    kept.write(path, [run(9)])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(InvalidInput, match=f"kept.csv, .*{said}|{said}"):
        kept.read(path)
    path.write_text("a,b\n")
    with pytest.raises(InvalidInput, match="not a file of kept runs: its columns must be run,seed"):
        kept.read(path)
    assert kept.read(tmp_path / "nothing.csv") == {}


def test_the_method_of_a_run_is_in_its_name() -> None:
    for key in ("random", "bounce-default", "combo-fixed"):
        assert method_of(Curve("labs50", "original", replace(RANDOM, key=key), 3, 200).name) == key


def test_values_that_are_not_finite_are_not_kept() -> None:
    own = kept.kept("p/m", trace([None, 3.0, 4.0]), "1")
    assert own.changes == ((2, 3.0),)
    assert math.isnan(own.best[0])


def test_runs_of_several_days_and_machines_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bounce(*words: str, folder: Path = tmp_path) -> Said:
        folder.mkdir(exist_ok=True)
        shown = typed(["paper", *words], monkeypatch, capsys, folder)
        assert shown.code == 0, shown.err
        return shown

    assert "0 runs before, 0 in paper-runs, 0 now" in bounce("keep").out
    assert not (tmp_path / "paper-kept.csv").exists()
    size = ("9", "--methods", "random", "--evaluations", "6")
    bounce("run", *size, "--repetitions", "1")
    assert "0 runs before, 2 in paper-runs, 2 now" in bounce("keep", "--revision", "a").out
    second = tmp_path / "second"
    second.mkdir()
    (second / "paper-kept.csv").write_bytes((tmp_path / "paper-kept.csv").read_bytes())
    shown = bounce("run", *size, "--repetitions", "2", folder=second)
    assert "2 of 4 runs are in paper-kept.csv" in shown.out
    assert "2 runs, 2 finished" in shown.out
    bounce("plot", "9", folder=second)
    (curve, _) = json.loads((second / "paper-figures" / "figure-09.json").read_text())
    assert curve["repetitions"] == 2
    assert "2 runs before, 2 in paper-runs, 4 now" in bounce("keep", "--revision", "b", folder=second).out
    assert "2 in paper-runs, 4 now" in bounce("keep", "second/paper-kept.csv", "--revision", "a").out
    files = [(folder / "paper-kept.csv").read_text() for folder in (tmp_path, second)]
    assert files[0] == files[1]
    assert [line.split(",")[3] for line in files[0].splitlines()[1:]] == ["a", "b", "a", "b"]
    bounce("run", *size, "--repetitions", "1", "--evaluations", "8")  # kept, but too short
    assert "4 runs before, 4 removed, 2 in paper-runs, 2 now" in bounce("keep", "--forget", "random").out
    shown = typed(["paper", "keep", "--forget", "randon"], monkeypatch, capsys, tmp_path)
    assert "the runs in paper-kept.csv have no method 'randon'; did you mean 'random'?" in shown.err
    shown = typed(["paper", "keep", "nowhere.csv"], monkeypatch, capsys, tmp_path)
    assert "the file 'nowhere.csv' does not exist" in shown.err


@pytest.mark.parametrize(
    "words", [("run", "9", "--methods", "random", "--evaluations", "1"), ("plot", "18"), ("check", "18")]
)
def test_a_misspelt_file_of_kept_runs_is_refused_before_its_runs_are_made_again(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed(["paper", *words, "--kept", "docs/run.csv"], monkeypatch, capsys, tmp_path)
    assert shown.code != 0
    assert "the file of kept runs 'docs/run.csv' does not exist" in shown.err
    assert not list(tmp_path.iterdir())


def test_a_new_file_of_kept_runs_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ("9", "--methods", "random", "--evaluations", "2", "--repetitions", "2")
    assert typed(["paper", "run", *size], monkeypatch, capsys, tmp_path).code == 0
    assert typed(["paper", "keep", "--kept", "mine.csv"], monkeypatch, capsys, tmp_path).code == 0
    shown = typed(["paper", "check", "9", "--kept", "mine.csv"], monkeypatch, capsys, tmp_path)
    assert shown.out == "4 of 4 claims have no verdict: too few of their runs are in paper-runs and mine.csv\n"


def test_progress_counts_the_evaluations_of_unfinished_runs_too(made: Path) -> None:
    wanted = runs.wanted([PESTS], made, repetitions=4)
    counting = runs.Counting(wanted)
    assert counting.finished() == 9 * 12
    (new, *_) = [run for run in wanted if not run.path.exists()]
    runs.make(replace(new, length=4))
    assert counting.finished() == 9 * 12 + 4
    runs.make(new)
    assert counting.finished() == 9 * 13
