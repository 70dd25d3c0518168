"""Atomic writing: a file appears under its name complete, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file for writing; move it to `path` when the block ends without an error.

    On Linux the unfinished file has no name, so that even a killed process leaves nothing behind. Elsewhere it is
    a hidden file in the same folder, which is removed on any error.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor, named = _open(part, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not named:
                # A directory descriptor, although the name is absolute, makes Python follow the link in /proc.
                os.link(f"/proc/self/fd/{file.fileno()}", part, src_dir_fd=file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _open(part: Path, mode: int) -> tuple[int, bool]:
    """Open a new file for writing; return whether it has a name."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(part.parent, os.O_TMPFILE | os.O_WRONLY, mode), False
        except OSError:
            pass  # the file system has no files without a name
    return os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode), True


def _sync(folder: Path) -> None:
    """Make a new name in a folder durable, on systems that can synchronise folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
