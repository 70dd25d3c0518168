"""The command line of studies, from end to end."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bounce import StorageFailed, Study
from bounce.cli import running
from bounce.paper.traces import FIELDS
from bounce.study.lock import Lock
from terminal import COMMAND, ECHO, PARAMETERS, Gate, Terminal


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.close()


def awaited(process: subprocess.Popen[str], words: str) -> str:
    """Read standard error up to a line that holds some words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return str(line)
    raise AssertionError(f"{words!r} was not said")


# init and run


def test_init_refuses_a_name_that_other_commands_would_take_for_a_study(bounce: Terminal) -> None:
    said = bounce("init", "x.txt")
    assert said.code == 2
    assert "must end in .toml" in said.err
    assert "x.txt.toml" in said.err
    assert list(bounce.folder.iterdir()) == []
    assert "bounce run ./-y.toml" in bounce("init", "--", "-y.toml").out


def test_init_writes_a_spec_that_runs(bounce: Terminal) -> None:
    said = bounce("init", "my spec.toml")
    assert said.out == "my spec.toml is written. Edit it, then run: bounce run 'my spec.toml'\n"
    path = bounce.folder / "my spec.toml"
    path.write_text(path.read_text().replace("budget = 60", "budget = 2"))
    said = bounce("run", "my spec.toml")
    assert said.code == 0
    assert said.out.startswith("best value ")
    assert (bounce.folder / "my spec.db").exists()
    assert bounce("init", "my spec.toml").code == 2
    assert "budget = 2" in path.read_text()


def test_a_run_prints_a_line_per_trial_and_then_its_best(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec())
    assert said.code == 0
    lines = said.err.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"{i + 1}/6 trial {i}" for i in range(6)]
    assert lines[-1].endswith(", finished")
    best = min(bounce.trials("a.db"), key=lambda trial: trial["value"])
    first, *point, study = said.out.splitlines()
    assert first == f"best value {best['value']!r} (trial {best['id']}; 6 done, 0 failed)"
    assert point[0] == f"    x = {best['point']['x']!r}"
    assert study == f"study {bounce.folder / 'a.db'}"


def test_running_the_same_spec_again_asks_for_nothing(bounce: Terminal) -> None:
    first = bounce("run", bounce.spec())
    again = bounce("run", "a.toml")
    assert (again.code, again.out, again.err) == (0, first.out, "")


def test_a_larger_budget_continues_the_run(bounce: Terminal) -> None:
    bounce("run", bounce.spec())
    before = bounce.trials("a.db")
    assert bounce("run", bounce.spec(budget=8)).code == 0
    after = bounce.trials("a.db")
    assert after[:6] == before
    assert len(after) == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 2}, "seed is 1, not 2"),
        ({"budget": 5}, "budget is 6, not 5"),
        ({}, 'direction is "maximize", not "minimize"'),
        ({"direction": "maximize", "options.low_sequency": True}, "low_sequency is false, not true"),
        ({"direction": "maximize", "batch_size": 2}, "batch_size is 1, not 2"),
    ],
)
def test_another_option_is_refused_with_the_difference(bounce: Terminal, change: dict[str, Any], said: str) -> None:
    bounce("ask", bounce.spec(direction="maximize"))
    for command in ("run", "ask"):
        refused = bounce(command, bounce.spec(**change))
        assert refused.code == 2
        assert said in refused.err
        assert refused.err.count("\n") == 1
    assert len(bounce.trials("a.db")) == 1


def test_another_space_is_refused(bounce: Terminal) -> None:
    bounce("ask", bounce.spec())
    said = bounce("run", bounce.spec(parameters=PARAMETERS.replace("high = 1.0", "high = 2.0")))
    assert said.code == 2
    assert "is not that of the study" in said.err
    assert (
        "from 0.0 to 2.0 instead of 0.0 to 1.0. To continue in the new space, use bounce run with --change" in said.err
    )


def test_study_says_where_the_study_is(bounce: Terminal) -> None:
    (bounce.folder / "deep").mkdir()
    spec = bounce.spec()
    assert bounce("run", spec, "--study", "deep/b.db").code == 0
    assert not (bounce.folder / "a.db").exists()
    assert (bounce.folder / "deep" / "b.trials" / "00005.out").exists()
    assert "done     6 of 6, 0 left to ask\n" in bounce("status", spec, "--study", "deep/b.db").out
    refused = bounce("status", "deep/b.db", "--study", "deep/b.db")
    assert refused.code == 2
    assert "--study is only for specs, which end in .toml, and deep/b.db is not one" in refused.err


def test_workers_and_batches_are_those_of_the_command_line(bounce: Terminal) -> None:
    bounce("run", bounce.spec(batch_size=1, workers=1), "--workers", "2", "--batch-size", "3", "--quiet")
    with Study.open("a.db") as study:
        assert [record.batch for record in study._keeper.optimizer._ledger.records] == [0, 0, 0, 3, 3, 3]


def test_quiet_prints_the_result_only(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(command=["sh", "-c", 'case "$0" in t*) echo 1;; esac', "{deep}"]), "--quiet")
    assert said.code == 0
    assert said.err == ""
    assert said.out.startswith("best value 1.0")


