"""Sources: where the bytes of a data file come from.

A source yields the bytes in pieces and reports its progress. Every failure is a `DataError`.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Protocol
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from bounce.errors import DataError

PIECE = 2**18
TIMEOUT = 60.0  # seconds without a byte

Report = Callable[[int, int | None], None]
"""Takes the number of bytes so far and the total, which is None while it is unknown."""

Scratch = Callable[[], Path]
"""Returns a temporary folder, the same for all files of a fetch; it is created on first use."""


class Source(Protocol):
    """What `fetch` needs from a source."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the data files that must exist first."""

    @property
    def automatic(self) -> bool:
        """Whether the file can be fetched without the user."""

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Yield the file's content."""


@dataclass(frozen=True)
class Web:
    """A file on a web server, over TLS only."""

    url: str

    needs = ()
    automatic = True

    def __str__(self) -> str:
        return self.url

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Download the file."""
        return _download(self.url, report)


@dataclass(frozen=True)
class ZipOnWeb:
    """A file inside a zip archive on a web server, found by the end of its name."""

    url: str
    member: str

    needs = ()
    automatic = True

    def __str__(self) -> str:
        return f"{self.url}, member {self.member}"

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Download the archive, then unpack one file."""
        with tempfile.TemporaryFile() as archive:
            try:
                for piece in _download(self.url, report):
                    archive.write(piece)
                archive.flush()
            except OSError as error:
                raise DataError(f"cannot keep {self.url} in {tempfile.gettempdir()}: {error.strerror}") from error
            yield from _unpack(archive, self.url, self.member, lambda done, total: None)


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel that pip finds in its package index. Nothing of the wheel is installed or run."""

    requirement: str
    member: str

    needs = ()
    automatic = True

    def __str__(self) -> str:
        return f"pip download {self.requirement}, member {self.member}"

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Download the wheel, unless it was downloaded for another file, then unpack one file."""
        folder = scratch() / self.requirement
        report(0, None)
        if not folder.exists():
            _pip_download(self.requirement, folder)
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise DataError(f"pip should have downloaded one wheel of {self.requirement}, not {wheels}")
        yield from _unpack(wheels[0], wheels[0].name, self.member, report)


@dataclass(frozen=True)
class ByHand:
    """A file that the user has to download."""

    page: str

    needs = ()
    automatic = False

    def __str__(self) -> str:
        return self.page

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Raise an error that says where to find the file."""
        raise DataError(
            f"it cannot be downloaded automatically: look for it at {self.page} and save it under this name"
        )


class _OnlyTLS(HTTPRedirectHandler):
    """Follow a redirection only to another TLS address."""

    def redirect_request(  # noqa: PLR0917 (the signature of the standard library)
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Refuse an address without TLS."""
        _check_tls(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_tls(url: str) -> None:
    if not url.startswith("https://"):
        raise DataError(f"data files are downloaded over TLS only, not from {url}")


def _download(url: str, report: Report) -> Iterator[bytes]:
    _check_tls(url)
    opener = build_opener(HTTPSHandler(context=ssl.create_default_context()), _OnlyTLS())
    request = Request(url, headers={"User-Agent": "bounce-bo"})
    try:
        with opener.open(request, timeout=TIMEOUT) as response:
            length = response.headers.get("Content-Length")
            done, total = 0, int(length) if length else None
            report(done, total)
            while piece := response.read(PIECE):
                done += len(piece)
                report(done, total)
                yield piece
    except (OSError, HTTPException) as error:
        raise DataError(f"cannot download {url}: {getattr(error, 'reason', error)}") from error
    if total is not None and done != total:
        raise DataError(f"cannot download {url}: the connection ended after {done} of {total} bytes")


def _pip_download(requirement: str, folder: Path) -> None:
    """Download a wheel with pip; refuse a source distribution, since building one runs code."""
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *options, f"--dest={folder}", requirement]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or [result.stderr.strip()]
        raise DataError(f"pip could not download {requirement}: {errors[-1]}")


def _unpack(archive: Path | IO[bytes], name: str, member: str, report: Report) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(archive) as contents:
            found = [info for info in contents.infolist() if info.filename.endswith(member)]
            if not found:
                raise DataError(f"{name} does not contain {member}")
            done = 0
            with contents.open(found[0]) as file:
                while piece := file.read(PIECE):
                    done += len(piece)
                    report(done, found[0].file_size)
                    yield piece
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"cannot unpack {member} from {name}: {error}") from error
