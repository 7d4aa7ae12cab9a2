"""One incarnation of a member, as far as it tells its clients: the events that follow from each thing that it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.events import (
    ClusterStateChanged,
    Event,
    JoinListChanged,
    ListInstalled,
    MasterChanged,
    SettingsChanged,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import (
    ASPECTS,
    Aspect,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
    Source,
)
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration
from quarterdeck.backend.hazelcast.wire.messages import PartitionsView, ReplicaMigrationEvent
from quarterdeck.backend.hazelcast.witness.owners import owners_of

OWNERS_INTERVAL_US = 250_000
"""While partitions migrate, every single one changes the table: it is told no more often than this."""

PRODUCT = "hazelcast."
"""With this the names of its own properties begin."""

OF_MASTERS: tuple[Aspect, ...] = ("migration-ends", "losses")
"""What only masters are listened to for."""

START_US = 4 * SECOND_US
"""So long a member is waited for that has not said yet, or refused, what it is asked first."""

ASKED_FIRST: tuple[Aspect, ...] = ("cluster-state", "settings")
"""What is asked when a connection stands. Until it was answered, what else it tells is gathered."""

FORMER_MEMBERS = 1_000
"""So many addresses of members that were once on a list are remembered: tables and migrations name members by uuid alone."""


class WitnessedIncarnation:
    """What one incarnation has told so far. Each method takes one thing that it tells, and gives what is new in it."""

    def __init__(self, address: Address, uuid: str, by: Sequence[Source], aspects: Sequence[Aspect] = ()) -> None:
        """`aspects` are those that are known of it from the beginning."""
        self.address, self.uuid = address, uuid
        self.lineage = ""
        """The uuid of its master, who made its list: versions repeat on the two sides of a split, masters do not."""
        self.members: tuple[Member, ...] = ()
        self._by = tuple(by)
        self._tells: frozenset[Aspect] = frozenset(aspects)
        self._refused: frozenset[Aspect] = frozenset()
        self._declared: frozenset[Aspect] = self._tells
        """The aspects that were told to be told."""
        self._begins = True
        """Whether it has not yet answered what is asked first."""
        self._began_us: int | None = None
        self._version = 0
        self._master: Address | None = None
        self._state: ClusterState | None = None
        self._join_list: tuple[Address, ...] | None = None
        self._edits = 0
        self._system_properties: dict[str, str] = {}
        self._settings: dict[str, str] | None = None
        self._addresses: dict[str, Address] = {}
        self._view: PartitionsView | None = None
        self._state_stamp: int | None = None
        self._told: OwnersTold | None = None
        self._told_us = -OWNERS_INTERVAL_US
        self._is_table_due = False

    # Aspects

    def witnessed(self) -> MemberWitnessed:
        """From whom it is known, and which aspects."""
        self._declared = self._tells
        return MemberWitnessed(self._by, tuple(one for one in sorted(ASPECTS) if one in self._tells))

    def now_tells(self, *aspects: Aspect) -> Iterator[Event]:
        """It tells these aspects from now on."""
        self._tells |= frozenset(aspects) - self._refused
        yield from self._declare()

    def logs_tell(self, by: Sequence[Source], aspects: Sequence[Aspect]) -> Iterator[Event]:
        """It is known from its log as well, which tells these aspects."""
        self._by = tuple(by)
        yield from self.now_tells(*aspects)

    def refuses(self, *aspects: Aspect) -> Iterator[Event]:
        """It does not want to tell these aspects."""
        self._refused |= frozenset(aspects)
        yield from self.tells_no_more(*aspects)

    def tells_no_more(self, *aspects: Aspect) -> Iterator[Event]:
        """It tells these aspects no more."""
        self._tells -= frozenset(aspects)
        yield from self._declare()

    def _declare(self) -> Iterator[Event]:
        """Which aspects it tells, where they have become others; in which order it begins to tell them is nothing to be told."""
        self._begins = self._begins and not self._tells | self._refused >= set(ASKED_FIRST)
        if not self._begins and self._tells != self._declared:
            yield self.witnessed()

    # Lists

    def list_told(self, version: int, members: tuple[Member, ...]) -> Iterator[Event]:
        """Its list. It tells the same one again now and then, and when it goes on after it stood still: that is nothing new."""
        if not members:  # it is about to be another incarnation, and has no list
            return
        lineage, master = members[0].uuid, members[0].address
        if (lineage, version, members) == (self.lineage, self._version, self.members):
            return
        change = _change(self.members, members)
        for member in members:
            self._addresses[member.uuid] = member.address
        while len(self._addresses) > len(members) + FORMER_MEMBERS:
            del self._addresses[next(iter(self._addresses))]
        self.lineage, self._version, self.members = lineage, version, members
        if self._master != master:
            self._master = master
            yield MasterChanged(master, f"{master} is the first of its list")
        yield ListInstalled(version, lineage, master, members, master, "unknown", change)
        if self.is_master:  # its listeners hear the migrations and losses of all its members
            yield from self.now_tells(*OF_MASTERS)
        else:
            yield from self.tells_no_more(*OF_MASTERS)

    @property
    def is_master(self) -> bool:
        """Whether it leads, by its own list."""
        return self.lineage == self.uuid

    # What it says when asked

    def state_told(self, state: ClusterState) -> Iterator[Event]:
        """The state of the cluster, as it holds it. What it was all along has not changed when it is told first."""
        yield from self.now_tells("cluster-state")
        before, self._state = self._state, state
        if state != (before or "ACTIVE"):
            why = f"it was {before}" if before else "so it was told when it was asked first"
            yield ClusterStateChanged(state, why)

    def configuration_told(self, configuration: ReportedConfiguration) -> Iterator[Event]:
        """Where it looks for its cluster now, and its properties.

        The first join list is edition 0: how often it was edited before nobody tells.
        """
        if configuration.uses_join_list:
            yield from self.now_tells("join-list", "settings")
            if configuration.join_list != self._join_list:
                self._edits += self._join_list is not None
                self._join_list = configuration.join_list
                yield JoinListChanged(self._join_list, self._edits, self.address)
        else:
            yield from self.tells_no_more("join-list")
        yield from self._settings_told({**self._system_properties, **configuration.properties})

    def system_properties_told(self, properties: Mapping[str, str]) -> Iterator[Event]:
        """Properties of its process. What stands in its configuration goes before them."""
        self._system_properties = {name: value for name, value in properties.items() if name.startswith(PRODUCT)}
        if self._settings is not None:
            yield from self._settings_told({**self._system_properties, **self._settings})

    def _settings_told(self, settings: Mapping[str, str]) -> Iterator[Event]:
        yield from self.now_tells("settings")
        if settings != self._settings:
            self._settings = dict(settings)
            yield SettingsChanged(self._settings)

    # Partitions

    def owners_told(self, view: PartitionsView, now_us: int) -> Iterator[Event]:
        """Its table: who owns which partition."""
        yield from self.now_tells("owners")
        self._view, self._is_table_due = view, True
        yield from self.wake(now_us)

    def stamp_told(self, state_stamp: int, now_us: int) -> Iterator[Event]:
        """Its own digest of its whole table."""
        if state_stamp != self._state_stamp:
            self._state_stamp, self._is_table_due = state_stamp, self._view is not None
            yield from self.wake(now_us)

    def wake(self, now_us: int) -> Iterator[Event]:
        """Tell what it is time to tell: that it has answered for long enough, its table."""
        if self._began_us is None:
            self._began_us = now_us
        if self._begins and now_us - self._began_us >= START_US:
            self._begins = False
            yield from self._declare()
        if self._view is None or not self._is_table_due or now_us - self._told_us < OWNERS_INTERVAL_US:
            return
        self._is_table_due = False
        table = owners_of(self._view, self._addresses, self._state_stamp)
        if table != self._told:
            self._told, self._told_us = table, now_us
            yield table

    def migration_ended(self, end: ReplicaMigrationEvent) -> Iterator[Event]:
        """A replica has moved, or was to."""
        source, destination = self._address_of(end.source_uuid), self._address_of(end.destination_uuid)
        yield ReplicaMigrated(
            end.partition, end.replica_index, source, destination, end.succeeded, end.took_ms * 1_000,
            end.state.planned, end.state.done,
        )  # fmt: skip

    def partition_lost(self, partition: int, lost_backups: int) -> Iterator[Event]:
        """Replicas up to this index are gone."""
        yield PartitionLost(partition, lost_backups)

    def _address_of(self, uuid: str | None) -> Address | None:
        return None if uuid is None else self._addresses.get(uuid, Address(uuid))


def _change(before: Sequence[Member], after: Sequence[Member]) -> str:
    """In words, what a list changes."""
    if not before:
        return "the first list that was told"
    former, present = set(before), set(after)
    joined = ", ".join(member.address for member in after if member not in former)
    left = ", ".join(member.address for member in before if member not in present)
    changes = [f"joined: {joined}"] * bool(joined) + [f"left: {left}"] * bool(left)
    return "; ".join(changes) or "another version of the same members"
