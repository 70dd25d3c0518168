from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import bounce
from bounce import Trial
from bounce.paper.traces import FIELDS, Trace
from bounce.report.plots import comparison, convergence, worst_shown
from spaces import binary


@pytest.mark.slow
@pytest.mark.parametrize(("name", "head"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_a_picture_is_written_in_the_format_its_name_says(tmp_path: Path, name: str, head: bytes) -> None:
    trials = bounce.maximize(lambda p: float(sum(map(bool, p.values()))), binary(8), budget=9, seed=0).trials
    convergence(trials, tmp_path / name, title="ones", maximize=True)
    assert (tmp_path / name).read_bytes().startswith(head)


def test_a_few_outliers_do_not_flatten_a_picture() -> None:
    values = np.array([1.0, 2.0, 3.0, 1.5, 2.5, 1.0, 0.5, 0.7, 0.6, 0.5, 1e9])
    assert worst_shown(values) < 10
    assert worst_shown(-values, maximize=True) == -worst_shown(values)
    assert worst_shown(values[:-1]) == 3.0  # the worst itself, where there is no outlier
    assert worst_shown(np.empty(0)) == 0.0


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    return figures


def trials(dims: list[int], failed: tuple[int, ...] = ()) -> list[Trial]:
    return [
        Trial(i, {}, None, "failed", "no", target_dim=dim)
        if i in failed
        else Trial(i, {}, 9.0 - i, "done", target_dim=dim)
        for i, dim in enumerate(dims)
    ]


@pytest.mark.parametrize(("maximize", "height"), [(False, 0.98), (True, 0.02)])
def test_failed_trials_are_marked_at_the_bad_edge(drawn: list[Figure], maximize: bool, height: float) -> None:
    convergence(trials([2] * 6, failed=(0, 4)), Path("a.png"), title="a", maximize=maximize)
    (pane,) = drawn[0].axes
    marks = {str(line.get_label()): line for line in pane.lines}
    assert np.asarray(marks["failed"].get_xdata()).tolist() == [0, 4]
    assert np.asarray(marks["failed"].get_ydata()).tolist() == [height] * 2
    legend = pane.get_legend()
    assert legend is not None
    assert "failed" in [text.get_text() for text in legend.get_texts()]
    convergence(trials([2] * 6), Path("a.png"), title="a")
    assert "failed" not in [str(line.get_label()) for line in drawn[1].axes[0].lines]


@pytest.mark.parametrize("feasible", [True, False])
def test_the_legend_has_the_best_so_far_only_where_there_is_one(drawn: list[Figure], feasible: bool) -> None:
    shown = [Trial(i, {}, float(i), state="done", feasible=feasible) for i in range(3)]
    convergence(shown, Path("x.png"), title="x")
    legend = drawn[0].axes[0].get_legend()
    assert legend is not None
    assert ("best so far" in [text.get_text() for text in legend.get_texts()]) is feasible


def test_the_axis_of_a_picture_counts_trials_by_id(drawn: list[Figure]) -> None:
    convergence(trials([2, 2, 4, 4]), Path("a.png"), title="a")
    values, dims = drawn[0].axes
    assert dims.get_xlabel() == "trial"
    assert np.asarray(values.lines[0].get_xdata()).tolist() == [0, 1, 2, 3]
    assert np.asarray(dims.lines[0].get_xdata()).tolist() == [0, 1, 2, 3]


def test_a_pane_that_never_changes_is_left_out(drawn: list[Figure]) -> None:
    convergence(trials([3, 3, 3]), Path("a.png"), title="a")
    convergence(trials([3, 3, 6]), Path("a.png"), title="a")
    assert [len(figure.axes) for figure in drawn] == [1, 2]
    assert drawn[0].axes[0].get_xlabel() == "trial"


def test_a_comparison_leaves_out_panes_that_never_change(drawn: list[Figure]) -> None:
    fixed = dict.fromkeys(FIELDS, 1) | {"point": {}, "state": "done"}
    constant = [fixed | {"id": i, "value": -i} for i in range(3)]
    moving = [row | {"radius": 8 - i, "target_dim": 2 + i} for i, row in enumerate(constant)]
    comparison([Trace(Path("x-seed0.jsonl"), constant)], Path("a.png"))
    comparison([Trace(Path("x-seed0.jsonl"), moving)], Path("a.png"))
    assert [[axis.get_ylabel() for axis in figure.axes] for figure in drawn] == [
        ["best value so far"],
        ["best value so far", "trust region", "target dimension"],
    ]
    assert [str(line.get_label()) for line in drawn[1].axes[1].lines] == ["x, radius", "x, side"]
    assert np.asarray(drawn[1].axes[0].lines[0].get_xdata()).tolist() == [0, 1, 2]
