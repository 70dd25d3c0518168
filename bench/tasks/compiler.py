"""Compiler: the flags that make the object file of a C source small.

The value is the number of bytes that `size` calls text: instructions and read-only data. It depends on the version of
gcc, so the values of two machines are not comparable; the values of two methods on one machine are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path

from bounce import Binary, Categorical, Integer, Space
from bounce.errors import InvalidInput
from tasks.task import Point, Task

DATA = Path(__file__).parent.parent / "data"
FLAGS = tuple((DATA / "gcc_flags.txt").read_text(encoding="utf-8").split())  # 100 switches, without -f
LEVELS = ("-O1", "-O2", "-O3", "-Os")
PARAMS = {  # name: least, greatest
    "max-inline-insns-single": (1, 60),
    "max-inline-insns-auto": (1, 60),
    "max-unroll-times": (1, 16),
    "max-completely-peeled-insns": (1, 400),
    "min-crossjump-insns": (1, 20),
    "inline-unit-growth": (0, 60),
}


class CodeSize(Task):
    """The size of a source compiled with some flags: binary switches, a level and parameters."""

    def __init__(self, source: str, flags: tuple[str, ...], title: str) -> None:
        for tool in ("gcc", "size"):
            if shutil.which(tool) is None:
                raise InvalidInput(f"{title} needs the program {tool}, which is not installed")
        self.source, self.flags, self.title = DATA / source, flags, title

    @property
    def name(self) -> str:
        """The title."""
        return self.title

    @cached_property
    def space(self) -> Space:
        """A switch per flag, the level, and the parameters."""
        return Space(
            [
                Categorical("level", LEVELS),
                *(Binary(flag) for flag in self.flags),
                *(Integer(name, low, high) for name, (low, high) in PARAMS.items()),
            ]
        )

    def value(self, point: Point) -> float:
        """Return the bytes of text, of instructions and constants."""
        switches = [f"-f{flag}" if point[flag] else f"-fno-{flag}" for flag in self.flags]
        params = [f"--param={name}={point[name]}" for name in PARAMS]
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.o")
            _called("gcc", "-w", "-c", str(self.source), "-o", out, str(point["level"]), *switches, *params)
            return float(_called("size", out).splitlines()[1].split()[0])


def _called(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"LC_ALL": "C"})
    if done.returncode != 0:
        raise InvalidInput(f"{command[0]} failed: {done.stderr.strip()[:400]}")
    return done.stdout


def toolbox() -> CodeSize:
    """Return the first source with 60 of the flags."""
    return CodeSize("toolbox.c", tuple(flag for i, flag in enumerate(FLAGS) if i % 5 < 3), "gcc-toolbox")


def machine() -> CodeSize:
    """Return the second source with 60 of the flags, a third of them also flags of the first."""
    return CodeSize("machine.c", tuple(flag for i, flag in enumerate(FLAGS) if i % 5 > 1), "gcc-machine")


def machine_all() -> CodeSize:
    """Return the second source with all 100 flags."""
    return CodeSize("machine.c", FLAGS, "gcc-machine-all")
