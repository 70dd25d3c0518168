from __future__ import annotations

import errno
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bounce.cli
from bounce.benchmarks import data, slices, sources
from bounce.benchmarks.atomic import replacing
from bounce.benchmarks.data import DataFile, fetch, find, locate
from bounce.benchmarks.sources import ByHand, Web, Wheel, ZipOnWeb
from bounce.errors import DataError, InvalidInput

CONTENT = bytes(range(256)) * 4096  # 1 MiB

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the command openssl is not installed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty $BOUNCE_DATA, and an empty cache."""
    monkeypatch.setenv("BOUNCE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    place = tmp_path_factory.mktemp("certificate")
    certificate, key = place / "certificate.pem", place / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    extensions = ["subjectAltName=DNS:localhost", "keyUsage=critical,digitalSignature,keyCertSign"]
    options = [option for extension in extensions for option in ("-addext", extension)]
    subprocess.run([*command, *options, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


class Server(ThreadingHTTPServer):
    """A server on localhost whose answers are functions of the handler."""

    daemon_threads = True

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("localhost", 0), Handler)
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def url(self, path: str, answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        self.answers[path] = answer
        return f"https://localhost:{self.server_address[1]}{path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that refuse the certificate or die are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.answers[self.path](self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A running HTTPS server that this process trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setenv("no_proxy", "localhost")
    with Server(*certificate) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def sending(content: bytes, announced: int | None = None) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if announced is None else announced))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def redirecting(url: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", url)
        handler.end_headers()

    return answer


def a_file(source: sources.Source, content: bytes = CONTENT, **changes: Any) -> DataFile:
    digest = hashlib.sha256(content).hexdigest()
    return replace(DataFile("thing", "thing.bin", digest, len(content), source, "none stated"), **changes)


def everything_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


@needs_openssl
def test_a_file_comes_over_tls_whole_and_with_progress(folder: Path, server: Server) -> None:
    seen: list[tuple[int, int | None]] = []
    file = a_file(Web(server.url("/thing", sending(CONTENT))))
    assert fetch([file], lambda _, done, total: seen.append((done, total))) == [folder / "thing.bin"]
    assert (folder / "thing.bin").read_bytes() == CONTENT
    assert everything_in(folder) == ["thing.bin"]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))


@needs_openssl
def test_a_redirection_within_tls_is_followed(folder: Path, server: Server) -> None:
    url = server.url("/new", sending(CONTENT))
    fetch([a_file(Web(server.url("/old", redirecting(url))))])
    assert (folder / "thing.bin").read_bytes() == CONTENT


@needs_openssl
def test_a_wrong_checksum_is_refused_and_leaves_nothing(folder: Path, server: Server) -> None:
    file = a_file(Web(server.url("/thing", sending(CONTENT[::-1]))))
    with pytest.raises(DataError, match=f"sha256 {hashlib.sha256(CONTENT[::-1]).hexdigest()}, not {file.sha256}"):
        fetch([file])
    assert everything_in(folder) == []


@needs_openssl
def test_a_dropped_connection_is_reported_and_leaves_nothing(folder: Path, server: Server) -> None:
    file = a_file(Web(server.url("/thing", sending(CONTENT[:300_000], announced=len(CONTENT)))))
    with pytest.raises(DataError, match=f"ended after 300000 of {len(CONTENT)} bytes"):
        fetch([file])
    assert everything_in(folder) == []


def _full_write(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fdopen(descriptor: int, mode: str) -> Any:
        os.close(descriptor)
        return Full()

    monkeypatch.setattr(os, "fdopen", fdopen)


def _full_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


@needs_openssl
@pytest.mark.parametrize("fill", [_full_write, _full_sync])
@pytest.mark.parametrize("nameless", [True, False])
def test_a_full_disk_is_reported_and_leaves_nothing(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], nameless: bool
) -> None:
    file = a_file(Web(server.url("/thing", sending(CONTENT))))
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(DataError, match=r"cannot write .*thing\.bin: No space left on device"):
            fetch([file])
    assert everything_in(folder) == []


@needs_openssl
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are a feature of Linux")
@pytest.mark.parametrize("source", ["Web('{url}')", "ZipOnWeb('{url}', 'thing')"])
def test_a_killed_download_leaves_nothing(folder: Path, server: Server, source: str) -> None:
    half_sent, finished = threading.Event(), threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        sending(CONTENT[:600_000], announced=len(CONTENT))(handler)
        half_sent.set()
        finished.wait(60)

    script = (
        "from bounce.benchmarks.data import DataFile, fetch\n"
        "from bounce.benchmarks.sources import Web, ZipOnWeb\n"
        "show = lambda file, done, total: done < 500_000 or print('under way', flush=True)\n"
        f"source = {source.format(url=server.url('/thing', answer))}\n"
        "fetch([DataFile('thing', 'thing.bin', None, None, source, 'none')], show)"
    )
    temporary = folder.with_name("temporary")
    temporary.mkdir()
    environment = dict(os.environ) | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "under way\n"
            assert half_sent.wait(60)
            assert folder.is_dir()
        finally:
            child.kill()
            finished.set()
    assert everything_in(folder) == []
    assert everything_in(temporary) == []


@needs_openssl
def test_a_server_without_a_trusted_certificate_is_refused(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DataError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch([a_file(Web(server.url("/thing", sending(CONTENT))))])
    assert everything_in(folder) == []


@needs_openssl
def test_nothing_is_downloaded_without_tls(folder: Path, server: Server) -> None:
    for url in ("http://localhost/thing", server.url("/old", redirecting("http://localhost/thing"))):
        with pytest.raises(DataError, match="over TLS only, not from http://localhost/thing"):
            fetch([a_file(Web(url))])
    assert everything_in(folder) == []


@needs_openssl
def test_a_missing_page_is_reported_and_does_not_stop_the_other_files(folder: Path, server: Server) -> None:
    lost = a_file(Web(server.url("/lost", lambda handler: handler.send_error(404))))
    other = a_file(Web(server.url("/thing", sending(CONTENT))), name="other", file="other.bin")
    with pytest.raises(DataError, match=r"^thing \(.*thing\.bin\): cannot download .*/lost: Not Found$"):
        fetch([lost, other])
    assert everything_in(folder) == ["other.bin"]


def zipped(**members: bytes) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


@needs_openssl
def test_a_file_is_taken_out_of_an_archive(folder: Path, server: Server) -> None:
    url = server.url("/all.zip", sending(zipped(**{"a/b/other": b"no", "a/b/prefix-thing": CONTENT})))
    fetch([a_file(ZipOnWeb(url, "thing"))])
    assert (folder / "thing.bin").read_bytes() == CONTENT
    assert everything_in(folder) == ["thing.bin"]


@needs_openssl
def test_an_archive_that_cannot_be_used_leaves_nothing(folder: Path, server: Server) -> None:
    archive = zipped(thing=CONTENT)
    with pytest.raises(DataError, match=r"/all\.zip does not contain another"):
        fetch([a_file(ZipOnWeb(server.url("/all.zip", sending(archive)), "another"))])
    for damaged in (archive[:500], archive.replace(archive[100:120], bytes(20))):
        with pytest.raises(DataError, match=r"cannot unpack thing from https://.*/all\.zip"):
            fetch([a_file(ZipOnWeb(server.url("/all.zip", sending(damaged)), "thing"))])
    assert everything_in(folder) == []


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which pip looks for wheels instead of on the network, with one wheel of two data files."""
    place = tmp_path / "index"
    place.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    facts = {
        "demo/first": CONTENT,
        "demo/second": CONTENT[:1000],
        "demo-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: absent\n",
        "demo-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "demo-1.0.dist-info/RECORD": b"",
    }
    (place / "demo-1.0-py3-none-any.whl").write_bytes(zipped(**facts))
    return place


