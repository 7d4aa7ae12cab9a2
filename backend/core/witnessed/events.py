"""What a witness knows of members that keep no journal, as events of the union in `backend.core.events`.

Members of Hazelcast are such. A console that listens to them or reads their logs records for them, and says with
`MemberWitnessed` which aspects of a member it can know. Everything else about that member is unknown, which is neither none nor
well.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64
from quarterdeck.backend.core.partitions.events import Holder

Aspect = Literal[
    "heartbeats", "suspicions", "claims", "merge-verdicts", "owners", "backups", "table-version", "migration-queue",
    "migration-ends", "losses", "join-list", "cluster-state", "settings", "links", "data",
]  # fmt: skip
"""A part of what a member knows and does. The member list is known of every member."""

ASPECTS: frozenset[Aspect] = frozenset(get_args(Aspect))

Source = Literal["logs", "client-protocol"]
"""What a witness knows it from: the member's log, or what the member sends to its clients."""

IDLE_US = 6_000_000
"""A connection to which a member has written nothing for so long is idle: by default it sends heartbeats every 5 seconds."""

ConnectionState = Literal["connected", "merging", "silent", "refused", "gone", "forgotten"]
"""How the witness reaches a member: it answers; it says that it is not ready yet, for it starts or merges; nothing arrives from
it, though nothing shows that it is gone; it refuses the witness, or is no member of that cluster (the reason says whether for its
name, credentials or TLS); no process is there; the witness looks for it no more, since it is on no list and was not reached for
long."""


class MemberWitnessed(Struct, frozen=True, tag_field="kind", tag="member-witnessed"):
    """From here on a witness records for this incarnation, by these `sources`, and only the aspects in `tells`.

    It is the first event of an incarnation, and comes again when the aspects change.
    """

    sources: tuple[Source, ...]
    tells: tuple[Aspect, ...]


class OwnersTold(Struct, frozen=True, tag_field="kind", tag="owners-told"):
    """Which member owns which partition, as this member reports to its clients; backups and versions are not reported.

    `owners` has for every partition the place of its owner in `holders`, -1 for none. Tables are compared by `digest`, which
    the witness makes of the owners, and by `state_stamp`, the member's own digest of its whole table, where it is known.
    """

    holders: tuple[Holder, ...]
    owners: tuple[Int64, ...]
    digest: str
    state_stamp: Int64 | None = None

    def __post_init__(self) -> None:
        """Refuse owners that are not among the holders: a line of a journal with such an owner is no record."""
        if self.owners and not -1 <= min(self.owners) <= max(self.owners) < len(self.holders):
            raise ValueError("a partition has an owner that is not there")


class ReplicaMigrated(Struct, frozen=True, tag_field="kind", tag="replica-migrated"):
    """A replica has moved, or could not be moved; the beginning was not reported. `took` is in microseconds.

    `planned_count` and `done_count` are of the migrations of the round that it belongs to.
    """

    partition: Int64
    index: Int64
    source: Address | None
    destination: Address | None
    succeeded: bool
    took: Int64
    planned_count: Int64
    done_count: Int64


class ConnectionChanged(Struct, frozen=True, tag_field="kind", tag="connection-changed"):
    """How the witness reaches the member from now on, and why."""

    state: ConnectionState
    reason: str = ""


class LinkMeasured(Struct, frozen=True):
    """The connections of a member to another one, as it writes to them. Whether the other one receives it is not known."""

    address: Address
    connections: Int64
    """0 where there had been some, while the other one stayed on the list."""
    idle: Int64 | None = None
    """How long nothing was written to any of them, in microseconds."""
    queued: Int64 | None = None
    """How many packets wait to be written."""


class MemberMeasured(Struct, frozen=True, tag_field="kind", tag="member-measured"):
    """What the metrics of a member say of its work and its process; null is not known. Recorded when much of it has changed.

    Times are in microseconds, sizes in bytes.
    """

    queued_migrations: Int64 | None = None
    """How many tasks wait in a master's queue: migrations, and those that plan and check them."""
    planned_migrations: Int64 | None = None
    """How many the present round of migrations has, or the latest one."""
    completed_migrations: Int64 | None = None
    """How many of them are done."""
    owned_partitions: Int64 | None = None
    """How many partitions it owns; none does before data is stored for the first time."""
    replica_syncs: Int64 | None = None
    """How many requests for the data of replicas are under way."""
    heartbeat_age: Int64 | None = None
    """How long ago the member last sent heartbeats, by its own clock."""
    clock_ahead: Int64 | None = None
    """How far its clock is ahead of the cluster's, which its master gives; below 0 it is behind. A master's own pauses count."""
    heap_used: Int64 | None = None
    """How much of its heap is used."""
    heap_max: Int64 | None = None
    """How much its heap can have."""
    span: Int64 = 0
    """The time since the metrics before; 0 for the first ones."""
    collecting: Int64 | None = None
    """How much of `span` went into collecting garbage."""
    cpu_percent: Int64 | None = None
    """How much of all its processors the process uses."""
    open_files: Int64 | None = None
    """File descriptors of the process."""
    max_files: Int64 | None = None
    """How many file descriptors it may have."""
    queued_operations: Int64 | None = None
    """Operations that wait for a thread."""
    pending_invocations: Int64 | None = None
    """Operations that it has sent to others, or to itself, and that are not answered."""
    clients: Int64 | None = None
    """Clients that are connected to it, consoles such as this one among them."""
    cp_groups: Int64 | None = None
    """Groups of its CP subsystem."""
    cp_missing: Int64 | None = None
    """CP members that are not there."""
    strained_links: tuple[LinkMeasured, ...] | None = None
    """Connections to other members that are gone, to which nothing was written for 6 s or more, or where packets pile up."""
    unlinked: tuple[Address, ...] | None = None
    """Members on its list to which no connection of it was seen yet; to all others that are not strained it writes."""


class JoinerRefused(Struct, frozen=True, tag_field="kind", tag="joiner-refused"):
    """The member, as master, logged that it refused `joiner`, which wants to join."""

    joiner: Address
    reason: str


class LeaveRequested(Struct, frozen=True, tag_field="kind", tag="leave-requested"):
    """The member at `address`, the incarnation `leaving_uuid`, asked this one, its master, to let it leave."""

    address: Address
    leaving_uuid: str


class MigrationsRemaining(Struct, frozen=True, tag_field="kind", tag="migrations-remaining"):
    """The master logged that `count` migrations are left; it does so again and again while any are."""

    count: Int64


class MigrationFailed(Struct, frozen=True, tag_field="kind", tag="migration-failed"):
    """The master logged that a migration failed; it plans it anew. `migration` is what it prints of it."""

    partition: Int64 | None
    migration: str


class InvocationsSlow(Struct, frozen=True, tag_field="kind", tag="invocations-slow"):
    """The member noted in its diagnostics that `count` of its invocations have waited for an answer for seconds.

    The longest is `operation`, sent to `target`, for `waited` microseconds so far.
    """

    count: Int64
    operation: str
    target: Address | None
    waited: Int64


WitnessEvent = (
    MemberWitnessed | OwnersTold | ReplicaMigrated | ConnectionChanged | MemberMeasured | JoinerRefused | LeaveRequested
    | MigrationsRemaining | MigrationFailed | InvocationsSlow
)  # fmt: skip
