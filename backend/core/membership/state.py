"""What one member knows of its cluster: the state that every chapter of the membership protocols reads and changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from backend.core.address import Address
from backend.core.effects import Effect, Halt, Happened, Transmit
from backend.core.events import Event, MasterChanged, Record
from backend.core.membership.failure_detector import DeadlineDetector
from backend.core.membership.identity import ListMetadata, Randomness, fresh_uuid
from backend.core.membership.member_list import MemberList
from backend.core.messages import Heartbeat, Message
from backend.core.properties import Settings
from backend.core.timers import Timers


class Birth(Struct, frozen=True):
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


class Peer:
    """Another member of the list: its life, and what its heartbeats say of it."""

    __slots__ = ("detector", "uuid")

    def __init__(self, uuid: str, detector: DeadlineDetector) -> None:
        self.uuid = uuid
        self.detector = detector


@dataclass(slots=True)
class JoinSearch:
    """The joiner's search for its cluster (chapter `joining`). None of it outlives the joining."""

    deadline_us: int
    round_ends_us: int = 0
    unreachable: dict[Address, str] = field(default_factory=dict)
    """Who cannot be asked in this round, and why."""
    without_master: set[Address] = field(default_factory=set)
    """Who answered in this round that it knows no master."""
    failures: dict[Address, str] = field(default_factory=dict)
    """The last reason why each address did not help, over all rounds."""
    requests_to_master: int = 0
    attempts: int = 0
    granted_to: Address | None = None
    """Whose bid to form the cluster this member granted in this round: one only."""
    bid_votes: dict[Address, bool] | None = None
    """While bidding to form the cluster: who was asked, and who has granted it."""


@dataclass(slots=True)
class Admission:
    """A join whose answer waits until the others have the new list (chapter `admission`)."""

    joiner: Address
    uuid: str
    version: int
    waiting: set[Address]
    expected: int


@dataclass(slots=True)
class Claim:
    """A mastership claim under way (chapter `mastership_claim`)."""

    latest: MemberList
    deadline_us: int
    asked: dict[Address, str] = field(default_factory=dict)
    """Everyone asked, and the life that was asked."""
    accepted: set[Address] = field(default_factory=set)
    refused: set[Address] = field(default_factory=set)
    highest_version: int = 0


class Membership:
    """The state of one member. Chapters change it and leave what is to be done in `effects`."""

    __slots__ = (
        "_records",
        "address",
        "admissions",
        "birth",
        "claim",
        "effects",
        "heartbeat_round",
        "last_round_us",
        "master",
        "members",
        "peers",
        "randomness",
        "search",
        "settings",
        "suspicions",
        "timers",
        "uuid",
    )

    def __init__(self, birth: Birth, randomness: Randomness) -> None:
        self.birth = birth
        self.address = birth.address
        self.settings = birth.settings
        self.randomness = randomness
        self.uuid = fresh_uuid(randomness)
        self.master: Address | None = None
        self.members: MemberList | None = None
        self.peers: dict[Address, Peer] = {}
        self.suspicions: dict[Address, str] = {}
        self.search: JoinSearch | None = None
        self.admissions: dict[Address, Admission] = {}
        self.claim: Claim | None = None
        self.heartbeat_round: tuple[tuple[Address, Heartbeat], ...] | None = None
        self.last_round_us = 0
        self.timers = Timers()
        self.effects: list[Effect] = []
        self._records = 0

    @property
    def joined(self) -> bool:
        return self.members is not None

    @property
    def is_master(self) -> bool:
        """Master with full powers: not while its own claim is still running (behaviour 4.5)."""
        return self.members is not None and self.claim is None and self.master == self.address

    def metadata(self) -> ListMetadata:
        """What this member says of itself. Only for joined members."""
        assert self.members is not None and self.master is not None
        return ListMetadata(self.address, self.uuid, self.master, self.members.version)

    def follow(self, now: int, master: Address, reason: str) -> None:
        """Take `master` for the master from now on."""
        if master != self.master:
            self.master = master
            self.heartbeat_round = None
            self.note(now, MasterChanged(master, reason))

    def send(self, to: Address, message: Message) -> None:
        self.effects.append(Transmit(((to, message),)))

    def send_all(self, to: tuple[Address, ...], message: Message) -> None:
        """The same message to each of `to`."""
        if to:
            self.effects.append(Transmit(tuple((address, message) for address in to)))

    def note(self, now: int, event: Event) -> None:
        """Record that `event` happened to this life."""
        self._records += 1
        birth = self.birth
        record = Record(birth.run, birth.label, self.uuid, self._records, now, birth.utc_origin_us + now, event)
        self.effects.append(Happened(record))

    def halt(self, reason: str, *, failed: bool) -> None:
        """End this life: nothing is received or timed any more."""
        self.timers.clear_all()
        self.effects.append(Halt(reason, failed))
