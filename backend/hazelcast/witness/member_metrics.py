"""What the metrics of a member of Hazelcast say of its work and its process, its connections to other members, and its maps.

Metrics come every 5 seconds, and most differ a little each time. What is recorded is exact; it is recorded when it differs much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from quarterdeck.backend.core.address import Address, host_of
from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import IDLE_US, LinkMeasured, MemberMeasured
from quarterdeck.backend.hazelcast.logs.lines.layout import to_address
from quarterdeck.backend.hazelcast.wire.messages import MOST_MILLISECONDS, MetricSet, MetricValue

MILLISECOND_US = 1_000
HEAP_STEPS = 10
"""The heap has changed much when another tenth of it is used."""
CPU_STEP = 25
"""In percent."""
SMALL_QUEUE = 16
"""Shorter queues are all alike, longer ones are where one is twice as long as the other."""
COLLECTIONS_NOTED_US = SECOND_US // 2
SETS_AFTER_CHANGE = 3
"""So many sets of metrics are recorded after the list or the table has changed, though nothing else has: who counts entries waits
for them. The first may have been collected before the change."""
STATE_STAMP, TIME_DIFF = "partitions.stateStamp", "cluster.clock.clusterTimeDiff"


class MeasuredMember:
    """What is recorded of the metrics of one incarnation, of one set after the other."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._maps: MapMetrics | None = None
        self._standing: tuple[object, ...] = ()
        """The list, and the member's digest of the table, when the latest metrics came."""
        self._sets_due = 0
        self._metrics: MemberMetrics | None = None
        self._linked: set[Address] = set()
        """The members to which it has had connections."""
        self._recorded: MemberMeasured | None = None

    def reported(self, metrics: MetricSet, members: Sequence[Member]) -> Iterator[DataMeasured | MemberMeasured]:
        """Yield what is new in a set of metrics of the member with this list."""
        standing = (tuple(members), member_metrics(metrics).values.get(STATE_STAMP))
        is_changed = bool(self._standing) and standing != self._standing
        self._sets_due = SETS_AFTER_CHANGE if is_changed else max(self._sets_due - 1, 0)
        self._standing = standing
        if (maps := map_metrics(metrics)) is not None:
            earlier, self._maps = self._maps, maps
            if earlier is None or earlier.maps != maps.maps or self._sets_due:
                yield data_measured(earlier, maps)
        before, self._metrics = self._metrics, member_metrics(metrics)
        others = [member.address for member in members if member.address != self._address]
        links = link_metrics(metrics, self._address, others)
        strained_links = strained(self._linked, links, others) if links or self._linked else None
        self._linked |= links.keys()
        unlinked = tuple(sorted(set(others) - self._linked)) if strained_links is not None else None
        measured = member_measured(before, self._metrics, strained_links, unlinked)
        if measured is not None and (self._recorded is None or _coarse(self._recorded) != _coarse(measured)):
            self._recorded = measured
            yield measured


def _is_amount(value: MetricValue) -> bool:
    return 0 <= value < MOST_MILLISECONDS


class MemberMetrics(NamedTuple):
    """What one set of metrics says of a member itself, by the names of metrics."""

    at_ms: int
    values: Mapping[str, MetricValue]

    def whole(self, name: str, *others: str) -> int | None:
        """Return the sum of these metrics; None if one is missing, or is no amount: below 0 stands for not known."""
        values = [self.values.get(name, -1) for name in (name, *others)]
        return int(sum(values)) if all(map(_is_amount, values)) else None

    @property
    def collected_ms(self) -> int | None:
        """How long the process has collected garbage since it began."""
        return self.whole("gc.minorTime", "gc.majorTime")


def member_metrics(metrics: MetricSet) -> MemberMetrics:
    """Return the metrics that are of the member as a whole, not of one of its maps or connections."""
    own = (sample for sample in metrics.samples if sample.discriminator is None)
    return MemberMetrics(metrics.at_ms, {sample.name: sample.value for sample in own})


