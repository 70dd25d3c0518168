"""The room `paper`: figures as data, runs that are continued, claims, and audits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import InvalidInput, InvalidSpace, Real, Space, baselines
from bounce.cli import running
from bounce.cli.verdicts import as_text
from bounce.paper import audit, claims, runs
from bounce.paper import traces as tracing
from bounce.paper.analyses import ANALYSES
from bounce.paper.audit import Disguise, Report, Source, permutation_test
from bounce.paper.claims import FAILS, HOLDS, MISSING, OPEN, Verdict, check
from bounce.paper.figures import Curve, Figure, Method, chosen, figures
from bounce.paper.traces import FIELDS, Trace, read
from bounce.report.figures import _ANALYSES, _curves, audited, draw, summary
from bounce.study.lock import Lock
from spaces import binary, spaces
from terminal import typed

# Figures


def test_the_paper_has_twenty_figures_with_data_and_every_method_and_problem_is_known() -> None:
    found = figures()
    assert sorted(found) == list(range(2, 22))
    for figure in found.values():
        for method in figure.methods:
            assert method.method in baselines.names()
    assert [method.key for method in found[4].methods][:2] == ["bounce", "bounce-default"]
    assert dict(found[4].methods[0].options) == {"method": "paper"}


def test_figures_with_the_same_runs_share_them() -> None:
    found = figures()
    assert [c.name for c in found[6].curves()] == [c.name for c in found[13].curves()]
    assert {c.name for c in found[7].curves()} <= {
        c.name for number in (2, 3, 4, 5, 8, 9, 10) for c in found[number].curves()
    }


def test_batches_have_the_sizes_of_the_paper() -> None:
    one, *_, twenty = figures()[6].curves()[:5]
    assert (one.evaluations, one.setup.options) == (200, {"budget": 200, "batch_size": 1, "method": "paper"})
    assert twenty.setup.options == {"budget": 2000, "batch_size": 20, "method": "paper", "budget_to_input": 500}
    assert {curve.batch for curve in figures()[11].curves() if curve.method.key == "baxus"} == {1}


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(InvalidInput, match="no figure 1 with data; those with data are 2, 3"):
        chosen([1])


def test_the_numbers_that_are_computed_are_those_of_the_paper() -> None:
    assert ANALYSES["zero_sequency"]() == pytest.approx(0.986, abs=5e-4)
    assert ANALYSES["first_share"]() == pytest.approx(0.1805, abs=1e-4)
    assert ANALYSES["last_share"]() == pytest.approx(0.278, abs=5e-4)


# Runs

RANDOM = Method("random", "Random search", "random", {})
BOUNCE = Method("bounce", "Bounce", "bounce", {"method": "paper"})


def small(**other: Any) -> Figure:
    """A figure of runs that take no time."""
    facts = {"problems": ("labs10",), "methods": (BOUNCE, RANDOM), "evaluations": {1: 12}} | other
    return Figure(99, "small", **facts)


def make(figure: Figure, folder: Path, **limits: Any) -> list[runs.Run]:
    wanted = runs.wanted([figure], folder, **limits)
    for run in wanted:
        runs.make(run)
    return wanted


@pytest.mark.parametrize("batch", [1, 3])
def test_a_run_that_was_cut_anywhere_continues_to_the_same_trace(tmp_path: Path, batch: int) -> None:
    figure = small(batches=(batch,), evaluations={batch: 12}, versions=("original",))
    whole = make(figure, tmp_path / "whole", repetitions=1)
    points = {run.path.name: [row["point"] for row in read(run.path).rows] for run in whole}
    for run in whole:
        content = run.path.read_bytes()
        for cut in (0, 1, len(content) // 3, len(content) // 2, len(content) - 1):
            other = tmp_path / "cut" / run.path.name
            other.parent.mkdir(exist_ok=True)
            other.write_bytes(content[:cut])
            runs.make(runs.Run(run.setup, run.seed, other, run.length))
            assert [row["point"] for row in read(other).rows] == points[run.path.name]


class Parent:
    """A parent process that dies after it has been asked a few times."""

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def is_alive(self) -> bool:
        self.answers -= 1
        return self.answers >= 0


@pytest.mark.parametrize("of_figures", [False, True])
@pytest.mark.parametrize(("answers", "lines"), [(4, 2), (5, 2), (6, 3)])
def test_a_worker_whose_parent_died_writes_nothing_more_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_figures: bool, answers: int, lines: int
) -> None:
    """It asks before and after each evaluation."""

    def ended(code: int) -> None:
        raise SystemExit(code)

    parent = Parent(answers)
    monkeypatch.setattr("os._exit", ended)
    monkeypatch.setattr(tracing, "parent_process", lambda: parent)
    setup, path = tracing.Setup("labs10", {"budget": 8, "batch_size": 8}), tmp_path / "a-seed0.jsonl"
    with pytest.raises(SystemExit):
        runs.make(runs.Run(setup, 0, path, 8)) if of_figures else tracing.record(setup, 0, path)
    assert len(read(path).rows) == lines


def test_a_figure_by_batches_leaves_out_a_run_without_a_whole_batch(tmp_path: Path) -> None:
    figure = small(batches=(1, 5), evaluations={1: 6, 5: 6}, versions=("original",), axis="batches")
    made = make(figure, tmp_path, repetitions=1)
    for run in made:
        if "-b5-" in run.path.name:
            run.path.write_text("".join(run.path.read_text().splitlines(keepends=True)[:3]))
    assert any("-b5-" in run.path.name for run in made)
    assert len(draw(figure, lambda curve: runs.traces(curve, tmp_path), tmp_path / "out")) == 3


def test_a_short_run_is_the_beginning_of_a_long_one(tmp_path: Path) -> None:
    short = make(small(), tmp_path, repetitions=1, evaluations=5)
    before = {run.path: run.path.read_text() for run in short}
    assert all(len(text.splitlines()) == 5 for text in before.values())
    for run in make(small(), tmp_path, repetitions=1):
        assert run.path.read_text().startswith(before[run.path])
        assert len(read(run.path).rows) == 12
    assert all(run.finished == 12 for run in runs.wanted([small()], tmp_path, repetitions=1))


def test_a_trace_of_another_version_is_refused_and_stays(tmp_path: Path) -> None:
    (run, *_) = make(small(), tmp_path, repetitions=1, evaluations=5)
    rows = read(run.path).rows
    rows[2]["point"] = {name: not value for name, value in rows[2]["point"].items()}
    damaged = "".join(json.dumps(row) + "\n" for row in rows)
    run.path.write_text(damaged)
    with pytest.raises(InvalidInput, match="cannot be continued: trial 2 has another point"):
        runs.make(runs.Run(run.setup, run.seed, run.path, 12))
    assert run.path.read_text() == damaged


def test_one_failure_does_not_stop_the_other_runs(tmp_path: Path) -> None:
    wanted = runs.wanted([small()], tmp_path, repetitions=1)
    runs.make(replace(wanted[0], length=1))
    (row,) = read(wanted[0].path).rows
    row["point"] = {name: not value for name, value in row["point"].items()}
    wanted[0].path.write_text(json.dumps(row) + "\n")
    seen: list[int] = []
    with ThreadPoolExecutor(1) as executor:
        failed = runs.make_all(wanted, executor, progress=seen.append)
    assert len(failed) == 1
    assert "InvalidInput" in failed[0]
    assert seen[-1] == 12 * (len(wanted) - 1) + 1


@pytest.mark.slow
def test_a_killed_command_continues_to_the_same_result(tmp_path: Path) -> None:
    words = ["paper", "run", "9", "--repetitions", "1", "--evaluations", "40", "--methods", "bounce,random"]
    command = [sys.executable, "-m", "bounce", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list(tmp_path.rglob("*.jsonl")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for folder in (tmp_path, tmp_path / "second"):
        folder.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    names = sorted(path.relative_to(tmp_path) for path in (tmp_path / "paper-runs").rglob("*.jsonl"))
    assert len(names) == 4
    for name in names:
        pair = [read(folder / name).rows for folder in (tmp_path, tmp_path / "second")]
        assert [row["point"] for row in pair[0]] == [row["point"] for row in pair[1]]
        assert len(pair[0]) == 40


# Claims


def traces(ends: list[float], start: float = 10.0, n: int = 4) -> list[Trace]:
    """Runs of n evaluations that end at some values, with seeds 0, 1, ..."""
    row = dict.fromkeys(FIELDS, 0) | {"point": {}, "state": "done"}
    return [
        Trace(Path(f"x-seed{i}.jsonl"), [row | {"value": value} for value in [start] * (n - 1) + [end]])
        for i, end in enumerate(ends)
    ]


def judged(claim: dict[str, Any], values: dict[tuple[str, str], list[float]], **other: Any) -> list[str]:
    """Return the verdicts on a claim, given final values by method and version."""
    keys = list(dict.fromkeys(method for method, _ in values))
    methods = tuple(Method(key, key, key, {}) for key in keys)
    figure = Figure(1, "one", problems=("p",), methods=methods, claims=({"says": "so", **claim},), **other)

    def of(curve: Curve) -> list[Trace]:
        return traces(values.get((curve.method.key, curve.version), []))

    return [verdict.verdict for verdict in check(figure, of)]


def around(mean: float, n: int = 8) -> list[float]:
    return [mean + 0.1 * float(np.sin(i)) for i in range(n)]


def both(**means: float) -> dict[tuple[str, str], list[float]]:
    return {(method, version): around(mean) for method, mean in means.items() for version in ("original", "randomized")}


def test_first_and_second_are_judged_by_means_and_chance() -> None:
    found = both(bounce=1.0, combo=2.0, random=3.0)
    assert judged({"kind": "first", "method": "bounce"}, found) == [HOLDS, HOLDS]
    assert judged({"kind": "first", "method": "combo"}, found) == [FAILS, FAILS]
    assert judged({"kind": "second", "method": "combo"}, found) == [HOLDS, HOLDS]
    assert judged({"kind": "second", "method": "random"}, found) == [FAILS, FAILS]
    near = found | {("bounce", "original"): [1.99, 2.01] * 4, ("combo", "original"): [2.001] * 8}
    assert judged({"kind": "first", "method": "bounce"}, near)[0] == OPEN
    assert judged({"kind": "first", "method": "bounce", "version": "randomized"}, found) == [HOLDS]
    assert judged({"kind": "first", "method": "bounce"}, {("bounce", "original"): [1.0, 1.0]}) == [MISSING, MISSING]


def test_other_ways_to_run_bounce_are_no_rivals_of_it() -> None:
    found = both(**{"bounce": 2.0, "bounce-default": 1.0, "random": 3.0})
    assert judged({"kind": "first", "method": "bounce"}, found) == [HOLDS, HOLDS]


def test_alike_needs_seeds_that_could_show_a_difference() -> None:
    same = {(method, "original"): around(1.0) for method in "ab"}
    claim = {"kind": "alike", "methods": ["a", "b"], "version": "original"}
    assert judged(claim, same) == [HOLDS]
    assert judged(claim, same | {("b", "original"): around(2.0)}) == [FAILS]
    assert judged(claim, {key: values[:3] for key, values in same.items()}) == [OPEN]


def test_a_method_degrades_where_the_randomised_version_is_worse() -> None:
    found = {("a", "original"): around(1.0), ("a", "randomized"): around(2.0)}
    assert judged({"kind": "degrades", "method": "a"}, found) == [HOLDS]
    assert judged({"kind": "degrades", "method": "a", "least": 1}, found) == [HOLDS, HOLDS]
    assert judged({"kind": "degrades", "method": "a", "least": 2}, found) == [HOLDS, FAILS]
    assert judged({"kind": "robust", "methods": ["a"]}, found) == [FAILS]
    assert judged({"kind": "sensitive", "method": "a"}, found) == [HOLDS]
    few = {key: values[:3] for key, values in found.items()}
    assert judged({"kind": "sensitive", "method": "a"}, few) == [OPEN]  # three seeds cannot show it
    assert judged({"kind": "sensitive", "method": "a"}, both(a=1.0)) == [FAILS]
    assert judged({"kind": "robust", "methods": ["a"]}, both(a=1.0)) == [HOLDS]


def test_usually_is_more_than_half_unless_the_claim_says_more() -> None:
    found = both(a=1.0, b=2.0)
    usually = {"kind": "usually-better", "method": "a", "than": "b"}
    assert judged(usually, found) == [HOLDS]
    assert judged(usually | {"share": 0.8}, found) == [HOLDS]
    half = found | {("b", "randomized"): around(0.5)}
    assert judged(usually, half) == [FAILS]
    assert judged(usually | {"share": 0.4}, half) == [HOLDS]
    one = {key: values for key, values in found.items() if key[1] == "original"}
    assert judged(usually, one) == [OPEN]  # of two panels, more than one is needed
    assert judged(usually | {"share": 0.4}, one) == [HOLDS]
    assert judged(usually, one | {("b", "original"): around(0.5)}) == [FAILS]


def test_batches_are_counted_until_the_value_of_single_points_is_reached() -> None:
    assert claims.batches_to_reach(traces([1.0], n=12), 1, 1.0) == 12
    assert claims.batches_to_reach(traces([1.0], n=12), 5, 1.0) == 3
    assert claims.batches_to_reach(traces([1.0], n=12), 5, 0.5) is None
    equal = [0.1] * 3  # whose mean is rounded up
    assert claims.batches_to_reach(traces(equal, n=12), 5, 0.1) == claims.batches_to_reach(traces([0.1], n=12), 5, 0.1)


@pytest.mark.parametrize(
    ("needed", "verdict"),
    [({1: 40, 5: 9}, HOLDS), ({1: 40, 5: 40}, FAILS), ({1: 40, 5: None}, OPEN), ({1: 12, 5: None}, FAILS)],
)
def test_batches_that_were_too_few_to_tell_leave_a_claim_open(needed: dict[int, int | None], verdict: str) -> None:
    assert claims._batches_verdict(needed, {1: 60, 5: 12}) == verdict


# Pictures


@pytest.mark.parametrize("problems", [("a",), ("a", "b"), ("a", "b", "c", "d")])
def test_a_legend_is_not_wider_than_its_picture(problems: tuple[str, ...]) -> None:
    long = Method("bounce-casmopolitan", "Bounce, Casmopolitan's regions", "bounce", {})
    figure = Figure(99, "x", problems, methods=(BOUNCE, long), batches=(1, 3, 20), versions=("original",))
    picture = _curves(figure, [(curve, summary(curve, traces([1.0, 2.0]))) for curve in figure.curves()])
    picture.draw_without_rendering()
    (legend,) = picture.legends
    assert legend.get_window_extent().width <= picture.bbox.width


def test_a_figure_is_drawn_with_its_repetitions_and_its_summary(tmp_path: Path) -> None:
    make(small(), tmp_path / "runs", repetitions=2)
    paths = draw(small(), lambda curve: runs.traces(curve, tmp_path / "runs"), tmp_path)
    assert [path.suffix for path in paths] == [".png", ".svg", ".json"]
    text = paths[1].read_text()
    assert "Bounce (2)" in text
    assert "labs10, randomized" in text
    kept = json.loads(paths[2].read_text())
    assert [len(row["mean"]) for row in kept] == [12] * 4
    first = [read(runs.path_for(tmp_path / "runs", small().curves()[0], seed)).best for seed in range(2)]
    assert kept[0]["mean"] == pytest.approx(np.mean(first, axis=0).tolist(), rel=1e-5)
    assert draw(small(), lambda curve: [], tmp_path) == []


def test_a_curve_has_one_line_in_the_legend_with_the_fewest_and_the_most_repetitions() -> None:
    figure = Figure(99, "x", ("a", "b"), methods=(BOUNCE, RANDOM), versions=("original",))
    numbers = {("a", "bounce"): 3, ("b", "bounce"): 10, ("a", "random"): 2, ("b", "random"): 2}
    shown = [
        (curve, summary(curve, traces([1.0] * numbers[curve.problem, curve.method.key]))) for curve in figure.curves()
    ]
    (legend,) = _curves(figure, shown).legends
    assert [text.get_text() for text in legend.get_texts()] == ["Bounce (3 to 10)", "Random search (2)"]


def test_a_picture_shows_where_methods_end_and_not_the_first_values_of_a_short_run() -> None:
    figure = Figure(99, "x", ("a",), methods=(BOUNCE,), versions=("original",))
    row = dict.fromkeys(FIELDS, 0) | {"point": {}, "state": "done"}
    falling = [
        Trace(Path("x-seed0.jsonl"), [row | {"value": value} for value in [100.0, 50.0, 3.0, 3.0, 3.0] + [2.0] * 25])
    ]
    (axis,) = _curves(figure, [(curve, summary(curve, falling)) for curve in figure.curves()]).axes
    low, high = axis.get_ylim()
    assert low < 2.0 < high < 5.0


@pytest.mark.parametrize("number", [18, 19, 20, 21])
def test_a_title_is_not_wider_than_its_picture(number: int) -> None:
    picture = _ANALYSES[figures()[number].analysis or ""](figures()[number], lambda curve: [])
    picture.draw_without_rendering()
    (title,) = picture.texts
    extent = title.get_window_extent()
    assert picture.bbox.x0 <= extent.x0
    assert extent.x1 <= picture.bbox.x1


def test_the_graphs_of_combo_are_shown_as_the_paper_prints_them() -> None:
    picture = _ANALYSES["combo_categories"](figures()[21], lambda curve: [])
    matrices = [[int(text.get_text()) for text in axis.texts] for axis in picture.axes if axis.texts]
    path = [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0]]
    assert matrices == [[x for row in path for x in row], [int(i != j) for i in range(5) for j in range(5)]]


@pytest.mark.parametrize("number", [18, 19, 20, 21])
def test_the_analyses_are_drawn_without_runs(number: int, tmp_path: Path) -> None:
    assert [path.suffix for path in draw(figures()[number], lambda curve: [], tmp_path)] == [".png", ".svg"]


# Audits


@given(spaces(), st.integers(0, 2**32 - 1))
def test_a_disguise_is_a_bijection(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    disguise = Disguise.random(space, audit.CHANGES, rng=rng)
    if space.size <= 5000:
        grid = space.grid()
        assert len(set(space.keys(disguise.codes(grid)))) == len(grid)
    shown = disguise.space.decode(disguise.space.sample(5, rng=rng))
    assert all(disguise.reveal(point) in space for point in shown)


def test_a_disguise_changes_what_it_says_and_nothing_else() -> None:
    space = binary(40)
    codes = space.sample(3, rng=np.random.default_rng(0))
    for changes, same in (((), True), (("labels", "direction"), True), (("bits",), False)):
        disguise = Disguise.random(space, changes, rng=np.random.default_rng(1))
        assert np.array_equal(disguise.codes(codes), codes) is same
        assert disguise.order == tuple(range(40))
    assert Disguise.random(space, ("order",), rng=np.random.default_rng(1)).order != tuple(range(40))


def test_the_permutation_test_finds_a_difference_and_no_other() -> None:
    rng = np.random.default_rng(0)
    same = [permutation_test(*rng.normal(size=(2, 10))) for _ in range(200)]
    assert 0.02 < np.mean(np.array(same) < 0.05) < 0.09
    assert permutation_test(rng.normal(size=10), rng.normal(3.0, size=10)) < 1e-3
    assert permutation_test(1e15 + np.arange(8.0), 1e15 + 100 + np.arange(8.0)) < 1e-3
    assert permutation_test(np.full(6, 1e308), np.full(6, -1e308)) < 1e-2
    assert permutation_test(np.ones(5), np.ones(5)) == 1.0


class Lexical:
    """An optimizer that tries points in the order of their codes: bits false first. It depends on what is false."""

    def __init__(self, space: Space, budget: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._codes = (rng.random((budget, len(space))) < 0.1).astype(float)
        self._space, self._next = space, 0

    def ask(self) -> list[Any]:
        (point,) = self._space.decode(self._codes[self._next : self._next + 1])
        self._next += 1
        return [type("Asked", (), {"point": point})]

    def tell(self, trial: Any, value: float) -> None:
        pass


def test_an_audit_finds_a_method_that_depends_on_labels_and_passes_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mine", type(sys)("mine"))
    sys.modules["mine"].make = Lexical  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as executor:
        reports = audit.audit(Source("labs10"), ["mine:make", "random"], executor, budget=10, repetitions=12)
    biased, fair = reports
    assert biased.given.shape == biased.disguised.shape == (12, 10)
    assert biased.depends
    assert not fair.depends
    audited(reports, tmp_path / "audit.svg", title="labs10")
    assert "in disguise (12)" in (tmp_path / "audit.svg").read_text()


def test_what_cannot_be_audited_is_refused() -> None:
    with ThreadPoolExecutor(1) as executor:
        for method, changes, said in (
            ("nobody", audit.DEFAULT, "no baseline 'nobody'"),
            ("nowhere:make", audit.DEFAULT, "cannot be imported"),
            ("random", ("colour",), "cannot change 'colour'; it can change labels"),
        ):
            with pytest.raises(InvalidInput, match=said):
                audit.audit(Source("labs10"), [method], executor, budget=5, repetitions=4, changes=changes)


@pytest.mark.parametrize("code", ["def make(:", "nothing", "raise SystemExit(3)"])
def test_an_optimizer_of_ones_own_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    module = f"own{abs(hash(code))}"
    (tmp_path / f"{module}.py").write_text(code)
    for method in (f"{module}:make", ":make"):
        with pytest.raises(InvalidInput, match=f"the method '{method}' cannot be imported: "):
            audit.made(method, Space([Real("a", 0, 1)]), 4, 0)


def test_a_space_that_a_disguise_cannot_show_is_refused() -> None:
    with pytest.raises(InvalidSpace, match="an audit takes no conditions, constraints, outcomes"):
        Disguise.none(Space([Real("a", 0, 1)], outcomes=["strength >= 3"]))


def test_a_misspelt_name_is_refused_before_a_progress_bar_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (["bodii", "--problem", "labs10"], "did you mean 'bodi'?"),
        (["random", "--problem", "labs"], "there is no problem 'labs'"),
        (["random", "--problem", "labs10", "--changes", "colour"], "cannot change 'colour'"),
    ):
        shown = typed(["audit", *words], monkeypatch, capsys, tmp_path)
        assert shown.code != 0
        assert said in shown.err
        assert "runs" not in shown.err


def test_a_claim_is_said_once_before_all_places_where_it_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--repetitions", "2", "--evaluations", "6", "--methods", "bounce,random"]
    typed(["paper", "run", "8", *size], monkeypatch, capsys, tmp_path)
    lines = typed(["paper", "check", "8", "--markdown"], monkeypatch, capsys, tmp_path).out.splitlines()
    assert lines[2].startswith("| 8 | Bounce outperforms all others on both versions | ackley53, original |")
    assert lines[3].startswith("| 8 |  | ackley53, randomized |")


def test_claims_are_read_from_top_to_bottom_in_the_width_of_the_terminal() -> None:
    numbers = "rank 1 of 5; nearest rducb: +0, effect 0; p 1; 5 seeds, 100 to 200 evaluations"
    found = [
        Verdict(4, "Bounce is best", "pest25, original", HOLDS, numbers),
        Verdict(4, "Bounce is best", "pest25, randomized", FAILS, numbers),
        Verdict(8, "Bounce is best", "ackley53, original", OPEN, "p 1"),
    ]
    titles = {4: "PestControl", 8: "Ackley"}
    assert as_text(found, titles, None) == [
        "Figure 4: PestControl",
        "  Bounce is best",
        f"    holds          pest25, original    {numbers}",
        f"    does not hold  pest25, randomized  {numbers}",
        "",
        "Figure 8: Ackley",
        "  Bounce is best",
        "    undecided      ackley53, original  p 1",
    ]
    narrow = as_text(found, titles, 72)
    assert max(map(len, narrow)) <= 72
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(as_text(found, titles, None)).split())


def test_two_marks_are_two_tests() -> None:
    report = Report("x", np.zeros((4, 10)), np.zeros((4, 10)))
    assert report.marks == (5, 10)
    assert report.p_value == 1.0


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        (lambda space, budget, seed: type("Empty", (), {"ask": list})(), "mine:make returned no trial after 0"),
        (lambda space, budget, seed: None, r"mine:make failed in ask\(\): AttributeError"),
        (lambda space, budget: None, r"mine:make failed in \(space, budget, seed\): TypeError"),
    ],
    ids=["no trial", "no optimizer", "other arguments"],
)
def test_a_mistake_in_an_optimizer_of_ones_own_is_said_with_its_name(
    optimizer: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mine", type(sys)("mine"))
    sys.modules["mine"].make = optimizer  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as executor, pytest.raises(InvalidInput, match=said):
        audit.audit(Source("labs10"), ["mine:make"], executor, budget=5, repetitions=4)


def test_a_disguise_that_changes_nothing_is_refused() -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(InvalidInput, match="labels: these changes make no differ"):
        audit.audit(Source("labs10"), ["random"], executor, budget=5, repetitions=4, changes=["labels"])


def damage(content: bytes, how: str) -> bytes:
    """Return a trace of five lines or more with a fault in its fourth."""
    lines = content.splitlines(keepends=True)
    faults = {
        "twice": lines[2],
        "lost": b"",
        "garbage": b"\xff\xfe\x00\n",
        "half": lines[3][:20] + b"\n",
        "empty": b"\n",
        "not a number": lines[3].replace(b'"value": ', b'"value": "x", "was": '),
    }
    return b"".join([*lines[:3], faults[how], *lines[4:]])


@pytest.mark.parametrize("how", ["twice", "lost", "garbage", "half", "empty", "not a number"])
def test_a_damaged_trace_is_made_again_from_where_it_is_damaged(how: str, tmp_path: Path) -> None:
    (run, *_) = make(small(), tmp_path, repetitions=1, evaluations=6)
    whole = run.path.read_bytes()
    points = [row["point"] for row in read(run.path).rows]
    run.path.write_bytes(damage(whole, how))
    assert f"{run.path}, line 4" in (runs.damage(run.path) or "")
    with pytest.raises(InvalidInput, match=r"is damaged: .*line 4"):
        runs.traces(small().curves()[0], tmp_path)
    runs.make(replace(run, length=6))
    assert run.path.read_bytes().startswith(b"".join(whole.splitlines(keepends=True)[:3]))
    assert [row["point"] for row in read(run.path).rows] == points
    assert run.path.with_name(f"{run.path.name}.damaged").read_bytes() == damage(whole, how)


def test_a_damaged_trace_is_named_and_left_out_of_figures_and_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--repetitions", "2", "--evaluations", "6", "--methods", "bounce-default,random"]
    assert typed(["paper", "run", "9", *size], monkeypatch, capsys, tmp_path).code == 0
    path = sorted(tmp_path.rglob("random*-seed0.jsonl"))[0]
    path.write_bytes(damage(path.read_bytes(), "half"))
    name = str(path.relative_to(tmp_path))
    for words in (["paper", "plot", "9"], ["paper", "check", "9"]):
        shown = typed(words, monkeypatch, capsys, tmp_path)
        assert shown.code == 0
        assert f"left out, since it is damaged: {name}, line 4" in shown.err
    kept = json.loads((tmp_path / "paper-figures" / "figure-09.json").read_text())
    assert sorted(curve["repetitions"] for curve in kept) == [1, 2, 2, 2]
    shown = typed(["paper", "run", "9", *size], monkeypatch, capsys, tmp_path)
    assert f"damaged: {name}, line 4" in shown.out
    assert "8 runs, 7 finished\n8 runs, 8 finished" in shown.out
    assert typed(["paper", "plot", "9"], monkeypatch, capsys, tmp_path).err == ""


def test_a_damaged_trace_of_a_run_that_is_kept_is_made_again_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--repetitions", "2", "--evaluations", "6", "--methods", "random"]
    assert typed(["paper", "run", "9", *size], monkeypatch, capsys, tmp_path).code == 0
    assert typed(["paper", "keep"], monkeypatch, capsys, tmp_path).code == 0
    path = sorted(tmp_path.rglob("random*-seed0.jsonl"))[0]
    path.write_bytes(damage(path.read_bytes(), "half"))
    assert "left out, since it is damaged" in typed(["paper", "check", "9"], monkeypatch, capsys, tmp_path).err
    shown = typed(["paper", "run", "9", *size], monkeypatch, capsys, tmp_path)
    assert "1 runs, 0 finished\n1 runs, 1 finished" in shown.out
    assert typed(["paper", "check", "9"], monkeypatch, capsys, tmp_path).err == ""


def test_check_shows_whole_claims_that_were_run_and_counts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed(["paper", "check", "4", "20"], monkeypatch, capsys, tmp_path)
    assert "a share of 0.1805 for the first four categories" in shown.out  # in one line, not cut
    assert "BODi degrades" not in shown.out
    assert "7 of 9 claims have no verdict: too few of their runs are in paper-runs" in shown.out
    assert "no verdict" not in typed(["paper", "check", "20"], monkeypatch, capsys, tmp_path).out


def test_a_misspelt_method_of_figures_is_answered_with_what_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed(["paper", "run", "9", "--methods", "casmopolitain"], monkeypatch, capsys, tmp_path)
    assert "no method 'casmopolitain'; did you mean 'casmopolitan'?" in shown.err
    shown = typed(["paper", "run", "9", "8", "--problems", "ackley"], monkeypatch, capsys, tmp_path)
    assert "no problem 'ackley'; did you mean 'ackley53'? They have ackley53, contamination25" in shown.err


def test_some_methods_and_problems_of_figures_can_be_chosen(tmp_path: Path) -> None:
    chosen_runs = runs.wanted(
        chosen([7, 8]), tmp_path, repetitions=2, methods=["bodi", "random"], problems=["ackley53", "labs50"]
    )
    found = {(run.setup.name, run.setup.method) for run in chosen_runs}
    assert found == {("ackley53", "bodi-published"), ("labs50", "bodi-published"), ("ackley53", "random")}
    assert len(chosen_runs) == 3 * 2 * 2


@pytest.mark.slow
@pytest.mark.xdist_group("dask")
def test_runs_on_a_cluster_are_those_of_processes_and_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    distributed = pytest.importorskip("distributed")
    size = ["--repetitions", "1", "--methods", "bounce-default,random"]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        for count in ("5", "9"):
            words = ["paper", "run", "9", *size, "--evaluations", count, "--dask", cluster.scheduler_address]
            shown = typed(words, monkeypatch, capsys, tmp_path)
            assert shown.code == 0, shown.err
            assert "4 runs, 4 finished" in shown.out
    (tmp_path / "here").mkdir()
    typed(["paper", "run", "9", *size, "--evaluations", "9"], monkeypatch, capsys, tmp_path / "here")
    names = sorted(path.relative_to(tmp_path) for path in (tmp_path / "paper-runs").rglob("*.jsonl"))
    assert len(names) == 4
    for name in names:
        pair = [read(folder / name).rows for folder in (tmp_path, tmp_path / "here")]
        assert [(row["id"], row["point"], row["value"]) for row in pair[0]] == [
            (row["id"], row["point"], row["value"]) for row in pair[1]
        ]
        assert len(pair[0]) == 9


@pytest.mark.slow
@pytest.mark.xdist_group("dask")
def test_a_scheduler_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(running, "PATIENCE", 0.5)
    words = ["paper", "run", "9", "--repetitions", "1", "--evaluations", "5", "--methods", "random"]
    shown = typed([*words, "--dask", "tcp://127.0.0.1:9"], monkeypatch, capsys, tmp_path)
    assert shown.code != 0
    assert "tcp://127.0.0.1:9" in shown.err


def test_one_process_at_a_time_makes_runs_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "paper-runs"
    folder.mkdir()
    lock = Lock(folder / "runs")
    assert lock.acquire()
    words = ["paper", "run", "9", "--repetitions", "1", "--evaluations", "6", "--methods", "random"]
    shown = typed(words, monkeypatch, capsys, tmp_path)
    assert shown.code == 3
    assert "another process is making runs in paper-runs" in shown.err
    lock.close()
