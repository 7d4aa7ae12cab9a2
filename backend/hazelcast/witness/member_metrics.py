"""What the metrics of a member of Hazelcast say of its work and its process: migrations, heartbeats, heap, operations, clients.

Metrics come every 5 seconds, and most differ a little each time. What is recorded is exact; it is recorded when it differs much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quarterdeck.backend.core.witnessed.events import LinkMeasured, MemberMeasured
from quarterdeck.backend.hazelcast.wire.messages import MetricSet, MetricValue

MILLISECOND_US = 1_000
SECOND_US = 1_000_000
HEAP_STEPS = 10
"""The heap has changed much when another tenth of it is used."""
CPU_STEP = 25
"""In percent."""
SMALL_QUEUE = 16
"""Shorter queues are all alike, longer ones are where one is twice as long as the other."""
HEARTBEATS_IN_TIME_US = 6 * SECOND_US
"""By default members send heartbeats every 5 seconds."""
COLLECTIONS_NOTED_US = SECOND_US // 2


class MemberMetrics(NamedTuple):
    """What one set of metrics says of a member itself, by the names of metrics."""

    at_ms: int
    values: Mapping[str, MetricValue]

    def whole(self, name: str, *others: str) -> int | None:
        """Return the sum of these metrics; None if one is missing, or negative, which stands for not known."""
        values = [self.values.get(name, -1) for name in (name, *others)]
        return int(sum(values)) if min(values) >= 0 else None

    @property
    def collected_ms(self) -> int | None:
        """How long the process has collected garbage since it began."""
        return self.whole("gc.minorTime", "gc.majorTime")


def member_metrics(metrics: MetricSet) -> MemberMetrics:
    """Return the metrics that are of the member as a whole, not of one of its maps or connections."""
    return MemberMetrics(
        metrics.at_ms, {sample.name: sample.value for sample in metrics.samples if sample.discriminator is None}
    )


def member_measured(
    before: MemberMetrics | None, now: MemberMetrics, strained_links: tuple[LinkMeasured, ...] | None = None
) -> MemberMeasured | None:
    """Return what the metrics say; None if they say nothing of the member."""
    span_ms = max(now.at_ms - before.at_ms, 0) if before is not None else 0
    collected, earlier = now.collected_ms, before.collected_ms if before is not None else None
    measured = MemberMeasured(
        queued_migrations=now.whole("partitions.migrationQueueSize"),
        planned_migrations=now.whole("partitions.plannedMigrations"),
        completed_migrations=now.whole("partitions.completedMigrations"),
        replica_syncs=now.whole("partitions.replicaSyncRequestsCounter"),
        heartbeat_age=_heartbeat_age(now),
        heap_used=now.whole("memory.usedHeap"),
        heap_max=now.whole("memory.maxHeap"),
        span=span_ms * MILLISECOND_US,
        collecting=(
            max(collected - earlier, 0) * MILLISECOND_US if collected is not None and earlier is not None else None
        ),
        cpu_percent=now.whole("os.processCpuLoad"),
        open_files=now.whole("os.openFileDescriptorCount"),
        max_files=now.whole("os.maxFileDescriptorCount"),
        queued_operations=now.whole("operation.queueSize", "operation.priorityQueueSize"),
        pending_invocations=now.whole("operation.invocations.pending"),
        clients=now.whole("client.endpoint.count"),
        cp_groups=now.whole("raft.metadata.groups"),
        cp_missing=now.whole("raft.missingMembers"),
        strained_links=strained_links,
    )
    return measured if measured != MemberMeasured(span=measured.span) else None


def _heartbeat_age(now: MemberMetrics) -> int | None:
    """Return how long ago the member sent heartbeats. Its cluster's clock, which may differ from its own, says when."""
    sent_ms = now.whole("cluster.heartbeat.lastHeartbeat")
    cluster_ms = now.at_ms + int(now.values.get("cluster.clock.clusterTimeDiff", 0))
    return max(cluster_ms - sent_ms, 0) * MILLISECOND_US if sent_ms else None


def differs_much(before: MemberMeasured | None, now: MemberMeasured) -> bool:
    """Whether a measurement is to be recorded after the one that was recorded last."""
    return before is None or _coarse(before) != _coarse(now)


def _coarse(one: MemberMeasured) -> tuple[object, ...]:
    """Return the same with little differences removed."""
    return (
        one.queued_migrations, one.planned_migrations, one.completed_migrations, one.clients, one.cp_groups,
        one.cp_missing, one.heap_max,
        _steps(one.heap_used, (one.heap_max or 0) // HEAP_STEPS),
        _steps(one.cpu_percent, CPU_STEP),
        _late(one.heartbeat_age, HEARTBEATS_IN_TIME_US),
        _late(one.collecting, COLLECTIONS_NOTED_US),
        one.strained_links is None,
        tuple((link.address, link.connections > 0, _size(_late(link.idle, HEARTBEATS_IN_TIME_US)), _size(link.queued))
              for link in one.strained_links or ()),
        *(_size(queue) for queue in (one.replica_syncs, one.queued_operations, one.pending_invocations, one.open_files)),
    )  # fmt: skip


def _steps(value: int | None, step: int) -> int | None:
    return None if value is None else value // max(step, 1)


def _late(length_us: int | None, in_time_us: int) -> int | None:
    """Return a length of time in seconds, one more than those; 0 for all that is in time."""
    return None if length_us is None else 0 if length_us < in_time_us else 1 + length_us // SECOND_US


def _size(queue: int | None) -> int | None:
    return None if queue is None else max(queue, SMALL_QUEUE).bit_length()
