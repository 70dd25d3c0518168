"""What a run in Python shows: progress in a terminal, a notebook or a log, and studies in notebooks."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bounce
from bounce import Bounce, Categorical, InvalidOption, Real, Result, Space, Study, Trial
from bounce.live.display import QUIET, Notebook, Panel, Summaries, is_notebook, shown
from bounce.live.progress import Progress
from bounce.markup import facts
from spaces import binary
from terminal import Screen


def count_ones(point: dict[str, Any]) -> float:
    return float(sum(point.values()))


def half_fails(point: dict[str, Any]) -> float:
    if point["x0"]:
        raise ValueError("x0 must not be set")
    return count_ones(point)


# progress


def test_a_run_shows_nothing_unless_it_is_asked_to(capfd: pytest.CaptureFixture[str]) -> None:
    bounce.minimize(count_ones, binary(6), budget=6, seed=0)
    assert capfd.readouterr() == ("", "")


def test_a_run_in_a_log_shows_its_first_and_its_last_line(capfd: pytest.CaptureFixture[str]) -> None:
    result = bounce.minimize(half_fails, binary(6), budget=9, seed=0, max_failures=9, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("bounce: ") and "finished" in line]
    assert lines[0].startswith("bounce: 1 of 9 finished: ")
    done = sum(trial.state == "done" for trial in result.trials)
    assert result.best is not None
    assert f"9 of 9 finished: {done} done, {9 - done} failed; 0 in flight" in lines[-1]
    assert f"best {result.best.value:.6g} (trial {result.best.id})" in lines[-1]
    assert lines[-1].endswith(" per evaluation, finished")
    assert len(lines) < 9


def test_a_log_gets_a_line_when_enough_time_has_passed(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    study = Study.open(space=binary(6), budget=20, seed=0)
    display = Summaries("a", Progress(study), now=lambda: now[0])
    with display:
        for trial in study.ask(6):
            study.tell(trial, 1.0)
            display(study.trials[trial.id])
            now[0] += QUIET / 2
    finished = re.findall(r"^a: (\d+) of 20 finished", capsys.readouterr().err, re.MULTILINE)
    assert finished == ["1", "3", "5", "6"]  # the last one at the end


def test_a_terminal_has_a_panel_and_prints_appear_above_it(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            """
            import bounce

            def objective(point):
                print("evaluated", sum(point.values()))
                return float(sum(point.values()))

            space = bounce.Space([bounce.Binary(f"x{i}") for i in range(6)])
            bounce.minimize(objective, space, budget=7, seed=0, progress=True, path="tuning.db")
            """
        )
    )
    main, other = pty.openpty()
    environment = dict(os.environ) | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40", "PYTHONPATH": _path()}
    with subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, env=environment, stdin=other, stdout=other, stderr=other
    ) as process:
        os.close(other)
        text = b"".join(iter(lambda: _read(main), b"")).decode()
    os.close(main)
    assert process.returncode == 0, text
    screen = Screen(100)
    screen.write(text)
    assert screen.text.count("evaluated") == 7
    assert screen.text.count("7 of 7 finished: 7 done, 0 failed; 0 in flight") == 1
    assert re.search(r"^tuning +7 of 7", screen.text, re.MULTILINE)
    assert re.search(r"^best +\S+ \(trial \d\)", screen.text, re.MULTILINE)
    assert re.search(r"^time +ask .*, evaluation ", screen.text, re.MULTILINE)
    assert screen.text.rindex("evaluated") < screen.text.rindex("tuning")


def test_what_an_objective_prints_into_a_file_stays_there(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import bounce\n"
        "def objective(point):\n    print('evaluated')\n    return float(point['b'])\n"
        "bounce.minimize(objective, bounce.Space([bounce.Binary('b')]), budget=2, seed=0, progress=True)\n"
    )
    main, other = pty.openpty()
    environment = dict(os.environ) | {"TERM": "xterm", "PYTHONPATH": _path()}
    with (
        (tmp_path / "out.txt").open("wb") as out,
        subprocess.Popen([sys.executable, script], env=environment, stdin=other, stdout=out, stderr=other) as process,
    ):
        os.close(other)
        text = b"".join(iter(lambda: _read(main), b"")).decode()
    os.close(main)
    assert process.returncode == 0, text
    assert (tmp_path / "out.txt").read_text() == "evaluated\nevaluated\n"
    assert "evaluated" not in text
    assert "2 of 2 finished" in text


def _path() -> str:
    return os.pathsep.join(path for path in sys.path if path)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux: the other end is closed
        return b""


class Handle:
    """What IPython returns for an output that can be updated."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, value: Any) -> None:
        self.shown.append(value._repr_html_())


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """A notebook, as far as a display can tell."""
    handle = Handle()

    def display(value: Any, *, display_id: bool) -> Handle:
        assert display_id
        handle.update(value)
        return handle

    ipython, ending = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    ending.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ending)
    return handle


def test_a_notebook_has_one_table_that_is_updated(notebook: Handle, capfd: pytest.CaptureFixture[str]) -> None:
    assert is_notebook()
    result = bounce.minimize(count_ones, binary(6), budget=6, seed=0, progress=True)
    assert result.best is not None
    first, last = notebook.shown[0], notebook.shown[-1]
    assert "0 of 6 finished" in first
    assert "none yet" in first
    assert "6 of 6 finished: 6 done, 0 failed" in last
    assert f"{result.best.value:.6g} (trial {result.best.id})" in last
    assert capfd.readouterr() == ("", "")


