"""What a member has under way: the records of what it has begun and not ended, one for each chapter that begins something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, Reason, RecordId, UnreachableCause
from quarterdeck.backend.core.cluster_profile import ClusterProfile, ClusterStanding, ClusterState
from quarterdeck.backend.core.membership.events import MergeVerdict
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer
from quarterdeck.backend.core.membership.messages import JoinRequest, MembersUpdate
from quarterdeck.backend.core.membership.views.member_list import MemberList

MergePhase = Literal["confirming", "proving", "freezing", "offering", "ordering"]


class LeftMember(NamedTuple):
    """An incarnation that has left the list."""

    address: Address
    since_us: int


class RefusedMessages(NamedTuple):
    """The messages of one sender that were refused (chapter `refused_messages`)."""

    refused: int
    recorded_us: int


class HeldBackMember(NamedTuple):
    """A member that has to prove its links before it is admitted again (chapter `readmission`)."""

    since_us: int
    """When it was removed, or was last heard of since."""
    proven: frozenset[str] = frozenset()
    """The incarnations to which it has proven its links."""


@dataclass(slots=True)
class HeldJoin:
    """A join that waits until links are proven (chapter `readmission`)."""

    missing: dict[str, Address]
    """Uuid and address of the members to which the link is not proven yet."""
    proven: set[str]
    next_probe_us: int
    delay_us: int


class JoinSearch(Struct, tag="joining"):
    """The joiner's search for its cluster (chapter `joining`). None of it outlives the joining."""

    begun_us: int
    """When the search began."""
    deadline_us: int
    token: str
    """Names this search in all its questions, and in the answers to them: any other answer is not for this incarnation."""
    targets: tuple[Address, ...] = ()
    """The addresses that this round asks."""
    round_ends_us: int = 0
    unreachable: dict[Address, Reason[UnreachableCause]] = {}
    """The addresses that cannot be asked in this round, and why."""
    without_master: set[Address] = set()
    """The addresses that answered in this round that they know no master."""
    failures: dict[Address, str] = {}
    """The last reason why each address did not help, over all rounds."""
    attempt: int = 1
    requests_to_master: int = 0
    asked_to_join: set[Address] = set()
    """Every master that was asked to let this incarnation in: an answer may come late, when another one is asked already."""
    target: Address | None = None
    """The master of the cluster that this incarnation is to merge into: asked first, and never given up for good."""
    target_until_us: int = 0
    early_update: MembersUpdate | None = None
    """A list from the master that came before the answer to the join request."""
    held: HeldJoin | None = None
    """While the master keeps this joiner waiting for its links (chapter `readmission`)."""
    granted_to: Address | None = None
    """The member whose bid to form the cluster this member granted in this round: one only."""
    bid_votes: dict[Address, bool] | None = None
    """While bidding to form the cluster: the members asked, and whether each has granted it."""
    bids: int = 0
    """How many bids it has made so far, the present one included."""


@dataclass(slots=True)
class IncarnationCheck:
    """The question whether the incarnation that asks to join is alive at its address (chapter `present_incarnation`)."""

    uuid: str
    token: str
    request: JoinRequest | None = None
    """The request to judge again when it is."""


@dataclass(slots=True)
class Admission:
    """Joins whose answers wait until the others have the new list (chapter `admission`)."""

    joiners: dict[Address, str]
    """Address and uuid of those let in together."""
    version: int
    waiting: set[Address]
    expected: int
    listed: RecordId | None = None
    """The record of the list with the joiners."""


class Claim(Struct, tag="claiming"):
    """A mastership claim under way (chapter `mastership_claim`)."""

    latest: MemberList
    deadline_us: int
    token: str
    asked: dict[Address, str] = {}
    """The members asked, with the incarnation that was asked."""
    accepted: set[Address] = set()
    refused: set[Address] = set()
    refusals: dict[Address, str] = {}
    """The last reason of each member that did not accept."""
    watched: dict[Address, Peer] = {}
    """Those asked that are not on the claimant's own list: it watches them, and sends heartbeats to those that have accepted."""
    delay_us: int = 0
    """How long it waited before it asked again; 0 before the first time."""
    started: RecordId | None = None


@dataclass(slots=True)
class ProbeSchedule:
    """When a suspect is probed next (chapter `link_probes`)."""

    next_us: int
    delay_us: int


