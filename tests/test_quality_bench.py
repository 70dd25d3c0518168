from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console

import batches
import grid
import latency
import quality
import report
import results
import scores
import whole
from bounce.baselines.rivals.catalogue import RIVALS
from bounce.errors import InvalidInput
from bounce.paper.traces import FIELDS, Trace, read
from quality import METHODS, Cell, run_all
from scores import AUTHORS, Scores
from whole import Whole

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what runs set in the environment."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


def trace(values: list[float], seconds: float = 0.5) -> Trace:
    fixed = dict.fromkeys(FIELDS, 0) | {"point": {}, "state": "done", "seconds_ask": seconds}
    return Trace(Path("x.jsonl"), [fixed | {"id": i, "value": value} for i, value in enumerate(values)])


def falling(end: float, n: int = 200) -> Trace:
    return trace(np.linspace(end + 1.0, end, n).tolist())


def measured(ends: dict[str, dict[str, list[float]]]) -> Scores:
    """Scores of runs that fall to given ends, by problem and method, one per seed."""
    return scores.of_traces(
        (problem, method, seed, falling(end))
        for problem, methods in ends.items()
        for method, values in methods.items()
        for seed, end in enumerate(values)
    )


def test_the_best_so_far_is_taken_at_the_marks_that_a_run_reached() -> None:
    found = scores.of_traces(
        [("p", "m", 0, trace([3.0, 1.0, 2.0, 0.0])), ("p", "m", 7, trace([5.0, 4.0]))], marks=(2, 3, 4)
    )
    runs = found["p"]["m"]
    assert runs.at(2) == {0: 1.0, 7: 4.0}
    assert runs.at(3) == {0: 1.0}
    assert runs.at(4) == {0: 0.0}
    assert runs.length == {0: 4, 7: 2}


def test_the_time_of_an_ask_leaves_the_initial_points_out() -> None:
    rows = trace([1.0] * 8, seconds=2.0).rows
    for row in rows[:5]:
        row["seconds_ask"] = 100.0
    assert scores.of_traces([("p", "m", 0, Trace(Path("x"), rows))])["p"]["m"].seconds == 2.0


def test_ranks_by_hand() -> None:
    found = measured(
        {
            "p": {"bounce": [0.0, 0.0], "tpe": [1.0, 1.0], "random": [2.0, 2.0]},
            "q": {"bounce": [1.0, 1.0], "tpe": [0.0, 0.0], "random": [1.0, 1.0]},
        }
    )
    assert scores.ranks(found, 200) == {"bounce": [1.0, 2.5], "tpe": [2.0, 1.0], "random": [3.0, 2.5]}


def test_the_rounding_of_a_mean_decides_no_rank_and_is_no_error() -> None:
    found = measured({"p": {"bounce": [0.1] * 3, "tpe": [0.1]}})  # the mean of the three is another number
    assert scores.ranks(found, 200) == {"bounce": [1.5], "tpe": [1.5]}
    assert scores.mean_and_error([12.07] * 10, 10) == "12.07 ± 0"


def test_a_wrong_cell_of_a_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("method,problem_randomized,seed,evaluations,best\nauthors,p,0,50,low\n")
    with pytest.raises(InvalidInput, match=r"runs.csv, line 2: .*'low'"):
        scores.with_published({}, [path])
    path.write_text(",".join(grid.COLUMNS) + "\nbounce,real,25,many" + "," * (len(grid.COLUMNS) - 4) + "\n")
    with pytest.raises(InvalidInput, match=r"runs.csv, line 2: .*'many'"):
        grid.read(path)


def test_who_was_stopped_before_a_mark_has_no_rank_there() -> None:
    found = scores.of_traces([("p", "fast", 0, falling(9.0)), ("p", "slow", 0, falling(0.0, n=60))])
    assert scores.ranks(found, 200) == {"fast": [1.0]}
    assert scores.ranks(found, 50) == {"fast": [2.0], "slow": [1.0]}


def test_the_test_is_paired_by_seed() -> None:
    ours = {seed: float(seed) for seed in range(8)}
    theirs = {seed: seed + 0.1 + 0.01 * seed for seed in range(8)}
    assert scores.p_value(ours, theirs) == pytest.approx(2 / 2**8)  # all of eight differences have one sign
    assert scores.p_value(ours, {seed: theirs[seed] for seed in (3, 4, 5)}) == pytest.approx(2 / 2**3)
    assert scores.p_value(ours, ours) == 1.0
    assert scores.p_value(ours, {7: 1.0, 99: 2.0}) is None


