from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path

import pytest

from bounce import Binary, Bounce, Categorical, Integer, InvalidOption, InvalidSpec, MachineFailed, Ordinal, Real, Space
from bounce.optimizer.options import Options
from bounce.optimizer.planner import Planner
from bounce.running.command import Command
from bounce.running.evaluation import evaluate
from bounce.running.imported import Imported
from bounce.running.recorder import ALIKE
from bounce.spec.document import OPTIONS, TOP, example, load
from bounce.spec.spec import Spec
from bounce.trial import Trial

PARAMETER = '[[parameters]]\nname = "x"\ntype = "real"\nlow = 0\nhigh = 1\n'
GOOD = f"budget = 10\n\n{PARAMETER}"


@pytest.fixture(autouse=True)
def _modules_as_before() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(folder: Path, text: str | bytes, name: str = "study.toml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: Path) -> str:
    with pytest.raises(InvalidSpec) as caught:
        load(path).evaluator()
    said = str(caught.value)
    assert said.startswith(str(path))
    return said.removeprefix(str(path)).removeprefix(", ").removeprefix(": ")


# what a spec says


def test_a_spec_says_what_python_would(tmp_path: Path) -> None:
    text = """
name = "tuning"
budget = 60
batch_size = 4
workers = 8
seed = 3
direction = "maximize"
timeout = 90
max_failures = 5
command = ["python3", "{a b}"]

[options]
new_bins = 3
trust_region = "baxus"
low_sequency = true
method = { base = "paper", caution = 1.2 }

[[parameters]]
name = "a b"
type = "real"
low = 1
high = 10.5
log = true

[[parameters]]
name = "n"
type = "integer"
low = -3
high = 3

[[parameters]]
name = "o"
type = "ordinal"
values = [1, 2.5, "three"]

[[parameters]]
name = "c"
type = "categorical"
choices = ["", true, 1]

[[parameters]]
name = "b"
type = "binary"
"""
    spec = load(written(tmp_path, text))
    assert spec == Spec(
        path=tmp_path / "study.toml",
        name="tuning",
        space=Space(
            [
                Real("a b", 1, 10.5, log=True),
                Integer("n", -3, 3),
                Ordinal("o", [1, 2.5, "three"]),
                Categorical("c", ["", True, 1]),
                Binary("b"),
            ]
        ),
        options={
            "budget": 60,
            "batch_size": 4,
            "seed": 3,
            "direction": "maximize",
            "new_bins": 3,
            "trust_region": "baxus",
            "low_sequency": True,
            "method": {"base": "paper", "caution": 1.2},
        },
        workers=8,
        max_failures=5,
        timeout=90.0,
        command=("python3", "{a b}"),
    )
    Bounce(spec.space, **spec.options)
    assert spec.study == tmp_path / "tuning.db"
    assert spec.evaluator() == Command(["python3", "{a b}"], 90, tmp_path, tmp_path / "tuning.trials")
    elsewhere = spec.evaluator(Path("/data/other.db"))
    assert isinstance(elsewhere, Command)
    assert elsewhere.logs == Path("/data/other.trials")


def test_only_budget_and_parameters_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, GOOD, "my.bench.toml")
    monkeypatch.chdir(tmp_path)
    spec = load("my.bench.toml")
    assert spec == Spec(tmp_path / "my.bench.toml", "my.bench", Space([Real("x", 0, 1)]), {"budget": 10})
    assert spec.study == tmp_path / "my.bench.db"
    assert spec.evaluator() is None


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        b'budget = 10\nparameters = [{name = "x", type = "real", low = 0, high = 1}]',
        b'budget = 10\nparameters = [\n  {name = "x", "type" = "real", low = 0,\thigh = 1}, # one\n]\n[options]\n',
    ],
)
def test_the_same_spec_can_be_written_in_several_ways(text: bytes, tmp_path: Path) -> None:
    assert load(written(tmp_path, text)) == load(written(tmp_path, GOOD))


