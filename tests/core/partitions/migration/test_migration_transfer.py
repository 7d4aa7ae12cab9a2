"""Copying a partition: who takes part, and what lost, repeated and late messages do (Avoid Data Loss on Migration, 2.1 and 3;
Hazelcast: one migration)."""

import pytest
from msgspec import structs

from quarterdeck.backend.core.partitions.events import MigrationAccepted, MigrationDecided, MigrationRejected
from quarterdeck.backend.core.partitions.messages import (
    MigrationChunk,
    MigrationChunkAck,
    MigrationCommit,
    MigrationReport,
    MigrationRequest,
    TableUpdate,
)
from quarterdeck.backend.core.partitions.table.partition_table import Replica
from tests.core.member_state import state_of
from tests.core.stepped_cluster import address_of
from tests.core.stepped_partitions import FakeService, SteppedPartitions, quiet

# A is master and holds nothing; partition 0 moves from B to D.


def a_move(**changed: int) -> SteppedPartitions:
    world = quiet("BC", "CB", **changed)
    world.migrate("A", "DC")
    return world


def is_moved(world: SteppedPartitions) -> bool:
    return world.rows("C") == ["DC", "CB"] and world.holders(0) == "CD" and not world.complaints()


def test_the_owner_sends_the_data_also_where_a_backup_is_replaced() -> None:
    world = quiet("BC")
    world.migrate("A", "BD")
    sender, receiver, request = world.take_message(MigrationRequest)
    assert receiver == "B" and world.machines["C"].uuid == request.migration.source.uuid  # type: ignore[union-attr]
    world.receive(receiver, sender, request)
    assert world.take_message(MigrationChunk)[:2] == ("B", "D")


@pytest.mark.parametrize("kind", [MigrationRequest, MigrationChunk, MigrationChunkAck, MigrationReport])
def test_a_lost_message_is_sent_again(kind: type) -> None:
    world = a_move()
    world.until(kind)
    assert world.drop(kind)
    world.run(4)
    assert is_moved(world)
    assert [event.committed for event in world.seen("A", MigrationDecided)] == [True]


def test_every_message_may_be_lost_once() -> None:
    lost: set[tuple[str, str, int]] = set()

    def loses(sender: str, receiver: str, message: object) -> bool:
        if not isinstance(message, MigrationRequest | MigrationChunk | MigrationChunkAck | MigrationReport):
            return False
        once = (sender, type(message).__name__, getattr(message, "number", 0))
        if once in lost:
            return False
        lost.add(once)
        return True

    world = a_move(transfer_window_chunks=1)
    world.loses = loses
    world.run(12)
    assert is_moved(world) and len(lost) == 8


@pytest.mark.parametrize("kind", [MigrationRequest, MigrationChunk, MigrationChunkAck, MigrationReport])
def test_messages_that_come_twice_do_no_more_than_once(kind: type) -> None:
    world = a_move()
    for _ in range(200):
        if world.sent:
            sender, receiver, message = world.sent.pop(0)
            for _ in range(2 if isinstance(message, kind) else 1):
                world.receive(receiver, sender, message)
        elif not world.skip(world.now + 200_000):
            break
    world.run(4)
    assert is_moved(world)
    assert world.ghosts["D"].told.count(("receive", 0)) == 3
    assert len(world.seen("A", MigrationDecided)) == 1


def test_chunks_that_overtake_one_another_are_taken_in_their_order() -> None:
    world = a_move(transfer_window_chunks=4)
    world.until(MigrationChunkAck)
    world.deliver(MigrationChunkAck)
    chunks = [world.take_message(MigrationChunk) for _ in range(3)]
    for sender, receiver, chunk in reversed(chunks):
        world.receive(receiver, sender, chunk)
    assert world.ghosts["D"].staged[0] == [b"2", *world.gold[0]]
    world.run(4)
    assert is_moved(world)


