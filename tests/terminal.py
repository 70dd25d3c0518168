"""The command `bounce`, called as people call it: in this process, or in one of its own."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bounce.cli import main

COMMAND = [  # a shell's background jobs ignore Ctrl-C, nohup ignores SIGHUP, and so does what they start
    *(sys.executable, "-c"),
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); from bounce.cli import main; main()",
]
PARAMETERS = """
[[parameters]]
name = "x"
type = "real"
low = 0.0
high = 1.0

[[parameters]]
name = "deep"
type = "binary"

[[parameters]]
name = "kernel"
type = "categorical"
choices = ["rbf", "poly", "linear"]
"""
ECHO = ["sh", "-c", 'echo "$0"', "{x}"]


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Terminal:
    """A folder, and what is typed there."""

    folder: Path
    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path) -> Said:
        """Run a command in this process."""
        self.captured.readouterr()
        self.patch.setattr(sys, "argv", ["bounce", *map(str, arguments)])
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        out, err = self.captured.readouterr()
        return Said(code or 0, out, err)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command in a process of its own."""
        given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        return subprocess.Popen([*COMMAND, *arguments], cwd=self.folder, **given)

    def spec(
        self,
        name: str = "a",
        *,
        command: Sequence[str] | None = ECHO,
        objective: str | None = None,
        parameters: str = PARAMETERS,
        **keys: Any,
    ) -> Path:
        """Write a spec."""
        given = {"budget": 6, "seed": 1} | keys
        given |= {"objective": objective} if objective else {"command": command} if command else {}
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())
        path = self.folder / f"{name}.toml"
        path.write_text(text + parameters, encoding="utf-8")
        return path

    def trials(self, *arguments: str | Path) -> list[dict[str, Any]]:
        """Return what `bounce trials` says, except for times."""
        said = self("trials", *arguments, "--format", "json")
        assert said.code == 0, said.err
        return [
            {key: value for key, value in trial.items() if not key.startswith("seconds")}
            for trial in json.loads(said.out)
        ]


def typed(words: Sequence[str], patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str], folder: Path) -> Said:
    """Run a command in a folder, in this process."""
    patch.chdir(folder)
    return Terminal(folder, patch, captured)(*words)


class Gate:
    """Commands that say when they begin, and go on when they are let."""

    def __init__(self, folder: Path) -> None:
        self.command = ["sh", "-c", 'if ! test -e open; then echo >begun; read line <pass; fi; echo "$0"', "{x}"]
        self._open = folder / "open"
        self._fds = []
        for name in ("begun", "pass"):
            os.mkfifo(folder / name)
            self._fds.append(os.open(folder / name, os.O_RDWR))

    def wait(self) -> None:
        """Wait until a command begins."""
        ready, _, _ = select.select([self._fds[0]], [], [], 60)
        assert ready, "no command has begun"
        os.read(self._fds[0], 1)

    def let(self) -> None:
        """Let a command go on."""
        os.write(self._fds[1], b"\n")

    def open(self) -> None:
        """Let all commands go on that begin from now on."""
        self._open.touch()

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


class Screen:
    """A terminal that wraps long lines, and wraps them again when its width changes, as most terminals do."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._rows: list[list[str]] = [[]]
        self._continues = [False]  # whether a row continues the one above
        self._row, self._column = 0, 0

    def write(self, text: str) -> None:
        """Show what a program writes."""
        for code, number, letter, character in re.findall(r"(\x1b\[\??(\d*)[\d;]*([A-Za-z]))|(.)", text, re.DOTALL):
            if code:
                self._control(letter, int(number or 1))
            elif character == "\r":
                self._column = 0
            elif character == "\n":
                self._next(continues=False)
            else:
                self._put(character)

    def _control(self, letter: str, number: int) -> None:
        if letter == "A":
            self._row = max(0, self._row - number)
        elif letter == "K":
            self._rows[self._row], self._continues[self._row] = [], False
        elif letter == "J":
            del self._rows[self._row + 1 :], self._continues[self._row + 1 :]
            del self._rows[self._row][self._column :]

    def _next(self, *, continues: bool) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])
            self._continues.append(False)
        self._continues[self._row] |= continues

    def _put(self, character: str) -> None:
        if self._column == self.width:
            self._next(continues=True)
        row = self._rows[self._row]
        row.extend(" " * (self._column + 1 - len(row)))
        row[self._column] = character
        self._column += 1

    def resize(self, width: int) -> None:
        """Change the width, and wrap every line again."""
        lines: list[list[str]] = []
        for place, (row, continues) in enumerate(zip(self._rows, self._continues, strict=True)):
            if not continues:
                lines.append([])
            if place == self._row:
                at = len(lines) - 1, len(lines[-1]) + self._column
            lines[-1] += row
        self.width, self._rows, self._continues = width, [], []
        for place, line in enumerate(lines):
            if place == at[0]:
                above, self._column = (
                    divmod(at[1], width) if at[1] % width or not at[1] else (at[1] // width - 1, width)
                )
                self._row = len(self._rows) + above
            parts = [line[i : i + width] for i in range(0, len(line), width)] or [[]]
            self._rows += parts
            self._continues += [i > 0 for i in range(len(parts))]

    @property
    def text(self) -> str:
        """What can be read, without spaces at the ends of rows."""
        return "\n".join("".join(row).rstrip() for row in self._rows)
