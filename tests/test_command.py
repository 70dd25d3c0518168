from __future__ import annotations

import copy
import json
import os
import pickle
import random
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bounce import Binary, Categorical, Integer, InvalidOption, MachineFailed, Ordinal, Real, Space
from bounce.running import command as module
from bounce.running import output, reaper
from bounce.running.command import Command
from bounce.running.evaluation import Outcome, evaluate
from bounce.running.pool import Pool
from bounce.running.reaper import REAPER
from bounce.trial import Trial

SPACE = Space([Real("x", 0, 1), Categorical("kind", ["a", "b"])])
POINT: dict[str, Any] = {"x": 0.1, "kind": "a"}


def python(code: str, *arguments: str, **fields: Any) -> Command:
    escaped = code.replace("{", "{{").replace("}", "}}")
    return Command([sys.executable, "-c", escaped, *arguments], **fields)


def run(command: Command, point: dict[str, Any] | None = None, number: int = 17) -> Outcome:
    return command.evaluate(Trial(number, POINT if point is None else point))


class Alive:
    """A named pipe that processes hold open as long as they live."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "alive"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._writer = os.open(self.path, os.O_WRONLY)

    def _read(self, most: int) -> bytes:
        assert select.select([self._reader], [], [], 60)[0], "a process neither began nor ended"
        return os.read(self._reader, most)

    def began(self, processes: int) -> None:
        """Wait until this many processes hold the pipe."""
        for _ in range(processes):
            assert self._read(1) == b"u"

    def ended(self) -> None:
        """Wait until none does."""
        os.close(self._writer)
        assert self._read(1) == b""
        os.close(self._reader)


@pytest.fixture
def alive(tmp_path: Path) -> Alive:
    return Alive(tmp_path)


# what a command must look like


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a non-empty list of strings, not []"),
        ("ls -l", "a non-empty list of strings, not 'ls -l'"),
        (b"ls", "a non-empty list of strings"),
        ({"ls"}, "a non-empty list of strings"),
        (["ls", 3], "must be strings without NUL, not 3"),
        (["ls", "a\0b"], "must be strings without NUL"),
        ([""], "must begin with the name of a program, not ''"),
        (["{kind}"], "must begin with the name of a program, not '{kind}'"),
        (["ls", "{x"], "the braces in the argument '{x' do not match"),
        (["ls", "x}"], "the braces in the argument 'x}' do not match"),
        (["ls", "{a{b}}"], "do not match"),
        (["ls", "{x}}"], "do not match"),
        (["ls", "}x{"], "do not match"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_when_it_is_made(arguments: Any, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Command(arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "60", 10**400])
def test_a_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(InvalidOption, match="timeout must be a positive number of seconds"):
        Command(["ls"], timeout=timeout)


def test_a_limit_from_outside_can_only_shorten_the_timeout() -> None:
    assert Command(["ls"]).own_process
    assert Command(["ls"]).within(5) == Command(["ls"], timeout=5)
    assert Command(["ls"], timeout=3).within(5) == Command(["ls"], timeout=3)
    assert Command(["ls"], timeout=7).within(5) == Command(["ls"], timeout=5)
    with pytest.raises(InvalidOption, match="timeout must be a positive number"):
        Command(["ls"]).within(0)


def test_without_process_groups_there_are_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "killpg")
    with pytest.raises(InvalidOption, match="use a Python objective"):
        Command(["ls"])


def test_a_command_keeps_the_folder_it_was_made_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = python("import os; print(len(os.getcwd()))", logs=Path("logs"))
    monkeypatch.chdir("/")
    assert command.folder == tmp_path
    assert command.logs == tmp_path / "logs"
    assert run(command).value == len(str(tmp_path.resolve()))


def test_a_command_travels_by_pickle_and_runs_in_another_process(tmp_path: Path) -> None:
    command = python("print(2.5)", timeout=60, folder=tmp_path, logs=tmp_path / "logs")
    command.stop()
    again = pickle.loads(pickle.dumps(command))
    assert again == command
    assert hash(again) == hash(command)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(evaluate, command, Trial(0, {"x": 0.5})).result().value == 2.5


# the check before anything runs


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--x={X}", "the placeholder {X} names no parameter"),
        ("{kinds}", "did you mean {kind}?"),
        ("{x!r}", "{x!r} names no parameter"),
        ("{x.real}", "{x.real} names no parameter"),
        ("{x:.3f}", "{x:.3f} names no parameter"),
        ("{x[0]}", "{x[0]} names no parameter"),
        ("{ x}", "{ x} names no parameter"),
        ("{}", "{} names no parameter"),
        ("{print $1}", "to write a single brace, double it"),
    ],
)
def test_a_placeholder_that_names_no_parameter_is_refused(argument: str, said: str) -> None:
    command = Command([sys.executable, argument])
    with pytest.raises(InvalidOption) as caught:
        command.check(SPACE)
    assert said in str(caught.value)
    outcome = run(command)
    assert outcome.value is None
    assert outcome.error is not None
    assert said in outcome.error


def test_a_value_that_no_argument_can_hold_is_refused_where_it_would_be_one() -> None:
    space = Space([Categorical("name", ["a", "b\0c"]), Real("x", 0, 1)])
    with pytest.raises(InvalidOption, match=r"'name': the value 'b\\x00c' contains NUL"):
        Command([sys.executable, "{x}", "{name}"]).check(space)
    command = python("import json, sys; print(len(json.load(sys.stdin)['name']))", "{x}")
    command.check(space)
    assert run(command, {"name": "b\0c", "x": 0.0}).value == 3


def test_a_program_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "simulate"
    missing = Command(["./simulate"], folder=tmp_path)
    with pytest.raises(InvalidOption, match=r"the program '.*simulate' does not exist"):
        missing.check(SPACE)
    with pytest.raises(InvalidOption, match=r"the program '\./' does not exist: '.*' is a folder"):
        Command(["./", "x"], folder=tmp_path).check(SPACE)
    script.write_text("#!/bin/sh\necho 4\n")
    with pytest.raises(InvalidOption, match="cannot be executed: make it executable with chmod"):
        missing.check(SPACE)
    script.chmod(0o755)
    missing.check(SPACE)
    assert run(missing).value == 4
    with pytest.raises(InvalidOption, match=r"'simulate' is not in PATH; write './simulate' if it is in"):
        Command(["simulate"], folder=tmp_path).check(SPACE)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    Command(["simulate"], folder="/").check(SPACE)  # type: ignore[arg-type]
    Command([str(script)]).check(SPACE)
    with pytest.raises(InvalidOption, match=r"does not exist|is not in PATH"):
        Command(["./"], folder=tmp_path).check(SPACE)


# what reaches the command

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
awkward = st.sampled_from(
    [
        "",
        " ",
        "-",
        "--help",
        "$(id)",
        "`id`",
        "; rm -rf ~",
        "a b",
        "'",
        '"',
        "\\",
        "\n",
        "é",
        "\U0001d6fc",
        "{",
        "}",
        "{x}",
        "%s",
        "*",
    ]
)
values = st.one_of(
    texts,
    awkward,
    st.booleans(),
    st.none(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
)
names = st.one_of(texts, awkward).filter(bool)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(point=st.dictionaries(names, values, min_size=1, max_size=30))
def test_names_and_values_reach_the_command_as_they_are(point: dict[str, Any]) -> None:
    code = (
        "import json, os, sys; given = sys.stdin.read(); assert given.strip() == os.environ['BOUNCE_POINT'];"
        "json.dump([sys.argv[1:], json.loads(given), os.environ['BOUNCE_TRIAL']], open('seen', 'w')); print(1)"
    )
    clean = {name: value for name, value in point.items() if name.strip("{}") == name}
    arguments = [f"<{{{name.replace('{', '{{').replace('}', '}}')}}}>" for name in clean]
    with TemporaryDirectory() as folder:
        assert run(python(code, *arguments, folder=Path(folder)), point).value == 1
        seen, read, number = json.loads((Path(folder) / "seen").read_text())
    assert read == point
    assert number == "17"
    for argument, value in zip(seen, clean.values(), strict=True):
        text = argument[1:-1]
        assert argument == f"<{text}>"
        assert text == value if isinstance(value, str) else json.loads(text) == value
        assert isinstance(value, str) or type(json.loads(text)) is type(value)


def shown(arguments: list[str], point: dict[str, Any]) -> list[str]:
    code = "import json, sys; print(json.dumps(sys.argv[1:]), file=sys.stderr); sys.exit(1)"
    error = run(python(code, *arguments), point).error
    assert error is not None
    found: list[str] = json.loads(error.split("ends with:\n")[1])
    return found


def test_braces_are_doubled_in_texts_and_in_names() -> None:
    point = {"x": 0.5, "a{b": 1, "c}d": 2, "}e": 3, "{": 4, "g}": 5, "{h}": 6}
    arguments = [
        "{{x}}",
        '{{"x": {x}}}',
        "{a{{b}",
        "{c}}d}",
        "{}}e}",
        "{{{}",
        "{g}}}",
        "{{{h}}}}}",
        "{x}{x}",
        "{{{{{x}",
    ]
    expected = ["{x}", '{"x": 0.5}', "1", "2", "3", "4", "5", "6}", "0.50.5", "{{0.5"]
    assert shown(arguments, point) == expected


def test_values_are_written_as_json_writes_them_except_strings() -> None:
    space = Space(
        [
            Real("real", -1, 1),
            Integer("integer", -5, 5),
            Ordinal("ordinal", [0.25, 2]),
            Categorical("categorical", [None, "null", 1, "1", True]),
            Binary("binary"),
        ]
    )
    point = {"real": 0.1 + 0.2, "integer": -3, "ordinal": 0.25, "categorical": "null", "binary": True}
    assert point in space
    written = shown([f"{{{name}}}" for name in point], point)
    assert written == ["0.30000000000000004", "-3", "0.25", "null", "true"]
    assert float(written[0]) == point["real"]


def test_a_large_point_comes_by_standard_input_only_and_may_be_left_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOUNCE_POINT", "of another run")
    point = {f"p{i}": "v" * 1000 for i in range(2000)}
    unread = python("import os; print(int('BOUNCE_POINT' in os.environ))")
    assert run(unread, point).value == 0
    assert run(python("import json, sys; print(len(json.load(sys.stdin)))"), point).value == 2000
    room = module.LONGEST_VARIABLE - len('BOUNCE_POINT={"p": ""}') - 1
    assert run(unread, {"p": "v" * room}).value == 1
    assert run(unread, {"p": "v" * (room + 1)}).value == 0


# the value


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        (b"0.5", 0.5),
        (b"1\n2\n3\n", 3.0),
        (b"loss\n-1e-3  \nthat was it\n\n", -1e-3),
        (b"\t+.5\r\n", 0.5),
        (b"5.", 5.0),
        (b"1E5", 1e5),
        (b"10 %\r50 %\r7\r", 7.0),
        (b'{"value": 3, "note": "fine"}\n', 3.0),
        (b'1\n{"value": -2.5}\nnot {"value": 3}\n{"valu', -2.5),
        (b'1\n{"loss": 2}\n', 1.0),
        (b'1\n[{"value": 2}]\n0x10\n1_000\n1,5\n1 2\n\xd9\xa3\n', 1.0),
        (b"\xff\xfe garbage\n4\n\xc3\x28\n\x00\n", 4.0),
        (b"-0", 0.0),
        (b"\x1b[32mloss\x1b[0m\n" * 50 + b"3\n", 3.0),
        (b"K\xfchlung l\xe4uft\n" * 50 + b"3\n", 3.0),
        (b"5\n" + b"x" * (output.SEARCHED - 2), 5.0),
        (b"y\n5\n" + b"x" * (output.SEARCHED - 2), 5.0),
        (b"2\n{" + b'"a":{' * 100_000, 2.0),
    ],
)
def test_the_value_is_the_last_line_that_is_one(printed: bytes, value: float, tmp_path: Path) -> None:
    (tmp_path / "printed").write_bytes(printed)
    outcome = run(Command(["cat", "printed"], folder=tmp_path))
    assert (outcome.value, outcome.error) == (value, None)
    assert str(outcome.value) == str(value)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (b"", "the command printed nothing"),
        (b" \n\n", "the command printed nothing"),
        (
            b"loss\nnone of it\n",
            "no line of the command's standard output is a number; the last one is 'none of it'",
        ),
        (b"1\nnan\n", "must be a finite number, but it printed 'nan'"),
        (b"-Infinity", "must be a finite number, but it printed '-Infinity'"),
        (b"1e999", "must be a finite number, but it printed '1e999'"),
        (b'{"value": "3"}', "must be a finite number"),
        (b'{"value": true}', "must be a finite number"),
        (b'{"value": null}', "must be a finite number"),
        (b'{"value": NaN}', "must be a finite number"),
        (b'{"value": 1' + b"0" * 400 + b"}", "must be a finite number"),
        (b"\xff\xfe\n", "the last one is '\\ufffd\\ufffd'".replace("\\ufffd", "\ufffd")),
        (b"\x007\x00", "no line of the command's standard output is a number; the last one is '\\x007\\x00'"),
        (b"\x1c7\x1d", "no line of the command's standard output is a number"),
        (b"\x857\xa0", "no line of the command's standard output is a number"),
        (b"\x1b[1m7\x1b[0m", "no line of the command's standard output is a number"),
        (b'{"value": 7}\x00', "no line of the command's standard output is a number"),
        (b"\xc2\x857", "no line of the command's standard output is a number"),
        (b"\x80\x01\n" * 50 + b"7\n", "the command's standard output is not text, so the line '7' in it is no value"),
        (random.Random(0).randbytes(10**6), "the command's standard output is not text"),
        (b"z" * 300, "'" + "z" * 100 + "…'"),
        (b"5\n" + b"x" * output.SEARCHED, "no whole line in the last 1024 KiB"),
        (b"5\n" + b"x" * (output.SEARCHED - 1) + b"\n", "no whole line in the last 1024 KiB"),
        (b"15" + b"\n" * output.SEARCHED, "no whole line in the last 1024 KiB"),
    ],
)
def test_without_a_finite_number_the_trial_fails(printed: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "printed").write_bytes(printed)
    outcome = run(Command(["cat", "printed"], folder=tmp_path))
    assert outcome.value is None
    assert outcome.error is not None
    assert said in outcome.error
    assert str(outcome.exception) == outcome.error


def test_output_of_any_size_is_kept_beside_the_study(tmp_path: Path) -> None:
    logs = tmp_path / "deep" / "study.trials"
    code = "import sys; sys.stdout.write('x' * 10**7 + '\\n7\\n'); sys.stderr.write('y' * 10**7)"
    assert run(python(code, logs=logs)).value == 7
    assert {path.name: path.stat().st_size for path in logs.iterdir()} == {
        "00017.out": 10**7 + 3,
        "00017.err": 10**7,
    }
    assert run(python("print(8)", logs=logs)).value == 8
    assert (logs / "00017.out").read_bytes() == b"8\n"
    assert (logs / "00017.err").read_bytes() == b""


# failures


def test_an_exit_status_fails_the_trial_and_quotes_standard_error() -> None:
    code = "import sys; print(1); [print('line', i, file=sys.stderr) for i in range(50)]; sys.exit(3)"
    outcome = run(python(code))
    assert outcome.value is None
    assert outcome.error == "the command ended with exit status 3; its standard error ends with:\n" + "\n".join(
        f"line {i}" for i in range(40, 50)
    )
    long = run(python("import sys; sys.stderr.buffer.write(b'\\xff' + 'é'.encode() * 10**6); sys.exit(1)")).error
    assert long is not None
    assert long.endswith("…" + "é" * output.QUOTED_CHARACTERS)
    assert run(python("import sys; print(1); sys.exit(2)")).error == "the command ended with exit status 2"


@pytest.mark.parametrize(("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGRTMIN + 3, "37")])
def test_a_signal_fails_the_trial_by_name(number: int, name: str) -> None:
    outcome = run(python(f"import os; print(1, flush=True); os.kill(os.getpid(), {int(number)})"))
    assert outcome.error == f"the command ended with signal {name}"


def test_faults_of_the_machine_are_no_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault_of(command: Command) -> str:
        with pytest.raises(MachineFailed, match=r"^the command could not be run: ") as caught:
            run(command)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        return str(caught.value)

    (tmp_path / "file").write_text("no folder")
    assert "Error" in fault_of(python("print(1)", logs=tmp_path / "file"))
    assert "FileNotFoundError" in fault_of(Command(["./nothing"], folder=tmp_path))
    assert "FileNotFoundError" in fault_of(python("print(1)", folder=tmp_path / "gone"))
    script = tmp_path / "script"
    script.write_text("echo 1\n")
    assert "PermissionError" in fault_of(Command(["./script"], folder=tmp_path))
    script.chmod(0o755)
    assert "a script needs a first line such as #!/bin/sh" in fault_of(Command(["./script"], folder=tmp_path))

    script.write_text("#!/no/such/shell\n")
    said = "; it exists, but its first line names a program that does not"
    assert fault_of(Command(["./script"], folder=tmp_path)).endswith(said)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fault_of(Command(["script"], folder=tmp_path)).endswith(said)

    def no_more(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", no_more)
    assert "temporarily unavailable" in fault_of(python("print(1)"))


@pytest.mark.parametrize(("kind", "said"), [("a\0b", "null byte"), ("a" * 10**7, "Argument list too long")])
def test_a_value_that_cannot_be_an_argument_fails_its_trial(kind: str, said: str) -> None:
    outcome = run(python("print(1)", "{kind}"), {"kind": kind})
    assert outcome.value is None
    assert outcome.error is not None
    assert outcome.error.startswith("the command could not be run: ")
    assert said in outcome.error


# ends

HOLD = "import os, signal, sys, time; os.write(os.open(sys.argv[1], os.O_WRONLY), b'u')"
FAMILY = f"""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, up = os.pipe()
if os.fork() == 0:
    {HOLD}
    os.write(up, b'u')
    time.sleep(1000)
