"""Members that hold data, put together by hand: tests write their tables, and deliver or drop what they send."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from quarterdeck.backend.core.data import handlers, map_calls
from quarterdeck.backend.core.data.map_service import MapService, entries_of
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.effects import Happened, OperationAnswered, Transmit
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership.failure_detection.failure_detector import DeadlineDetector, Peer
from quarterdeck.backend.core.membership.state import MemberConfiguration
from quarterdeck.backend.core.membership.undertakings import Following, Leading
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.operations import Answer, Get, Operation, Put
from quarterdeck.backend.core.partitions.migration.migration import (
    CompletedMigration,
    Endpoint,
    MigrationEvent,
    PartitionMigration,
    StoreCursor,
)
from quarterdeck.backend.core.partitions.state import ActiveMigration, PartitionContext
from quarterdeck.backend.core.partitions.table.learning import learn
from quarterdeck.backend.core.partitions.table.partition_table import (
    Replica,
    Replicas,
    VersionedRow,
    empty_table,
    index_of,
)
from quarterdeck.backend.core.properties import SECOND_US, Settings
from tests.core.stepped_cluster import address_of, name_of, training_settings


class MapNetwork:
    """Members by one-letter names, all on one list. `rows` is the table as their master has it; members learn it by `learn`."""

    def __init__(
        self, names: str, rows: list[str], settings: Settings | None = None, *, utc_origin_us: int = 0
    ) -> None:
        self.now = 0
        self.settings = settings or training_settings(partition_count=len(rows))
        self.utc_origin_us = utc_origin_us
        self.states: dict[str, MemberState] = {}
        self.sent: list[tuple[str, str, Message]] = []
        self.answers: dict[int, Answer] = {}
        self.events: dict[str, list[Event]] = {}
        self.dead = ""
        self.calls = 0
        self.asked: dict[int, tuple[str, Operation]] = {}
        for name in names:
            self.born(name)
        self.list_all()
        self.width = max(map(len, rows), default=1)
        self.rows = [self.row_of(row) for row in rows]
        self.versions = [1] * len(rows)
        for name in names:
            if rows:
                self.learn(name)

    def born(self, name: str) -> MemberState:
        member_configuration = MemberConfiguration(
            "test", name, address_of(name), (), self.settings, self.utc_origin_us
        )
        state = self.states[name] = MemberState.born(PartitionContext(member_configuration), Random(ord(name)))
        state.context.service = MapService(state)
        self.events[name] = []
        return state

    def list_all(self) -> None:
        """Put everybody alive on one list, at once."""
        alive = [name for name in sorted(self.states) if name not in self.dead]
        members = tuple(Member(address_of(name), self.states[name].uuid, 1) for name in alive)
        for name in alive:
            state = self.states[name]
            state.master = members[0].address
            state.doing = Leading() if state.master == state.address else Following()
            state.members = MemberList(len(members), members, "lineage")
            state.peers = {
                member.address: Peer(member.uuid, DeadlineDetector(0, SECOND_US), 0)
                for member in members
                if member.uuid != state.uuid
            }
            handlers.on_list_changed(state, self.now)
            self.take(name)

    def row_of(self, names: str) -> Replicas:
        """AB- is the row of owner A, backup B and a hole."""
        replicas = [None if name == "-" else Replica(address_of(name), self.states[name].uuid) for name in names]
        return (*replicas, *[None] * (self.width - len(replicas)))

    def names_in(self, partition: int) -> str:
        return "".join("-" if row is None else name_of(row.address) for row in self.rows[partition])

    def set_row(self, partition: int, names: str) -> None:
        """The master changes a row. Nobody has heard of it yet."""
        self.rows[partition] = self.row_of(names)
        self.versions[partition] += 1

    def learn(self, name: str, *decided: CompletedMigration) -> None:
        """A member hears of the whole table, and of these ends of migrations."""
        state = self.states[name]
        if state.partitions.table is None:
            state.partitions.table = empty_table(len(self.rows), self.width)
        rows = [VersionedRow(*row) for row in zip(range(len(self.rows)), self.versions, self.rows, strict=True)]
        learn(state, self.now, rows, decided, author="", cause="published")
        handlers.on_table_changed(state, self.now)
        self.take(name)

    def learn_all(self) -> None:
        for name in self.alive:
            self.learn(name)

    @property
    def alive(self) -> list[str]:
        return [name for name in self.states if name not in self.dead]

    def kill(self, name: str) -> None:
        self.dead += name

    # What clients do

    def call(self, name: str, operation: Operation, *, watched: bool = False) -> int:
        self.calls += 1
        self.asked[self.calls] = (name, operation)
        map_calls.call(self.states[name], self.now, self.calls, operation, watched)
        self.take(name)
        return self.calls

    def ask(self, name: str, operation: Operation) -> Answer:
        """Ask, let everything be delivered, and see the answer."""
        call = self.call(name, operation)
        self.settle()
        return self.answers[call]

    def put(self, name: str, key: str, value: str) -> Answer:
        return self.ask(name, Put("m", key, value.encode()))

    def get(self, name: str, key: str) -> bytes | None:
        return self.ask(name, Get("m", key)).value

    # What the network does

    def take(self, name: str) -> None:
        state = self.states[name]
        effects, state.context.effects = state.context.effects, []
        for effect in effects:
            if isinstance(effect, Transmit):
                self.sent += [(name, name_of(address), message) for address, message in effect.deliveries]
            elif isinstance(effect, OperationAnswered):
                assert effect.call not in self.answers, "answered twice"
                self.answers[effect.call] = effect.answer
            elif isinstance(effect, Happened):
                self.events[name].append(effect.record.event)

    def receive(self, name: str, sender: str, message: Message) -> None:
        if name in self.dead or type(message) not in handlers.DATA_MESSAGE_HANDLERS:
            return
        handlers.DATA_MESSAGE_HANDLERS[type(message)](self.states[name], self.now, address_of(sender), message)
        self.take(name)

    def deliver(self, place: int = 0) -> None:
        sender, receiver, message = self.sent.pop(place)
        self.receive(receiver, sender, message)

    def messages(self, kind: type) -> list[Message]:
        return [message for _, _, message in self.sent if isinstance(message, kind)]

    def drop(self, kind: type) -> int:
        """Lose all messages of a kind that wait now; how many there were."""
        before = len(self.sent)
        self.sent = [delivery for delivery in self.sent if not isinstance(delivery[2], kind)]
        return before - len(self.sent)

    def tick(self, name: str) -> None:
        state = self.states[name]
        self.now += state.timers.earliest == self.now + 1  # the next slice of a call is due
        while name not in self.dead and state.timers.earliest <= self.now:
            timer = state.timers.pop_earliest()
            for handler in handlers.DATA_TIMER_HANDLERS.get(timer, ()):
                handler(state, self.now)
        self.take(name)

    def tick_all(self) -> None:
        for name in self.alive:
            self.tick(name)

    def settle(self, most: int = 20_000) -> None:
        """Deliver and tick at one instant until nothing more happens."""
        for _ in range(most):
            self.tick_all()
            if self.sent:
                self.deliver()
            elif all(self.states[name].timers.earliest > self.now + 1 for name in self.alive):
                return
        raise AssertionError(f"there is no end to it: {self.sent[:3]}")

    def pass_seconds(self, seconds: float, step: float = 0.05) -> None:
        """Let time pass, with all that is sent delivered."""
        until = self.now + round(seconds * SECOND_US)
        while self.now < until:
            self.settle()
            self.now = min(until, self.now + round(step * SECOND_US))
        self.settle()

    def seen(self, name: str, kind: type) -> list:
        return [event for event in self.events[name] if isinstance(event, kind)]

    # Migrations, by hand

    def migration(self, partition: int, names_after: str, destination: str) -> PartitionMigration:
        """The migration by which `destination` comes to its place in `names_after`; the source is whoever loses that place."""
        before, after = self.rows[partition], self.row_of(names_after)
        to = Replica(address_of(destination), self.states[destination].uuid)
        new = index_of(to.uuid, after)
        source = before[new]
        return PartitionMigration(
            f"migration {self.versions[partition]}",
            partition,
            "MOVE",
            self.versions[partition],
            source,
            new if source is not None else -1,
            index_of(source.uuid, after) if source is not None else -1,
            to,
            index_of(to.uuid, before),
            new,
            to,
        )

    def event(self, name: str, migration: PartitionMigration, endpoint: Endpoint) -> MigrationEvent:
        uuid, row = self.states[name].uuid, self.rows[migration.partition]
        return MigrationEvent(
            migration.id, migration.partition, endpoint, index_of(uuid, row), index_of(uuid, migration.applied_to(row))
        )

    def begin_migration(self, migration: PartitionMigration) -> Iterator[bytes]:
        """At the owner and the destination; the chunks are those that the owner makes."""
        owner = self.names_in(migration.partition)[0]
        destination = name_of(migration.destination.address)
        for name, endpoint in ((owner, "source"), (destination, "destination")):
            state = self.states[name]
            event = self.event(name, migration, endpoint)
            state.partitions.active[migration.partition] = ActiveMigration(migration, event)
            state.context.service.before(self.now, event)
        return self.chunks_of(owner, migration.partition)

    def chunks_of(self, owner: str, partition: int) -> Iterator[bytes]:
        service, cursor = self.states[owner].context.service, StoreCursor()
        while chunk := service.next_chunk(partition, cursor, self.settings.transfer_chunk_bytes):
            yield chunk

    def take_chunks(self, migration: PartitionMigration, chunks: Iterator[bytes]) -> int:
        """How many chunks the destination took until it had all."""
        state = self.states[name_of(migration.destination.address)]
        event = state.partitions.active[migration.partition].event
        for number, chunk in enumerate(chunks, start=1):
            if state.context.service.receive(self.now, event, chunk):
                state.partitions.active[migration.partition].complete = True
                return number
        raise AssertionError("the destination never had enough")

    def commit(self, migration: PartitionMigration) -> None:
        """The destination commits first; the others learn the row later."""
        self.rows[migration.partition] = migration.applied_to(self.rows[migration.partition])
        self.versions[migration.partition] += 1
        self.learn(name_of(migration.destination.address))

    def migrate(self, partition: int, names_after: str, destination: str) -> None:
        """A whole migration, of which all but its owner and its destination hear later."""
        migration = self.migration(partition, names_after, destination)
        self.take_chunks(migration, self.begin_migration(migration))
        self.commit(migration)

    # What must hold at the end

    def entries(self, name: str, partition: int = 0) -> dict[tuple[str, str], bytes]:
        return entries_of(self.states[name], partition)

    def assert_equal_replicas(self) -> None:
        for partition, row in enumerate(self.rows):
            stores = [
                self.states[name_of(holder.address)].data.stores[partition] for holder in row if holder is not None
            ]
            for store in stores[1:]:
                assert store.stamp == stores[0].stamp
                assert store.digest == stores[0].digest
                assert {name: sorted(one) for name, one in store.maps.items()} == {
                    name: sorted(one) for name, one in stores[0].maps.items()
                }
            names = "".join(name_of(holder.address) for holder in row if holder is not None)
            for name in self.alive:
                assert (partition in self.states[name].data.stores) == (name in names), (name, partition)
