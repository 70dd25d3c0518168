"""Mopta08: the mass of a car's body under 68 constraints on crashes, noise and durability (Jones, 2008).

The simulator is an executable that reads `input.txt` and writes `output.txt` in its working folder.

Shapes: codes (n, 124).
"""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bounce.benchmarks.data import locate
from bounce.benchmarks.problem import Problem, Values
from bounce.errors import DataError, EvaluationFailed
from bounce.spaces.kinds import Codes
from bounce.spaces.parameters import Real
from bounce.spaces.space import Space

VARIABLES, CONSTRAINTS = 124, 68
PENALTY = 10.0


@dataclass(frozen=True)
class Mopta08(Problem):
    """The objective plus ten times the sum of the violated constraints g ≤ 0 (Eriksson and Jankowiak, 2021).

    No optimum of this soft-constrained version is known.
    """

    executable: Path
    timeout: float = 60.0
    """Seconds that an evaluation may take; it usually takes a fraction of one."""

    name = "mopta08"

    @cached_property
    def space(self) -> Space:
        """All variables are real."""
        return Space([Real(f"x{i}", 0.0, 1.0) for i in range(VARIABLES)])

    def evaluate(self, codes: Codes) -> Values:
        """Return the penalised objectives, one run of the executable after the other."""
        parts = [self.parts(row) for row in codes]
        return np.array([value + PENALTY * math.fsum(max(g, 0.0) for g in limits) for value, limits in parts])

    def parts(self, row: Codes) -> tuple[float, list[float]]:
        """Return the objective of one point, and its 68 constraints, which hold if they are at most 0."""
        with tempfile.TemporaryDirectory(prefix="bounce-mopta08-") as folder:
            Path(folder, "input.txt").write_text("".join(f"{x!r}\n" for x in row.tolist()), encoding="ascii")
            output = self._run(Path(folder))
        try:
            numbers = [float(word) for word in output.split()]
        except ValueError:
            numbers = []
        if len(numbers) != 1 + CONSTRAINTS or not all(map(math.isfinite, numbers)):
            raise EvaluationFailed(f"mopta08 should have written {1 + CONSTRAINTS} numbers, not {output[:200]!r}")
        objective, *constraints = numbers
        return objective, constraints

    def _run(self, folder: Path) -> str:
        command = [str(self.executable.resolve())]
        try:
            subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout,
                check=True,
            )
            return (folder / "output.txt").read_text(encoding="ascii")
        except subprocess.TimeoutExpired:
            raise EvaluationFailed(f"mopta08 did not finish within {self.timeout:g} s") from None
        except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
            raise EvaluationFailed(f"mopta08 wrote no output: {error}") from error


def mopta08() -> Mopta08:
    """Find the executable and check that it can run here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise DataError(f"mopta08 is an executable for Linux on x86_64, not for {sys.platform} {platform.machine()}")
    executable = locate("mopta08")
    if not os.access(executable, os.X_OK):
        raise DataError(f"{executable} is not executable: run chmod +x {executable}")
    return Mopta08(executable)
