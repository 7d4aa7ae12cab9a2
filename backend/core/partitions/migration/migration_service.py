"""What a service that keeps data in partitions does when they migrate (Avoid Data Loss on Migration, User Interaction).

The distributed map is one such service; others can be added beside it.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import Struct

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