def test_a_verdict_counts_problems_on_which_the_difference_is_beyond_chance() -> None:
    low, high = [0.1 * i for i in range(8)], [1.0 + 0.2 * i for i in range(8)]
    found = measured(
        {
            "won": {"bounce": low, "tpe": high},
            "lost": {"bounce": high, "tpe": low},
            "lost too": {"bounce": high, "tpe": low},
            "even": {"bounce": low, "tpe": [0.05, 0.15, 0.15, 0.35, 0.35, 0.55, 0.55, 0.75]},
            "missing": {"bounce": low},
        }
    )
    assert scores.verdict(found, "tpe", 200) == (1, 2)


def test_the_table_says_mean_error_p_and_what_was_stopped() -> None:
    cells = [("p", "bounce", seed, falling(seed * 0.1)) for seed in range(8)]
    cells += [("p", "tpe", seed, falling(2.0 + seed * 0.3)) for seed in range(8)]
    cells += [("p", "slow", seed, falling(5.0, n=120 + seed)) for seed in range(2)]
    text = scores.markdown(scores.of_traces(cells))
    mean, error = 2.0 + 0.3 * 3.5, 0.3 * np.std(range(8), ddof=1) / np.sqrt(8)
    row = next(line for line in text.splitlines() if line.startswith("| tpe | 8 |"))
    assert f" {mean:.4g} ± {error:.2g} | {2 / 2**8:.2g} | 0.5 |" in row
    assert "| tpe | 2.00 | 1 | 1 | 0 |" in text
    row = next(line for line in text.splitlines() if line.startswith("| slow | 2 |"))
    assert "not reached" in row
    assert "slow: 2 of 2 runs were stopped after 120 to 121 evaluations." in text


def test_a_mean_has_the_digits_that_its_error_calls_for() -> None:
    offset = -3e12
    cells = [("p", "bounce", seed, falling(offset + 8.0 * seed)) for seed in range(4)]
    error = 8.0 * np.std(range(4), ddof=1) / 2
    assert f"| -2999999999988 ± {error:.2g} |" in scores.markdown(scores.of_traces(cells))


def test_runs_of_the_authors_code_come_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(
        "method,problem_randomized,seed,evaluations,best\n"
        "authors-cpu,labs50,0,200,-4.0\nauthors-gpu,labs50,0,200,-5.0\nrandom,labs50,0,200,-1.0\n"
        "authors-cpu,other,0,200,-4.0\n"
    )
    found = scores.with_published(measured({"labs50-randomized": {"bounce": [0.0]}}), [path])
    assert list(found) == ["labs50-randomized"]
    assert sorted(found["labs50-randomized"][AUTHORS].at(200).values()) == [-5.0, -4.0]
    assert list(scores.ranks(found, 200)) == ["bounce"]
    assert f"| {AUTHORS} | 2 | not reached | not reached | -4.5 ± 0.5 |" in scores.markdown(found)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="must have the columns best, evaluations"):
        scores.with_published(found, [path])


