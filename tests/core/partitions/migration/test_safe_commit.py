"""The safe commit of a migration: destination, then master, then everybody else (Avoid Data Loss on Migration, 2.1)."""

import pytest

from quarterdeck.backend.core.partitions.events import (
    MigrationCommitting,
    MigrationDecided,
    MigrationFinished,
    TableChanged,
)
from quarterdeck.backend.core.partitions.messages import (
    MigrationChunk,
    MigrationChunkAck,
    MigrationCommit,
    MigrationCommitAck,
    MigrationReport,
    MigrationRequest,
    TableAck,
    TableUpdate,
)
from tests.core.stepped_partitions import SteppedPartitions

# A is master and holds nothing; partition 0 goes from B to D, and C is its backup.


def a_move(members: str = "ABCD", row: str = "BC", target: str = "DC", **changed: int) -> SteppedPartitions:
    world = SteppedPartitions(2, len(row) - 1, **changed).with_table(members, row, "CB" + "-" * (len(row) - 2))
    world.migrate(members[0], target)
    return world


def decisions(world: SteppedPartitions, name: str = "A") -> list[tuple[bool, int]]:
    return [(event.committed, event.partition_version) for event in world.seen(name, MigrationDecided)]


def finished(world: SteppedPartitions, name: str) -> list[bool]:
    return [event.committed for event in world.seen(name, MigrationFinished)]


def test_destination_then_master_then_source() -> None:
    world = a_move()
    version = world.table("A").versions[0]
    world.until(MigrationCommit)
    assert (world.row("A", 0), world.row("D", 0), world.holders(0)) == ("BC", "BC", "BC")
    world.deliver(MigrationCommit)
    assert (world.row("A", 0), world.row("D", 0), world.holders(0)) == ("BC", "DC", "BCD")
    assert finished(world, "D") == [True] and not decisions(world)
    world.deliver(MigrationCommitAck)
    assert (world.row("A", 0), world.row("B", 0), world.holders(0)) == ("DC", "BC", "BCD")
    assert decisions(world) == [(True, version + 1)]
    world.deliver(TableUpdate, to="B")
    assert (world.row("B", 0), world.holders(0)) == ("DC", "CD") and finished(world, "B") == [True]
    world.run(4)
    assert not world.complaints()


def test_the_master_changes_nothing_before_the_destination_has_answered() -> None:
    world = a_move()
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationCommitAck)
    before = (world.table("A").version, world.table("A").digest)
    world.run(60)
    assert (world.table("A").version, world.table("A").digest) == before and not decisions(world)
    assert not world.parts("A").completed and world.holders(0) == "BCD"
    world.loses = lambda *_: False
    world.run(5)
    assert decisions(world)[0][0] and not world.complaints()


@pytest.mark.parametrize("kind", [MigrationCommit, MigrationCommitAck])
def test_the_commit_is_repeated_without_limit(kind: type) -> None:
    world = a_move()
    lost: list[object] = []
    world.loses = lambda sender, receiver, message: isinstance(message, kind) and bool(lost.append(message) or True)
    world.run(40)
    assert 35 <= len(lost) <= 42 and not decisions(world)
    world.loses = lambda *_: False
    world.run(5)
    assert not world.complaints() and world.holders(0) == "CD" and len(world.seen("A", MigrationCommitting)) == 1


