"""What happens to the partition table and in migrations (Avoid Data Loss on Migration), as events.

Part of the union in `backend.core.events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64
from quarterdeck.backend.core.partitions.migration.migration import Endpoint, Kind


class Holder(Struct, frozen=True):
    """An incarnation that is named in rows of a table."""

    address: Address
    uuid: str


TableCause = Literal["arranged", "repaired", "migration", "recovered", "published"]


class TableChanged(Struct, frozen=True, tag_field="kind", tag="table-changed"):
    """The member's partition table is now this one.

    `rows` contains only what has changed: partition, version of the partition, then for every replica index the place of
    its holder in `holders`, -1 for none. `table_version` is the sum of all versions. `author` is the incarnation that made
    the change.
    """

    table_version: Int64
    digest: str
    partitions: Int64
    holders: tuple[Holder, ...]
    rows: tuple[tuple[Int64, ...], ...]
    author: str
    cause: TableCause

    def __post_init__(self) -> None:
        """Refuse rows that name no holder of these: a line of a journal with such a row is no record."""
        places = _places(len(self.holders))
        for row in self.rows:
            held = row[2:]
            if not held:
                raise ValueError("a row of the table is too short")
            if not places.issuperset(held):
                raise ValueError("a row of the table names a holder that is not there")


@lru_cache(maxsize=64)
def _places(holder_count: int) -> frozenset[int]:
    return frozenset(range(-1, holder_count))


ALL_LOST = 6
"""The `lost_backups` of a partition of which no replica is left: up to the last backup that there can be."""


# `omit_defaults`: what only a witness judges stays out of the journals and fingerprints of our own members.
class PartitionLost(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="partition-lost"):
    """Replicas up to index `lost_backups` are gone: 0, the owner only; 6, all, and the partition begins empty.

    Whether data went depends on how many backups a map has (Hazelcast: lost partitions). A member of ours knows: only where no
    replica is left. A witness of other members judges it by their configuration.
    """

    partition: Int64
    lost_backups: Int64
    data_lost: bool | None = None
    """Whether entries went, as a witness judges; None where the member itself knows."""
    lost_maps: tuple[str, ...] = ()
    """The maps, by name or pattern, that have no more backups than were lost, where their configuration is known."""

    @property
    def loses_data(self) -> bool:
        """Whether entries of at least one map went."""
        return self.lost_backups >= ALL_LOST if self.data_lost is None else self.data_lost


MAPS_NAMED = 3
"""So many maps are named in a sentence; of more the number is said."""


def lost_partitions_text(partitions: int, lost_backups: int, maps: Sequence[str]) -> str:
    """Return how many partitions lost data, and which maps: by name, or by the backups that were too few, as far as is known."""
    text = f"{partitions} partition{'' if partitions == 1 else 's'}"
    if maps:
        more = f" and {len(maps) - MAPS_NAMED} more" if len(maps) > MAPS_NAMED else ""
        return f"{text} of {', '.join(maps[:MAPS_NAMED])}{more}"
    if lost_backups >= ALL_LOST:
        return text
    return f"{text} for maps with at most {lost_backups} backup{'' if lost_backups == 1 else 's'}"


class TableRecoveryStarted(Struct, frozen=True, tag_field="kind", tag="table-recovery-started"):
    """A new master asks these members for their tables (Avoid Data Loss on Migration, 1.2)."""

    asked: tuple[Address, ...]


class TableRecovered(Struct, frozen=True, tag_field="kind", tag="table-recovered"):
    """All members have answered or left; the table now in force has the latest row of every partition.

    `answered` gives the table version in each answer, by member. Migrations that were under way are settled (2.2).
    """

    table_version: Int64
    answered: dict[Address, Int64]
    committed_ids: tuple[str, ...]
    rolled_back_ids: tuple[str, ...]


class PlannedMigration(Struct, frozen=True):
    """One migration of the queue, in the order of its partition. Without a source it is a copy."""

    partition: Int64
    type: Kind
    source: Address | None
    destination: Address | None
    replica_index: Int64
    """The index at which the destination arrives."""
    unavoidable: bool = False


PlanCause = Literal[
    "new-master", "arranged", "member-leaves", "members-changed", "state-changed", "migration-failed",
    "partition-changed", "unknown",
]  # fmt: skip
"""What makes a plan void, and another one due."""

RejectionCause = Literal[
    "not-joined", "other-master", "state", "version", "migration-before", "not-owner", "destination-not-listed",
    "over", "other-incarnation", "beginning-missing", "unknown",
]  # fmt: skip
"""Why a participant does not take part in a migration."""

FailureCause = Literal[
    "", "copy-refused", "copy-too-slow", "commit-refused", "participant-left", "master-left", "unknown",
]  # fmt: skip
"""Why a migration is rolled back; empty when it is committed."""

DrainCause = Literal["nothing-left", "no-migrations", "all-leave", "unknown"]


class MigrationsPlanned(Struct, frozen=True, tag_field="kind", tag="migrations-planned"):
    """The master has planned the migrations: `planned` is the whole queue, which replaces the one before.

    Both numbers count copies of replicas; see `arrangement`. If nothing is planned, the table is as it should be (Avoid
    Data Loss on Migration, 3.2).
    """

    planned: tuple[PlannedMigration, ...]
    moves: Int64
    lower_bound: Int64
    why: str
    cause: PlanCause = "unknown"
    without: tuple[Address, ...] = ()
    """Members that hold data and are to hold none: they leave, or are to be demoted."""


class MigrationsCancelled(Struct, frozen=True, tag_field="kind", tag="migrations-cancelled"):
    """The migrations in the queue are dropped; those that run end by themselves."""

    remaining: Int64
    reason: str
    cause: PlanCause = "unknown"


class MigrationStarted(Struct, frozen=True, tag_field="kind", tag="migration-started"):
    """The master begins a migration; `partition_version` is the version from which it starts."""

    migration_id: str
    partition: Int64
    type: Kind
    partition_version: Int64
    source: Address | None
    source_current: Int64
    source_new: Int64
    destination: Address
    destination_current: Int64
    destination_new: Int64
    owner: Address
    """The member that sends the data."""
    available: Int64
    """Replicas of the partition before it."""
    replicas_wanted: Int64
    """Replicas that the plan has for every partition."""
    unavoidable: bool


class MigrationAccepted(Struct, frozen=True, tag_field="kind", tag="migration-accepted"):
    """A participant waits for the end of this migration and takes part in no other one of the partition."""

    migration_id: str
    partition: Int64
    endpoint: Endpoint
    current_replica_index: Int64
    new_replica_index: Int64


class MigrationRejected(Struct, frozen=True, tag_field="kind", tag="migration-rejected"):
    """A participant does not take part (Avoid Data Loss on Migration, 2.1)."""

    migration_id: str
    partition: Int64
    endpoint: Endpoint
    reason: str
    cause: RejectionCause = "unknown"


class MigrationCopied(Struct, frozen=True, tag_field="kind", tag="migration-copied"):
    """The owner knows that the destination has all the data."""

    migration_id: str
    partition: Int64
    chunks: Int64
    bytes: Int64
    took: Int64
    """Microseconds."""


class MigrationCommitting(Struct, frozen=True, tag_field="kind", tag="migration-committing"):
    """The master asks the destination to commit."""

    migration_id: str
    partition: Int64


class MigrationDecided(Struct, frozen=True, tag_field="kind", tag="migration-decided"):
    """The master decided: the migration is committed, or rolled back for a reason."""

    migration_id: str
    partition: Int64
    committed: bool
    partition_version: Int64
    """After the decision."""
    reason: str
    cause: FailureCause = "unknown"


class MigrationFinished(Struct, frozen=True, tag_field="kind", tag="migration-finished"):
    """A participant has learnt the end of a migration and acted on it: the event of migration listeners.

    See Avoid Data Loss on Migration, User Interaction.
    """

    migration_id: str
    partition: Int64
    endpoint: Endpoint
    committed: bool
    current_replica_index: Int64
    new_replica_index: Int64


class CompletedEvicted(Struct, frozen=True, tag_field="kind", tag="completed-evicted"):
    """The master forgets these migrations: every member has acknowledged a table that knows their end.

    See Avoid Data Loss on Migration, 2.1.
    """

    migration_ids: tuple[str, ...]


class DrainStarted(Struct, frozen=True, tag_field="kind", tag="drain-started"):
    """The master moves all data away from a member that wants to leave (Hazelcast: graceful shutdown)."""

    address: Address


class DrainFinished(Struct, frozen=True, tag_field="kind", tag="drain-finished"):
    """The member may leave: it holds nothing any more, or `reason` says why that is not waited for."""

    address: Address
    reason: str
    cause: DrainCause = "unknown"


PartitionEvent = (
    TableChanged | PartitionLost | TableRecoveryStarted | TableRecovered | MigrationsPlanned | MigrationsCancelled |
    MigrationStarted | MigrationAccepted | MigrationRejected | MigrationCopied | MigrationCommitting |
    MigrationDecided | MigrationFinished | CompletedEvicted | DrainStarted | DrainFinished
)  # fmt: skip
