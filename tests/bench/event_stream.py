"""What the event stream costs a member: 5,000 events a second to 20 clients, and how late its heartbeats become.

Three processes: a member that is asked to record so many events and serves them, a second member that watches when heartbeats
of the first arrive, and the clients. Measured without events and clients, with events only, and with both. Run as
``python -m tests.bench.event_stream [CLIENTS] [EVENTS_PER_SECOND] [SECONDS]``; prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from websockets.asyncio.client import connect

from quarterdeck.backend.core.address import make_address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.events import StrangerRefused
from quarterdeck.backend.core.inputs import Input, Receive
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration
from quarterdeck.backend.service.process import member_service
from quarterdeck.backend.service.process.member_service import MemberService

HOST, PORTS = "127.0.0.1", (28_701, 28_702)
INTERVAL_SECONDS = 0.05
SETTINGS = Settings.of(
    {"hazelcast.heartbeat.interval.seconds": INTERVAL_SECONDS, "hazelcast.max.no.heartbeat.seconds": 20},
    preset="training",
)
PULSE_SECONDS = 0.01
"""Events are recorded in bursts, as members do it."""


class Watching(MemberMachine):
    """Notes when each heartbeat arrived."""

    arrivals: list[float] = []

    def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
        if isinstance(input, Receive) and type(input.message) is Heartbeat:
            Watching.arrivals.append(time.monotonic())
        return super().step(now, input, because)


def a_member(place: int) -> MemberService:
    addresses = {f"n{number}": make_address(HOST, port) for number, port in enumerate(PORTS, start=1)}
    label, address = list(addresses.items())[place]
    clock, listed = RunClock.started_now(), tuple(addresses.values())
    member = MemberConfiguration("bench", label, address, listed, SETTINGS, clock.utc_origin_us, cluster_name="bench")
    configuration = ProcessConfiguration(member, HOST, listed)
    return MemberService(configuration, Random(place), clock, LiveNetwork(addresses, Random(place)))


async def serve(clients: int, rate: int, seconds: float, watcher: Connection, crowd: Connection) -> dict[str, Any]:
    """The first member: its life, and what is asked of it."""
    member = a_member(0)
    await member.start()
    await asyncio.wait_for(member.joined.wait(), 30)
    await asyncio.to_thread(watcher.recv)  # the other one has joined
    found: dict[str, Any] = {"idle": await phase(member, 0, seconds, watcher)}
    found["events_only"] = await phase(member, rate, seconds, watcher)
    crowd.send(clients)
    await asyncio.to_thread(crowd.recv)  # all are connected
    found["events_and_clients"] = await phase(member, rate, seconds, watcher)
    await asyncio.sleep(1)
    crowd.send("enough")
    found["clients"] = await asyncio.to_thread(crowd.recv)
    watcher.send("enough")
    member.stop()
    member.stop()
    await member.close(1)
    return found


async def phase(member: MemberService, rate: int, seconds: float, watcher: Connection) -> dict[str, Any]:
    """One measurement of the loop, the process and the heartbeats that arrive."""
    watcher.send("begin")
    noted, lags = 0, []
    cpu, began = time.process_time(), time.monotonic()
    due = began
    while (now := time.monotonic()) < began + seconds:
        lags.append(now - due)
        while noted < rate * (now - began):
            noted += 1
            member.record(StrangerRefused(f"10.0.{noted % 200}.7:{noted}", f"no member of ours, number {noted}"))
        due = now + PULSE_SECONDS
        await asyncio.sleep(PULSE_SECONDS)
    wall = time.monotonic() - began
    watcher.send("end")
    arrivals = await asyncio.to_thread(watcher.recv)
    late = [later - earlier - INTERVAL_SECONDS for earlier, later in pairwise(arrivals)]
    return {
        "events_per_second": round(noted / wall),
        "cpu_percent_of_core": round(100 * (time.process_time() - cpu) / wall, 1),
        "loop_lag_ms": in_ms(lags),
        "heartbeats": len(arrivals),
        "heartbeat_lateness_ms": in_ms(late),
    }


def watch(orders: Connection) -> None:
    """The second member, in a process of its own."""
    setattr(member_service, "MemberMachine", Watching)  # noqa: B010

    async def live() -> None:
        member = a_member(1)
        await member.start()
        await asyncio.wait_for(member.joined.wait(), 30)
        orders.send("joined")
        while (order := await asyncio.to_thread(orders.recv)) != "enough":
            if order == "begin":
                Watching.arrivals.clear()
            else:
                orders.send(list(Watching.arrivals))
        member.stop()
        member.stop()
        await member.close(1)

    asyncio.run(live())


def listen(orders: Connection) -> None:
    """The clients, in a process of their own. They count records, and look into no more of them than the first of a message."""

    async def live() -> None:
        clients = await asyncio.to_thread(orders.recv)
        url = f"ws://{HOST}:{PORTS[0]}/quarterdeck/v1/events"
        connected = asyncio.Semaphore(0)
        counts = [dict.fromkeys(("records", "messages", "gaps", "bytes"), 0) for _ in range(clients)]

        async def follow(count: dict[str, int]) -> None:
            async with connect(url, max_size=None) as connection:
                await connection.recv()
                connected.release()
                async for message in connection:
                    text = str(message)
                    count["messages"] += 1
                    count["bytes"] += len(text)
                    count["records"] += text.count('"seq":')
                    count["gaps"] += text.startswith('{"type":"gap"')

        following = [asyncio.create_task(follow(count)) for count in counts]
        for _ in following:
            await connected.acquire()
        before = -1
        while before != (before := sum(count["messages"] for count in counts)):  # noqa: ASYNC110
            await asyncio.sleep(1)  # they take in what was recorded before, as far as the member still has it
        for count in counts:
            count.update(dict.fromkeys(count, 0))
        orders.send("connected")
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.to_thread(orders.recv)
        wall = time.monotonic() - began
        orders.send(
            {
                "clients": clients,
                "records_each": [min(count["records"] for count in counts), max(count["records"] for count in counts)],
                "messages_each": max(count["messages"] for count in counts),
                "gaps": sum(count["gaps"] for count in counts),
                "megabytes_in_all": round(sum(count["bytes"] for count in counts) / 1e6, 1),
                "cpu_percent_of_core": round(100 * (time.process_time() - cpu) / wall, 1),
            }
        )
        for task in following:
            task.cancel()

    asyncio.run(live())


def in_ms(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "median": round(1000 * median(ordered), 2),
        "p99": round(1000 * ordered[int(0.99 * (len(ordered) - 1))], 2),
        "most": round(1000 * ordered[-1], 2),
    }


def measure(clients: int, rate: int, seconds: float) -> dict[str, Any]:
    spawn = multiprocessing.get_context("spawn")
    watcher, watchers_end = spawn.Pipe()
    crowd, crowds_end = spawn.Pipe()
    helpers = [spawn.Process(target=watch, args=(watchers_end,)), spawn.Process(target=listen, args=(crowds_end,))]
    for helper in helpers:
        helper.start()
    try:
        found = asyncio.run(serve(clients, rate, seconds, watcher, crowd))
    finally:
        for helper in helpers:
            helper.join(10)
            helper.kill()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"bench": Path(__file__).stem, "heartbeat_interval_ms": 1000 * INTERVAL_SECONDS, **found, "machine": machine}


if __name__ == "__main__":
    given = sys.argv[1:] + ["20", "5000", "10"][len(sys.argv) - 1 :]
    print(json.dumps(measure(int(given[0]), int(given[1]), float(given[2]))))
