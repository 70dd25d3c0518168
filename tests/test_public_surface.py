from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import bounce

SURFACE = {
    "Binary",
    "Bounce",
    "BounceError",
    "Categorical",
    "Command",
    "DataError",
    "EvaluationFailed",
    "ExecutorFailed",
    "Importance",
    "Integer",
    "InvalidInput",
    "InvalidOption",
    "InvalidPoint",
    "InvalidSpace",
    "InvalidSpec",
    "InvalidState",
    "InvalidStudy",
    "InvalidTell",
    "MachineFailed",
    "Method",
    "Mixture",
    "NothingToAsk",
    "Ordinal",
    "Permutation",
    "Real",
    "Recommendation",
    "Result",
    "Space",
    "Status",
    "StorageFailed",
    "Study",
    "StudyLocked",
    "Subset",
    "Trial",
    "maximize",
    "minimize",
}


def test_the_public_names_are_these() -> None:
    assert set(bounce.__all__) == SURFACE
    for name in SURFACE:
        assert getattr(bounce, name).__doc__
    assert set(dir(bounce)) >= SURFACE
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = bounce.Nonsense


def test_the_version_is_that_of_the_distribution() -> None:
    assert bounce.__version__ == metadata.version("bounce-bo")


@pytest.mark.slow
def test_a_run_loads_neither_torch_nor_an_extra() -> None:
    code = (
        "import sys, bounce; s = bounce.Space([bounce.Binary('b'), bounce.Real('x', 0, 1)]);"
        "bounce.minimize(lambda p: p['x'], s, budget=8, seed=0);"
        "print([m for m in ('torch', 'pandas', 'matplotlib', 'sklearn', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
