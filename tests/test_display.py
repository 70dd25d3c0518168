"""What a run shows, and trials as tables."""

from __future__ import annotations

import io
import logging
import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bounce import Binary, Categorical, Integer, Real, Space, Study, Trial
from bounce.cli import sheet
from bounce.cli.display import Warnings, display
from bounce.cli.sheet import show, shown
from bounce.live.display import Lines, Panel
from bounce.live.progress import Progress
from bounce.live.words import BLOCKS, best_of, clock, region, seconds, sparkline
from bounce.text import printable
from bounce.trial import Scalar
from terminal import Screen

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS), st.integers(1, 50))
def test_a_sparkline_has_a_bar_per_value_and_fits(values: list[float], width: int) -> None:
    bars = sparkline(values, width)
    assert len(bars) == min(width, len(values))
    assert set(bars) <= set(BLOCKS)


@given(st.lists(FLOATS, min_size=1), st.integers(2, 50))
def test_a_sparkline_of_falling_values_falls(values: list[float], width: int) -> None:
    bars = sparkline(sorted(values, reverse=True), width)
    assert list(bars) == sorted(bars, reverse=True)
    if min(values) < max(values):
        assert (bars[0], bars[-1]) == (BLOCKS[-1], BLOCKS[0])


def test_a_sparkline_keeps_what_came_last() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == BLOCKS
    assert sparkline([5, 5, 5], 8) == BLOCKS[0] * 3
    assert sparkline([], 8) == ""
    assert sparkline([0.0] * 99 + [1.0], 3)[-1] == BLOCKS[-1]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "unknown"),
        (0.0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1.0 s"),
        (3.44, "3.4 s"),
        (119.99, "0:02:00"),
        (7805.0, "2:10:05"),
        (90061.0, "1 day, 1:01:01"),
    ],
)
def test_seconds_are_words(number: float | None, text: str) -> None:
    assert seconds(number) == text


@given(st.floats(0, allow_nan=False))
def test_any_time_has_words(number: float) -> None:
    assert seconds(number)
    assert clock(number, datetime(2026, 1, 1))


def test_an_end_is_a_time_or_a_date() -> None:
    noon = datetime(2026, 3, 1, 12, 0)
    assert clock(3600, noon) == "13:00"
    assert clock(86400, noon) == "2026-03-02 12:00"


def test_a_region_is_words() -> None:
    assert region(1, 0) == "up to 1 combinatorial bin may change"
    assert region(2.5, 0.25) == "up to 2.5 combinatorial bins may change, reals within 0.25 of their range"
    assert region(0, 0.8) == "reals within 0.8 of their range"
    assert region(0, 0) == "the whole space"


SPACE = Space([Real("x", 0, 1), Binary("b")])


def told(study: Study, values: list[float | None]) -> list[Trial]:
    trials = study.ask(len(values))
    for trial, value in zip(trials, values, strict=True):
        if value is None:
            study.fail(trial, "no", seconds=2.0)
        else:
            study.tell(trial, value, seconds=1.0)
    return study.trials


@pytest.mark.parametrize(("direction", "best"), [("minimize", [3.0, 3.0, 1.0]), ("maximize", [3.0, 5.0, 5.0])])
def test_progress_knows_what_was_there_and_what_came(direction: str, best: list[float]) -> None:
    with Study.open(space=SPACE, budget=8, direction=direction, seed=0) as study:
        told(study, [3.0, None])
        progress = Progress(study)
        assert (progress.finished, progress.failed, progress.here) == (2, 1, 0)
        assert progress.left is None
        assert progress.end == "time left unknown"
        for trial in told(study, [5.0, 1.0])[2:]:
            progress.tell(trial)
        assert (progress.finished, progress.failed, progress.here, progress.budget) == (4, 1, 2, 8)
        assert progress.curve == best
        assert progress.best == study.best
        assert progress.seconds_eval == 1.25
        assert progress.seconds_ask == pytest.approx(sum(trial.seconds_ask for trial in study.trials) / 4)
        assert progress.left is not None
        assert progress.end.startswith("about ")
        for trial in told(study, [7.0] * 4)[4:]:
            progress.tell(trial)
        assert progress.end == "finished"


def test_a_small_space_ends_a_run_before_its_budget() -> None:
    with Study.open(space=Space([Binary("b")]), budget=8, seed=0) as study:
        assert Progress(study).budget == 2


def test_a_trial_that_a_change_left_outside_counts_as_finished() -> None:
    with Study.open(space=Space([Integer("x", 0, 9)]), budget=4, seed=0, initial_points=1) as study:
        study.tell(study.ask(), [1.0])
        study.change(Space([Integer("x", 20, 29)]))
        progress = Progress(study)
        assert (progress.finished, progress.budget) == (1, 4)
        assert "1 outside the space" in progress.counts
        for trial in told(study, [5.0, 1.0, 2.0])[1:]:
            progress.tell(trial)
        assert progress.end == "finished"


