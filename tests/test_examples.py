from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXAMPLES = {
    "minimize.py": r"best value (0\.\d+|\d\.\d+e-\d+)\n",
    "ask_tell.py": r"48 experiments, best yield [89]\d\.\d %",
    # the order of the values depends on time
    "asynchronous.py": r"best value [01](\.\d+)? after 60 evaluations",
    "resume.py": "the same points: True",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), EXAMPLES.items())
def test_an_example_runs_and_says_what_it_found(name: str, said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout), done.stdout
