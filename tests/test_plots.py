from __future__ import annotations

from pathlib import Path

import pytest

import bounce
from bounce.plots import convergence
from spaces import binary


@pytest.mark.parametrize(("name", "head"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_a_picture_is_written_in_the_format_its_name_says(tmp_path: Path, name: str, head: bytes) -> None:
    trials = bounce.maximize(lambda p: float(sum(map(bool, p.values()))), binary(8), budget=9, seed=0).trials
    convergence(trials, tmp_path / name, title="ones", maximize=True)
    assert (tmp_path / name).read_bytes().startswith(head)