# what a spec must not say


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        # TOML
        ("budget = 10\nx y = 3\n", 2, "this is not valid TOML: Expected '=' after a key"),
        ("budget = 10\n\nbudget = 11\n", 3, "this is not valid TOML: Cannot overwrite a value"),
        ("budget = ten\n", 1, "this is not valid TOML: Invalid value (strings need quotes"),
        ("budget = [1, 2", None, "this is not valid TOML: Unclosed array (at end of document)"),
        ("budget = 1" + "0" * 5000, None, "this is not valid TOML"),
        ("budget = " + "[" * 5000, None, "this is not valid TOML"),
        ("", None, "parameters are missing"),
        # keys
        (
            "bugdet = 10\n" + PARAMETER,
            1,
            "unknown key 'bugdet'; did you mean 'budget'? The keys are name, budget, ",
        ),
        ("\ncolour = 1\n" + GOOD, 2, "unknown key 'colour'. The keys are name, "),
        ("new_bins = 2\n" + GOOD, 1, "unknown key 'new_bins' here: it belongs in the table [options]."),
        (GOOD + "[options]\nnew_binz = 3", 9, "unknown key 'new_binz'; did you mean 'new_bins'?"),
        (GOOD + "[options]\n\nseed = 3", 10, "unknown key 'seed' here: it belongs at the top of the file"),
        (GOOD + 'command = ["ls"]', 8, "unknown key 'command' here: it belongs at the top of the file"),
        (GOOD + "hihg = 3", 8, "unknown key 'hihg'; did you mean 'high'? The keys are name, type, low, high, log"),
        (GOOD + "[parameters.more]\nz = 3", 8, "unknown key 'more'"),
        (PARAMETER, None, "budget is missing"),
        ("budget = 10", None, "parameters are missing: add a table [[parameters]] for each"),
        ("budget = 10\nparameters = []", 2, "parameters are missing: add a table"),
        ("budget = 10\nparameters = 3", 2, "parameters are missing: add a table"),
        ("budget = 10\n[parameters]\nname = 'x'", 2, "parameters need double brackets"),
        ("budget = 10\nparameters = [\n3]", 3, "a parameter must be a table with name and type, not 3"),
        # options
        ("budget = 0\n" + PARAMETER, 1, "budget must be an integer of at least 1, not 0"),
        ('budget = "10"\n' + PARAMETER, 1, "budget must be an integer of at least 1, not '10'"),
        ("budget = 1e3\n" + PARAMETER, 1, "budget must be an integer"),
        ("batch_size = true\n" + GOOD, 1, "batch_size must be an integer of at least 1, not true"),
        ("seed = -1\n" + GOOD, 1, "seed must be an integer of at least 0, not -1"),
        ("direction = 'down'\n" + GOOD, 1, "direction must be 'minimize' or 'maximize', not 'down'"),
        ("workers = 0\n" + GOOD, 1, "workers must be an integer of at least 1, not 0"),
        ("\ntimeout = 0\n" + GOOD, 2, "timeout must be a positive number of seconds, not 0"),
        ("timeout = '1 h'\n" + GOOD, 1, "timeout must be a positive number of seconds, not '1 h'"),
        ("options = 3\n" + GOOD, 1, "options must be a table, [options], not 3"),
        ("[options]\ninitial_points = 0\n" + PARAMETER, None, "budget is missing"),
        (GOOD + "[options]\ninitial_points = 0", 9, "initial_points must be an integer of at least 1, not 0"),
        (GOOD + "[options]\ntrust_region = 'turbo'", 9, "trust_region must be 'bounce' or "),
        (
            GOOD + "[options]\nrobust = true",
            9,
            "unknown key 'robust'; did you mean 'method'? The keys are noise",
        ),
        ("robust = true\n" + GOOD, 1, "unknown key 'robust'; did you mean 'method'? It belongs in the table [options]"),
        ("n_jobs = 4\n" + GOOD, 1, "unknown key 'n_jobs'; did you mean 'workers'?"),
        (
            GOOD + "[options]\nmethod = 'papre'",
            9,
            "method must be 'default' or 'paper' or '0.1', or a table of its fields, not",
        ),
        (GOOD + "[options]\nmethod = true", 9, "or a table of its fields, not true"),
        (GOOD + "[options.method]\ncaution = false", 8, "method.caution must be a positive number, not false"),
        ("start = 3\n" + GOOD, 1, "start points need double brackets, [[start]], one table each"),
        (GOOD + "[start]\nx = 0.5", 8, "start points need double brackets, [[start]], one table each"),
        (GOOD + "[[start]]\nx = 0.5\n[[start]]\ny = 1", 11, "a start point has no parameter 'y'"),
        (GOOD + "[[start]]\nx = 99.0", 9, "'x' must lie between"),
        ("fixed = 3\n" + GOOD, 1, "fixed must be a table, [fixed], of former parameters and their values"),
        (GOOD + "[fixed]\nx = 0.5", 9, "'x' is a parameter, so it is not fixed"),
        (GOOD + "default = 99.0", 8, "'x' must lie between"),
        ("max_failures = 0\n" + GOOD, 1, "max_failures must be an integer of at least 1, not 0"),
        ("max_failures = true\n" + GOOD, 1, "max_failures must be an integer of at least 1, not true"),
        ("timeout = true\n" + GOOD, 1, "timeout must be a positive number of seconds, not true"),
        ("direction = false\n" + GOOD, 1, "direction must be 'minimize' or 'maximize', not false"),
        (GOOD + "[options]\n\nlow_sequency = 1", 10, "low_sequency must be true or false, not 1"),
        ("options.initial_dims = 0.5\n" + GOOD, 1, "initial_dims must be an integer of at least 1, not 0.5"),
        *(
            (f"name = {name}\n{GOOD}", 1, "name must be a valid file name")
            for name in ("''", "'a/b'", "'..'", "'.'", '"a\\u0000"', '"a\\nb"', "'a\\b'", "3", f"'{'é' * 101}'")
        ),
        # parameters
        ("budget = 10\n[[parameters]]\ntype = 'binary'", 2, "a parameter lacks 'name'"),
        ("budget = 10\n[[parameters]]\nname = 'x'", 2, "a parameter lacks 'type'"),
        ("budget = 10\n[[parameters]]\nname = 'x'\ntyp = 'real'", 4, "unknown key 'typ'; did you mean 'type'?"),
        ("budget = 10\n[[parameters]]\nnaem = 'x'\ntype = 'real'", 3, "unknown key 'naem'; did you mean 'name'?"),
        ("[options]\nbudget = 10\n" + PARAMETER, 2, "unknown key 'budget' here: it belongs at the top of the file"),
        ("budget = 10\n[[parameters]]\ntype = 'binary'\nname = ''", 4, "a parameter's name must be a non-empty string"),
        ("budget = 10\n[[parameters]]\ntype = 'binary'\nname = 3", 4, "a parameter's name must be a non-empty string"),
        (
            GOOD.replace('"real"', '"float"'),
            5,
            "'x': type must be one of real, integer, ordinal, categorical, binary",
        ),
        (GOOD.replace('"real"', "['real']"), 5, "'x': type must be one of real"),
        (GOOD.replace("high = 1\n", ""), 3, "'x': a parameter of type 'real' needs 'high'"),
        (GOOD.replace("high = 1", "high = 0"), 6, "'x': low must be less than high"),
        (GOOD.replace("high = 1", "high = 'a'"), 7, "'x': high must be a finite number, not 'a'"),
        (GOOD.replace("high = 1", "high = true"), 7, "'x': high must be a finite number, not true"),
        (GOOD.replace("high = 1", "high = inf"), 7, "'x': high must be a finite number, not inf"),
        (GOOD + "log = true", 6, "'x': a log scale needs low > 0"),
        (GOOD + "log = 'yes'", 8, "'x': log must be true or false, not 'yes'"),
        (
            GOOD + "choices = ['a', 'b']",
            8,
            "type 'real' has no key 'choices'; its keys are name, type, low, high, log",
        ),
        (GOOD + PARAMETER, 9, "two parameters are called 'x' (the first is in line 4)"),
        *(
            (f"budget = 1\n[[parameters]]\nname = 'c'\ntype = '{kind}'\n{key} = {given}", line, f"'c': {said}")
            for kind, key in (("categorical", "choices"), ("ordinal", "values"))
            for given, line, said in (
                ("3", 5, f"{key} must be a list, not 3"),
                ("true", 5, f"{key} must be a list, not true"),
                ("[true, false,\n true]", 5, f"{key} must be distinct, but true appears twice"),
                ("['a']", 5, f"{key} must have at least two entries"),
                ("[1, 2,\n1]", 5, f"{key} must be distinct, but 1 appears twice"),
                (
                    "[\n1979-05-27, 'a']",
                    6,
                    f"{key} must be strings, numbers or booleans, not the date 1979-05-27",
                ),
                ("['a',\n\n['b']]", 7, f"{key} must be strings, numbers or booleans, not a list"),
                ("['a', {b = 1}]", 5, f"{key} must be strings, numbers or booleans, not a table"),
                ("[1, nan]", 5, f"{key} must be strings, finite numbers"),
            )
        ),
        *(
            (f"budget = 1\n[[parameters]]\nname = 'c'\ntype = '{kind}'\n{key} = {given}", line, f"'c': {key} {said}")
            for kind, key in (
                ("categorical", "choices"),
                ("ordinal", "values"),
                ("subset", "members"),
                ("permutation", "items"),
            )
            for given, line, said in (
                ("['x', 1,\n'1']", 6, "have 1 and '1', which look alike in a table: rename one"),
                ("[true, 'true']", 5, "have true and 'true', which look alike in a table: rename one"),
                ("['0.5', 0.5]", 5, "have '0.5' and 0.5, which look alike in a table: rename one"),
            )
        ),
        (
            "budget = 1\n[[parameters]]\nname = 'c'\ntype = 'categorical'\nchoices = [1, 2]\nlog = true",
            6,
            "type 'categorical' has no key 'log'; its keys are name, type, choices",
        ),
        (GOOD.replace("[[", "[").replace("]]", "]") + GOOD.split("\n\n")[1], 3, "parameters need double brackets"),
        (GOOD + "[start]\nx = 0.5\n[start]\nx = 0.6", 8, "start need double brackets: one table [[start]] for each"),
        (GOOD.replace("low = 0", "low = 2024-01-01"), 6, "'x': low must be a finite number, not 2024-01-01"),
        # objectives
        ("objective = 'a:b'\ncommand = ['ls']\n" + GOOD, 2, "a spec has an objective or a command, not both"),
        ("objective = 'nonsense'\n" + GOOD, 1, "objective must be 'module:function'"),
        ("objective = 'my-file:f'\n" + GOOD, 1, "objective must be 'module:function'"),
        ("objective = 3\n" + GOOD, 1, "objective must be 'module:function'"),
        ("objective = 'no_such_module:f'\n" + GOOD, 1, "cannot be imported: ModuleNotFoundError: No module named"),
        ("objective = 'math:no_such'\n" + GOOD, 1, "module 'math' has no 'no_such'"),
        ("objective = 'math:pi'\n" + GOOD, 1, "must be a function of a point, not 3.14"),
        ("command = []\n" + GOOD, 1, "a command must be a non-empty list of strings"),
        ("command = 3\n" + GOOD, 1, "a command must be a non-empty list of strings"),
        ("command = ['ls',\n 3]\n" + GOOD, 2, "command must be a list of strings, not 3"),
        ("command = 'ls --x={x}'\n" + GOOD, 1, "a list of strings such as ['ls', '--x={x}'], not 'ls --x={x}'"),
        ('command = "it\'s"\n' + GOOD, 1, "command must be a list of strings, not"),
        ("\ncommand = ['ls', '{y}']\n" + GOOD, 2, "the placeholder {y} names no parameter"),
        ("command = ['ls', '{x']\n" + GOOD, 1, "the braces in the argument '{x' do not match"),
        ("\ncommand = ['./nothing', '{x}']\n" + GOOD, 2, "nothing' does not exist"),
        (
            "command = ['no-such-program-anywhere']\n" + GOOD,
            1,
            "the program 'no-such-program-anywhere' is not in PATH",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int | None, said: str, tmp_path: Path) -> None:
    found = refused(written(tmp_path, text))
    where = "" if line is None else f"line {line}: "
    assert found.startswith(where)
    assert re.match("line \\d", found) is None or line is not None
    assert said in found
    assert "\n" not in found


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(tmp_path / "none.toml") == "this file does not exist; bounce init writes an example"
    assert refused(tmp_path) == "this is a folder, but a spec is a file"
    assert (
        refused(written(tmp_path, b"budget = 1\n# gr\xfc\xdfe")) == "line 2: a spec must be UTF-8, but this line is not"
    )
    assert refused(written(tmp_path, b"\xff\xfeb\x00")).startswith("line 1: a spec must be UTF-8")
    assert refused(Path("a\0b")).startswith("the file cannot be read")
    assert refused(written(tmp_path, GOOD, "line\nbreak.toml")).startswith("name must be a valid file name")


