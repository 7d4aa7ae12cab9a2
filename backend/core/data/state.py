"""What one incarnation knows of data: the stores of its replicas, its own calls, and its duties as an owner."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.cluster_profile import allows_promotions
from quarterdeck.backend.core.data.messages import BackupWrite, MapAnswer, MergeBatch, OwnerOperation
from quarterdeck.backend.core.data.partition_store import UNWRITTEN, PartitionStore, Stamp, StoredEntry
from quarterdeck.backend.core.data.replication.store_transfer import Staging
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.partitions.migration.migration import StoreCursor
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import Replica, Replicas

# The caller


@dataclass(slots=True)
class PendingCall:
    """What a client, or this member itself, wants done, until it is answered (chapter `map_calls`)."""

    call: int
    """The client's number for it. What the member itself asks has the negative number of the batch that it wants merged."""
    operation: Operation | MergeBatch
    begun_us: int
    deadline_us: int
    watched: bool = False
    started: RecordId | None = None
    """The record of its beginning, if it is watched."""
    outstanding: int = 0
    """How many partitions have not answered."""
    answers: list[Answer] = field(default_factory=list)
    sent: bool = False
    sent_elsewhere: bool = False
    """Whether it was sent to one owner and then to another, so that the first may have done what the second refuses."""
    members: MemberList | None = None
    """The member list at its beginning."""
    cursor: int = 0
    """How many entries of a `PutAll` are checked and divided among partitions; the next slice begins here."""
    parts: dict[int, list[SubOperation]] = field(default_factory=dict)
    """By partition, what they are divided into; nothing is sent before all are."""
    keys: list[str] = field(default_factory=list)
    """What partitions have listed, sorted as it comes: all at once would take long."""
    stored: int = 0
    """How many entries of a `PutAll` are stored."""


@dataclass(slots=True)
class SubOperation:
    """The part of what is asked that concerns one partition."""

    call: int
    """The number of the pending call that it is part of."""
    operation: OwnerOperation
    bytes: int


@dataclass(slots=True)
class InFlightCall:
    """A call on its way to the owner of a partition. It keeps its number and its operations until it is answered."""

    number: int
    sub_operations: list[SubOperation]
    silence_us: int
    """How long to wait for an answer."""
    sent_to: Replica | None = None
    asked_first: Replica | None = None
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
    written_us: deque[int] = field(default_factory=deque)
    """When each of them was made."""
    confirmed: dict[str, int] = field(default_factory=dict)
    """By the incarnation of a backup, the number of the last stamp of this owner that it is known to have."""
    waiting: deque[tuple[int, Address, MapAnswer]] = field(default_factory=deque)
    """Answers that wait until the stamp of this number is safe, and for whom."""
    delivered: dict[str, int] = field(default_factory=dict)
    """By the incarnation of a caller, the last number that waits in `waiting`; no call waits twice."""


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

    brought: deque[tuple[str, dict[str, StoredEntry]]]
    """What is still to be offered: maps, each with entries by key; the last entry of the first is the next one."""
    in_flight: dict[int, MergeBatch] = field(default_factory=dict)
    """Batches that are not answered, by number."""
    batches: int = 0
    begun: bool = False
    offered: int = 0
    taken: int = 0


# What is measured


@dataclass(slots=True)
class OperationCount:
    """Operations on single keys."""

    reads: int = 0
    writes: int = 0


@dataclass(slots=True)
class Measurements:
    """What was asked of this owner since its last report, and what it has reported (chapter `measuring`).

    No decision depends on it.
    """

    since_us: int = 0
    """When counting began."""
    partitions: dict[int, OperationCount] = field(default_factory=dict)
    maps: dict[str, OperationCount] = field(default_factory=dict)
    backup_writes: int = 0
    report_count: int = 0
    """How many reports it has made."""
    reported_totals: tuple[int, ...] = ()
    reported_partitions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    reported_maps: dict[str, tuple[int, int]] = field(default_factory=dict)
    reported_lagging: tuple[tuple[str, int, int, int], ...] = ()