@dataclass(slots=True)
class Ring:
    """Whom this member of a ring watches, and what it found (chapter `heartbeat_ring`)."""

    watched: dict[Address, str] = field(default_factory=dict)
    """Address and uuid of the members that this one watches."""
    is_current: bool = False
    """Whether `watched` belongs to the present list, master and suspicions."""
    asked: set[Address] = field(default_factory=set)
    """The members that were silent at the last look, and were asked."""
    reported: dict[Address, Evidence] = field(default_factory=dict)
    """The members that were reported silent since the last heartbeat, and have been asked."""
    first_hand: set[Address] = field(default_factory=set)
    """The members that this one itself found silent."""


@dataclass(slots=True)
class LinkProof:
    """The proof of links to the members of another cluster, asked for by this member's master (chapter `link_probes`)."""

    token: str
    asked_by: Address
    missing: dict[Address, str]
    deadline_us: int


@dataclass(slots=True)
class LinkProbes:
    """The probes of suspects, and of the members of another cluster (chapter `link_probes`)."""

    schedule: dict[Address, ProbeSchedule] = field(default_factory=dict)
    proof: LinkProof | None = None


@dataclass(slots=True)
class DisconnectionSearch:
    """The search for those who stay, under way in slices (chapter `disconnection_reports`)."""

    version: int
    """The list that it is about."""
    until_us: int
    """When it ends with the best choice found so far."""
    slices: int = 0


@dataclass(slots=True)
class DisconnectionReports:
    """What slaves have reported of one another (chapter `disconnection_reports`)."""

    by_reporter: dict[Address, tuple[Address, ...]] = field(default_factory=dict)
    changed_us: int = 0
    latest: RecordId | None = None
    """The record of the last of them."""
    search: DisconnectionSearch | None = None


@dataclass(slots=True)
class StateLocked:
    """A change of the cluster's state for which this slave holds still (chapter `cluster_state`)."""

    token: str
    until_us: int


@dataclass(slots=True)
class StateChangeRequest:
    """The state that an operator wants, while this slave asks its master for it (chapter `cluster_state`)."""

    wanted: ClusterState
    until_us: int
    token: str
    because: RecordId | None = None


@dataclass(slots=True)
class FollowedStateChange:
    """What a member that does not lead knows of changes of the cluster's state (chapter `cluster_state`)."""

    locked: StateLocked | None = None
    request: StateChangeRequest | None = None
    decided: str = ""
    """The token of the last change that was decided."""


@dataclass(slots=True)
class StateChange:
    """A cluster state change that this master leads (chapter `cluster_state`)."""

    token: str
    wanted: ClusterStanding
    waiting: set[Address]
    deadline_us: int
    because: RecordId | None = None
    decided: bool = False


@dataclass(slots=True)
class OtherClusters:
    """What a master knows of other clusters (chapter `cluster_search`)."""

    announced: tuple[int, int] = (0, 0)
    """When the next search for them was last said to be due, and every how many microseconds one follows."""
    verdicts: dict[Address, tuple[MergeVerdict, RecordId]] = field(default_factory=dict)
    """The last verdict on each other cluster, and its record."""
    not_merging: dict[Address | None, str] = field(default_factory=dict)
    """Why this master is not merging, for each cluster that it has met; under None what keeps it from meeting any."""
    unanswered: set[Address] = field(default_factory=set)
    """Addresses that have not answered since the last search."""


@dataclass(slots=True)
class MergeBackoff:
    """The back-off after a merge whose links were not proven (chapter `merging`)."""

    not_before_us: int = 0
    delay_us: int = 0
    """0 after anything else than an unproven link."""


@dataclass(slots=True)
class MergeUndertaking:
    """The merge of this master's cluster into another, under way (chapter `merging`)."""

    token: str
    remote: ClusterProfile
    deadline_us: int
    phase: MergePhase
    started: RecordId | None
    """The record of its beginning; before that, of what was decided."""
    waiting: set[Address] = field(default_factory=set)
    confirmed: set[Address] = field(default_factory=set)
    """The members of the other cluster that have named its master as theirs."""


# What a member is doing: one of these at a time


class Idle(Struct, tag="idle"):
    """Nothing: it has not begun, or its incarnation has ended."""


class Following(Struct, tag="following"):
    """It has joined, and another member leads."""


class Leading(Struct, tag="leading"):
    """It is master with full powers; with the tasks of a master that are under way.

    They are not one value, since they overlap: a merge changes the cluster's state on its way, and a decided change may still
    be sent out when the next task begins.
    """

    admission: Admission | None = None
    state_change: StateChange | None = None
    merge: MergeUndertaking | None = None


Doing = Idle | JoinSearch | Following | Claim | Leading
"""A joiner's search and a claimant's claim are what they are doing."""

HAS_JOINED: tuple[type[Doing], ...] = (Following, Claim, Leading)
