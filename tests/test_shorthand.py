"""Shorthand in specs: several parameters in one table, flags of commands, and the command of the best trial."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import Binary, Command, InvalidOption, InvalidSpec, Real, Space
from bounce.spec.document import load
from bounce.spec.spec import Spec
from bounce.trial import Trial
from terminal import Terminal

ECHO = "import sys, json; print(json.dumps(sys.argv[1:]), file=sys.stderr); print(len(sys.argv))"


def spec(folder: Path, text: str, command: list[str] | None = None) -> Spec:
    path = folder / "study.toml"
    head = "budget = 10\n" + ("" if command is None else f"command = {json.dumps(command)}\n")
    path.write_text(head + text)
    return load(path)


def refused(folder: Path, text: str, command: list[str] | None = None) -> str:
    with pytest.raises(InvalidSpec) as caught:
        spec(folder, text, command)
    return str(caught.value).removeprefix(str(folder / "study.toml")).removeprefix(", ")


# Several parameters in one table


def test_one_table_describes_several_parameters(tmp_path: Path) -> None:
    found = spec(
        tmp_path,
        """
[[parameters]]
names = ["low pass", "b"]
type = "real"
low = 0
high = 1
step = 0.25

[[parameters]]
name = "f"
count = 3
type = "binary"
default = true