OBJECTIVE = """
import os
def loss(point):
    print("print")
    os.system("echo system")
    return point["x"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_json_is_an_object_per_line_whatever_the_objective_prints(bounce: Terminal, workers: int) -> None:
    (bounce.folder / "noisy.py").write_text(OBJECTIVE)
    bounce.spec(objective="noisy:loss")
    out, err = bounce.start("run", "a.toml", "--json", "--workers", str(workers)).communicate(timeout=60)
    *trials, last = map(json.loads, out.splitlines())
    assert sorted(trial["id"] for trial in trials) == list(range(6))
    assert all(trial["state"] == "done" and trial["value"] == trial["point"]["x"] for trial in trials)
    best = min(trials, key=lambda trial: trial["value"])
    assert trials[-1]["best"] == best["id"] == last["best"]["id"]
    assert (last["done"], last["failed"], last["pending"], last["remaining"]) == (6, 0, 0, 0)
    assert last["study"] == str(bounce.folder / "a.db")
    assert (err.count("print"), err.count("system")) == (6, 6)  # two workers may mix their lines


def test_a_spec_without_an_objective_is_not_run(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(command=None))
    assert said.code == 2
    assert "a.toml has no objective and no command: add one, or use bounce ask and bounce tell" in said.err
    assert not (bounce.folder / "a.db").exists()


@pytest.mark.parametrize(
    ("keys", "line", "said"),
    [
        ({"bugdet": 3}, 3, "unknown key 'bugdet'; did you mean 'budget'?"),
        ({"command": ["no-such-program"]}, 3, "the program 'no-such-program' is not in PATH"),
        ({"command": ["sh", "{y}"]}, 3, "the placeholder {y} names no parameter"),
        ({"objective": "nowhere:loss"}, 3, "cannot be imported: ModuleNotFoundError"),
        ({"objective": "json:nothing"}, 3, "module 'json' has no 'nothing'"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_runs(
    bounce: Terminal, keys: dict[str, Any], line: int, said: str
) -> None:
    refused = bounce("run", bounce.spec(**keys))
    assert refused.code == 2
    assert f"a.toml, line {line}: " in refused.err
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert sorted(path.name for path in bounce.folder.iterdir()) == ["a.toml"]


def test_a_study_is_not_a_spec(bounce: Terminal) -> None:
    bounce("ask", bounce.spec())
    said = bounce("run", "a.db")
    assert (said.code, said.err) == (
        2,
        "bounce: a.db: this is a study, but a spec is needed: the TOML file that describes the study\n",
    )


# failing evaluations


def test_ten_failures_end_a_run_with_the_text_of_the_first(bounce: Terminal) -> None:
    command = ["sh", "-c", 'echo "no oxygen at $0" >&2; exit 3', "{x}"]
    said = bounce("run", bounce.spec(command=command, budget=30))
    assert said.code == 1
    assert said.out == ""
    assert "bounce: the first 10 evaluations of this run all failed; the first error was: the command ended" in said.err
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["failed"] * 10
    assert "10 (trial 9: the command ended with exit status 3" in bounce("status", "a.db").out


def test_a_broken_command_is_shown_at_once_and_costs_nothing(bounce: Terminal) -> None:
    command = ["sh", "-c", "echo one >&2; printf '\\033[2Jno oxygen\\n' >&2; exit 3"]
    said = bounce("run", bounce.spec(command=command))
    assert said.code == 1
    first, *lines = said.err.splitlines()
    assert first == "bounce: trial 0 failed: the command ended with exit status 3; its standard error ends with:"
    assert lines[:2] == ["one", "\\x1b[2Jno oxygen"]
    assert "\x1b" not in said.err
    assert sum(line.startswith("bounce: trial ") for line in lines) == 2
    assert "bounce: the first 3 evaluations of this run failed alike (the command ended with exit status 3" in said.err
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["pending"] * 3
    assert bounce("run", bounce.spec()).code == 0  # repaired
    straight = bounce.spec("straight")
    bounce("run", straight)
    assert bounce.trials("a.db") == bounce.trials("straight.db")


def test_a_program_that_disappears_ends_the_run_with_a_sentence_and_costs_nothing(bounce: Terminal) -> None:
    program = Path("simulate")
    program.write_text("#!/bin/sh\nmv simulate gone\necho 1\n")
    program.chmod(0o755)
    spec = bounce.spec(command=["./simulate"], budget=30)
    said = bounce("run", spec, "--json")
    assert said.code == 1
    assert "bounce: trial 1 could not be evaluated (the command could not be run: FileNotFoundError" in said.err
    assert "correct it and run again to resume" in said.err
    assert json.loads(said.out.splitlines()[-1])["done"] == 1
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["done", "pending"]


def test_a_series_of_failures_ends_the_run_and_can_be_evaluated_again(bounce: Terminal) -> None:
    command = ["sh", "-c", "[ -e broken ] && exit 3; touch broken; echo 1"]
    spec = bounce.spec(command=command, budget=12)
    said = bounce("run", spec, "--quiet")
    assert said.code == 1
    assert "bounce: the last 10 evaluations all failed with the same error (the command ended with exit" in said.err
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["done"] + ["failed"] * 10
    bounce.spec(command=["echo", "2"], budget=12)
    assert bounce("run", spec, "--retry-failed", "--quiet").code == 0
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["done"] * 12


def test_max_failures_is_in_the_spec_and_on_the_command_line(bounce: Terminal) -> None:
    command = ["sh", "-c", "exit 3"]
    for words, pending in (([], 2), (["--max-failures", "4"], 4)):
        said = bounce("run", bounce.spec(f"p{pending}", command=command, max_failures=2), *words)
        assert said.code == 1
        assert f"the first {pending} evaluations of this run failed alike" in said.err
        assert len(bounce.trials(f"p{pending}.db")) == pending
    said = bounce("run", bounce.spec("all", command=command), "--max-failures", "9", "--quiet")
    assert (said.code, said.out) == (1, "")
    assert said.err == "bounce: all evaluations failed; the first error was: the command ended with exit status 3\n"
    assert [trial["state"] for trial in bounce.trials("all.db")] == ["failed"] * 6


def test_a_new_study_takes_its_method_from_the_command_line(bounce: Terminal) -> None:
    spec = bounce.spec()
    assert bounce("run", spec, "--method", "paper", "--quiet").code == 0
    with Study.open("a.db") as study:
        assert study.options["method"] == "paper"
    refused = bounce("run", spec)
    assert refused.code == 2
    assert 'method is "paper", not "default"' in refused.err
    refused = bounce("run", bounce.spec("b"), "--method", "papre")
    assert refused.code == 2
    assert "method must be 'default' or 'paper'" in refused.err
    assert not (bounce.folder / "b.db").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_failing_function_ends_a_run_with_its_exception(bounce: Terminal, workers: str) -> None:
    module = f"failing{workers}"
    (bounce.folder / f"{module}.py").write_text("def loss(point):\n    raise KeyError('oxygen')\n")
    said = bounce("run", bounce.spec(objective=f"{module}:loss", budget=30), "--workers", workers)
    assert said.code == 1
    assert "bounce: the first 3 evaluations of this run failed alike (KeyError: 'oxygen')" in said.err
    shown = said.err.splitlines()[:5]
    assert re.fullmatch(r"bounce: trial \d failed: KeyError: 'oxygen'", shown[0])
    assert shown[1] == "Traceback (most recent call last):"
    assert shown[2].endswith(f'{module}.py", line 2, in loss')
    assert said.err.count("Traceback") == 1
    assert {trial["state"] for trial in bounce.trials("a.db")} == {"pending"}


def test_a_short_run_without_a_value_is_an_error_too(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(command=["true"], budget=2))
    assert said.code == 1
    assert said.err.endswith(
        "bounce: all evaluations failed; the first error was: the command printed nothing; it must print its value on "
        "standard output\n"
    )
    assert bounce("best", "a.db").out == "no values yet; 0 pending, 2 failed\n"


def test_some_failures_do_not_end_a_run(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(command=["sh", "-c", 'test "$0" = true && echo 1', "{deep}"]))
    assert said.code == 0
    states = [trial["state"] for trial in bounce.trials("a.db")]
    assert set(states) == {"done", "failed"}
    assert [f"trial {i} failed" in said.err for i in range(6)] == [state == "failed" for state in states]


def test_a_function_runs_in_one_process_and_in_two(bounce: Terminal) -> None:
    (bounce.folder / "plain.py").write_text("def loss(point):\n    return point['x']\n")
    for name, workers in (("one", 1), ("two", 2)):
        assert bounce("run", bounce.spec(name, objective="plain:loss"), "--workers", str(workers)).code == 0
    one, two = bounce.trials("one.db"), bounce.trials("two.db")
    assert len(one) == len(two) == 6
    assert all(trial["value"] == trial["point"]["x"] for trial in (*one, *two))


def test_a_fault_that_is_not_the_objectives_is_not_called_its_failure(
    bounce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bounce.live import display

    def broken(*_: object) -> None:
        raise OSError("no such paper")

    monkeypatch.setattr(display.Lines, "__call__", broken)
    said = bounce("run", bounce.spec())
    assert (said.code, said.err) == (1, "bounce: no such paper\n")


@pytest.mark.slow
def test_a_reader_that_has_read_enough_ends_a_run_quietly(bounce: Terminal) -> None:
    bounce.spec(budget=40)
    process = bounce.start("run", "a.toml", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["id"] == 0
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "")


# interrupts


@pytest.mark.slow
def test_after_ctrl_c_a_run_waits_and_says_how_to_resume(bounce: Terminal, gate: Gate) -> None:
    straight = bounce.spec("straight")
    bounce("run", straight)
    bounce.spec(command=gate.command)
    process = bounce.start("run", "a.toml", "--batch-size", "1")
    gate.wait()
    gate.let()
    gate.wait()  # the second one is out
    running = bounce("status", "a.db")
    assert f"run by   process {process.pid} on " in running.out
    assert "done     1 of 6, 4 left to ask\npending  1\n" in running.out
    assert len(bounce.trials("a.db")) == 2
    assert bounce("run", "a.toml").code == 3
    process.send_signal(signal.SIGINT)
    assert "press Ctrl-C again to stop at once" in awaited(process, "interrupted: waiting for running evaluations")
    gate.let()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    path = bounce.folder / "a.db"
    assert f"bounce: 2 values are stored in {path}; to resume: bounce run a.toml --batch-size 1\n" in err
    assert err.endswith("bounce: interrupted\n")
    gate.open()
    assert bounce("run", "a.toml").code == 0
    assert bounce.trials("a.db") == bounce.trials("straight.db")


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_json_ends_with_its_final_object_after_an_interrupt_too(
    bounce: Terminal, gate: Gate, numbers: list[signal.Signals]
) -> None:
    bounce.spec(command=gate.command)
    process = bounce.start("run", "a.toml", "--json")
    gate.wait()
    gate.let()
    gate.wait()
    process.send_signal(numbers[0])
    if numbers == [signal.SIGINT]:
        awaited(process, "interrupted: waiting")
        gate.let()
    for number in numbers[1:]:
        awaited(process, "interrupted: waiting")
        process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == (143 if numbers == [signal.SIGTERM] else 130)
    *trials, last = map(json.loads, out.splitlines())
    done = 2 if numbers == [signal.SIGINT] else 1
    assert [trial["id"] for trial in trials] == list(range(done))
    assert (last["done"], last["pending"], last["failed"]) == (done, 2 - done, 0)
    assert last["best"]["id"] == trials[-1]["best"]
    assert last["study"] == str(bounce.folder / "a.db")


def test_json_ends_with_its_final_object_when_the_objective_is_broken(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(command=["false"]), "--json")
    assert said.code == 1
    last = json.loads(said.out)
    assert (last["best"], last["pending"], last["failed"]) == (None, 3, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([signal.SIGINT, signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),
        ([signal.SIGINT, signal.SIGTERM], 143),
    ],
)
def test_a_second_ctrl_c_or_a_request_to_end_does_not_wait(
    bounce: Terminal, gate: Gate, numbers: list[signal.Signals], code: int
) -> None:
    bounce.spec(command=gate.command, workers=2)
    process = bounce.start("run", "a.toml")
    gate.wait()
    gate.wait()
    for place, number in enumerate(numbers):
        if place:
            awaited(process, "interrupted: waiting")
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "0 values are stored in" in err
    assert "Traceback" not in err
    with Study.open("a.db") as study:
        assert [trial.state for trial in study.trials] == ["pending"] * 2
    gate.let()  # nobody is left to read it
    gate.open()
    assert bounce("run", "a.toml").code == 0
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["done"] * 6


@pytest.mark.slow
def test_a_run_that_was_killed_continues_as_if_it_had_not_been(bounce: Terminal, gate: Gate) -> None:
    bounce("run", bounce.spec("straight"))
    bounce.spec(command=gate.command)
    process = bounce.start("run", "a.toml")
    for _ in range(3):
        gate.wait()
        gate.let()
    gate.wait()
    process.kill()
    process.communicate()
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["done"] * 3 + ["pending"]
    assert "run by   nobody" in bounce("status", "a.db").out
    gate.let()  # the command outlives its run that was killed
    gate.open()
    assert bounce("run", "a.toml").code == 0
    assert bounce.trials("a.db") == bounce.trials("straight.db")


# people at a bench


def test_asked_filled_in_and_told(bounce: Terminal) -> None:
    spec = bounce.spec(command=None, budget=8)
    asked = bounce("ask", spec, "-n", "4", "--format", "csv")
    assert asked.code == 0
    rows = list(csv.DictReader(io.StringIO(asked.out)))
    assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    assert list(rows[0]) == ["id", "x", "deep", "kernel", "value"]
    assert bounce("ask", spec, "--pending", "--format", "csv").out == asked.out
    values = ["0.5", "failed", "", "-1e-3"]
    table = asked.out.splitlines()
    table = [table[0], *(line + value for line, value in zip(table[1:], values, strict=True))]
    (bounce.folder / "results.csv").write_text("\n".join(table), encoding="utf-8")
    told = bounce("tell", "a.db", "results.csv")
    assert (told.code, told.out) == (0, "3 stored; 1 pending, 4 left to ask\n")
    trials = bounce.trials("a.db")
    assert [trial["value"] for trial in trials] == [0.5, None, None, -1e-3]
    assert [trial["state"] for trial in trials] == ["done", "failed", "pending", "done"]
    assert [str(trial["point"]["x"]) for trial in trials] == [row["x"] for row in rows]
    pending = json.loads(bounce("ask", "a.db", "--pending", "--format", "json").out)
    assert [(trial["id"], trial["state"]) for trial in pending] == [(2, "pending")]


def test_results_come_from_standard_input_too(bounce: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    bounce("ask", bounce.spec(command=None), "-n", "2")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfid,value\r\n1,2.5\r\n")))
    told = bounce("tell", "a.toml", "-")
    assert (told.code, told.out) == (0, "1 stored; 1 pending, 4 left to ask\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"id,value\n7,2.5\n")))
    refused = bounce("tell", "a.toml", "-")
    assert (refused.code, refused.err) == (2, "bounce: standard input, row 2: trial 7 does not exist\n")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("id,value\n0,1\n9,2\n", "row 3: trial 9 does not exist"),
        ("id,value\n0,1\n0,2\n", "row 3: trial 0 is already in row 2"),
        ("id,result\n0,1\n", "row 1: the column 'value' is missing; the columns are id, result"),
        ('id,value\n0,1\n1,"1,5"\n', "row 3: a value must be a finite number or 'failed', not '1,5'"),
        ("id;value\n0;1,5\n1;1.5\n", "row 3: '1,5' in row 2 has a decimal comma"),
        ("id,value\n0,1\n1,nan\n", "row 3: a value must be a finite number"),
        ("", "the table is empty"),
    ],
)
def test_a_table_with_a_mistake_changes_nothing(bounce: Terminal, table: str, said: str) -> None:
    bounce("ask", bounce.spec(command=None), "-n", "2")
    (bounce.folder / "results.csv").write_text(table)
    refused = bounce("tell", "a.db", "results.csv")
    assert refused.code == 2
    assert refused.err.startswith("bounce: results.csv")
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert [trial["state"] for trial in bounce.trials("a.db")] == ["pending"] * 2


def test_a_file_of_results_that_is_not_there_is_said_to_be_missing(bounce: Terminal) -> None:
    bounce("ask", bounce.spec(command=None))
    for name in ("nowhere.csv", "."):
        said = bounce("tell", "a.db", name)
        assert said.code == 2
        assert f"{name}: the file cannot be read" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "empty.db"), "empty.db is empty: it contains no study"),
        (("plot", "none.jsonl"), "the trace none.jsonl does not exist"),
        (("watch", "a.db", "--host", "999.1.1.1"), "Choose another --host"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_not_there_is_named(words: tuple[str, ...], said: str, bounce: Terminal) -> None:
    bounce("ask", bounce.spec())
    (bounce.folder / "empty.db").write_bytes(b"")
    refused = bounce(*words)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert refused.err.startswith("bounce: ")
    assert refused.err.endswith(f"{said}\n")
    assert "Errno" not in refused.err


def test_a_run_whose_budget_is_spent_has_succeeded(bounce: Terminal) -> None:
    first = bounce("run", bounce.spec(), "--quiet")
    again = bounce("run", "a.toml", "--quiet")
    assert (again.code, again.out) == (0, first.out)
    assert bounce("ask", "a.toml").code == 2


def test_a_spent_budget_says_what_to_do(bounce: Terminal) -> None:
    bounce("ask", bounce.spec(command=None, budget=3), "-n", "9")
    said = bounce("ask", "a.db")
    assert said.code == 2
    assert said.err == (
        "bounce: the budget is spent: raise it in the spec, then ask with the spec "
        "(3 pending: bounce ask --pending a.db shows them)\n"
    )
    more = bounce("ask", bounce.spec(command=None, budget=4), "-n", "9", "--format", "json")
    assert [trial["id"] for trial in json.loads(more.out)] == [3]


def test_a_known_point_of_an_exhausted_space_is_measured_again(bounce: Terminal) -> None:
    spec = bounce.spec(command=None, parameters='[[parameters]]\nname = "b"\ntype = "binary"\n')
    bounce("ask", spec, "-n", "6")
    (bounce.folder / "told.csv").write_text("id,value\n0,1\n1,2\n")
    bounce("tell", spec, "told.csv")
    said = bounce("ask", spec)
    assert said.code == 2
    assert said.err == (
        "bounce: all 2 points of the space have been asked for. "
        "To measure one of them again, queue it with bounce enqueue\n"
    )
    (bounce.folder / "again.csv").write_text("b\ntrue\n")
    bounce("enqueue", spec, "again.csv")
    (trial,) = json.loads(bounce("ask", spec, "--format", "json").out)
    assert (trial["id"], trial["point"]) == (2, {"b": True})


def test_a_space_of_few_points_is_exhausted_in_words(bounce: Terminal) -> None:
    spec = bounce.spec(command=None, parameters='[[parameters]]\nname = "b"\ntype = "binary"\n')
    assert len(json.loads(bounce("ask", spec, "-n", "6", "--format", "json").out)) == 2
    said = bounce("ask", spec)
    assert said.code == 2
    assert said.err.startswith("bounce: all 2 points of the space have been asked for (2 pending")


# what there is to see


STRANGE = """
[[parameters]]
name = "[bold]x[/bold]"
type = "real"
low = 0.0
high = 1.0