def member_measured(
    before: MemberMetrics | None,
    now: MemberMetrics,
    strained_links: tuple[LinkMeasured, ...] | None = None,
    unlinked: tuple[Address, ...] | None = None,
) -> MemberMeasured | None:
    """Return what the metrics say; None if they say nothing of the member."""
    span_ms = max(now.at_ms - before.at_ms, 0) if before is not None else 0
    collected, earlier = now.collected_ms, before.collected_ms if before is not None else None
    measured = MemberMeasured(
        queued_migrations=now.whole("partitions.migrationQueueSize"),
        planned_migrations=now.whole("partitions.plannedMigrations"),
        completed_migrations=now.whole("partitions.completedMigrations"),
        owned_partitions=now.whole("partitions.localPartitionCount"),
        replica_syncs=now.whole("partitions.replicaSyncRequestsCounter"),
        heartbeat_age=_heartbeat_age(now),
        clock_ahead=_clock_ahead(now),
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
        unlinked=unlinked,
    )
    return measured if measured != MemberMeasured(span=measured.span) else None


def _heartbeat_age(now: MemberMetrics) -> int | None:
    """Return how long ago the member sent heartbeats. Its cluster's clock, which may differ from its own, says when."""
    sent_ms = now.whole("cluster.heartbeat.lastHeartbeat")
    cluster_us = now.at_ms * MILLISECOND_US - (_clock_ahead(now) or 0)
    return max(cluster_us - sent_ms * MILLISECOND_US, 0) if sent_ms else None


def _clock_ahead(now: MemberMetrics) -> int | None:
    """Return how far its clock is ahead of the cluster's; None before a master has given it the cluster's time."""
    diff_ms = now.values.get(TIME_DIFF)
    return None if diff_ms is None or not _is_amount(abs(diff_ms)) else -int(diff_ms) * MILLISECOND_US