@pytest.mark.slow
def test_a_wheel_is_downloaded_once_for_all_its_files(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    download = sources._pip_download

    def counted(requirement: str, to: Path) -> None:
        runs.append(requirement)
        download(requirement, to)

    monkeypatch.setattr(sources, "_pip_download", counted)
    first = a_file(Wheel("demo==1.0", "demo/first"), name="first", file="first.bin", executable=True)
    second = a_file(Wheel("demo==1.0", "demo/second"), CONTENT[:1000], name="second", file="second.bin")
    damaged = replace(second, name="damaged", file="damaged.bin", sha256="0" * 64)
    with pytest.raises(DataError, match=r"^damaged \(.*\): .* gave a file with the sha256"):
        fetch([first, second, damaged])
    assert runs == ["demo==1.0"]
    assert (folder / "first.bin").read_bytes() == CONTENT
    assert (folder / "second.bin").read_bytes() == CONTENT[:1000]
    assert os.access(folder / "first.bin", os.X_OK)
    assert not os.access(folder / "second.bin", os.X_OK)
    assert everything_in(folder) == ["first.bin", "second.bin"]


@pytest.mark.slow
def test_a_package_that_pip_does_not_find_as_a_wheel_is_refused(folder: Path, index: Path) -> None:
    (index / "source-1.0.tar.gz").write_bytes(b"what would run setup.py")
    with pytest.raises(DataError, match=r"pip could not download source==1\.0: ERROR: No matching distribution"):
        fetch([a_file(Wheel("source==1.0", "anything"))])
    assert everything_in(folder) == []


@pytest.mark.slow
def test_what_is_there_and_sound_is_left_alone_and_what_is_damaged_is_replaced(folder: Path, index: Path) -> None:
    folder.mkdir()
    (folder / "thing.bin").write_bytes(CONTENT)
    assert fetch([a_file(ByHand("nowhere"))]) == [folder / "thing.bin"]
    (folder / "thing.bin").write_bytes(CONTENT[1:])
    fetch([a_file(Wheel("demo==1.0", "demo/first"))])
    assert (folder / "thing.bin").read_bytes() == CONTENT


def test_a_file_without_a_download_names_its_page_and_its_path(folder: Path) -> None:
    with pytest.raises(
        DataError, match=rf"\({folder}/thing\.bin\): .* look for it at https://here and save it under this name"
    ):
        fetch([a_file(ByHand("https://here"))])


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> DataFile:
    file = a_file(ByHand("https://here"), other_names=("thing",))
    monkeypatch.setattr(data, "CATALOGUE", (file,))
    return file


def test_a_file_is_looked_for_in_the_given_folder_then_in_the_cache(folder: Path, catalogue: DataFile) -> None:
    assert find(catalogue) is None
    with pytest.raises(DataError, match=rf"not in {folder} or .*bounce: run `bounce data fetch thing`"):
        locate("thing")
    cache = data.cache()
    cache.mkdir(parents=True)
    (cache / "thing.bin").write_bytes(CONTENT)
    assert locate("thing") == cache / "thing.bin"
    folder.mkdir()
    (folder / "thing").write_bytes(CONTENT)
    assert locate("thing") == folder / "thing"


def test_a_damaged_file_is_not_used(folder: Path, catalogue: DataFile) -> None:
    folder.mkdir()
    (folder / "thing.bin").write_bytes(CONTENT[1:])
    with pytest.raises(DataError, match=r"thing\.bin is damaged: run `bounce data fetch thing`"):
        locate("thing")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="no data file 'nothing'; the names are frb10-6-4, dna, slice, "):
        data.files(["nothing"])


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "BOUNCE_DATA"):
        monkeypatch.delenv(name, raising=False)
    home = Path.home()
    expected = {
        "linux": home / ".cache" / "bounce",
        "darwin": home / "Library" / "Caches" / "bounce",
        "win32": home / "AppData" / "Local" / "bounce" / "Cache",
    }
    for platform, path in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert data.cache() == path
        assert data.folders() == [path]


