"""What data on live members costs: puts of one client, and the time until all is safe or balanced after a member went or came.

Run as ``python -m tests.bench.live_migrations [local|processes]``, by default both; prints one JSON object. The set-up is that of
the reference figures: 4 members, 20 MB in 271 partitions, one backup. Safe and balanced are counted from the list that is
without the killed member, or with the new one, until every member has the table in which all is as it should be.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

from quarterdeck.backend.core.commands import ArrangePartitions, KillMember, StartMember, StopMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.operations import Put, PutAll, Size
from quarterdeck.backend.core.partitions.events import MigrationCopied, MigrationDecided
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster, ProcessCluster
from tests.live.cluster.partition_tables import PartitionTables

BASE_PORT = 26_701
KINDS: dict[str, type[LiveCluster]] = {"local": LocalCluster, "processes": ProcessCluster}

VALUE = b"v" * 1000
ENTRIES = 20_000
BATCH = 500
PUT_SECONDS = 3.0
TIMEOUT_SECONDS = 60.0

HAZELCAST_5_3_8 = {
    "killed_to_safe_seconds": 0.60,
    "joined_to_balanced_seconds": 0.86,
    "single_puts_per_second": 1_560,
    "put_all_entries_per_second": 10_400,
}
"""Recorded on real members with the same data, each a Java machine of its own, on 2 cores."""


class ClusterObserver:
    """The records of a cluster, in the order of their times, and the tables that follow from them."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.tables = PartitionTables()
        self.records: list[Record] = []
        self._coming: deque[Record] = deque()

    def until(self, reached: Callable[[Record], bool]) -> int:
        """The time of the first record with which that was `reached`, in microseconds."""
        limit = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < limit:
            while self._coming:
                record = self._coming.popleft()
                self.records.append(record)
                self.tables.take([record])
                if reached(record):
                    return record.at
            time.sleep(0.02)
            self._coming.extend(sorted(self.cluster.drain(), key=lambda one: one.at))
        raise TimeoutError("it never came to that")

    def until_listed(self, labels: Sequence[str]) -> int:
        wanted = {self.cluster.addresses[label] for label in labels}

        def is_that(record: Record) -> bool:
            event = record.event
            return isinstance(event, ListInstalled) and {member.address for member in event.members} == wanted

        return self.until(is_that)


def measure(kind: str) -> dict[str, object]:
    settings = Settings.of(
        {"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.max.no.heartbeat.seconds": 30}, preset="training"
    )
    labels = ["n1", "n2", "n3", "n4"]
    cluster = KINDS[kind]([*labels, "n5"], settings=settings, base_port=BASE_PORT, late=["n5"])
    try:
        cluster.started.result(30)
        observer = ClusterObserver(cluster)
        cluster.execute(ArrangePartitions("n1")).result(10)
        observer.until(lambda _: observer.tables.are_safe(labels, 2))
        figures = {"single_puts": _single_puts(cluster), "put_all": _put_all(cluster)}
        cluster.execute(KillMember("n4")).result(10)
        left = ["n1", "n2", "n3"]
        listed = observer.until_listed(left)
        figures["killed_to_safe"] = _spent(
            observer, listed, observer.until(lambda _: observer.tables.are_safe(left, 2))
        )
        cluster.execute(StartMember("n5")).result(10)
        grown = [*left, "n5"]
        listed = observer.until_listed(grown)
        figures["joined_to_balanced"] = _spent(
            observer, listed, observer.until(lambda _: observer.tables.are_balanced(grown, 2))
        )
        began = time.perf_counter()
        cluster.execute(StopMember("n5")).result(60)
        figures["graceful_stop"] = {"seconds": round(time.perf_counter() - began, 3)}
        assert cluster.call("n1", Size("m")).result(30).size == ENTRIES
        return figures
    finally:
        cluster.close()


def _single_puts(cluster: LiveCluster) -> dict[str, object]:
    """One client that puts one entry after the other, each a key of its own among a few hundred."""
    latencies = []
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < PUT_SECONDS:
        answer = cluster.call("n1", Put("single", f"k{len(latencies) % 1000}", VALUE[:100])).result(30)
        assert not answer.problem, answer.problem
        latencies.append(time.perf_counter() - now)
    return {
        "per_second": round(len(latencies) / (time.perf_counter() - began)),
        "median_ms": round(1e3 * statistics.median(latencies), 3),
        "99th_percentile_ms": round(1e3 * statistics.quantiles(latencies, n=100)[98], 3),
    }


def _put_all(cluster: LiveCluster) -> dict[str, object]:
    """20 MB, 500 entries at a time, one batch after the other."""
    began = time.perf_counter()
    for first in range(0, ENTRIES, BATCH):
        batch = tuple((f"k{number}", VALUE) for number in range(first, first + BATCH))
        answer = cluster.call("n1", PutAll("m", batch)).result(30)
        assert not answer.problem, answer.problem
    seconds = time.perf_counter() - began
    return {"entries_per_second": round(ENTRIES / seconds), "megabytes_per_second": round(20 / seconds, 1)}


def _spent(observer: ClusterObserver, from_us: int, to_us: int) -> dict[str, object]:
    """What the migrations between these times were: how many, how much, how quick."""
    records = [record for record in observer.records if from_us <= record.at <= to_us]
    decided = [record.event for record in records if isinstance(record.event, MigrationDecided)]
    copied = sum(record.event.bytes for record in records if isinstance(record.event, MigrationCopied))
    seconds = (to_us - from_us) / 1e6
    return {
        "seconds": round(seconds, 3),
        "migrations": len(decided),
        "failed": sum(not event.committed for event in decided),
        "migrations_per_second": round(len(decided) / seconds),
        "megabytes": round(copied / 1e6, 1),
        "megabytes_per_second": round(copied / 1e6 / seconds, 1),
    }


if __name__ == "__main__":
    kinds = sys.argv[1:] or list(KINDS)
    print(
        json.dumps(
            {kind: measure(kind) for kind in kinds}
            | {"hazelcast_5_3_8": HAZELCAST_5_3_8}
            | {"machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"}
        )
    )
