"""What all watched members report, as events of the incarnations to which they happened.

At one address are many incarnations, one after the other. A member is another one after a merge and after a restart. What was
seen in between shows which of the two it was. If it shows neither, neither is claimed: the new incarnation begins, and
nothing is said about the end of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ConnectionChanged, ConnectionState, Source
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.member_configuration import ReportedConfiguration, read_configuration
from quarterdeck.backend.hazelcast.wire.messages import ConnectionReport, Heard, Observation, Topic, TopicRefused
from quarterdeck.backend.hazelcast.witness.incarnation import OF_MASTERS, WitnessedIncarnation
from quarterdeck.backend.hazelcast.witness.member_metrics import STATE_STAMP

LIST_US = 2 * SECOND_US
"""How long the first list of a new incarnation is awaited: it shows whether the member has merged."""
STAYED_US = SECOND_US
"""A process that answers again so soon is the one that answered before: none starts so quickly."""
SAME_PROCESS_MS = 1_500
"""Two incarnations whose processes began within this time are of one process: its age is measured at another moment."""
LISTED_US = 10 * SECOND_US
"""After so long an incarnation that others list, and that cannot be reached, is recorded as such."""


class WitnessedEvent(NamedTuple):
    """Something that happened to an incarnation."""

    uuid: str
    event: Event


class _Arrival(NamedTuple):
    """A new incarnation that has answered, and has not reported a list yet."""

    uuid: str
    software: str
    at_us: int
    members: tuple[Member, ...] = ()
    """Its first list, while the age of its process is awaited."""
    process_began_ms: int | None = None


class MemberWitness:
    """What is known of one address, in order. Each method applies one observation and yields the events that follow."""

    def __init__(
        self, address: Address, by: Sequence[Source] = ("client-protocol",), aspects: Sequence[Aspect] = ()
    ) -> None:
        """Begin. `aspects` are those that other sources than the connection show."""
        self.address = address
        self.incarnation: WitnessedIncarnation | None = None
        self._by, self._aspects = by, aspects
        self._connection: tuple[ConnectionState, str] | None = None
        self._arrival: _Arrival | None = None
        self._held: list[Callable[[WitnessedIncarnation], Iterable[Event]]] = []
        """What the new incarnation has reported before it is known whether it has merged."""
        self._process_began_ms: int | None = None
        """When the process of the incarnation began, by its own clock, once that was reported."""
        self._lost_us: int | None = None
        """When the connection to the last incarnation was lost."""
        self._not_ready_us: int | None = None
        """When a member answered here since then that was not ready."""
        self._was_gone = False
        """Whether no process listened here since then."""
        self._listed: tuple[str, int] | None = None
        """The incarnation that others list here, and since when."""
        self._was_listed = False

    @property
    def is_known(self) -> bool:
        """Whether a member was ever heard here, or is on another member's list."""
        return self.incarnation is not None or self._arrival is not None or self._was_listed

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and self._connection[0] == "connected"

    def answered(self, uuid: str, software: str, now_us: int) -> Iterator[WitnessedEvent]:
        """Apply a connection to the incarnation `uuid`, whose program is of this version."""
        yield from self._arrive(None)
        if self.incarnation is not None and self.incarnation.uuid == uuid:
            yield from self._reached("connected", software)
            self._lost_us, self._not_ready_us, self._was_gone = None, None, False
        else:
            self._arrival = _Arrival(uuid, software, now_us)

    def speaks(self, uuid: str, now_us: int) -> Iterator[WitnessedEvent]:
        """Apply a message of the incarnation `uuid`: so it is there, whatever was seen before."""
        if self._arrival is not None and self._arrival.uuid == uuid:
            return
        known = self.incarnation is not None and self.incarnation.uuid == uuid
        if not known or (self._connection is not None and self._connection[0] != "connected"):
            yield from self.answered(uuid, "", now_us)

    def unreachable(self, state: ConnectionState, reason: str, now_us: int) -> Iterator[WitnessedEvent]:
        """Apply that there is no connection, or that it is silent."""
        yield from self._arrive(None)
        self._was_gone |= state == "gone"
        if self._lost_us is None:
            self._lost_us = now_us
        if state == "merging":
            if self._not_ready_us is None:
                self._not_ready_us = now_us
            goes_on = self.incarnation is not None and self._has_stayed()
            reason = "it merges, for its process goes on" if goes_on else "it starts, or merges"
        yield from self._reached(state, reason)

    def listed(self, uuid: str, now_us: int) -> None:
        """Apply that another member has this incarnation on its list."""
        if self._listed is None or self._listed[0] != uuid:
            self._listed, self._was_listed = (uuid, now_us), True

    def wake(self, now_us: int) -> Iterator[WitnessedEvent]:
        """Yield what has waited long enough."""
        if self._arrival is not None and now_us - self._arrival.at_us >= LIST_US:
            yield from self._arrive(None)
        if self._listed is not None and now_us - self._listed[1] >= LISTED_US:
            yield from self._begin_listed(self._listed[0])
        if self.incarnation is not None:
            yield from self.apply(lambda incarnation: incarnation.wake(now_us))

    def add_log(self, by: Sequence[Source], aspects: Sequence[Aspect]) -> Iterator[WitnessedEvent]:
        self._by, self._aspects = by, aspects
        if self.incarnation is not None:
            for event in self.incarnation.add_log(by, aspects):
                yield WitnessedEvent(self.incarnation.uuid, event)

    def list_reported(self, version: int, members: tuple[Member, ...]) -> Iterator[WitnessedEvent]:
        arrival = self._arrival
        if arrival is not None and members and self._is_doubtful(arrival, members):
            self._arrival = arrival._replace(members=members)
        else:
            yield from self._arrive(members)
        yield from self.apply(lambda incarnation: incarnation.list_reported(version, members))

    def process_reported(self, began_ms: int) -> Iterator[WitnessedEvent]:
        """Apply when the process of the connected incarnation began, by its own clock."""
        if self._arrival is None:
            self._process_began_ms = began_ms
            return
        self._arrival = self._arrival._replace(process_began_ms=began_ms)
        if self._arrival.members:
            yield from self._arrive(self._arrival.members)

    def apply(self, report: Callable[[WitnessedIncarnation], Iterable[Event]]) -> Iterator[WitnessedEvent]:
        """Apply a report of the connected incarnation to it; while it is not known whether that has merged, later."""
        if self._arrival is not None and self.incarnation is not None:
            self._held.append(report)
            return
        yield from self._arrive(None)
        if self.incarnation is not None:
            for event in report(self.incarnation):
                yield WitnessedEvent(self.incarnation.uuid, event)

    def _arrive(self, members: tuple[Member, ...] | None) -> Iterator[WitnessedEvent]:
        """Begin the incarnation that has answered, if there is one; `members` is its first list."""
        arrival, before = self._arrival, self.incarnation
        if arrival is None:
            return
        self._arrival = None
        members = members or arrival.members
        merged_from = ""
        has_merged = before is not None and bool(members) and self._has_merged(before, members[0], arrival)
        if before is not None and members and has_merged:
            merged_from = before.uuid
            yield WitnessedEvent(before.uuid, MemberMerging(members[0].address, arrival.uuid))
        leads = bool(members and members[0].uuid == arrival.uuid)
        aspects: tuple[Aspect, ...] = ("owners", *(OF_MASTERS if leads else ()))
        yield from self._begin(arrival.uuid, aspects, before if merged_from else None)
        # Else it was there before the watch began, or it is not known whether it has merged or was started.
        if has_merged is not None and (before is not None or self._not_ready_us is not None):
            lite = any(member.lite for member in members or () if member.uuid == arrival.uuid)
            yield WitnessedEvent(arrival.uuid, MemberStarted(self.address, lite, (), merged_from))
        self._lost_us = self._not_ready_us = self._connection = None
        self._was_gone = False
        self._process_began_ms = arrival.process_began_ms
        yield from self._reached("connected", arrival.software)
        held, self._held = self._held, []
        for report in held:
            yield from self.apply(report)

    def _has_merged(self, before: WitnessedIncarnation, master: Member, arrival: _Arrival) -> bool | None:
        """Return whether the process continued as another incarnation in the cluster of `master`; None where that is not known.

        It is as old as the process before, or answered again too soon for another; and it follows a master that it did not
        follow before.
        """
        if not self._may_have_merged(before, master):
            return False
        if self._process_began_ms is None or arrival.process_began_ms is None:
            return self._has_stayed() or (False if self._was_gone else None)
        return abs(arrival.process_began_ms - self._process_began_ms) < SAME_PROCESS_MS

    def _may_have_merged(self, before: WitnessedIncarnation, master: Member) -> bool:
        return bool(before.lineage) and master.uuid != before.lineage and master.address != self.address

    def _has_stayed(self) -> bool:
        """Return whether the process answered again so soon after the connection was lost that it is the same one."""
        if self._lost_us is None or self._not_ready_us is None:
            return False
        return self._not_ready_us - self._lost_us < STAYED_US

    def _is_doubtful(self, arrival: _Arrival, members: tuple[Member, ...]) -> bool:
        """Return whether the age of its process, which is on its way, shows better whether it has merged."""
        before = self.incarnation
        if before is None or self._process_began_ms is None or arrival.process_began_ms is not None:
            return False
        return self._may_have_merged(before, members[0]) and not self._has_stayed()

    def _begin(
        self, uuid: str, aspects: Sequence[Aspect], merged_from: WitnessedIncarnation | None = None
    ) -> Iterator[WitnessedEvent]:
        self.incarnation = WitnessedIncarnation(self.address, uuid, self._by, (*self._aspects, *aspects), merged_from)
        yield WitnessedEvent(uuid, self.incarnation.witnessed())

    def _begin_listed(self, uuid: str) -> Iterator[WitnessedEvent]:
        """Begin an incarnation that others list and that was not reached for long. Nothing else is known of it."""
        self._listed = None
        known = self.incarnation is not None and self.incarnation.uuid == uuid
        if known or self._connection is None or self._connection[0] == "connected" or self._arrival is not None:
            return
        state, reason = self._connection
        yield from self._begin(uuid, ())
        yield WitnessedEvent(uuid, ConnectionChanged(state, reason))

    def _reached(self, state: ConnectionState, reason: str) -> Iterator[WitnessedEvent]:
        is_new = self._connection is None or self._connection[0] != state
        self._connection = state, reason
        if is_new and self.incarnation is not None:
            yield WitnessedEvent(self.incarnation.uuid, ConnectionChanged(state, reason))


