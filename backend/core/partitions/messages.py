"""What members say to one another about the partition table and migrations.

See Avoid Data Loss on Migration; Hazelcast: partitions.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.causes import LiteRefusalCause
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.table.partition_table import PackedRows


class ArrangeRequest(Struct, frozen=True, tag="arrange-request", array_like=True):
    """A member needs partitions and there is no table yet: the master is asked to arrange them (Hazelcast: first arrangement)."""


class TableUpdate(Struct, frozen=True, tag="table-update", array_like=True):
    """From the master: the rows and the ends of migrations that are new since its change `since`; -1 for all that there are.

    `number` counts the changes of the incarnation `master`, and is what the receiver acknowledges. `completed` has the number of
    each decision; those up to `evicted_through` are known everywhere and forgotten. `digest` is that of the master's whole
    table, which has so many `partitions`. An update without rows only compares (Hazelcast: table distribution).
    """

    master: str
    since: int
    number: int
    rows: PackedRows
    completed: tuple[tuple[int, CompletedMigration], ...]
    evicted_through: int
    digest: int
    partitions: int


class TableAck(Struct, frozen=True, tag="table-ack", array_like=True):
    """The incarnation `uuid` has every change up to `number`. `equal`: its table now has the digest of the master's.

    The same number twice means that an update did not follow on what the receiver has: one in between was lost.
    """

    uuid: str
    number: int
    equal: bool


class MigrationRequest(Struct, frozen=True, tag="migration-request", array_like=True):
    """The master asks the owner to copy its partition to the migration's destination (2.1)."""

    migration: PartitionMigration


class MigrationReport(Struct, frozen=True, tag="migration-report", array_like=True):
    """The owner reports to the master that the destination has the data; or, with a `problem`, that it will not have it.

    With `retry` nothing is wrong but that a member has not heard the latest yet.
    """

    migration_id: str
    problem: str
    retry: bool = False


class MigrationChunk(Struct, frozen=True, tag="migration-chunk", array_like=True):
    """Part of the data, from the owner to the destination. Numbers count from 0; one without a service ends the copy."""

    migration: PartitionMigration
    number: int
    service: str
    payload: bytes


class MigrationChunkAck(Struct, frozen=True, tag="migration-chunk-ack", array_like=True):
    """All chunks up to `number` are received. `enough` when the last one had the rest of the data, `complete` also at the end.

    A `problem` ends the copy, but with `retry` only for a moment.
    """

    migration_id: str
    number: int
    enough: bool
    complete: bool
    problem: str = ""
    retry: bool = False


class MigrationCommit(Struct, frozen=True, tag="migration-commit", array_like=True):
    """The master orders the destination to commit; it repeats that until it is answered or the destination has left (2.1)."""

    migration: PartitionMigration


class MigrationCommitAck(Struct, frozen=True, tag="migration-commit-ack", array_like=True):
    """The destination has committed; or it refuses, and has not and never will."""

    migration_id: str
    committed: bool


class TableFetch(Struct, frozen=True, tag="table-fetch", array_like=True):
    """A new master asks for everything that the receiver knows of the table (1.2)."""

    token: str


class TableAnswer(Struct, frozen=True, tag="table-answer", array_like=True):
    """The table, the completed migrations and those whose end is not known here (2.2). No rows: there is no table here."""

    token: str
    rows: PackedRows
    completed: tuple[CompletedMigration, ...]
    active: tuple[PartitionMigration, ...]


class ShutdownRequest(Struct, frozen=True, tag="shutdown-request", array_like=True):
    """The incarnation `uuid` wants to leave once it holds no data that others need (Hazelcast: graceful shutdown)."""

    uuid: str


class ShutdownGranted(Struct, frozen=True, tag="shutdown-granted", array_like=True):
    """Nothing is left that the incarnation `uuid` has to stay for."""

    uuid: str


class LiteChangeRequest(Struct, frozen=True, tag="lite-change-request", array_like=True):
    """The incarnation `uuid` asks the master to be a lite member from now on, or none; sent again until it is or is refused."""

    uuid: str
    lite: bool


class LiteChangeRefusal(Struct, frozen=True, tag="lite-change-refusal", array_like=True):
    """The master's answer to the incarnation `uuid` if it cannot be so."""

    uuid: str
    lite: bool
    reason: str
    cause: LiteRefusalCause


PartitionMessage = (
    ArrangeRequest | TableUpdate | TableAck | MigrationRequest | MigrationReport | MigrationChunk | MigrationChunkAck |
    MigrationCommit | MigrationCommitAck | TableFetch | TableAnswer | ShutdownRequest | ShutdownGranted |
    LiteChangeRequest | LiteChangeRefusal
)  # fmt: skip