[[parameters]]
name = "two\\nlines \\u001b[31m"
type = "categorical"
choices = ["a,b", "--help", "[red]\\"q\\"[/red]", "déjà\\nvu 数"]

[[parameters]]
name = "value"
type = "binary"
"""


def test_strange_names_and_values_stay_as_they_are(bounce: Terminal) -> None:
    spec = bounce.spec(parameters=STRANGE, command=["sh", "-c", 'echo "${{#0}}"', "{two\nlines \x1b[31m}"], budget=8)
    assert bounce("run", spec).code == 0
    trials = bounce.trials(spec)
    words = [trial["point"]["two\nlines \x1b[31m"] for trial in trials]
    assert len(set(words)) == 4
    lengths = {"déjà\nvu 数": (9, 13)}  # characters or bytes, as the shell counts
    assert all(trial["value"] in lengths.get(word, (len(word),)) for trial, word in zip(trials, words, strict=True))
    table = bounce("trials", spec).out
    assert "[bold]x[/bold]" in table
    assert "two\\nlines \\x1b[31m" in table
    assert '[red]"q"[/red]' in table
    assert "déjà\\nvu 数" in table
    assert "\x1b" not in table + bounce("best", spec).out
    rows = list(csv.DictReader(io.StringIO(bounce("trials", spec, "--format", "csv").out)))
    assert [row["two\nlines \x1b[31m"] for row in rows] == words
    assert [float(row["value"]) for row in rows] == [trial["value"] for trial in trials]
    assert {row["point.value"] for row in rows} <= {"true", "false"}


def test_a_study_without_trials_can_be_looked_at(bounce: Terminal) -> None:
    bounce.spec()
    assert bounce("status", "a.toml").code == 2
    bounce("ask", "a.toml", "--pending")
    assert not (bounce.folder / "a.db").exists()  # to look creates nothing
    with Study.open("a.db", space=_space(bounce), budget=6, seed=1):
        pass
    assert bounce("trials", "a.db").out == "no trials yet\n"
    assert bounce("ask", "a.db", "--pending").out == "no trial is pending\n"
    assert bounce("trials", "a.db", "--format", "json").out.split() == ["[", "]"]
    assert bounce("trials", "a.db", "--format", "csv").out.startswith("id,")
    assert bounce("best", "a.db").out == "no values yet; 0 pending, 0 failed\n"
    assert json.loads(bounce("best", "a.db", "--json").out)["best"] is None
    assert "none yet" in bounce("status", "a.db").out
    for suffix in ("csv", "json", "parquet"):
        assert bounce("export", "a.db", f"a.{suffix}").out == f"0 trials written to a.{suffix}\n"
    assert bounce("plot", "a.db").err == "bounce: a.db has no values yet, so there is nothing to plot\n"


def _space(bounce: Terminal) -> Any:
    from bounce.spec.document import load

    return load(bounce.folder / "a.toml").space


def test_the_best_of_a_study_that_maximizes_is_its_highest(bounce: Terminal) -> None:
    said = bounce("run", bounce.spec(direction="maximize"))
    highest = max(bounce.trials("a.db"), key=lambda trial: trial["value"])
    assert said.out.startswith(f"best value {highest['value']!r} ")
    assert f"best {highest['value']:.6g} (trial {highest['id']})" in said.err.splitlines()[-1]
    assert json.loads(bounce("best", "a.db", "--json").out)["best"]["id"] == highest["id"]
    assert f"best     {highest['value']:.6g} (trial" in bounce("status", "a.db").out


def test_status_says_everything_to_people_and_to_machines(bounce: Terminal) -> None:
    bounce("run", bounce.spec())
    words = [line.split()[0] for line in bounce("status", "a.toml").out.splitlines()]
    assert words == ["study", "done", "pending", "failed", "best", "stage", "region", "time", "run"]
    status = json.loads(bounce("status", "a.db", "--json").out)
    assert (status["budget"], status["done"], status["pending"], status["failed"]) == (6, 6, 0, 0)
    assert status["target_dim"] == status["dimensions"] == 3
    assert status["seconds_ask"] > 0
    assert status["seconds_eval"] > 0
    assert status["runner"] is None


@pytest.mark.slow
def test_export_writes_what_trials_prints(bounce: Terminal) -> None:
    bounce("run", bounce.spec())
    for suffix in ("csv", "json"):
        assert bounce("export", "a.toml", f"out.{suffix}").out == f"6 trials written to out.{suffix}\n"
        assert (bounce.folder / f"out.{suffix}").read_text() == bounce("trials", "a.db", "--format", suffix).out
    refused = bounce("export", "a.db", "out.csv")
    assert (refused.code, refused.err) == (
        2,
        "bounce: out.csv already exists: choose another name, or use --overwrite\n",
    )
    assert bounce("export", "a.db", "out.csv", "--overwrite").code == 0
    import pyarrow.parquet

    assert bounce("export", "a.db", "out.parquet").code == 0
    assert pyarrow.parquet.read_table("out.parquet").column("id").to_pylist() == list(range(6))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("out.txt", "the file must end in .csv, .json or .parquet, not 'out.txt'"),
        ("nowhere/out.csv", "the folder 'nowhere' does not exist"),
        ("/proc/out.csv", "nothing can be written to the folder '/proc'"),
    ],
)
def test_export_refuses_places_that_cannot_be(bounce: Terminal, name: str, said: str) -> None:
    bounce("ask", bounce.spec())
    refused = bounce("export", "a.db", name)
    assert refused.code == 2
    assert said in refused.err


@pytest.mark.slow
def test_plot_draws_studies_of_any_name(bounce: Terminal) -> None:
    bounce("run", bounce.spec("a$b_{$c", direction="maximize"))
    said = bounce("plot", "a$b_{$c.db", "--out", "p.svg")
    assert (said.code, said.out) == (0, "p.svg\n")
    assert "<svg" in (bounce.folder / "p.svg").read_text()
    refused = bounce("plot", "a.db", "b.db")
    assert refused.code == 2
    assert "give one study, or one or more traces that end in .jsonl" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ("export", "a.db", "out.csv"),
        ("plot", "a.db", "--out", "out.svg"),
        ("plot", "t.jsonl", "--out", "out.png"),
        ("report", "a.db", "--out", "out.html"),
    ],
    ids=" ".join,
)
def test_a_file_is_replaced_as_a_whole_or_not_at_all(
    words: tuple[str, ...], bounce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounce("run", bounce.spec(), "--quiet")
    rows = [dict.fromkeys(FIELDS, 1) | {"point": {}, "state": "done"} for _ in range(2)]
    (bounce.folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out, mine = bounce.folder / words[-1], bounce.folder / "mine"
    mine.write_text("mine")
    out.symlink_to(mine)
    before = sorted(bounce.folder.iterdir())
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", disk_full)
        refused = bounce(*words, "--overwrite")
    assert (refused.code, refused.err) == (2, f"bounce: {out.name} cannot be written: No space left on device\n")
    assert sorted(bounce.folder.iterdir()) == before
    assert bounce(*words, "--overwrite").code == 0
    assert not out.is_symlink()
    assert mine.read_text() == "mine"


def test_a_parquet_file_that_cannot_be_written_has_its_own_name(
    bounce: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    bounce("ask", bounce.spec())
    monkeypatch.setattr(Path, "write_bytes", disk_full)
    refused = bounce("export", "a.db", "out.parquet")
    assert (refused.code, refused.err) == (2, "bounce: out.parquet cannot be written: No space left on device\n")


def disk_full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_plot_does_not_replace_a_picture_silently(bounce: Terminal) -> None:
    bounce("run", bounce.spec())
    assert bounce("plot", "a.db").out == "bounce.png\n"
    (bounce.folder / "bounce.png").write_text("mine")
    refused = bounce("plot", "a.db")
    assert refused.code == 2
    assert refused.err == "bounce: bounce.png already exists: choose another name, or use --overwrite\n"
    assert (bounce.folder / "bounce.png").read_text() == "mine"
    assert bounce("plot", "a.db", "--overwrite").code == 0
    assert (bounce.folder / "bounce.png").read_bytes().startswith(b"\x89PNG")


# files that are not studies, or that another process uses


def test_a_study_that_another_one_runs_is_locked(bounce: Terminal) -> None:
    spec = bounce.spec()
    bounce("ask", spec, "-n", "2")
    (bounce.folder / "results.csv").write_text("id,value\n0,1\n")
    with Study.open("a.db") as study, study._keeper.occupied():
        for arguments in (["run", "a.toml"], ["ask", "a.db"], ["tell", "a.db", "results.csv"]):
            said = bounce(*arguments)
            assert said.code == 3
            assert f"a.db is being run by process {os.getpid()} on " in said.err
            assert said.err.count("\n") == 1
        assert f"run by   process {os.getpid()} on " in bounce("status", "a.db").out
        assert len(bounce.trials("a.db")) == 2
    assert bounce("tell", "a.db", "results.csv").code == 0


def test_a_study_on_a_full_disk_can_be_looked_at(bounce: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    bounce("run", bounce.spec(), "--quiet")

    def full(*_: object, **__: object) -> None:
        raise StorageFailed("database or disk is full")

    monkeypatch.setattr(Lock, "acquire", full)
    said = bounce("status", "a.db")
    assert (said.code, said.err) == (0, "")
    assert "run by   nobody" in said.out
    refused = bounce("ask", bounce.spec(budget=7))
    assert (refused.code, refused.err) == (1, "bounce: database or disk is full\n")


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cooking (recipe TEXT)")
    connection.close()


def of_optuna(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for table in ("studies", "study_directions", "trials", "trial_params", "alembic_version"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER)")


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:6000])


def damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 512 + content[4608:])


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "from_study", "said"),
    [
        (foreign, False, "is a database, but not a study of Bounce"),
        (of_optuna, False, "is a storage of Optuna, not a study of Bounce: docs/optuna.md says how to go on with it"),
        (newer, True, "has format 99, and this release reads formats up to"),
        (truncated, True, "damaged"),
        (damaged, True, "damaged"),
        (folder, False, "is a folder, but a study is a file"),
        (lambda path: path.write_text("a text\n" * 1000), False, "is not a study, or it is damaged"),
        (lambda path: path.unlink(), True, "the study a.db does not exist; bounce run or bounce ask"),
    ],
)
def test_a_file_that_is_not_a_study_is_one_sentence(bounce: Terminal, harm: Any, from_study: bool, said: str) -> None:
    spec = bounce.spec()
    if from_study:
        bounce("ask", spec, "-n", "5")
    harm(bounce.folder / "a.db")
    path = bounce.folder / "a.db"
    before = path.read_bytes() if path.is_file() else None
    for command in ("status", "trials", "best", "ask"):
        refused = bounce(command, "a.db")
        assert refused.code == 2
        assert said in refused.err
        assert refused.err.count("\n") == 1
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_study_where_nothing_can_be_written_is_refused(bounce: Terminal) -> None:
    for path, said in (
        ("/proc/a.db", "its folder cannot be written to"),
        ("no/a.db", "the folder no for the study a.db does not exist"),
    ):
        for command in ("run", "ask"):
            refused = bounce(command, bounce.spec(), "--study", path)
            assert refused.code == 2
            assert said in refused.err


@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_sentence(bounce: Terminal) -> None:
    bounce("ask", bounce.spec())
    with open("/dev/full", "w") as full:
        process = bounce.start("trials", "a.db", stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "bounce: [Errno 28] No space left on device\n")


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show_are_escaped(bounce: Terminal) -> None:
    parameters = '[[parameters]]\nname = "数"\ntype = "binary"\n'
    bounce("ask", bounce.spec(parameters=parameters, command=None))
    process = bounce.start("trials", "a.db", env=os.environ | {"PYTHONIOENCODING": "latin-1"}, encoding="latin-1")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\\u6570" in out


# a terminal


@pytest.mark.slow
def test_the_panel_shows_where_a_run_stands(bounce: Terminal) -> None:
    bounce.spec("my study", budget=12, command=["sh", "-c", 'test "$1" = true && echo "$0"', "{x}", "{deep}"])
    master, slave = pty.openpty()
    size = {"COLUMNS": "100", "LINES": "30", "TERM": "xterm"}
    process = bounce.start("run", "my study.toml", stderr=slave, env=os.environ | size)
    os.close(slave)
    shown = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # how Linux says that the other side is gone
            break
        if not block:
            break
        shown += block
    os.close(master)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("best value ")
    text = shown.decode()
    last = text[text.rindex("my study") :]
    trials = bounce.trials("my study.db")
    failed = sum(trial["state"] == "failed" for trial in trials)
    best = min((trial for trial in trials if trial["state"] == "done"), key=lambda trial: trial["value"])
    assert f"12 of 12 finished: {12 - failed} done, {failed} failed; 0 in flight" in last
    assert f"{best['value']:.6g} (trial {best['id']})  " in last
    assert "▁" in last
    assert "3 bins, 3 variables" in last
    assert "of their range" in last
    assert "ms, evaluation " in last
    assert "so far, finished" in last
    assert text.count("failed: the command ended with exit status 1") == failed  # above the panel


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_sentence(bounce: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", 0.5)
    said = bounce("run", bounce.spec(), "--dask", "tcp://127.0.0.1:1")
    assert said.code == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:1'" in said.err
    assert not (bounce.folder / "a.db").exists()


def test_a_timeout_of_a_function_does_not_go_with_dask(bounce: Terminal) -> None:
    (bounce.folder / "quick.py").write_text("def loss(point):\n    return 0.0\n")
    said = bounce("run", bounce.spec(objective="quick:loss", timeout=3), "--dask", "tcp://127.0.0.1:1")
    assert said.code == 2
    assert "on a Dask cluster only a command can have a timeout" in said.err


def test_help_loads_nothing_that_is_slow() -> None:
    code = (
        "import sys; before = set(sys.modules); import bounce.cli; print({'numpy', 'scipy', 'matplotlib', "
        "'sqlite3', 'rich.live', 'bounce.study'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([COMMAND[0], "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_echo_is_the_command_of_these_tests() -> None:
    done = subprocess.run([*ECHO[:-1], "-n 1"], capture_output=True, text=True, check=True)
    assert done.stdout == "-n 1\n"


# What strangers found


@pytest.mark.slow
def test_a_run_needs_no_standard_output(bounce: Terminal) -> None:
    path = bounce.spec()
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "run", str(path)], stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert len(bounce.trials("a.db")) == 6


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_folder_as_the_study_of_a_run_is_refused(bounce: Terminal, place: str) -> None:
    said = bounce("run", bounce.spec(), "--study", place)
    assert said.code == 2
    assert said.err.startswith("bounce: ")
    assert "is a folder, but a study is a file" in said.err


def test_studies_with_dots_in_their_names_have_logs_of_their_own(bounce: Terminal) -> None:
    path = bounce.spec()
    for name in ("run.1", "run.2"):
        assert bounce("run", path, "--study", name).code == 0
    assert {p.name for p in bounce.folder.glob("*.trials")} == {"run.1.trials", "run.2.trials"}


def test_why_a_trial_failed_is_in_one_line_everywhere(bounce: Terminal) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; x = {x}; print(x) if x > 0.5 else sys.exit('too small\\nby far')",
    ]
    said = bounce("run", bounce.spec(command=command))
    assert "failed: the command ended with exit status 1; its standard error ends with: by far\n" in said.err
    assert "standard error ends with: by far)" in bounce("status", "a.db").out
    assert "by far" in bounce("trials", "a.db").out


def test_a_space_without_more_points_is_told_of(bounce: Terminal) -> None:
    (bounce.folder / "s.toml").write_text(
        'budget = 10\ncommand = ["echo", "{k}"]\n[[parameters]]\nname = "k"\ntype = "integer"\nlow = 0\nhigh = 2\n'
    )
    said = bounce("run", "s.toml", "--quiet")
    assert said.out.startswith("all 3 points of the space have been tried\nbest value 0.0 ")
    assert "done     3 of 3, 0 left to ask (the space has no more points; the budget is 10)" in (
        bounce("status", "s.db").out
    )