# Python objectives


def test_a_python_objective_is_imported_from_the_folder_of_the_spec(tmp_path: Path) -> None:
    written(tmp_path, "from beside import offset\ndef loss(point):\n    return point['x'] + offset\n", "simulation.py")
    written(tmp_path, "offset = 10\n", "beside.py")
    spec = load(written(tmp_path, "timeout = 5\nobjective = 'simulation:loss'\n" + GOOD))
    evaluator = spec.evaluator()
    assert evaluator == Imported("simulation:loss", tmp_path, tmp_path / "study.trials")
    assert isinstance(evaluator, Imported)
    assert not evaluator.own_process
    assert evaluator.within(3) == evaluator
    assert spec.timeout == 5
    assert evaluator.evaluate(Trial(0, {"x": 0.5})).value == 10.5
    assert pickle.loads(pickle.dumps(evaluator)) == evaluator
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(evaluate, evaluator, Trial(0, {"x": 0.25})).result().value == 10.25
    evaluator.stop()
    assert evaluator.evaluate(Trial(0, {"x": 0.5})).value == 10.5


def test_an_objective_may_be_a_method_and_its_failures_are_outcomes(tmp_path: Path) -> None:
    written(
        tmp_path,
        "class Rig:\n    @staticmethod\n    def f(point):\n        raise OSError('no sample')\n",
        "bench_rig.py",
    )
    evaluator = load(written(tmp_path, "objective = 'bench_rig:Rig.f'\n" + GOOD)).evaluator()
    assert evaluator is not None
    assert evaluator.evaluate(Trial(0, {"x": 0.5})).error == "OSError: no sample"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def loss(point:\n", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import not_installed_anywhere", "No module named 'not_installed_anywhere'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_in_one_sentence(code: str, said: str, tmp_path: Path) -> None:
    written(tmp_path, code, "broken_module.py")
    found = refused(written(tmp_path, "\nobjective = 'broken_module:loss'\n" + GOOD))
    assert found.startswith("line 2: objective 'broken_module:loss' cannot be imported: ")
    assert said in found
    with pytest.raises(MachineFailed) as caught:
        Imported("broken_module:loss", tmp_path).evaluate(Trial(0, {"x": 0.5}))
    assert said in str(caught.value)
    assert isinstance(caught.value.__cause__, InvalidOption)


def test_a_module_that_another_one_hides_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "def loss(point):\n    return 1.0\n", "random.py")
    found = refused(written(tmp_path, "objective = 'random:loss'\n" + GOOD))
    assert "another module 'random' is already loaded, so rename the file" in found


