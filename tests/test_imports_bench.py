from __future__ import annotations

import os

import pytest

import imports


@pytest.fixture(autouse=True)
def uncovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the measurement of coverage, which loads sqlite3, out of the processes."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)


def test_a_worker_loads_neither_numpy_nor_scipy_nor_sqlite() -> None:
    found = imports.loaded(imports.CASES["a worker evaluates a function"])
    assert found.heavy == ()
    assert found.ours < 12


def test_the_help_of_the_command_loads_neither_numpy_nor_scipy_nor_sqlite() -> None:
    assert imports.loaded(imports.CASES["bounce --help"]).heavy == ()


@pytest.mark.slow
def test_what_minimize_loads_is_seen() -> None:
    found = imports.loaded(imports.CASES["import bounce; bounce.minimize"])
    assert {"numpy", "scipy"} <= set(found.heavy)
