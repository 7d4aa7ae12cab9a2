"""What the console costs that watches healthy members of Hazelcast: run ``python -m tests.bench.watched_members [SECONDS]``.

The members are fake ones in a process of their own; the console is the real one, `quarterdeck console --connect`, on a pty. For
each number of members: CPU at rest, from a key to its paint while they are at rest, and the CPU that one change of the member
list costs, which every member tells. Prints one JSON object. With twice as many members all of it may be twice as much, a
change four times.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.messages import PartitionsView
from tests.bench.console_budget import SAME_ROW, Terminal, press_keys
from tests.hazelcast.wire.fake_member import FakeMember, agree, uuid_of

SIZES = (25, 50, 100)
PARTITIONS = 271
SETTLE_SECONDS = 12.0
CHANGE_SECONDS = 4.0
CURSOR = re.compile("▸".encode() + SAME_ROW + rb"(10\.0\.0\.\d+:5701)", re.S)


def serve(size: int, orders: Connection) -> None:
    """The members, until told to end. Each names itself by another address than the one where it listens."""

    async def live() -> None:
        members = [FakeMember(uuid_of(number)) for number in range(1, size + 1)]
        for number, member in enumerate(members, start=1):
            member.address = named(number)
            await member.start()
        tell_all(members, 1)
        orders.send([member.listens_at for member in members])
        version = 1
        while await asyncio.to_thread(orders.recv) == "change":
            version += 1
            tell_all(members, version)

    asyncio.run(live())


def tell_all(members: list[FakeMember], version: int) -> None:
    agree(members, version)
    holders = tuple(sorted(member.uuid for member in members))
    table = PartitionsView(holders, tuple(number % len(holders) for number in range(PARTITIONS)))
    for member in members:
        member.tell(table)


def named(number: int) -> Address:
    return Address(f"10.0.0.{number}:5701")


def measure(size: int, seconds: float) -> dict[str, object]:
    spawn = multiprocessing.get_context("spawn")
    orders, served = spawn.Pipe()
    serving = spawn.Process(target=serve, args=(size, served), daemon=True)
    serving.start()
    reached = orders.recv()
    maps = [f"--address-map={named(number)}={at}" for number, at in enumerate(reached, start=1)]
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = home
        line = ["-m", "quarterdeck", "console", "--connect", f"hazelcast://{reached[0]}", *maps]
        terminal = Terminal(line, 160, 50)
        try:
            terminal.swallow(SETTLE_SECONDS)
            rest = cpu_percent(terminal, seconds)
            latencies, _ = press_keys(terminal, seconds, CURSOR)
            before = terminal.cpu_seconds
            orders.send("change")
            terminal.swallow(CHANGE_SECONDS)
            change = max(terminal.cpu_seconds - before - rest / 100 * CHANGE_SECONDS, 0.0)
            resident = terminal.resident_mb
        finally:
            terminal.close()
            serving.terminate()
            serving.join()
    ranked = sorted(latencies)
    return {
        "members": size,
        "cpu_percent_at_rest": round(rest, 1),
        "key_ms_p50": round(1000 * statistics.median(ranked), 1),
        "key_ms_p95": round(1000 * ranked[int(len(ranked) * 0.95)], 1),
        "cpu_ms_of_a_change": round(1000 * change),
        "resident_mb": round(resident, 1),
    }


def cpu_percent(terminal: Terminal, seconds: float) -> float:
    cpu, wall = terminal.cpu_seconds, time.monotonic()
    terminal.swallow(seconds)
    return 100 * (terminal.cpu_seconds - cpu) / (time.monotonic() - wall)


if __name__ == "__main__":
    given = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    results = [measure(size, given) for size in SIZES]
    print(json.dumps({"bench": Path(__file__).stem, "settings": results, "machine": machine}))
