"""The partition table: the replicas of every partition, each row with a version of its own.

See Avoid Data Loss on Migration, 1; Decisions: Table version.

The version of the table is the sum of the versions of its partitions, so it only grows. Equal tables have equal digests; the
digest is updated with every change, and is the same whatever the order of the changes was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address


class Replica(Struct, frozen=True, gc=False, array_like=True):
    """One incarnation of one member as a holder of data: another incarnation at the same address holds nothing.

    See Hazelcast: partitions.
    """

    address: Address
    uuid: str


Replicas = tuple[Replica | None, ...]
"""The holders of one partition by replica index: the owner at 0, then the backups; None at an empty place."""


class VersionedRow(Struct, frozen=True, array_like=True):
    """The replicas of one partition as they stand at one version of that partition."""

    partition: int
    version: int
    replicas: Replicas


class PackedRows(Struct, frozen=True, array_like=True):
    """Rows as they cross the wire: every holder is named once, however many rows it stands in.

    Each of `rows` has the partition, its version, and for every replica index the place in `holders`, -1 for an empty place.
    """

    holders: tuple[Replica, ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()


def packed(rows: Iterable[VersionedRow]) -> PackedRows:
    """Return `rows` for the wire."""
    places: dict[Replica | None, int] = {None: -1}
    lines = []
    for row in rows:
        for replica in row.replicas:
            if replica not in places:
                places[replica] = len(places) - 1
        lines.append((row.partition, row.version, *map(places.__getitem__, row.replicas)))
    return PackedRows(tuple(replica for replica in places if replica is not None), tuple(lines))


def unpacked(rows: PackedRows) -> list[VersionedRow]:
    """Return the rows as they were packed.

    Raises:
        IndexError: A place names no holder. No member of ours packs such rows.
    """
    holders = (*rows.holders, None)
    return [VersionedRow(line[0], line[1], tuple([holders[place] for place in line[2:]])) for line in rows.rows]


def index_of(uuid: str, replicas: Replicas) -> int:
    """Return the replica index at which the incarnation `uuid` stands; -1 when it holds none."""
    for index, replica in enumerate(replicas):
        if replica is not None and replica.uuid == uuid:
            return index
    return -1


MOST_REPLICAS = 7
"""An owner at index 0 and up to six backups."""

Row = tuple[str | None, ...]
"""A member's name at each replica index, or None at an empty place."""

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
        partition = row.partition
        if self.versions[partition]:
            self.digest ^= row_digest(self.row(partition))
        self.version += row.version - self.versions[partition]
        self.versions[partition] = row.version
        self.rows[partition] = row.replicas
        self.digest ^= row_digest(row)

    def row(self, partition: int) -> VersionedRow:
        return VersionedRow(partition, self.versions[partition], self.rows[partition])

    def all_rows(self) -> Iterator[VersionedRow]:
        """Return every row that was ever set."""
        return (self.row(partition) for partition, version in enumerate(self.versions) if version)

    def owner(self, partition: int) -> Replica | None:
        return self.rows[partition][0]

    def holders(self) -> dict[str, Replica]:
        """Return every incarnation that stands in a row, by its uuid."""
        return {replica.uuid: replica for row in self.rows for replica in row if replica is not None}


def row_digest(row: VersionedRow) -> int:
    """Return a number of 64 bits for a partition at a version with these replicas."""
    return int.from_bytes(blake2b(_encode(row), digest_size=DIGEST_BYTES).digest(), "big")


def empty_table(partitions: int, width: int) -> PartitionTable:
    """Return a table without any holder, at version 0."""
    return PartitionTable(width, [(None,) * width] * partitions, [0] * partitions)