def test_every_file_has_a_name_of_its_own_and_a_source_with_tls() -> None:
    names = [file.name for file in data.CATALOGUE]
    assert len(set(names)) == len(names)
    assert len({file.file for file in data.CATALOGUE}) == len(names)
    for file in data.CATALOGUE:
        assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
        assert "http://" not in str(file.source)


def test_a_file_is_replaced_only_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    for nameless in (True, False):
        if not nameless:
            monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        with replacing(path) as out:
            out.write(b"old")
        with pytest.raises(KeyboardInterrupt):
            _interrupted_write(path)
        assert path.read_bytes() == b"old"
        assert everything_in(path.parent) == ["file"]
        with replacing(path, 0o777) as out:
            out.write(b"new")
        assert path.read_bytes() == b"new"
        assert os.access(path, os.X_OK)


def _interrupted_write(path: Path) -> None:
    with replacing(path) as out:
        out.write(b"new, but")
        raise KeyboardInterrupt


def test_a_table_is_recognised_by_every_bit_of_its_numbers(folder: Path) -> None:
    file = find_or_skip("slice388")
    table = slices.read(file, 388)
    folder.mkdir()
    np.savez(folder / "slice_svm388.npz", X=np.nextafter(table.X, 2.0), y=table.y)
    with pytest.raises(ValueError, match=r"slice_svm388\.npz is not the table of the 388-dimensional SVM problem"):
        slices.read(folder / "slice_svm388.npz", 388)
    with pytest.raises(ValueError, match="is not the table of the 53-dimensional SVM problem"):
        slices.read(file, 53)


