"""What one member knows of its cluster: the state that every chapter of the membership protocols reads and changes."""

from __future__ import annotations

from collections import deque
from dataclasses import MISSING, dataclass, field, fields
from typing import Self

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import HeldSuspicion, MasterCause, Reason, RecordId, UnreachableCause
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ClusterState
from quarterdeck.backend.core.effects import Disconnect, Effect, Halt, Happened, Incarnations, Transmit
from quarterdeck.backend.core.events import FORM, NOTES, Event, Record
from quarterdeck.backend.core.membership import undertakings
from quarterdeck.backend.core.membership.events import MasterChanged
from quarterdeck.backend.core.membership.facts import Fact
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer, late_after_us, pause_us
from quarterdeck.backend.core.membership.messages import JoinRequest, MastershipClaim
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import ConflictSearch
from quarterdeck.backend.core.membership.views.identity import ListMetadata, Randomness, drawn_from, fresh_uuid
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.core.timers import Timers

CLUSTER_NAME = "dev"
"""The name of a cluster that is given none."""


class MemberConfiguration(Struct, frozen=True):
    """All that a member is born with, besides its randomness.

    `run` and `label` only name it in its records. `utc_origin_us` is the UTC instant of zero on the run's clock.
    """

    run: str
    label: str
    address: Address
    join_list: tuple[Address, ...]
    settings: Settings
    utc_origin_us: int = 0
    lite: bool = False
    cluster_name: str = CLUSTER_NAME
    zone: str = ""


@dataclass(slots=True, eq=False)
class Context:
    """The surroundings of one member. What changes in it is empty between two steps, or worked out once for many."""

    member_configuration: MemberConfiguration
    effects: list[Effect] = field(default_factory=list)
    """What the present step wants done; empty between two steps."""
    departing_for: Address | None = None
    """When the present step ends, this incarnation does too, and the next one joins that cluster."""
    facts: deque[tuple[Fact, RecordId | None]] = field(default_factory=deque)
    """What chapters have reported, each with its cause, and no chapter has reacted to yet; empty between two steps, too."""
    cause: RecordId | None = None
    """The record that what comes next in the present handler follows from, where that is known: the last one that it has made,
    but for those that bring nothing about, or the one behind what it reacts to."""
    latest: Record | None = None
    """That record, if the handler has made it."""
    heartbeat_round: Transmit | None = None
    """The messages of a round of heartbeats (chapter `heartbeats`); None when they have to be made again."""
    conflict_search: ConflictSearch | None = None
    """The search of a partial disconnection (chapter `disconnection_reports`); None when it has to be made again."""

    def act_for(self, because: RecordId | None) -> None:
        """Let what comes next in the present handler follow from this record."""
        self.cause, self.latest = because, None

    def go_on_from(self, *kinds: type[Event]) -> None:
        """Let what comes next in this step follow from its last record of one of these kinds, if it has one."""
        for effect in reversed(self.effects):
            if type(effect) is Happened and type(effect.record.event) in kinds:
                self.act_for(RecordId(effect.record.uuid, effect.record.seq))
                return


@dataclass(slots=True)
class Process:
    """What a member knows from one incarnation to the next: a merge ends the one and begins the other."""

    context: Context = field(compare=False, repr=False)
    """What is no state: see `state.context`."""
    address: Address
    uuid: str
    lite: bool
    """Whether it holds no data: as configured, until it is promoted or demoted."""
    settings: Settings
    join_list: tuple[Address, ...]
    join_list_edition: tuple[int, Address]
    randomness: bytes
    """What all later draws follow from (chapter `identity`)."""
    pause_us: int
    """If two rounds of heartbeats lie so far apart, this member itself has stood still."""
    late_after_us: int
    """The silence after which a member is recorded as late (chapter `silence`)."""
    timers: Timers
    seen_version: int
    """The version of the last list of the incarnation before this one, when that ended in a merge."""
    join_list_confirmed: set[Address] | None
    """Members that have acknowledged the edit of the join list that this member spreads; None when it spreads none."""
    remembered: dict[Address, int | None]
    """Addresses worth a look, with the time at which they were last of use; None for those of members."""


