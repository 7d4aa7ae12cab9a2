"""A cluster that is whatever a test says: records go in by hand, commands are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from quarterdeck.backend.clusters.cluster import Source
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.partitions.events import Holder, MigrationStarted, TableCause, TableChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.picture import Picture

FIVE = ("n1", "n2", "n3", "n4", "n5")


class FakeCluster:
    """Hands out the records that `happen` put in; `commands` holds what was asked of it."""

    def __init__(
        self, labels: Sequence[str], *, name: str = "dev", source: Source = "remote", writable: bool = True
    ) -> None:
        self.name, self.source, self.writable = name, source, writable
        self.labels = tuple(labels)
        self.commands: list[Command] = []
        self.refusal: BaseException | None = None
        self.unanswered: list[Future[None]] | None = None
        """Set to a list to leave commands unanswered in it."""
        self.closed = False
        self._pending: list[Record] = []
        self._seq: dict[str, int] = {}
        self._at = 0

    def now_us(self) -> int:
        return self._at

    def drain(self) -> list[Record]:
        records, self._pending = self._pending, []
        return records

    def execute(self, command: Command) -> Future[None]:
        self.commands.append(command)
        future: Future[None] = Future()
        if self.unanswered is not None:
            self.unanswered.append(future)
        elif self.refusal is not None:
            future.set_exception(self.refusal)
        else:
            future.set_result(None)
        return future

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        raise AssertionError("the console calls by commands, and learns the answer from events")

    def close(self) -> None:
        self.closed = True

    def refuse(self, why: str) -> None:
        self.refusal = CommandRefused(why)

    def happen(self, label: str, event: Event, *, life: int = 1, after_us: int = SECOND_US // 10) -> None:
        self._at += after_us
        uuid = f"{label}-life-{life}"
        self._seq[uuid] = self._seq.get(uuid, 0) + 1
        self._pending.append(Record("run-1", label, uuid, self._seq[uuid], self._at, self._at, event))

    def address(self, label: str) -> Address:
        return Address(f"10.0.0.{self.labels.index(label) + 1}:5701")

    def member(self, label: str, life: int = 1) -> Member:
        return Member(self.address(label), f"{label}-life-{life}", self.labels.index(label) + 1)

    def start(self, label: str, life: int = 1) -> None:
        joined = tuple(self.address(other) for other in self.labels)
        self.happen(label, events.MemberStarted(self.address(label), False, joined), life=life)

    def install(self, label: str, version: int, members: Sequence[str], *, lineage: str = "L1", life: int = 1) -> None:
        master = self.address(members[0])
        listed = tuple(self.member(member) for member in members)
        self.happen(
            label,
            events.ListInstalled(version, lineage, master, listed, master, "unknown", "a member joined"),
            life=life,
        )

    def suspect(self, label: str, suspect: str, reason: str = "no heartbeat for 4 s") -> None:
        self.happen(label, events.SuspicionRaised(self.address(suspect), f"{suspect}-life-1", reason))

    def holder(self, label: str) -> Holder:
        return Holder(self.address(label), f"{label}-life-1")

    def change_table(
        self,
        label: str,
        version: int,
        rows: Mapping[int, Sequence[str]],
        cause: TableCause = "published",
        life: int = 1,
    ) -> None:
        """`rows` gives the labels of those who hold each changed partition; an empty label is nobody."""
        names = list(dict.fromkeys(name for row in rows.values() for name in row if name))
        places = {"": -1, **{name: place for place, name in enumerate(names)}}
        changed = tuple((partition, 1, *(places[name] for name in row)) for partition, row in rows.items())
        holders = tuple(self.holder(name) for name in names)
        event = TableChanged(version, f"{version:016x}", 271, holders, changed, f"{label}-life-{life}", cause)
        self.happen(label, event, life=life)

    def begin(
        self, label: str, migration_id: str, partition: int, source: str, destination: str, index: int = 0
    ) -> None:
        """`label` begins a migration; without a source it is a copy."""
        place, giver = (index, self.address(source)) if source else (-1, None)
        event = MigrationStarted(
            migration_id=migration_id, partition=partition, type="MOVE" if source else "COPY", partition_version=1,
            source=giver, source_current=place, source_new=-1, destination=self.address(destination),
            destination_current=-1, destination_new=index, owner=giver or self.address(label), available=2, replicas_wanted=2,
            unavoidable=False,
        )  # fmt: skip
        self.happen(label, event)

    def form(self) -> None:
        """Everybody starts and installs the list of all."""
        for label in self.labels:
            self.start(label)
        for label in self.labels:
            self.install(label, len(self.labels), self.labels)

    def split(self, left: Sequence[str], right: Sequence[str]) -> None:
        """Two halves that have forgotten each other."""
        for half, version, lineage in ((left, 7, "L1"), (right, 6, "L2")):
            for label in half:
                self.install(label, version, half, lineage=lineage)


def formed(labels: Sequence[str] = FIVE, **how: Any) -> FakeCluster:
    """Return a cluster whose members have all installed one list."""
    cluster = FakeCluster(labels, **how)
    cluster.form()
    return cluster


def fold(cluster: FakeCluster, picture: Picture | None = None) -> Picture:
    """Return `picture`, or a new one, with what has happened in `cluster` since it was last drained."""
    picture = picture or Picture()
    for record in cluster.drain():
        picture.apply(record)
    return picture
