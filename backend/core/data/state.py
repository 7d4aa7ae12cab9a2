"""What one incarnation knows of data: the stores of its replicas, its own calls, and its duties as an owner."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.calls.operations import Answer, Operation
from quarterdeck.backend.core.data.messages import BackupWrite, MapAnswer, MergeBatch, OwnerOperation
from quarterdeck.backend.core.data.partition_store import UNWRITTEN, Entry, PartitionStore, Stamp
from quarterdeck.backend.core.data.replication.store_transfer import Staging, StoreCursor
from quarterdeck.backend.core.partitions.table.replica import Replica, Replicas

# The caller


@dataclass(slots=True, eq=False)
class PendingCall:
    """What a client, or this member itself, wants done, until it is answered (chapter `map_calls`)."""

    call: int
    """The client's number for it; -1 when the member itself asks."""
    operation: Operation | MergeBatch
    begun_us: int
    deadline_us: int
    watched: bool = False
    merge_batch: int | None = None
    """Number of the batch of entries that the member itself wants merged; None for a call of a client."""
    outstanding: int = 0
    """How many partitions have not answered."""
    answers: list[Answer] = field(default_factory=list)
    sent: bool = False
    ended: bool = False


@dataclass(slots=True, eq=False)
class SubOperation:
    """The part of what is asked that concerns one partition."""

    pending: PendingCall
    operation: OwnerOperation
    bytes: int


@dataclass(slots=True)
class InFlightCall:
    """A call on its way to the owner of a partition. It keeps its number and its operations until it is answered."""

    number: int
    sub_operations: list[SubOperation]
    operations: tuple[OwnerOperation, ...]
    silence_us: int
    """How long to wait for a word."""
    sent_to: Replica | None = None
    refused: bool = False
    """The answer was to ask again."""
    resend_us: int = 0
    delay_us: int = 0


@dataclass(slots=True)
class PartitionQueue:
    """One partition's calls, one at a time; what comes meanwhile waits, and goes together."""

    number: int = 0
    """The number of the last call."""
    waiting: deque[SubOperation] = field(default_factory=deque)
    in_flight: InFlightCall | None = None


# The owner


@dataclass(slots=True)
class OwnerState:
    """What the owner of a partition keeps, while it owns the partition (chapter `backups`)."""

    row: Replicas
    """As it was at the last look."""
    base: Stamp
    """What the replica had before the first write in the log."""
    delay_us: int
    """How long to wait before backups that do not confirm are looked after again."""
    log: deque[BackupWrite] = field(default_factory=deque)
    """Writes that are not safe in every backup."""
    confirmed: dict[str, int] = field(default_factory=dict)
    """By the incarnation of a backup, the number of the last stamp of this owner that it is known to have."""
    waiting: deque[tuple[int, Address, MapAnswer]] = field(default_factory=deque)
    """Answers that wait until the stamp of this number is safe, and for whom."""
    delivered: dict[str, int] = field(default_factory=dict)
    """By the life of a caller, the last number that waits in `waiting`; no call waits twice."""


@dataclass(slots=True)
class Outgoing:
    """The owner's side of the copy of a whole partition to a backup (chapter `replica_sync`)."""

    receiver: Replica
    token: str
    cursor: StoreCursor
    """How much of the store is sent."""
    unacknowledged: dict[int, bytes] = field(default_factory=dict)
    next_number: int = 0
    exhausted: bool = False
    resend_us: int = 0
    give_up_us: int = 0


# The backup


@dataclass(slots=True)
class Incoming:
    """The backup's side of such a copy."""

    owner: Replica
    token: str
    began_with: Stamp
    """What the replica had: if that changes meanwhile, the copy is out of date."""
    staging: Staging
    received: int = 0
    ask_again_us: int = 0


# After a merge of clusters


MERGING = "merging-entries"
"""Name of the timer that offers the next batches."""


@dataclass(slots=True)
class MergeEntries:
    """What an incarnation brings along from the cluster that it comes from (chapter `merging_entries`)."""

    brought: deque[tuple[str, dict[str, Entry]]]
    """What is still to be offered: maps, each with entries by key; the last entry of the first is the next one."""
    in_flight: dict[int, MergeBatch] = field(default_factory=dict)
    """Batches that are not answered, by number."""
    batches: int = 0
    begun: bool = False
    offered: int = 0
    taken: int = 0


class Data:
    """One incarnation's data, calls and duties."""

    __slots__ = (
        "backups_due_us",
        "calls_due_us",
        "early",
        "gone",
        "incarnations",
        "incoming",
        "issued",
        "merge_entries",
        "outgoing",
        "owner_states",
        "pending",
        "queues",
        "ready",
        "staged",
        "stale",
        "stores",
        "table_version",
        "unsafe",
        "waiting_for_table",
    )

    def __init__(self) -> None:
        self.table_version = 0
        """The version of the partition table that the chapters of data were told of last."""
        self.stores: dict[int, PartitionStore] = {}
        """By partition, for every replica that this member holds."""
        self.staged: dict[int, Staging] = {}
        """By partition, what a migration brings."""
        self.pending: dict[int, PendingCall] = {}
        """Calls of clients that are not answered, by the client's number, the oldest first."""
        self.waiting_for_table: list[PendingCall] = []
        """What was asked before there was a table."""
        self.queues: dict[int, PartitionQueue] = {}
        """The calls under way to each partition."""
        self.calls_due_us = 0
        """The time for which the timer of calls is set."""
        self.ready: dict[int, None] = {}
        """Partitions whose calls wait for the next tick."""
        self.owner_states: dict[int, OwnerState] = {}
        """By partition, where this member is the owner."""
        self.unsafe: dict[int, int] = {}
        """Partitions owned here that some backup has not confirmed, and when to look after them."""
        self.backups_due_us = 0
        """The time for which the timer of backups is set."""
        self.issued: dict[int, int] = {}
        """By partition, the number of the last stamp that this incarnation has given out: never the same twice."""
        self.early: dict[int, dict[Stamp, BackupWrite]] = {}
        """By partition, where this member is a backup: writes that have overtaken others, by the stamps that they wait for."""
        self.outgoing: dict[tuple[int, str], Outgoing] = {}
        """By partition and receiving incarnation."""
        self.stale: dict[int, None] = {}
        """Partitions of which this backup wants a whole copy; the first come are the first served."""
        self.incoming: dict[int, Incoming] = {}
        """The copies of whole partitions that are coming in, by partition."""
        self.incarnations: frozenset[str] = frozenset()
        """Those on the list when it was last looked at."""
        self.gone: dict[str, int] = {}
        """Lives that left the list, and when; their sessions go some time later."""
        self.merge_entries: MergeEntries | None = None

    def last_stamp(self, partition: int) -> Stamp:
        """What this member's replica has come to."""
        store = self.stores.get(partition)
        return UNWRITTEN if store is None else store.stamp