def find_or_skip(name: str) -> Path:
    """Return where a data file is in the environment of the test run, not of the test."""
    (file,) = data.files([name])
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("BOUNCE_DATA", "XDG_CACHE_HOME"):
            if variable in ENVIRONMENT:
                patch.setenv(variable, ENVIRONMENT[variable])
            else:
                patch.delenv(variable, raising=False)
        path = find(file)
    if path is None:
        pytest.skip(f"{file.file} is neither in $BOUNCE_DATA nor in the cache")
    return path


ENVIRONMENT = dict(os.environ)


@pytest.mark.parametrize("problem", [53, 388])
def test_the_tables_made_from_the_raw_slices_are_the_published_ones(folder: Path, problem: int) -> None:
    raw = find_or_skip("slice")
    folder.mkdir()
    (folder / "slice_localization_data.csv").symlink_to(raw)
    fetch(data.files([f"slice{problem}"]))
    assert slices.read(folder / f"slice_svm{problem}.npz", problem).digest == slices.DIGESTS[problem]


def test_a_raw_file_of_another_shape_makes_no_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"a,b\n1,2\n3,4\n"
    changed = tuple(
        replace(file, sha256=hashlib.sha256(content).hexdigest()) if file.name == "slice" else file
        for file in data.CATALOGUE
    )
    monkeypatch.setattr(data, "CATALOGUE", changed)
    folder.mkdir()
    (folder / "slice_localization_data.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot compute the table: .* should have 53500 rows of 386 numbers"):
        fetch(data.files(["slice53"]))
    assert everything_in(folder) == ["slice_localization_data.csv"]


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["bounce", *words])
    with pytest.raises(SystemExit) as exit:
        bounce.cli.main()
    return exit.value.code


def test_the_command_lists_every_file_with_its_licence_and_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    (folder / "dna.scale").write_bytes(b"12345")
    assert run_cli(monkeypatch, "data", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * len(data.CATALOGUE)
    assert "dna         present   5 bytes       licence: none stated" in lines
    assert "slice       missing   81.5 MB       licence: CC BY 4.0 (UCI)" in lines
    assert f"    file    {folder / 'dna.scale'}" in lines
    assert all(f"    source  {file.source}" in lines for file in data.CATALOGUE)


@pytest.mark.slow
def test_the_command_fetches_and_prints_where_the_file_is(
    folder: Path, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = a_file(Wheel("demo==1.0", "demo/first"))
    by_hand = a_file(ByHand("https://here"), name="other", file="other.bin")
    monkeypatch.setattr(data, "CATALOGUE", (file, by_hand))
    assert run_cli(monkeypatch, "data", "fetch") == 0
    assert capsys.readouterr().out == f"{folder / 'thing.bin'}\n"
    assert run_cli(monkeypatch, "data", "fetch", "other") == 2
    assert capsys.readouterr().err.endswith("look for it at https://here and save it under this name\n")
    assert run_cli(monkeypatch, "data", "fetch", "nothing") == 2
    assert capsys.readouterr().err == "bounce: there is no data file 'nothing'; the names are thing, other\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_table_is_recognised_by_its_content(damage: str, tmp_path: Path) -> None:
    content = BytesIO()
    np.savez_compressed(content, X=np.zeros((500, 385)), y=np.zeros(500))
    whole = bytearray(content.getvalue())
    if damage == "flipped":
        whole[len(whole) // 2] ^= 4
    path = tmp_path / "slice_svm388.npz"
    path.write_bytes(bytes({"cut": whole[:300], "flipped": whole, "empty": b""}[damage]))
    assert not slices.sound(path, 388)
    with pytest.raises(ValueError, match="is not the table of the 388-dimensional SVM problem"):
        slices.read(path, 388)
