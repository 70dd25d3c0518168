from __future__ import annotations

import gzip
import importlib.util
import json
import lzma
import math
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
from bounce import benchmarks
from bounce.benchmarks import DataError, Labs, Noisy, Padded, Problem, Randomized, contamination, data, maxsat
from bounce.benchmarks.ackley import Ackley53
from bounce.benchmarks.branin import Branin
from bounce.benchmarks.contamination import Contamination25
from bounce.benchmarks.hartmann import Hartmann6
from bounce.benchmarks.maxsat import Formula, MaxSat
from bounce.benchmarks.mopta import Mopta08
from bounce.benchmarks.pest import Pest25
from bounce.errors import EvaluationFailed, InvalidInput, InvalidPoint
from bounce.spaces.parameters import Binary, Categorical, Codes, Integer, Kind, Real
from bounce.spaces.space import Space

SHARED = Path(os.environ.get("BOUNCE_DATA", "absent")).parent / "fixtures" / "benchmark_values.json"
NEEDS = {
    "maxsat60": "frb10-6-4",
    "maxsat125": "cluster125",
    "cluster60": "cluster60",
    "svm53": "slice53",
    "svm388": "slice388",
    "lasso-dna": "dna",
    "mopta08": "mopta08",
}
IMPORTS = {"svm53": "sklearn", "svm388": "sklearn", "lasso-dna": "celer", "lasso-hard": "celer"}


@cache
def loaded(name: str) -> Problem:
    return benchmarks.load(name)


def load_or_skip(name: str) -> Problem:
    """Load a problem, or skip the test if its data or its package is not there."""
    if name in NEEDS and data.find(data.files([NEEDS[name]])[0]) is None:
        pytest.skip(f"the data file {NEEDS[name]} is neither in $BOUNCE_DATA nor in the cache")
    if name in IMPORTS and importlib.util.find_spec(IMPORTS[name]) is None:
        pytest.skip(f"{IMPORTS[name]} is not installed")
    return loaded(name)


def sampled(problem: Problem, n: int, seed: int = 0) -> Codes:
    return problem.space.sample(n, rng=np.random.default_rng(seed))


def published() -> dict[str, dict[str, Any]]:
    if not SHARED.exists():
        return {}
    values: dict[str, dict[str, Any]] = json.loads(SHARED.read_text(encoding="utf-8"))
    return values


# published values


@pytest.mark.skipif(not SHARED.exists(), reason="there is no fixtures/benchmark_values.json beside $BOUNCE_DATA")
@pytest.mark.parametrize("key", [*published()] or ["absent"])
def test_values_are_the_published_ones(key: str) -> None:
    fixture = published()[key]
    base = key.removesuffix("_randomized")
    name = {"hartmann6_500": "hartmann500", "branin2_500": "branin500"}.get(base, base)
    problem = load_or_skip(name)
    codes = np.array(fixture["x"]) if "x" in fixture else sampled(problem, len(fixture["y"]))
    for native in ("x2", "x6"):
        if native in fixture:
            low, high = np.array(fixture["lb"]), np.array(fixture["ub"])
            codes[:, : len(low)] = (np.array(fixture[native]) - low) / (high - low)
    variant = Randomized(problem) if key.endswith("_randomized") else problem
    tolerance = 1e-6 if name == "contamination25" else 1e-9  # the published Contamination is in single precision
    np.testing.assert_allclose(variant.evaluate(codes), fixture["y"], rtol=tolerance)
    calls = [variant(point) for point in variant.space.decode(codes)]
    np.testing.assert_allclose(calls, fixture["y"], rtol=tolerance)


def test_pest_control_has_the_values_of_the_paper() -> None:
    problem = benchmarks.load("pest25")
    fives = {f"x{i}": 5 for i in range(25)}
    assert problem(fives) == pytest.approx(12.57, rel=1e-9)
    assert problem(fives | {"x24": 1}) == pytest.approx(12.07, rel=1e-9)
    fours = {f"x{i}": 4 for i in range(24)} | {"x24": 1}
    assert problem.optimum is not None
    assert problem(fours) == pytest.approx(problem.optimum, rel=1e-12)  # better than the paper's best


