"""What all watched members report, as events of the incarnations to which they happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.witnessed.events import Aspect, Source
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration, read_configuration
from quarterdeck.backend.hazelcast.wire.messages import ConnectionReport, Heard, Observation, Topic, TopicRefused
from quarterdeck.backend.hazelcast.witness.member_metrics import map_metrics
from quarterdeck.backend.hazelcast.witness.member_witness import MemberWitness, WitnessedEvent

ONLY_LOGGED_ASPECTS: tuple[Aspect, ...] = ("suspicions", "claims", "merge-verdicts")
"""The aspects that only the log of a member shows."""

TOPIC_ASPECTS: dict[Topic, tuple[Aspect, ...]] = {
    "cluster-state": ("cluster-state",),
    "config": ("join-list", "settings"),
    "migrations": ("migration-ends",),
    "losses": ("losses",),
}
"""Which aspects are unknown when a member refuses a topic."""

STATE_STAMP = "partitions.stateStamp"
UPTIME = "runtime.uptime"
"""Milliseconds since the process began."""


class HeardEvent(NamedTuple):
    """An event of an incarnation of the member at `address`, and when it was heard on the run's clock."""

    at_us: int
    address: Address
    uuid: str
    event: Event


class ClusterWitness:
    """Makes events of observations, in the order in which they were made. Members are named by the addresses that they use."""

    def __init__(self, logged: Iterable[Address] = ()) -> None:
        """Begin. `logged` are the members whose logs are read as well."""
        self.members: dict[Address, MemberWitness] = {}
        self.configurations: dict[Address, ReportedConfiguration] = {}
        """The configuration that each member reported last."""
        self.refused: dict[Address, dict[Topic, str]] = {}
        """The topics that each member refuses, and in which words."""
        self._logged = frozenset(logged)
        self._listed: tuple[messages.ViewMember, ...] = ()
        self._members_listed: tuple[Member, ...] = ()
        """The list that was reported last."""

    def hear(self, observation: Observation) -> list[HeardEvent]:
        """Return the events that follow from an observation."""
        match observation:
            case Heard(at_us, address, uuid, message):
                witnessed = self._message(self._member(address), uuid, message, at_us)
            case ConnectionReport(at_us, address, state, reason) if state != "connected":
                witnessed = self._member(address).unreachable(state, reason, at_us)
            case TopicRefused(at_us, address, topic, reason):
                self.refused.setdefault(address, {})[topic] = reason
                witnessed = self._member(address).apply(lambda event: event.refuses(*TOPIC_ASPECTS.get(topic, ())))
            case _:  # a connected member is known by its first message
                return []
        return [HeardEvent(at_us, address, *event) for event in witnessed]

    def wake(self, now_us: int) -> list[HeardEvent]:
        """Return what is due by now. Call it a few times a second."""
        return [
            HeardEvent(now_us, address, *event)
            for address, member in self.members.items()
            for event in member.wake(now_us)
        ]

    def logs(self, address: Address, now_us: int) -> list[HeardEvent]:
        """Begin to read the log of this member."""
        if address in self._logged:
            return []
        self._logged |= {address}
        witnessed = self._member(address).add_log(("client-protocol", "logs"), ONLY_LOGGED_ASPECTS)
        return [HeardEvent(now_us, address, *event) for event in witnessed]

    def forget(self, address: Address) -> None:
        """Forget an address where no member is looked for any more."""
        self.members.pop(address, None)
        self.configurations.pop(address, None)
        self.refused.pop(address, None)

    def incarnation_of(self, address: Address) -> str:
        """Return the uuid of the incarnation that is known there; empty when none is."""
        member = self.members.get(address)
        return member.incarnation.uuid if member is not None and member.incarnation is not None else ""

    def _member(self, address: Address) -> MemberWitness:
        if address not in self.members:
            by: tuple[Source, ...] = ("client-protocol",)
            is_logged = address in self._logged
            self.members[address] = MemberWitness(
                address, (*by, "logs") if is_logged else by, ONLY_LOGGED_ASPECTS if is_logged else ()
            )
        return self.members[address]

    def _members_of(self, listed: tuple[messages.ViewMember, ...]) -> tuple[Member, ...]:
        """Return the members on a list. All members that report the same list share it."""
        if listed != self._listed:
            self._listed = listed
            self._members_listed = tuple(Member(member.address, member.uuid, 0, member.lite) for member in listed)
        return self._members_listed

    def _message(
        self, member: MemberWitness, uuid: str, message: messages.Message, now_us: int
    ) -> Iterator[WitnessedEvent]:
        match message:
            case messages.Authenticated(status=status, server_version=software):
                if status == "authenticated":
                    yield from member.answered(uuid, f"Hazelcast {software}" if software else "", now_us)
                return
        yield from member.speaks(uuid, now_us)
        match message:
            case messages.MembersView(version, listed):
                yield from member.list_reported(version, self._members_of(listed))
                for other in listed:
                    if other.address != member.address:
                        self._member(other.address).listed(other.uuid, now_us)
            case messages.PartitionsView():
                yield from member.apply(lambda incarnation: incarnation.owners_reported(message, now_us))
            case messages.ReplicaMigrationEvent():
                yield from member.apply(lambda incarnation: incarnation.migration_ended(message))
            case messages.PartitionLostEvent(partition, lost_backups):
                yield from member.apply(lambda incarnation: incarnation.partition_lost(partition, lost_backups))
            case messages.ClusterMetadata(state):
                known = next((known for known in CLUSTER_STATES if known == state), None)
                if known is not None:
                    yield from member.apply(lambda incarnation: incarnation.state_reported(known))
            case messages.MemberConfig(xml):
                configuration = read_configuration(xml)
                if configuration is not None:
                    self.configurations[member.address] = configuration
                    yield from member.apply(lambda incarnation: incarnation.configuration_reported(configuration))
            case messages.SystemProperties(properties):
                yield from member.apply(lambda incarnation: incarnation.system_properties_reported(properties))
            case messages.Metrics(_, sets) if sets:
                up_ms = sets[-1].value_of(UPTIME)
                if up_ms is not None:
                    yield from member.process_reported(sets[-1].at_ms - int(up_ms))
                stamp = sets[-1].value_of(STATE_STAMP)
                if stamp is not None:
                    yield from member.apply(lambda incarnation: incarnation.stamp_reported(int(stamp), now_us))
                maps = map_metrics(sets[-1])
                if maps is not None:
                    yield from member.apply(lambda incarnation: incarnation.maps_reported(maps))
                yield from member.apply(lambda incarnation: incarnation.metrics_reported(sets[-1]))
