"""What members say to one another about the data in partitions (Hazelcast: anti-entropy).

Part of the union in `backend.core.messages`.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.data.partition_store import Stamp, StoredEntry
from quarterdeck.backend.core.operations import Answer, Operation


class MergeBatch(Struct, frozen=True, tag="merge-entries", array_like=True):
    """An operation among members: entries that an incarnation brought along from another cluster, to be merged by `policy`."""

    map: str
    entries: tuple[tuple[str, StoredEntry], ...]
    policy: str


OwnerOperation = Operation | MergeBatch


class MapCall(Struct, frozen=True, tag="map-call", array_like=True):
    """A member asks the owner of a partition for operations on it, in order; again and again until it is answered.

    `number` counts the calls of the incarnation `caller` to this partition, one at a time, so that none is ever done twice.
    A later incarnation at the address of the `owner` does not remember what was done; empty where the caller does not say.
    """

    caller: str
    partition: int
    number: int
    operations: tuple[OwnerOperation, ...]
    owner: str = ""


class MapAnswer(Struct, frozen=True, tag="map-answer", array_like=True):
    """Done, and safe in every backup: an answer for each operation. With a `retry`: nothing is done here, ask again.

    Fewer answers than operations: the rest was not done, because the answers would have grown too long for one message.
    """

    caller: str
    partition: int
    number: int
    answers: tuple[Answer, ...]
    retry: str


class BackupWrite(Struct, frozen=True, tag="backup-write", array_like=True):
    """The owner's next change of a partition, to every backup: what entries are now, and keys that are gone.

    It fits only on a replica with the stamp `previous`, which then has `stamp`. The call that was done and its answers come
    along, so that the next owner of the partition knows that it is done.
    """

    partition: int
    previous: Stamp
    stamp: Stamp
    entries: tuple[tuple[str, str, StoredEntry], ...]
    removed: tuple[tuple[str, str], ...]
    caller: str
    number: int
    answers: tuple[Answer, ...]


class CheckedReplica(Struct, frozen=True, gc=False, array_like=True):
    """The stamp and the digest of the owner's replica of a partition."""

    partition: int
    stamp: Stamp
    digest: int


class BackupCheck(Struct, frozen=True, tag="backup-check", array_like=True):
    """The owner, the incarnation `owner`, asks a backup whether it has the same, for many partitions at once."""

    owner: str
    checks: tuple[CheckedReplica, ...]


class BackupAck(Struct, frozen=True, tag="backup-ack", array_like=True):
    """The stamps of replicas at the incarnation `backup`. `not_yet`: partitions of which it does not know the asker as owner.

    `full` when it has no room: then its partitions should grow no more. Members of protocol version 2 neither say nor read it.
    """

    backup: str
    positions: tuple[tuple[int, Stamp], ...]
    not_yet: tuple[int, ...] = ()
    full: bool = False


class BackupStale(Struct, frozen=True, tag="backup-stale", array_like=True):
    """The owner cannot go on from what a backup has, `position`: it needs a whole copy."""

    owner: str
    partition: int
    position: Stamp


class SyncRequest(Struct, frozen=True, tag="sync-request", array_like=True):
    """The incarnation `backup` asks the owner for a whole partition. `token` names this attempt."""

    backup: str
    partition: int
    token: str


class SyncChunk(Struct, frozen=True, tag="sync-chunk", array_like=True):
    """Part of the partition; numbers count from 0."""

    partition: int
    token: str
    number: int
    payload: bytes


class SyncAck(Struct, frozen=True, tag="sync-ack", array_like=True):
    """All chunks up to `number` are received; `done` when nothing more is needed."""

    partition: int
    token: str
    number: int
    done: bool


DataMessage = (
    MapCall | MapAnswer | BackupWrite | BackupCheck | BackupAck | BackupStale | SyncRequest | SyncChunk | SyncAck
)
