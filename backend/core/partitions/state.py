"""What one incarnation knows of the partitions: the state that the chapters of Avoid Data Loss on Migration read and change."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Reason, RecordId
from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.membership.state import Context, Membership
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.partitions.events import PlanCause
from quarterdeck.backend.core.partitions.messages import MigrationChunk, TableUpdate
from quarterdeck.backend.core.partitions.migration.migration import (
    CompletedMigration,
    MigrationEvent,
    MigrationService,
    PartitionMigration,
    StoreCursor,
)
from quarterdeck.backend.core.partitions.migration.migration_planner import MigrationStep
from quarterdeck.backend.core.partitions.table.partition_table import PartitionTable, VersionedRow


@dataclass(slots=True)
class OutgoingCopy:
    """The owner's side of a copy under way (chapter `migration_transfer`)."""

    begun_us: int
    resend_us: int
    cursor: StoreCursor = field(default_factory=StoreCursor)
    """How much of the data is sent."""
    in_flight: dict[int, MigrationChunk] = field(default_factory=dict)
    """Sent and not acknowledged, by number."""
    sent: int = 0
    bytes_sent: int = 0
    ended: bool = False
    """The last chunk is out."""
    finished: bool = False
    """The destination has everything, and the master knows."""
    problem: str = ""
    """Why the destination will not have it; the master knows."""


@dataclass(slots=True)
class ActiveMigration:
    """A migration that this member takes part in, and whose end it does not know (Avoid Data Loss on Migration, Terminology)."""

    migration: PartitionMigration
    event: MigrationEvent
    sending: OutgoingCopy | None = None
    """Only at the owner: the copy that it sends."""
    received: int = 0
    """At the destination: so many chunks were received."""
    early: dict[int, MigrationChunk] = field(default_factory=dict)
    """At the destination: chunks that have overtaken others."""
    complete: bool = False
    """At the destination: nothing more is needed."""
    accepted: RecordId | None = None
    """The record that this member takes part."""


RunningPhase = Literal["copying", "committing"]


@dataclass(slots=True)
class RunningMigration:
    """A migration that this master leads (chapters `migration_queue` and `safe_commit`)."""

    migration: PartitionMigration
    owner: Address
    owner_uuid: str
    deadline_us: int
    phase: RunningPhase = "copying"
    ask_again_us: int = 0
    latest: RecordId | None = None
    """The record of its beginning, later that its commit is asked for."""


@dataclass(slots=True)
class TableRecovery:
    """The search for the latest table by a new master (chapter `table_recovery`)."""

    token: str
    waiting: dict[Address, str]
    """Address and uuid of the incarnations that have neither answered nor left."""
    started: RecordId | None = None
    rows: dict[int, VersionedRow] = field(default_factory=dict)
    completed: dict[str, CompletedMigration] = field(default_factory=dict)
    active: dict[str, PartitionMigration] = field(default_factory=dict)
    uncommitted: set[str] = field(default_factory=set)
    """The migrations that their destinations take part in still."""
    answered: dict[Address, int] = field(default_factory=dict)


@dataclass(slots=True)
class TableFollower:
    """How far another member has come in learning the master's changes (chapter `table_publishing`)."""

    uuid: str
    acknowledged: int = -1
    """The number of the last change that it is known to have; -1 when it needs the whole table."""
    sent: int = -1
    """The number of the last change that was sent to it."""
    resend_us: int = 0
    resent_us: int = 0
    """When it was last sent what it had been sent before."""
    unanswered: int = 0
    """How often it was sent the same again since it answered last."""


NEW_MASTER: Reason[PlanCause] = Reason("new-master", "a new master leads")


class LiteChange(Struct, frozen=True):
    """A promotion, or a demotion to a lite member, for which a member waits until then at most."""

    lite: bool
    until_us: int


