"""A real Chromium without a screen, steered by its DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.waiting import wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_SECONDS = 60.0
LARGEST_ANSWER = 50_000_000

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1", "--window-size=1200,800",
    "--remote-debugging-port=0",
)  # fmt: skip


def installed() -> str | None:
    """The path of a Chromium on this machine, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page; all that its console and its network had to say is kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser to do something; returns what it answers."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(TIMEOUT_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message.get("result", {}))
            self.events.append(message)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page, waited for if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """One key that types itself."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def screenshot(self) -> bytes:
        """What is in sight, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requested(self) -> list[str]:
        """The URLs that the page asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def browsing(profile: Path) -> Iterator[Page]:
    """A page of a browser with a new profile, ended when the block is left."""
    path = installed()
    assert path is not None
    with subprocess.Popen(
        [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            port = _port(profile / "DevToolsActivePort")
            pages = httpx.get(f"http://127.0.0.1:{port}/json/list", trust_env=False).json()
            url = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            with connect(url, max_size=LARGEST_ANSWER, proxy=None) as socket:
                yield Page(socket)
        finally:
            process.kill()


def _port(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text(), "Chromium does not start")
    return int(file.read_text().splitlines()[0])
