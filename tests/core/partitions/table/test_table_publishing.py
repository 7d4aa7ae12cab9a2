"""Publishing the table and the completed migrations (Avoid Data Loss on Migration, 1.1 and 2.1; Hazelcast: table
distribution)."""

import msgspec
from msgspec import structs

from quarterdeck.backend.core.membership.messages import MembersUpdate
from quarterdeck.backend.core.partitions.events import CompletedEvicted, TableChanged
from quarterdeck.backend.core.partitions.messages import MigrationChunk, MigrationCommit, TableAck, TableUpdate
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish
from tests.core.member_state import state_of
from tests.core.stepped_partitions import SteppedPartitions, quiet, table_of

# A is master and holds nothing.


def put(world: SteppedPartitions, row: str, partition: int = 0) -> None:
    """The master changes a row and publishes."""
    state, table = state_of(world.machines["A"]), world.table("A")
    version = table.versions[partition] + 1
    change(state, world.now, [VersionedRow(partition, version, tuple(map(world.replica, row)))], (), "repaired")
    publish(state, world.now)
    world.conclude("A")


def lag(world: SteppedPartitions, name: str, partition: int) -> None:
    """Let a member lack the latest row of a partition, although it has acknowledged it."""
    rows = [row for row in world.table(name).all_rows() if row.partition != partition]
    older = VersionedRow(partition, 1, (world.replica("D"), None))
    world.parts(name).table = table_of([*rows, older], len(world.table(name)), world.table(name).width)


def test_a_publication_brings_only_what_the_receiver_lacks() -> None:
    world = quiet("BC", "CB", "BC")
    put(world, "BD", 1)
    for update in world.messages(TableUpdate):
        assert [line[0] for line in update.rows.rows] == [1]
    world.drop(TableUpdate, to="D")
    world.run(0.2)
    put(world, "CD", 2)
    for name in "BD":
        assert [line[0] for line in world.messages(TableUpdate, to=name)[0].rows.rows] == [2]
    world.run(0.3)
    assert [world.row("D", partition) for partition in (1, 2)] == ["BD", "CD"]  # what was lost was told again at once


def test_a_lost_publication_is_sent_again() -> None:
    world = quiet("BC")
    put(world, "BD")
    assert world.drop(TableUpdate, to="C") == 1
    world.run(0.5)
    assert world.row("C", 0) == "BC" and world.row("D", 0) == "BD"
    world.run(1)
    assert world.row("C", 0) == "BD"


def test_a_lost_acknowledgement_costs_nothing_but_a_repetition() -> None:
    world = quiet("BC")
    put(world, "BD")
    world.deliver(TableUpdate)
    world.drop(TableAck)
    world.run(2)
    assert [world.row(name, 0) for name in "BCD"] == ["BD"] * 3
    assert all(
        follower.acknowledged == world.master_role("A").changes
        for follower in world.master_role("A").followers.values()
    )
    assert len(world.seen("C", TableChanged)) == 1


def test_a_publication_that_was_overtaken_changes_nothing() -> None:
    world = quiet("BC", "CB")
    put(world, "BD", 0)
    _, _, first = world.take_message(TableUpdate, to="C")
    put(world, "DB", 1)
    world.deliver(TableUpdate, to="C")
    assert world.rows("C") == ["BC", "CB"]  # it waits for the one before it
    world.receive("C", "A", first)
    assert world.rows("C") == ["BD", "DB"]
    world.sent.clear()
    world.receive("C", "A", first)
    assert world.rows("C") == ["BD", "DB"] and not world.messages(TableAck)


def test_an_overtaken_publication_does_not_bring_completed_migrations_back_for_good() -> None:
    world = quiet("BC")
    world.migrate("A", "BD")
    world.until(TableUpdate, to="C")
    _, _, old = world.take_message(TableUpdate, to="C")
    world.run(8)
    assert old.completed and not world.parts("C").completed
    told = list(world.ghosts["C"].told)
    world.receive("C", "A", old)
    world.run(4)
    assert world.ghosts["C"].told == told and not world.parts("C").completed