@pytest.mark.slow
def test_the_picture_is_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    methods = [f"method {i}" for i in range(8)]
    cells = [
        (f"problem {p}", method, seed, trace((rng.random(200) / np.arange(1, 201)).tolist()))
        for p in range(10)
        for method in methods
        for seed in range(3)
    ]
    scores.picture(cells, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").stat().st_size < 150_000


@pytest.mark.slow
def test_the_command_makes_only_the_runs_that_are_missing(tmp_path: Path) -> None:
    cell = Cell(tmp_path / "traces", "labs50", "random", 0, 8, 60.0)
    folder = cell.path.parent
    quality.run(cell)
    marked: list[dict[str, Any]] = read(cell.path).rows
    assert len(marked) == 8
    marked[-1]["value"] = -99.0
    (folder / "random-seed0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked))
    (folder / "random-seed1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked[:3]))
    document = tmp_path / "RESULTS.md"
    document.write_text("Before.\n<!-- quality: begin -->\nold\n<!-- quality: end -->\nAfter.\n")
    options = {"out": "traces", "problems": "labs50", "seeds": "0-1", "evals": "8", "methods": "bounce,random"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = bench("quality", *words, "--jobs", "2", "--results", str(document), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read(folder / "random-seed0.jsonl").rows[-1]["value"] == -99.0  # was complete, is not repeated
    assert len(read(folder / "random-seed1.jsonl").rows) == 8  # was too short, is made again
    assert len(read(folder / "bounce-seed1.jsonl").rows) == 8
    assert not list(folder.glob("*.part"))
    text = document.read_text()
    assert (tmp_path / "traces" / "quality.md").read_text().strip() in text
    assert "![quality](quality.png)" in text
    assert "old" not in text
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert (tmp_path / "quality.png").exists()


@pytest.mark.slow
def test_a_run_beyond_its_limit_is_stopped_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "LOOK", 0.1)
    cell = Cell(tmp_path, "labs50", "bounce", 0, 100_000, 0.5)
    run_all([cell], 1, Console(stderr=True))
    assert json.loads(cell.stopped.read_text()) == 0.5
    assert 0 < len(read(cell.path).rows) < 100_000
    assert not cell.missing()
    assert not replace(cell, limit=0.4).missing()
    assert replace(cell, limit=2.0).missing()  # with a higher limit it is made again
    assert cell.trace() == replace(cell, limit=2.0).trace()  # and is shown until then
    cell.stopped.unlink()
    assert cell.trace() is None  # a shorter run, not a stopped one
    assert len(cut.rows if (cut := replace(cell, evals=3).trace()) else []) == 3


def test_a_stopped_run_keeps_its_whole_lines(tmp_path: Path) -> None:
    cell = Cell(tmp_path, "labs50", "random", 0, 8, 60.0)
    quality.run(replace(cell, seed=1))
    text = replace(cell, seed=1).path.read_text()
    cell.stop()  # it had written nothing, or was over just before: nothing to keep
    cell.part.write_text("half a li")
    cell.stop()
    assert cell.trace() is None
    cell.part.write_text("".join(text.splitlines(keepends=True)[:3]) + "half a li")
    cell.stop()
    assert len(read(cell.path).rows) == 3
    assert not cell.part.exists()
    assert not cell.missing()


def test_an_option_beside_quick_overrides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Cell] = []
    monkeypatch.setattr(quality, "run_all", lambda cells, jobs, console: made.extend(cells))
    with pytest.raises(InvalidInput, match="there is no trace of 3 evaluations"):
        quality.main(quick=True, methods="random", problems="labs50", evals=3, out=tmp_path)
    assert [(cell.title, cell.method, cell.seed) for cell in made] == [
        ("labs50-randomized", "random", seed) for seed in quality.numbers(quality.QUICK[2])
    ]
    assert {cell.evals for cell in made} == {3}


@pytest.mark.slow
def test_a_run_that_fails_prints_a_message_and_the_others_continue(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cells = [Cell(tmp_path, problem, "random", 0, 3, 60.0) for problem in ("nonsense", "labs50")]
    run_all(cells, 1, Console(stderr=True))
    assert "random on nonsense, seed 0: InvalidInput: there is no problem 'nonsense'" in capfd.readouterr().err
    assert [cell.missing() for cell in cells] == [True, False]


def bench(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / f"{script}.py"), *words]
    return subprocess.run(command, cwd=cwd, env=dict(os.environ), capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ("quality", "--methods nonsense", "quality: there is no method 'nonsense'; the names are bounce, random"),
        ("results", "--out /dev/null/x", "results: '/dev/null/x' must be a folder"),
        ("latency", "--methods nonsense", "latency: there is no method 'nonsense'; the names are bounce, random"),
    ],
)
def test_bad_input_to_a_command_is_one_sentence(script: str, words: str, said: str, tmp_path: Path) -> None:
    done = bench(script, *words.split(), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"problems": "nonsense"}, "there is no problem 'nonsense'; the names are labs50"),
        ({"seeds": "0-99999999999"}, "is more than 10000 seeds"),
        ({"seeds": "many"}, "seeds must be numbers such as 0-9 or 0,1,5, not 'many'"),
        ({"seeds": "5-2"}, "the first seed of '5-2' must not be greater than the last"),
        ({"only_report": True}, "there is no trace of 200 evaluations"),
        ({"published": [Path("nowhere.csv")]}, "there is no file 'nowhere.csv'"),
        ({"results": Path("nowhere.md")}, "there is no file 'nowhere.md'"),
        ({"out": Path("/dev/null")}, "'/dev/null' must be a folder"),
    ],
)
def test_bad_options_are_refused_before_a_run(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"out": tmp_path} | options
    with pytest.raises(InvalidInput, match=said):
        quality.main(**given)


def test_a_document_without_markers_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "RESULTS.md"
    document.write_text("<!-- quality: end --> <!-- quality: begin -->")
    with pytest.raises(InvalidInput, match="must have the markers"):
        report.renew(document, "quality", "text")


@pytest.mark.parametrize("quick", [True, False])
def test_the_results_are_made_by_commands_whose_options_exist(quick: bool, tmp_path: Path) -> None:
    document = tmp_path / "RESULTS.md"
    made = results.commands(document, quick=quick, jobs=2, out=tmp_path, reference=(tmp_path, tmp_path))
    assert sum(["--results", str(document)] == [a, b] for words in made for a, b in pairwise(words)) == 4
    assert len(results.commands(document, quick=quick, jobs=2, out=tmp_path)) == len(made) - 1  # no whole runs
    modules = {module.__file__: module for module in (quality, batches, whole, latency)}
    for script, *words in made:
        app = typer.Typer()
        app.command()(modules[script].main)
        typer.main.get_command(app).make_context(script, words)  # raises for an option that does not exist
    packages = [name for name in METHODS if name not in RIVALS and not name.startswith("bounce-")]
    assert sorted([*results.FAST.split(","), *results.SLOW.split(",")]) == sorted(packages)


