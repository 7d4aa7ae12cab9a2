"""Who holds a replica, and the replicas of one partition with their version.

See Avoid Data Loss on Migration; Decisions: Table version.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from quarterdeck.backend.core.address import Address


class Replica(Struct, frozen=True, gc=False, array_like=True):
    """One incarnation of one member as a holder of data: another incarnation at the same address holds nothing.

    See Hazelcast: partitions.
    """

    address: Address
    uuid: str


Replicas = tuple[Replica | None, ...]
"""The holders of one partition by replica index: the owner at 0, then the backups; None where nobody is."""


class VersionedRow(Struct, frozen=True, array_like=True):
    """The replicas of one partition as they stand at one version of that partition."""

    partition: int
    version: int
    replicas: Replicas


class PackedRows(Struct, frozen=True, array_like=True):
    """Rows as they cross the wire: every holder is named once, however many rows it stands in.

    Each of `rows` has the partition, its version, and for every replica index the place in `holders`, -1 for nobody.
    """

    holders: tuple[Replica, ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()


def packed(rows: Iterable[VersionedRow]) -> PackedRows:
    """`rows` for the wire."""
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
"""A member's name at each replica index, or None where nobody is."""
