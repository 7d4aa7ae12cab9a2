"""What bad input on its port costs a member: a process with two members is thrown at, then looked at, as one line of JSON.

Run as ``python -m tests.bench.bad_inputs [COUNT] [plain|secret|tls]``. Half of the inputs meet a member that gives strangers
all the chances they want, so that each of them is looked into; the other half one with the limits that members have.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.events import Event, Record, StrangerRefused
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.events import ListInstalled, MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.addressing import HeldPorts
from quarterdeck.backend.live.member.member_host import Host, MemberHost, RunClock
from quarterdeck.backend.live.security.tls import OPEN, TlsFiles, WireSecurity
from quarterdeck.backend.live.transport.limits import DEFAULT_LIMITS, Timeouts, TransportLimits
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.http.http_protocol import BoundedProtocol
from tests.live.security.certificates import Authority
from tests.live.transport.bad_inputs import resident_bytes, throw_many

COUNT = 100_000
WARM_UP = 3_000
"""Thrown before the first look: what is loaded once and kept is no leak."""
BASE_PORT = 26_701
TIMEOUTS = Timeouts(hello_seconds=1.0)
TOLERANT = TransportLimits(pending_per_host=10_000, pending=10_000, http_per_host=10_000, http=10_000, failures=1e12)
SETTINGS = Settings.of({"hazelcast.heartbeat.interval.seconds": 0.5, "hazelcast.max.no.heartbeat.seconds": 10})


class CountingObserver:
    """Counts what two members tell; keeps nothing."""

    def __init__(self) -> None:
        self.strangers = 0
        self.ended_members = 0
        self.members = 0
        self.troubles = 0

    def recorded(self, record: Record) -> None:
        event: Event = record.event
        if isinstance(event, ListInstalled):
            self.members = len(event.members)
        elif isinstance(event, SuspicionRaised | MemberRemoved):
            self.troubles += 1

    def stranger_refused(self, refused: StrangerRefused) -> None:
        self.strangers += 1

    def ended(self, host: Host, crashed: bool) -> None:
        self.ended_members += 1


def application() -> Starlette:
    async def size(request: Request) -> PlainTextResponse:
        try:
            return PlainTextResponse(str(len(await request.body())))
        except ClientDisconnect:
            return PlainTextResponse("never mind")

    return Starlette(routes=[Route("/{path:path}", size, methods=["GET", "POST"])])


async def be_thrown_at(tolerant: bool, security: WireSecurity) -> None:
    """Two members, the first of which is thrown at; answers each line on stdin with what has become of them."""
    held = HeldPorts(2, BASE_PORT, "127.0.0.1")
    addresses = [make_address("127.0.0.1", port) for port in held.ports]
    observer, clock, loop = CountingObserver(), RunClock.started_now(), asyncio.get_running_loop()
    config = uvicorn.Config(application(), lifespan="off", log_level="error", access_log=False, timeout_keep_alive=1)
    config.load()
    state = ServerState()
    hosts = []
    for number, address in enumerate(addresses):
        member_configuration = MemberConfiguration("bench", f"n{number}", address, tuple(addresses), SETTINGS)
        host = MemberHost(
            member_configuration.label,
            member_configuration.cluster_name,
            MemberMachine(member_configuration, Random(number)),
            clock,
            LiveNetwork({}, Random(1)),
            observer,
            TIMEOUTS,
            http=lambda transport, said: BoundedProtocol(config, state, {}, loop),
            security=security,
            limits=TOLERANT if tolerant else DEFAULT_LIMITS,
        )
        await host.start()
        hosts.append(host)
        while not host.joined:  # noqa: ASYNC110 - once, before anything is measured
            await asyncio.sleep(0.05)
    print(addresses[0], flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        await asyncio.sleep(1.5 * TIMEOUTS.hello_seconds)
        gc.collect()
        told = {
            "memory_bytes": resident_bytes(os.getpid()),
            "cpu_seconds": round(time.process_time(), 2),
            "members": observer.members,
            "troubles": observer.troubles,
            "ended": observer.ended_members,
            "strangers_told": observer.strangers,
            "connections": len(hosts[0].transport._connections),
            "strangers_inside": hosts[0].transport._listener.slots.taken,
            "http_inside": len(state.connections),
            "tasks": len(asyncio.all_tasks()),
        }
        print(json.dumps(told), flush=True)
    for host in hosts:
        await host.kill()


def measure(count: int, kind: str, *, tolerant: bool, seed: int, warm_up: int = WARM_UP) -> dict[str, object]:
    """Throw `count` at a member in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        security_flags = [kind, place]
        tls = None
        if kind == "tls":
            authority = Authority(Path(place))
            authority.files()
            tls = ssl.create_default_context(cafile=authority.file)
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.bad_inputs", "--member", str(int(tolerant)), *security_flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None and child.stdout is not None

        def look() -> dict[str, Any]:
            child.stdin.write("\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            told: dict[str, Any] = json.loads(child.stdout.readline())  # type: ignore[union-attr]
            return told

        try:
            address = Address(child.stdout.readline().strip())
            asyncio.run(throw_many(address, warm_up, seed - 1, tls=tls))
            before, began = look(), time.perf_counter()
            kinds = asyncio.run(throw_many(address, count, seed, tls=tls))
            seconds, after = time.perf_counter() - began, look()
            child.stdin.close()
            child.wait(10)
        finally:
            child.kill()
    return {
        "inputs": kinds.total(),
        "kinds": len(kinds),
        "inputs_per_second": round(kinds.total() / seconds),
        "member_cpu_us_per_input": round(1e6 * (after["cpu_seconds"] - before["cpu_seconds"]) / kinds.total()),
        "memory_mb_before": round(before["memory_bytes"] / 1e6, 2),
        "memory_mb_after": round(after["memory_bytes"] / 1e6, 2),
        "memory_mb_grown": round((after["memory_bytes"] - before["memory_bytes"]) / 1e6, 2),
        **{name: after[name] - before[name] for name in ("troubles", "ended", "strangers_told")},
        **{name: after[name] for name in ("members", "connections", "strangers_inside", "http_inside", "tasks")},
    }


def security_of(kind: str, place: str) -> WireSecurity:
    if kind == "plain":
        return OPEN
    if kind == "secret":
        return WireSecurity(secret="swordfish")
    files = [Path(place) / name for name in ("member.pem", "member.key", "authority.pem")]
    return WireSecurity(secret="swordfish", tls=TlsFiles(*files))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--member"]:
        asyncio.run(be_thrown_at(arguments[1] == "1", security_of(arguments[2], arguments[3])))
    else:
        wanted = int(arguments[0]) if arguments else COUNT
        kind = arguments[1] if arguments[1:] else "secret"
        print(
            json.dumps(
                {
                    "bench": "bad_inputs",
                    "security": kind,
                    "tolerant": measure(wanted // 2, kind, tolerant=True, seed=1),
                    "limited": measure(wanted - wanted // 2, kind, tolerant=False, seed=2),
                    "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
                }
            )
        )
