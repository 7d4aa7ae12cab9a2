"""A whole member on a real port, in a thread of this process, for those who do it harm over sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from quarterdeck.backend.core.address import make_address
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.transport.limits import DEFAULT_LIMITS, TransportLimits
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.configuration.process_configuration import ENDPOINT_GROUPS, ProcessConfiguration
from quarterdeck.backend.service.process.member_service import MemberService
from tests.service.member_processes import BASE_PORT

PORT = BASE_PORT + 30
SETTINGS = Settings.of(preset="training")
ANSWER_SECONDS = 10.0
"""Whoever is not answered within this time is held to be stuck."""


class AttackedMember:
    """`port` is where it listens, on every address of loopback."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: MemberService, port: int) -> None:
        self.port = port
        self.service = service
        self.loop = loop

    def look(self, what: Callable[[], Any]) -> Any:
        """What it says on the member's loop."""

        async def looked() -> Any:
            return what()

        return asyncio.run_coroutine_threadsafe(looked(), self.loop).result(30)

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """From an address of one's own: all of 127.0.0.0/8 is this machine."""
        return socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS, source_address=(source, 0))

    def say(self, raw: bytes, source: str = "127.0.0.1") -> bytes:
        """What is answered to `raw` until the member closes. Raises TimeoutError when it says nothing and does not close."""
        with self.connect(source) as connection:
            connection.sendall(raw)
            return heard(connection)

    def status(self, raw: bytes, source: str = "127.0.0.1") -> int:
        return status_of(self.say(raw, source))

    def answers(self, source: str = "127.0.0.1") -> bool:
        """Whether somebody at `source` is answered at all, and soon."""
        try:
            return self.status(request("GET", "/hazelcast/health/node-state", "Connection: close"), source) == 200
        except OSError:
            return False


def request(method: str, target: str, *headers: str, host: str = "localhost", body: bytes = b"") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    return (
        "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *headers, *length, "", ""]).encode("latin-1")
        + body
    )


def heard(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            answer += chunk
    return answer


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


@contextmanager
def attacked(port: int = PORT, limits: TransportLimits = DEFAULT_LIMITS, **changed: Any) -> Iterator[AttackedMember]:
    """A joined member; at the end it has to stop within a few seconds and without an error, whoever is connected."""
    loop = asyncio.new_event_loop()
    problems: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: problems.append(context))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> MemberService:
        here = make_address("127.0.0.1", port)
        groups = dict.fromkeys(ENDPOINT_GROUPS, True)
        member = MemberConfiguration("run", "n1", here, (here,), SETTINGS)
        service = MemberService(
            ProcessConfiguration(member, "127.0.0.1", (here,), endpoint_groups=groups, **changed),
            Random(1),
            RunClock.started_now(),
            LiveNetwork({"n1": here}, Random(1)),
            limits=limits,
        )
        await service.start()
        await asyncio.wait_for(service.joined.wait(), 20)
        await service.http.load()
        return service

    async def end(service: MemberService) -> float:
        service.stop()
        service.stop()
        await asyncio.wait_for(service.ended_event.wait(), 20)
        began = time.monotonic()
        await service.close(2)
        return time.monotonic() - began

    try:
        service = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
        yield AttackedMember(loop, service, port)
        took = asyncio.run_coroutine_threadsafe(end(service), loop).result(60)
        assert took < 10, f"it took {took:.1f} s to hang up on everybody"
        assert not problems, problems
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