[[parameters]]
name = "z"
type = "binary"
""",
    )
    assert found.space == Space(
        [
            Real("low pass", 0, 1, step=0.25),
            Real("b", 0, 1, step=0.25),
            *(Binary(name) for name in ("f1", "f2", "f3", "z")),
        ]
    )
    assert found.defaults == {"f1": True, "f2": True, "f3": True}


def test_sixty_names_are_sixty_tables(tmp_path: Path) -> None:
    short = spec(tmp_path, '[[parameters]]\nname = "f"\ncount = 60\ntype = "binary"\n')
    long = spec(tmp_path, "".join(f'[[parameters]]\nname = "f{i}"\ntype = "binary"\n' for i in range(1, 61)))
    assert short.space == long.space


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('name = "a"\nnames = ["b"]', "line 3: a parameter has 'names' or 'name', not both"),
        ('names = ["b"]\ncount = 2', "line 4: a parameter has 'names' or 'count', not both"),
        ("names = []", "line 3: names must be a list of strings that are not empty, not []"),
        ('names = "a"', "line 3: names must be a list of strings"),
        ('names = ["a", ""]', "line 3: names must be a list of strings"),
        ('names = ["a", "b", "a"]', "line 3: two parameters are called 'a'"),
        ("count = 3", "line 2: a parameter lacks 'name'"),
        ('name = "a"\ncount = 0', "line 4: count must be"),
        ('name = "a"\ncount = true', "line 4: count must be"),
        ('name = "a"\ncount = 1000000000', "line 4: one table may have at most 10,000 parameters"),
        ('name = "a"\nsteps = 3', "line 4: unknown key 'steps'"),
    ],
)
def test_names_that_cannot_be_are_refused_with_their_line(keys: str, said: str, tmp_path: Path) -> None:
    assert refused(tmp_path, f'[[parameters]]\n{keys}\ntype = "binary"\n').startswith(said)


def test_a_name_in_two_tables_is_refused_with_both_lines(tmp_path: Path) -> None:
    text = '[[parameters]]\nname = "f"\ncount = 3\ntype = "binary"\n[[parameters]]\nnames = ["f2"]\ntype = "binary"\n'
    assert refused(tmp_path, text) == "line 7: two parameters are called 'f2' (the first is in line 3)"


# Flags

FLAGS = {"unroll": {"on": "-funroll-loops", "off": "-fno-unroll-loops"}, "fast": {"on": "-m 'a b' -x", "off": ""}}
SPACE = Space([Binary("unroll"), Binary("fast"), Real("x", 0, 1)])


@pytest.mark.parametrize(
    ("arguments", "unroll", "fast", "filled"),
    [
        (["{unroll}", "{fast}"], True, True, ["-funroll-loops", "-m", "a b", "-x"]),
        (["{unroll}", "{fast}"], False, False, ["-fno-unroll-loops"]),
        (["{flags}", "{x}"], True, True, ["-funroll-loops", "-m", "a b", "-x", "0.5"]),
        (["{fast}", "main.c", "{flags}"], False, True, ["-m", "a b", "-x", "main.c", "-fno-unroll-loops"]),
        (["CFLAGS=-O2 {flags}"], True, False, ["CFLAGS=-O2 -funroll-loops"]),
        (["F={fast}.", "{unroll}"], False, True, ["F=-m 'a b' -x.", "-fno-unroll-loops"]),
        (["{{flags}}", "{flags}"], False, False, ["{flags}", "-fno-unroll-loops"]),
    ],
)
def test_flags_become_arguments(
    arguments: list[str], unroll: bool, fast: bool, filled: list[str], tmp_path: Path
) -> None:
    command = Command(["cc", *arguments], flags=FLAGS)
    command.check_placeholders(SPACE)
    point = {"unroll": unroll, "fast": fast, "x": 0.5}
    assert command.filled(point) == ["cc", *filled]
    assert pickle.loads(pickle.dumps(command)).filled(point) == ["cc", *filled]
    assert command.within(3).filled(point) == ["cc", *filled]


def test_the_program_gets_the_arguments_of_the_flags(tmp_path: Path) -> None:
    command = Command([sys.executable, "-c", ECHO.replace("{", "{{"), "{flags}"], logs=tmp_path, flags=FLAGS)
    outcome = command.evaluate(Trial(0, {"unroll": True, "fast": True, "x": 0.5}))
    assert outcome.value == 5
    assert json.loads((tmp_path / "00000.err").read_text()) == ["-funroll-loops", "-m", "a b", "-x"]


def test_without_flags_a_binary_is_true_or_false_and_flags_is_unknown() -> None:
    assert Command(["cc", "{unroll}"]).filled({"unroll": True}) == ["cc", "true"]
    with pytest.raises(InvalidOption, match=r"the placeholder \{flags\} names no parameter"):
        Command(["cc", "{flags}"]).check_placeholders(SPACE)


def test_a_parameter_called_flags_is_itself() -> None:
    command = Command(["cc", "{flags}", "{a}"], flags={"a": {"on": "-a"}})
    command.check_placeholders(Space([Real("flags", 0, 1), Binary("a")]))
    assert command.filled({"flags": 0.5, "a": True}) == ["cc", "0.5", "-a"]
    with pytest.raises(InvalidOption, match="'a' has on or off, but no place in the command"):
        Command(["cc", "{flags}"], flags={"a": {"on": "-a"}}).check_placeholders(
            Space([Real("flags", 0, 1), Binary("a")])
        )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"unroll": {"on": "-a"}}, "'unroll' has on or off, but no place in the command: add the argument '{unroll}'"),
        ({"x": {"on": "-a"}}, "the flag 'x' must be a binary parameter"),
        ({"y": {"on": "-a"}}, "the flag 'y' must be a binary parameter"),
        ({"unroll": {"on": "'a"}}, "'unroll': on cannot be split into arguments"),
        ({"unroll": {"off": 3}}, "'unroll': off must be a string"),
        ({"unroll": {}}, "must have 'on', 'off' or both"),
        ({"unroll": {"yes": "-a"}}, "must have 'on', 'off' or both"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags: Any, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Command(["cc", "main.c"], flags=flags).check_placeholders(SPACE)
    assert said in str(caught.value)


def test_a_spec_names_flags_by_the_names_of_their_parameters(tmp_path: Path) -> None:
    text = """
[[parameters]]
names = ["unroll-loops", "gcse"]
type = "binary"
on = "-f{name}"
off = "-fno-{name}"

[[parameters]]
name = "lto"
type = "binary"
on = "-flto"
"""
    found = spec(tmp_path, text, ["cc", "-O1", "{flags}", "main.c"])
    assert found.space == Space([Binary("unroll-loops"), Binary("gcse"), Binary("lto")])
    line = found.command_line({"unroll-loops": True, "gcse": False, "lto": False}, tmp_path)
    assert line == "cc -O1 -funroll-loops -fno-gcse main.c"


@pytest.mark.parametrize(
    ("keys", "command", "said"),
    [
        ('name = "a"\ntype = "binary"\non = "-a"', None, "line 5: 'a': on is an argument of the command, but the spec"),
        ('name = "a"\ntype = "binary"\non = "-a"', ["cc"], "line 2: 'a' has on or off, but no place in the command"),
        ('name = "a"\ntype = "binary"\non = 3', ["cc", "{a}"], "line 6: 'a': on must be a string, not 3"),
        ('name = "a"\ntype = "binary"\non = "\'"', ["cc", "{a}"], "line 2: 'a': on cannot be split into arguments"),
        (
            'name = "a"\ncount = 2\ntype = "binary"\noff = "-a"',
            ["cc"],
            "line 7: 2 parameters would have the same 'off'",
        ),
        (
            'name = "a"\ntype = "ordinal"\nvalues = [1, 2]\non = "x"',
            ["cc"],
            "line 7: 'a': type 'ordinal' has no key 'on'",
        ),
    ],
)
def test_flags_of_a_spec_that_cannot_be_are_refused(
    keys: str, command: list[str] | None, said: str, tmp_path: Path
) -> None:
    assert refused(tmp_path, f"[[parameters]]\n{keys}\n", command).startswith(said)


# The command of the best trial

PROGRAM = """
import json, os, sys
given = sys.argv[1:]
point = json.loads(os.environ["BOUNCE_POINT"])
assert point == json.load(sys.stdin)
print("given", json.dumps(given))
print(3 - 2 * ("-a" in given) + (point["dose"] - 0.15) ** 2)
"""
STUDY = """
budget = 12
seed = 1
command = ["python3", "program.py", "{a}", "{label}"]