KINDS = [
    MigrationRequest,
    MigrationChunk,
    MigrationChunkAck,
    MigrationReport,
    MigrationCommit,
    MigrationCommitAck,
    TableUpdate,
    TableAck,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fate", ["lost", "twice", "late"])
def test_a_message_that_is_lost_or_late_or_comes_twice_changes_no_outcome(kind: type, fate: str) -> None:
    world = a_move()
    world.until(kind)
    sender, receiver, message = world.take_message(kind)
    if fate != "lost":
        world.receive(receiver, sender, message)
    if fate == "twice":
        world.receive(receiver, sender, message)
    world.run(0.5)
    if fate == "late":
        world.receive(receiver, sender, message)
    world.run(10)
    if fate == "late":
        world.receive(receiver, sender, message)
        world.run(5)
    assert [committed for committed, _ in decisions(world)] == [True]
    assert world.rows("B") == ["DC", "CB"] and world.holders(0) == "CD" and not world.complaints()
    assert world.table("A").versions[0] == 3


def test_a_destination_that_leaves_before_it_answers_costs_two_versions() -> None:
    for kind in (MigrationCommit, MigrationCommitAck):
        world = a_move()
        version = world.table("A").versions[0]
        world.until(kind)
        world.kill("D")
        world.sent.clear()
        world.run(8)
        assert decisions(world) == [(False, version + 2)]
        assert world.rows("B") == ["BC", "CB"] and world.holders(0) == "BC" and not world.parts("B").active


def test_a_destination_that_comes_back_takes_the_masters_table() -> None:
    world = a_move()
    world.until(MigrationCommitAck)
    world.sent.clear()
    world.cut_links("D", "ABC")
    world.run(9)
    assert world.row("D", 0)[0] == "D" and world.row("A", 0) == "BC"  # on its own, it believes that it has it all
    old = world.machines["D"].uuid
    world.cut.clear()
    world.run(40)
    assert world.machines["D"].uuid != old
    assert world.table("D").digest == world.table("A").digest and not world.complaints()


def test_a_commit_without_the_data_is_refused_for_good() -> None:
    world = a_move()
    world.until(MigrationChunk)
    migration = world.parts("A").master_role.running[0].migration  # type: ignore[union-attr]
    for chunks in (0, 1):  # before anything has come, and when some has
        if chunks:
            world.deliver(MigrationChunk)
        world.receive("D", "A", MigrationCommit(migration))
        assert not world.take_message(MigrationCommitAck)[2].committed
        assert world.row("D", 0) == "BC" and not finished(world, "D")
    assert world.parts("D").active


def test_a_commit_of_somebody_who_is_not_the_master_is_not_even_answered() -> None:
    world = a_move()
    world.until(MigrationCommit)
    _, _, commit = world.take_message(MigrationCommit)
    world.receive("D", "C", commit)
    assert not world.messages(MigrationCommitAck) and world.row("D", 0) == "BC"


def test_a_late_commit_of_a_decided_migration_changes_nothing() -> None:
    world = a_move()
    world.until(MigrationCommit)
    _, _, commit = world.take_message(MigrationCommit)
    world.receive("D", "A", commit)
    for pause in (0, 4, 10):  # before and after the end was published, and when all have forgotten it
        world.run(pause)
        told, rows, version = list(world.ghosts["D"].told), world.rows("D"), world.table("A").version
        world.receive("D", "A", commit)
        world.run(0.2)
        assert (world.ghosts["D"].told, world.rows("D")) == (told, rows)
    assert world.table("A").version == version and not world.complaints()


def test_a_late_commit_of_a_failed_migration_changes_nothing() -> None:
    world = a_move(migration_timeout_us=1_500_000)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationReport)
    world.until(MigrationReport)
    migration = world.parts("B").active[0].migration
    world.run(2)
    assert decisions(world)[0][0] is False
    world.loses = lambda *_: False
    world.run(10)
    rows, held = world.rows("D"), world.holders(0)
    world.receive("D", "A", MigrationCommit(migration))
    world.run(1)
    assert world.rows("D") == rows and world.holders(0) == held and not world.complaints()