os.read(ready, 1)
{HOLD}
print(5, flush=True)
"""


def time_is_over_once(monkeypatch: pytest.MonkeyPatch, alive: Alive, processes: int) -> None:
    """Let a timeout of 1000 s come as soon as this many processes hold the pipe."""

    class Popen(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if timeout == 1000:
                alive.began(processes)
                timeout = 0
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Popen)


def test_a_program_that_takes_too_long_fails_its_trial() -> None:
    outcome = run(python("import time; print(1, flush=True); time.sleep(1000)", timeout=0.05))
    assert outcome.value is None
    assert outcome.error == "the command was killed because it took longer than 0.05 s"
    assert outcome.seconds is not None
    assert 0.05 <= outcome.seconds < 1000


@pytest.mark.parametrize("timeout", [30 * 24 * 3600, 1e300])
def test_a_timeout_may_be_longer_than_the_system_can_wait_at_once(timeout: float) -> None:
    assert run(python("print(1)", timeout=timeout)).value == 1
    with Pool(1, timeout) as pool:
        assert pool.submit(abs, -3).result() == 3


def test_a_timeout_kills_a_program_that_ignores_sigterm_and_its_children(
    alive: Alive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 0.05)
    time_is_over_once(monkeypatch, alive, 2)
    code = FAMILY + "print('so far', file=sys.stderr, flush=True); time.sleep(1000)"
    outcome = run(python(code, str(alive.path), timeout=1000))
    assert outcome.value is None
    assert outcome.error is not None
    assert outcome.error.startswith("the command was killed because it took longer than 1000 s")
    alive.ended()


def test_a_program_may_clean_up_when_its_time_is_over(
    alive: Alive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 60)
    time_is_over_once(monkeypatch, alive, 1)
    code = (
        "import signal\n"
        "def end(*_):\n    open('clean', 'w'); print('cleaned', file=sys.stderr); print(1); sys.exit(0)\n"
        f"signal.signal(signal.SIGTERM, end)\n{HOLD}\ntime.sleep(1000)"
    )
    outcome = run(python(code, str(alive.path), timeout=1000, folder=tmp_path))
    assert outcome.value is None
    assert outcome.error is not None
    assert outcome.error.endswith("longer than 1000 s; its standard error ends with:\ncleaned")
    assert (tmp_path / "clean").exists()


@pytest.mark.parametrize("status", [0, 3])
def test_children_that_live_on_are_killed_with_the_end_of_the_program(status: int, alive: Alive) -> None:
    outcome = run(python(f"{FAMILY}sys.exit({status})", str(alive.path)))
    assert outcome.value == (5 if status == 0 else None)
    alive.began(2)
    alive.ended()


def test_an_interrupt_leaves_nothing_behind(alive: Alive, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Command, process: object) -> bool:
        alive.began(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(python(f"{FAMILY}time.sleep(1000)", str(alive.path)))
    alive.ended()


def test_stop_kills_what_is_running(alive: Alive) -> None:
    command = python(f"{FAMILY}time.sleep(1000)", str(alive.path))
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(command.evaluate, Trial(i, POINT)) for i in range(2)]
        alive.began(4)
        command.stop()
        for future in futures:
            assert future.result().error == "the command was killed because the run was stopped"
    alive.ended()


def test_stop_fails_what_begins_later_but_not_what_a_copy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    command = python("print(1)")
    command.stop()
    assert run(copy.copy(command)).value == 1
    monkeypatch.delattr(subprocess, "Popen")  # nothing is started at all
    assert run(command).error == "the command was killed because the run was stopped"


def test_a_stop_while_the_program_is_being_started_kills_it(alive: Alive, monkeypatch: pytest.MonkeyPatch) -> None:
    command = python(f"{FAMILY}time.sleep(1000)", str(alive.path))

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            alive.began(2)
            stopper = threading.Thread(target=command.stop)
            stopper.start()
            stopper.join()

    monkeypatch.setattr(subprocess, "Popen", Popen)
    assert run(command).error == "the command was killed because the run was stopped"
    alive.ended()


DRIVER = """
import sys
from pathlib import Path
import bounce
from bounce.trial import Trial

