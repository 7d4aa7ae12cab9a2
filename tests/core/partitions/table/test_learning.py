"""How a member takes in what the master has decided (Avoid Data Loss on Migration, 1.1 and 2.1)."""

from quarterdeck.backend.core.partitions.events import MigrationFinished, TableChanged
from quarterdeck.backend.core.partitions.messages import MigrationChunk, MigrationCommit, MigrationReport, TableUpdate
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.table.learning import learn
from quarterdeck.backend.core.partitions.table.partition_table import Replicas, VersionedRow, packed
from tests.core.member_state import state_of
from tests.core.stepped_partitions import SteppedPartitions, quiet


def taught(world: SteppedPartitions, name: str, version: int, replicas: Replicas, *decided: CompletedMigration) -> None:
    state = state_of(world.machines[name])
    learn(state, world.now, [VersionedRow(0, version, replicas)], decided, author="somebody", cause="published")
    world.conclude(name)


def test_newer_rows_are_taken() -> None:
    world = quiet("BC")
    taught(world, "D", world.table("D").versions[0] + 1, (world.replica("D"), None))
    assert world.row("D", 0) == "D-"
    (change,) = world.seen("D", TableChanged)
    assert change.table_version == world.table("D").version and change.author == "somebody"


def test_equal_and_older_rows_are_never_taken() -> None:
    for less in (0, 1):
        world = quiet("BC")
        before = (world.table("D").version, world.table("D").digest)
        taught(world, "D", world.table("D").versions[0] - less, (world.replica("D"), None))
        assert (world.row("D", 0), world.table("D").version, world.table("D").digest) == ("BC", *before)
        assert not world.seen("D", TableChanged) and not world.ghosts["D"].told


def test_services_are_told_where_the_member_stands_now() -> None:
    world = quiet("BC")
    version = world.table("D").versions[0]
    taught(world, "D", version + 1, (world.replica("C"), world.replica("D")))
    taught(world, "D", version + 2, (world.replica("D"), world.replica("C")))
    taught(world, "D", version + 3, (world.replica("D"), world.replica("B")))
    taught(world, "D", version + 4, (world.replica("C"), world.replica("B")))
    assert [what for what, _ in world.ghosts["D"].told] == ["placed -1 1", "placed 1 0", "placed 0 -1"]


def test_a_migration_whose_end_nobody_tells_any_more_ends_as_the_newer_row_shows() -> None:
    for row, committed in (("DC", True), ("BC", False)):
        world = quiet("BC")
        world.migrate("A", "DC")
        world.until(MigrationReport)
        taught(world, "D", world.table("D").versions[0] + 2, tuple(map(world.replica, row)))
        assert [event.committed for event in world.seen("D", MigrationFinished)] == [committed]
        assert not world.parts("D").active and (0 in world.ghosts["D"].held) == committed


def test_a_row_that_names_a_destination_which_lacks_data_is_a_repair() -> None:
    world = quiet("B-")
    world.migrate("A", "D-")
    world.until(MigrationChunk)
    world.deliver(MigrationChunk, to="D")
    assert not world.parts("D").active[0].complete
    taught(world, "D", world.table("D").versions[0] + 4, (world.replica("D"), None))
    assert [event.committed for event in world.seen("D", MigrationFinished)] == [False]
    assert world.row("D", 0) == "D-"


def committing() -> tuple[SteppedPartitions, PartitionMigration]:
    """A cluster whose master is about to commit a migration in which C gives up its copy."""
    world = quiet("BC")
    world.migrate("A", "BD")
    world.until(MigrationCommit)
    return world, world.messages(MigrationCommit)[0].migration


def test_the_end_of_another_migration_of_the_partition_does_not_stand_in_its_way() -> None:
    world, earlier = committing()
    world.run(8)
    world.migrate("A", "CD")
    world.until(MigrationReport)
    assert world.parts("C").active and earlier.id not in world.parts("C").completed
    version, row = world.table("C").versions[0], tuple(map(world.replica, "BD"))
    taught(world, "C", version + 2, row, CompletedMigration(earlier, True))
    assert not world.parts("C").active and world.ghosts["C"].told[-1] == ("rollback", 0)


def test_a_decision_counts_once() -> None:
    world, migration = committing()
    world.run(0.5)
    told = list(world.ghosts["C"].told)
    taught(world, "C", world.table("C").versions[0], (), CompletedMigration(migration, True))
    assert world.ghosts["C"].told == told == [("before", 0), ("commit", 0), ("placed 1 -1", 0)]


def test_a_decision_that_comes_back_after_it_was_forgotten_is_not_acted_on_again() -> None:
    """C gave partition 0 up, forgot of it, and got it back: an old list that still names its giving up costs it nothing."""
    world, migration = committing()
    world.run(8)
    world.migrate("A", "BC")
    world.run(8)
    assert world.row("C", 0) == "BC" and world.holders(0) == "BC" and not world.parts("C").completed
    taught(world, "C", 0, (), CompletedMigration(migration, True))
    assert world.holders(0) == "BC" and len(world.seen("C", MigrationFinished)) == 2


def test_a_new_master_that_brings_an_old_decision_back_costs_nobody_data() -> None:
    """As before, but the way it happens: E missed everything since the list named the old migration, and the master dies."""
    world = quiet("BC", members="ABCDE")
    world.migrate("A", "BD")
    world.until(MigrationCommit)
    world.deliver_all()
    world.run(0.06)
    assert world.parts("E").completed
    world.loses = lambda sender, receiver, message: receiver == "E" and isinstance(message, TableUpdate)
    world.run(4)
    assert not world.parts("C").completed and world.parts("E").completed
    world.migrate("A", "BC")
    world.run(0.5)
    assert world.row("C", 0) == "BC"
    world.loses = lambda *_: False
    world.kill("A")
    world.sent.clear()
    world.run(15)
    assert "C" in world.holders(0) or "C" not in world.row("B", 0)
    assert not world.complaints()


def test_an_end_that_is_newer_than_the_row_is_acted_on_without_the_row() -> None:
    world = quiet("BC")
    world.migrate("A", "DC")
    world.until(MigrationReport)
    migration = world.parts("B").active[0].migration
    taught(world, "B", 0, (), CompletedMigration(migration, False))
    assert not world.parts("B").active and world.ghosts["B"].told[-1] == ("rollback", 0)


def test_only_members_on_a_list_of_rows_change() -> None:
    world = quiet("BC", "CB")
    update = packed([VersionedRow(1, 99, (world.replica("D"), None))])
    assert [line[0] for line in update.rows] == [1]
    taught(world, "C", world.table("C").versions[0] + 1, (world.replica("D"), None))
    assert world.rows("C") == ["D-", "CB"]
