"""A client of Hazelcast watches a simulated run: what its members would report to a client goes through the product's witness.

Each connected member reports its list, its owners, its state and its lost partitions when they change, late in its own way, and
its metrics every five seconds at a moment of its own. Nothing else is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random

from msgspec import Struct, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionState
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.messages import ConnectionReport, Heard, Observation
from quarterdeck.backend.hazelcast.witness.cluster_witness import ClusterWitness, HeardEvent
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import recorded_watcher
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.node import SimulatedNode
from quarterdeck.backend.simulation.virtual_time.world import World

METRICS_US = 5 * SECOND_US
LATE_US = 300 * MILLISECOND_US
"""A report arrives so late, at most."""
SILENT_US = 2 * SECOND_US
"""A member that is frozen so long is not connected any more."""
UTC_MS = 1_700_000_000_000
"""The members' clocks at the beginning of the run."""


class _Reporter(Struct):
    """What a client has heard of one member."""

    lateness_us: int
    metrics_us: int
    """When the next metrics are due."""
    uuid: str = ""
    started_us: int = 0
    starts: int = 0
    state: str = "connected"
    paused_since_us: int | None = None
    view: messages.MembersView | None = None
    owners: messages.PartitionsView | None = None
    cluster_state: str = ""
    maps: dict[str, None] = field(default_factory=dict)
    """The maps of which the process has had entries: it reports them from then on."""


class ClientOfHazelcast:
    """A console that is a client of the cluster. Members are named by their addresses."""

    name = "client"
    late_us, every = SILENT_US + SECOND_US, 1
    measured_us = 2 * METRICS_US
    sees_links = sees_backups = False

    def __init__(self, seed: int) -> None:
        self._draws = Random(f"{seed}/client")
        self._witness = ClusterWitness()
        self._picture = Picture()
        self._reporters: dict[str, _Reporter] = {}
        self._labels: dict[str, str] = {}
        self._due: list[tuple[int, int, Observation]] = []
        self._order = count()
        self._records = 0

    def take(self, record: Record) -> None:
        """Take in that a partition was lost: a member reports that to its clients."""
        reporter = self._reporters.get(record.member)
        if isinstance(record.event, PartitionLost) and reporter is not None and reporter.uuid == record.uuid:
            address = next(address for address, label in self._labels.items() if label == record.member)
            event = messages.PartitionLostEvent(record.event.partition, record.event.lost_backups)
            self._report(record.at, Address(address), reporter, event)

    def look(self, world: World) -> None:
        """Let each member report, and hear what has arrived."""
        now_us = world.now_us
        for node in world.nodes.values():
            self._labels[node.address] = node.label
            reporter = self._reporters.get(node.label)
            if reporter is None:
                lateness_us = int(self._draws.random() * LATE_US)
                reporter = _Reporter(lateness_us, now_us + int(self._draws.random() * METRICS_US))
                self._reporters[node.label] = reporter
            self._look_at(node, reporter, now_us)
        while self._due and self._due[0][0] <= now_us:
            self._hear(self._witness.hear(heappop(self._due)[2]))
        self._hear(self._witness.wake(now_us))

    def judge(self, now_us: int) -> Judge:
        """Judge by what was heard."""
        return Judge(self._picture, recorded_watcher(self._picture), now_us)

    def label_of(self, name: str) -> str:
        return self._labels.get(name, name)

    def _look_at(self, node: SimulatedNode, reporter: _Reporter, now_us: int) -> None:
        machine = node.machine
        if machine is None:
            self._disconnect(node, reporter, "gone", now_us)
            return
        if node.paused:
            reporter.paused_since_us = now_us if reporter.paused_since_us is None else reporter.paused_since_us
            if now_us - reporter.paused_since_us >= SILENT_US:
                self._disconnect(node, reporter, "silent", now_us)
            return
        reporter.paused_since_us = None
        state = machine.inspect()
        if node.starts != reporter.starts:
            self._disconnect(node, reporter, "gone", now_us)
            reporter.starts, reporter.started_us, reporter.maps = node.starts, now_us, {}
        if state.members is None:
            self._disconnect(node, reporter, "merging", now_us)
            return
        if state.uuid != reporter.uuid or reporter.state != "connected":
            self._connect(node, reporter, state, now_us)
        for message in self._news(reporter, state, now_us):
            self._report(now_us, node.address, reporter, message)

    def _connect(self, node: SimulatedNode, reporter: _Reporter, state: MemberState, now_us: int) -> None:
        reporter.uuid, reporter.state = state.uuid, "connected"
        reporter.view = reporter.owners = None
        reporter.cluster_state = ""
        answer = messages.Authenticated("authenticated", node.address, state.uuid, "5.5.0")
        self._report(now_us, node.address, reporter, answer)

    def _disconnect(self, node: SimulatedNode, reporter: _Reporter, state: ConnectionState, now_us: int) -> None:
        if reporter.uuid and reporter.state != state:
            reporter.state = state
            at_us = now_us + reporter.lateness_us  # after all that the connection has brought
            self._push(at_us, ConnectionReport(at_us, node.address, state, f"it is {state}", at_us))

    def _news(self, reporter: _Reporter, state: MemberState, now_us: int) -> Iterator[messages.Message]:
        members = state.members
        assert members is not None
        listed = tuple(messages.ViewMember(member.uuid, member.address, member.lite) for member in members.members)
        view = messages.MembersView(members.version, listed)
        if view != reporter.view:
            reporter.view = view
            yield view
        if state.cluster_state != reporter.cluster_state:
            reporter.cluster_state = state.cluster_state
            yield messages.ClusterMetadata(state.cluster_state)
        owners = owners_of(state)
        if owners is not None and owners != reporter.owners:
            reporter.owners = owners
            yield owners
        if now_us >= reporter.metrics_us:
            reporter.metrics_us += METRICS_US
            at_ms = UTC_MS + now_us // MILLISECOND_US
            samples = tuple(metrics_of(state, now_us - reporter.started_us, reporter.maps))
            yield messages.Metrics(0, (messages.MetricSet(at_ms, samples),))

    def _report(self, now_us: int, address: Address, reporter: _Reporter, message: messages.Message) -> None:
        at_us = now_us + reporter.lateness_us
        self._push(at_us, Heard(at_us, address, reporter.uuid, message))

    def _push(self, at_us: int, observation: Observation) -> None:
        heappush(self._due, (at_us, next(self._order), observation))

    def _hear(self, events: Iterable[HeardEvent]) -> None:
        for heard in events:
            self._records += 1
            utc_us = UTC_MS * MILLISECOND_US + heard.at_us
            self._picture.apply(
                Record("client", heard.address, heard.uuid, self._records, heard.at_us, utc_us, heard.event)
            )