WITH_LOGS: tuple[tuple[Source, ...], tuple[Aspect, ...]] = (
    ("client-protocol", "logs"), ("suspicions", "claims", "merge-verdicts"),
)  # fmt: skip
"""The sources of a member whose log is read, and the aspects that only the log shows."""

TOPIC_ASPECTS: dict[Topic, tuple[Aspect, ...]] = {
    "cluster-state": ("cluster-state",),
    "config": ("join-list", "settings"),
    "migrations": ("migration-ends",),
    "losses": ("losses",),
}
"""Which aspects are unknown when a member refuses a topic."""

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
            case TopicRefused(at_us, address, topic):
                witnessed = self._member(address).apply(lambda event: event.refuses(*TOPIC_ASPECTS.get(topic, ())))
            case _:  # a connected member is known by its first message
                return []
        return [HeardEvent(at_us, address, *event) for event in witnessed]

    def wake(self, now_us: int) -> list[HeardEvent]:
        """Return what is due by now. Call it a few times a second."""
        members = self.members.items()
        return [HeardEvent(now_us, address, *event) for address, it in members for event in it.wake(now_us)]

    def logs(self, address: Address, now_us: int) -> list[HeardEvent]:
        """Begin to read the log of this member."""
        if address in self._logged:
            return []
        self._logged |= {address}
        witnessed = self._member(address).add_log(*WITH_LOGS)
        return [HeardEvent(now_us, address, *event) for event in witnessed]

    def forget(self, address: Address, now_us: int) -> list[HeardEvent]:
        """Forget an address where no member is looked for any more."""
        uuid = self.incarnation_of(address)
        self.members.pop(address, None)
        self.configurations.pop(address, None)
        return [HeardEvent(now_us, address, uuid, ConnectionChanged("forgotten"))] if uuid else []

    def incarnation_of(self, address: Address) -> str:
        """Return the uuid of the incarnation that is known there; empty when none is."""
        member = self.members.get(address)
        return member.incarnation.uuid if member is not None and member.incarnation is not None else ""

    def _member(self, address: Address) -> MemberWitness:
        if address not in self.members:
            is_logged = address in self._logged
            self.members[address] = MemberWitness(address, *WITH_LOGS) if is_logged else MemberWitness(address)
        return self.members[address]

    def _members_of(self, listed: tuple[messages.ViewMember, ...]) -> tuple[Member, ...]:
        if listed != self._listed:  # all members that report the same list share it
            self._listed = listed
            self._members_listed = tuple(Member(member.address, member.uuid, 0, member.lite) for member in listed)
        return self._members_listed

    def _message(
        self, member: MemberWitness, uuid: str, message: messages.Message, now_us: int
    ) -> Iterator[WitnessedEvent]:
        if isinstance(message, messages.Authenticated):
            if message.status == "authenticated":
                software = f"Hazelcast {message.server_version}" if message.server_version else ""
                yield from member.answered(uuid, software, now_us)
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
                if (configuration := read_configuration(xml)) is not None:
                    self.configurations[member.address] = configuration
                    yield from member.apply(lambda incarnation: incarnation.configuration_reported(configuration))
            case messages.SystemProperties(properties):
                yield from member.apply(lambda incarnation: incarnation.system_properties_reported(properties))
            case messages.Metrics(_, sets) if sets:
                if (up_ms := sets[-1].value_of(UPTIME)) is not None:
                    yield from member.process_reported(sets[-1].at_ms - int(up_ms))
                if (stamp := sets[-1].value_of(STATE_STAMP)) is not None:
                    yield from member.apply(lambda incarnation: incarnation.stamp_reported(int(stamp), now_us))
                yield from member.apply(lambda incarnation: incarnation.metrics_reported(sets[-1]))