def test_a_module_that_was_written_a_moment_ago_is_found(tmp_path: Path) -> None:
    written(tmp_path, "def loss(point):\n    return 1.0\n", "early_module.py")
    before = tmp_path.stat()
    assert Imported("early_module:loss", tmp_path).function()({}) == 1.0
    written(tmp_path, "def loss(point):\n    return 2.0\n", "late_module.py")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))  # a file system with a coarse clock
    assert Imported("late_module:loss", tmp_path).function()({}) == 2.0


def test_modules_of_packages_are_found(tmp_path: Path) -> None:
    for folder in ("plain_package", "bare_package"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, "def loss(point):\n    return 2.0\n", "inner.py")
    written(tmp_path / "plain_package", "", "__init__.py")
    for folder in ("plain_package", "bare_package"):
        assert Imported(f"{folder}.inner:loss", tmp_path).evaluate(Trial(0, {})).value == 2.0
    assert sys.path.count(str(tmp_path)) == 1


# the example


def test_the_example_runs_as_it_is(tmp_path: Path) -> None:
    spec = load(written(tmp_path, example(), "bounce.toml"))
    evaluator = spec.evaluator()
    assert evaluator is not None
    optimizer = Bounce(spec.space, **spec.options)
    trial = optimizer.ask(1)[0]
    outcome = evaluator.evaluate(trial)
    assert outcome.error is None
    assert outcome.value is not None
    called = (tmp_path / "bounce.trials" / "00000.out").read_text().splitlines()[0]
    assert called == f"called with --rate={trial.point['rate']!r} --depth={trial.point['depth']}"
    best = evaluator.evaluate(Trial(1, {"rate": 0.01, "depth": 5, "width": 32, "kernel": "rbf", "shuffle": True}))
    assert best.value == 32 / 256


