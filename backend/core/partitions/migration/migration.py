"""One migration: what it changes, and what became of it.

See Avoid Data Loss on Migration, sections 2 and 3; Hazelcast: one migration.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import Struct

from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.core.partitions.migration.migration_steps import Kind
from quarterdeck.backend.core.partitions.table.partition_table import Replica, Replicas

Endpoint = Literal["source", "destination"]


class MigrationEvent(Struct, frozen=True):
    """One side of one migration, seen by the member that is on it. Index -1: the member holds no replica.

    The member that sends the data, always the owner, is a source even where its own replica stays as it is; so is a backup that
    gives its replica up.
    """

    migration_id: str
    partition: int
    endpoint: Endpoint
    current_replica_index: int
    """Before the migration."""
    new_replica_index: int
    """Once the migration is committed."""


class StoreCursor(Struct):
    """How much of a store is sent: plain data, so that a member can be copied in the middle of a transfer."""

    sessions: list[tuple[str, tuple[int, tuple[Answer, ...]]]] | None = None
    """Those that are still to be sent, the next one last; None before the head is sent."""
    maps: list[str] = []
    """The maps of which nothing is sent, the next one last."""
    map: str = ""
    keys: list[str] = []
    """The keys of `map` that are still to be sent, the next one last."""


class MigrationService(Protocol):
    """Whatever stores data by partitions. Its rule: data stays while the member's replica index is 0 or above.

    For every migration `before` comes first and exactly one of `commit` and `rollback` last. Nothing of the partition is changed
    by clients between them at the source.
    """

    @property
    def name(self) -> str:
        """Names it among the services of a member; the same everywhere."""
        ...

    def before(self, now: int, event: MigrationEvent) -> None:
        """Prepare for a migration that begins here."""
        ...

    def begin_copy(self, partition: int) -> Any:
        """At the owner: the place before the partition's first chunk. It is plain data, which can be stored and compared."""
        ...

    def next_chunk(self, partition: int, cursor: Any, chunk_bytes: int) -> bytes | None:
        """At the owner: the next chunk of about so many bytes, and `cursor` moves past it; None when there is no more.

        The first one is made to let the destination say that it has all of it already.
        """
        ...

    def receive(self, now: int, event: MigrationEvent, chunk: bytes) -> bool:
        """At the destination: take a chunk in, beside what is there already. True when nothing more is needed."""
        ...

    def commit(self, now: int, event: MigrationEvent) -> None:
        """Adopt the replicas that this migration brought and drop those no longer held."""
        ...

    def rollback(self, now: int, event: MigrationEvent) -> None:
        """Drop what the migration brought; what was there before stays."""
        ...

    def placed(self, now: int, partition: int, before: int, index: int) -> None:
        """Note that the table in force has this member at another replica index, whatever the reason.

        It comes after `commit`, if that was the reason. Index -1 before: the partition begins empty here, unless its data came by
        a migration. Index -1 now: its data goes.
        """
        ...


SUCCESS_INCREMENT = 1
FAILURE_INCREMENT = 2
"""A failed migration raises the partition's version by 2, so that no table of a success can ever equal it (Avoid Data Loss on
Migration, 2.1)."""


class PartitionMigration(Struct, frozen=True, array_like=True):
    """One step of one partition, done wholly or not at all. Index -1 stands for none, as in `migration_planner.Step`.

    `version` is that of the partition from which the migration starts, `master` the incarnation that leads it.
    """

    id: str
    partition: int
    type: Kind
    version: int
    source: Replica | None
    source_current: int
    source_new: int
    destination: Replica
    destination_current: int
    destination_new: int
    master: Replica
    unavoidable: bool = False

    def applied_to(self, replicas: Replicas) -> Replicas:
        """Return the row after the migration."""
        after: list[Replica | None] = list(replicas)
        for index in (self.source_current, self.destination_current):
            if index >= 0:
                after[index] = None
        if self.source_new >= 0:
            after[self.source_new] = self.source
        after[self.destination_new] = self.destination
        return tuple(after)


class CompletedMigration(Struct, frozen=True, array_like=True):
    """An entry of the completed migrations list: the one decision about a migration.

    See Avoid Data Loss on Migration, Terminology.
    """

    migration: PartitionMigration
    committed: bool

    @property
    def final_version(self) -> int:
        """The partition's version after the decision."""
        return self.migration.version + (SUCCESS_INCREMENT if self.committed else FAILURE_INCREMENT)
