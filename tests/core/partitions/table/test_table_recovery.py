"""What a new master does before anything else (Avoid Data Loss on Migration, 1.2 and 2.2; Hazelcast: master change)."""

import pytest

from quarterdeck.backend.core.commands import ArrangePartitions
from quarterdeck.backend.core.membership.messages import MembersUpdate
from quarterdeck.backend.core.partitions.events import (
    MigrationDecided,
    MigrationFinished,
    MigrationsPlanned,
    MigrationStarted,
    TableChanged,
    TableRecovered,
    TableRecoveryStarted,
)
from quarterdeck.backend.core.partitions.messages import (
    MigrationChunk,
    MigrationCommit,
    MigrationCommitAck,
    MigrationReport,
    MigrationRequest,
    TableAnswer,
    TableFetch,
    TableUpdate,
)
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow, packed
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish
from tests.core.member_state import state_of
from tests.core.stepped_partitions import SteppedPartitions, quiet

# A is master and holds nothing; B follows it.


def put(world: SteppedPartitions, row: str, partition: int, *, told: str) -> None:
    """The master changes a row, and only `told` hear of it."""
    state, table = state_of(world.machines["A"]), world.table("A")
    version = table.versions[partition] + 1
    change(state, world.now, [VersionedRow(partition, version, tuple(map(world.replica, row)))], (), "repaired")
    publish(state, world.now)
    world.conclude("A")
    for name in told:
        world.deliver(TableUpdate, to=name)
    world.drop(TableUpdate)


def succeed(world: SteppedPartitions, master: str = "B", old: str = "A", *, dead: bool = True) -> None:
    """Everybody suspects the old master, and the next one claims; its first messages wait."""
    if dead:
        world.kill(old)
        world.sent = [delivery for delivery in world.sent if delivery[0] != old]
    for name in sorted(set(world.living) - {master, old}):
        world.suspect(name, old)
    world.suspect(master, old)
    world.until(TableFetch)


def meet(world: SteppedPartitions) -> None:
    """Let the recovery go on, but no migration after it."""
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationRequest | MigrationChunk)
    world.run(0.1)
    world.loses = lambda *_: False


def recovered(world: SteppedPartitions, name: str = "B") -> TableRecovered:
    (event,) = world.seen(name, TableRecovered)
    return event


def test_it_takes_the_latest_row_of_every_partition_whoever_has_it() -> None:
    world = quiet("BC", "CD", "DE", members="ABCDE")
    put(world, "CB", 0, told="C")
    put(world, "DC", 1, told="D")
    put(world, "ED", 2, told="E")
    succeed(world)
    assert world.rows("B") == ["BC", "CD", "DE"]
    meet(world)
    assert [world.rows(name) for name in "BCDE"] == [["CB", "DC", "ED"]] * 4
    assert set(recovered(world).answered) == {world.machines[name].address for name in "CDE"}
    assert [event.cause for event in world.seen("B", TableChanged)][:1] == ["recovered"]


def test_it_waits_for_everybody_and_asks_again() -> None:
    world = quiet("BC", "CD", members="ABCDE")
    world.loses = lambda sender, receiver, message: sender == "D" and isinstance(message, TableAnswer)
    succeed(world)
    world.run(20)
    assert not world.seen("B", TableRecovered) and world.master_role("B").recovery is not None
    world.loses = lambda *_: False
    world.run(8)
    assert recovered(world) and not world.complaints()


@pytest.mark.parametrize("kind", [TableFetch, TableAnswer])
def test_a_lost_question_or_answer_costs_time_only(kind: type) -> None:
    world = quiet("BC", "CD", members="ABCDE")
    succeed(world)
    world.until(kind)
    world.drop(kind)
    world.run(8)
    assert recovered(world) and not world.complaints()


def test_it_does_not_wait_for_who_has_left() -> None:
    world = quiet("BC", "CD", members="ABCDE")
    succeed(world)
    world.kill("D")
    world.run(12)
    assert world.machines["C"].address in recovered(world).answered and len(recovered(world).answered) == 2
    assert not world.complaints()


def test_the_last_answer_is_acted_on_at_once() -> None:
    world = quiet("BC", "CD", members="ABCDE")
    succeed(world)
    while world.step():  # nothing but messages: no time passes
        pass
    world.skip(world.now)
    assert recovered(world)


def test_it_publishes_nothing_and_plans_nothing_before() -> None:
    world = quiet("BC", "CD", members="ABCDE")
    succeed(world)
    world.loses = lambda sender, receiver, message: sender == "E" and isinstance(message, TableAnswer)
    world.run(10)
    assert not world.messages(TableUpdate)
    changes = [event for name in "BCDE" for event in world.seen(name, TableChanged)]
    assert not changes and not world.seen("B", MigrationsPlanned)


