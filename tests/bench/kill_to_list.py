"""From the end of a member to a list without it on all others, for members that are processes: as one line of JSON.

A member is killed with SIGKILL, so that its connections break ("reset"), or stopped with SIGSTOP, so that it only falls silent
("silent"); once the youngest, once the master. Run as ``python -m tests.bench.kill_to_list [ROUNDS] [MEMBERS]``. What the
product needs is in ``product_seconds``: for silence that is counted from the end of the timeout. `least_seconds` is what the
configured detector makes inevitable: so many faults, so far apart; or the timeout counted from the last heartbeat.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ClaimFinished, ClaimStarted, ListInstalled, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster, ProcessHost

ROUNDS = 5
MEMBERS = 5
BASE_PORT = 27_701
SETTINGS = Settings.of({"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.max.no.heartbeat.seconds": 5})
PRODUCT_SECONDS = {"reset slave": 0.35, "reset master": 0.56, "silent slave": 0.9, "silent master": 0.9}

Ending = Literal["reset", "silent"]
Whom = Literal["slave", "master"]


def survive(seed: int, members: int, ending: Ending, whom: Whom) -> dict[str, float]:
    """Seconds from the end of one member to the list without it on all others, and to what led there."""
    cluster = ProcessCluster(members, settings=SETTINGS, base_port=BASE_PORT, seed=seed)
    records: list[Record] = []
    try:
        cluster.started.result(timeout=10 * members)
        _until(cluster, records, lambda: _have_lists(records, cluster, cluster.labels, members))
        time.sleep(1.5 + seed % 10 / 10)
        victim = cluster.labels[0 if whom == "master" else -1]
        others = [label for label in cluster.labels if label != victim]
        host = cluster._hosts[victim]
        assert isinstance(host, ProcessHost) and host._process is not None
        records += cluster.drain()
        began = len(records)
        ended_us = cluster.now_us()
        os.kill(host._process.pid, signal.SIGKILL if ending == "reset" else signal.SIGSTOP)
        _until(cluster, records, lambda: _have_lists(records[began:], cluster, others, members - 1))
        after = records[began:]
        if ending == "silent":
            os.kill(host._process.pid, signal.SIGKILL)
    finally:
        cluster.close()
    installed = [min(r.at for r in after if r.member == label and _is_list_of(r, members - 1)) for label in others]
    return {
        "all": (max(installed) - ended_us) / SECOND_US,
        "first": (min(installed) - ended_us) / SECOND_US,
        **_firsts(after, ended_us),
    }


def _firsts(after: Sequence[Record], ended_us: int) -> dict[str, float]:
    """When each step on the way was first made, and last."""
    steps: dict[str, float] = {}
    for kind in (SuspicionRaised, ClaimStarted, ClaimFinished):
        times = [record.at for record in after if isinstance(record.event, kind)]
        if times:
            steps[f"first {kind.__name__}"] = (min(times) - ended_us) / SECOND_US
            steps[f"last {kind.__name__}"] = (max(times) - ended_us) / SECOND_US
    return steps


def _is_list_of(record: Record, size: int) -> bool:
    return isinstance(record.event, ListInstalled) and len(record.event.members) == size


def _have_lists(records: Sequence[Record], cluster: ProcessCluster, labels: Sequence[str], size: int) -> bool:
    return {r.member for r in records if _is_list_of(r, size)} >= set(labels)


def _until(cluster: ProcessCluster, records: list[Record], condition: Any) -> None:
    limit = time.monotonic() + 60
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("it never came to that")
        time.sleep(0.02)
        records += cluster.drain()


def summary(ending: Ending, whom: Whom, rounds: int, members: int) -> dict[str, object]:
    ways = [survive(seed, members, ending, whom) for seed in range(rounds)]
    name = f"{ending} {whom}"
    beyond_us = 0 if ending == "reset" else SETTINGS.max_no_heartbeat_us
    least_us = SETTINGS.connection_max_faults * SETTINGS.connection_monitor_interval_us
    if ending == "silent":
        least_us = SETTINGS.max_no_heartbeat_us - SETTINGS.heartbeat_interval_us
    seconds = sorted(way["all"] for way in ways)
    return {
        "seconds": {"least": round(seconds[0], 3), "median": round(median(seconds), 3), "most": round(seconds[-1], 3)},
        "least_seconds": least_us / SECOND_US,
        "median_over_least": round(median(seconds) - least_us / SECOND_US, 3),
        "product_seconds": PRODUCT_SECONDS[name] + beyond_us / SECOND_US,
        "steps_median": {
            step: round(median(way[step] for way in ways if step in way), 3)
            for step in sorted({step for way in ways for step in way})
        },
    }


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    members = int(sys.argv[2]) if sys.argv[2:] else MEMBERS
    ways: list[tuple[Ending, Whom]] = [
        ("reset", "slave"),
        ("reset", "master"),
        ("silent", "slave"),
        ("silent", "master"),
    ]
    print(
        json.dumps(
            {
                "bench": "kill_to_list",
                "members": members,
                "rounds": rounds,
                **{f"{ending} {whom}": summary(ending, whom, rounds, members) for ending, whom in ways},
                "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            }
        )
    )