def test_only_so_many_chunks_are_on_their_way() -> None:
    world = quiet("BC", transfer_window_chunks=3)
    world.gold[0] = world.ghosts["B"].held[0] = world.ghosts["C"].held[0] = tuple(
        b"%d" % number for number in range(20)
    )
    world.migrate("A", "DC")
    world.until(MigrationChunk)
    assert len(world.messages(MigrationChunk)) == 1  # the first goes alone: it may be all that is needed
    world.deliver(MigrationChunk)
    world.deliver(MigrationChunkAck)
    assert [message.number for message in world.messages(MigrationChunk)] == [1, 2, 3]
    most = 0
    for _ in range(60):
        most = max(most, len(world.messages(MigrationChunk)))
        world.step()
    world.run(3)
    assert most == 3 and world.holders(0) == "CD"


def test_a_participant_that_missed_a_publication_takes_no_part_until_it_has_it() -> None:
    world = quiet("BC")
    world.loses = lambda sender, receiver, message: receiver == "B" and isinstance(message, TableUpdate)
    world.migrate("A", "BD")  # which B does not hear of
    world.run(1)
    world.migrate("A", "BC")
    world.run(0.5)
    assert world.row("A", 0) == "BD" and world.row("B", 0) == "BC"
    rejected = world.seen("B", MigrationRejected)
    assert rejected and "does not know yet how its migration" in rejected[-1].reason
    world.loses = lambda *_: False
    world.run(4)
    assert world.row("B", 0) == "BC" and world.holders(0) == "BC"


def test_a_stale_version_is_rejected() -> None:
    world = quiet("BC")
    world.cut_links("A", "C", one_way=True)
    world.migrate("A", "DC")
    world.run(1)
    assert world.row("C", 0) == "BC" and world.row("A", 0) == "DC"
    world.migrate("A", "CD")  # C must become owner, and does not know of the change before
    world.cut.clear()
    world.loses = lambda sender, receiver, message: receiver == "C" and isinstance(message, TableUpdate)
    world.run(0.5)
    assert not world.parts("C").active
    world.loses = lambda *_: False
    world.run(4)
    assert world.holders(0) == "CD" and not world.complaints()


def test_a_destination_that_missed_a_change_of_the_row_waits_for_it() -> None:
    """Otherwise it would commit on top of the row that it knows, and have another content under the same version."""
    world = quiet("BC-", members="ABCDE")
    world.loses = lambda sender, receiver, message: receiver == "E" and isinstance(message, TableUpdate)
    world.migrate("A", "BCD")  # which E does not hear of
    world.run(1)
    world.migrate("A", "BED")
    world.run(0.5)
    assert world.row("E", 0) == "BC-" and not world.seen("E", MigrationAccepted)
    world.loses = lambda *_: False
    world.run(4)
    assert world.row("E", 0) == "BED" and not world.complaints()


def test_a_request_for_a_version_that_is_past_fails() -> None:
    world = a_move()
    sender, receiver, request = world.take_message(MigrationRequest)
    world.master_role("A").running.clear()
    world.master_role("A").members_busy = False
    world.migrate("A", "CB", partition=1)
    world.migrate("A", "BD")
    world.run(3)
    assert world.row("B", 0) == "BD"
    world.receive(receiver, sender, request)
    (report,) = world.messages(MigrationReport)
    assert not report.retry and "at version" in report.problem
    assert not world.parts("B").active


def test_while_the_end_of_a_migration_is_not_known_another_one_of_the_partition_is_rejected() -> None:
    world = a_move()
    world.until(MigrationChunk)
    first = world.parts("B").active[0].migration
    other = type(first)(**{**{name: getattr(first, name) for name in first.__struct_fields__}, "id": "another"})
    world.receive("B", "A", MigrationRequest(other))
    assert world.messages(MigrationReport)[0].retry
    assert world.parts("B").active[0].migration == first
    world.run(4)
    assert is_moved(world)


def test_a_migration_that_is_wholly_copied_has_no_end_yet() -> None:
    world = a_move()
    world.until(MigrationCommit)
    migration = world.parts("B").active[0].migration
    other = structs.replace(migration, id="another")
    world.receive("B", "A", MigrationRequest(other))
    world.receive("D", "B", MigrationChunk(other, 0, "ghost", b"2"))
    assert world.messages(MigrationReport)[0].retry and world.messages(MigrationChunkAck, to="B")[0].retry
    assert world.parts("B").active[0].migration == world.parts("D").active[0].migration == migration
    world.run(4)
    assert is_moved(world)