def test_maxsat60_is_best_at_the_all_zero_assignment() -> None:
    problem = load_or_skip("maxsat60")
    assert isinstance(problem, MaxSat)
    assert problem(dict.fromkeys([f"x{i}" for i in range(60)], False)) == pytest.approx(-195.65275362, rel=1e-9)
    assert problem.optimum == pytest.approx(-195.65275362, rel=1e-9)
    assert np.unique(problem.formula.weights, return_counts=True)[1].tolist() == [60, 638]
    assert problem.formula.weights.mean() == pytest.approx(0, abs=1e-12)
    assert problem.formula.weights.std() == pytest.approx(1)
    assert problem.evaluate(sampled(problem, 500)).min() > -195.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bits", "reals", "value"),
    [
        (50, (0.5, 0.5, 0.5), 0.28574738),
        (25, (0.5, 0.5, 0.5), 0.39965696),
        (50, (0.0, 1.0, 1.0), 0.21453606),
        (0, (0.5, 0.5, 0.5), 1.0),
    ],
)
def test_svm53_has_its_check_values(bits: int, reals: tuple[float, ...], value: float) -> None:
    codes = np.array([[1.0] * bits + [0.0] * (50 - bits) + [*reals]])
    assert load_or_skip("svm53").evaluate(codes)[0] == pytest.approx(value, rel=5e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tolerance", "middle", "low", "high"),
    [
        ("svm388", 5e-8, 0.23598755, 0.24439387, 0.24720934),
        ("lasso-dna", 1e-3, 0.30446, 0.31028, 5.98070),
        ("lasso-hard", 1e-3, 7.87712, 2.47652, 99.14882),
        ("mopta08", 5e-8, 334.14323, 623.21887, 481.30409),
    ],
)
def test_real_problems_have_their_check_values(
    name: str, tolerance: float, middle: float, low: float, high: float
) -> None:
    problem = load_or_skip(name)
    codes = np.array([[0.5], [0.0], [1.0]]) * np.ones(len(problem.space))
    np.testing.assert_allclose(problem.evaluate(codes), [middle, low, high], rtol=tolerance)


def test_optima_are_reached() -> None:
    inspected = "1101101011010110101101010"  # of all 2^25 points, the best
    branin, hartmann = benchmarks.load("branin500"), benchmarks.load("hartmann500")
    best = [0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053]
    centre = {f"x{i}": 0.5 for i in range(500)}
    reached: dict[Problem, dict[str, float]] = {
        benchmarks.load("ackley53"): {f"x{i}": 0 for i in range(53)},
        benchmarks.load("contamination25"): {f"x{i}": int(bit) for i, bit in enumerate(inspected)},
        branin: centre | {"x0": math.pi, "x1": 2.275},
        hartmann: centre | {f"x{i}": x for i, x in enumerate(best)},
    }
    for problem, point in reached.items():
        assert problem.optimum is not None
        assert problem(point) == pytest.approx(problem.optimum, rel=1e-12, abs=1e-12)
        assert problem.evaluate(sampled(problem, 200)).min() > problem.optimum


def test_the_contamination_optimum_is_a_local_one() -> None:
    problem = Contamination25()
    best = np.array([float(bit) for bit in "1101101011010110101101010"])
    neighbours = np.abs(best - np.eye(25))
    assert problem.evaluate(neighbours).min() > problem.optimum


@pytest.mark.parametrize("n", range(2, 15))
def test_no_sequence_is_better_than_the_published_optimum(n: int) -> None:
    problem = Labs(n)
    assert problem.evaluate(problem.space.grid()).min() == pytest.approx(problem.optimum, rel=1e-12)


def test_the_optimum_of_labs_is_known_up_to_66_signs() -> None:
    assert Labs(50).optimum == pytest.approx(-8.170, abs=5e-4)
    assert Labs(66).optimum == pytest.approx(-(66**2) / (2 * 257))
    assert Labs(67).optimum is None


# the problems against their definitions


@given(st.lists(st.booleans(), min_size=2, max_size=80))
def test_labs_is_the_negated_merit_factor(bits: list[bool]) -> None:
    n, signs = len(bits), [1 if bit else -1 for bit in bits]
    energy = sum(sum(signs[i] * signs[i + k] for i in range(n - k)) ** 2 for k in range(1, n))
    assert Labs(n)({f"x{i}": bit for i, bit in enumerate(bits)}) == pytest.approx(-(n**2) / (2 * energy), rel=1e-12)


