"""Objectives that worker processes can import."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from bounce import Binary, Categorical, Integer, Ordinal, Real, Space

Point = dict[str, Any]


def mixed() -> Space:
    return Space(
        [
            Real("x", -1.0, 1.0),
            Real("rate", 1e-3, 1e3, log=True),
            Integer("depth", 1, 9),
            Ordinal("width", [32, 64, 128]),
            Categorical("kernel", ["rbf", "poly", "linear", "none"]),
            *(Binary(f"b{i}") for i in range(6)),
        ]
    )


def value(point: Point) -> float:
    """Something smooth enough to make the model work, and different at every point."""
    kernel = {"rbf": 0.0, "poly": 0.3, "linear": 0.7, "none": 1.1}[point["kernel"]]
    bits = sum((i + 1) * bool(point[f"b{i}"]) for i in range(6)) / 21
    return float((point["x"] - 0.3) ** 2 + abs(point["depth"] - 4) / 9 + kernel + bits + point["width"] / 256)


def half_fails(point: Point) -> float:
    if point["b0"]:
        raise ValueError("b0 must not be set")
    return value(point)


def fails(point: Point) -> float:
    raise ArithmeticError(f"no value for depth {point['depth']}")


def no_licence(point: Point) -> float:
    raise RuntimeError("no licence")


class Unpicklable(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def fails_strangely(point: Point) -> float:
    raise Unpicklable(1, 2)


def exits(point: Point) -> float:
    raise SystemExit(3)


def dies(point: Point) -> float:
    os._exit(7)


def is_killed(point: Point) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


class DiesOnce:
    """Die in the first evaluation of all, and never again."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, point: Point) -> float:
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return value(point)
        os._exit(7)


class DiesWhere:
    """Die wherever a bit is set."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, point: Point) -> float:
        if point[self.name]:
            os._exit(7)
        return value(point)


class HangsWhere:
    """Never return where a bit is set; a child process hangs too, and holds a file open."""

    def __init__(self, name: str, fifo: Path) -> None:
        self.name, self.fifo = name, fifo

    def __call__(self, point: Point) -> float:
        if not point[self.name]:
            return value(point)
        if os.fork() == 0:
            os.open(self.fifo, os.O_WRONLY)
            signal.pause()
        signal.pause()
        raise AssertionError


class Logged:
    """Write a line before and a line after each evaluation."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, point: Point) -> float:
        self._write("begun", point)
        found = value(point)
        self._write("done", point)
        return found

    def _write(self, word: str, point: Point) -> None:
        with self.log.open("ab", buffering=0) as file:
            file.write(f"{word} {sorted(point.items())}\n".encode())