def test_the_document_has_the_markers() -> None:
    text = (ROOT / "bench" / "RESULTS.md").read_text()
    for name in ("quality", "batches", "whole", "latency"):
        assert text.count(f"<!-- {name}: begin -->") == text.count(f"<!-- {name}: end -->") == 1


def test_batches_are_compared_after_as_many_batches() -> None:
    runs = {("p", 1, 200): [falling(0.0), falling(2.0)], ("p", 5, 1000): [falling(-1.0, 1000)]}
    lines = batches.markdown(runs).splitlines()
    assert lines[0] == "**p**"
    one, five = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines[-2:])
    assert one[:3] == ["1", "200", "2"]
    assert [float(cell.split()[0]) for cell in one[3:8]] == pytest.approx([1.879, 1.754, 1.503, 1.0, 1.0], abs=1e-3)
    assert [float(cell) for cell in five[3:8]] == pytest.approx([-0.124, -0.249, -0.4995, -1.0, -1.0], abs=1e-3)
    assert [one[8], five[8]] == ["100", "500"]  # half a second per ask


def test_a_batch_has_a_trace_of_its_own(tmp_path: Path) -> None:
    cell = Cell(tmp_path, "labs50", "bounce", 3, 12, 60.0, 5)
    assert cell.path.name == "bounce-batch5-seed3.jsonl"
    quality.run(cell)
    rows = read(cell.path).rows
    assert len(rows) == 12
    assert len({row["seconds_ask"] for row in rows}) == 3  # batches of 5, 5 and 2


def test_whole_runs_are_compared_by_their_ratio() -> None:
    ours = whole.ours("labs50", 0, 8)
    assert ours.best < 0
    assert ours.seconds > 0
    table = whole.markdown([("labs50", 0, Whole(2.0, -4.0), Whole(31.0, -3.5))])
    assert table.splitlines()[-1] == "| labs50 | 0 | 2.0 | -4 | 31 | -3.5 | 16 | 10 |"


@pytest.mark.slow
def test_a_whole_run_of_a_checkout_is_made_in_its_own_folder_with_the_same_seed(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "bounce" / "benchmarks").mkdir(parents=True)
    stubs = {
        "gin.py": "said = []\ndef parse_config_files_and_bindings(files, bindings): said.extend(bindings)\n",
        "torch.py": "import numpy\nseeds, cat = [], numpy.concatenate\n"
        "def set_num_threads(n): assert n == 1\nmanual_seed = seeds.append\n",
        "bounce/__init__.py": "",
        "bounce/benchmarks/__init__.py": "",
        "bounce/bounce.py": "import os, gin, numpy, torch\nclass Bounce:\n def run(self):\n"
        "  assert os.path.samefile(os.getcwd(), os.path.dirname(os.path.dirname(__file__)))\n"
        "  assert 'Bounce.benchmark=@Labs()' in gin.said and os.environ['OMP_NUM_THREADS'] == '1'\n"
        "  assert 'Bounce.maximum_number_evaluations=8' in gin.said and 'PYTHONPATH' not in os.environ\n"
        "  self.fx_global, self.fx_tr = numpy.array([-0.5]), numpy.array([-1.0 - torch.seeds[0]])\n",
    }
    for name, text in stubs.items():
        (checkout / name).write_text(text)
    document = tmp_path / "R.md"
    document.write_text("<!-- whole: begin -->\n<!-- whole: end -->\n")
    words = f"--reference {checkout} --reference-python {sys.executable} --problems labs50 --seed 3 --evals 8"
    done = subprocess.run(
        [sys.executable, str(Path(whole.__file__)), *words.split(), "--results", str(document)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    row = next(line for line in document.read_text().splitlines() if line.startswith("| labs50 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert (cells[0], cells[1], cells[5], cells[7]) == ("labs50", "3", "-4", "10")
    assert float(cells[3]) == pytest.approx(whole.ours("labs50", 3, 8).best, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"document": Path("nowhere.md")}, "there is no file 'nowhere.md'"),
        ({"reference": Path("nowhere")}, "must be a checkout with a folder bounce in it, not 'nowhere'"),
        ({"out": Path("/dev/null")}, "'/dev/null' must be a folder"),
    ],
)
def test_the_results_check_their_options_first(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"quick": True, "out": tmp_path} | options
    with pytest.raises(InvalidInput, match=said):
        results.main(**given)