def test_orders_of_somebody_who_is_not_the_master_are_refused() -> None:
    world = a_move()
    _, _, request = world.take_message(MigrationRequest)
    world.receive("B", "C", request)
    (report,) = world.messages(MigrationReport)
    assert "is not its master" in report.problem and not report.retry and not world.parts("B").active


def test_a_chunk_of_somebody_who_is_not_the_owner_is_refused() -> None:
    world = a_move()
    world.until(MigrationChunk)
    _, _, chunk = world.take_message(MigrationChunk)
    world.receive("D", "C", chunk)
    assert world.messages(MigrationChunkAck, to="C")[0].problem and not world.parts("D").active


def test_a_chunk_for_an_earlier_life_of_the_destination_is_refused() -> None:
    world = a_move()
    world.until(MigrationChunk)
    _, _, chunk = world.take_message(MigrationChunk)
    earlier = structs.replace(chunk.migration, destination=Replica(address_of("D"), "an earlier life"))
    world.receive("D", "B", structs.replace(chunk, migration=earlier))
    assert world.messages(MigrationChunkAck, to="B")[0].problem and not world.parts("D").active


def test_a_late_chunk_of_a_decided_migration_changes_nothing() -> None:
    for committed in (True, False):
        world = a_move(migration_timeout_us=2_000_000)
        world.until(MigrationChunk)
        chunk = world.messages(MigrationChunk)[0]
        if not committed:
            world.loses = lambda sender, receiver, message: isinstance(message, MigrationReport)
        world.run(2.5)
        assert world.seen("A", MigrationDecided)[0].committed == committed
        for pause in (0, 8):  # while the end is on the list of completed migrations, and after it was evicted
            world.loses = lambda *_: False
            world.run(pause)
            before = (list(world.ghosts["D"].told), world.rows("D"))
            world.receive("D", "B", chunk)
            assert (world.ghosts["D"].told, world.rows("D")) == before and not world.parts("D").active
            assert world.messages(MigrationChunkAck)[-1].problem


def test_a_first_chunk_that_overtakes_the_failure_of_its_migration_is_rolled_back() -> None:
    world = a_move(migration_timeout_us=500_000)
    world.until(MigrationChunk)
    sender, receiver, chunk = world.take_message(MigrationChunk)
    world.loses = lambda sender, receiver, message: receiver == "D"
    world.run(0.8)
    assert [event.committed for event in world.seen("A", MigrationDecided)] == [False]
    world.receive(receiver, sender, chunk)
    assert world.seen("D", MigrationAccepted)
    world.loses = lambda *_: False
    world.run(6)
    assert not world.complaints() and world.row("D", 0)[1] == "C"
    assert world.ghosts["D"].told[:3] == [("before", 0), ("receive", 0), ("rollback", 0)]


def test_a_destination_that_has_it_all_needs_the_first_chunk_only() -> None:
    class Knows(FakeService):
        def receive(self, now: int, event: object, chunk: bytes) -> bool:  # type: ignore[override]
            super().receive(now, event, chunk)  # type: ignore[arg-type]
            self.staged[event.partition] = [b"2", *self.held[event.partition]]  # type: ignore[attr-defined]
            return True

    world = quiet("B-D")
    knows = Knows()
    knows.held = world.ghosts["D"].held
    world.ghosts["D"] = knows
    knows.life = world.machines["D"].uuid
    state_of(world.machines["D"]).context.service = knows
    world.migrate("A", "BD-")
    world.until(MigrationCommit)
    assert knows.told.count(("receive", 0)) == 1
    world.run(1)
    assert world.rows("C") == ["BD-"] and world.holders(0) == "BD"


def test_a_destination_that_objects_ends_the_copy_and_is_not_sent_more() -> None:
    world = a_move(migration_timeout_us=30_000_000)
    world.until(MigrationChunk)
    _, _, chunk = world.take_message(MigrationChunk)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationReport)
    world.receive("B", "D", MigrationChunkAck(chunk.migration.id, -1, False, False, "no"))
    sent: list[object] = []
    world.loses = lambda sender, receiver, message: (
        (isinstance(message, MigrationChunk) and bool(sent.append(message) or True))
        or isinstance(message, MigrationReport)
    )
    world.run(3.5)
    assert len(sent) <= 1