def _coarse(one: MemberMeasured) -> tuple[object, ...]:
    """Return the same with little differences removed."""
    return (
        one.queued_migrations, one.planned_migrations, one.completed_migrations, one.clients, one.cp_groups,
        one.cp_missing, one.heap_max, one.owned_partitions and 1,
        _steps(one.heap_used, (one.heap_max or 0) // HEAP_STEPS),
        _steps(one.cpu_percent, CPU_STEP),
        _late(one.heartbeat_age, IDLE_US), round((one.clock_ahead or 0) / SECOND_US),
        _late(one.collecting, COLLECTIONS_NOTED_US),
        one.strained_links is None, one.unlinked,
        tuple((link.address, link.connections > 0, _size(_late(link.idle, IDLE_US)), _size(link.queued))
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


IDLE = "tcp.connection.out.idleTimeMillis"
QUEUED = "tcp.connection.out.writeQueueSize"


def link_metrics(metrics: MetricSet, own: Address, others: Iterable[Address]) -> dict[Address, LinkMeasured]:
    """Return the connections to each of the others that has some; of several the least idle counts, and all packets.

    A connection is named by its two ends. A member's own port stands there only if the other side opened it; so a connection
    belongs to the member with that address, or else to the only one that is listed at that host.
    """
    listed = frozenset(others)
    at_host: dict[str, Address | None] = {host_of(own): None}
    for other in listed:
        at_host[host_of(other)] = None if host_of(other) in at_host else other
    found: dict[Address, LinkMeasured] = {}
    for sample in metrics.samples:
        # A value may be no number: nothing is greater or less than that.
        if sample.discriminator is None or sample.name not in (IDLE, QUEUED) or not _is_amount(sample.value):
            continue
        remote, value = _remote_end(sample.discriminator[1]), int(sample.value)
        member = remote if remote in listed else at_host.get(host_of(remote)) if remote else None
        if member is None:
            continue
        link = found.get(member) or LinkMeasured(member, 0)
        if sample.name == IDLE:
            idle = value * MILLISECOND_US
            idle = idle if link.idle is None else min(idle, link.idle)
            found[member] = LinkMeasured(member, link.connections + 1, idle, link.queued)
        else:
            found[member] = LinkMeasured(member, link.connections, link.idle, (link.queued or 0) + value)
    return found


def strained(
    known: Iterable[Address], links: dict[Address, LinkMeasured], others: Iterable[Address]
) -> tuple[LinkMeasured, ...]:
    """Return the links that are not plain. `known` had connections before: if they are listed and have none, these are gone."""
    gone = set(known).intersection(others).difference(links)
    late = (link for link in links.values() if (link.idle or 0) >= IDLE_US or (link.queued or 0) >= SMALL_QUEUE)
    return tuple(sorted((*late, *(LinkMeasured(address, 0) for address in gone)), key=lambda link: link.address))


def _remote_end(pipeline: str) -> Address | None:
    """Return the address behind the arrow of ``/10.0.0.1:5701->/10.0.0.2:40000``, or None."""
    host, _, port = pipeline.partition("->")[2].rpartition("/")[2].rpartition(":")
    return to_address(host, port)


PREFIX = "map."
READS = ("getCount",)
WRITES = ("putCount", "setCount", "removeCount")
STORED = ("ownedEntryCount", "ownedEntryMemoryCost", "backupEntryCount", "backupEntryMemoryCost", "backupCount")
HITS = ("hits",)
READING = ("totalGetLatency",)
WRITING = ("totalPutLatency", "totalSetLatency", "totalRemoveLatency")
"""Milliseconds that all operations took together."""
SLOWEST_READ = ("totalMaxGetLatency",)
SLOWEST_WRITE = ("totalMaxPutLatency", "totalMaxSetLatency", "totalMaxRemoveLatency")
"""Milliseconds of the one that took longest since the member counts."""
WANTED = frozenset((*STORED, *READS, *WRITES, *HITS, *READING, *WRITING, *SLOWEST_READ, *SLOWEST_WRITE))
MAPS_RECORDED = 100
"""So many maps are recorded, those with most entries first."""


class MapMetrics(NamedTuple):
    """What one set of metrics says of the maps of a member, by map and metric."""

    at_ms: int
    maps: Mapping[str, Mapping[str, int]]


def map_metrics(metrics: MetricSet) -> MapMetrics | None:
    """Return what the metrics say of maps; None if they say nothing of any."""
    maps: dict[str, dict[str, int]] = {}
    for sample in metrics.samples:
        name = sample.name.removeprefix(PREFIX)
        if name in WANTED and name != sample.name and sample.discriminator is not None and _is_amount(sample.value):
            maps.setdefault(sample.discriminator[1], {})[name] = int(sample.value)
    return MapMetrics(metrics.at_ms, maps) if maps else None


def data_measured(before: MapMetrics | None, now: MapMetrics) -> DataMeasured:
    """Return what is stored now, and what was asked of the member since the metrics before."""

    def total(name: str) -> int:
        return sum(counts.get(name, 0) for counts in now.maps.values())

    earlier = before.maps if before is not None else {}
    largest = sorted(now.maps, key=lambda name: (-now.maps[name].get("ownedEntryCount", 0), name))[:MAPS_RECORDED]
    rows = tuple(_map_measured(name, now.maps[name], earlier.get(name)) for name in sorted(largest))
    span_us = max(now.at_ms - before.at_ms, 0) * MILLISECOND_US if before is not None else 0
    return DataMeasured(
        span_us, total("ownedEntryCount"), total("ownedEntryMemoryCost"), total("backupEntryCount"),
        total("backupEntryMemoryCost"), 0, rows, (), (),
    )  # fmt: skip


def _map_measured(name: str, now: Mapping[str, int], before: Mapping[str, int] | None) -> MapMeasured:
    """Return what a map stores now, and what was asked of it since the metrics before; nothing where there are none."""

    def since(names: tuple[str, ...]) -> int:
        return 0 if before is None else max(sum(now.get(name, 0) - before.get(name, 0) for name in names), 0)

    def if_known(names: tuple[str, ...], unit: int = 1) -> int | None:
        return since(names) * unit if names[0] in now else None

    def slowest(names: tuple[str, ...]) -> int | None:
        return max((now[name] * MILLISECOND_US for name in names if name in now), default=None)

    return MapMeasured(
        name, now.get("ownedEntryCount", 0), now.get("ownedEntryMemoryCost", 0), since(READS), since(WRITES),
        now.get("backupCount"), now.get("backupEntryCount") if "backupCount" in now else None,
        if_known(HITS), if_known(READING, MILLISECOND_US), if_known(WRITING, MILLISECOND_US),
        slowest(SLOWEST_READ), slowest(SLOWEST_WRITE),
    )  # fmt: skip