def test_the_next_life_at_an_address_has_acknowledged_nothing() -> None:
    world = quiet("AB", "BC", "CA", members="ABC")
    world.join("C", "B")  # which names A: its join request is the first that A hears of it
    world.run(5)
    assert not world.complaints(losses=False), world.complaints(losses=False)


def test_only_the_master_is_listened_to() -> None:
    world = quiet("BC")
    put(world, "BD")
    _, _, update = world.take_message(TableUpdate, to="C")
    world.sent.clear()
    world.receive("C", "D", update)  # not the master
    world.receive("C", "D", structs.replace(update, master=world.machines["D"].uuid))  # which led before
    another = msgspec.structs.replace(update, master="another incarnation", number=99)
    world.receive("C", "A", another)  # another life at the master's address
    assert world.row("C", 0) == "BC" and not world.sent


def test_the_digest_finds_a_member_that_lags_and_the_whole_table_heals_it() -> None:
    world = quiet("BC", "CB", "BC")
    lag(world, "D", 1)
    world.run(5)
    assert world.table("D").versions == world.table("A").versions and not world.complaints()


def test_who_lags_is_healed_while_others_migrate() -> None:
    world = quiet("BC", "CB", migration_timeout_us=60_000_000)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", "DC")  # which takes for ever
    lag(world, "D", 1)
    world.run(8)
    assert world.master_role("A").running and world.row("D", 1) == "CB"


def test_a_destination_that_is_ahead_is_not_taken_for_one_that_lags() -> None:
    world = quiet("BC")
    world.loses = lambda sender, receiver, message: type(message).__name__ == "MigrationCommitAck"
    world.migrate("A", "DC")
    world.run(10)
    assert world.row("D", 0) == "DC" and world.row("A", 0) == "BC"
    whole = [update for update in world.messages(TableUpdate) if update.rows.rows]
    assert not whole and world.master_role("A").followers[world.machines["D"].address].acknowledged >= 0


def test_tables_that_never_become_equal_do_not_start_a_storm() -> None:
    world = quiet("BC")
    table = world.table("D")
    table.versions[0] += 5  # which cannot be, and cannot be healed
    table.digest ^= 5
    sent: list[object] = []
    world.loses = lambda sender, receiver, message: isinstance(message, TableUpdate) and bool(sent.append(message))
    world.run(30)
    assert len(sent) <= 30 + 3 * 11


def test_participants_are_told_at_once_and_the_others_within_a_moment() -> None:
    world = quiet("BC", members="ABCDE")
    world.migrate("A", "BD")
    world.until(TableUpdate)
    assert {receiver for _, receiver, one in world.sent if isinstance(one, TableUpdate)} == set("BCD")
    world.run(0.049)
    assert world.row("E", 0) == "BC"
    world.run(0.002)
    assert world.row("E", 0) == "BD"


def test_ten_changes_are_told_to_everybody_without_waiting() -> None:
    rows = ["BC"] * 12
    world = quiet(*rows, members="ABCDE")
    world.migrate("A", *["BD"] * 12)
    while world.step():  # no time passes
        pass
    assert world.rows("E").count("BD") >= 10


def test_a_newcomer_gets_the_whole_table() -> None:
    world = SteppedPartitions(5, 1).arranged("ABC")
    world.join("D")
    world.run(1.5)
    assert world.table("D").versions == world.table("A").versions


def test_a_newcomer_that_cannot_take_its_table_yet_is_not_flooded_with_it() -> None:
    world = quiet("BC")
    sent: list[object] = []

    def loses(sender: str, receiver: str, message: object) -> bool:
        return receiver == "E" and isinstance(message, TableUpdate) and bool(sent.append(message) or True)

    world.loses = loses
    world.join("E")
    world.run(13)
    assert 8 <= len(sent) <= 24


