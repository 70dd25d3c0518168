"""`bounce` in processes that have imported it already: importing scipy takes longer than most commands do.

A server imports what most commands need, and forks a process for each command. What a shell finds as `bounce` is a
client: it sends its words, folder, environment and open files to the server, and ends with the exit code that the
command ended with. Only where the client is killed does a command notice the difference: it goes on. Elsewhere than on
Linux a forked process may not use all libraries, so each command starts as usual.

    python commands.py FD    # FD: the number of a socket that listens
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

IMPORTED = ("bounce.cli", "bounce.spec.reading", "bounce.spec.document", "bounce.study.study", "bounce.live.display")
CLIENT = """#!{python} -IS
import json, os, socket, sys
words = sys.argv[1:]
if words[:2] == ["-m", "bounce"]:  # this file stands for Python
    del words[:2]
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b" "], [0, 1, 2])
    server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    code = int(server.recv(8))
sys.exit(code if code >= 0 else 128 - code)
"""
WITHOUT_SERVER = """#!/bin/sh
if [ "$1" = -m ]; then shift 2; fi
exec {python} -m bounce "$@"
"""


@contextmanager
def client() -> Iterator[Path]:
    """Make a `bounce` that starts at once, while this lasts."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        address, program = str(Path(folder, "socket")), Path(folder, "bounce")
        text = CLIENT if sys.platform == "linux" else WITHOUT_SERVER
        program.write_text(text.format(python=sys.executable, address=address))
        program.chmod(0o700)
        if text is WITHOUT_SERVER:
            yield program
            return
        listening.bind(address)
        listening.listen()
        fd = listening.fileno()
        server = subprocess.Popen([sys.executable, __file__, str(fd)], pass_fds=[fd])
        try:
            yield program
        finally:
            server.terminate()
            server.wait()


def serve(listening: socket.socket) -> None:
    """Answer every client in a process of its own."""
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # what is imported stays: no process looks at it again
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            answer(connection)
            os._exit(0)
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def answer(connection: socket.socket) -> None:
    """Run the command of a client, and send its exit code."""
    _, files, *_ = socket.recv_fds(connection, 1, 3)
    words, folder, environment = json.loads(connection.makefile().read())
    process = os.fork()
    if process == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["bounce", *words]
        import_module("bounce.cli").main()
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    connection.sendall(str(code).encode())


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file: a program in a shell does not have it
    serve(socket.socket(fileno=int(sys.argv[1])))
