"""The queue: how many at a time, and what becomes of it when something comes in between (Avoid Data Loss on Migration, 3.2;
Hazelcast: migration manager)."""

from collections import Counter
from itertools import pairwise

import pytest

from quarterdeck.backend.core.membership.messages import MembersUpdate, StateDecision
from quarterdeck.backend.core.partitions.events import (
    MigrationDecided,
    MigrationsCancelled,
    MigrationsPlanned,
    MigrationStarted,
)
from quarterdeck.backend.core.partitions.messages import (
    MigrationChunk,
    MigrationCommit,
    MigrationReport,
    MigrationRequest,
)
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.stepped_partitions import SteppedPartitions, quiet

# A is master and holds nothing.


def most_at_once(world: SteppedPartitions, seconds: float) -> int:
    """The greatest number of migrations that any member took part in at one time."""
    most = 0
    until = world.now + round(seconds * SECOND_US)
    while world.step() or world.skip(until):
        running = world.master_role("A").running.values()
        parts = Counter(
            life for migration in running for life in (migration.owner_uuid, migration.migration.destination.uuid)
        )
        most = max(most, *parts.values(), 0)
    return most


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_member_takes_part_in_more_than_its_share(limit: int) -> None:
    world = quiet(*["BC"] * 12, parallel_migrations=limit)
    world.migrate("A", *["DC"] * 12)
    assert most_at_once(world, 5) == limit
    assert world.rows("D") == ["DC"] * 12 and not world.complaints()


def test_sending_and_receiving_count_alike() -> None:
    sends = quiet("BC", "BC", "BC", "BC", members="ABCDEFG", parallel_migrations=2)
    sends.migrate("A", "DC", "EC", "FC", "GC")
    assert most_at_once(sends, 4) == 2 and sends.rows("B") == ["DC", "EC", "FC", "GC"]
    receives = quiet("BC", "CD", "DE", "EF", members="ABCDEFG", parallel_migrations=2)
    receives.migrate("A", "GC", "GD", "GE", "GF")
    assert most_at_once(receives, 4) == 2 and receives.rows("B") == ["GC", "GD", "GE", "GF"]


def test_members_that_have_nothing_to_do_with_one_another_migrate_side_by_side() -> None:
    world = quiet("BC", "DE", "BC", "DE", members="ABCDEFG", parallel_migrations=1)
    world.migrate("A", "FC", "GE", "FC", "GE")
    assert [running.migration.partition for running in world.master_role("A").running.values()] == [0, 1]
    world.run(4)
    assert world.rows("G") == ["FC", "GE", "FC", "GE"]


def test_the_migrations_of_one_partition_keep_their_order() -> None:
    world = quiet("BCD", members="ABCDEFG")
    world.migrate("A", "EFG")
    assert len(world.master_role("A").running) == 1 and len(world.master_role("A").queue[0]) == 2
    world.run(4)
    assert world.rows("G") == ["EFG"]
    versions = [event.partition_version for event in world.seen("A", MigrationStarted)]
    assert versions == sorted(set(versions)) and len(versions) == 3


def test_the_interval_passes_between_two_beginnings() -> None:
    world = quiet(*["BC"] * 4, migration_interval_us=300_000)
    world.migrate("A", *["DC"] * 4)
    world.run(3)
    begun = [record.at for record in world.records["A"] if isinstance(record.event, MigrationStarted)]
    assert [later - sooner for sooner, later in pairwise(begun)] == [300_000] * 3
    assert world.rows("D") == ["DC"] * 4


def test_an_interval_that_is_over_while_all_are_busy_does_not_turn_in_circles() -> None:
    world = quiet(*["BC"] * 4, migration_interval_us=100_000, parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationRequest)
    world.migrate("A", *["DC"] * 4)
    ticks = 0
    until = world.now + 5 * SECOND_US
    while world.step() or world.skip(until):
        ticks += 1
        assert ticks < 500
    world.loses = lambda *_: False
    world.run(5)
    assert world.rows("D") == ["DC"] * 4