def test_it_publishes_before_it_plans() -> None:
    world = quiet("BC", "CD", "DE", "EB", "AB", "BA", members="ABCDE")
    succeed(world)
    world.run(8)
    events = [type(event) for event in world.events["B"]]
    recovery = events.index(TableRecovered)
    assert events.index(TableRecoveryStarted) < recovery < events.index(MigrationsPlanned)
    assert MigrationStarted not in events[:recovery] and not world.complaints()


def test_who_has_just_become_master_and_knows_no_table_takes_that_of_the_others() -> None:
    world = quiet("CD", "DC", members="ABCDE")
    world.parts("B").table = None
    succeed(world)
    world.run(8)
    assert not world.complaints() and world.rows("B") == world.rows("C")


def test_with_no_table_anywhere_there_is_none_afterwards() -> None:
    world = SteppedPartitions(3, 1).settled("ABC")
    world.with_fake_service("ABC")
    world.kill("A")
    world.run(10)
    assert [world.inspect(name).partitions.table for name in "BC"] == [None, None]
    world.tell("C", ArrangePartitions("C"))
    world.run(4)
    assert not world.complaints(losses=False)


# Migrations under way (2.2)


@pytest.mark.parametrize("kind", [MigrationRequest, MigrationReport, MigrationCommit, MigrationCommitAck, TableUpdate])
def test_what_the_destination_has_committed_is_committed_and_the_rest_rolled_back(kind: type) -> None:
    world = quiet("CD", members="ABCDE")
    world.migrate("A", "ED")
    migration = world.master_role("A").running[0].migration
    version = migration.version
    world.until(kind)
    world.sent.clear()
    succeed(world)
    meet(world)
    event = recovered(world)
    if kind is MigrationRequest:  # nobody but the old master knows of it
        assert event.committed_ids == event.rolled_back_ids == () and world.table("B").versions[0] == version
        return
    committed = kind in (MigrationCommitAck, TableUpdate)
    assert (migration.id in event.committed_ids, migration.id in event.rolled_back_ids) == (committed, not committed)
    assert world.table("C").versions[0] == version + (1 if committed else 2)
    assert [event.committed for event in world.seen("C", MigrationFinished)] == [committed]
    assert [event.committed for event in world.seen("E", MigrationFinished)] == [committed]
    world.run(8)
    assert not world.complaints()


def test_a_new_master_that_is_the_destination_keeps_what_it_has_committed() -> None:
    world = quiet("CD", members="ABCDE")
    world.migrate("A", "BD")
    world.until(MigrationCommitAck)
    succeed(world)
    world.run(10)
    assert recovered(world).committed_ids and [event.committed for event in world.seen("C", MigrationFinished)][:1] == [
        True
    ]
    assert not world.complaints()


@pytest.mark.parametrize("destination", "BC")
def test_what_the_destination_has_not_committed_is_rolled_back_though_a_later_row_has_it_there(
    destination: str,
) -> None:
    """The old master rolled it back, as the owner left, and repaired the row: of that nothing but the row has come, too early."""
    world = quiet("D", members="ABCD")
    world.migrate("A", destination)
    world.until(MigrationChunk)
    world.deliver(MigrationChunk, to=destination)
    (active,) = world.parts(destination).active.values()
    assert not active.complete
    later = packed([VersionedRow(0, active.migration.version + 4, (world.replica(destination),))])
    update = TableUpdate(world.machines["A"].uuid, 8, 9, later, (), 0, 0, 1)
    world.receive(destination, "A", update)
    assert world.parts(destination).early
    world.sent.clear()
    succeed(world)
    meet(world)
    assert recovered(world).rolled_back_ids == (active.migration.id,)
    assert [event.committed for event in world.seen(destination, MigrationFinished)] == [False]
    assert world.rows("B") == [destination]


def test_a_new_master_that_is_the_owner_rolls_back_what_nobody_has_committed() -> None:
    world = quiet("BD", members="ABCDE")
    world.migrate("A", "CD")
    world.until(MigrationCommit)
    world.sent.clear()
    succeed(world)
    world.run(10)
    assert recovered(world).rolled_back_ids and not world.complaints()


def test_a_destination_that_committed_and_died_with_the_master_costs_nothing() -> None:
    world = quiet("CD", members="ABCDE")
    world.migrate("A", "ED")
    world.until(MigrationCommitAck)
    world.kill("E")
    world.kill("A")
    world.sent.clear()
    world.run(20)
    assert [event.committed for event in world.seen("C", MigrationFinished)][:1] == [False]
    assert not world.complaints()


# Masters one after the other, and beside one another