def owners_of(state: MemberState) -> messages.PartitionsView | None:
    """Return the owner of each partition, as a member of Hazelcast reports it; None before the first arrangement."""
    table = state.partitions.table
    if table is None:
        return None
    holders = sorted({row[0].uuid for row in table.rows if row[0] is not None})
    places = {uuid: place for place, uuid in enumerate(holders)}
    return messages.PartitionsView(
        tuple(holders), tuple(-1 if row[0] is None else places[row[0].uuid] for row in table.rows)
    )


def metrics_of(state: MemberState, up_us: int, maps: dict[str, None]) -> Iterator[messages.MetricSample]:
    """Yield the metrics of a member: the age of its process, its queue, and the entries of each map, also of former `maps`."""
    yield messages.MetricSample("runtime.uptime", up_us // MILLISECOND_US)
    table, role = state.partitions.table, state.partitions.master_role
    if table is not None:
        owned = sum(row[0] is not None and row[0].uuid == state.uuid for row in table.rows)
        yield messages.MetricSample("partitions.localPartitionCount", owned)
        yield messages.MetricSample("partitions.stateStamp", table.digest & (1 << 62) - 1)
    queued = 0 if role is None else len(role.running) + sum(map(len, role.queue.values()))
    yield messages.MetricSample("partitions.migrationQueueSize", queued)
    yield messages.MetricSample("partitions.replicaSyncRequestsCounter", 0)
    entries: dict[str, list[int]] = {name: [0, 0] for name in maps}
    for partition, store in state.data.stores.items():
        for name, held in store.maps.items():
            entries.setdefault(name, [0, 0])[partition not in state.data.owner_states] += len(held)
    maps.update(dict.fromkeys(entries))
    for name, (owned, backed_up) in entries.items():
        for metric, value in (
            ("ownedEntryCount", owned), ("backupEntryCount", backed_up), ("backupCount", state.settings.backups),
        ):  # fmt: skip
            yield messages.MetricSample(f"map.{metric}", value, ("name", name))
