from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bounce.cli import app, main
from terminal import ECHO, PARAMETERS, Terminal, typed

COMMAND = [  # a shell's background jobs, and what they start, ignore Ctrl-C
    *(sys.executable, "-c"),
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bounce.cli import main; main()",
]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_demo_prints_its_best_and_draws_a_picture(tmp_path: Path) -> None:
    done = run("demo", "--evals", "12", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    value, point, picture = done.stdout.splitlines()
    assert value.startswith("best value -")
    assert len(point.split()[-1]) == 50
    assert set(point.split()[-1]) == {"+", "-"}
    assert picture.split()[-1] == "bounce-demo.png"
    assert (tmp_path / "bounce-demo.png").read_bytes().startswith(b"\x89PNG")
    again = run("demo", "--evals", "12", "--seed", "3", cwd=tmp_path)
    assert again.stdout == done.stdout.replace("bounce-demo.png", "bounce-demo-2.png")
    assert (tmp_path / "bounce-demo-2.png").exists()


@pytest.mark.slow
def test_the_demo_replaces_a_picture_only_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "bounce-demo.png").write_text("mine")
    refused = run("demo", "--evals", "6", "--out", "bounce-demo.png", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "bounce: bounce-demo.png already exists: choose another name, or use --overwrite\n"
    assert (tmp_path / "bounce-demo.png").read_text() == "mine"
    done = run("demo", "--evals", "6", "--overwrite", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bounce-demo.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["bounce-demo.png"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["demo", "--out", "picture.gif"], "must end in .png, .svg or .pdf, not 'picture.gif'"),
        (["demo", "--out", "nowhere/picture.png"], "the folder 'nowhere' does not exist"),
        (["demo", "--out", "/proc/picture.png"], "nothing can be written to the folder '/proc'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = typed(arguments, monkeypatch, capsys, tmp_path)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("bounce: ")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["demo", "--evals", "0"], ["demo", "--evals", "x"], ["nonsense"], ["--nonsense"]]
)
def test_unknown_words_end_with_exit_code_2_and_no_traceback(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = typed(arguments, monkeypatch, capsys, tmp_path)
    assert done.code == 2
    assert "Traceback" not in done.err


@pytest.mark.slow
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
    for _ in range(3):  # Python ignores an interrupt that comes while an object is being collected
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            _, said = process.communicate(timeout=30)
            break
    assert process.returncode == 130
    assert "bounce: interrupted" in said
    assert "Traceback" not in said


def test_help_and_version_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "demo" in typed(["--help"], monkeypatch, capsys, tmp_path).out
    assert run("--version", cwd=tmp_path).stdout.strip().count(".") == 2


def commands() -> list[list[str]]:
    top = ["init", "run", "ask", "tell", "trials", "best", "status", "export", "plot", "demo", "benchmark"]
    top += ["add", "enqueue", "correct", "retry", "withdraw", "note", "history", "check", "repair", "audit"]
    top += ["importance", "report", "watch"]
    paper = [["paper", name] for name in ("list", "run", "plot", "check")]
    return [*([name] for name in top), ["data", "list"], ["data", "fetch"], *paper]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_is_sentences_with_an_example_and_no_python_types(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bounce", *words, "--help"])
    with pytest.raises(SystemExit) as end:
        main()
    text = capsys.readouterr().out
    assert not end.value.code
    assert "<" not in text
    assert f"Example: bounce {' '.join(words)}" in text
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    assert command.help.endswith(".")
    assert all(parameter.help.endswith((".", "...")) for parameter in command.params)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["run"], "SPEC"),
        (["tell"], "STUDY RESULTS"),
        (["correct"], "STUDY ID [VALUE]"),
        (["retry"], "STUDY [ID]..."),
        (["withdraw"], "STUDY ID..."),
        (["init"], "[SPEC]"),
        (["data", "fetch"], "[NAME]..."),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_the_usage_line_names_the_arguments(
    words: list[str],
    arguments: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    usage = typed([*words, "--help"], monkeypatch, capsys, tmp_path).out.splitlines()[0]
    assert usage.endswith(f" {' '.join(words)} [OPTIONS] {arguments}")


@pytest.mark.parametrize("words", [[], ["data"], ["paper"]], ids=["bounce", "bounce data", "bounce paper"])
def test_no_summary_of_a_command_is_cut(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    listed = typed([*words, "--help"], monkeypatch, capsys, tmp_path).out.partition("Commands:")[2].splitlines()
    assert [line for line in listed if line and (not line.endswith(".") or line.endswith("..."))] == []


def test_every_command_is_checked_for_its_help() -> None:
    names = {info.callback.__name__ for info in app.registered_commands if info.callback is not None}
    assert names | {"data", "paper"} == {words[0] for words in commands()}


def test_help_loads_neither_numpy_nor_scipy(tmp_path: Path) -> None:
    code = "import sys, bounce.cli; print([m for m in ('numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retry", "a.db", "seven"), ("Invalid value for 'ID'", "not 'seven'")),
        (("ask", "a.db", "-n", "0"), ("Invalid value for '-n'", "not '0'")),
        (("ask", "a.db", "--format", "xml"), ("Invalid value for '--format'", "'xml' is not one of")),
        (("ask",), ("Missing argument", "STUDY")),
        (("ask", "a.db", "--bogus"), ("No such option", "--bogus")),
        (("enqeue",), ("No such command 'enqeue'", "enqueue")),
    ],
)
def test_words_that_cannot_be_are_refused_like_any_input(
    words: tuple[str, ...],
    said: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    refused = typed(words, monkeypatch, capsys, tmp_path)
    assert (refused.code, refused.out) == (2, "")
    usage, *_, last = refused.err.splitlines()
    assert usage.startswith("Usage: ")
    assert last.startswith(f"bounce: {said[0]}")
    assert said[1] in last
    assert not last.endswith(".")


def test_a_command_alone_prints_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in ((), ("data",)):
        said = typed(words, monkeypatch, capsys, tmp_path)
        assert "Commands:" in said.out + said.err
        assert "bounce: " not in said.out + said.err


def test_a_warning_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = Terminal(tmp_path, monkeypatch, capsys).spec
    mixed = "\n[options]\ninitial_dims = 1\n" + PARAMETERS
    for name, words in (("a", ("ask", "a.toml")), ("b", ("run", "b.toml", "--quiet"))):
        spec(name, command=None if name == "a" else ECHO, parameters=mixed)
        said = typed(words, monkeypatch, capsys, tmp_path)
        raised = "bounce: initial_dims=1 is raised to 3: each kind of variable needs a bin\n"
        assert (said.code, said.err) == (0, raised if name == "a" else "")
