"""Repairing the table after members have left (Avoid Data Loss on Migration, 1.1; Hazelcast: partitions)."""

import pytest

from quarterdeck.backend.core.partitions.events import MigrationStarted, PartitionLost, TableChanged
from quarterdeck.backend.core.partitions.messages import MigrationChunk, MigrationCommit, TableUpdate
from tests.core.stepped_partitions import SteppedPartitions, quiet

# A is master and holds nothing.


def lost(world: SteppedPartitions, name: str = "A") -> list[tuple[int, int]]:
    return [(event.partition, event.lost_backups) for event in world.seen(name, PartitionLost)]


def without_migrations(world: SteppedPartitions) -> SteppedPartitions:
    world.change_state("A", "NO_MIGRATION")
    world.run(2)
    return world


def test_a_first_backup_that_notices_a_departure_by_itself_changes_nothing() -> None:
    world = quiet("BC")
    world.kill("B")
    world.suspect("C", "B")
    world.suspect("D", "B")
    world.run(0.5)
    assert world.row("C", 0) == world.row("D", 0) == "bC" and not world.ghosts["C"].told


def test_it_promotes_itself_by_the_masters_table_only() -> None:
    world = without_migrations(quiet("BC"))
    world.kill("B")
    world.suspect("A", "B")
    assert world.row("A", 0) == "C-"
    world.drop(TableUpdate, to="C")
    world.deliver_all()
    assert world.list_of("C")[1] == "ACD" and world.row("C", 0) == "bC"  # the list alone changes nothing either
    world.run(1.5)
    assert world.row("C", 0) == "C-" and world.ghosts["C"].told == [("placed 1 0", 0)] and world.holders(0) == "C"


@pytest.mark.parametrize(
    ("row", "victims", "after", "steps", "event"),
    [
        ("BCD", "B", "C-D", 2, 0),  # one place emptied, one promotion
        ("BCD", "C", "B-D", 1, None),
        ("BCD", "D", "BC-", 1, None),
        ("BCD", "BC", "D--", 3, 1),
        ("BCD", "BD", "C--", 3, 0),
        ("BCD", "CD", "B--", 2, None),
    ],
)
def test_each_step_of_a_repair_raises_the_version_by_one(
    row: str, victims: str, after: str, steps: int, event: int | None
) -> None:
    world = without_migrations(quiet(row, members="ABCDE"))
    version = world.table("A").versions[0]
    for victim in victims:
        world.kill(victim)
    world.suspect("A", victims)
    assert world.row("A", 0) == after and world.table("A").versions[0] == version + steps
    assert lost(world) == ([(0, event)] if event is not None else [])
    world.run(2)
    assert world.row("E", 0) == after and world.table("E").versions[0] == version + steps


def test_a_lost_partition_gets_a_new_owner_who_begins_with_nothing() -> None:
    world = quiet("BC", "DB", members="ABCDE")
    world.kill("B")
    world.kill("C")
    world.suspect("A", "BC")
    world.run(4)
    assert lost(world) == [(0, 6)]
    assert not world.complaints(losses=False) and "-" not in "".join(world.rows("E"))
    assert world.holders(0) == "" and len(world.holders(1)) == 2


def test_partition_lost_is_told_once_and_by_the_master() -> None:
    world = quiet("BC", members="ABCDE")
    world.kill("B")
    world.run(20)
    assert lost(world) == [(0, 0)]
    assert [lost(world, name) for name in "CDE"] == [[], [], []]


def test_no_migration_repairs_and_promotes_but_moves_nothing() -> None:
    world = without_migrations(quiet("BC", "CB", "DE", members="ABCDE"))
    world.kill("B")
    world.run(10)
    assert world.rows("D") == ["C-", "C-", "DE"] and not world.seen("A", MigrationStarted)


def test_no_migration_begins_nothing_of_what_is_queued() -> None:
    world = quiet("BC", "CB", "BC", members="ABCDE", parallel_migrations=1)
    world.migrate("A", "DC", "EB", "DC")  # the third waits, for B and D are busy with the first
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationCommit)
    without_migrations(world)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationCommit) and receiver == "E"
    world.run(2)
    assert world.rows("C") == ["DC", "CB", "BC"]
    world.loses = lambda *_: False
    world.run(3)
    assert world.rows("C") == ["DC", "EB", "BC"]
    assert [event.partition for event in world.seen("A", MigrationStarted)] == [0, 1]


