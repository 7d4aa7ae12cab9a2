"""What a service that keeps data in partitions hears of migrations (Avoid Data Loss on Migration, User Interaction)."""

import pytest

from quarterdeck.backend.core.partitions.events import MigrationFinished
from quarterdeck.backend.core.partitions.messages import MigrationChunk, MigrationChunkAck, MigrationReport, TableUpdate
from tests.core.stepped_partitions import SteppedPartitions

# A is master and holds nothing.


def one_row(row: str, backups: int = 1) -> SteppedPartitions:
    return SteppedPartitions(1, backups, transfer_window_chunks=1).with_table("ABCD", row)


def test_the_end_of_the_copy_counts_where_the_service_does_not_say_that_it_has_all() -> None:
    world = one_row("BC")
    for service in world.ghosts.values():
        service.judges = False
    world.migrate("A", "DC")
    world.run(3)
    assert world.rows("A") == ["DC"] and world.holders(0) == "CD"


def test_a_repeated_last_chunk_says_once_more_that_its_service_is_content() -> None:
    world = one_row("BC")
    world.migrate("A", "DC")
    last = len(world.gold[0])
    world.until(MigrationChunk)
    while (late := world.messages(MigrationChunk)[-1]).number < last:
        world.deliver(MigrationChunk)
        world.deliver(MigrationChunkAck)
    world.deliver(MigrationChunk)
    world.drop(MigrationChunkAck)
    world.receive("D", "B", late)
    assert [(message.number, message.enough) for message in world.messages(MigrationChunkAck)] == [(last, True)]


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
    world = one_row(row, backups=2)
    world.migrate("A", target)
    world.run(3)
    assert world.rows("A") == [target]
    for endpoint, (name, before, after) in (("source", source), ("destination", destination)):
        ends = [event for event in world.seen(name, MigrationFinished) if event.endpoint == endpoint]
        assert [(end.current_replica_index, end.new_replica_index) for end in ends] == [(before, after)]
        assert (0 in world.ghosts[name].held) == (after >= 0)


def test_before_comes_first_and_one_of_commit_and_rollback_last() -> None:
    world = one_row("BC")
    world.migrate("A", "DC")
    world.until(MigrationReport)
    told = world.ghosts["D"].told
    assert told[0] == ("before", 0) and {what for what, _ in told[1:]} == {"receive"}
    assert [what for what, _ in world.ghosts["B"].told] == ["before"]
    world.run(3)
    assert [what for what, _ in world.ghosts["D"].told][-2:] == ["commit", "placed -1 0"]
    assert [what for what, _ in world.ghosts["B"].told] == ["before", "commit", "placed 0 -1"]


def test_a_backup_that_gives_up_its_place_is_told_before_and_commit_at_once() -> None:
    world = one_row("BC")
    world.migrate("A", "BD")
    world.until(TableUpdate, to="C")
    assert world.ghosts["C"].told == []
    world.run(3)
    assert [what for what, _ in world.ghosts["C"].told] == ["before", "commit", "placed 1 -1"]


def test_what_a_shift_up_brought_goes_when_it_is_rolled_back_and_the_old_data_stays() -> None:
    world = one_row("B-C", backups=2)
    world.migrate("A", "BC-")
    world.until(MigrationReport)
    world.ghosts["C"].held[0] = (b"what C had",)
    report = world.take_message(MigrationReport)[2]
    world.master_role("A").failures = 1  # so that the next plan waits
    world.receive("A", "B", MigrationReport(report.migration_id, "it went wrong"))
    world.run(0.5)
    assert world.row("C", 0) == "B-C" and world.ghosts["C"].held[0] == (b"what C had",)
    assert [what for what, _ in world.ghosts["C"].told][-1] == "rollback"


def test_the_table_alone_places_members_that_no_migration_brought() -> None:
    world = one_row("BC")
    world.kill("B")
    world.run(8)
    assert ("placed 1 0", 0) in world.ghosts["C"].told and world.holders(0)[0] == "A"
    assert not world.complaints()