@given(st.lists(st.booleans(), min_size=25, max_size=25))
def test_contamination_follows_every_chain(bits: list[bool]) -> None:
    start, spread, removed = contamination.Contamination25()._rates
    kept = np.zeros(25)
    for chain in range(100):
        z = start[chain]
        for stage, inspect in enumerate(bits):
            z = z - removed[stage, chain] * z if inspect else z + spread[stage, chain] * (1 - z)
            kept[stage] += z < 0.1
    cost = 1.01 * sum(bits) - (kept / 100 - 0.95).sum()
    assert Contamination25()({f"x{i}": bit for i, bit in enumerate(bits)}) == pytest.approx(cost, rel=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=25, max_size=25))
def test_pest_control_draws_the_same_numbers_at_every_station(actions: list[int]) -> None:
    resistance = {1: 2 / 7, 2: 3 / 7, 3: 3 / 7, 4: 5 / 7}
    growth = {1: 1 / 7, 2: 2.5 / 7, 3: 2 / 7, 4: 0.5 / 7}
    price = {0: 0.0, 1: 1.0, 2: 0.8, 3: 0.7, 4: 0.5}
    discount = {0: 0.0, 1: 0.2, 2: 0.3, 3: 0.3, 4: 0.0}
    pest = np.random.RandomState(0).beta(1, 30, 100)
    spread = np.random.RandomState(0).beta(1, 17 / 3, 100)
    cost = 0.0
    for action in actions:
        cost += price[action] * (1 - discount[action] * actions.count(action) / 25) + float(np.mean(pest > 0.1))
        if action == 0:
            pest = pest + spread * (1 - pest)
        else:
            pest = pest * (1 - np.random.RandomState(0).beta(1, resistance[action], 100))
            resistance[action] += growth[action] / 25
    assert Pest25().evaluate(np.array([actions], dtype=float))[0] == pytest.approx(cost, rel=1e-9)


clauses_over = st.integers(1, 130).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(
                st.integers(0, 10**18).map(float),
                st.lists(st.integers(-n, n).filter(bool), max_size=5),
            ),
            min_size=1,
            max_size=20,
        ),
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


@given(clauses_over)
def test_a_formula_weighs_exactly_the_clauses_that_hold(
    case: tuple[int, list[tuple[float, list[int]]], list[bool]],
) -> None:
    n, clauses, bits = case
    total = sum(int(weight) for weight, literals in clauses if any(bits[abs(v) - 1] == (v > 0) for v in literals))
    assert Formula.of(n, clauses).satisfied(np.array([bits], dtype=float))[0] == float(total)


WCNF = "c a comment\np wcnf 3 4 100\n5 1 -2 0\n100 2 3 0\n\n7 -3 0\n1 1 -1 0\n"


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_formula_is_read_from_a_file_also_if_compressed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"formula.wcnf{suffix}"
    content = WCNF.encode()
    path.write_bytes({"": content, ".gz": gzip.compress(content), ".xz": lzma.compress(content)}[suffix])
    formula = maxsat.read(path)
    assert formula.variables == 3
    assert formula.satisfied(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])).tolist() == [108.0, 13.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "there are 0 clauses"),
        ("5 1 0\n", "line 1 comes before"),
        ("p cnf 3 4\n", "should be 'p wcnf"),
        ("p wcnf 3 1 9\n5 1 4 0\n", "line 2 should be a weight, literals and 0"),
        ("p wcnf 3 1 9\n5 1 2\n", "line 2 should be a weight, literals and 0"),
        ("p wcnf 3 1 9\nh 1 2 0\n", "invalid literal"),
        ("p wcnf 3 2 9\n5 1 0\n", "there are 1 clauses"),
    ],
)
def test_a_file_that_is_no_formula_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "formula.wcnf"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"formula\.wcnf is not a weighted formula in the wcnf format: .*{complaint}"):
        maxsat.read(path)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"formula.wcnf{suffix}"
        path.write_bytes(pack(WCNF.encode())[:-5])
        with pytest.raises(DataError, match="is not a weighted formula"):
            maxsat.read(path)


def test_maxsat125_accepts_the_users_own_copy_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUNCE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match="run `bounce data fetch cluster125`"):
        benchmarks.load("maxsat125")
    path = tmp_path / "cluster-expansion-IS1_5.0.5.0.0.5_softer_periodic.wcnf"
    path.write_text("p wcnf 125 2 1000000000000000000\n1000000000000000000 125 -64 0\n200000000000000 -1 -65 0\n")
    problem = benchmarks.load("maxsat125")
    assert len(problem.space) == 125
    assert problem.optimum == -(1000000000000000000.0 + 200000000000000 - 118261114081858)
    ones = np.ones((1, 125))
    assert problem.evaluate(ones)[0] == -1000000000000000000.0
    path.write_text(WCNF)
    with pytest.raises(DataError, match="is not the 125-variable instance: it has 3 variables"):
        benchmarks.load("maxsat125")


