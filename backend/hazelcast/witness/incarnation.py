"""One incarnation of a member, as far as it reports to its clients, and the events that follow from what it reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from quarterdeck.backend.commands.discovery import JOINER
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder, PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.core.witnessed.events import ASPECTS, Aspect, MemberWitnessed, OwnersTold, Source
from quarterdeck.backend.hazelcast.logs.incarnation_state import change_between
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration
from quarterdeck.backend.hazelcast.wire.messages import (
    MOST_MILLISECONDS,
    MetricSet,
    PartitionsView,
    ReplicaMigrationEvent,
)
from quarterdeck.backend.hazelcast.witness.member_metrics import MeasuredMember

OWNERS_INTERVAL_US = 250_000
"""While partitions migrate, every migration changes the table: it is recorded no more often than this."""
PRODUCT = "hazelcast."
"""The names of its own properties begin with this."""
OF_MASTERS: tuple[Aspect, ...] = ("migration-ends", "losses")
"""Aspects for which only masters have a listener."""
START_US = 4 * SECOND_US
"""How long a member may take to answer, or refuse, what it is asked first."""
ASKED_FIRST: tuple[Aspect, ...] = ("cluster-state", "settings")
"""What is asked when a connection stands. Until it is answered, what else it reports is gathered."""
FORMER_MEMBERS = 1_000
"""How many addresses of former members are kept: tables and migrations name members by uuid alone."""


class WitnessedIncarnation:
    """What one incarnation has reported so far. Each method applies one report and yields the events of what is new in it."""

    def __init__(
        self,
        address: Address,
        uuid: str,
        by: Sequence[Source],
        aspects: Sequence[Aspect] = (),
        merged_from: WitnessedIncarnation | None = None,
    ) -> None:
        """Begin. `aspects` are those that are known of it from the beginning.

        The process of one that merged goes on with its join list: another one then is an edit.
        """
        self.address, self.uuid = address, uuid
        self.lineage = ""
        """The uuid of its master, which made its list: versions repeat on the two sides of a split, masters do not."""
        self.members: tuple[Member, ...] = ()
        self._by = tuple(by)
        self._reported: frozenset[Aspect] = frozenset(aspects)
        self._refused: frozenset[Aspect] = frozenset()
        self._declared: frozenset[Aspect] = self._reported
        """The aspects that were last declared as reported."""
        self._begins = True
        """Whether it has not yet answered what is asked first."""
        self._began_us: int | None = None
        self._version = 0
        self._master: Address | None = None
        self._state: ClusterState | None = None
        self._join_list: tuple[Address, ...] | None = merged_from._join_list if merged_from is not None else None
        self._edits = 0
        self._map_backups: dict[str, int] = {}
        self._system_properties: dict[str, str] = {}
        self._settings: dict[str, str] | None = None
        self._addresses: dict[str, Address] = {}
        self._view: PartitionsView | None = None
        self._state_stamp: int | None = None
        self._measured = MeasuredMember(address)
        self._recorded: OwnersTold | None = None
        self._recorded_us = -OWNERS_INTERVAL_US
        self._is_table_due = False

    @property
    def is_settled(self) -> bool:
        """Whether it has reported a list, and has answered, refused or ignored what it is asked first."""
        return self._version > 0 and not self._begins

    def witnessed(self) -> MemberWitnessed:
        """Return its sources, and the aspects that are known."""
        self._declared = self._reported
        return MemberWitnessed(self._by, tuple(aspect for aspect in sorted(ASPECTS) if aspect in self._reported))

    def now_reports(self, *aspects: Aspect) -> Iterator[Event]:
        """Mark these aspects as reported from now on."""
        self._reported |= frozenset(aspects) - self._refused
        yield from self._declare()

    def add_log(self, by: Sequence[Source], aspects: Sequence[Aspect]) -> Iterator[Event]:
        """Add its log to the sources, which shows these aspects."""
        self._by = tuple(by)
        yield from self.now_reports(*aspects)

    def refuses(self, *aspects: Aspect) -> Iterator[Event]:
        """Mark these aspects as refused by the member."""
        self._refused |= frozenset(aspects)
        yield from self.reports_no_more(*aspects)

    def reports_no_more(self, *aspects: Aspect) -> Iterator[Event]:
        """Mark these aspects as no longer reported by the member."""
        self._reported -= frozenset(aspects)
        yield from self._declare()

    def _declare(self) -> Iterator[Event]:
        """Yield the reported aspects if they have changed. In which order it begins to report them is not recorded."""
        self._begins = self._begins and not self._reported | self._refused >= set(ASKED_FIRST)
        if not self._begins and self._reported != self._declared:
            yield self.witnessed()

    def list_reported(self, version: int, members: tuple[Member, ...]) -> Iterator[Event]:
        """Apply its list. It reports the same one again now and then, and after it stood still: that is nothing new."""
        if not members:  # it is about to be another incarnation, and has no list
            return
        lineage, master = members[0].uuid, members[0].address
        if (lineage, version, members) == (self.lineage, self._version, self.members):
            return
        change = change_between(self.members, members) if self.members else "the first list that it reported"
        for member in members:
            self._addresses[member.uuid] = member.address
        while len(self._addresses) > len(members) + FORMER_MEMBERS:
            del self._addresses[next(iter(self._addresses))]
        self.lineage, self._version, self.members = lineage, version, members
        if self._master != master:
            self._master = master
            yield events.MasterChanged(master, f"{master} is the first of its list")
        yield events.ListInstalled(version, lineage, master, members, master, "unknown", change)
        if self.is_master:  # its listeners hear the migrations and losses of all its members
            yield from self.now_reports(*OF_MASTERS)
        else:
            yield from self.reports_no_more(*OF_MASTERS)

    @property
    def is_master(self) -> bool:
        """Whether it leads, by its own list."""
        return self.lineage == self.uuid

    def state_reported(self, state: ClusterState) -> Iterator[Event]:
        """Apply the state of the cluster as it believes. A first state of ACTIVE is no change."""
        yield from self.now_reports("cluster-state")
        before, self._state = self._state, state
        if state != (before or "ACTIVE"):
            why = f"it was {before} before" if before else "its first answer says so"
            yield events.ClusterStateChanged(state, why)

    def configuration_reported(self, configuration: ReportedConfiguration) -> Iterator[Event]:
        """Apply its join list and its properties.

        The first join list is edition 0: how often it was edited before is unknown.
        """
        self._map_backups = configuration.map_backups
        if configuration.uses_join_list:
            is_first = "join-list" not in self._reported
            yield from self.now_reports("join-list", "settings")
            if is_first or configuration.join_list != self._join_list:
                self._edits += self._join_list not in (None, configuration.join_list)
                self._join_list = configuration.join_list
                yield events.JoinListChanged(self._join_list, self._edits, self.address)
        else:
            yield from self.reports_no_more("join-list")
        joiner = {} if configuration.uses_join_list else {JOINER: configuration.joiner}
        yield from self._settings_reported({**self._system_properties, **configuration.properties, **joiner})

    def system_properties_reported(self, properties: Mapping[str, str]) -> Iterator[Event]:
        self._system_properties = {name: value for name, value in properties.items() if name.startswith(PRODUCT)}
        if self._settings is not None:
            yield from self._settings_reported({**self._system_properties, **self._settings})

    def _settings_reported(self, settings: Mapping[str, str]) -> Iterator[Event]:
        yield from self.now_reports("settings")
        if settings != self._settings:
            self._settings = dict(settings)
            yield events.SettingsChanged(self._settings)

    def owners_reported(self, view: PartitionsView, now_us: int) -> Iterator[Event]:
        yield from self.now_reports("owners")
        self._view, self._is_table_due = view, True
        yield from self.wake(now_us)

    def stamp_reported(self, state_stamp: int, now_us: int) -> Iterator[Event]:
        """Apply its own digest of its whole table. One that has just joined has no table yet, and reports 0."""
        if state_stamp not in (0, self._state_stamp):
            self._state_stamp, self._is_table_due = state_stamp, self._view is not None
            yield from self.wake(now_us)

    def metrics_reported(self, reported: MetricSet) -> Iterator[Event]:
        yield from self._measured.reported(reported, self.members)

    def wake(self, now_us: int) -> Iterator[Event]:
        """Yield what is due: the aspects after the first answers, and its table."""
        if self._began_us is None:
            self._began_us = now_us
        if self._begins and now_us - self._began_us >= START_US:
            self._begins = False
            yield from self._declare()
        if self._view is None or not self._is_table_due or now_us - self._recorded_us < OWNERS_INTERVAL_US:
            return
        self._is_table_due = False
        table = owners_of(self._view, self._addresses, self._state_stamp)
        if table != self._recorded:
            self._recorded, self._recorded_us = table, now_us
            yield table

    def migration_ended(self, end: ReplicaMigrationEvent) -> Iterator[Event]:
        """Record that a replica has moved, or was to."""
        source, destination = self._address_of(end.source_uuid), self._address_of(end.destination_uuid)
        yield witnessed.ReplicaMigrated(
            end.partition, end.replica_index, source, destination, end.succeeded,
            max(0, min(end.took_ms, MOST_MILLISECONDS)) * 1_000, end.state.planned, end.state.done,
        )  # fmt: skip

    def partition_lost(self, partition: int, lost_backups: int) -> Iterator[Event]:
        """Record a lost partition. Data went where a map has no more backups than were lost.

        Where no configuration of maps is known, each is taken to have a backup, as it has by default.
        """
        least = self._map_backups or {"default": 1}
        maps = tuple(sorted(name for name, backups in self._map_backups.items() if backups <= lost_backups))
        yield PartitionLost(partition, lost_backups, min(least.values()) <= lost_backups, maps)

    def _address_of(self, uuid: str | None) -> Address | None:
        return None if uuid is None else self._addresses.get(uuid, Address(uuid))


def owners_of(view: PartitionsView, addresses: Mapping[str, Address], state_stamp: int | None = None) -> OwnersTold:
    """Return the same table with the holders' addresses. A holder without a known address has its uuid for one.

    The counter that members give with their table is their own: the same table has another one on each.
    """
    holders = tuple(Holder(addresses.get(uuid, Address(uuid)), uuid) for uuid in view.holders)
    return OwnersTold(holders, view.owners, digest_of(view.holders, view.owners), state_stamp)


def digest_of(holders: Sequence[str], owners: Sequence[int]) -> str:
    """Return a digest that members with the same table share; empty while no partition has an owner."""
    if not holders:
        return ""
    digest = blake2b(digest_size=6)
    for place in owners:
        digest.update(b"-\n" if place < 0 else f"{holders[place]}\n".encode())
    return digest.hexdigest()
