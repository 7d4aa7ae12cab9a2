"""What happens to data, as events. Part of the union in `backend.core.events`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address


class CallStarted(Struct, frozen=True, tag_field="kind", tag="call-started"):
    """A client that is watched asks this member for an operation on one key. `call` counts the calls of this incarnation."""

    call: int
    operation: Literal["put", "get", "remove"]
    map: str
    key: str
    value: str
    """What is put, as text; empty otherwise."""


class CallFinished(Struct, frozen=True, tag_field="kind", tag="call-finished"):
    """The client has its answer. After a problem a write may have been done or not, unless `untouched`.

    `value`: what a get found, what stood there before a put or a remove; `found` tells an empty value from none.
    """

    call: int
    operation: Literal["put", "get", "remove"]
    map: str
    key: str
    partition: int
    value: str
    found: bool
    took: int
    """Microseconds."""
    problem: str
    untouched: bool


OutOfStepCause = Literal["other-digest", "writes-missing", "copy-damaged", "unknown"]


class BackupOutOfStep(Struct, frozen=True, tag_field="kind", tag="backup-out-of-step"):
    """A backup does not have what its owner has, and asks for the whole partition (Hazelcast: anti-entropy)."""

    partition: int
    owner: Address
    reason: str
    cause: OutOfStepCause = "unknown"


class BackupInStep(Struct, frozen=True, tag_field="kind", tag="backup-in-step"):
    """The backup has taken over the owner's partition as a whole."""

    partition: int
    owner: Address
    entries: int
    bytes: int


class EntriesMerged(Struct, frozen=True, tag_field="kind", tag="entries-merged"):
    """After a merge of clusters: what this member brought along was offered to the winner's partitions."""

    policy: str
    offered: int
    taken: int
    problem: str
    """Why the rest could not be offered; empty when all was."""


DataEvent = CallStarted | CallFinished | BackupOutOfStep | BackupInStep | EntriesMerged
