"""Do to studies what machines do, again and again, and count what survives.

    python bench/faults.py --minutes 30
    python bench/faults.py --minutes 2 --only flip,kill

Each try makes a study in a new folder, lets a fault happen at a random place or instant, and looks at what is left. A
value counts as announced once its callback was called. `tests/faults` runs a few tries of each fault.

- same: everything is there, and a run that was resumed ends with the same trials as one that was not disturbed.
- refused: the file is refused with a sentence, and was not changed.
- LOST: a value that was announced is missing or different, or an error is not a sentence.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import typer
from rich.console import Console
from rich.table import Table

from bounce import Binary, BounceError, Categorical, Real, Space, Study, StudyLocked
from bounce.running import run as running
from bounce.study.lock import Lock
from bounce.study.repair import check

SPACE = Space([Real("x", -1.0, 1.0), Categorical("kind", list("abc")), *(Binary(f"b{i}") for i in range(6))])
OPTIONS: dict[str, Any] = {"budget": 14, "seed": 3, "initial_points": 5}
SIDES = ("-journal", "-wal", "-shm")
SAME, REFUSED, LOST = "same", "refused", "LOST"

Fact = tuple[Any, ...]
Fault = Callable[[Path, random.Random], str]


def value(point: dict[str, Any]) -> float:
    """Return a value that differs from point to point."""
    bits = sum((i + 1) * bool(point[f"b{i}"]) for i in range(6))
    return float((point["x"] - 0.3) ** 2 + "abc".index(point["kind"]) + bits / 21)


def facts(study: Study) -> list[Fact]:
    """Return what must not change about the trials of a study."""
    return [(t.id, t.state, t.value, tuple(t.point.items()), t.stage, t.acquisition) for t in study.trials]


def run(path: Path, told: Path | None = None) -> list[Fact]:
    """Run or resume a study to its end, and write down what was announced.

    No trial is blamed for a kill that hits it, since here none is to blame.
    """
    with patch.object(running, "DEATHS", sys.maxsize), Study.open(path, space=SPACE, **OPTIONS) as study:

        def announce(trial: Any) -> None:
            if told is not None:
                with told.open("a") as file:
                    print(trial.id, repr(trial.value), file=file)

        study.run(value, callbacks=[announce])
        return facts(study)


@cache
def straight() -> list[Fact]:
    """Return the trials of a run that nothing disturbs."""
    with Study.open(None, space=SPACE, **OPTIONS) as study:
        study.run(value)
        return facts(study)


def announced(told: Path) -> dict[int, float]:
    """Return the values that were announced, by id."""
    lines = told.read_text().splitlines() if told.exists() else []
    return {int(line.split()[0]): float(line.split()[1]) for line in lines}


def in_a_child(work: Callable[[], object]) -> int:
    """Start work in a forked process and return its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            work()
            code = 0
        except BounceError:
            code = 3
        finally:
            os._exit(code)
    return pid


def killed_run(folder: Path, rng: random.Random, mean: float = 0.08) -> Path:
    """Start a run, kill it at some instant, and return its file."""
    path = folder / "study.db"
    pid = in_a_child(lambda: run(path, folder / "told"))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.sigtimedwait([signal.SIGCHLD], rng.expovariate(1 / mean))  # its end, or some moment before
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return path


def verdict(path: Path, told: Path, *, may_refuse: bool = False) -> str:
    """Return what has become of a study: whether it can be finished, and has all that was announced."""
    before = path.read_bytes() if path.exists() else None
    try:
        after = run(path, told)
    except BounceError:
        unchanged = before is not None and path.read_bytes() == before
        return REFUSED if may_refuse and unchanged else LOST
    values = {i: x for i, _, x, *_ in after}
    kept = all(values.get(i) == x for i, x in announced(told).items())
    return SAME if kept and after == straight() and not check(path) else LOST


def kill(folder: Path, rng: random.Random) -> str:
    """Kill a run at three instants."""
    for _ in range(3):
        path = killed_run(folder, rng)
    return verdict(path, folder / "told")


def kill_and_remove_journal(folder: Path, rng: random.Random) -> str:
    """Kill a run, half of the time in a commit, and remove what it left beside the file."""
    path = killed_run(folder, rng)
    if rng.random() < 0.5:
        run(path, folder / "told")
        hot_journal(path)
    for suffix in SIDES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return verdict(path, folder / "told", may_refuse=True)


def hot_journal(path: Path) -> None:
    """Kill a process in the middle of writing a transaction to the file."""

    def half() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # pages are written before the commit
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE trials SET point = point || hex(zeroblob(4000)), value = -1")
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(in_a_child(half), 0)


def kill_in_a_commit(folder: Path, rng: random.Random) -> str:
    """Kill a process while it writes pages of the file."""
    path = killed_run(folder, rng, mean=0.3)
    if path.exists():
        hot_journal(path)
    return verdict(path, folder / "told")


