"""The partition table: the replicas of every partition, each with a version of its own.

See Avoid Data Loss on Migration, 1; Decisions: Table version.

The version of the table is the sum of the versions of its partitions, so it only grows. The digest tells tables apart without
comparing rows; it is kept up to date with every change, and is the same whatever the order of the changes was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from quarterdeck.backend.core.partitions.table.replica import Replica, Replicas, VersionedRow

DIGEST_BYTES = 8

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class PartitionTable:
    """One member's table. `width` is the number of replica indices."""

    width: int
    rows: list[Replicas]
    versions: list[int]
    version: int = 0
    digest: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def put(self, row: VersionedRow) -> None:
        """Let `row` hold from now on, whatever held before."""
        partition = row.partition
        if self.versions[partition]:
            self.digest ^= row_digest(self.row(partition))
        self.version += row.version - self.versions[partition]
        self.versions[partition] = row.version
        self.rows[partition] = row.replicas
        self.digest ^= row_digest(row)

    def row(self, partition: int) -> VersionedRow:
        """Return the row of a partition, with its version."""
        return VersionedRow(partition, self.versions[partition], self.rows[partition])

    def all_rows(self) -> Iterator[VersionedRow]:
        """Every row that was ever set."""
        return (self.row(partition) for partition, version in enumerate(self.versions) if version)

    def owner(self, partition: int) -> Replica | None:
        """Who owns a partition; None when nobody does."""
        return self.rows[partition][0]

    def holders(self) -> dict[str, Replica]:
        """Every incarnation that stands in a row, by its uuid."""
        return {replica.uuid: replica for row in self.rows for replica in row if replica is not None}


def row_digest(row: VersionedRow) -> int:
    """Return a number of 64 bits for a partition at a version with these replicas."""
    return int.from_bytes(blake2b(_encode(row), digest_size=DIGEST_BYTES).digest(), "big")


def empty_table(partitions: int, width: int) -> PartitionTable:
    """Return a table without any holder, at version 0."""
    return PartitionTable(width, [(None,) * width] * partitions, [0] * partitions)


def table_of(rows: Iterable[VersionedRow], partitions: int, width: int) -> PartitionTable:
    """Return the table that has these rows."""
    table = empty_table(partitions, width)
    for row in rows:
        table.put(row)
    return table
