"""Leaving without a loss (Hazelcast: graceful shutdown)."""

import pytest

from quarterdeck.backend.core.commands import ArrangePartitions, StopCluster
from quarterdeck.backend.core.data.state import MergeEntries
from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.partitions.events import DrainFinished, DrainStarted, MigrationStarted, PartitionLost
from quarterdeck.backend.core.partitions.messages import MigrationChunk, ShutdownGranted, ShutdownRequest, TableUpdate
from tests.core.member_state import state_of
from tests.core.stepped_cluster import address_of
from tests.core.stepped_partitions import SteppedPartitions


def arranged(names: str = "ABCD", partitions: int = 8, backups: int = 1, **changed: int) -> SteppedPartitions:
    world = SteppedPartitions(partitions, backups, **changed).arranged(names)
    for name in names:
        world.events[name].clear()
    return world


@pytest.mark.parametrize("leaver", "ABD")
def test_a_member_that_leaves_holds_nothing_any_more(leaver: str) -> None:
    world = arranged()
    world.stop(leaver)
    assert leaver in world.living
    while leaver in world.living:
        assert world.step() or world.skip(world.now + 5_000_000)
    assert world.ghosts[leaver].held == {}
    world.run(6)
    assert not world.complaints()
    assert not [event for name in "ABCD" for event in world.seen(name, PartitionLost)]


def test_it_is_told_that_the_master_plans_without_it() -> None:
    world = arranged()
    world.stop("C")
    world.run(5)
    address = world.machines["C"].address
    assert [event.address for event in world.seen("A", DrainStarted)] == [address]
    assert [(event.address, event.reason) for event in world.seen("A", DrainFinished)] == [(address, "")]


def test_with_no_backups_at_all_nothing_is_lost() -> None:
    world = arranged(backups=0)
    world.stop("B")
    world.run(5)
    world.stop("A")
    world.run(12)
    assert world.living == "CD" and not world.complaints()


def test_all_but_one_may_leave_one_after_the_other_while_the_others_still_hand_over() -> None:
    world = arranged("ABCDE", 10, parallel_migrations=1)
    for leaver in "DBE":
        world.stop(leaver)
        world.run_until_messages(20)
    world.run(30)
    assert world.living == "AC" and not world.complaints()


@pytest.mark.parametrize("kind", [ShutdownRequest, ShutdownGranted])
def test_a_lost_request_or_answer_is_repeated(kind: type) -> None:
    world = arranged()
    world.stop("C")
    world.until(kind)
    world.drop(kind)
    world.run(6)
    assert world.living == "ABD" and not world.complaints()


def test_a_lost_answer_is_repeated_even_when_nothing_else_happens() -> None:
    world = arranged()
    world.stop("C")
    lost = world.lose_first(ShutdownGranted, 4)
    world.run(10)
    assert world.living == "ABD" and len(lost) == 4


def test_the_answer_is_acted_on_at_once() -> None:
    world = arranged()
    world.stop("C")
    world.until(ShutdownGranted)
    world.deliver(ShutdownGranted)
    world.skip(world.now)
    assert "C" in world.halted and not world.messages(ShutdownRequest)


def test_a_second_stop_goes_at_once() -> None:
    world = arranged()
    world.stop("C")
    assert "C" in world.living
    world.stop("C")
    assert "C" in world.halted and world.messages(Leave)


def test_it_waits_no_longer_than_configured() -> None:
    world = arranged(graceful_shutdown_us=5_000_000)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.stop("C")
    world.run(4.9)
    assert "C" in world.living
    world.run(0.2)
    assert "C" in world.halted
    world.loses = lambda *_: False
    world.run(40)
    assert not world.complaints()  # there is a backup of everything


def test_with_no_time_to_wait_it_goes_at_once() -> None:
    world = arranged(graceful_shutdown_us=0)
    world.stop("C")
    assert "C" in world.halted


def test_who_need_not_hand_anything_over_goes_at_once() -> None:
    before = SteppedPartitions(4, 1).settled("ABC")
    before.stop("B")  # there is no table yet
    assert "B" in before.halted
    alone = arranged("A")
    alone.stop("A")
    assert "A" in alone.halted
    lite = SteppedPartitions(4, 1)
    for name in "ABC":
        lite.born(name, lite=name == "C")
    lite.arranged("ABC")
    lite.stop("C")
    assert "C" in lite.halted


def test_when_all_leave_nobody_waits() -> None:
    world = arranged()
    for name in "ABCD":
        world.stop(name)
    world.run(6)
    assert world.living == ""


@pytest.mark.parametrize("state", ["NO_MIGRATION", "FROZEN", "PASSIVE"])
def test_where_nothing_may_be_moved_nobody_waits(state: str) -> None:
    world = arranged()
    world.change_state("A", state)  # type: ignore[arg-type]
    world.run(1)
    world.stop("C")
    world.run(2)
    assert "C" in world.halted
    assert state in world.seen("A", DrainFinished)[0].reason


@pytest.mark.parametrize("rows", ["C", "AC"], ids=["owner", "backup only"])
def test_a_reason_not_to_wait_that_is_gone_does_not_count_any_more(rows: str) -> None:
    world = SteppedPartitions(4, len(rows) - 1).with_table("ABCD", *[rows] * 4)
    world.change_state("A", "FROZEN")
    world.run(1)
    world.loses = lambda sender, receiver, message: isinstance(message, ShutdownGranted)
    world.stop("C")
    world.run(0.2)
    assert world.seen("A", DrainFinished)[0].reason and "C" in world.living
    world.change_state("A", "ACTIVE")
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.run(3)
    assert "C" in world.living
    world.loses = lambda *_: False
    world.run(8)
    assert "C" in world.halted and not world.complaints()