def test_the_example_explains_every_key_and_its_defaults_are_true(tmp_path: Path) -> None:
    text = example()
    for key in (
        *TOP,
        *OPTIONS,
        "low",
        "high",
        "log",
        "step",
        "digits",
        "values",
        "choices",
        "on",
        "off",
        "names",
        "count",
        "when",
        "members",
        "at_most",
        "components",
        "total",
        "items",
    ):
        assert re.search(rf"^(#\s+)?\[*{key}\b", text, re.MULTILINE), key
    assert re.search(r"(?m)^# default = ", text)
    whole = load(written(tmp_path, re.sub(r"(?m)^# (\w+ = |\[fixed\])", r"\1", text), "bounce.toml"))
    assert whole.space == load(written(tmp_path, text, "bounce.toml")).space
    assert whole.name == "bounce"
    assert whole.workers == 1
    assert whole.max_failures == ALIKE
    defaults = Options(budget=60).document()
    for key, value in whole.options.items():
        if key not in ("budget", "seed", "initial_points", "initial_dims", "budget_to_input"):
            assert value == defaults[key]
    plain = Bounce(whole.space, budget=60, seed=0)
    assert [trial.point for trial in Bounce(whole.space, **whole.options).ask(8)] == [
        trial.point for trial in plain.ask(8)
    ]
    assert all(len(line) <= 110 for line in text.splitlines())