def test_a_notebook_is_updated_at_the_end_of_a_run_that_fails(notebook: Handle) -> None:
    def broken(point: dict[str, Any]) -> float:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(point)
        return 1.0

    def end(trial: Trial) -> None:
        if trial.state == "failed":
            raise ArithmeticError

    seen: list[dict[str, Any]] = []
    with pytest.raises(ArithmeticError):
        bounce.minimize(broken, binary(6), budget=6, seed=0, progress=True, callbacks=[end])
    assert "4 of 6 finished: 3 done, 1 failed" in notebook.shown[-1]


def test_a_run_that_is_stopped_says_why_and_not_how_long_it_will_take(notebook: Handle) -> None:
    study = Study.open(space=binary(6), budget=20, seed=0)
    study.run(count_ones, progress=True, callbacks=[lambda trial: study.stop("that is <b>enough</b>")])
    assert "so far, stopped: that is &lt;b&gt;enough&lt;/b&gt;" in notebook.shown[-1]
    assert "left</td>" not in notebook.shown[-1]
    shown_before = len(notebook.shown)
    study.run(count_ones, progress=True, stop_when="no improvement in 2 evaluations")
    assert "stopped" not in notebook.shown[shown_before]
    assert "stopped: the last" in notebook.shown[-1]


def test_a_notebook_is_not_updated_faster_than_people_read(notebook: Handle) -> None:
    now = [100.0]
    study = Study.open(space=binary(6), budget=20, seed=0)
    with Notebook("a", Progress(study), now=lambda: now[0]) as display:
        for trial in study.ask(6):
            study.tell(trial, 1.0)
            display(study.trials[trial.id])
            now[0] += 0.2
    assert [re.findall(r"(\d+) of 20", text)[0] for text in notebook.shown] == ["0", "4", "6"]


def test_a_plain_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not is_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not is_notebook()


def test_a_terminal_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.open(space=binary(6), budget=20, seed=0)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert isinstance(shown(study, "a"), Summaries)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(shown(study, "a"), Panel)


def test_progress_is_true_or_false() -> None:
    with pytest.raises(InvalidOption, match="progress must be True or False, not 'yes'"):
        bounce.minimize(count_ones, binary(6), budget=6, progress="yes")  # type: ignore[arg-type]


def test_a_run_without_progress_loads_no_rich() -> None:
    code = (
        "import sys, bounce; bounce.minimize(lambda p: 1.0 * p['a'], bounce.Space([bounce.Binary('a')]), 2); "
        "sys.exit('rich' in sys.modules)"
    )
    environment = dict(os.environ) | {"PYTHONPATH": _path()}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


# what notebooks show of studies and results


class Reader(HTMLParser):
    """The texts of the cells, and the tags that were used; every tag must be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("td", "th"):
            self.cells[-1] += data

    def read(self, html: str) -> Reader:
        self.feed(html)
        self.close()
        assert self._open == []
        assert self.tags <= {"div", "strong", "progress", "table", "tr", "th", "td", "p"}
        return self


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=60), st.text(max_size=60), max_size=4))
def test_every_text_is_shown_as_it_is(title: str, rows: dict[str, str]) -> None:
    def plain(text: str) -> str:  # HTML has no carriage returns
        return text.replace("\r\n", "\n").replace("\r", "\n")

    html = facts(title, rows, dict(rows))
    cells = Reader().read(html).cells
    assert [plain(cell) for cell in cells] == [plain(text) for pair in rows.items() for text in pair] * 2


def test_a_study_with_hostile_names_is_shown_as_it_is(tmp_path: Path) -> None:
    hostile = "<script>alert('x')</script>"
    space = Space([Categorical(hostile, ["<b>", "&amp;"]), Real("x", 0, 1)])
    with Study.open(tmp_path / "a<i>b.db", space=space, budget=8, seed=0) as study:
        study.run(lambda point: point["x"], stop_when="no improvement in 2 evaluations")
        html, result = study._repr_html_(), study.result._repr_html_()
        assert study.best is not None
        for text in (html, result):
            cells = Reader().read(text).cells
            assert study.best.point[hostile] in cells
            assert hostile in cells
            assert repr(study.best.value) in "".join(cells)
        assert "<script" not in html + result
        assert "a&lt;i&gt;b.db" in html


def test_a_long_point_is_cut() -> None:
    html = facts("a", {}, {f"x{i}": i for i in range(300)})
    assert len(Reader().read(html).cells) == 100
    assert "and 250 more" in html


def test_studies_and_results_without_values_can_be_shown() -> None:
    study = Study.open(space=binary(6), budget=6, seed=0)
    assert "none yet" in study._repr_html_()
    assert "none yet" in Result([], None, 0)._repr_html_()
    assert repr(study) == "Study.open(None)  # budget 6: no trials, best: none yet"
    assert repr(Bounce(binary(6), 6, seed=0)) == "Bounce(6 parameters, budget=6, no trials, best: none yet)"


def test_a_repr_says_where_a_study_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    optimizer = Bounce(binary(6), budget=9, batch_size=3, seed=0)
    with Study.open(path, space=binary(6), budget=9, batch_size=3, seed=0) as study:
        for source in (study, optimizer):
            first, second, _ = source.ask()
            source.tell(first, 0.5)
            source.fail(second, "no")
        stands = "1 done, 1 failed, 1 pending, best: 0.5 (trial 0)"
        assert repr(study) == f"Study.open({str(path)!r})  # budget 9: {stands}"
        assert repr(optimizer) == f"Bounce(6 parameters, budget=9, {stands})"


def test_a_repr_of_a_study_whose_file_is_lost_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Study.open(path, space=binary(6), budget=6, seed=0).close()
    study = Study.open(path)
    study.close()
    path.write_bytes(b"SQLite format 3\0" + b"damaged" * 1000)
    assert repr(study).startswith(f"Study.open({str(path)!r})  # it cannot be read: ")