@pytest.mark.parametrize("victim", "ABCD")
@pytest.mark.parametrize("delivered", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_participant_may_crash_before_and_after_each_message(kind: type, delivered: bool, victim: str) -> None:
    world = a_move("ABCD")
    version = world.table("A").versions[0]
    world.until(kind)
    if delivered:
        sender, receiver, message = world.take_message(kind)
        world.receive(receiver, sender, message)
    world.kill(victim)
    world.sent = [delivery for delivery in world.sent if delivery[0] != victim]
    world.run(30)
    assert not world.complaints()
    outcomes = {tuple(finished(world, name)[:1]) for name in "BD" if name != victim} - {()}
    assert len(outcomes) <= 1  # what a participant that lives has done is what all have done
    if kind in (MigrationRequest, MigrationChunk) and victim in "BD":
        assert decisions(world) == [] or decisions(world)[0] == (False, version + 2)
    if kind is MigrationCommitAck and victim in "AB":
        assert outcomes == {(True,)}  # the destination has committed: so it is, whoever leads
    if kind is MigrationCommit and not delivered and victim == "A":
        assert outcomes == {(False,)}


def test_when_the_owner_dies_while_the_destination_commits_the_destination_has_it() -> None:
    world = a_move(row="BC", target="DC")
    world.until(MigrationCommit)
    world.drop(MigrationCommit)
    world.kill("B")
    world.suspect("A", "B")
    assert world.list_of("A")[1] == "ACD" and not decisions(world)
    world.run(20)
    assert decisions(world)[0][0] is True and not world.complaints()


def test_when_the_owner_dies_while_it_copies_the_migration_fails() -> None:
    world = a_move()
    world.until(MigrationReport)
    world.kill("B")
    world.sent.clear()
    world.run(20)
    assert decisions(world)[0][0] is False and not world.complaints()


@pytest.mark.parametrize(
    ("members", "row", "target", "kind"),
    [
        # The first is the master: as owner, destination, old backup, and as nobody.
        ("BACD", "BC", "DC", "MOVE"),
        ("DABC", "BC", "DC", "MOVE"),
        ("CABD", "BC", "BD", "MOVE"),
        ("ABCD", "BC", "BD", "MOVE"),
        ("BACD", "B-", "BD", "COPY"),
        ("DABC", "B-", "BD", "COPY"),
        ("BACD", "B-C", "BC-", "SHIFT UP"),
        ("CABD", "B-C", "BC-", "SHIFT UP"),
        ("ABCD", "B-C", "BC-", "SHIFT UP"),
        ("BACD", "B-", "DB", "SHIFT DOWN"),
        ("DABC", "B-", "DB", "SHIFT DOWN"),
        ("ABCD", "B-", "DB", "SHIFT DOWN"),
        ("CABD", "BCD", "BD-", "SHIFT UP"),
        ("DABC", "BCD", "BD-", "SHIFT UP"),
        ("ABCDE", "BCDE", "BCD-", "CLEAR"),
        ("EABCD", "BCDE", "BCD-", "CLEAR"),
        ("BACDE", "BCDE", "BCD-", "CLEAR"),
        ("ABCDE", "B-DC", "EBDC", "SHIFT DOWN"),
        ("EABCD", "B-DC", "EBDC", "SHIFT DOWN"),
        ("BACDE", "BC-D", "BCD-", "SHIFT UP"),
        ("DABCE", "BC-D", "BCD-", "SHIFT UP"),
        ("CABDE", "BC-D", "BED-", "SHIFT UP"),
    ],
)
def test_every_kind_of_step_wherever_the_master_stands(members: str, row: str, target: str, kind: str) -> None:
    world = SteppedPartitions(1, len(row) - 1).with_table(members, row)
    version = world.table(members[0]).versions[0]
    world.migrate(members[0], target)
    world.run(4)
    for name in members:
        assert world.rows(name) == [target]
        assert not world.parts(name).active and not world.ghosts[name].open
        assert (world.holders(0).find(name) >= 0) == (name in target)
        assert 0 not in world.ghosts[name].held or name in target
    decided = world.seen(members[0], MigrationDecided)
    assert all(decision.committed for decision in decided) and (kind == "CLEAR") == (not decided)
    assert world.table(members[0]).versions[0] == version + max(1, len(decided))


@pytest.mark.parametrize(
    ("members", "row", "target"), [("DABC", "BC", "DC"), ("BACD", "BC", "DC"), ("CABD", "BC", "BD")]
)
def test_a_failure_wherever_the_master_stands(members: str, row: str, target: str) -> None:
    world = SteppedPartitions(1, 1, migration_timeout_us=1_500_000).with_table(members, row)
    version = world.table(members[0]).versions[0]
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk | MigrationChunkAck)
    world.migrate(members[0], target)
    world.run(1.8)
    assert decisions(world, members[0]) == [(False, version + 2)]
    for name in members:
        assert world.rows(name) == [row] and not world.ghosts[name].open and not world.parts(name).active
    assert world.holders(0) == "BC"


def test_one_change_of_the_table_for_one_decision() -> None:
    world = a_move()
    world.run(4)
    for name in "ABCD":
        changes = [event for event in world.seen(name, TableChanged) if any(row[0] == 0 for row in event.rows)]
        assert len(changes) == 1