def test_every_text_about_the_stages_says_what_the_default_method_does() -> None:
    options = Options(budget=60)
    flags = Planner(Space([Binary(f"x{i}") for i in range(21)]), options)
    reals = Planner(Space([Real(f"x{i}", 0, 1) for i in range(21)]), options)
    first, of_reals = flags.initial_dims, reals.initial_dims
    assert flags.stages.schedule.budget_to_input == 21 / 2  # half of the number of variables
    about = {f.name: f.metadata["help"] for f in fields(Options)}
    page = Path(__file__).parents[1].joinpath("docs", "options.md").read_text(encoding="utf-8")
    assert f"with more parameters {first}, or {of_reals} if every parameter is real" in example()
    assert f"otherwise {first}, or {of_reals} if all are real" in about["initial_dims"]
    assert f"otherwise {first}, or {of_reals} if every variable is real" in page
    for text in (example(), about["budget_to_input"], page):
        assert re.search(r"half of the budget,?\W+or half of the number of (parameters|variables)", text)


def test_the_example_has_a_start_a_default_and_a_former_parameter(tmp_path: Path) -> None:
    assert load(written(tmp_path, example(), "bounce.toml")).start == ({"rate": 0.02, "kernel": "rbf"},)
    shown = re.sub(r"(?m)^# (default = |\[fixed\]|batch = )", r"\1", example())
    assert load(written(tmp_path, shown, "bounce.toml")).defaults == {"shuffle": True, "batch": 32}
