from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bounce.cli
from bounce import Bounce, benchmarks
from bounce.benchmarks import Labs
from bounce.errors import InvalidInput
from bounce.paper import traces
from bounce.paper.traces import FIELDS, Setup, Trace, grouped, path_of, read, record, summaries
from bounce.report.plots import comparison
from terminal import typed

COMMAND = [sys.executable, "-m", "bounce"]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def rows(values: list[float | None]) -> list[dict[str, Any]]:
    fixed = dict.fromkeys(FIELDS, 0) | {"point": {}, "state": "done"}
    return [fixed | {"id": i, "value": value} for i, value in enumerate(values)]


@pytest.mark.slow
def test_a_benchmark_writes_a_trace_per_seed_and_prints_a_table(tmp_path: Path) -> None:
    options = {"--evals": 12, "--batch": 2, "--seeds": 3, "--jobs": 2, "--out": "a.jsonl"}
    words = [str(word) for option in options.items() for word in option]
    done = run("benchmark", "labs20", "--randomized", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    problem = benchmarks.load("labs20", randomized=True)
    found = [read(tmp_path / f"a-seed{seed}.jsonl") for seed in range(3)]
    for trace in found:
        assert [row["id"] for row in trace.rows] == list(range(12))
        assert all(tuple(row) == FIELDS for row in trace.rows)
        assert [row["value"] for row in trace.rows] == [problem(row["point"]) for row in trace.rows]
        assert trace.label == "a"
    last = summaries(found)[-1]
    assert last.mean == pytest.approx(np.mean([min(row["value"] for row in t.rows) for t in found]))
    assert f"{last.mean:.6g}" in done.stdout
    assert done.stdout.splitlines()[-3:] == [f"a-seed{seed}.jsonl" for seed in range(3)]
    picture = run("plot", *(f"a-seed{seed}.jsonl" for seed in range(3)), "--out", "a.svg", cwd=tmp_path)
    assert picture.returncode == 0, picture.stderr
    assert "a (3)" in (tmp_path / "a.svg").read_text()


@pytest.mark.slow
def test_the_number_of_jobs_changes_nothing(tmp_path: Path) -> None:
    def points(path: Path) -> list[Any]:
        return [row["point"] for row in read(path).rows]

    for jobs in ("1", "2"):
        done = run(*f"benchmark labs20 --evals 9 --seeds 2 --jobs {jobs} --out j{jobs}.jsonl".split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for seed in range(2):
        assert points(tmp_path / f"j1-seed{seed}.jsonl") == points(tmp_path / f"j2-seed{seed}.jsonl")


@pytest.mark.slow
def test_optimizers_are_compared_with_a_trace_for_each_seed_of_each(tmp_path: Path) -> None:
    words = "benchmark labs10 --methods bounce,random,bounce-paper --evals 8 --seeds 2 --jobs 2"
    done = run(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    methods = ("bounce", "random", "bounce-paper")
    names = [f"labs10-{method}-seed{seed}.jsonl" for method in methods for seed in range(2)]
    assert done.stdout.splitlines()[-6:] == names
    for name in names:
        trace = read(tmp_path / name)
        assert len(trace.rows) == 8
        assert all(row["seconds_eval"] > 0 for row in trace.rows)
    table = [line for line in done.stdout.splitlines() if " 8 " in line]
    ends = {m: np.mean([read(tmp_path / f"labs10-{m}-seed{s}.jsonl").best[-1] for s in range(2)]) for m in methods}
    assert len(table) == 3
    for method in methods:
        assert any(f" {method} " in line and f"{ends[method]:.6g}" in line for line in table)
    again = run(*words.split(), cwd=tmp_path)
    assert "already exists" in again.stderr


def test_an_optimizer_that_cannot_take_the_problem_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for methods, said in (("nobody", "no baseline 'nobody'"), ("bounce,turbo", "turbo takes real variables only")):
        shown = typed(["benchmark", "labs10", "--methods", methods], monkeypatch, capsys, tmp_path)
        assert shown.code == 2
        assert said in shown.err
    wrong = ["benchmark", "labs10", "--methods", "random", "--method", "paper"]
    assert "--methods has no bounce" in typed(wrong, monkeypatch, capsys, tmp_path).err
    assert not list(tmp_path.iterdir())
    listed = typed(["benchmark", "labs10", "--methods", "list"], monkeypatch, capsys, tmp_path).out
    assert "takes bits" in listed


@pytest.mark.slow
def test_overwriting_replaces_all_traces_of_the_name(tmp_path: Path) -> None:
    for words in ("--evals 6 --seeds 2", "--evals 3 --seeds 1 --overwrite"):
        done = run(*f"benchmark labs10 {words} --out a.jsonl".split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a-seed0.jsonl"]
    assert len(read(tmp_path / "a-seed0.jsonl").rows) == 3


@pytest.mark.parametrize("method", ["bounce", "random", "casmopolitan", "tpe"])
def test_a_failed_evaluation_fails_its_trial_only(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def sometimes(self: Labs, point: dict[str, Any]) -> float:
        calls.append(point)
        if len(calls) == 4:
            raise OSError("the disk is gone")
        return float(len(calls))

    monkeypatch.setattr(Labs, "__call__", sometimes)
    record(Setup("labs10", {"budget": 8}, method=method), 0, tmp_path / "a.jsonl")
    assert [row["state"] for row in read(tmp_path / "a.jsonl").rows] == ["done"] * 3 + ["failed"] + ["done"] * 4


@pytest.mark.parametrize("method", ["bounce", "casmopolitan"])
@pytest.mark.parametrize("cut", [0, 3, 5, 7, 12])
def test_a_run_that_was_stopped_is_continued_to_the_same_trace(
    method: str, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also past a failure, and where the last line was cut."""
    values = Labs.__call__
    seen: list[dict[str, Any]] = []

    def sometimes(self: Labs, point: dict[str, Any]) -> float:
        seen.append(point)
        value = values(self, point)
        if sum(point.values()) % 4 == 0:
            raise OSError("the disk is gone")
        return value

    monkeypatch.setattr(Labs, "__call__", sometimes)
    setup, path = Setup("labs10", {"budget": 12, "batch_size": 2}, method=method), tmp_path / "a.jsonl"

    def points() -> list[tuple[Any, ...]]:
        return [(row["id"], row["point"], row["value"], row["state"]) for row in read(path).rows]

    record(setup, 1, path)
    whole = points()
    assert {state for *_, state in whole} == {"done", "failed"}
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:cut]) + (lines[cut][:20] if cut < 12 else ""))
    seen.clear()
    record(setup, 1, path, resume=True)
    assert points() == whole
    assert len(seen) == 12 - cut + min(cut, 1)  # the last value that is there is computed again


def test_a_benchmark_continues_what_was_killed_and_refuses_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["benchmark", "labs10", "--methods", "random,bounce", "--evals", "8"]
    assert typed(words, monkeypatch, capsys, tmp_path).code == 0
    path = tmp_path / "labs10-bounce-seed0.jsonl"
    whole = [row["point"] for row in read(path).rows]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    shown = typed(words, monkeypatch, capsys, tmp_path)
    assert "already exists: use --resume or --overwrite" in shown.err
    assert typed([*words, "--resume"], monkeypatch, capsys, tmp_path).code == 0
    assert [row["point"] for row in read(path).rows] == whole
    shown = typed([*words, "--resume", "--overwrite"], monkeypatch, capsys, tmp_path)
    assert "give either --resume or --overwrite" in shown.err
    other = json.loads(path.read_text().splitlines()[0])
    other["point"] = {name: not on for name, on in other["point"].items()}
    path.write_text(json.dumps(other) + "\n")
    shown = typed([*words, "--resume"], monkeypatch, capsys, tmp_path)
    assert "cannot be continued: trial 0 has another point there. It was made with other options" in shown.err
    assert path.read_text() == json.dumps(other) + "\n"


def test_traces_of_several_folders_are_compared_not_mixed() -> None:
    found = [Trace(Path(folder, "x-seed0.jsonl"), rows([1.0])) for folder in ("old", "new")]
    assert list(grouped(found)) == ["old/x", "new/x"]
    assert list(grouped(found[:1])) == ["x"]


def test_a_trace_of_the_first_release_can_be_read(tmp_path: Path) -> None:
    old = rows([2.0, 1.0])
    for row in old:
        row |= {"space": row.pop("stage"), "length_comb": row.pop("radius"), "length_cont": row.pop("side")}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in old))
    assert read(tmp_path / "a.jsonl").rows == rows([2.0, 1.0])


def test_a_benchmark_runs_the_method_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = []

    class Watched(Bounce):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            methods.append(self.options["method"])

    def recorded(runs: Any, *, jobs: int, progress: Any, resume: bool) -> list[Trace]:
        for run in runs:
            record(*run)
        return [read(path) for _, _, path in runs]

    monkeypatch.setattr(traces, "Bounce", Watched)
    monkeypatch.setattr(traces, "record_all", recorded)
    for words in ([], ["--method", "paper"]):
        given = ["benchmark", "labs10", "--evals", "6", "--out", f"{len(words)}.jsonl", *words]
        assert typed(given, monkeypatch, capsys, tmp_path).code == 0
    assert methods == ["default", "default", "paper", "paper"]  # once to see that it can, and once to run


@pytest.mark.slow
def test_the_names_are_listed(tmp_path: Path) -> None:
    assert run("benchmark", "list", cwd=tmp_path).stdout.split() == benchmarks.names()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("benchmark nonsense", "there is no problem 'nonsense'; the names are labs50"),
        ("benchmark branin500 --randomized", "no randomised version of 'branin500'"),
        ("benchmark labs20 --out nowhere/a.jsonl", "the folder 'nowhere' does not exist"),
        ("benchmark labs20 --out .", "need a file name"),
        ("benchmark labs20 --method papre", "method must be 'default' or 'paper'"),
        ("benchmark labs20 --out /proc/a.jsonl", "nothing can be written to the folder '/proc'"),
        (
            "benchmark labs20 --out old.jsonl",
            "old-seed7.jsonl already exists: use --resume or --overwrite, or choose another --out",
        ),
        ("plot old-seed7.jsonl old-seed7.jsonl", "old-seed7.jsonl is given twice"),
        ("plot old-seed7.jsonl old-seed8.jsonl", "they are different problems"),
        ("plot wrong.jsonl", "wrong.jsonl, line 1: value cannot be 'abc'"),
        ("plot missing.jsonl", "missing.jsonl"),
        ("plot empty.jsonl", "it is empty"),
        ("plot prose.jsonl", "prose.jsonl, line 1: a line of a trace must be a JSON object"),
        ("plot short.jsonl", "short.jsonl, line 1: the line lacks ['id'"),
        ("plot binary.jsonl", "it is not text"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "old-seed7.jsonl").write_text(json.dumps(rows([1.0])[0]) + "\n")
    (tmp_path / "old-seed8.jsonl").write_text(json.dumps(rows([1.0])[0] | {"point": {"x": 1}}) + "\n")
    (tmp_path / "wrong.jsonl").write_text(json.dumps(rows([1.0])[0] | {"value": "abc"}) + "\n")
    (tmp_path / "prose.jsonl").write_text("once upon a time\n")
    (tmp_path / "short.jsonl").write_text("{}\n")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bounce", *arguments.split()])
    with pytest.raises(SystemExit) as exit:
        bounce.cli.main()
    assert exit.value.code == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.strip().splitlines()) == 1


def test_a_trace_of_a_stopped_run_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run-seed4.jsonl"
    record(Setup("labs10", {"budget": 8}), 4, path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:5]) + "\n")
    assert len(read(path).rows) == 5


def test_a_trace_of_version_0_1_can_be_read(tmp_path: Path) -> None:
    old = rows([1.0])[0] | {"space": 3}
    del old["stage"]
    (tmp_path / "old-seed0.jsonl").write_text(json.dumps(old) + "\n")
    (row,) = read(tmp_path / "old-seed0.jsonl").rows
    assert row["stage"] == 3
    assert set(row) == set(FIELDS)


def test_best_so_far_and_summaries_by_hand() -> None:
    one = Trace(Path("x-seed0.jsonl"), rows([None, 3.0, 5.0, 1.0]))
    two = Trace(Path("x-seed1.jsonl"), rows([4.0, 4.0, 2.0, 2.0, 0.0]))
    assert one.best[1:].tolist() == [3.0, 3.0, 1.0]
    assert np.isnan(one.best[0])
    half, end = summaries([one, two], shares=(0.5, 1.0))
    assert (half.evaluations, half.mean, half.lowest, half.highest) == (2, 3.5, 3.0, 4.0)
    assert (end.evaluations, end.mean, end.error) == (4, 1.5, 0.5)
    assert summaries([one], shares=(1.0,))[0].error == 0.0
    assert summaries([one, two], 1, shares=(1.0,))[0].evaluations == 1


def test_traces_are_named_after_their_seeds() -> None:
    assert path_of(Path("runs/labs50.jsonl"), 3) == Path("runs/labs50-seed3.jsonl")
    assert path_of(Path("labs50"), 0) == Path("labs50-seed0.jsonl")


def test_one_trace_can_be_drawn(tmp_path: Path) -> None:
    comparison([Trace(Path("x.jsonl"), rows([3.0, 2.0]))], tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_problem_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no problem"):
        record(Setup("labs0", {"budget": 5}), 0, tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())


def test_fields_are_json(tmp_path: Path) -> None:
    record(Setup("ackley53", {"budget": 7}, randomized=True), 0, tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert isinstance(first["point"], dict)
    assert first["seconds_eval"] >= 0


def test_a_trace_of_another_problem_or_version_is_not_continued(tmp_path: Path) -> None:
    path, options = tmp_path / "a-seed0.jsonl", {"budget": 8, "batch_size": 1}
    record(Setup("labs20", options), 0, path)
    before = path.read_bytes()
    for other in (Setup("labs20", options | {"budget": 9}, randomized=True), Setup("labs20", options, randomized=True)):
        with pytest.raises(InvalidInput, match="It is of another problem, or of the other version of this one"):
            record(other, 0, path, resume=True)
    with pytest.raises(InvalidInput, match="cannot be continued"):
        record(Setup("pest25", options), 0, path, resume=True)
    with pytest.raises(InvalidInput, match="cannot be continued: trial 0 has another point there"):
        record(Setup("labs20", options | {"method": "paper"}), 0, path, resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("state", "value"), [("failed", -99.0), ("done", None)])
def test_a_line_whose_state_contradicts_its_value_is_refused(tmp_path: Path, state: str, value: float | None) -> None:
    (row,) = rows([1.0])
    path = tmp_path / "a-seed0.jsonl"
    path.write_text(json.dumps(row | {"state": state, "value": value}) + "\n")
    with pytest.raises(InvalidInput, match=f"a trial that is {state} cannot have the value {value}"):
        read(path)