def drawn(study: Study, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(Panel("[bold]name[/bold]", Progress(study), console)._draw())
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_panel_is_there_before_the_first_trial() -> None:
    with Study.open(space=SPACE, budget=8, seed=0) as study:
        text = drawn(study)
    assert "[bold]name[/bold]  0 of 8 finished: 0 done, 0 failed; 0 in flight" in text
    assert "none yet" in text
    assert "ask unknown, evaluation unknown" in text


def test_a_panel_shows_bars_that_rise_when_a_run_maximizes() -> None:
    with Study.open(space=SPACE, budget=8, direction="maximize", seed=0) as study:
        told(study, [1.0, 2.0, 8.0])
        text = drawn(study)
        assert "8 (trial 2)  ▁▂█" in text
        assert "2 bins, 2 variables" in text
        assert all(len(line) <= 60 for line in drawn(study, 60).splitlines())


def resized(widths: list[int]) -> str:
    """Draw a panel on a terminal that changes its width, and return what can be read there in the end."""
    console = Console(file=io.StringIO(), width=100, height=40, force_terminal=True, legacy_windows=False)
    screen, seen = Screen(100), 0
    with Study.open(space=SPACE, budget=8, seed=0) as study:
        told(study, [1.0, 2.0, 8.0])
        panel = Panel("name", Progress(study), console)
        panel._live.auto_refresh = False  # drawn when the test says so
        screen.write("$ bounce run\n")
        with panel:
            panel._live.refresh()
            for width in widths:
                text = console.file.getvalue()  # type: ignore[attr-defined]
                screen.write(text[seen:])
                seen = len(text)
                screen.resize(width)
                console.width = width
                panel._live.refresh()
        screen.write(console.file.getvalue()[seen:])  # type: ignore[attr-defined]
    return screen.text


@pytest.mark.parametrize("widths", [[100], [60], [40], [30, 100], [60, 25], [90, 80, 70, 60, 50, 40, 30, 20]])
def test_a_narrower_terminal_shows_no_ghost_of_a_panel(widths: list[int]) -> None:
    text = resized(widths)
    assert text.startswith("$ bounce run\nname  ")
    for word in ("name", "best", "stage", "region", "time"):
        assert len(re.findall(rf"^{word} ", text, re.MULTILINE)) == 1, text
    assert text.count("━━") > 0
    assert sum("━" in line for line in text.splitlines()) == 1


def test_a_display_fits_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with Study.open(space=SPACE, budget=8, seed=0) as study:
        kinds = [
            type(display(study, "a", sys.stdout, quiet=quiet, as_json=as_json)).__name__
            for quiet, as_json in ((False, False), (True, False), (False, True), (True, True))
        ]
    assert kinds == ["Lines", "Silence", "JsonLines", "JsonLines"]


def test_done_never_counts_failures(capsys: pytest.CaptureFixture[str]) -> None:
    with Study.open(space=SPACE, budget=8, seed=0) as study:
        told(study, [3.0, None, 4.0])
        study.ask()
        assert "3 of 8 finished: 2 done, 1 failed; 0 in flight" in drawn(study)
        status = study.status
        assert (status.done, status.failed, status.pending) == (2, 1, 1)
        assert repr(status) == "Status(2 done, 1 failed, 1 pending of 8, best=3.0 (trial 0))"
        assert repr(study.result) == "Result(best=3.0 (trial 0), done=2, failed=1, seed=0)"
        lines = Lines(Progress(study))
        study.tell(3, 9.0)
        lines(study.trials[3])
    assert capsys.readouterr().err.startswith("4/8 trial 3: 9, best 3 (trial 0), 0 in flight, 2 bins, about ")


def test_warnings_are_one_line_each_and_only_inside(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("bounce")
    with Warnings(quiet=False):
        logger.warning("trial %d failed: %s", 3, "because of\n  this\n  and \x1b[2Jthat\n")
    assert capsys.readouterr().err == "bounce: trial 3 failed: because of and \\x1b[2Jthat\n"
    with Warnings(quiet=True):
        logger.warning("dropped")
    assert capsys.readouterr().err == ""
    logger.warning("outside")
    assert "bounce: " not in capsys.readouterr().err


def test_a_warning_in_full_keeps_its_lines_and_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with Warnings(quiet=False):
        text = "a\nTraceback:\n  x\x1b[2Jy\rz"
        logging.getLogger("bounce").warning("trial 0 failed: %s", text, extra={"in_full": True})
    assert capsys.readouterr().err == "bounce: trial 0 failed: a\nTraceback:\n  x\\x1b[2Jy\nz\n"


def test_the_best_of_nothing_is_none_yet() -> None:
    assert best_of(None) == "none yet"
    assert best_of(Trial(4, {}, 0.123456789, "done")) == "0.123457 (trial 4)"


# tables


@pytest.mark.slow
@given(st.text())
def test_a_printable_text_is_one_line_that_moves_no_cursor(text: str) -> None:
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


def test_values_are_shown_as_they_are_written() -> None:
    assert [shown(value) for value in (True, 3, 0.123456789, "a b", None)] == [
        "true",
        "3",
        "0.123457",
        "a b",
        "null",
    ]


def printed(trials: list[Trial], width: int, *, to_fill: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    show(trials, console, to_fill=to_fill)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_few_parameters_have_a_column_each() -> None:
    trials = [Trial(i, {"x": i / 8, "kind": "rbf"}, float(i), "done") for i in range(20)]
    head, *rows = (line.strip("┃│ ").split() for line in printed(trials, 80).splitlines() if line[0] in "┃│")
    assert [word for word in head if word != "┃"] == ["id", "x", "kind", "value", "state"]
    assert len(rows) == 20
    assert "value" not in printed(trials, 80, to_fill=True)


def test_standard_errors_have_a_column_where_there_are_any() -> None:
    trials = [Trial(i, {"x": i / 8}, float(i), "done", sem=sem) for i, sem in enumerate((0.125, None))]
    head, *rows = (line.strip("┃│ ").split() for line in printed(trials, 80).splitlines() if line[0] in "┃│")
    assert [word for word in head if word != "┃"] == ["id", "x", "value", "sem", "state"]
    assert [[word for word in row if word != "│"] for row in rows] == [
        ["0", "0", "0", "0.125", "done"],
        ["1", "0.125", "1", "done"],
    ]


@settings(deadline=None, max_examples=30)
@given(st.integers(20, 200), st.integers(1, 9), st.integers(1, 70))
def test_a_table_of_any_size_fits_and_shows_everything(width: int, trials: int, parameters: int) -> None:
    points: list[dict[str, Scalar]] = [{f"p{i}": 1000 * i + t for i in range(parameters)} for t in range(trials)]
    text = printed([Trial(t, point) for t, point in enumerate(points)], width, to_fill=True)
    assert all(len(line) <= width for line in text.splitlines())
    words = text.split()
    for point in points:
        for value in point.values():
            assert str(value) in words


def test_many_parameters_have_a_row_each() -> None:
    trials = [Trial(i, {f"temperature_{k}": k + i / 7 for k in range(60)}) for i in range(8)]
    lines = printed(trials, 80, to_fill=True).splitlines()
    heads = [line.strip("┃ ").split(" ┃ ") for line in lines if line.startswith("┃")]
    assert [int(word) for head in heads for word in head[1:]] == list(range(8))
    assert sum(line.startswith("│ temperature_7 ") for line in lines) == len(heads)


def test_a_long_value_is_folded_not_cut() -> None:
    word = "abcdefghij" * 30
    text = printed([Trial(0, {"a long name" * 9: word, "k": "v"})], 60)
    assert all(len(line) <= 60 for line in text.splitlines())
    cells = "".join(line.split("│")[2].strip() for line in text.splitlines() if line.startswith("│"))
    assert word in cells


def test_a_study_of_texts_in_any_script_fits(tmp_path: Path) -> None:
    space = Space([Categorical(f"材料{i}", ["水", "氧气", "e\u0301té"]) for i in range(12)])
    with Study.open(space=space, budget=8, seed=0) as study:
        trials = study.ask(8)
    from rich.cells import cell_len

    assert all(cell_len(line) <= 80 for line in printed(trials, 80).splitlines())


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_table_is_drawn_as_rich_draws_it(width: int, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = [Trial(i, {"x": i / 8, "kind": "日本", "a name of some length": True}, float(i), "done") for i in range(9)]

    def drawn() -> bytes:
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
        show(trials, Console(file=file, width=width, force_terminal=False), to_fill=False)
        file.flush()
        return file.buffer.getvalue()

    ours = drawn()
    monkeypatch.setattr(sheet, "_plain", lambda columns, console: console.print(sheet._table(columns)) or "")
    assert drawn() == ours


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_run_goes_on_if_nobody_reads_its_progress(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise error("closed")

    monkeypatch.setattr("sys.stderr", Closed())
    with Study.open(space=SPACE, budget=6, seed=0) as study:
        assert len(study.run(lambda point: 1.0, progress=True).trials) == 6