[[parameters]]
name = "a"
type = "binary"
on = "-a"

[[parameters]]
name = "label"
type = "categorical"
choices = ["it's", "two words", "$HOME"]

[[parameters]]
name = "dose"
type = "real"
low = 0
high = 1
step = 0.05
"""


def test_the_command_of_a_point_passes_on_what_is_only_in_an_argument_that_is_left_out(tmp_path: Path) -> None:
    command = ["echo", "--mode={k}:{gamma}", "{on}"]
    (tmp_path / "study.toml").write_text(
        f"""
budget = 9
command = {json.dumps(command)}

[[parameters]]
name = "k"
type = "categorical"
choices = ["a", "b"]

[[parameters]]
name = "gamma"
type = "real"
low = 0
high = 1
when = {{ k = "a" }}

[[parameters]]
name = "on"
type = "binary"
on = "-o"
"""
    )
    spec = load(tmp_path / "study.toml")
    line = spec.command_line({"k": "a", "gamma": 0.5, "on": True}, tmp_path)
    assert line == "echo --mode=a:0.5 -o"
    without = spec.command_line({"k": "b", "on": True}, tmp_path)
    assert without.startswith("printf ")
    assert without.endswith(""" | BOUNCE_POINT='{"k": "b", "on": true}' echo -o""")


def test_the_command_of_the_best_trial_repeats_its_value(bounce: Terminal, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "study.toml").write_text(STUDY)
    assert bounce("best", "study.toml", "--command").code == 2  # there is no study
    assert bounce("run", "study.toml", "--quiet").code == 0
    best = json.loads(bounce("best", "study.toml", "--json").out)["best"]
    line = bounce("best", "study.toml", "--command").out
    for folder in (tmp_path, tmp_path.parent):
        shown = load(tmp_path / "study.toml").command_line(best["point"], folder)
        ran = subprocess.run(["sh", "-c", shown], cwd=folder, capture_output=True, text=True, check=True)
        assert float(ran.stdout.splitlines()[-1]) == best["value"]
        if folder == tmp_path:
            assert line == shown + "\n"
            assert "cd " not in line
    assert best["point"]["dose"] == round(best["point"]["dose"], 2)
    assert bounce("best", "study.toml", "--command", "--by-model").out.startswith("printf ")
    for arguments, said in (
        (("study.db", "--command"), "--command needs the spec"),
        (("study.toml", "--command", "--json"), "leave out --json"),
    ):
        refusal = bounce("best", *arguments)
        assert refusal.code == 2
        assert said in refusal.err


def test_a_command_that_shows_every_parameter_is_printed_alone(tmp_path: Path) -> None:
    text = '[[parameters]]\nname = "x"\ntype = "real"\nlow = 0\nhigh = 1\n'
    found = spec(tmp_path, text, ["./run", "--x={x}", "a b"])
    assert found.command_line({"x": 0.25}, tmp_path) == "./run --x=0.25 'a b'"
    assert found.command_line({"x": 0.25}, tmp_path / "sub") == f"cd {tmp_path} && ./run --x=0.25 'a b'"
    with pytest.raises(ValueError, match="other parameters than the study"):
        found.command_line({"y": 0.25}, tmp_path)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_any_value_reaches_the_program_through_the_printed_line(text: str) -> None:
    import shlex

    command = Command(["cc", "--x={x}", "{x}"])
    assert shlex.split(shlex.join(command.filled({"x": text}))) == ["cc", f"--x={text}", text]