@dataclass(slots=True)
class MasterRole:
    """What only the master keeps. Made anew when a member becomes master."""

    lineage: str
    recovery: TableRecovery | None = None
    followers: dict[Address, TableFollower] = field(default_factory=dict)
    changes: int = 0
    """Counts the changes of the table and of the completed list."""
    changed: RecordId | None = None
    """The record of the last of them."""
    changed_at: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """By partition, the number of its last change, the latest last; without those that every member is known to have.

    What is emptied from its front all the time is an `OrderedDict`: a plain dictionary steps over all that was there before."""
    decided_at: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """By migration in the completed list, the number of its decision."""
    evicted_through: int = 0
    """Migrations decided up to this change are known everywhere and forgotten."""
    queue: OrderedDict[int, deque[MigrationStep]] = field(default_factory=OrderedDict)
    """What is planned and not begun, by partition. The names in the steps are uuids."""
    running: dict[int, RunningMigration] = field(default_factory=dict)
    """The migrations that are under way, by partition."""
    members_busy: bool = False
    """Nothing in the queue may begin before something that runs has ended."""
    wants_plan: bool = True
    """Something has changed: the queue is void, and a new plan is made when nothing runs."""
    plan_reason: Reason[PlanCause] = NEW_MASTER
    """What has changed since the last plan."""
    planned: RecordId | None = None
    """The record of the plan that is carried out."""
    repair_due: bool = True
    """Holders may have left since the table was repaired last."""
    replicas_wanted: int = 0
    """How many replicas the plan has of every partition."""
    not_before_us: int = 0
    """After a failure the next plan waits so long."""
    failures: int = 0
    """Failures in a row."""
    next_start_us: int = 0
    newcomers: bool = True
    """Whether a member on the list has never been sent a table."""
    leaving: dict[str, Address] = field(default_factory=dict)
    """Incarnations that want to leave or to be demoted, and have to wait until their data is elsewhere."""
    demoting: dict[str, int] = field(default_factory=dict)
    """Those of them that stay, as lite members, and when that is forgotten unless they ask again."""
    promotions_until_us: int = 0
    """Until then the last data members that leave wait for a promotion of which this master may not have heard yet."""
    shutdown_granted: set[str] = field(default_factory=set)
    """Those of them that may leave."""
    next_comparison_us: int = 0
    """When the followers' tables are compared next."""
    flush_us: int = 0
    """When changes are sent to members that have no part in them; 0 when there are none."""


@dataclass(slots=True)
class Partitions:
    """One incarnation's table, its part in migrations, and, on the master, everything that it leads."""

    table: PartitionTable | None = None
    """None until the first arrangement."""
    changed_rows: set[int] = field(default_factory=set)
    """Partitions whose rows have changed since the chapters of data were informed."""
    completed: dict[str, CompletedMigration] = field(default_factory=dict)
    """The completed migrations list, by id, in order of their decisions."""
    active: dict[int, ActiveMigration] = field(default_factory=dict)
    """The migrations in which this member takes part, by partition."""
    master_role: MasterRole | None = None
    members: MemberList | None = None
    standing: ClusterStanding | None = None
    """The list and the state of the cluster that the chapters of partitions know."""
    draining_until_us: int | None = None
    """While this member waits to leave gracefully: until when at most."""
    drained: bool = False
    """Whether the master has let this member go."""
    cluster_stops: bool = False
    """Whether this member leaves because its whole cluster stops."""
    lite_change: LiteChange | None = None
    """What this member asks its master for: to hold data, or none any more."""
    wants_arrangement: bool = False
    """Whether this member waits for the first table."""
    heard: tuple[str, int] = ("", 0)
    """The master whose changes were heard of last, and the number up to which all of them were."""
    early: dict[int, TableUpdate] = field(default_factory=dict)
    """Publications of that master that came before the one that they follow on, by the number after which they begin."""
    listed: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """By completed migration, the number of its decision in the publications of that master."""
    rejected: dict[int, str] = field(default_factory=dict)
    """By partition, the migration that was rejected last: that is recorded only once."""
    unlisted: set[str] = field(default_factory=set)
    """Migrations that this member committed as destination, and that no publication has listed yet."""

    def is_migrating(self, partition: int) -> bool:
        return partition in self.active


@dataclass(slots=True, eq=False)
class PartitionContext(Context):
    """The context of a member that holds partitions: it has the service that keeps data in them."""

    service: MigrationService = field(init=False)


@dataclass(slots=True)
class PartitionedMember(Membership):
    """A member with what it knows of partitions. Chapters of membership are handed it as a `Membership`."""

    context: PartitionContext = field(compare=False, repr=False)
    partitions: Partitions = field(default_factory=Partitions)

    @property
    def brings_entries(self) -> bool:
        """Whether data that this incarnation brought along from another cluster is not all placed yet."""
        raise NotImplementedError

    @property
    def master_role(self) -> MasterRole:
        """What only the master keeps. Only for masters."""
        master_role = self.partitions.master_role
        assert master_role is not None
        return master_role

    @property
    def table(self) -> PartitionTable:
        """The partition table. Only where there is one."""
        table = self.partitions.table
        assert table is not None
        return table
