"""What happens to data, as events. Part of the union in `backend.core.events`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64


class CallStarted(Struct, frozen=True, tag_field="kind", tag="call-started"):
    """A client that is watched asks this member for an operation on one key. `call` counts the calls of this incarnation."""

    call: Int64
    operation: Literal["put", "get", "remove"]
    map: str
    key: str
    value: str
    """The value of a put, as text; empty otherwise."""


class CallFinished(Struct, frozen=True, tag_field="kind", tag="call-finished"):
    """The client has its answer. After a problem a write may have been done or not, unless it is `untouched`.

    `value` is what a get found, or what was there before a put or a remove; `found` distinguishes an empty value from none.
    """

    call: Int64
    operation: Literal["put", "get", "remove"]
    map: str
    key: str
    partition: Int64
    value: str
    found: bool
    took: Int64
    """Microseconds."""
    problem: str
    untouched: bool


OutOfStepCause = Literal["other-digest", "writes-missing", "copy-damaged", "unknown"]


class BackupOutOfStep(Struct, frozen=True, tag_field="kind", tag="backup-out-of-step"):
    """A backup does not have what its owner has, and asks for the whole partition (Hazelcast: anti-entropy)."""

    partition: Int64
    owner: Address
    reason: str
    cause: OutOfStepCause = "unknown"


class BackupInStep(Struct, frozen=True, tag_field="kind", tag="backup-in-step"):
    """The backup has all that its owner has: by a whole copy, by a migration, or as the owner found by comparing."""

    partition: Int64
    owner: Address
    entries: Int64
    bytes: Int64


class EntriesMerged(Struct, frozen=True, tag_field="kind", tag="entries-merged"):
    """After a merge of clusters this member has offered its entries to the winner's partitions."""

    policy: str
    offered: Int64
    taken: Int64
    problem: str
    """Why the rest could not be offered; empty when all were."""


class EntriesEvicted(Struct, frozen=True, tag_field="kind", tag="entries-evicted"):
    """The owner of a partition has removed entries of a map to make room for others: they were used longest ago."""

    partition: Int64
    map: str
    keys: tuple[str, ...]
    """Of the entries that are gone."""


class MapMeasured(Struct, frozen=True, omit_defaults=True):
    """One map at one owner: what it contains now, and the operations on single keys since the last such event.

    A witness of members of Hazelcast also has, where the metrics say so, how many `backups` the map is to have, how many
    `backup_entries` of it the member holds, how often one of its entries was found (`hits`), and how long all of these reads and
    writes took at the member (`reading`, `writing`, in microseconds; they are measured in whole milliseconds), and how long the
    slowest took since the member began to count (`slowest_read`, `slowest_write`).
    """

    map: str
    entries: Int64
    bytes: Int64
    reads: Int64
    writes: Int64
    backups: Int64 | None = None
    backup_entries: Int64 | None = None
    hits: Int64 | None = None
    reading: Int64 | None = None
    writing: Int64 | None = None
    slowest_read: Int64 | None = None
    slowest_write: Int64 | None = None


class BackupLag(Struct, frozen=True):
    """A backup that has not confirmed writes of this owner, and how long the oldest of them has waited, in microseconds."""

    backup: Address
    partitions: Int64
    writes: Int64
    oldest: Int64


class DataMeasured(Struct, frozen=True, tag_field="kind", tag="data-measured"):
    """What this member stores, and what was asked of it as an owner in the `span` microseconds before.

    It contains only what has changed since the last such event. A member that is not used records none.

    `rows` are the partitions that it owns: partition, entries, bytes, reads, writes; then, if a backup lags, how many
    writes it has not confirmed and how long the oldest of them has waited. A row of one number is a partition that is no
    longer owned here. Many changes are divided into several events of the same instant.
    """

    span: Int64
    entries: Int64
    bytes: Int64
    """Of keys and values in all partitions that it owns."""
    backup_entries: Int64
    backup_bytes: Int64
    """The same for all that it keeps as a backup."""
    backup_writes: Int64
    """Writes of other owners that it stored as a backup."""
    maps: tuple[MapMeasured, ...]
    rows: tuple[tuple[Int64, ...], ...]
    lagging: tuple[BackupLag, ...]
    """All backups that lag now, or those that lag most."""


DataEvent = CallStarted | CallFinished | BackupOutOfStep | BackupInStep | EntriesMerged | EntriesEvicted | DataMeasured