def test_a_copy_that_takes_too_long_fails() -> None:
    world = quiet("BC", migration_timeout_us=3_000_000)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", "DC")
    world.run(2.9)
    assert not world.seen("A", MigrationDecided)
    world.run(0.2)
    (decided,) = world.seen("A", MigrationDecided)
    assert (decided.committed, decided.reason) == (False, "the copy took too long")
    assert world.holders(0) == "BC" and not world.parts("B").active


def test_a_failure_cancels_what_has_not_begun_and_plans_anew_at_once() -> None:
    """Document 004, 3.2: the remaining work is cancelled and the algorithm is immediately restarted."""
    world = quiet(*["BC"] * 4, parallel_migrations=1)
    world.migrate("A", *["DC"] * 4)
    world.until(MigrationReport)
    _, _, report = world.take_message(MigrationReport)
    world.receive("A", "B", MigrationReport(report.migration_id, "it went wrong"))
    failed_us = world.now
    (cancelled,) = world.seen("A", MigrationsCancelled)
    assert cancelled.remaining == 3 and "it went wrong" in cancelled.reason
    world.run(6)
    planned = [
        record.at
        for record in world.records["A"]
        if isinstance(record.event, MigrationsPlanned) and record.at >= failed_us
    ]
    assert planned[0] == failed_us and not world.complaints()


def test_pauses_grow_while_failures_go_on_and_no_further_than_six_seconds() -> None:
    world = quiet(*["BC"] * 4)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationRequest)
    world.master_role("A").failures = 1  # after the first one the next plan is made at once
    for wait in (1, 2, 3, 4, 5, 6, 6):
        world.master_role("A").wants_plan = False
        world.migrate("A", "DC" if world.row("A", 0) == "BC" else "BC")
        (running,) = world.master_role("A").running.values()
        failed_us = world.now
        world.receive("A", "B", MigrationReport(running.migration.id, "no"))
        assert world.master_role("A").not_before_us - failed_us == wait * SECOND_US
        world.master_role("A").not_before_us = world.now + 60 * SECOND_US


def test_those_that_fail_together_count_once() -> None:
    world = quiet(*["BC"] * 4)
    world.migrate("A", *["DC"] * 4)
    for running in list(world.master_role("A").running.values()):
        world.receive("A", "B", MigrationReport(running.migration.id, "no"))
    assert [event.committed for event in world.seen("A", MigrationDecided)] == [False] * 4
    assert world.master_role("A").failures == 1
    world.run(8)
    assert not world.complaints()


def test_when_a_destination_leaves_all_that_it_was_given_fails_and_others_get_it() -> None:
    world = quiet(*["BC"] * 4, members="ABCDE")
    world.migrate("A", *["DC"] * 4)
    world.kill("D")
    world.suspect("A", "D")
    assert [event.committed for event in world.seen("A", MigrationDecided)] == [False] * 4
    world.run(8)
    assert not world.complaints()


