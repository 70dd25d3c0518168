from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [  # a shell's background jobs, and what they start, ignore Ctrl-C
    *(sys.executable, "-c"),
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bounce.cli import main; main()",
]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_the_demo_prints_its_best_and_draws_a_picture(tmp_path: Path) -> None:
    done = run("demo", "--evals", "12", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    value, point, picture = done.stdout.splitlines()
    assert value.startswith("best value -")
    assert len(point.split()[-1]) == 50
    assert set(point.split()[-1]) == {"+", "-"}
    assert picture.split()[-1] == "bounce-demo.png"
    assert (tmp_path / "bounce-demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("demo", "--evals", "12", "--seed", "3", cwd=tmp_path).stdout == done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "--out", "picture.gif"], "must end in .png, .svg or .pdf, not 'picture.gif'"),
        (["demo", "--out", "nowhere/picture.png"], "no folder 'nowhere'"),
        (["demo", "--out", "/proc/picture.png"], "nothing can be written to the folder '/proc'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("bounce: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["demo", "--evals", "0"], ["demo", "--evals", "x"], ["nonsense"], ["--nonsense"]]
)
def test_unknown_words_end_with_exit_code_2_and_no_traceback(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_with_exit_code_130(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--evals", "100000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FORCE_COLOR": "1"},  # a live progress line, as on a terminal
    )
    assert process.stderr is not None
    while "LABS" not in process.stderr.read(1) + process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "bounce: interrupted" in said
    assert "Traceback" not in said


def test_help_and_version_answer(tmp_path: Path) -> None:
    assert "demo" in run("--help", cwd=tmp_path).stdout
    assert run("--version", cwd=tmp_path).stdout.strip().count(".") == 2


def test_help_loads_neither_numpy_nor_scipy(tmp_path: Path) -> None:
    code = "import sys, bounce.cli; print([m for m in ('numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