@pytest.mark.slow
def test_cluster60_weighs_its_clauses_exactly() -> None:
    problem = load_or_skip("cluster60")
    assert isinstance(problem, MaxSat)
    assert len(problem.formula.weights) == 61_993
    path = data.locate("cluster60")
    with lzma.open(path, "rt", encoding="ascii") as lines:
        clauses = [list(map(int, line.split())) for line in lines if line[0] not in "pc"]
    for row, value in zip(codes := sampled(problem, 3), problem.evaluate(codes), strict=True):
        holding = (clause[0] for clause in clauses if any((row[abs(v) - 1] == 1) == (v > 0) for v in clause[1:-1]))
        assert value == -float(sum(holding))


# the executable


def an_executable(folder: Path, script: str) -> Path:
    path = folder / "simulator"
    path.write_text(f"#!{sys.executable}\n{script}\n")
    path.chmod(0o755)
    return path


MIDDLE = np.full((1, 124), 0.5)


@pytest.mark.skipif(os.name != "posix", reason="the test writes an executable script")
def test_mopta08_runs_in_a_folder_of_its_own_that_is_removed(tmp_path: Path) -> None:
    script = (
        f"import os; open({str(tmp_path / 'where')!r}, 'w').write(os.getcwd())\n"
        "x = [float(line) for line in open('input.txt')]\n"
        "numbers = [sum(x), *([-1.0] * 66), 0.25, 0.5]\n"
        "open('output.txt', 'w').write('\\n'.join(map(str, numbers)))"
    )
    problem = Mopta08(an_executable(tmp_path, script))
    assert problem.evaluate(MIDDLE)[0] == 62.0 + 10.0 * 0.75
    where = Path((tmp_path / "where").read_text())
    assert where != Path.cwd()
    assert not where.exists()


@pytest.mark.skipif(os.name != "posix", reason="the test writes an executable script")
@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("import select; select.select([], [], [])", "did not finish within 0.5 s"),
        ("raise SystemExit(3)", "wrote no output"),
        ("pass", "wrote no output"),
        ("open('output.txt', 'w').write('1 2 3')", "should have written 69 numbers, not '1 2 3'"),
        ("open('output.txt', 'w').write('nan ' * 69)", "should have written 69 numbers"),
        ("open('output.txt', 'w').write('no numbers')", "should have written 69 numbers"),
    ],
)
def test_an_executable_that_fails_gives_an_error(tmp_path: Path, script: str, complaint: str) -> None:
    with pytest.raises(EvaluationFailed, match=complaint):
        Mopta08(an_executable(tmp_path, script), timeout=0.5 if "select" in script else 60.0).evaluate(MIDDLE)


# names


SHAPES = {
    "labs50": [Kind.BINARY] * 50,
    "maxsat60": [Kind.BINARY] * 60,
    "maxsat125": [Kind.BINARY] * 125,
    "cluster60": [Kind.BINARY] * 60,
    "pest25": [Kind.CATEGORICAL] * 25,
    "contamination25": [Kind.BINARY] * 25,
    "ackley53": [Kind.BINARY] * 50 + [Kind.REAL] * 3,
    "svm53": [Kind.BINARY] * 50 + [Kind.REAL] * 3,
    "svm388": [Kind.REAL] * 388,
    "lasso-dna": [Kind.REAL] * 180,
    "lasso-hard": [Kind.REAL] * 1000,
    "mopta08": [Kind.REAL] * 124,
    "branin500": [Kind.REAL] * 500,
    "hartmann500": [Kind.REAL] * 500,
}