def test_a_restart_at_the_same_address_is_not_taken_for_the_one_that_leaves() -> None:
    world = arranged()
    world.stop("C")
    request = world.take_message(ShutdownRequest)[2]
    world.kill("C")
    world.join("C", "ABD")
    world.run(10)
    assert not world.complaints()
    begun = len(world.seen("A", DrainStarted))
    world.receive("A", "C", request)
    world.receive("C", "A", ShutdownGranted(request.uuid))
    assert len(world.seen("A", DrainStarted)) == begun
    world.run(6)
    assert "C" in world.living and not world.master_role("A").leaving and world.rows("A") == world.rows("C")
    assert "C" in "".join(world.rows("A")) and not world.complaints()


def test_an_answer_of_somebody_else_does_not_count() -> None:
    world = arranged()
    world.stop("C")
    world.receive("C", "D", ShutdownGranted(world.machines["C"].uuid))
    world.receive("C", "A", ShutdownGranted("another life"))
    world.skip(world.now)
    assert "C" in world.living


def test_a_member_that_leaves_asks_the_next_master() -> None:
    world = arranged("ABCDE", parallel_migrations=1)
    world.stop("D")
    world.run_until_messages(15)
    world.kill("A")
    world.run(20)
    assert "D" in world.halted and world.living == "BCE" and not world.complaints()


def test_a_master_that_leaves_and_its_successor_that_leaves_too() -> None:
    world = arranged("ABCDE")
    world.stop("A")
    world.stop("B")
    world.run(15)
    assert world.living == "CDE" and world.master_of("D") == "C" and not world.complaints()


def test_a_member_that_leaves_and_becomes_master_plans_nothing_onto_itself() -> None:
    world = arranged("ABCD", parallel_migrations=1, migration_interval_us=400_000)
    world.stop("B")
    world.run_until_messages(15)
    world.kill("A")
    world.run(25)
    started = [event for event in world.seen("B", MigrationStarted) if event.destination == address_of("B")]
    assert not started
    assert "B" in world.halted and world.living == "CD" and not world.complaints()


def test_a_crash_of_another_one_while_a_member_leaves() -> None:
    world = arranged("ABCDE", backups=2)
    world.stop("D")
    world.run_until_messages(20)
    world.kill("C")
    world.run(20)
    assert world.living == "ABE" and not world.complaints()


def test_a_newcomer_while_a_member_leaves() -> None:
    world = arranged()
    world.stop("D")
    world.run_until_messages(10)
    world.join("E", "ABC")
    world.run(15)
    assert world.living == "ABCE" and not world.complaints()


def test_those_who_left_are_not_remembered() -> None:
    world = arranged("ABCDE")
    for leaver in "CDE":
        world.stop(leaver)
        world.run(8)
    master_role = world.master_role("A")
    assert not master_role.leaving and not master_role.shutdown_granted


def test_the_table_does_not_name_it_anywhere_when_it_goes() -> None:
    world = arranged()
    world.stop("C")
    uuid = world.machines["C"].uuid
    world.loses = lambda sender, receiver, message: receiver == "D" and isinstance(message, TableUpdate)
    world.run(8)
    for name in "AB":
        assert all(holder is None or holder.uuid != uuid for row in world.table(name).rows for holder in row)
    world.loses = lambda *_: False
    world.run(8)
    assert not world.complaints()


def test_what_was_brought_from_another_cluster_is_placed_first() -> None:
    for place in (True, False):
        world = arranged()
        state = state_of(world.machines["C"])
        state.data.merge_entries = MergeEntries(iter(()), begun=True)
        world.stop("C")
        world.run(10)
        assert "C" in world.living and not world.ghosts["C"].held
        if place:
            state.data.merge_entries = None
            world.run(2)
        else:
            world.run(51)  # it waits no longer than for anything else
        assert "C" in world.halted


def test_who_leaves_during_a_merge_of_clusters_leaves_all_the_same() -> None:
    world = SteppedPartitions(8, 1).settled("AB")
    world.with_fake_service("AB")
    world.tell("A", ArrangePartitions("A"))
    world.with_lists(C=(3, "CDE"), D=(3, "CDE"), E=(3, "CDE"))
    world.with_fake_service("CDE")
    world.tell("C", ArrangePartitions("C"))
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.run(2)
    for name in "AB":
        world.edit_join_list(name, "ABCDE")
    for name in "CDE":
        world.edit_join_list(name, "ABCDE")
    world.stop("B")  # and cannot be relieved, for no data moves
    world.search("A")
    world.run(20)
    assert "A" in world.living
    world.loses = lambda *_: False
    world.run(60)
    assert "B" in world.halted


def test_when_the_whole_cluster_stops_nobody_waits_for_anything() -> None:
    world = arranged()
    world.tell("C", StopCluster("C"))
    world.run(1)
    assert world.living == ""
    assert not any(world.seen(name, DrainStarted) for name in "ABCD")


def test_who_hears_of_the_stop_from_another_member_only_stops_as_well() -> None:
    world = arranged()
    world.loses = lambda sender, to, message: sender == "C" and to == "D" and isinstance(message, Leave)
    world.tell("C", StopCluster("C"))
    world.run(1)
    assert world.living == ""
    assert not any(world.seen(name, MemberRemoved) or world.seen(name, SuspicionRaised) for name in "ABD")


def test_who_has_not_heard_of_it_or_is_another_life_by_now_lives_on() -> None:
    world = arranged()
    stranger = Leave("another life", all_stop=True)
    world.receive("A", "C", stranger)
    world.run(3)
    assert world.living == "ABCD"