# Completed migrations


def completed(world: SteppedPartitions, name: str) -> int:
    return len(world.parts(name).completed)


def test_completed_migrations_are_forgotten_when_everybody_knows_them() -> None:
    world = quiet("BC")
    world.migrate("A", "BD")
    world.until(TableUpdate, to="D")
    assert completed(world, "A") == 1
    world.run(0.5)
    assert completed(world, "A") == 0 and len(world.seen("A", CompletedEvicted)) == 1
    world.run(4)
    assert [completed(world, name) for name in "BCD"] == [0, 0, 0]


def test_nothing_is_forgotten_while_one_has_not_acknowledged() -> None:
    world = quiet("BC")
    world.loses = lambda sender, receiver, message: sender == "C" and isinstance(message, TableAck)
    world.migrate("A", "BD")
    world.run(20)
    assert completed(world, "A") == 1 and [completed(world, name) for name in "BCD"] == [1, 1, 1]
    world.loses = lambda *_: False
    world.run(6)
    assert [completed(world, name) for name in "ABCD"] == [0, 0, 0, 0]


def test_all_is_forgotten_when_the_one_that_has_not_acknowledged_leaves() -> None:
    world = quiet("BC", members="ABCDE")
    world.loses = lambda sender, receiver, message: sender == "E" and isinstance(message, TableAck)
    world.migrate("A", "BD")
    world.run(1)
    world.kill("E")
    world.run(15)
    assert [completed(world, name) for name in "ABCD"] == [0, 0, 0, 0]


def test_a_master_left_alone_forgets_too() -> None:
    world = quiet("BA", members="ABC")
    world.loses = lambda sender, receiver, message: isinstance(message, TableAck)
    world.migrate("A", "AB")
    world.migrate("A", "CA")
    world.run(1)
    assert completed(world, "A")
    world.kill("B")
    world.kill("C")
    world.run(15)
    assert completed(world, "A") == 0


def test_a_follower_keeps_only_what_the_last_publication_lists() -> None:
    world = quiet("BC", "CB")
    world.loses = lambda sender, receiver, message: sender == "C" and isinstance(message, TableAck)
    world.migrate("A", "BD", "CD")
    world.run(2)
    assert completed(world, "D") == 2
    world.loses = lambda *_: False
    world.run(5)
    assert completed(world, "D") == 0


def test_a_destination_keeps_its_own_commit_until_the_master_lists_it() -> None:
    world = quiet("BC", "CB")
    world.migrate("A", "DC")
    world.until(MigrationCommit)
    world.deliver(MigrationCommit)
    put(world, "CD", 1)
    update = world.messages(TableUpdate, to="D")[-1]
    assert not update.completed
    world.deliver(TableUpdate, to="D")
    assert completed(world, "D") == 1 and world.rows("D") == ["DC", "CD"]
    world.run(8)
    assert completed(world, "D") == 0 and not world.parts("D").unlisted


def test_the_masters_own_commits_leave_nothing_behind() -> None:
    world = quiet("BC")
    world.migrate("A", "AC")
    world.run(8)
    assert world.rows("B") == ["AC"] and not world.parts("A").unlisted and completed(world, "A") == 0


def test_what_all_know_is_not_kept_as_changed() -> None:
    world = quiet("BC", "CB")
    for _ in range(3):
        world.migrate("A", "BD", "DB")
        world.run(4)
        world.migrate("A", "BC", "CB")
        world.run(4)
    master_role = world.master_role("A")
    assert not master_role.changed_at and not master_role.decided_at


def test_a_publication_does_not_wait_for_the_list() -> None:
    world = quiet("BC")
    world.loses = lambda sender, receiver, message: isinstance(message, MembersUpdate)
    put(world, "BD")
    world.run(0.1)
    assert world.row("C", 0) == "BD"
