"""One migration: what it changes, and what became of it.

See Avoid Data Loss on Migration, sections 2 and 3; Hazelcast: one migration.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.core.partitions.table.partition_table import Replica, Replicas

Kind = Literal["MOVE", "COPY", "SHIFT UP", "SHIFT DOWN", "CLEAR"]

Numbers = tuple[int, ...]
"""A row whose members are numbers above 0; 0 is an empty place."""


class NumberedStep(NamedTuple):
    """The source leaves an index, or moves to another one; the destination comes to one.

    0 stands for no member, -1 for no index.
    """

    kind: Kind
    source: int
    source_current: int
    source_new: int
    destination: int
    destination_current: int
    destination_new: int


def clear(row: Numbers, index: int) -> NumberedStep:
    """Return the step in which the member at `index` drops its replica."""
    return NumberedStep("CLEAR", row[index], index, -1, 0, -1, -1)


def bring(row: Numbers, member: int, index: int, hole: int = -1) -> NumberedStep:
    """Return the step that brings `member` to `index`, from a colder index if it is in the row.

    The holder leaves, or moves to `hole`.
    """
    source = row[index]
    source_current = index if source else -1
    if member in row:
        return NumberedStep("SHIFT UP", source, source_current, hole, member, row.index(member), index)
    if not source:
        return NumberedStep("COPY", 0, -1, -1, member, -1, index)
    return NumberedStep("MOVE" if hole < 0 else "SHIFT DOWN", source, source_current, hole, member, -1, index)


def applied(row: Numbers, step: NumberedStep) -> Numbers:
    """Return the row after the step."""
    after = list(row)
    for index in (step.source_current, step.destination_current):
        if index >= 0:
            after[index] = 0
    if step.source_new >= 0:
        after[step.source_new] = step.source
    if step.destination_new >= 0:
        after[step.destination_new] = step.destination
    return tuple(after)


def replicas(row: Numbers) -> int:
    """Count the filled places of the row."""
    return len(row) - row.count(0)


def lowers(before: Numbers, after: Numbers, target: Numbers) -> bool:
    """Whether a replica is lost that both the row before and the target count on."""
    return replicas(after) < min(replicas(before), replicas(target))


def without_cycles(current: Numbers, target: Numbers) -> Numbers:
    """Return the target in which every place of a cycle keeps its present holder.

    No order of steps passes replicas round in a circle without giving one up first, so such migrations are cancelled, and not
    tried again by themselves: the table stays as unbalanced as it was (Avoid Data Loss on Migration, 3.2.1).
    """
    fixed = list(target)
    for start in range(len(current)):
        for place in _cycle_through(start, current, target):
            fixed[place] = current[place]
    return tuple(fixed)


def _cycle_through(start: int, current: Numbers, target: Numbers) -> list[int]:
    """Return the places that holders pass on to each other in a cycle, from `start` on; nothing if there is none through it."""
    places: list[int] = []
    place = start
    while True:
        holder = current[place]
        if holder == target[place] or holder == 0 or holder not in target:
            return []
        places.append(place)
        place = target.index(holder)
        if place == start:
            return places


Endpoint = Literal["source", "destination"]


class MigrationEvent(Struct, frozen=True):
    """One side of one migration, seen by the member that is on it. Index -1: the member holds no replica.

    The member that sends the data, always the owner, is a source even where its own replica stays as it is; so is a backup that
    gives its replica up.
    """

    migration_id: str
    partition: int
    endpoint: Endpoint
    current_replica_index: int
    """Before the migration."""
    new_replica_index: int
    """Once the migration is committed."""


class StoreCursor(Struct):
    """How much of a store is sent: plain data, so that a member can be copied in the middle of a transfer."""

    sessions: list[tuple[str, tuple[int, tuple[Answer, ...]]]] | None = None
    """Those that are still to be sent, the next one last; None before the head is sent."""
    maps: list[str] = []
    """The maps of which nothing is sent, the next one last."""
    map: str = ""
    keys: list[str] = []
    """The keys of `map` that are still to be sent, the next one last."""


class MigrationService(Protocol):
    """A store of data by partitions. Its rule: data stays while the member's replica index is 0 or above.

    For every migration `before` comes first and exactly one of `commit` and `rollback` last. No client changes the partition
    between them at the source.
    """

    def before(self, now: int, event: MigrationEvent) -> None:
        """Prepare for a migration that begins here."""

    def next_chunk(self, partition: int, cursor: StoreCursor, chunk_bytes: int) -> bytes | None:
        """Return the next chunk of about so many bytes, at the owner, and move `cursor` past it; None when there is no more.

        The first chunk lets the destination see whether it has all of it already.
        """

    def receive(self, now: int, event: MigrationEvent, chunk: bytes | None) -> bool:
        """Stage a chunk at the destination, beside the present data; None is the end. Return whether nothing more is needed.

        Raises:
            msgspec.DecodeError: It is no chunk.
            ValueError: It is not what the first chunk has announced, or it ends before all has come.
        """

    def commit(self, now: int, event: MigrationEvent) -> None:
        """Adopt the replicas that this migration brought and drop those no longer held."""

    def rollback(self, now: int, event: MigrationEvent) -> None:
        """Drop what the migration brought; what was there before stays."""

    def placed(self, now: int, partition: int, before: int, index: int) -> None:
        """Note that the table in force has this member at another replica index, whatever the reason.

        It comes after `commit`, if that was the reason. Index -1 before: the partition begins empty here, unless its data came by
        a migration. Index -1 now: its data goes.
        """


SUCCESS_INCREMENT = 1
FAILURE_INCREMENT = 2
"""A failed migration raises the partition's version by 2, so that no table of a success can ever equal it (Avoid Data Loss on
Migration, 2.1)."""


class PartitionMigration(Struct, frozen=True, array_like=True):
    """One step of one partition, done wholly or not at all. Index -1 stands for none, as in `migration_planner.Step`.

    `version` is that of the partition from which the migration starts, `master` the incarnation that leads it.
    """

    id: str
    partition: int
    type: Kind
    version: int
    source: Replica | None
    source_current: int
    source_new: int
    destination: Replica
    destination_current: int
    destination_new: int
    master: Replica
    unavoidable: bool = False

    def applied_to(self, replicas: Replicas) -> Replicas:
        after: list[Replica | None] = list(replicas)
        for index in (self.source_current, self.destination_current):
            if index >= 0:
                after[index] = None
        if self.source_new >= 0:
            after[self.source_new] = self.source
        after[self.destination_new] = self.destination
        return tuple(after)


class CompletedMigration(Struct, frozen=True, array_like=True):
    """An entry of the completed migrations list: the one decision about a migration.

    See Avoid Data Loss on Migration, Terminology.
    """

    migration: PartitionMigration
    committed: bool

    @property
    def final_version(self) -> int:
        return self.migration.version + (SUCCESS_INCREMENT if self.committed else FAILURE_INCREMENT)
