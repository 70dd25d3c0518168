"""Reaper: if this process is killed, what it has started is killed too, with its children.

The reaper is a shell that reads from a pipe which groups of processes are running. When this process ends, however it
ends, the pipe closes, and the shell kills the groups that were named last. Then a run that is resumed starts no second
copy beside the first one.
"""

from __future__ import annotations

import atexit
import os
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock

SCRIPT = """
trap '' INT TERM HUP
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Reaper:
    """The groups of processes that this process is running, and the shell that outlives it for their sake."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._shell: Popen[bytes] | None = None

    def add(self, group: int) -> None:
        """Have a group killed when this process dies."""
        with self._lock:
            if group not in self._groups:
                self._groups.add(group)
                self._tell()

    def discard(self, group: int) -> None:
        """Forget a group that has ended."""
        with self._lock:
            if group in self._groups:
                self._groups.remove(group)
                self._tell()

    def close(self) -> None:
        """End the shell, and with it every group that is still running."""
        with self._lock:
            shell, self._shell = self._shell, None
            if shell is not None and shell.stdin is not None:
                shell.stdin.close()
                shell.wait()

    def forget(self) -> None:
        """Leave the shell to the process that started it, after a fork."""
        shell, self._shell = self._shell, None
        if shell is not None and shell.stdin is not None:
            shell.stdin.close()
            shell.returncode = 0  # it is no child of this process
        self._groups.clear()
        self._lock = Lock()

    def _tell(self) -> None:
        """Name the groups to the shell; start one if there is none, or if somebody has killed it."""
        line = (" ".join(map(str, self._groups)) + "\n").encode("ascii")
        for _ in range(2):
            if self._shell is None:
                self._shell = _started()
            if self._shell is None or self._shell.stdin is None:
                return
            try:
                self._shell.stdin.write(line)
                return
            except BrokenPipeError:
                self._shell.wait()
                self._shell = None


def _started() -> Popen[bytes] | None:
    """Return a new shell; None on a machine without one, where nothing outlives this process for its sake."""
    try:
        return Popen(
            ["/bin/sh", "-c", SCRIPT],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            bufsize=0,
            start_new_session=True,  # Ctrl-C, or the end of a terminal, is not for it
        )
    except OSError:
        return None


REAPER = Reaper()
atexit.register(REAPER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=REAPER.forget)
