"""A member's partition table, and the migrations that it leads or takes part in (docs/reference/http-api.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import Holder, MigrationAccepted, PlannedMigration
from quarterdeck.backend.core.partitions.migration.migration import Kind
from quarterdeck.backend.picture.fold.migrations import Phase, Recovery


class Table(Struct, frozen=True):
    """Rows of the partition table.

    Each row is the partition, its version, and for every replica index the place of its holder in `holders`, -1 for nobody.
    `next` is where to go on, null after the last row.
    """

    table_version: int
    digest: str
    partitions: int
    replicas: Annotated[int, Meta(description="How many replica indices there are.")]
    holders: tuple[Holder, ...]
    rows: tuple[tuple[int, ...], ...]
    next: int | None


class Migration(Struct, frozen=True):
    """A migration that was begun: of which partition, from where to where."""

    migration_id: str
    partition: int
    type: Kind
    source: Address | None
    source_current: int
    source_new: int
    destination: Address
    destination_current: int
    destination_new: int
    owner: Address
    unavoidable: bool


class Running(Migration, frozen=True):
    """A migration under way, and how far it is."""

    phase: Phase
    since_us: int


class Finished(Migration, frozen=True):
    """A migration that ended, and how."""

    committed: bool
    reason: str
    at_us: int
    took_us: int


class LostPartition(Struct, frozen=True):
    """A partition that lost all its replicas, and when."""

    partition: int
    at_us: int


class Draining(Struct, frozen=True):
    """A member that gives its data away before it leaves."""

    address: Address
    since_us: int


class Migrations(Struct, frozen=True):
    """What this member leads as a master, and what it takes part in. Of long lists only the beginning, or the end, is there."""

    leading: bool
    recovering: Recovery | None
    draining: tuple[Draining, ...]
    moves: int
    lower_bound: int
    why: str
    cancelled: int
    queued: int
    running_count: int
    done: int
    failed: int
    lost: int
    planned: tuple[PlannedMigration, ...]
    running: tuple[Running, ...]
    taking_part: Annotated[
        tuple[MigrationAccepted, ...], Meta(description="Those that it takes part in, and whose end it does not know.")
    ]
    ended: Annotated[tuple[Finished, ...], Meta(description="The latest first.")]
    lost_partitions: tuple[LostPartition, ...]
