"""The master's plan and where it leads (Avoid Data Loss on Migration, 3.2; Hazelcast: repartitioning and migration manager)."""

import pytest

from quarterdeck.backend.core.membership.events import JoinFailed
from quarterdeck.backend.core.partitions.events import MigrationsPlanned, MigrationStarted, PartitionLost
from tests.core.member_state import state_of
from tests.core.stepped_cluster import address_of, training_settings
from tests.core.stepped_partitions import SteppedPartitions, quiet


def arranged(names: str, partitions: int, backups: int, **changed: object) -> SteppedPartitions:
    return SteppedPartitions(partitions, backups, **changed).arranged(names)


def shares(world: SteppedPartitions, index: int) -> list[int]:
    rows = world.rows(world.living[0])
    return sorted(sum(row[index] == name for row in rows) for name in world.living)


@pytest.mark.parametrize("backups", [0, 1, 2, 3])
def test_a_newcomer_gets_a_fair_share_at_every_index(backups: int) -> None:
    world = arranged("ABCDE", 30, backups)
    world.join("F")
    world.run(10)
    assert not world.complaints()
    for index in range(backups + 1):
        assert shares(world, index) == [5] * 6


@pytest.mark.parametrize("backups", [1, 2, 3])
def test_after_a_crash_every_row_is_whole_again_and_nothing_is_lost(backups: int) -> None:
    world = arranged("ABCDE", 20, backups)
    world.kill("C")
    world.run(12)
    assert not world.complaints() and not {"-", "c"} & set("".join(world.rows("A")))
    assert shares(world, 0) == [5] * 4


def test_partitions_with_the_fewest_replicas_come_first() -> None:
    world = quiet("AB", "AB", "BA", "CB", "A-", "C-")
    world.master_role("A").wants_plan = True
    world.conclude("A")
    planned = [migration.partition for migration in world.seen("A", MigrationsPlanned)[0].planned]
    assert set(planned[:2]) == {4, 5} and len(planned) > 2


@pytest.mark.parametrize("backups", [2, 3])
def test_as_many_crashes_as_backups_lose_nothing(backups: int) -> None:
    world = arranged("ABCDEFG", 21, backups)
    for victim in "ACF"[:backups]:
        world.kill(victim)
    world.run(20)
    lost = [event for name in world.living for event in world.seen(name, PartitionLost) if event.lost_backups == 6]
    assert not world.complaints() and not lost


def test_with_more_replicas_than_members_places_fill_as_members_come() -> None:
    world = arranged("A", 6, 2)
    assert set(world.rows("A")) == {"A--"}
    for name, known in (("B", "A"), ("C", "AB"), ("D", "ABC")):
        world.join(name, known)
        world.run(8)
        assert not world.complaints()
    assert shares(world, 2) == [1, 1, 2, 2]


def test_members_that_leave_one_by_one_end_with_one_that_has_all() -> None:
    world = arranged("ABCD", 8, 1)
    for victim in "BCD":
        world.kill(victim)
        world.run(15)
        assert not world.complaints()
    assert set(world.rows("A")) == {"A-"}


def test_a_plan_is_told_with_its_lower_bound() -> None:
    world = arranged("ABC", 12, 1)
    world.join("D")
    world.run(8)
    planned = [event for event in world.seen("A", MigrationsPlanned) if event.planned]
    assert len(planned) == 1 and planned[0].lower_bound <= planned[0].moves == 6
    assert len(world.seen("A", MigrationStarted)) == len(planned[0].planned)


def test_when_nothing_is_to_be_done_the_plan_says_so() -> None:
    world = arranged("ABC", 12, 1)
    world.events["A"].clear()
    world.change_state("A", "NO_MIGRATION")
    world.run(1)
    world.change_state("A", "ACTIVE")
    world.run(1)
    assert [event.planned for event in world.seen("A", MigrationsPlanned)] == [()]


def test_lite_members_are_given_nothing() -> None:
    world = arranged("ABC", 12, 1)
    world.born("D", "ABC", lite=True)
    world.with_fake_service("D")
    world.start("D")
    world.run(8)
    assert "D" not in "".join(world.rows("A")) and not world.complaints()
    assert world.rows("D") == world.rows("A")


def test_no_two_replicas_lie_on_one_host_where_hosts_are_groups() -> None:
    world = arranged("ABC", 12, 1, partition_groups="host-aware")
    world.join("D")
    world.run(8)
    assert all(len(set(row)) == 2 for row in world.rows("D")) and not world.complaints()


def test_joins_and_crashes_in_the_middle_of_a_plan_end_well() -> None:
    world = arranged("ABCD", 16, 2, parallel_migrations=1)
    world.join("E")
    world.run_until_messages(60)
    world.join("F")
    world.run_until_messages(60)
    world.kill("B")
    world.run_until_messages(80)
    world.join("G", "ACD")
    world.run(40)
    assert not world.complaints() and world.list_of("A")[1] == "ACDEFG"


@pytest.mark.parametrize("state", ["NO_MIGRATION", "FROZEN", "PASSIVE"])
def test_no_state_but_active_lets_anything_move(state: str) -> None:
    world = arranged("ABC", 12, 1)
    world.change_state("A", state)  # type: ignore[arg-type]
    world.run(2)
    world.join("D")
    world.run(8)
    assert not world.seen("A", MigrationStarted)
    world.change_state("A", "ACTIVE")
    world.run(12)
    assert not world.complaints() and world.list_of("A")[1] == "ABCD"
    assert world.seen("A", MigrationStarted)


def test_a_new_master_finds_the_state_and_keeps_to_it() -> None:
    world = arranged("ABCD", 12, 1)
    world.change_state("A", "NO_MIGRATION")
    world.run(2)
    world.kill("A")
    world.run(12)
    assert world.master_of("B") == "B" and not world.seen("B", MigrationStarted)
    assert all(row[0] in "BCD" for row in world.rows("C"))
    world.change_state("B", "ACTIVE")
    world.run(8)
    assert not world.complaints()


@pytest.mark.parametrize("backups", [0, 3])
def test_a_master_that_is_set_to_other_numbers_keeps_to_those_of_the_table(backups: int) -> None:
    world = arranged("ABC", 5, 1)
    state_of(world.machines["B"]).settings = training_settings(partition_count=7, backups=backups)
    world.kill("A")
    world.run(12)
    assert world.inspect("B").is_master and not world.complaints()
    assert {len(row) for row in world.rows("C")} == {2} and len(world.rows("C")) == 5


def test_who_is_set_to_other_numbers_is_not_let_in() -> None:
    world = arranged("AB", 5, 1)
    world.settings = training_settings(partition_count=7, backups=1, max_join_us=5_000_000)
    world.join("C", "AB")
    world.run(10)
    assert not world.machines["C"].joined
    reasons = world.seen("C", JoinFailed)[0].reasons
    assert reasons[address_of("A")].startswith("the cluster has 5 partitions with 1 backups")
