"""What is called at each change of a cluster's condition: a command, a URL."""

from __future__ import annotations

import subprocess
import threading
from queue import Empty, Full, Queue
from typing import Any

import httpx
import msgspec

from quarterdeck.cli.exits import in_one_line
from quarterdeck.cli.output import say

HOOK_TRIES = 3
HOOK_TIMEOUT_SECONDS = 30.0
HOOKS_WAITING = 32
"""Changes that wait for a slow hook; then the oldest are left out, and said to be."""


class Hooks:
    """Calls a command and a URL with each change, in a thread of its own: following a cluster never waits for them."""

    def __init__(self, command: str | None, webhook: str | None) -> None:
        self._command, self._webhook = command, webhook
        self._changes: Queue[dict[str, object] | None] = Queue(HOOKS_WAITING)
        self._ended = threading.Event()
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name="hooks", daemon=True)
        if command or webhook:
            self._thread.start()

    def send(self, change: dict[str, object]) -> None:
        """Hand over a change. When too many wait, the oldest is left out."""
        if not self._thread.is_alive():
            return
        while True:
            try:
                self._changes.put_nowait(change)
            except Full:
                try:
                    self._changes.get_nowait()
                except Empty:
                    continue
                self._count("too many changes wait for the hook; the oldest is left out")
            else:
                return

    def close(self) -> None:
        """End the thread after the change that is being sent."""
        self._ended.set()
        if self._thread.is_alive():
            self.send({})
            self._thread.join(1)

    def _run(self) -> None:
        while not self._ended.is_set():
            change = self._changes.get()
            if not change:
                continue
            body = msgspec.json.encode(change)
            if self._command:
                self._try("--exec", self._execute, body)
            if self._webhook:
                self._try("--webhook", self._post, body)

    def _execute(self, body: bytes) -> None:
        assert self._command is not None
        subprocess.run(self._command, shell=True, input=body, timeout=HOOK_TIMEOUT_SECONDS, check=True)

    def _post(self, body: bytes) -> None:
        assert self._webhook is not None
        headers = {"Content-Type": "application/json"}
        httpx.post(self._webhook, content=body, headers=headers, timeout=HOOK_TIMEOUT_SECONDS).raise_for_status()

    def _try(self, name: str, act: Any, body: bytes) -> None:
        for attempt in range(HOOK_TRIES):
            try:
                act(body)
            except (OSError, subprocess.SubprocessError, httpx.HTTPError) as problem:
                if attempt + 1 == HOOK_TRIES:
                    self._count(f"{name}: {in_one_line(problem)}; given up after {HOOK_TRIES} attempts")
                elif self._ended.wait(2**attempt):
                    return
            else:
                return

    def _count(self, problem: str) -> None:
        self.failed += 1
        say(problem)
