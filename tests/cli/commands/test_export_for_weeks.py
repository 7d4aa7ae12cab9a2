"""An exporter that runs for weeks, while pods come and go under ever new addresses, needs no more memory than after some days."""

from __future__ import annotations

import gc
import tracemalloc
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from quarterdeck.backend.clusters.cluster import ConnectionStatus
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberRemoved, MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.witnessed.events import (
    ConnectionChanged,
    MemberMeasured,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
)
from quarterdeck.backend.judgement.observations import story
from quarterdeck.cli.commands.exporter import ClusterExporter
from tests.cli.commands.test_export import HeardHooks

PODS, REMEMBERED = 4, 24
"""So many run at a time; an address that has gone is forgotten after so many others."""
WEEKS_APART, MOST_A_WEEK_BYTES = 3, 40_000
"""Two megabytes in a year: what a picture keeps of every mastership there was."""
HOUR_US = 3_600_000_000
PARTITIONS = 271


class ChangingPods:
    """Each hour the oldest pod is replaced: its record of the past is that of a real watch, its time is made up."""

    name, is_settled, source = "orders", True, "hazelcast"

    def __init__(self) -> None:
        self._now_us, self._hour, self._seq = 0, 0, 0
        self._waiting: list[Record] = []
        self._gone: deque[Member] = deque(maxlen=REMEMBERED)
        self._pods: list[Member] = []
        for _ in range(PODS):
            self._begin()
        self._agree("")

    @property
    def labels(self) -> Sequence[str]:
        return tuple(str(pod.address) for pod in (*self._pods, *self._gone))

    def now_us(self) -> int:
        return self._now_us

    def connection_status(self) -> dict[str, ConnectionStatus]:
        reached = {str(pod.address): ConnectionStatus("", "connected", 0) for pod in self._pods}
        return {**reached, **{str(pod.address): ConnectionStatus("", "stale", 0, is_gone=True) for pod in self._gone}}

    def drain(self) -> list[Record]:
        found, self._waiting = self._waiting, []
        return found

    def pass_an_hour(self) -> None:
        """Let the oldest pod go, and another one come."""
        left = self._pods.pop(0)
        self._happen(left, ConnectionChanged("gone", "no process listens there"))
        if len(self._gone) == REMEMBERED:
            self._happen(self._gone[0], ConnectionChanged("forgotten"))
        self._gone.append(left)
        for pod in self._pods:
            self._happen(pod, MemberRemoved(left.address, left.uuid, "Connection refused", "connection"))
        self._begin()
        self._agree(left.address)
        for partition in range(0, PARTITIONS, 4 * PODS):
            moved = ReplicaMigrated(
                partition, 0, self._pods[0].address, self._pods[-1].address, True, 900, 17, partition // PODS // 4
            )
            self._happen(self._pods[0], moved)
        for minute in range(0, 60, 30):
            self._now_us = self._hour * HOUR_US + minute * HOUR_US // 60
            for pod in self._pods:
                self._happen(
                    pod, MemberMeasured(queued_migrations=0, heap_used=minute << 20, heap_max=1 << 27, span=5_000_000)
                )
        self._hour += 1
        self._now_us = self._hour * HOUR_US

    def _begin(self) -> None:
        number = self._hour + len(self._pods)
        address = Address(f"10.244.{number // 250}.{number % 250 + 1}:5701")
        pod = Member(address, f"uuid-{number}", 0, False, "")
        self._pods.append(pod)
        self._happen(pod, MemberWitnessed(("client-protocol",), ("owners", "losses", "cluster-state")))
        self._happen(pod, MemberStarted(address, False, ()))
        self._happen(pod, ConnectionChanged("connected"))

    def _agree(self, left: str) -> None:
        members = tuple(self._pods)
        holders = tuple(Holder(pod.address, pod.uuid) for pod in members)
        owners = tuple(place % PODS for place in range(PARTITIONS))
        for pod in members:
            installed = ListInstalled(
                self._hour + 1,
                members[0].uuid,
                members[0].address,
                members,
                members[0].address,
                f"no longer listed: {left}",
            )
            self._happen(pod, installed)
            self._happen(pod, OwnersTold(holders, owners, f"digest-{self._hour}", self._hour + 1))
            self._happen(pod, DataMeasured(5_000_000, 100, 1_000, 100, 1_000, 0, (), (), ()))

    def _happen(self, pod: Member, event: Event) -> None:
        self._seq += 1
        self._waiting.append(Record("weeks", str(pod.address), pod.uuid, self._seq, self._now_us, self._now_us, event))


@pytest.mark.long
def test_weeks_need_no_more_memory_than_days(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in (("RENEWED_AFTER", 1_000), ("RENEWED_ANYWAY", 2_000), ("PAST_KEPT", 50)):
        monkeypatch.setattr(story, name, bound)  # what is kept is reached within weeks then, not months
    pods, registry = ChangingPods(), CollectorRegistry(auto_describe=False)
    exporter = ClusterExporter(cast("Any", pods), HeardHooks())
    registry.register(exporter)

    def held(hours: int) -> int:
        for _ in range(hours):
            pods.pass_an_hour()
            exporter.follow()
        generate_latest(registry)
        cast("HeardHooks", exporter._hooks).heard.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        sizes = [held(7 * 24) for _ in range(8)]
    finally:
        tracemalloc.stop()
    print("kB held after each week:", [size // 1000 for size in sizes])
    # What is observed is gathered and renewed, over and over: the least of some weeks is compared.
    assert min(sizes[4:]) - min(sizes[1:4]) < WEEKS_APART * MOST_A_WEEK_BYTES, sizes
