"""What one migration costs, by the number of partitions, as one line of JSON for each number.

Three members hold the partitions, a fourth joins, and what is moved to it is measured: processor time for each migration, and
what the master publishes meanwhile, with all acknowledgements and with those of one follower lost. Neither may depend on the
number of partitions. Run it as ``python tests/bench/migration_cost.py``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import ArrangePartitions, DropMessages, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.events import MigrationDecided
from quarterdeck.backend.core.partitions.messages import TableUpdate
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import World

PARTITIONS = (271, 1_000, 3_000, 12_000, 50_021)
WITH_LOST_ACKNOWLEDGEMENTS = (271, 1_000, 3_000)
WARM_UP = 271
HOLDERS = ("a", "b", "c")
NEWCOMER = "d"


@dataclass
class MigrationCost:
    """What a rebalance cost in all."""

    migrations: int = 0
    cpu_seconds: float = 0
    publications: int = 0
    rows: int = 0
    """Rows of the table in all publications."""
    largest_bytes: int = 0
    """The longest publication to a member that had the table already."""
    publication_bytes: int = 0


def rebalance(partitions: int, *, loses_acknowledgements: bool = False) -> MigrationCost:
    """Let a fourth member join three that hold `partitions` partitions, and wait until all are moved."""
    cost = MigrationCost()

    def count(record: Record) -> None:
        cost.migrations += isinstance(record.event, MigrationDecided)

    settings = Settings.of({"hazelcast.partition.count": str(partitions)}, preset="training")
    world = World((*HOLDERS, NEWCOMER), seed=1, settings=settings, on_record=count)
    for label in HOLDERS:
        world.execute(StartMember(label))
        pass_seconds(world, 2)
    world.execute(ArrangePartitions("a"))
    pass_seconds(world, 5)
    if loses_acknowledgements:
        world.execute(DropMessages(("c",), ("a",), ("table-ack",)))
    with published(cost):
        world.execute(StartMember(NEWCOMER))
        pass_seconds(world, 3)
        moved = -1
        while moved != cost.migrations:
            moved = cost.migrations
            pass_seconds(world, 1)
    return cost


def pass_seconds(world: World, seconds: int) -> None:
    world.run_until(world.now_us + seconds * SECOND_US)


@contextmanager
def published(cost: MigrationCost) -> Iterator[None]:
    """Count what masters publish, and the processor time without the counting."""
    encode, send = msgspec.msgpack.Encoder().encode, Membership.send
    counting = 0.0

    def counted(state: Membership, to: Address, message: Message, because: RecordId | None = None) -> None:
        nonlocal counting
        if isinstance(message, TableUpdate):
            began = time.process_time()
            size = len(encode(message))
            cost.publications += 1
            cost.rows += len(message.rows.rows)
            cost.publication_bytes += size
            if message.since >= 0:
                cost.largest_bytes = max(cost.largest_bytes, size)
            counting += time.process_time() - began
        send(state, to, message, because)

    Membership.send = counted  # type: ignore[method-assign]
    began = time.process_time()
    try:
        yield
    finally:
        cost.cpu_seconds = time.process_time() - began - counting
        Membership.send = send  # type: ignore[method-assign]


def main() -> None:
    rebalance(WARM_UP)
    for lost, numbers in ((False, PARTITIONS), (True, WITH_LOST_ACKNOWLEDGEMENTS)):
        for partitions in numbers:
            cost = rebalance(partitions, loses_acknowledgements=lost)
            told = {
                "partitions": partitions,
                "acknowledgements_lost": lost,
                "migrations": cost.migrations,
                "cpu_ms_a_migration": round(1000 * cost.cpu_seconds / cost.migrations, 3),
                "rows_a_migration": round(cost.rows / cost.migrations, 2),
                "publication_bytes": cost.publication_bytes,
                "bytes_a_partition": round(cost.publication_bytes / partitions, 1),
                "largest_publication_bytes": cost.largest_bytes,
            }
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
