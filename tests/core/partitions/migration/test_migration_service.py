"""Several services that keep data in partitions beside one another (Avoid Data Loss on Migration, User Interaction)."""

import pytest

from quarterdeck.backend.core.partitions.events import MigrationFinished
from quarterdeck.backend.core.partitions.messages import MigrationChunk, MigrationChunkAck, MigrationReport, TableUpdate
from tests.core.member_state import state_of
from tests.core.stepped_partitions import FakeService, SteppedPartitions, quiet

# A is master and holds nothing. Every member has the ghost, and beside it a second service.


def two_services(
    names: str, *rows: str, backups: int = 1, judges: bool = True
) -> tuple[SteppedPartitions, dict[str, FakeService]]:
    world = SteppedPartitions(len(rows), backups, transfer_window_chunks=1).with_table(names, *rows)
    others = {name: FakeService("other", judges=judges) for name in names}
    for name in names:
        state_of(world.machines[name]).context.services = (world.ghosts[name], others[name])
        others[name].held = dict.fromkeys(world.ghosts[name].held, (b"1", b"2", b"3"))
    return world, others


def test_both_migrate_together() -> None:
    world, others = two_services("ABCD", "BC")
    world.migrate("A", "DC")
    world.run(3)
    assert world.rows("A") == ["DC"] and world.holders(0) == "CD"
    assert others["D"].held == {0: (b"1", b"2", b"3")} and others["B"].held == {}


def test_a_service_that_is_content_does_not_end_the_copy_of_the_others() -> None:
    world, others = two_services("ABCD", "BC", judges=False)
    world.migrate("A", "DC")
    world.run(3)
    assert others["D"].held == {0: (b"1", b"2", b"3")} and world.holders(0) == "CD"


def test_a_repeated_chunk_of_a_content_service_does_not_speak_for_the_next_one() -> None:
    world, others = two_services("ABCD", "BC")
    world.migrate("A", "DC")
    world.until(MigrationChunk)
    numbers = len(world.gold[0])
    while world.messages(MigrationChunk)[-1].service == "ghost":
        late = world.messages(MigrationChunk)[-1]
        world.deliver(MigrationChunk)
        world.deliver(MigrationChunkAck)
    assert late.number == numbers and world.messages(MigrationChunk)[0].service == "other"
    world.deliver(MigrationChunk)
    world.drop(MigrationChunkAck)
    world.receive("D", "B", late)  # the network delivers it once more; its service needs no more
    world.deliver(MigrationChunkAck)
    world.run(4)
    assert others["D"].held == {0: (b"1", b"2", b"3")}


def test_a_repeated_last_chunk_says_once_more_that_its_service_is_content() -> None:
    world, _ = two_services("ABCD", "BC")
    world.migrate("A", "DC")
    world.until(MigrationChunk)
    while world.messages(MigrationChunk)[-1].service == "ghost":
        late = world.messages(MigrationChunk)[-1]
        world.deliver(MigrationChunk)
        world.drop(MigrationChunkAck) if late.number == 2 else world.deliver(MigrationChunkAck)
        if late.number == 2:
            break
    world.receive("D", "B", late)
    assert [(message.number, message.enough) for message in world.messages(MigrationChunkAck)] == [(2, True)]


def test_a_member_without_any_service_takes_part_all_the_same() -> None:
    world = quiet("BC")
    for name in "ABCD":
        state_of(world.machines[name]).context.services = ()
    world.migrate("A", "DC")
    world.run(3)
    assert world.rows("A") == ["DC"] and world.holders(0) == "BC"


@pytest.mark.parametrize(
    ("row", "target", "source", "destination"),
    [
        ("BC-", "DC-", ("B", 0, -1), ("D", -1, 0)),  # MOVE of the owner
        ("BC-", "BD-", ("C", 1, -1), ("D", -1, 1)),  # MOVE of a backup
        ("BC-", "BCD", ("B", 0, 0), ("D", -1, 2)),  # COPY: the owner sends, and stays as it is
        ("B-C", "BC-", ("B", 0, 0), ("C", 2, 1)),  # SHIFT UP
        ("B-C", "DBC", ("B", 0, 1), ("D", -1, 0)),  # SHIFT DOWN
    ],
)
def test_each_side_is_told_its_index_before_and_after(
    row: str, target: str, source: tuple[str, int, int], destination: tuple[str, int, int]
) -> None:
    world, others = two_services("ABCD", row, backups=2)
    world.migrate("A", target)
    world.run(3)
    assert world.rows("A") == [target]
    for endpoint, (name, before, after) in (("source", source), ("destination", destination)):
        ends = [event for event in world.seen(name, MigrationFinished) if event.endpoint == endpoint]
        assert [(end.current_replica_index, end.new_replica_index) for end in ends] == [(before, after)]
        assert (0 in others[name].held) == (after >= 0)


def test_before_comes_first_and_one_of_commit_and_rollback_last() -> None:
    world, others = two_services("ABCD", "BC")
    world.migrate("A", "DC")
    world.until(MigrationReport)
    for ghost in (world.ghosts["D"], others["D"]):
        assert ghost.told[0] == ("before", 0) and {what for what, _ in ghost.told[1:]} == {"receive"}
    assert [what for what, _ in others["B"].told] == ["before"]
    world.run(3)
    assert [what for what, _ in others["D"].told][-2:] == ["commit", "placed -1 0"]
    assert [what for what, _ in others["B"].told] == ["before", "commit", "placed 0 -1"]


def test_a_backup_that_gives_up_its_place_is_told_before_and_commit_at_once() -> None:
    world, others = two_services("ABCD", "BC")
    world.migrate("A", "BD")
    world.until(TableUpdate, to="C")
    assert others["C"].told == []
    world.run(3)
    assert [what for what, _ in others["C"].told] == ["before", "commit", "placed 1 -1"]


def test_what_a_shift_up_brought_goes_when_it_is_rolled_back_and_the_old_data_stays() -> None:
    world, others = two_services("ABCD", "B-C", backups=2)
    world.migrate("A", "BC-")
    world.until(MigrationReport)
    others["C"].held[0] = (b"what C had",)
    report = world.take_message(MigrationReport)[2]
    world.receive("A", "B", MigrationReport(report.migration_id, "it went wrong"))
    world.run(0.5)
    assert world.row("C", 0) == "B-C" and others["C"].held[0] == (b"what C had",)
    assert [what for what, _ in others["C"].told][-1] == "rollback"


def test_the_table_alone_places_members_that_no_migration_brought() -> None:
    world, others = two_services("ABCD", "BC")
    world.kill("B")
    world.run(8)
    assert ("placed 1 0", 0) in others["C"].told and world.holders(0)[0] == "A"
    assert not world.complaints()
