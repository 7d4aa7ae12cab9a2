"""Members started as people start them, on ports of this test worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.ports import take_ports
from tests.waiting import wait_until

BASE_PORT = take_ports(100)

QUICK = (
    "--preset=training",
    "--property=hazelcast.heartbeat.interval.seconds=0.2",
    "--property=hazelcast.max.no.heartbeat.seconds=2",
)
TIMEOUT_SECONDS = 60.0

CLIENT = httpx.Client(timeout=TIMEOUT_SECONDS, verify=False, limits=httpx.Limits(max_keepalive_connections=0))
"""One for all requests over plain HTTP: each client of its own would read the certificates of all authorities first."""


class MemberProcess:
    """One process of ``quarterdeck member start``."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *arguments: str,
        port: int = BASE_PORT,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        """`within` is a command that runs the rest of its words in another place, such as a namespace, where `host` is."""
        self._host = host
        self.ready_file = folder / f"{name}.ready"
        self._log = folder / f"{name}.log"
        self.port = port
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HZ_", "QUARTERDECK_"))}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *within,
                    *(sys.executable, "-c", "from quarterdeck.cli.main import run; run()", "member", "start"),
                    *(f"--name={name}", f"--port={port}", f"--ready-file={self.ready_file}", *QUICK, *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> httpx.Response:
        return CLIENT.get(self.url + path)

    def post(self, path: str, content: str | None = None, **more: Any) -> httpx.Response:
        return CLIENT.post(self.url + path, content=content, **more)

    def until(self, condition: Callable[[], object]) -> None:
        def came() -> object:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.log}"
            return condition()

        wait_until(came, lambda: f"it never came to that:\n{self.log}")

    def ready(self) -> dict[str, Any]:
        """What the ready file says, once it is this process's."""
        found: dict[str, Any] = {}

        def is_there() -> bool:
            with contextlib.suppress(FileNotFoundError):
                found.update(json.loads(self.ready_file.read_text()))
            return found.get("pid") == self.process.pid

        self.until(is_there)
        return found

    def sees(self, size: int) -> None:
        """Return when it believes in so many members."""
        self.until(lambda: self.get("/hazelcast/health/cluster-size").text == str(size))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends_with(self) -> int:
        return self.process.wait(TIMEOUT_SECONDS)


@contextlib.contextmanager
def members(folder: Path, count: int, *arguments: str, base_port: int = BASE_PORT) -> Iterator[list[MemberProcess]]:
    """So many members that know one another and have found one another; none is left at the end."""
    ports = range(base_port, base_port + count)
    join = [f"--join=127.0.0.1:{port}" for port in ports]
    found: list[MemberProcess] = []
    try:
        for number, port in enumerate(ports, 1):
            found.append(MemberProcess(folder, f"n{number}", *join, *arguments, port=port))
            found[-1].ready()
        for member in found:
            member.sees(count)
        yield found
    finally:
        for member in found:
            end(member)


def end(member: MemberProcess) -> None:
    if member.process.poll() is None:
        member.process.kill()
    member.process.wait()
