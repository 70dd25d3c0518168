from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bounce import Study
from commands import client

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXAMPLES = {
    "minimize.py": r"best value (0\.\d+|\d\.\d+e-\d+)\n",
    "ask_tell.py": r"48 experiments, best yield [89]\d\.\d %",
    # the order of the values depends on time
    "asynchronous.py": r"best value [01](\.\d+)? after 60 evaluations",
    "resume.py": "the same points: True",
    "optuna_study.py": r"Bounce after 40 trials: 0\.\d+\n",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), EXAMPLES.items())
def test_an_example_runs_and_says_what_it_found(name: str, said: str, tmp_path: Path) -> None:
    if name.startswith("optuna"):
        pytest.importorskip("optuna")
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout), done.stdout


def test_twelve_days_at_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A campaign from the command line: what was known, mistakes, a new solvent, a colleague who reads along."""
    campaign = runpy.run_path(str(ROOT / "examples" / "bench" / "campaign.py"))
    with client() as program:
        monkeypatch.setattr(sys, "executable", str(program))
        campaign["main"](tmp_path / "lab")
    out = capsys.readouterr().out
    for said in (
        "bounce: notebook.csv, row 5: 'temperature' must lie between 20 and 120, not 150\n",
        "5 added, 1 skipped; 48 left to ask\n",
        "trial 18 has other settings here: temperature is",
        "solvent gains 'DMF'. To continue in the new space, use bounce ask with --change",
        "2 withdrawn; 2 pending, 22 left to ask\n",
        "6 stored, 42 unchanged; 0 pending, 0 left to ask\n",
    ):
        assert said in out
    assert (tmp_path / "lab" / "for-the-group.csv").read_text().count("\n") >= 34
    with Study.open(tmp_path / "lab" / "coupling.db") as study:
        assert Counter(trial.state for trial in study.trials) == {"added": 5, "done": 48, "withdrawn": 2}
        assert study.remaining == 0
        actions = [entry.action for entry in study.history]
        assert actions == ["add", "enqueue", "correct", "tell", "retry", "change", "withdraw", "withdraw"]
        corrected = next(entry for entry in study.history if entry.action == "correct")
        assert corrected.reason == "a digit was lost"
        assert study.trials[5].notes == {"comment": "worked for a colleague"}
        assert "thermostat" in study.trials[18].notes["comment"]
        best = study.best
    assert best is not None
    assert best.point["solvent"] == "DMF"
    assert best.value is not None
    assert best.value > 90
    assert f"best yield {best.value} %" in out
