"""A real browser for tests: headless Chromium through chromedriver's REST interface, with the standard library only."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
WAIT = 60.0  # seconds for the driver to start


def missing() -> str | None:
    """Return why there is no browser; None if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: apt-get install chromium chromium-driver)"
    return None


class Browser:
    """One window."""

    def __init__(self, base: str, folder: Path) -> None:
        self._base = base
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": shutil.which("chromium"),
                "args": [*FLAGS, f"--user-data-dir={folder}"],
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._base += f"/session/{answer['sessionId']}"

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            said = json.load(error)["value"]["message"].splitlines()[0]
            raise AssertionError(f"{path}: {said}") from None

    def open(self, address: str) -> None:
        """Open a page and wait until it is loaded."""
        self._call("POST", "/url", {"url": address})

    def run(self, script: str) -> Any:
        """Run a script in the page; return what it returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def wait_for(self, script: str, seconds: float = 20.0) -> Any:
        """Run a script until it returns something true."""
        end = time.monotonic() + seconds
        while True:
            found = self.run(script)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"not true within {seconds} s: {script}")

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Set the size of the page, and its colours."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def mouse(self, kind: str, x: float, y: float, *, pressed: bool = False) -> None:
        """Move, press or release the mouse: `mouseMoved`, `mousePressed` or `mouseReleased`."""
        button = "left" if pressed or kind != "mouseMoved" else "none"
        self.devtools(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button=button, buttons=int(pressed), clickCount=int(kind != "mouseMoved"),
        )  # fmt: skip

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag the mouse."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, pressed=True)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        for at in (middle, end):
            self.mouse("mouseMoved", *at, pressed=True)
        self.mouse("mouseReleased", *end)

    def press(self, key: str) -> None:
        """Press a key, such as `ArrowRight`."""
        for kind in ("keyDown", "keyUp"):
            self.devtools("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def errors(self) -> list[str]:
        """Return what the console has said that is a warning or worse."""
        said = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in said if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Return every address that was requested since the last call."""
        said = self._call("POST", "/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in said]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Close the window."""
        self._call("DELETE", "")


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a driver and a browser with an empty profile in a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(
        [shutil.which("chromedriver") or "chromedriver", f"--port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    try:
        _wait(port, driver)
        found = Browser(f"http://127.0.0.1:{port}", folder / "profile")
        try:
            yield found
        finally:
            found.close()
    finally:
        driver.terminate()
        driver.wait()


def _wait(port: int, driver: subprocess.Popen[bytes]) -> None:
    """Wait until the driver listens."""
    end = time.monotonic() + WAIT
    while True:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if driver.poll() is not None or time.monotonic() > end:
            raise AssertionError("chromedriver did not start")
        time.sleep(0.02)  # between two attempts to connect
