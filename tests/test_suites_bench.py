from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cells
import crew
import kept
import regret
import standings
import suites
import tasks
from bounce import Space
from bounce.benchmarks.problem import Problem
from bounce.errors import InvalidInput, InvalidOption
from cells import Cell, Run
from labels import Label, labels
from regret import Board, Scale, p_worse
from tasks import GROUPS, PROBLEMS, compiler, designs
from tasks.independent import MixInt, Pbo
from tasks.landscapes import Lock, Royal, Staircase
from tasks.learning import Features, NoisyPipeline
from tasks.task import Hidden, Repeatable

ROOT = Path(__file__).parent.parent
OURS = [entry.name for entry in PROBLEMS.values() if entry.group != "paper"]
QUICK = "plateau-royal4"  # needs no package and no program
RANDOM = Label("random", "random")


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what runs set in the environment."""
    for name in crew.THREADS:
        monkeypatch.setenv(name, "1")


def problem_or_skip(name: str, seed: int = 0) -> Problem:
    reason = PROBLEMS[name].missing()
    if reason is not None:
        pytest.skip(reason)
    return PROBLEMS[name].make(seed)


def pbo(number: int) -> Callable[[Sequence[int]], float]:
    """A plain function of the suite, as it is maximised there."""
    pytest.importorskip("ioh", reason="the package ioh is not installed")
    problem = Pbo(number, instance=1)
    return lambda bits: -problem({f"x{i}": bool(bit) for i, bit in enumerate(bits)})


# The problems


@pytest.mark.parametrize("name", OURS)
def test_a_problem_has_finite_values_that_a_second_copy_repeats(name: str) -> None:
    problem = problem_or_skip(name)
    points = problem.space.decode(problem.space.sample(2, rng=np.random.default_rng(5)))
    values = [problem(point) for point in points]
    assert all(math.isfinite(value) for value in values)
    assert PROBLEMS[name].make(0)(points[0]) == values[0]
    assert problem.name == name


def test_the_split_is_of_the_promised_size_and_every_family_is_on_both_sides() -> None:
    names = {group: {e.name for e in tasks.chosen(group)} for group in GROUPS}
    assert {group: len(own) for group, own in names.items()} == {"choose": 21, "report": 56, "paper": 10, "noise": 12}
    assert sum(map(len, names.values())) == len(set().union(*names.values())) == len(PROBLEMS)
    families = [{e.family for e in tasks.chosen(group)} for group in ("choose", "report")]
    assert families[0] == families[1] == set(tasks.FAMILIES) - {"paper", "noise"}


def test_no_data_set_and_no_source_is_in_both_groups() -> None:
    for word in ("wine", "iris", "breast_cancer", "digits", "diabetes", "toolbox", "machine"):
        assert len({e.group for e in PROBLEMS.values() if e.group != "noise" and word in e.name.split("-")}) == 1


def test_the_document_shows_the_split() -> None:
    assert tasks.split() in (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")


def test_a_wrong_group_or_problem_is_named() -> None:
    with pytest.raises(InvalidInput, match="no group 'tune'; the groups are choose, report, paper, noise"):
        tasks.chosen("tune")
    with pytest.raises(InvalidInput, match="no problem 'pbo-two'"):
        tasks.chosen(names="pbo-onemax,pbo-two")


def test_the_published_optima_of_the_pseudo_boolean_functions() -> None:
    ones, zeros = [1] * 64, [0] * 64
    assert [pbo(number)(ones) for number in (1, 2, 19, 20, 21)] == [64, 64, 64, 128, 192]
    assert [pbo(number)(zeros) for number in (1, 2, 19, 20, 21)] == [0, 0, 64, 128, 192]
    assert pbo(3)(ones) == 64 * 65 / 2
    assert pbo(2)([1, 1, 1, 0] + [1] * 60) == 3
    assert pbo(19)([0, 1] * 32) == 0  # every pair of neighbours differs
    queens = np.zeros((8, 8), dtype=int)
    queens[np.arange(8), [0, 4, 7, 5, 2, 6, 1, 3]] = 1
    assert pbo(23)(queens.ravel().tolist()) == 8
    assert pbo(18)([1] * 64) == pytest.approx(64**2 / (2 * sum(k**2 for k in range(1, 64))))


def test_the_problems_of_the_first_suite_have_a_random_position_and_scale() -> None:
    pytest.importorskip("ioh", reason="the package ioh is not installed")
    ones = {f"x{i}": True for i in range(64)}
    assert Pbo(1)(ones) != Pbo(1, instance=1)(ones) == -64


def test_the_mixed_functions_have_integers_of_four_sizes_and_reals() -> None:
    pytest.importorskip("cocoex", reason="the package coco-experiment is not installed")
    parameters: list[Any] = list(MixInt(1).space.parameters)
    assert [p.size for p in parameters[:32]] == [2] * 8 + [4] * 8 + [8] * 8 + [16] * 8
    assert [(p.type, p.low, p.high) for p in parameters[32:]] == [("real", -5.0, 5.0)] * 8


@pytest.mark.parametrize(
    ("formula", "point", "best"),
    [
        (designs.vessel_formula, {"shell": 13, "head": 7, "radius": 42.0984456, "length": 176.6365958}, 6059.7143),
        (
            designs.reducer_formula,
            {"width": 3.5, "module": 0.7, "teeth": 17, "length1": 7.3, "length2": 7.71532}
            | {"shaft1": 3.350215, "shaft2": 5.286654},
            2994.471,
        ),
        (
            designs.beam_formula,
            {"weld": 32 * 0.20573, "length": 3.470489, "height": 9.036624, "thickness": 32 * 0.20573},
            1.72485,
        ),
        (designs.spring_formula, {"wire": 0.283, "coil": 1.223041, "turns": 9}, 2.65856),
        (designs.gears_formula, {"a": 16, "b": 19, "c": 43, "d": 49}, math.log10(2.70086e-12 + 1e-13)),
    ],
)
def test_the_published_best_design_has_its_cost_and_meets_the_constraints(
    formula: Callable[[Mapping[str, Any]], tuple[float, Any]], point: dict[str, float], best: float
) -> None:
    cost, ratios = formula(point)
    assert cost == pytest.approx(best, rel=1e-5)
    assert all(ratio < 1 + 1e-6 for ratio in ratios)


def test_a_violated_constraint_costs_more_the_more_it_is_violated() -> None:
    thin = [designs.vessel()({"shell": n, "head": 7, "radius": 42.0, "length": 177.0}) for n in (13, 12, 10)]
    assert thin[0] < thin[1] < thin[2]


def test_the_best_points_of_our_landscapes() -> None:
    for problem in (Royal(64, 4), Staircase()):
        assert problem.evaluate(problem.target).tolist() == [problem.optimum]
        rest = problem.evaluate(problem.space.sample(200, rng=np.random.default_rng(0)))
        assert rest.min() > 0
        assert len(set(rest)) < 12  # plateaus
    point: dict[str, Any] = {"b0": True, "b1": True, "i0": 11, "i1": 8, "c0": "d", "c1": "a", "r0": 0.3, "r1": 0.09}
    assert Lock()(point) == pytest.approx(0.0, abs=1e-9)
    assert Lock()(point | {"c0": "a"}) > 1


def test_a_block_of_the_royal_road_counts_only_as_a_whole() -> None:
    problem = Royal(64, 4)
    one, two = problem.target.copy(), problem.target.copy()
    one[0, 0] = two[0, 0] = 1 - one[0, 0]
    two[0, 1] = 1 - two[0, 1]
    assert problem.evaluate(one) == problem.evaluate(two) == 1


def test_hidden_variables_alone_matter() -> None:
    problem, inner = Hidden(Lock(), 60), Lock()
    point = problem.space.decode(problem.space.sample(1, rng=np.random.default_rng(0)))[0]
    active = {parameter.name for parameter in inner.space.parameters}
    other = problem.space.decode(problem.space.sample(1, rng=np.random.default_rng(1)))[0]
    moved = {name: point[name] if name in active else other[name] for name in point}
    assert len(problem.space) == 60
    assert moved != point
    assert problem(moved) == problem(point) == inner({name: point[name] for name in active})
    assert {parameter.name for parameter in problem.space.parameters[:8]} != active
    with pytest.raises(InvalidInput, match="has 8 variables: n must be greater, not 8"):
        Hidden(Lock(), 8)


def test_noise_is_new_in_every_evaluation_and_repeats_with_the_seed() -> None:
    point = {f"x{i}": False for i in range(64)}
    first, again, other = (Repeatable(Royal(64, 4), 2.0, seed) for seed in (3, 3, 4))
    values = [first(point) for _ in range(4)]
    assert len(set(values)) == 4
    assert [again(point) for _ in range(4)] == values
    assert other(point) != values[0]
    assert first.truth(point) == Royal(64, 4)(point) == other.truth(point)
    assert np.mean([first(point) for _ in range(400)]) == pytest.approx(first.truth(point), abs=0.5)


@pytest.mark.slow
def test_the_truth_of_a_noisy_pipeline_is_near_the_mean_of_its_values() -> None:
    problem = NoisyPipeline("wine", 0)
    point = problem.space.decode(problem.space.sample(1, rng=np.random.default_rng(0)))[0] | {"family": "neighbours"}
    values = [problem(point) for _ in range(40)]
    assert len(set(values)) > 30
    assert problem.truth(point) == problem.truth(point) == NoisyPipeline("wine", 9).truth(point)
    assert problem.truth(point) == pytest.approx(np.mean(values), abs=0.5 * float(np.std(values)))


def test_features_have_a_price_and_no_feature_is_a_guess() -> None:
    problem = Features("wine")
    off = {f"feature{i}": False for i in range(64)} | {"k": 5, "p": 2.0, "power": 1.0, "weighted": False}
    guess = problem(off)
    assert 1.0 < guess < math.log(3) + 0.01  # three classes of unequal sizes
    assert problem(off | {"feature0": True, "feature6": True}) < guess


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("size") is None, reason="gcc or size is not installed")
def test_optimizing_for_size_makes_the_code_smaller() -> None:
    problem = compiler.toolbox()
    low: dict[str, Any] = {name: least for name, (least, _) in compiler.PARAMS.items()}
    high: dict[str, Any] = {name: most for name, (_, most) in compiler.PARAMS.items()}
    small = problem(low | {"level": "-Os"} | dict.fromkeys(problem.flags, False))
    large = problem(high | {"level": "-O3"} | dict.fromkeys(problem.flags, True))
    assert 1000 < small < large


def test_a_problem_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.task.find_spec", lambda module: None)
    assert PROBLEMS["pbo-mis"].missing() == "pbo-mis needs ioh: pip install 'bounce-bo[suites]'"
    monkeypatch.setattr("tasks.compiler.shutil.which", lambda tool: None)
    assert "needs the program gcc" in (PROBLEMS["gcc-toolbox"].missing() or "")
    usable, reasons = cells.available(["pbo-mis", QUICK])
    assert usable == [QUICK]
    assert list(reasons) == ["pbo-mis"]


# Labels


def test_a_label_is_one_word_with_options() -> None:
    found = labels("bounce,tpe,bounce:initial_dims=15:method.caution=1.0,bounce:method=paper")
    assert [label.name for label in found][:2] == ["bounce", "tpe"]
    assert found[2].options == {"initial_dims": 15, "method": {"caution": 1.0}}
    assert found[3].options == {"method": "paper"}
    bounce = found[2].make(Royal(64, 4).space, 10, 0)
    assert bounce.options["initial_dims"] == 15
    assert bounce.options["method"] == {"caution": 1.0}


def test_a_label_can_be_defined_in_several_parts() -> None:
    found = labels("bounce", ["early=budget_to_input=50", "early=method=paper", "early=method.caution=2.0", "before"])
    assert [label.name for label in found] == ["bounce", "early", "before"]
    assert found[1].options == {"budget_to_input": 50, "method": {"base": "paper", "caution": 2.0}}
    assert found[2].options == {}


@pytest.mark.parametrize(
    ("text", "definitions", "said"),
    [
        ("bonce", (), "there is no method 'bonce'; the names are bounce, "),
        ("bounce:initial_dims", (), "an option must be FIELD=VALUE"),
        ("bounce:seed=3", (), "seed cannot be an option of a label"),
        ("bounce:method.cation=1", (), "method has no field 'cation'"),
        ("bounce:initial_dims=many", (), "initial_dims must be an integer"),
        ("tpe:x=1", (), "there is no method 'tpe:x=1'"),
        ("bounce", ("tpe=x=1",), "a label must be a new name"),
    ],
)
def test_a_wrong_label_is_refused_before_anything_runs(text: str, definitions: tuple[str, ...], said: str) -> None:
    with pytest.raises((InvalidInput, InvalidOption), match=said):
        labels(text, definitions)


# Runs


def test_a_run_keeps_the_curve_and_is_found_again(tmp_path: Path) -> None:
    cell = Cell(tmp_path, QUICK, RANDOM, 3, 12)
    assert cell.missing()
    cell.write(cells.make(cell))
    run = cells.read(cell.path)
    assert not cell.missing()
    assert len(run.best) == 12
    assert list(run.best) == sorted(run.best, reverse=True)
    assert run.truth == {}
    assert run.at(12) == run.best[-1]
    assert run.at(13) is None
    assert [path.name for path in tmp_path.rglob("*.*")] == ["random-12-seed3.json"]
    again = cells.make(cell)
    assert again.best == run.best


def test_only_the_true_value_of_a_noisy_run_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = tasks.Entry("noisy", "noisy", "choose", lambda seed: Repeatable(Royal(64, 4), 3.0, seed))
    monkeypatch.setitem(PROBLEMS, "noisy", entry)
    run = cells.make(Cell(tmp_path, "noisy", RANDOM, 0, 30))
    assert sorted(run.truth) == [5, 10, 25, 30]
    assert all(value == int(value) for value in run.truth.values())
    assert (run.at(4), run.at(24), run.at(30)) == (None, run.truth[10], run.truth[30])
    assert run.lowest == min(run.truth.values())


def test_the_reported_point_is_what_a_method_recommends() -> None:
    class Trial:
        point = {"x": 1}  # noqa: RUF012

    class Optimizer:
        best = Trial()

    class Wiser(Optimizer):
        def recommend(self) -> Any:
            return type("Other", (), {"point": {"x": 2}})

    assert cells.reported(Optimizer()) == {"x": 1}
    assert cells.reported(Wiser()) == {"x": 2}


def test_a_label_that_had_other_options_is_refused(tmp_path: Path) -> None:
    cell = Cell(tmp_path, QUICK, RANDOM, 0, 5)
    cell.write(cells.make(cell))
    other = Cell(tmp_path, QUICK, Label("random", "bounce", {"initial_dims": 9}), 0, 5)
    with pytest.raises(InvalidInput, match="use another label or delete the file"):
        other.missing()


def test_a_run_that_was_stopped_is_made_again_with_a_higher_limit(tmp_path: Path) -> None:
    cell = Cell(tmp_path, QUICK, RANDOM, 0, 10**5, 0.05)
    cell.write(cells.make(cell))
    assert 0 < len(cells.read(cell.path).best) < 10**5
    assert not cell.missing()
    assert Cell(tmp_path, QUICK, RANDOM, 0, 10**5, 1.0).missing()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"best": [')
    with pytest.raises(InvalidInput, match=r"run\.json is not a run"):
        cells.read(tmp_path / "run.json")


@pytest.mark.slow
def test_only_missing_runs_are_made_and_a_failed_one_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = suites.all_cells([QUICK, "plateau-staircase"], [RANDOM], [0, 1], tmp_path, evaluations=6)
    broken = Cell(tmp_path, QUICK, Label("wrong", "no such method"), 0, 6)
    failed = crew.run_all([broken, *wanted], jobs=1)
    assert len(failed) == 1
    assert "wrong on plateau-royal4, seed 0: InvalidInput: there is no baseline" in failed[0]
    assert not any(cell.missing() for cell in wanted)
    said = capsys.readouterr().out
    assert "5 of 5" in said
    assert "to go" in said
    kept = {cell.path: cell.path.stat().st_mtime_ns for cell in wanted}
    wanted[2].path.unlink()
    suites.run(methods="random", problems=f"{QUICK},plateau-staircase", seeds="0-1", evaluations=6, out=tmp_path)
    assert "4 runs, 3 exist" in capsys.readouterr().out
    changed = [path for path, time in kept.items() if path.stat().st_mtime_ns != time]
    assert changed == [wanted[2].path]


@pytest.mark.slow
def test_a_killed_command_leaves_whole_files_and_continues(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "bench" / "suites.py"), "run", "--problems", QUICK, "--methods", "random"]
    command += ["--seeds", "0-399", "--evaluations", "30", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("3 of"):
                break
        process.kill()
    made = sorted(tmp_path.rglob("*.json"))
    assert 3 <= len(made) < 400
    assert all(len(cells.read(path).best) == 30 for path in made)
    assert not Cell(tmp_path, QUICK, RANDOM, 0, 30).missing()
    assert Cell(tmp_path, QUICK, RANDOM, 399, 30).missing()


@pytest.mark.slow
def test_a_run_whose_process_dies_is_reported_and_the_next_one_is_made(tmp_path: Path) -> None:
    endless, short = (Cell(tmp_path, QUICK, RANDOM, 0, n) for n in (10**7, 5))
    team = crew.Crew([endless, short], jobs=1)
    try:
        assert team.begin()
        team.workers[0].process.kill()
        assert list(team.ended()) == [(endless, "its process ended with code -9")]
        assert team.begin()
        assert list(team.ended()) == [(short, None)]
        assert not team.begin()
    finally:
        team.stop()
    assert [path.name for path in tmp_path.rglob("*.json")] == ["random-5-seed0.json"]


def test_the_time_to_go_is_the_mean_of_the_method() -> None:
    clock = crew.Clock(jobs=2)
    rest = [Cell(Path(), QUICK, Label(name, "random"), 0, 5) for name in ("slow", "quick", "new")]
    assert crew.spell(clock.left(rest)) == "unknown"
    for label, seconds in (("slow", 100.0), ("slow", 200.0), ("quick", 10.0)):
        clock.note(label, seconds)
    assert clock.left(rest) == pytest.approx((150 + 10 + 80) / 2)
    assert [crew.spell(s) for s in (5, 90, 7200, 200_000)] == ["5 s", "1.5 min", "2.0 h", "2.3 d"]


# Regrets


def made(problem: str, label: str, seed: int, best: Sequence[float], truth: Mapping[int, float] | None = None) -> Run:
    return Run(problem, label, seed, len(best), {}, list(best), truth or {}, 3600.0, 0.0, 0.0)


def board(ends: Mapping[str, Mapping[str, Sequence[float]]], chosen: Sequence[str] | None = None) -> Board:
    """Constant runs of 25 evaluations, by problem and label, one per seed."""
    return Board(
        (
            made(problem, label, seed, [end] * 25)
            for problem, own in ends.items()
            for label, values in own.items()
            for seed, end in enumerate(values)
        ),
        chosen,
    )


def test_regret_is_zero_for_the_best_and_one_for_the_median_of_random_search() -> None:
    found = board({"p": {"random": [10.0, 12.0, 14.0], "ours": [2.0, 7.0, 32.0]}})
    assert found.scale("p", 25) == Scale(2.0, 10.0)
    assert found.regrets("p", 25) == {"random": [0.8, 1.0, 1.2], "ours": [0.0, 0.5, 3.0]}
    assert Scale(0.0, 1.0)(1e9) == regret.MOST


def test_labels_that_are_not_compared_still_set_the_scale() -> None:
    found = board({"p": {"random": [10.0], "other": [0.0], "ours": [5.0]}}, ["ours"])
    assert found.regrets("p", 25) == {"ours": [0.5]}


def test_the_scale_is_positive_where_random_search_is_as_good_as_the_best() -> None:
    curves = {"random": [4.0] * 25 + [0.0] * 25, "ours": [2.0] * 50}
    early = Board(made("p", label, 0, curve) for label, curve in curves.items())
    assert early.scale("p", 50) == Scale(0.0, 4.0)  # that of mark 25
    assert early.regrets("p", 50) == {"random": [0.0], "ours": [0.5]}
    always = board({"p": {"random": [0.0], "ours": [8.0]}})
    assert always.regrets("p", 25) == {"random": [0.0], "ours": [1.0]}
    same = board({"p": {"random": [3.0], "ours": [3.0]}})
    assert same.regrets("p", 25) == {"random": [0.0], "ours": [0.0]}


def test_ranks_regrets_and_the_worst_seed_by_hand() -> None:
    found = board(
        {
            "p": {"random": [10.0, 10.0], "ours": [0.0, 5.0]},
            "q": {"random": [1.0, 1.0], "ours": [0.0, 4.0]},
            "only random": {"random": [1.0, 1.0]},
        },
        ["ours", "random"],
    )
    ours, chance = regret.rows(found, 25)
    if ours.label == "random":
        ours, chance = chance, ours
    assert (ours.problems, ours.rank, chance.rank) == (2, 1.5, 1.5)
    assert ours.regret == pytest.approx((0.25 + 2.0) / 2)
    assert ours.error == pytest.approx(np.std([0.25, 2.0], ddof=1) / math.sqrt(2))
    assert (ours.worst, ours.worst_at) == (4.0, "q")
    assert (ours.worse, ours.clearly) == (1, 0)
    assert (chance.worse, chance.clearly) == (0, 0)


def test_clearly_worse_than_random_search_takes_five_seeds_of_one_sign() -> None:
    worse = board({"p": {"random": [1.0, 2.0, 3.0, 4.0, 5.0], "ours": [1.1, 2.3, 3.4, 4.6, 5.8]}})
    assert {row.label: (row.worse, row.clearly) for row in regret.rows(worse, 25)} == {"random": (0, 0), "ours": (1, 1)}
    assert p_worse({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}) == 1.0
    assert p_worse({s: s + 1.0 for s in range(5)}, dict.fromkeys(range(5), 0.0)) == pytest.approx(1 / 2**5)
    assert p_worse(dict.fromkeys(range(5), 0.0), {s: s + 1.0 for s in range(5)}) == 1.0


def test_only_common_seeds_count() -> None:
    runs = [made("p", "random", s, [float(s)] * 25) for s in range(4)]
    runs += [made("p", "ours", s, [float(s)] * 25) for s in (2, 3, 9)]
    assert Board(runs).common("p", 25) == {"random": {2: 2.0, 3: 3.0}, "ours": {2: 2.0, 3: 3.0}}
    assert Board(runs).common("p", 26) == {}


def test_noisy_runs_are_scored_by_their_truth() -> None:
    runs = [made("p", "random", 0, [-9.0] * 25, {25: 4.0}), made("p", "ours", 0, [-5.0] * 25, {10: 2.0, 25: 3.0})]
    assert Board(runs).scale("p", 25) == Scale(2.0, 2.0)
    assert Board(runs).regrets("p", 25) == {"random": [1.0], "ours": [0.5]}


def test_two_labels_are_compared_by_paired_tests() -> None:
    low, high = [0.1, 0.2, 0.3, 0.4, 0.5], [1.1, 1.3, 1.5, 1.7, 1.9]
    found = regret.duel(
        board(
            {
                "won": {"a": low, "b": high, "random": high},
                "lost": {"a": high, "b": low, "random": high},
                "lost too": {"a": [2 * v for v in high], "b": low, "random": high},
                "even": {"a": low, "b": low, "random": high},
                "alone": {"a": low},
            },
            ["a", "b"],
        ),
        25,
    )
    assert (found.won, found.lost, found.tied) == (1, 2, 1)
    assert (found.lower, found.higher) == (1, 2)
    assert found.difference > 0
    assert found.worst_at == "lost too"


def test_the_tables_show_every_label_problem_and_mark(tmp_path: Path) -> None:
    found = board({"p": {"random": [10.0, 12.0], "ours": [1.0, 2.0]}, "q": {"random": [1.0, 1.0]}}, ["ours", "random"])
    marks = found.marks()
    text = standings.document(found, marks, 1)
    assert marks == [25]
    assert "| 25 | ours | 1 | 1.00 | 0.050 ± 0.000 | 0.10 (p) | 0 | 0 |" in text
    assert "| p | 2 | 1.5 | 11 |" in text
    assert "1 problems are left out" in text
    assert "| 25 | 0 | 0 | 1 | 1 | 0 | -0.950 ± 0.000 | -0.95 (p) |" in standings.comparison(found, marks)
    standings.picture(found, 25, tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 5000


def test_the_commands_read_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label, end in (("random", 9.0), ("bounce", 3.0)):
        run = made(QUICK, label, 0, [end] * 50)
        Cell(tmp_path, QUICK, Label(label, label), 0, 50).write(run)
    document = tmp_path / "doc.md"
    document.write_text("<!-- suites-choose: begin -->\nold\n<!-- suites-choose: end -->\n")
    suites.table(group="choose", evaluations=50, out=tmp_path, markdown=True, document=document)
    assert "| 50 | bounce | 1 | 1.00 |" in capsys.readouterr().out
    text = document.read_text()
    assert "| 50 | bounce | 1 | 1.00 |" in text
    assert "![suites-choose](suites-choose.png)" in text
    assert "old" not in text
    suites.compare("bounce", "random", group="choose", evaluations=50, out=tmp_path)
    assert "bounce against random" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="there are no runs of tpe"):
        suites.table(methods="tpe", evaluations=50, out=tmp_path)
    with pytest.raises(InvalidInput, match="not 'bounce' twice"):
        suites.compare("bounce", "bounce", out=tmp_path)


# Runs that are kept


def test_a_kept_run_has_the_values_of_its_file_at_all_marks(tmp_path: Path) -> None:
    curve = np.minimum.accumulate(np.random.default_rng(0).normal(size=200)).tolist()
    plain = made("p", "ours", 3, curve)
    noisy = made("q", "ours", 3, curve, {5: 0.1 + 0.2, 25: 1 / 3, 100: -1e-17})
    stopped = Run("p", "slow", 0, 200, {"method": {"caution": 1.0}}, curve[:60], {}, 1.0, 0.0, 0.0, "abc-dirty")
    file = tmp_path / "data" / "runs.csv"
    kept.write(file, [plain, noisy, stopped])
    again = {(run.problem, run.label): run for run in kept.read(file)}
    for run in (plain, noisy, stopped):
        other = again[run.problem, run.label]
        assert [other.at(n) for n in (*kept.AT, 201)] == [run.at(n) for n in (*kept.AT, 201)]
        assert (other.lowest, len(other.best)) == (run.lowest, len(run.best))
        assert (other.seed, other.evaluations, other.options, other.revision) == (
            run.seed,
            run.evaluations,
            run.options,
            run.revision,
        )
    text = file.read_text()
    kept.write(file, reversed(kept.read(file)))
    assert file.read_text() == text


def test_tables_have_kept_runs_and_the_files_of_the_folder_take_precedence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def put(folder: str, label: str, seed: int, end: float) -> None:
        cell = Cell(tmp_path / folder, QUICK, Label(label, label), seed, 50)
        cell.write(made(QUICK, label, seed, [end] * 50))

    file = tmp_path / "kept.csv"
    for label, seed, end in (("random", 0, 9.0), ("random", 1, 9.0), ("bounce", 0, 3.0), ("other", 0, 1.0)):
        put("first", label, seed, end)
    suites.keep(methods="random,bounce", evaluations=50, out=tmp_path / "first", kept=file)
    put("second", "bounce", 0, 5.0)
    put("second", "bounce", 1, 6.0)
    board = suites.board_of(None, QUICK, "bounce,random", tmp_path / "second", kept=file, evaluations=50)
    assert board.common(QUICK, 50) == {"bounce": {0: 5.0, 1: 6.0}, "random": {0: 9.0, 1: 9.0}}
    suites.table(methods="bounce,random", evaluations=50, out=tmp_path / "second", kept=file)
    suites.compare("bounce", "random", evaluations=50, out=tmp_path / "none", kept=file)
    said = capsys.readouterr().out
    assert "| plateau-royal4 | 2 | 5.5 / 5.5 | 9 / 9 |" in said
    assert "bounce against random" in said
    suites.keep(evaluations=50, out=tmp_path / "second", kept=file)
    assert [(r.label, r.seed, r.at(50)) for r in kept.read(file)] == [
        ("bounce", 0, 5.0),
        ("bounce", 1, 6.0),
        ("random", 0, 9.0),
        ("random", 1, 9.0),
    ]
    suites.keep(forget="bounce", methods="bounce", evaluations=50, out=tmp_path / "first", kept=file)
    assert [(r.label, r.seed, r.at(50)) for r in kept.read(file) if r.label == "bounce"] == [("bounce", 0, 3.0)]
    assert "4 runs before, 2 removed, 1 read, 3 now" in capsys.readouterr().out


def test_a_picture_with_kept_runs_has_only_the_evaluations_that_they_have(tmp_path: Path) -> None:
    runs = [made("p", label, 0, [float(200 - n) for n in range(200)]) for label in ("random", "ours")]
    assert Board(runs).steps(5, 200) == list(range(5, 201))
    kept.write(tmp_path / "kept.csv", runs[:1])
    mixed = Board([*kept.read(tmp_path / "kept.csv"), runs[1]])
    assert mixed.steps(5, 200) == [5, 10, 25, 50, 75, 100, 150, 200]
    standings.picture(mixed, 200, tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 5000


def test_a_file_that_has_no_runs_is_named(tmp_path: Path) -> None:
    assert kept.read(tmp_path / "none.csv") == []
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"other\.csv is not a file of runs: its columns must be problem,label"):
        kept.read(other)
    kept.write(other, [made("p", "ours", 0, [1.0] * 25)])
    other.write_text(other.read_text().replace("1.0", "one", 1))
    with pytest.raises(InvalidInput, match=r"other\.csv, line 2, is not a run: could not convert"):
        kept.read(other)


def test_no_seed_of_an_optimizer_draws_the_target_of_a_problem() -> None:
    space: Space = Royal(64, 4).space
    drawn = {row.tobytes() for seed in range(10) for row in space.sample(5, rng=np.random.default_rng(seed))}
    assert Royal(64, 4).target[0].tobytes() not in drawn
