"""What one life knows of data: the stores of its replicas, its own calls, and its duties as an owner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.messages import BackupWrite, MapAnswer, MergeEntries, OwnerOperation
from quarterdeck.backend.core.data.operations import Answer, Operation
from quarterdeck.backend.core.data.partition_store import UNWRITTEN, Entry, PartitionStore, Stamp
from quarterdeck.backend.core.data.store_transfer import Staging
from quarterdeck.backend.core.partitions.replica import Replica, Replicas

if TYPE_CHECKING:
    from quarterdeck.backend.core.membership.state import Membership

# The caller


@dataclass(slots=True, eq=False)
class Asked:
    """What a client, or this member itself, wants done, until it is answered (chapter `map_calls`)."""

    call: int
    """The client's number for it; -1 when the member itself asks."""
    operation: Operation | MergeEntries
    begun_us: int
    deadline_us: int
    watched: bool = False
    then: Callable[[Membership, int, Answer], None] | None = None
    """Who wants the answer, when the member itself asks."""
    outstanding: int = 0
    """How many partitions have not answered."""
    answers: list[Answer] = field(default_factory=list)
    sent: bool = False
    ended: bool = False


@dataclass(slots=True, eq=False)
class Piece:
    """The part of what is asked that concerns one partition."""

    asked: Asked
    operation: OwnerOperation
    bytes: int


@dataclass(slots=True)
class Flight:
    """A call on its way to the owner of a partition. It keeps its number and its operations until it is answered."""

    number: int
    pieces: list[Piece]
    operations: tuple[OwnerOperation, ...]
    silence_us: int
    """How long to wait for a word."""
    sent_to: Replica | None = None
    refused: bool = False
    """The answer was to ask again."""
    resend_us: int = 0
    delay_us: int = 0


@dataclass(slots=True)
class Line:
    """One partition's calls, one at a time; what comes meanwhile waits, and goes together."""

    number: int = 0
    """Of the last call."""
    waiting: deque[Piece] = field(default_factory=deque)
    flight: Flight | None = None


# The owner


@dataclass(slots=True)
class Office:
    """What the owner of a partition keeps, from taking office to leaving it (chapter `backups`)."""

    row: Replicas
    """As it was at the last look."""
    base: Stamp
    """What the replica had before the first write in the log."""
    delay_us: int
    """How long to wait before backups that do not confirm are looked after again."""
    log: deque[BackupWrite] = field(default_factory=deque)
    """Writes that are not safe in every backup."""
    confirmed: dict[str, int] = field(default_factory=dict)
    """By the life of a backup, the number of the last stamp in this office that it is known to have."""
    waiting: deque[tuple[int, Address, MapAnswer]] = field(default_factory=deque)
    """Answers that wait until the stamp of this number is safe, and for whom."""
    delivered: dict[str, int] = field(default_factory=dict)
    """By the life of a caller, the last number that waits in `waiting`; no call waits twice."""


@dataclass(slots=True)
class Outgoing:
    """The owner's side of the copy of a whole partition to a backup (chapter `replica_sync`)."""

    receiver: Replica
    token: str
    chunks: Iterator[bytes]
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


BroughtEntry = tuple[str, str, Entry]
"""Map, key and entry."""


@dataclass(slots=True)
class Brought:
    """What a life brings along from the cluster that it comes from (chapter `merging_entries`)."""

    entries: Iterator[BroughtEntry]
    """What is still to be offered."""
    put_back: BroughtEntry | None = None
    """The next one, which did not fit into the last batch."""
    in_flight: dict[int, MergeEntries] = field(default_factory=dict)
    """Batches that are not answered, by number."""
    batches: int = 0
    begun: bool = False
    offered: int = 0
    taken: int = 0


class Data:
    """One life's data, calls and duties."""

    __slots__ = (
        "asked",
        "backups_due_us",
        "brought",
        "calls_due_us",
        "early",
        "gone",
        "incoming",
        "issued",
        "lines",
        "lives",
        "offices",
        "outgoing",
        "ready",
        "staged",
        "stale",
        "stores",
        "unplaced",
        "unsafe",
    )

    def __init__(self) -> None:
        self.stores: dict[int, PartitionStore] = {}
        """By partition, for every replica that this member holds."""
        self.staged: dict[int, Staging] = {}
        """By partition, what a migration brings."""
        self.asked: dict[int, Asked] = {}
        """Calls of clients that are not answered, by the client's number, the oldest first."""
        self.unplaced: list[Asked] = []
        """What was asked before there was a table."""
        self.lines: dict[int, Line] = {}
        """By partition."""
        self.calls_due_us = 0
        """For when the timer of calls is set."""
        self.ready: dict[int, None] = {}
        """Partitions whose calls wait for the next tick."""
        self.offices: dict[int, Office] = {}
        """By partition, where this member is the owner."""
        self.unsafe: dict[int, int] = {}
        """Partitions owned here that some backup has not confirmed, and when to look after them."""
        self.backups_due_us = 0
        """For when the timer of backups is set."""
        self.issued: dict[int, int] = {}
        """By partition, the number of the last stamp that this life has given out: never the same twice."""
        self.early: dict[int, dict[Stamp, BackupWrite]] = {}
        """By partition, where this member is a backup: writes that have overtaken others, by the stamps that they wait for."""
        self.outgoing: dict[tuple[int, str], Outgoing] = {}
        """By partition and receiving life."""
        self.stale: dict[int, None] = {}
        """Partitions of which this backup wants a whole copy; the first come are the first served."""
        self.incoming: dict[int, Incoming] = {}
        """By partition."""
        self.lives: frozenset[str] = frozenset()
        """Those on the list when it was last looked at."""
        self.gone: dict[str, int] = {}
        """Lives that left the list, and when; their sessions go some time later."""
        self.brought: Brought | None = None

    def last_stamp(self, partition: int) -> Stamp:
        """What this member's replica has come to."""
        store = self.stores.get(partition)
        return UNWRITTEN if store is None else store.stamp
