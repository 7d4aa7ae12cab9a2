"""What is heard of all members that are watched, as events of the incarnations that they happened to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.witnessed.events import Aspect, Source
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration, read_configuration
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ClusterMetadata,
    MemberConfig,
    MembersView,
    Message,
    Metrics,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
    SystemProperties,
    ViewMember,
)
from quarterdeck.backend.hazelcast.wire.observations import ConnectionTold, Heard, NotTold, Observation, Topic
from quarterdeck.backend.hazelcast.witness.member_witness import MemberWitness, WitnessedEvent

LOGS_TELL: tuple[Aspect, ...] = ("suspicions", "claims", "merge-verdicts")
"""The aspects that only the log of a member tells."""

TOPIC_TELLS: dict[Topic, tuple[Aspect, ...]] = {
    "cluster-state": ("cluster-state",),
    "config": ("join-list", "settings"),
    "migrations": ("migration-ends",),
    "losses": ("losses",),
}
"""Which aspect is not told when a member refuses a topic."""

STATE_STAMP = "partitions.stateStamp"


class HeardEvent(NamedTuple):
    """An event of an incarnation of the member at `address`, and when it was heard on the run's clock."""

    at_us: int
    address: Address
    uuid: str
    event: Event


class ClusterWitness:
    """Takes observations in the order in which they were made, gives events. Members go by the addresses that they name."""

    def __init__(self, logged: Iterable[Address] = ()) -> None:
        """`logged` are the members whose logs are read as well."""
        self.members: dict[Address, MemberWitness] = {}
        self.configurations: dict[Address, ReportedConfiguration] = {}
        """What the configuration of each member says that matters here, as it was told last."""
        self.untold: dict[Address, dict[Topic, str]] = {}
        """What each member refuses to tell, and in which words."""
        self._logged = frozenset(logged)
        self._listed: tuple[ViewMember, ...] = ()
        self._members_listed: tuple[Member, ...] = ()
        """The list that was told last."""

    def hear(self, observation: Observation) -> list[HeardEvent]:
        """What follows from one observation."""
        match observation:
            case Heard(at_us, address, uuid, message):
                told = self._message(self._member(address), uuid, message, at_us)
            case ConnectionTold(at_us, address, state, reason) if state != "connected":
                told = self._member(address).unreachable(state, reason, at_us)
            case NotTold(at_us, address, topic, reason):
                self.untold.setdefault(address, {})[topic] = reason
                told = self._member(address).told(lambda one: one.refuses(*TOPIC_TELLS.get(topic, ())))
            case _:  # who has connected is told by its first message; the rest is for those who act
                return []
        return [HeardEvent(at_us, address, *one) for one in told]

    def wake(self, now_us: int) -> list[HeardEvent]:
        """Time has passed: call it a few times a second."""
        return [
            HeardEvent(now_us, address, *one) for address, member in self.members.items() for one in member.wake(now_us)
        ]

    def logs(self, address: Address, now_us: int) -> list[HeardEvent]:
        """The log of this member is read from now on."""
        if address in self._logged:
            return []
        self._logged |= {address}
        told = self._member(address).logs_tell(("client-protocol", "logs"), LOGS_TELL)
        return [HeardEvent(now_us, address, *one) for one in told]

    def incarnation_of(self, address: Address) -> str:
        """The uuid of the incarnation that is known there; empty when none is."""
        member = self.members.get(address)
        return member.incarnation.uuid if member is not None and member.incarnation is not None else ""

    def _member(self, address: Address) -> MemberWitness:
        if address not in self.members:
            by: tuple[Source, ...] = ("client-protocol",)
            is_logged = address in self._logged
            self.members[address] = MemberWitness(
                address, (*by, "logs") if is_logged else by, LOGS_TELL if is_logged else ()
            )
        return self.members[address]

    def _members_of(self, listed: tuple[ViewMember, ...]) -> tuple[Member, ...]:
        """The members on a list. All that tell the same one share it."""
        if listed != self._listed:
            self._listed = listed
            self._members_listed = tuple(Member(one.address, one.uuid, 0, one.lite) for one in listed)
        return self._members_listed

    def _message(self, member: MemberWitness, uuid: str, message: Message, now_us: int) -> Iterator[WitnessedEvent]:
        match message:
            case Authenticated(status=status, server_version=software):
                if status == "authenticated":
                    yield from member.answered(uuid, f"Hazelcast {software}" if software else "", now_us)
                return
        yield from member.speaks(uuid, now_us)
        match message:
            case MembersView(version, listed):
                yield from member.list_told(version, self._members_of(listed))
                for one in listed:
                    if one.address != member.address:
                        self._member(one.address).listed(one.uuid, now_us)
            case PartitionsView():
                yield from member.told(lambda one: one.owners_told(message, now_us))
            case ReplicaMigrationEvent():
                yield from member.told(lambda one: one.migration_ended(message))
            case PartitionLostEvent(partition, lost_backups):
                yield from member.told(lambda one: one.partition_lost(partition, lost_backups))
            case ClusterMetadata(state):
                known = next((one for one in CLUSTER_STATES if one == state), None)
                if known is not None:
                    yield from member.told(lambda one: one.state_told(known))
            case MemberConfig(xml):
                configuration = read_configuration(xml)
                if configuration is not None:
                    self.configurations[member.address] = configuration
                    yield from member.told(lambda one: one.configuration_told(configuration))
            case SystemProperties(properties):
                yield from member.told(lambda one: one.system_properties_told(properties))
            case Metrics(_, sets) if sets:
                stamp = sets[-1].value_of(STATE_STAMP)
                if stamp is not None:
                    yield from member.told(lambda one: one.stamp_told(int(stamp), now_us))
            case _:
                pass