def test_the_old_master_is_refused_by_everybody_who_has_answered() -> None:
    world = quiet("CD", "DC", members="ABCDE")
    world.migrate("A", "ED")
    world.until(MigrationCommit)
    _, _, commit = world.take_message(MigrationCommit)
    world.sent.clear()
    world.cut_links("A", "BCDE")
    succeed(world, dead=False)
    world.loses = lambda sender, receiver, message: "A" in sender + receiver
    world.run(0.1)
    assert recovered(world).rolled_back_ids == (commit.migration.id,)
    for pause in (0, 8):
        world.run(pause)
        rows = world.rows("E")
        later = packed([VersionedRow(1, 50, (world.replica("E"), None))])
        update = TableUpdate(world.machines["A"].uuid, 98, 99, later, (), 0, 0, 2)
        world.sent.clear()
        world.receive("E", "A", commit)
        world.receive("E", "A", update)
        world.receive("C", "A", MigrationRequest(commit.migration))
        assert world.rows("E") == rows and not world.parts("C").active
        assert not world.messages(MigrationCommitAck)
        world.sent.clear()


def test_only_the_members_own_master_is_told_of_its_table() -> None:
    world = quiet("BC", members="ABCDE")
    world.receive("D", "C", TableFetch("token"))
    assert not world.messages(TableAnswer)
    world.receive("D", "A", TableFetch("token"))
    assert world.messages(TableAnswer)


def test_answers_to_another_question_or_from_another_life_do_not_count() -> None:
    world = quiet("BC", "CD", members="ABCDE")
    succeed(world)
    world.deliver(TableFetch)
    sender, receiver, answer = world.take_message(TableAnswer)
    waiting = dict(world.master_role("B").recovery.waiting)  # type: ignore[union-attr]
    world.receive("B", sender, TableAnswer("another", answer.rows, (), ()))
    assert world.master_role("B").recovery.waiting == waiting  # type: ignore[union-attr]
    world.receive(receiver, sender, answer)
    world.receive(receiver, sender, answer)
    assert len(world.master_role("B").recovery.waiting) == len(waiting) - 1  # type: ignore[union-attr]


def test_two_masters_go_one_after_the_other() -> None:
    world = quiet("DE", "ED", "DE", members="ABCDE")
    world.migrate("A", "CE", "CD", "CE")
    world.until(MigrationCommitAck)
    succeed(world)
    world.kill("B")
    world.sent = [delivery for delivery in world.sent if delivery[0] != "B"]
    world.run(25)
    assert world.master_of("D") == "C" and recovered(world, "C") and not world.complaints()


def test_a_second_master_follows_what_the_first_had_published_to_some() -> None:
    world = quiet("DE", "ED", members="ABCDE")
    world.migrate("A", "CE")
    world.until(MigrationCommit)
    world.sent.clear()
    succeed(world)
    world.until(TableUpdate, to="D")
    world.deliver(TableUpdate, to="D")
    assert [event.committed for event in world.seen("D", MigrationFinished)] == [False]
    world.kill("B")
    world.sent = [delivery for delivery in world.sent if delivery[0] != "B"]
    world.run(25)
    assert [event.committed for event in world.seen("C", MigrationFinished)][:1] == [False] and not world.complaints()


def test_somebody_joins_during_the_recovery() -> None:
    world = quiet("BC", "CD", "DE", "EB", "BD", "CE", "DB", members="ABCDE")
    world.loses = lambda sender, receiver, message: sender == "C" and isinstance(message, TableAnswer)
    succeed(world)
    world.join("F", "BCDE")
    world.run(6)
    assert world.list_of("B")[1] == "BCDEF" and world.master_role("B").recovery is not None
    assert world.inspect("F").partitions.table is None
    world.loses = lambda *_: False
    world.run(10)
    assert not world.complaints() and "F" in "".join(world.rows("F"))


def test_somebody_restarts_during_the_recovery() -> None:
    world = quiet("BC", "CD", "DB", members="ABCDE")
    succeed(world)
    world.kill("D")
    world.join("D", "BCE")
    world.run(15)
    assert recovered(world) and not world.complaints()


def test_a_newcomer_that_the_new_master_does_not_know_yet() -> None:
    """The old master let F in and published that list to C only; B hears of F by C's answer to its claim."""
    world = quiet("BC", "CD", members="ABCD")
    world.loses = lambda sender, receiver, message: isinstance(message, MembersUpdate) and receiver in "BD"
    world.join("F", "ABCD")
    world.run(3)
    assert world.list_of("B")[1] == "ABCD" and world.list_of("C")[1] == "ABCDF"
    world.loses = lambda *_: False
    world.kill("A")
    world.sent.clear()
    world.run(15)
    assert world.list_of("D")[1] == "BCDF" and not world.complaints()


def test_in_the_recovery_every_decision_is_told_once() -> None:
    world = quiet("CD", members="ABCDE")
    world.migrate("A", "ED")
    world.until(MigrationCommitAck)
    succeed(world)
    world.run(10)
    for name in "CE":
        ids = [event.migration_id for event in world.seen(name, MigrationFinished)]
        assert len(ids) == len(set(ids))
    assert not [event for event in world.seen("B", MigrationDecided) if not event.committed]
