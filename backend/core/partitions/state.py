"""What one life knows of the partitions: the state that the chapters of seed 004 read and change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from backend.core.address import Address
from backend.core.cluster_profile import ClusterStanding
from backend.core.membership.member_list import MemberList
from backend.core.partitions.migration import Decided, Migration
from backend.core.partitions.migration_planner import Step
from backend.core.partitions.migration_service import MigrationEvent, MigrationService
from backend.core.partitions.partition_table import PartitionTable
from backend.core.partitions.replica import VersionedRow


@dataclass(slots=True)
class Sending:
    """The owner's side of a copy under way (chapter `migration_transfer`)."""

    chunks: Iterator[tuple[str, bytes]]
    """What is still to be sent: the name of the service, and its chunk."""
    begun_us: int
    unacknowledged: dict[int, tuple[str, bytes, bool]] = field(default_factory=dict)
    """Sent, by number: service, payload, and whether it was the last."""
    next_number: int = 0
    bytes_sent: int = 0
    exhausted: bool = False
    resend_us: int = 0
    finished: bool = False
    """The destination has everything; the master was told."""
    delay_us: int = 0


@dataclass(slots=True)
class Active:
    """A migration that this member takes part in, and whose end it does not know (seed 004, Terminology)."""

    migration: Migration
    event: MigrationEvent
    begun_us: int
    sending: Sending | None = None
    """At the owner."""
    received: int = 0
    """At the destination: so many chunks were taken in."""
    complete: bool = False
    """At the destination: nothing more is needed."""


RunningPhase = Literal["copying", "committing"]


@dataclass(slots=True)
class Running:
    """A migration that this master leads (chapters `migration_queue` and `safe_commit`)."""

    migration: Migration
    owner: Address
    owner_uuid: str
    phase: RunningPhase
    deadline_us: int
    ask_again_us: int


@dataclass(slots=True)
class Recovery:
    """The search for the latest table by a new master (chapter `table_recovery`)."""

    token: str
    waiting: dict[Address, str]
    """Address and life of those that have neither answered nor left."""
    rows: dict[int, VersionedRow] = field(default_factory=dict)
    completed: dict[str, Decided] = field(default_factory=dict)
    active: dict[str, Migration] = field(default_factory=dict)
    answered: dict[Address, int] = field(default_factory=dict)


@dataclass(slots=True)
class Follower:
    """How far another member has come in learning the master's changes (chapter `table_publishing`)."""

    uuid: str
    acknowledged: int = 0
    """The number of the last change that it is known to have."""
    told: int = 0
    """The number of the last change that was sent to it."""
    resend_us: int = 0
    needs_all: bool = True


@dataclass(slots=True)
class Leading:
    """What only the master keeps. Made anew when a member becomes master."""

    lineage: str
    recovery: Recovery | None = None
    followers: dict[Address, Follower] = field(default_factory=dict)
    changes: int = 0
    """Counts the changes of the table and of the completed list."""
    changed_at: dict[int, int] = field(default_factory=dict)
    """By partition, the number of its last change, the latest last; those that every member has are dropped."""
    decided_at: dict[str, int] = field(default_factory=dict)
    """By migration in the completed list, the number of its decision."""
    queue: dict[int, deque[Step]] = field(default_factory=dict)
    """What is planned and not begun, by partition. The names in the steps are uuids."""
    running: dict[int, Running] = field(default_factory=dict)
    """By partition."""
    wants_plan: bool = False
    """Something has changed: the queue is void, and a new plan is made when nothing runs."""
    not_before_us: int = 0
    """After a failure the next plan waits so long."""
    failures: int = 0
    """Failures in a row."""
    next_start_us: int = 0
    leavers: dict[str, Address] = field(default_factory=dict)
    """Lives that want to leave, and were told to wait."""
    wants_arrangement: bool = False


class Partitions:
    """One life's table, its part in migrations, and, on the master, everything that it leads."""

    __slots__ = (
        "active",
        "asked_arrangement_us",
        "completed",
        "draining_until_us",
        "leading",
        "members",
        "services",
        "standing",
        "table",
    )

    def __init__(self) -> None:
        self.table: PartitionTable | None = None
        """None until the first arrangement."""
        self.completed: dict[str, Decided] = {}
        """The completed migrations list, by id, in order of their decisions."""
        self.active: dict[int, Active] = {}
        """By partition."""
        self.services: tuple[MigrationService, ...] = ()
        self.leading: Leading | None = None
        self.members: MemberList | None = None
        self.standing: ClusterStanding | None = None
        """The list and the state of the cluster that the partitions have been told of."""
        self.draining_until_us: int | None = None
        """While this member waits to leave gracefully: for how long at most."""
        self.asked_arrangement_us = 0
        """While this member waits for the first table: when to ask again; 0 when it does not."""

    def is_migrating(self, partition: int) -> bool:
        """Whether this member takes part in a migration of the partition whose end it does not know."""
        return partition in self.active