def test_no_migration_gives_a_lost_partition_an_owner_too() -> None:
    world = without_migrations(quiet("BC", "DE", members="ABCDE"))
    world.kill("B")
    world.kill("C")
    world.run(10)
    owner, backup = world.row("D", 0)
    assert owner in "ADE" and backup == "-" and not world.seen("A", MigrationStarted)
    assert lost(world) == [(0, 6)]


@pytest.mark.parametrize("state", ["FROZEN", "PASSIVE"])
def test_frozen_or_passive_nothing_is_touched(state: str) -> None:
    world = quiet("BC", "CB")
    world.change_state("A", state)  # type: ignore[arg-type]
    world.run(2)
    version = world.table("A").version
    world.kill("B")
    world.run(12)
    assert world.list_of("C")[1] == "ACD"
    assert world.rows("D") == ["bC", "Cb"] and world.table("D").version == version and not lost(world)


@pytest.mark.parametrize("state", ["NO_MIGRATION", "FROZEN", "PASSIVE"])
def test_back_in_active_it_catches_up(state: str) -> None:
    world = quiet("BC", "CB")
    world.change_state("A", state)  # type: ignore[arg-type]
    world.run(2)
    world.kill("B")
    world.run(12)
    world.change_state("A", "ACTIVE")
    world.run(6)
    assert not world.complaints()


def test_a_newcomer_in_no_migration_gets_its_share_when_that_ends() -> None:
    rows = ["BC", "CB", "BD", "DA", "AB", "CA"]
    world = quiet(*rows)
    without_migrations(world)
    world.join("E")
    world.run(8)
    assert world.rows("E") == rows and not world.seen("A", MigrationStarted)
    world.change_state("A", "ACTIVE")
    world.run(6)
    assert not world.complaints() and "E" in "".join(world.rows("E"))


def test_a_partition_that_migrates_is_repaired_when_that_has_ended() -> None:
    world = quiet("BCD", "BCD", members="ABCDE", migration_timeout_us=4_000_000)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", "BCE")
    world.kill("C")
    world.suspect("A", "C")
    assert world.rows("A") == ["BcD", "B-D"]
    world.run(1)
    assert world.rows("A") == ["BcD", "B-D"]
    world.loses = lambda *_: False
    world.run(8)
    assert not world.complaints() and "c" not in "".join(world.rows("E"))


def test_who_left_during_a_migration_is_taken_out_of_a_row_that_was_decided_since() -> None:
    world = without_migrations(quiet("BCD", members="ABCDE", migration_timeout_us=2_000_000))
    world.change_state("A", "ACTIVE")
    world.run(1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", "BCE")
    world.change_state("A", "NO_MIGRATION")
    world.run(0.5)
    assert world.master_role("A").running
    world.kill("C")
    world.suspect("A", "C")
    world.run(4)
    assert world.row("E", 0) == "B-D"


def test_when_only_lite_members_are_left_partitions_wait_for_somebody_who_can_hold_them() -> None:
    world = SteppedPartitions(3, 1)
    for name in "ABC":
        world.born(name, lite=name == "A")
    world.arranged("ABC")
    world.kill("B")
    world.run(8)
    world.kill("C")
    world.run(8)
    assert world.rows("A") == ["--"] * 3 and [loss for loss in lost(world) if loss[1] == 6] == [(0, 6), (1, 6), (2, 6)]
    world.join("D", "A")
    world.run(8)
    assert world.rows("D") == ["D-"] * 3 and not world.complaints(losses=False)


def test_all_rows_of_one_departure_are_one_change() -> None:
    world = without_migrations(quiet(*["BC"] * 20))
    world.kill("B")
    world.run(8)
    (change,) = world.seen("D", TableChanged)
    assert len(change.rows) == 20


def test_a_restart_at_the_same_address_holds_nothing_of_the_old_life() -> None:
    world = quiet("BC", "CB")
    world.kill("B")
    world.dead = ""
    world.join("B", "ACD")
    world.run(8)
    assert not world.complaints()
    assert [len(world.holders(p)) for p in (0, 1)] == [2, 2] and lost(world) == [(0, 0)]