@dataclass(slots=True)
class Membership(Process):
    """The state of one member: plain data. Chapters change it, and leave what is to be done in the effects of its context.

    What is declared here with a default belongs to one incarnation.
    """

    record_count: int = 0
    token_count: int = 0
    doing: undertakings.Doing = field(default_factory=undertakings.Idle)
    master: Address | None = None
    members: MemberList | None = None
    peers: dict[Address, Peer] = field(default_factory=dict)
    suspicions: dict[str, HeldSuspicion] = field(default_factory=dict)
    """The suspected incarnations, by uuid: what is known of an address says nothing about the next incarnation there."""
    asking_to_join: dict[Address, JoinRequest] = field(default_factory=dict)
    """Requests that came while an admission was under way."""
    incarnation_checks: dict[Address, undertakings.IncarnationCheck] = field(default_factory=dict)
    """Incarnations that were asked whether they are alive, since another one of their address is known."""
    ring: undertakings.Ring = field(default_factory=undertakings.Ring)
    probes: undertakings.LinkProbes = field(default_factory=undertakings.LinkProbes)
    joined_us: int = 0
    last_round_us: int = 0
    all_heard_until_us: int = 0
    """Before this time no member can have been silent for too long, or late: a look at each of them is of no use."""
    left: dict[str, undertakings.LeftMember] = field(default_factory=dict)
    """Incarnations that left the list, at least for as long as stale-join prevention lasts."""
    disconnections: undertakings.DisconnectionReports = field(default_factory=undertakings.DisconnectionReports)
    held_back: dict[Address, undertakings.HeldBackMember] = field(default_factory=dict)
    """Whom this master removed because it could not reach others (Decisions: Readmission)."""
    standing: ClusterStanding = field(default_factory=ClusterStanding)
    followed_change: undertakings.FollowedStateChange = field(default_factory=undertakings.FollowedStateChange)
    missing: set[Address] = field(default_factory=set)
    """Members that left while no joins were allowed; they may come back."""
    other_clusters: undertakings.OtherClusters = field(default_factory=undertakings.OtherClusters)
    merge_backoff: undertakings.MergeBackoff = field(default_factory=undertakings.MergeBackoff)
    unusable: dict[Address, Reason[UnreachableCause]] = field(default_factory=dict)
    """Addresses at which this member looks for others in vain, though not for silence (chapter `remembered_addresses`)."""
    put_off_claim: tuple[Address, MastershipClaim] | None = None
    """The last question of a claimant that was refused for now, since this member did not suspect all older ones."""
    refused_messages: dict[Address, undertakings.RefusedMessages] = field(default_factory=dict)
    """By sender, the one recorded longest ago first."""
    operating: bool = True
    listed: RecordId | None = None
    """The record that the present list was installed."""
    followed: RecordId | None = None
    """The record that the present master is followed."""

    @classmethod
    def born(cls, context: Context, randomness: Randomness) -> Self:
        """Return a member that has just been started."""
        configured = context.member_configuration
        return cls(
            context=context,
            address=configured.address,
            uuid=fresh_uuid(randomness.getrandbits(128)),
            lite=configured.lite,
            settings=configured.settings,
            join_list=configured.join_list,
            join_list_edition=(0, configured.address),
            randomness=drawn_from(randomness),
            pause_us=pause_us(configured.settings),
            late_after_us=late_after_us(configured.settings),
            timers=Timers(),
            seen_version=0,
            join_list_confirmed=None,
            remembered={},
        )

    def begin_incarnation(self, uuid: str) -> None:
        """Reset all that belongs to one incarnation. The join list and the remembered addresses outlive a merge."""
        self.uuid = uuid
        self.context.heartbeat_round = self.context.conflict_search = None
        for known in fields(self):
            if known.default_factory is not MISSING:
                setattr(self, known.name, known.default_factory())
            elif known.default is not MISSING:
                setattr(self, known.name, known.default)

    def apply_settings(self, settings: Settings) -> None:
        """Use these settings from now on, and derive once what many rounds need of them."""
        self.settings = settings
        self.pause_us = pause_us(settings)
        self.late_after_us = late_after_us(settings)
        self.all_heard_until_us = 0

    @property
    def member_configuration(self) -> MemberConfiguration:
        return self.context.member_configuration

    @property
    def joined(self) -> bool:
        return self.members is not None

    @property
    def view(self) -> tuple[Address, ...]:
        """The addresses on the installed list, the oldest first; empty before the first list."""
        return () if self.members is None else self.members.addresses

    @property
    def cluster_state(self) -> ClusterState:
        return self.standing.state

    @property
    def last_heard_us(self) -> dict[Address, int]:
        """When something came last from each member that it watches."""
        watched = self.ring.watched if self.settings.heartbeat_topology == "ring" else self.peers
        return {address: self.peers[address].detector.last_heard_us for address in watched if address in self.peers}

    @property
    def is_master(self) -> bool:
        """Master with full powers: not while its own claim is still running (Hazelcast: mastership claim)."""
        return type(self.doing) is undertakings.Leading

    @property
    def search(self) -> undertakings.JoinSearch | None:
        return self.doing if type(self.doing) is undertakings.JoinSearch else None

    @property
    def claim(self) -> undertakings.Claim | None:
        return self.doing if type(self.doing) is undertakings.Claim else None

    @property
    def admission(self) -> undertakings.Admission | None:
        return self.doing.admission if type(self.doing) is undertakings.Leading else None

    @property
    def state_change(self) -> undertakings.StateChange | None:
        return self.doing.state_change if type(self.doing) is undertakings.Leading else None

    @property
    def merge(self) -> undertakings.MergeUndertaking | None:
        return self.doing.merge if type(self.doing) is undertakings.Leading else None

    def suspects(self, address: Address) -> bool:
        """Return whether this member suspects the incarnation that its list has at `address`."""
        peer = self.peers.get(address)
        return peer is not None and peer.uuid in self.suspicions

    def is_listed(self, address: Address, uuid: str) -> bool:
        """Return whether this incarnation is on the list, as another member than this one."""
        peer = self.peers.get(address)
        return peer is not None and peer.uuid == uuid

    @property
    def suspected_addresses(self) -> tuple[Address, ...]:
        """The addresses of the suspected incarnations, in order."""
        return tuple(sorted(held.address for held in self.suspicions.values()))

    @property
    def begun(self) -> RecordId:
        return RecordId(self.uuid, 1)

    @property
    def latest_suspicion(self) -> RecordId | None:
        """The record of the last suspicion of those that are held."""
        records = [held.evidence.because for held in self.suspicions.values() if held.evidence.because]
        return max(records, key=lambda record: record.seq, default=None)

    def beliefs_changed(self) -> None:
        """Drop what was derived from the list, the master or the suspicions, for they have changed."""
        self.context.heartbeat_round = None
        self.ring.is_current = False
        self.all_heard_until_us = 0

    def next_token(self) -> str:
        """Return a name for one undertaking of this incarnation: the answers carry it."""
        self.token_count += 1
        return f"{self.uuid[:13]}/{self.token_count}"

    def is_by(self, token: str, address: Address) -> bool:
        """Return whether the incarnation at `address` that is on the list has made `token`, and not one before it."""
        peer = self.peers.get(address)
        return peer is not None and token.startswith(f"{peer.uuid[:13]}/")

    def metadata(self) -> ListMetadata:
        """Return what this member says of itself. Only for joined members."""
        assert self.members is not None and self.master is not None
        return ListMetadata(self.address, self.uuid, self.master, self.members.version)

    def follow(
        self, now: int, master: Address, reason: Reason[MasterCause], *, named_by: Address | None = None
    ) -> None:
        if master != self.master:
            self.master = master
            self.beliefs_changed()
            self.record(now, MasterChanged(master, reason.text, reason.cause, named_by), reason.because)
            self.followed = self.context.cause

    def report(self, fact: Fact) -> None:
        """Let other chapters react to what has come about, when the present handler or reaction has ended."""
        self.context.facts.append((fact, self.context.cause))

    def send(self, to: Address, message: Message, because: RecordId | None = None) -> None:
        """Send `message`, which the record `because` brought about, or what the present handler has come to."""
        self.context.effects.append(Transmit(((to, message),), because or self.context.cause))

    def send_all(self, to: tuple[Address, ...], message: Message, because: RecordId | None = None) -> None:
        if to:
            deliveries = tuple((address, message) for address in to)
            self.context.effects.append(Transmit(deliveries, because or self.context.cause))

    def record(self, now: int, event: Event, because: RecordId | None = None) -> None:
        """Record that `event` happened to this incarnation, brought about by what the record `because` describes.

        Where none is given it is the record before it in the same handler, or what the handler reacts to. Records of one kind
        that follow one another, such as those of several suspicions, have one cause.
        """
        context, kind = self.context, type(event)
        if because is None:
            latest = context.latest
            because = latest.because if latest is not None and type(latest.event) is kind else context.cause
        self.record_count += 1
        member_configuration = context.member_configuration
        record = Record(
            member_configuration.run,
            member_configuration.label,
            self.uuid,
            self.record_count,
            now,
            member_configuration.utc_origin_us + now,
            event,
            because,
            FORM,
        )
        context.effects.append(Happened(record))
        if kind not in NOTES:
            context.latest, context.cause = record, RecordId(self.uuid, self.record_count)

    @property
    def latest_record(self) -> RecordId:
        return RecordId(self.uuid, self.record_count)

    def disconnect(self, incarnations: Incarnations | None = None) -> None:
        """Close the connections with these incarnations, or all; the next message to a member opens a new one."""
        self.context.effects.append(Disconnect(incarnations))

    def halt(self, reason: str, *, failed: bool) -> None:
        """End this incarnation: nothing is received or timed any more."""
        self.timers.clear_all()
        self.context.effects.append(Halt(reason, failed))
