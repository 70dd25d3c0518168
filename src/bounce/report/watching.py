"""Watching: the page of a study served to a browser on this machine, which follows the study while it runs.

The invariant: nothing but the page and its content can be read, nothing can be changed, and only requests that name
this machine are answered: a page from elsewhere whose name was made to point here (DNS rebinding) sends its own name
in the header `Host`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bounce.errors import BounceError
from bounce.report.document import data_block, document

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
Contents = Callable[[], dict[str, Any]]


class Watched:
    """The content of a study, made again when its file has changed; from one thread at a time."""

    def __init__(self, path: Path, make: Contents) -> None:
        self._path, self._make = path, make
        self._lock = threading.Lock()
        self._known: tuple[object, dict[str, Any], str] | None = None

    def __call__(self) -> tuple[dict[str, Any], str]:
        """Return the content and its tag, which changes with it."""
        with self._lock:
            state = self._state()
            if self._known is None or self._known[0] != state:
                content = self._make()
                plain = {name: value for name, value in content.items() if name != "made"}
                self._known = state, content, sha256(data_block(plain).encode()).hexdigest()[:32]
            return self._known[1], self._known[2]

    def _state(self) -> object:
        """Return what differs whenever the file was written: times and sizes of it and of its journal."""
        found: list[tuple[int, int] | None] = []
        for path in (self._path, self._path.with_name(self._path.name + "-wal")):
            try:
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size))
            except OSError:
                found.append(None)
        return found


class Server(ThreadingHTTPServer):
    """Answers requests for one study."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], watched: Watched, names: Iterable[str] = ()) -> None:
        super().__init__(address, _Handler)
        self.watched = watched
        port = self.server_address[1]
        hosts = {*LOOPBACK, *names}
        self.hosts = {f"{host}:{port}" for host in hosts} | (hosts if port == 80 else set())

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "bounce"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds for which a connection may be silent

    def do_GET(self) -> None:
        """Answer with the page or its content."""
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._answer(421, "text/plain", "this server answers only for this machine\n")
            return
        path = self.path.partition("?")[0]
        if path not in ("/", "/content.json"):
            self._answer(404, "text/plain", "there is only the page / here\n")
            return
        try:
            content, tag = self.server.watched()
        except (BounceError, OSError) as error:
            self._answer(503, "text/plain", f"{error}\n")
            return
        quoted = f'"{tag}"'
        if path == "/":
            self._answer(200, "text/html", document(content))
        elif self.headers.get("If-None-Match") == quoted:
            self._answer(304, "application/json", "", tag=quoted)
        else:
            self._answer(200, "application/json", data_block(content), tag=quoted)

    def _answer(self, code: int, kind: str, text: str, tag: str | None = None) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        if tag is not None:
            self.send_header("ETag", tag)
        self.end_headers()
        if code != 304:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a browser asks every two seconds."""
