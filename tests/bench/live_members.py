"""What the members of a local cluster cost: CPU time of this process while they do nothing but send heartbeats.

Run as ``python -m tests.bench.live_members [MEMBERS] [SECONDS]``; prints one JSON object.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.inputs import Input, Receive
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster

BASE_PORT = 25_701


class Counting(MemberMachine):
    """Counts the heartbeats that really arrive, over all members."""

    heartbeats = 0

    def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
        if isinstance(input, Receive) and type(input.message) is Heartbeat:
            Counting.heartbeats += 1
        return super().step(now, input, because)


def measure(members: int, seconds: float) -> dict[str, object]:
    """Start `members`, let them settle, and measure for `seconds` of wall-clock time at one heartbeat a second."""
    settings = Settings.of({"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.max.no.heartbeat.seconds": 10})
    LocalCluster.machine = Counting
    cluster = LocalCluster(members, settings=settings, base_port=BASE_PORT)
    try:
        began = time.perf_counter()
        cluster.started.result(timeout=members * 4)
        start_seconds = time.perf_counter() - began
        time.sleep(2)
        sizes = [len(record.event.members) for record in cluster.drain() if isinstance(record.event, ListInstalled)]
        before = Counting.heartbeats
        cpu, wall = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        heartbeats = Counting.heartbeats - before
        events = len(cluster.drain())
    finally:
        cluster.close()
    return {
        "members": max(sizes),
        "cpu_percent_of_core": round(100 * cpu / wall, 1),
        "heartbeats_per_second": round(heartbeats / wall),
        "microseconds_per_heartbeat": round(1e6 * cpu / heartbeats, 1),
        "seconds_to_start_all": round(start_seconds, 2),
        "events_meanwhile": events,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    print(json.dumps(measure(int(arguments[0]) if arguments else 50, float(arguments[1]) if arguments[1:] else 10.0)))