def test_the_names_are_those_of_the_papers_problems() -> None:
    assert benchmarks.names() == list(SHAPES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kinds"), SHAPES.items())
def test_every_problem_knows_its_name_and_its_variables(name: str, kinds: list[Kind]) -> None:
    problem = load_or_skip(name)
    assert problem.name == name
    assert list(problem.space.kinds) == kinds


def test_labs_takes_any_length() -> None:
    assert benchmarks.load("labs20") == Labs(20)
    assert benchmarks.load("labs7", randomized=True).name == "labs7-randomized"
    with pytest.raises(InvalidInput, match="at least 2 signs, not 1"):
        benchmarks.load("labs1")


@pytest.mark.parametrize("name", ["labs", "labs0", "LABS50", "labs-5", "", "svm"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"no problem '{name}'; .*he names are labs50, maxsat60, .*hartmann500, and"):
        benchmarks.load(name)


@pytest.mark.parametrize(("name", "meant"), [("pest", "pest25"), ("Ackley35", "ackley53"), ("LABS50", "labs50")])
def test_a_name_that_is_nearly_known_is_answered_with_the_one_that_may_be_meant(name: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=f"no problem '{name}'; did you mean '{meant}'[?] The names are"):
        benchmarks.load(name)


@pytest.mark.parametrize("name", ["branin500", "hartmann500"])
def test_what_was_never_randomised_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"no randomised version of '{name}' was published"):
        benchmarks.load(name, randomized=True)


@pytest.mark.parametrize("name", ["svm53", "svm388", "lasso-dna", "lasso-hard"])
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bounce.benchmarks.problem.find_spec", lambda module: None)
    with pytest.raises(InvalidInput, match=rf"{name} needs .*: pip install 'bounce-bo\[benchmarks\]'"):
        benchmarks.load(name)


def test_importing_the_benchmarks_imports_nothing_heavy() -> None:
    heavy = ["sklearn", "celer", "pandas", "matplotlib", "rich", "typer"]
    script = f"import sys, bounce.benchmarks; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# properties of every problem

CHEAP: list[Problem] = [
    Labs(13),
    Contamination25(),
    Pest25(),
    Ackley53(),
    Branin(),
    Hartmann6(),
    MaxSat("small", Formula.of(6, [(2.0, [1, -6]), (3.0, [-2, 3, 4]), (9.0, [-5])]).normalized(), None),
]
VARIANTS = [
    *CHEAP,
    *(Randomized(problem) for problem in CHEAP if problem.shifts is not None),
    *(Noisy(problem, 0.5, seed=3) for problem in CHEAP),
    *(Padded(problem, 60) for problem in CHEAP),
    Noisy(Randomized(Padded(Ackley53(), 60)), 0.1),
]


@pytest.mark.parametrize("problem", VARIANTS, ids=lambda problem: problem.name)
def test_a_problem_is_a_function_that_changes_nothing(problem: Problem) -> None:
    codes = sampled(problem, 7)
    kept = codes.copy()
    values = problem.evaluate(codes)
    assert values.shape == (7,)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(codes, kept)
    np.testing.assert_array_equal(values, problem.evaluate(codes))
    np.testing.assert_allclose([problem.evaluate(row[None])[0] for row in codes], values, rtol=1e-12)
    assert problem.evaluate(codes[:0]).shape == (0,)


@pytest.mark.parametrize("problem", VARIANTS, ids=lambda problem: problem.name)
def test_codes_and_native_values_agree(problem: Problem) -> None:
    codes = sampled(problem, 7)
    points = problem.space.decode(codes)
    kept = [dict(point) for point in points]
    calls = [problem(point) for point in points]
    assert points == kept
    assert all(type(value) is float for value in calls)
    np.testing.assert_allclose(calls, problem.evaluate(codes), rtol=1e-9)


@pytest.mark.parametrize("problem", VARIANTS, ids=lambda problem: problem.name)
def test_a_problem_can_be_sent_to_another_process(problem: Problem) -> None:
    codes = sampled(problem, 3)
    values = problem.evaluate(codes)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem)).evaluate(codes), values)


@pytest.mark.parametrize("problem", VARIANTS, ids=lambda problem: problem.name)
def test_a_point_outside_the_space_is_refused(problem: Problem) -> None:
    (point,) = problem.space.decode(sampled(problem, 1))
    for wrong in (point | {"x0": 17.5}, point | {"more": 1}, {k: v for k, v in point.items() if k != "x1"}):
        with pytest.raises(InvalidPoint):
            problem(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["svm53", "svm388", "lasso-dna", "lasso-hard", "maxsat60", "cluster60", "mopta08"])
def test_problems_with_data_are_functions_of_codes_and_of_native_values(name: str) -> None:
    problem = load_or_skip(name)
    codes = sampled(problem, 2)
    if name == "svm53":
        codes[:, 3:50] = 0  # few features: a fit takes a second
    kept = codes.copy()
    values = problem.evaluate(codes)
    np.testing.assert_array_equal(codes, kept)
    calls = [problem(point) for point in problem.space.decode(codes[:1])]
    np.testing.assert_allclose(calls, values[:1], rtol=1e-9)
    assert np.isfinite(values).all()


