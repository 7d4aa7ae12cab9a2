"""Who holds a replica, and the replicas of one partition with their version (seed 004; design 9.1)."""

from __future__ import annotations

from msgspec import Struct

from backend.core.address import Address


class Replica(Struct, frozen=True, gc=False, array_like=True):
    """One life of one member as a holder of data: another life at the same address holds nothing (behaviour 8.1)."""

    address: Address
    uuid: str


Replicas = tuple[Replica | None, ...]
"""The holders of one partition by replica index: the owner at 0, then the backups; None where nobody is."""


class VersionedRow(Struct, frozen=True, array_like=True):
    """The replicas of one partition as they stand at one version of that partition."""

    partition: int
    version: int
    replicas: Replicas


def index_of(uuid: str, replicas: Replicas) -> int:
    """The replica index at which the life `uuid` stands; -1 when it holds none."""
    for index, replica in enumerate(replicas):
        if replica is not None and replica.uuid == uuid:
            return index
    return -1