def backup_over_a_killed_run(folder: Path, rng: random.Random) -> str:
    """Copy an older or newer copy of a study over one that was killed in a commit."""
    path = killed_run(folder, rng, mean=0.3)
    if not path.exists():
        return SAME
    backup = folder / "backup.db"
    shutil.copyfile(path, backup)
    told = announced(folder / "told")
    if rng.random() < 0.5:
        run(path)
        if rng.random() < 0.5:
            shutil.copyfile(path, backup)
            told = {i: x for i, _, x, *_ in straight()}
    hot_journal(path)
    shutil.copyfile(backup, path)
    (folder / "told").write_text("".join(f"{i} {x!r}\n" for i, x in told.items()))
    return verdict(path, folder / "told", may_refuse=True)


def journal_of_another(folder: Path, rng: random.Random) -> str:
    """Put the journal or log of another study beside a study."""
    path = killed_run(folder, rng, mean=0.3)
    if not path.exists():
        return SAME
    other = folder / "other.db"
    with Study.open(other, space=SPACE, **OPTIONS | {"seed": rng.randrange(1000)}) as study:
        study.run(value)
    suffix = rng.choice(["-journal", "-wal"])
    if suffix == "-journal":
        hot_journal(other)
    else:
        connection = sqlite3.connect(other, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE study SET revision = revision + 1000")
        shutil.copyfile(other.with_name("other.db-wal"), folder / "wal")
        connection.close()
        (folder / "wal").rename(other.with_name("other.db-wal"))
    shutil.copyfile(other.with_name(f"other.db{suffix}"), path.with_name(path.name + suffix))
    return verdict(path, folder / "told", may_refuse=True)


@cache
def whole() -> bytes:
    """Return the file of a study that is done."""
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder, "study.db"))
        return Path(folder, "study.db").read_bytes()


def _damaged(folder: Path, damage: Callable[[bytearray], bytearray]) -> str:
    path = folder / "study.db"
    path.write_bytes(damage(bytearray(whole())))
    before = path.read_bytes()
    try:
        with Study.open(path) as study:
            same = facts(study) == straight() and not study.history
    except BounceError:
        return REFUSED if path.read_bytes() == before else LOST
    return SAME if same and path.read_bytes() == before else LOST


def flip(folder: Path, rng: random.Random) -> str:
    """Flip one bit of a study."""

    def flipped(data: bytearray) -> bytearray:
        place = rng.randrange(8 * len(data))
        data[place // 8] ^= 1 << (place % 8)
        return data

    return _damaged(folder, flipped)


def truncate(folder: Path, rng: random.Random) -> str:
    """Cut off the end of a study."""
    return _damaged(folder, lambda data: data[: rng.randrange(1, len(data))])


def zero(folder: Path, rng: random.Random) -> str:
    """Set a sector of a study to zero."""

    def zeroed(data: bytearray) -> bytearray:
        first = 512 * rng.randrange(len(data) // 512)
        data[first : first + 512] = bytes(512)
        return data

    return _damaged(folder, zeroed)


def full_disk(folder: Path, rng: random.Random) -> str:
    """Let no file grow beyond some size, and then let it."""
    path = folder / "study.db"

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = rng.randrange(1000, 60_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        run(path, folder / "told")

    os.waitpid(in_a_child(limited), 0)
    return verdict(path, folder / "told")


def no_lock(folder: Path, rng: random.Random) -> str:
    """Run a study twice at the same time, with its lock removed."""
    path = folder / "study.db"

    def unlocked() -> None:
        Lock.acquire = lambda *_, **__: True  # type: ignore[method-assign]
        Lock.release = lambda *_: None  # type: ignore[method-assign]
        for _ in range(rng.randrange(1, 4)):
            try:
                run(path, folder / "told")
            except StudyLocked:
                continue

    for pid in [in_a_child(unlocked), in_a_child(unlocked)]:
        os.waitpid(pid, 0)
    return verdict(path, folder / "told")


FAULTS: dict[str, Fault] = {
    "kill": kill,
    "kill in a commit": kill_in_a_commit,
    "kill and journal removed": kill_and_remove_journal,
    "backup over a killed run": backup_over_a_killed_run,
    "journal of another study": journal_of_another,
    "flip": flip,
    "zero": zero,
    "truncate": truncate,
    "full disk": full_disk,
    "no lock": no_lock,
}


def attempt(name: str, seed: int) -> str:
    """Let one fault happen to a study in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        return FAULTS[name](Path(folder), random.Random(f"{name} {seed}"))


def main(
    minutes: Annotated[float, typer.Option(min=0.0, help="How long to go on.")] = 1.0,
    only: Annotated[str | None, typer.Option(help="Names of faults, with commas between them.")] = None,
    seed: Annotated[int, typer.Option(help="Where the seeds begin.")] = 0,
) -> None:
    """Print a table of faults, tries and what became of them."""
    names = list(FAULTS) if only is None else [name.strip() for name in only.split(",")]
    counts = {name: Counter[str]() for name in names}
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for name in names:
            found = attempt(name, seed)
            counts[name][found] += 1
            if found == LOST:
                print(f"{name}, seed {seed}: {found}", file=sys.stderr, flush=True)
        seed += 1
    table = Table("fault", "tries", SAME, REFUSED, LOST)
    for name, count in counts.items():
        table.add_row(name, str(count.total()), *(str(count[what]) for what in (SAME, REFUSED, LOST)))
    Console(width=100).print(table)
    if any(count[LOST] for count in counts.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