# wrappers


@dataclass(frozen=True)
class Toy(Problem):
    """A different value at every point of a mixed space."""

    name = "toy"

    @cached_property
    def space(self) -> Space:
        return Space(
            [Categorical("x0", ["a", "b", "c"]), Binary("x1"), Integer("x2", 1, 4), Categorical("x3", ["u", "v"])]
        )

    @property
    def shifts(self) -> Codes:
        return np.array([2.0, 1.0, 3.0, 0.0])

    def evaluate(self, codes: Codes) -> Codes:
        values: Codes = codes @ np.array([1.0, 10.0, 100.0, 1000.0])
        return values


SMALL: list[Problem] = [Toy(), Labs(9), CHEAP[-1]]


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
def test_randomisation_moves_the_values_and_keeps_all_of_them(problem: Problem) -> None:
    randomized = Randomized(problem)
    grid = problem.space.grid()
    before, after = problem.evaluate(grid), randomized.evaluate(grid)
    assert (before != after).any()
    np.testing.assert_allclose(np.sort(before), np.sort(after), rtol=1e-12)
    assert randomized.optimum == problem.optimum
    assert randomized.space is problem.space


@pytest.mark.parametrize("problem", [problem for problem in CHEAP if problem.shifts is not None])
def test_randomisation_is_a_bijection_that_leaves_the_reals(problem: Problem) -> None:
    shifts, space = problem.shifts, problem.space
    assert shifts is not None
    assert shifts.shape == (len(space),)
    assert (shifts[space.reals] == 0).all()
    assert (shifts == np.floor(shifts)).all()
    codes = sampled(problem, 50)
    back = codes.copy()
    discrete = space.combinatorial
    back[:, discrete] = (codes[:, discrete] - shifts[discrete]) % space.cardinalities[discrete]
    np.testing.assert_array_equal(Randomized(problem).evaluate(back), problem.evaluate(codes))


def test_noise_depends_on_the_seed_and_the_point_alone() -> None:
    problem = Ackley53()
    codes = sampled(problem, 4000)
    noise = Noisy(problem, 2.0, seed=1).evaluate(codes) - problem.evaluate(codes)
    assert noise.mean() == pytest.approx(0.0, abs=0.15)
    assert noise.std() == pytest.approx(2.0, rel=0.05)
    assert len(set(noise)) == len(noise)
    np.testing.assert_allclose(
        Noisy(problem, 2.0, seed=1).evaluate(codes[::-1]), noise[::-1] + problem.evaluate(codes[::-1])
    )
    other = Noisy(problem, 2.0, seed=2).evaluate(codes) - problem.evaluate(codes)
    assert abs(np.corrcoef(noise, other)[0, 1]) < 0.1


@pytest.mark.parametrize(("sd", "seed"), [(-1.0, 0), (math.nan, 0), (math.inf, 0), (1.0, -1), (1.0, 2**64)])
def test_impossible_noise_is_refused(sd: float, seed: int) -> None:
    with pytest.raises(InvalidInput):
        Noisy(Labs(5), sd, seed)


@pytest.mark.parametrize("problem", [*CHEAP, Toy()], ids=lambda problem: problem.name)
def test_padding_adds_variables_without_effect(problem: Problem) -> None:
    padded = Padded(problem, 70)
    d = len(problem.space)
    assert len(padded.space) == 70
    assert padded.space.parameters[:d] == problem.space.parameters
    assert set(padded.space.kinds[d:]) == {problem.space.kinds[-1]}
    assert padded.optimum == problem.optimum
    a, b = sampled(padded, 5, seed=1), sampled(padded, 5, seed=2)
    b[:, :d] = a[:, :d]
    np.testing.assert_array_equal(padded.evaluate(a), problem.evaluate(a[:, :d]))
    np.testing.assert_array_equal(padded.evaluate(a), padded.evaluate(b))


def test_inactive_reals_lie_between_0_and_1() -> None:
    assert benchmarks.load("branin500").space.parameters[2:] == tuple(Real(f"x{i}", 0.0, 1.0) for i in range(2, 500))


def test_padding_to_fewer_variables_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'labs5' has 5 variables: n must be greater, not 5"):
        Padded(Labs(5), 5)


def test_a_problem_can_be_given_to_the_optimizer() -> None:
    problem = Padded(Labs(6), 10)
    result = bounce.minimize(problem, problem.space, budget=12, seed=0)
    assert result.best is not None
    assert result.best.value == problem(result.best.point)
