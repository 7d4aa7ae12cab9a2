"""Members by hand that keep data in partitions, and a ghost of the data: who holds which copy, whatever the tables say."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

from quarterdeck.backend.core.commands import ArrangePartitions, StopMember
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.partitions.migration.migration import MigrationEvent, StoreCursor
from quarterdeck.backend.core.partitions.migration.migration_planner import plan_migrations
from quarterdeck.backend.core.partitions.state import MasterRole, Partitions
from quarterdeck.backend.core.partitions.table.partition_table import (
    PartitionTable,
    Replica,
    VersionedRow,
    empty_table,
    index_of,
)
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.member_state import state_of
from tests.core.stepped_cluster import MessageKind, SteppedCluster, address_of, name_of, training_settings

Content = tuple[bytes, ...]


class FakeService:
    """A service whose data moves only by migrations. It checks that it is called as the contract of services says.

    `judges` is whether it tells the owner that the destination needs no more, or waits for the end.
    """

    def __init__(self, *, judges: bool = True) -> None:
        self.judges = judges
        self.life = ""
        self.held: dict[int, Content] = {}
        self.open: dict[int, MigrationEvent] = {}
        self.staged: dict[int, list[bytes]] = {}
        self.told: list[tuple[str, int]] = []
        """Every call, with its partition."""

    def before(self, now: int, event: MigrationEvent) -> None:
        assert event.partition not in self.open, "one migration of a partition begins before the other has ended"
        self.open[event.partition] = event
        self.told.append(("before", event.partition))

    def next_chunk(self, partition: int, cursor: StoreCursor, chunk_bytes: int) -> bytes | None:
        content, number = self.held[partition], len(cursor.keys)
        cursor.keys.append(f"{number}")
        if number == 0:
            return b"%d" % len(content)
        return content[number - 1] if number <= len(content) else None

    def receive(self, now: int, event: MigrationEvent, chunk: bytes | None) -> bool:
        assert self.open[event.partition] == event
        if chunk is None:
            return True
        self.told.append(("receive", event.partition))
        taken = self.staged.setdefault(event.partition, [])
        taken.append(chunk)
        return self.judges and len(taken) == int(taken[0]) + 1

    def commit(self, now: int, event: MigrationEvent) -> None:
        assert self.open.pop(event.partition) == event
        self.told.append(("commit", event.partition))
        if event.endpoint == "destination":
            head, *content = self.staged.pop(event.partition)
            assert len(content) == int(head), "it was committed before all had come"
            self.held[event.partition] = tuple(content)
        elif event.new_replica_index < 0:
            self.held.pop(event.partition, None)

    def rollback(self, now: int, event: MigrationEvent) -> None:
        assert self.open.pop(event.partition) == event
        self.told.append(("rollback", event.partition))
        self.staged.pop(event.partition, None)

    def placed(self, now: int, partition: int, before: int, index: int) -> None:
        assert before != index
        self.told.append((f"placed {before} {index}", partition))
        if index < 0:
            self.held.pop(partition, None)
        else:
            self.held.setdefault(partition, ())


class SteppedPartitions(SteppedCluster):
    """An ensemble whose members keep ghosts of data. Messages arrive at once and in order, unless the test has its way."""

    def __init__(self, partitions: int = 5, backups: int = 1, **changed: Any) -> None:
        super().__init__(training_settings(partition_count=partitions, backups=backups, **changed))
        self.ghosts: dict[str, FakeService] = {}
        self.dead = ""
        self.gold: dict[int, Content] = {p: (b"half of %d" % p, b"other half") for p in range(partitions)}
        self.delivered = 0

    def with_fake_service(self, names: str) -> None:
        """Give these members the service."""
        for name in names:
            self.ghosts[name] = FakeService()
            self.ghosts[name].life = self.machines[name].uuid
            state_of(self.machines[name]).context.service = self.ghosts[name]

    def arranged(self, names: str) -> Self:
        """A settled cluster with a table and data in every replica; all is quiet."""
        self.settled(names)
        self.with_fake_service(names)
        self.tell(names[0], ArrangePartitions(names[0]))
        self.run(3)
        for name in names:
            self.ghosts[name].held.update({p: self.gold[p] for p in self.ghosts[name].held})
        assert not self.complaints(), self.complaints()
        return self

    def with_table(self, names: str, *rows: str) -> Self:
        """A settled cluster with just these rows: names by replica index, - for nobody; all is quiet, nothing is planned."""
        self.arranged(names)
        master = self.machines[names[0]]
        table, master_role = self.table(names[0]), self.master_role(names[0])
        placed = [
            VersionedRow(partition, table.versions[partition] + 1, tuple(map(self.replica, row)))
            for partition, row in enumerate(rows)
        ]
        change(state_of(master), self.now, placed, (), "repaired")
        publish(state_of(master), self.now)
        self.conclude(names[0])
        master_role.wants_plan = False
        self.run(4)
        for name in names:
            ghost = self.ghosts[name]
            ghost.held = {p: self.gold[p] for p, row in enumerate(rows) if name in row}
            ghost.told.clear()
            self.events[name].clear()
        assert self.rows(names[0]) == list(rows)
        return self

    def replica(self, name: str) -> Replica | None:
        return None if name == "-" else Replica(address_of(name), self.machines[name].uuid)

    def migrate(self, master: str, *targets: str, partition: int = 0) -> None:
        """Queue the migrations that lead to these rows, from `partition` on, and begin."""
        queue = self.master_role(master).queue
        for number, target in enumerate(targets, start=partition):
            row = tuple(holder.uuid if holder is not None else None for holder in self.table(master).rows[number])
            wanted = tuple(self.machines[label].uuid if label != "-" else None for label in target)
            if steps := plan_migrations(row, wanted).steps:
                queue[number] = deque(steps)
        self.conclude(master)

    def until(self, kind: type, *, to: str | None = None, seconds: float = 3) -> None:
        """Deliver in order until a message of this kind waits, and stop before it is delivered."""
        until = self.now + round(seconds * SECOND_US)
        while not self.messages(kind, to=to):
            if self.sent:
                sender, receiver, message = self.sent.pop(0)
                if receiver in self.living and not self.loses(sender, receiver, message):
                    self.receive(receiver, sender, message)
            elif not self.skip(until):
                raise AssertionError(f"no {kind.__name__} was sent")

    def take_message(self, kind: type[MessageKind], *, to: str | None = None) -> tuple[str, str, MessageKind]:
        """Take the first waiting message of this kind off its way: sender, receiver, message."""
        for delivery in self.sent:
            if isinstance(delivery[2], kind) and to in (None, delivery[1]):
                self.sent.remove(delivery)
                return delivery
        raise AssertionError(f"no {kind.__name__} waits among {[type(delivery[2]).__name__ for delivery in self.sent]}")

    def holders(self, partition: int) -> str:
        """Who has the data of a partition, whatever the tables say."""
        return "".join(name for name in self.living if self.ghosts[name].held.get(partition) == self.gold[partition])

    def join(self, name: str, known: str = "ABC") -> None:
        """Let a member start that will find the cluster through `known`."""
        self.born(name, known)
        self.with_fake_service(name)
        self.start(name)

    def stop(self, name: str) -> None:
        """Ask a member to stop."""
        self.tell(name, StopMember(name))

    def kill(self, name: str) -> None:
        """What it has sent is still on its way."""
        self.dead += name
        del self.machines[name]

    def take(self, name: str, effects: Sequence[Effect]) -> None:
        """An incarnation that ends in a merge takes its data with it."""
        super().take(name, effects)
        if name in self.ghosts and self.machines[name].uuid != self.ghosts[name].life:
            self.with_fake_service(name)

    @property
    def living(self) -> str:
        return "".join(sorted(name for name in self.machines if name not in self.halted))

    def step(self) -> bool:
        """Deliver the first message that waits; whether there was one. Heartbeats do not count in `delivered`."""
        while self.sent:
            sender, receiver, message = self.sent.pop(0)
            if receiver not in self.machines or receiver in self.halted or (sender, receiver) in self.cut:
                continue
            if self.loses(sender, receiver, message):
                continue
            self.receive(receiver, sender, message)
            if not isinstance(message, Heartbeat):
                self.delivered += 1
                return True
        return False

    def skip(self, until: int) -> bool:
        """Let time pass until the first timer at or before `until`; whether there was one."""
        living = self.living
        if not living:
            return False
        at, name = min((self.machines[name].next_deadline, name) for name in living)
        if at > until:
            return False
        self.now = max(self.now, at)
        self.tell(name, TICK)
        return True

    def run(self, seconds: float) -> None:
        """Deliver everything, and let so much time pass."""
        until = self.now + round(seconds * SECOND_US)
        for _ in range(100_000):
            if not self.step() and not self.skip(until):
                break
        else:
            raise AssertionError("it does not come to rest")
        self.now = until

    def run_until_messages(self, count: int, seconds: float = 20) -> bool:
        """Go on until `count` messages more are delivered. Return whether there were so many."""
        self.delivered, until = 0, self.now + round(seconds * SECOND_US)
        while self.delivered < count:
            if not self.step() and not self.skip(until):
                return False
        return True

    def parts(self, name: str) -> Partitions:
        return state_of(self.machines[name]).partitions

    def master_role(self, name: str) -> MasterRole:
        master_role = self.parts(name).master_role
        assert master_role is not None
        return master_role

    def table(self, name: str) -> PartitionTable:
        table = self.inspect(name).partitions.table
        assert table is not None
        return table

    def row(self, name: str, partition: int) -> str:
        """The row of a partition as a member knows it: by replica index, - for nobody, lower case for lives that are gone."""
        letters = []
        for replica in self.table(name).rows[partition]:
            if replica is None:
                letters.append("-")
                continue
            letter = name_of(replica.address)
            alive = letter in self.machines and self.machines[letter].uuid == replica.uuid
            letters.append(letter if alive else letter.lower())
        return "".join(letters)

    def rows(self, name: str) -> list[str]:
        return [self.row(name, partition) for partition in range(len(self.table(name)))]

    def complaints(self, *, losses: bool = True) -> list[str]:
        """Everything that should not be so when all is quiet."""
        found = []
        living = self.living
        data = [name for name in living if not self.inspect(name).lite]
        masters = {self.master_of(name) for name in living}
        if len(masters) != 1 or not masters <= set(living):
            return [f"masters {masters}"]
        if without := [name for name in living if self.inspect(name).partitions.table is None]:
            return [f"{without} have no table"]
        tables = {(self.table(name).version, self.table(name).digest) for name in living}
        if len(tables) != 1:
            found.append(f"tables differ: { {name: self.rows(name) for name in living} }")
        for name in living:
            if self.parts(name).active:
                found.append(f"{name} still waits for the end of {self.parts(name).active}")
            if self.parts(name).completed:
                found.append(f"{name} remembers {len(self.parts(name).completed)} completed migrations")
        master_role = self.parts(self.master_of(living[0]) or "").master_role
        if (
            master_role is None
            or master_role.running
            or master_role.queue
            or master_role.wants_plan
            or master_role.recovery
        ):
            found.append(f"the master is not at rest: {master_role}")
        for partition, replicas in enumerate(self.table(living[0]).rows):
            places = [replica for replica in replicas if replica is not None]
            if len(places) < min(len(data), len(replicas)) or replicas[0] is None:
                found.append(f"row {partition} is {self.row(living[0], partition)}")
            for name in living:
                index = index_of(self.machines[name].uuid, self.table(name).rows[partition])
                held = self.ghosts[name].held.get(partition)
                if (held is None) != (index < 0):
                    found.append(f"{name} is at {index} of partition {partition} and holds {held}")
                elif losses and held is not None and held != self.gold[partition]:
                    found.append(f"{name} has lost partition {partition}: {held}")
        for name in living:
            if self.ghosts[name].open or self.ghosts[name].staged:
                found.append(f"{name}: open {self.ghosts[name].open}, staged {self.ghosts[name].staged}")
        return found


def table_of(rows: Iterable[VersionedRow], partitions: int, width: int) -> PartitionTable:
    """The table that has these rows."""
    table = empty_table(partitions, width)
    for row in rows:
        table.put(row)
    return table


def quiet(*rows: str, members: str = "ABCD", **changed: int) -> SteppedPartitions:
    """Return a settled cluster whose table has just these rows, with as many backups as they have places."""
    return SteppedPartitions(len(rows), len(rows[0]) - 1, **changed).with_table(members, *rows)