def test_a_join_cancels_the_plan_and_makes_another() -> None:
    world = quiet(*["BC"] * 8, parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", *["DC"] * 8)
    world.join("E")
    world.run(3)
    (cancelled,) = world.seen("A", MigrationsCancelled)
    assert cancelled.remaining == 7 and "1 joined" in cancelled.reason
    assert len(world.master_role("A").running) == 1  # what runs is brought to its end
    world.loses = lambda *_: False
    world.run(8)
    assert not world.complaints() and "E" in "".join(world.rows("E"))


def test_a_departure_cancels_the_plan_and_makes_another() -> None:
    world = quiet(*["BC"] * 8, members="ABCDE", parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", *["DC"] * 8)
    world.kill("E")
    world.run(8)
    assert "1 left" in world.seen("A", MigrationsCancelled)[0].reason
    world.loses = lambda *_: False
    world.run(30)
    assert not world.complaints()


def test_a_lite_member_that_comes_cancels_nothing() -> None:
    world = quiet(*["BC"] * 8, parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", *["DC"] * 8)
    world.born("E", "ABCD", lite=True)
    world.with_fake_service("E")
    world.start("E")
    world.run(3)
    assert world.list_of("A")[1] == "ABCDE" and not world.seen("A", MigrationsCancelled)


def comes_to_rest(world: SteppedPartitions, seconds: float) -> bool:
    """Whether `seconds` pass with no more than a few hundred steps."""
    until = world.now + round(seconds * SECOND_US)
    return not any((world.step() or world.skip(until)) and count == 500 for count in range(501))


def queued_behind(world: SteppedPartitions) -> None:
    """B sends to D for ever, E to F, and a third migration waits for B."""
    world.migrate("A", "DC", "FC", "DC")
    world.until(MigrationCommit, to="F")
    assert len(world.master_role("A").running) == 2 and world.master_role("A").queue


def test_a_queue_that_waits_for_a_lite_member_to_be_let_in_does_not_turn_in_circles() -> None:
    world = quiet("BC", "EC", "BC", members="ABCDEF", parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk) and receiver == "D"
    queued_behind(world)
    _, _, order = world.take_message(MigrationCommit)
    world.loses = lambda sender, receiver, message: isinstance(message, MembersUpdate) and receiver == "B"
    world.born("G", "A", lite=True)
    world.with_fake_service("G")
    world.start("G")
    world.until(MembersUpdate, to="B")
    world.receive("F", "A", order)
    assert world.inspect("A").admission
    assert comes_to_rest(world, 0.5)
    world.loses = lambda *_: False
    world.run(8)
    assert not world.complaints()


def test_a_queue_that_waits_for_another_state_does_not_turn_in_circles() -> None:
    world = quiet("BC", "EC", "BC", members="ABCDEF", parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk) and receiver == "D"
    queued_behind(world)
    _, _, order = world.take_message(MigrationCommit)
    world.change_state("A", "FROZEN")
    world.until(StateDecision)
    world.receive("F", "A", order)
    assert comes_to_rest(world, 2)
    assert len(world.master_role("A").running) == 1 and world.row("A", 1) == "FC"


def test_nothing_begins_while_somebody_joins() -> None:
    world = quiet(*["BC"] * 8, members="ABCDE")
    world.loses = lambda sender, receiver, message: isinstance(message, MembersUpdate) and receiver == "B"
    world.join("F")
    world.run(1)
    assert world.inspect("A").admission and not world.seen("A", MigrationStarted)
    world.loses = lambda *_: False
    world.run(10)
    assert not world.complaints()


def test_a_change_of_state_drops_the_queue_and_lets_what_runs_end() -> None:
    world = quiet(*["BC"] * 6, parallel_migrations=1)
    world.loses = lambda sender, receiver, message: isinstance(message, MigrationChunk)
    world.migrate("A", *["DC"] * 6)
    world.change_state("A", "NO_MIGRATION")
    world.run(0.5)
    assert len(world.master_role("A").running) == 1
    world.loses = lambda *_: False
    world.run(8)
    begun = len(world.seen("A", MigrationStarted))
    assert begun == len(world.seen("A", MigrationDecided)) == 1
    world.change_state("A", "ACTIVE")
    world.run(8)
    assert not world.complaints()


def test_the_owner_that_has_not_heard_the_latest_is_asked_again_soon() -> None:
    world = quiet("BC")
    world.migrate("A", "DC")
    _, _, request = world.take_message(MigrationRequest)
    at = world.now
    world.receive("A", "B", MigrationReport(request.migration.id, "not yet", True))
    world.until(MigrationRequest)
    assert world.now - at == 20_000 and not world.seen("A", MigrationDecided)


def test_reports_and_answers_of_others_do_not_count() -> None:
    world = quiet("BC")
    world.migrate("A", "DC")
    _, _, request = world.take_message(MigrationRequest)
    world.receive("A", "C", MigrationReport(request.migration.id, "no"))
    world.receive("A", "B", MigrationReport("another", "no"))
    assert not world.seen("A", MigrationDecided)


def test_places_that_are_to_be_empty_are_cleared_without_a_migration() -> None:
    world = quiet(*["BCD"] * 300, members="ABCDE")
    world.migrate("A", *["BC-"] * 300)
    world.run(4)
    assert world.rows("D") == ["BC-"] * 300 and not world.seen("A", MigrationStarted)
    assert not world.ghosts["D"].held


def test_more_partitions_than_are_looked_at_at_once_are_all_migrated() -> None:
    world = quiet(*["BC"] * 400)
    world.migrate("A", *["DC"] * 400)
    world.run(10)
    assert world.rows("D") == ["DC"] * 400
