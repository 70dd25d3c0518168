"""What all tests share: a terminal, and no time limit for the examples of a property, since tests run beside others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from terminal import Terminal

settings.register_profile("bounce", deadline=None, max_examples=50)
settings.load_profile("bounce")


@pytest.fixture
def bounce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Terminal:
    """Return the command line, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(tmp_path, monkeypatch, capfd)
