"""One thread for linear algebra while points are chosen.

The matrices of an ask are small. A second thread saves next to nothing, and beside busy workers, threads that wait
for each other take many times as long. With one thread, a run also repeats whatever number of threads is set.

The wheels of numpy and scipy each carry an OpenBLAS; once it is loaded, only a C function changes its number of
threads. Other libraries are left as they are. (threadpoolctl handles all of them, but would be one more dependency.)

The invariant: while anyone is inside `one_thread`, these have one thread each; afterwards they have what they had.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import scipy

NAMES = [f"{start}openblas_{{}}_num_threads{end}" for start in ("scipy_", "") for end in ("64_", "")]


@dataclass(frozen=True)
class _Library:
    get: Callable[[], int]
    set: Callable[[int], None]


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return the OpenBLAS of numpy's and of scipy's wheel, which are loaded already."""
    found = []
    for package in (np, scipy):
        home = Path(package.__path__[0])
        for folder in (home.parent / f"{home.name}.libs", home / ".dylibs"):
            for file in sorted(folder.glob("*openblas*")):
                library = ctypes.CDLL(str(file))
                name = next((name for name in NAMES if hasattr(library, name.format("set"))), None)
                if name is not None:
                    found.append(_Library(*(getattr(library, name.format(verb)) for verb in ("get", "set"))))
    return tuple(found)


@dataclass
class _Inside:
    """Who is inside, and what there was before the first of them came."""

    count: int = 0
    before: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


_inside = _Inside()


@contextmanager
def one_thread() -> Iterator[None]:
    """Give linear algebra one thread inside; from several threads at once, until the last of them is out."""
    with _inside.lock:
        if not _inside.count:
            _inside.before = [library.get() for library in _libraries()]
            for library in _libraries():
                library.set(1)
        _inside.count += 1
    try:
        with np.errstate(under="ignore"):  # as numpy does by default: a program may have told it to raise
            yield
    finally:
        with _inside.lock:
            _inside.count -= 1
            if not _inside.count:
                for library, number in zip(_libraries(), _inside.before, strict=True):
                    library.set(number)