@dataclass(slots=True)
class Data:
    """One incarnation's data, calls and duties."""

    stores: dict[int, PartitionStore] = field(default_factory=dict)
    """By partition, for every replica that this member holds."""
    staged: dict[int, Staging] = field(default_factory=dict)
    """By partition, what a migration brings."""
    pending: dict[int, PendingCall] = field(default_factory=dict)
    """Calls of clients that are not answered, by the client's number, the oldest first."""
    merging: dict[int, PendingCall] = field(default_factory=dict)
    """What this member itself asks, by number."""
    waiting_for_table: list[int] = field(default_factory=list)
    """What was asked before there was a table."""
    queues: dict[int, PartitionQueue] = field(default_factory=dict)
    """The calls under way to each partition."""
    ready: dict[int, None] = field(default_factory=dict)
    """Partitions whose calls wait for the next tick."""
    dividing: list[int] = field(default_factory=list)
    """Calls whose entries are not all divided yet."""
    owner_states: dict[int, OwnerState] = field(default_factory=dict)
    """By partition, where this member is the owner."""
    unsafe: dict[int, int] = field(default_factory=dict)
    """Partitions owned here that some backup has not confirmed, and when to look after them."""
    issued: dict[int, int] = field(default_factory=dict)
    """By partition, the number of the last stamp that this incarnation has given out: never the same twice."""
    early: dict[int, dict[Stamp, BackupWrite]] = field(default_factory=dict)
    """By partition, where this member is a backup: writes that have overtaken others, by the stamps that they wait for."""
    outgoing: dict[tuple[int, str], Outgoing] = field(default_factory=dict)
    """By partition and receiving incarnation."""
    out_of_step: dict[int, RecordId] = field(default_factory=dict)
    """Partitions of which this backup is known to lack something, until it is known to have all (chapter `replica_sync`)."""
    stale: dict[int, None] = field(default_factory=dict)
    """Partitions of which this backup wants a whole copy, in the order in which they are served."""
    incoming: dict[int, Incoming] = field(default_factory=dict)
    """The copies of whole partitions that are coming in, by partition."""
    incarnations: frozenset[str] = frozenset()
    """Those on the list when it was last looked at."""
    gone: dict[str, int] = field(default_factory=dict)
    """Incarnations that left the list, and when; their sessions are dropped some time later."""
    full_backups: dict[str, None] = field(default_factory=dict)
    """Incarnations that had no room when they confirmed something last."""
    merge_entries: MergeEntries | None = None
    measurements: Measurements = field(default_factory=Measurements)

    def pending_call(self, number: int) -> PendingCall | None:
        """Return the call of this number; None when it has ended."""
        return self.pending.get(number) if number >= 0 else self.merging.get(number)

    def last_stamp(self, partition: int) -> Stamp:
        store = self.stores.get(partition)
        return UNWRITTEN if store is None else store.stamp


@dataclass(slots=True)
class MemberState(PartitionedMember):
    """The whole state of a member: its membership, its partitions and its data.

    It is plain data, which can be stored and compared.
    """

    data: Data = field(default_factory=Data)

    @property
    def brings_entries(self) -> bool:
        return self.data.merge_entries is not None

    def counted_backups(self, row: Replicas) -> Iterator[Replica]:
        """Return the backups in `row` whose confirmations an owner waits for.

        While the state of the cluster keeps the names of those who left in the rows, incarnations off the list are not waited
        for: they never come back, and no backup is promoted meanwhile. Otherwise the row alone counts, for the list may come
        later than the row.
        """
        backups = (replica for replica in row[1:] if replica is not None)
        if allows_promotions(self.standing.state):
            return backups
        return (backup for backup in backups if self.is_listed(backup.address, backup.uuid))


def memory_used(state: MemberState) -> int:
    """Return about how many bytes all replicas here take: keys, values, kept answers, and what Python adds to each entry."""
    return sum(store.memory for store in state.data.stores.values())


def entries_held(state: MemberState) -> int:
    """Return how many entries all replicas here have."""
    return sum(store.entries for store in state.data.stores.values())


def why_no_room(state: MemberState, entries: int, size: int) -> str:
    """Return why so many more entries and bytes would be too much for this member; empty when they are not."""
    most_entries, most_bytes = state.settings.member_most_entries, state.settings.member_most_bytes
    if most_entries and entries > 0 and entries_held(state) + entries > most_entries:
        return f"this member is full: it may hold {most_entries} entries (quarterdeck.member.max.entries)"
    if most_bytes and size > 0 and memory_used(state) + size > most_bytes:
        return f"this member is full: its data may take {most_bytes} bytes (quarterdeck.member.max.bytes)"
    return ""


def is_full(state: MemberState) -> bool:
    """Whether owners should send nothing more to this backup. What they send all the same is stored."""
    return bool(why_no_room(state, 1, 1))
