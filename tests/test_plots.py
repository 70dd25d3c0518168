from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bounce
from bounce.report.plots import convergence, worst_shown
from spaces import binary


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
