"""What one member knows of its cluster: the state that every chapter of the membership protocols reads and changes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, MasterCause, Reason, RecordId, UnreachableCause
from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.data.state import Data
from quarterdeck.backend.core.effects import Effect, Halt, Happened, Reconnect, Transmit
from quarterdeck.backend.core.events import FORM, Event, MasterChanged, MergeVerdict, Record
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer, late_after_us
from quarterdeck.backend.core.membership.undertakings import (
    Admission,
    Claim,
    DisconnectionReports,
    HeldBack,
    IncarnationCheck,
    JoinSearch,
    LinkProof,
    Merge,
    ProbeSchedule,
    StateChange,
    StateChangeRequest,
    StateLocked,
)
from quarterdeck.backend.core.membership.views.identity import ListMetadata, Randomness, fresh_uuid
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import JoinRequest, Message
from quarterdeck.backend.core.partitions.migration.migration_service import MigrationService
from quarterdeck.backend.core.partitions.state import Partitions
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.core.timers import Timers

Stopwatch = Callable[[], int]
"""Microseconds that really pass, from anywhere on."""


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
    cluster_name: str = "dev"
    zone: str = ""


class Membership:
    """The state of one member. Chapters change it and leave what is to be done in `effects`.

    `stopwatch` is the outer guard of computations that might take long when live; simulated members have none.
    """

    __slots__ = (
        "_records",
        "_tokens",
        "address",
        "admission",
        "all_heard_until_us",
        "asked_silent",
        "asking_to_join",
        "claim",
        "data",
        "departing_for",
        "disconnections",
        "effects",
        "first_hand_suspects",
        "heartbeat_round",
        "held_back",
        "incarnation_checks",
        "join_list",
        "join_list_edition",
        "join_list_told",
        "joined_us",
        "last_round_us",
        "late_after_us",
        "left",
        "link_proof",
        "master",
        "member_configuration",
        "members",
        "merge",
        "merge_delay_us",
        "merge_not_before_us",
        "missing",
        "not_merging",
        "operating",
        "partitions",
        "pause_us",
        "peers",
        "probing",
        "randomness",
        "remembered",
        "reported_silent",
        "search",
        "search_told",
        "seen_version",
        "services",
        "settings",
        "standing",
        "state_change",
        "state_change_request",
        "state_decided",
        "state_locked",
        "stopwatch",
        "suspicions",
        "timers",
        "unanswered",
        "unusable",
        "uuid",
        "verdicts",
        "watch_is_current",
        "watched",
    )

    def __init__(
        self, member_configuration: MemberConfiguration, randomness: Randomness, stopwatch: Stopwatch | None = None
    ) -> None:
        self.member_configuration = member_configuration
        self.address = member_configuration.address
        self.settings = member_configuration.settings
        self.randomness = randomness
        self.stopwatch = stopwatch
        self.join_list = member_configuration.join_list
        self.join_list_edition: tuple[int, Address] = (0, member_configuration.address)
        self.seen_version = 0
        """The version of the last list of the incarnation before this one, when that ended in a merge."""
        self.join_list_told: set[Address] | None = None
        """Who has acknowledged the edit of the join list that this member spreads; None when it spreads none."""
        self.remembered: dict[Address, int | None] = {}
        """Addresses worth a look, with the time at which they were last of use; None for those of members."""
        self.pause_us = 0
        """If two rounds of heartbeats lie so far apart, this member itself has stood still."""
        self.late_after_us = 0
        """The silence for which a member is said to be late (chapter `heartbeat_lateness`)."""
        self.take_heartbeat_times()
        self.services: tuple[MigrationService, ...] = ()
        """Who keeps data in partitions here."""
        self.timers = Timers()
        self.effects: list[Effect] = []
        self.begin_incarnation(fresh_uuid(randomness))

    def take_heartbeat_times(self) -> None:
        """Work out, once for many rounds, what follows from the settings."""
        settings = self.settings
        self.pause_us = settings.heartbeat_interval_us + settings.max_no_heartbeat_us // 2
        self.late_after_us = late_after_us(settings)
        self.all_heard_until_us = 0

    def begin_incarnation(self, uuid: str) -> None:
        """Know nothing of any cluster. What outlives a merge is the join list and the remembered addresses."""
        self.uuid = uuid
        self._records = 0
        self._tokens = 0
        self.master: Address | None = None
        self.members: MemberList | None = None
        self.peers: dict[Address, Peer] = {}
        self.suspicions: dict[Address, Evidence] = {}
        """Whom this member suspects, and the evidence; `because` is the record of the suspicion itself."""
        self.probing: dict[Address, ProbeSchedule] = {}
        self.search: JoinSearch | None = None
        self.admission: Admission | None = None
        self.asking_to_join: dict[Address, JoinRequest] = {}
        """Who has asked while an admission was under way."""
        self.incarnation_checks: dict[Address, IncarnationCheck] = {}
        """Who was asked whether it lives, since another incarnation of its address is known."""
        self.claim: Claim | None = None
        self.heartbeat_round: Transmit | None = None
        self.watched: dict[Address, Peer] = {}
        self.watch_is_current = False
        self.asked_silent: set[Address] = set()
        """In the ring topology: who was silent at the last look, and was asked."""
        self.reported_silent: dict[Address, Evidence] = {}
        """In the ring topology: who was reported silent since the last heartbeat, and has been asked."""
        self.first_hand_suspects: set[Address] = set()
        """In the ring topology: whom this member itself found silent."""
        self.joined_us = 0
        self.last_round_us = 0
        self.all_heard_until_us = 0
        """Before this time no member can have been silent for too long, or late: a look at each of them is of no use."""
        self.left: dict[str, int] = {}
        """Lives that left the list, and when."""
        self.disconnections = DisconnectionReports()
        self.held_back: dict[Address, HeldBack] = {}
        """Whom this master removed because it could not reach others (design 9.6)."""
        self.link_proof: LinkProof | None = None
        self.standing = ClusterStanding()
        self.state_locked: StateLocked | None = None
        self.state_change_request: StateChangeRequest | None = None
        self.state_decided = ""
        """The token of the last change that was decided."""
        self.state_change: StateChange | None = None
        self.missing: set[Address] = set()
        """Members that left while no joins were allowed; they may come back."""
        self.merge: Merge | None = None
        self.departing_for: Address | None = None
        """Set while this incarnation is about to end in a merge into that cluster."""
        self.search_told = (0, 0)
        """When the next search for other clusters was last said to be due, and every how many microseconds one follows."""
        self.merge_not_before_us = 0
        self.merge_delay_us = 0
        """The back-off after a merge whose links were not proven; 0 after anything else."""
        self.verdicts: dict[Address, MergeVerdict] = {}
        self.not_merging: dict[Address | None, str] = {}
        """Why this master is not merging, for each cluster that it has met; under None what keeps it from meeting any."""
        self.unusable: dict[Address, Reason[UnreachableCause]] = {}
        """Where this member looks for others in vain, and not for silence (chapter `unusable_addresses`)."""
        self.unanswered: set[Address] = set()
        """Who has not answered since the last search for other clusters."""
        self.operating = True
        self.partitions = Partitions()
        self.data = Data()

    @property
    def joined(self) -> bool:
        """Whether this member has a member list."""
        return self.members is not None

    @property
    def is_master(self) -> bool:
        """Master with full powers: not while its own claim is still running (behaviour 4.5)."""
        return self.members is not None and self.claim is None and self.master == self.address

    def beliefs_changed(self) -> None:
        """The list, the master or the suspicions are not what they were: what was made of them is out of date."""
        self.heartbeat_round = None
        self.watch_is_current = False
        self.all_heard_until_us = 0

    def next_token(self) -> str:
        """A name for one undertaking of this incarnation, to tell its answers from those to others."""
        self._tokens += 1
        return f"{self.uuid[:13]}/{self._tokens}"

    def is_by(self, token: str, address: Address) -> bool:
        """Whether the incarnation at `address` that is on the list has made `token`, and not one before it."""
        peer = self.peers.get(address)
        return peer is not None and token.startswith(f"{peer.uuid[:13]}/")

    def metadata(self) -> ListMetadata:
        """What this member says of itself. Only for joined members."""
        assert self.members is not None and self.master is not None
        return ListMetadata(self.address, self.uuid, self.master, self.members.version)

    def follow(
        self, now: int, master: Address, reason: Reason[MasterCause], *, named_by: Address | None = None
    ) -> None:
        """Take `master` for the master from now on."""
        if master != self.master:
            self.master = master
            self.beliefs_changed()
            self.record(now, MasterChanged(master, reason.text, reason.cause, named_by), reason.because)

    def send(self, to: Address, message: Message) -> None:
        """Send a message."""
        self.effects.append(Transmit(((to, message),)))

    def send_all(self, to: tuple[Address, ...], message: Message) -> None:
        """The same message to each of `to`."""
        if to:
            self.effects.append(Transmit(tuple((address, message) for address in to)))

    def record(self, now: int, event: Event, because: RecordId | None = None) -> None:
        """Record that `event` happened to this incarnation, brought about by what the record `because` tells."""
        self._records += 1
        member_configuration = self.member_configuration
        record = Record(
            member_configuration.run,
            member_configuration.label,
            self.uuid,
            self._records,
            now,
            member_configuration.utc_origin_us + now,
            event,
            because,
            FORM,
        )
        self.effects.append(Happened(record))

    @property
    def latest_record(self) -> RecordId:
        """The record that this incarnation made last."""
        return RecordId(self.uuid, self._records)

    def reconnect(self) -> None:
        """Close all connections; the next message to anybody opens a new one."""
        self.effects.append(Reconnect())

    def halt(self, reason: str, *, failed: bool) -> None:
        """End this incarnation: nothing is received or timed any more."""
        self.timers.clear_all()
        self.effects.append(Halt(reason, failed))