code, alive = sys.argv[1:]
bounce.Command([sys.executable, "-c", code, alive], folder=Path("/")).evaluate(Trial(0, {}))
"""


def test_a_program_and_its_children_are_killed_when_the_process_that_started_it_is(alive: Alive) -> None:
    code = f"{FAMILY}time.sleep(1000)".replace("{", "{{").replace("}", "}}")
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, code, str(alive.path)])
    alive.began(2)
    time.sleep(1.0)  # the reaper hears of the program right after it has begun
    driver.kill()
    driver.wait()
    alive.ended()


@pytest.mark.slow
def test_a_reaper_that_was_killed_is_replaced(alive: Alive) -> None:
    script = (
        "import os, signal\nfrom bounce.running.reaper import REAPER\nREAPER.add(10**8)\n"
        "REAPER._shell.kill(); REAPER._shell.wait()\n"
    )
    code = f"{FAMILY}time.sleep(1000)".replace("{", "{{").replace("}", "}}")
    driver = subprocess.Popen([sys.executable, "-c", script + DRIVER, code, str(alive.path)])
    alive.began(2)
    time.sleep(1.0)  # the reaper hears of the program right after it has begun
    driver.kill()
    driver.wait()
    alive.ended()


def test_a_program_that_has_ended_is_forgotten() -> None:
    assert run(python("print(1)")).value == 1
    assert REAPER._groups == set()


def test_a_machine_without_a_shell_runs_commands_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "_started", lambda: None)
    monkeypatch.setattr(module, "REAPER", reaper.Reaper())
    assert run(python("print(1)")).value == 1
