"""The fold of migrations: queue, running, history; and what is void once its master leads no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quarterdeck.backend.boards.migration_board import PLANNED_SHOWN, migration_board, progress_text
from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.events import PlannedMigration
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.migrations import BEGUN_KEPT, ENDED_KEPT, MigrationsLed, Recovery
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster, fold, formed

THREE = ("n1", "n2", "n3")


def plan(cluster: FakeCluster, *partitions: int) -> None:
    """n1 plans to move these from n2 to n3."""
    planned = tuple(
        PlannedMigration(partition, "MOVE", cluster.address("n2"), cluster.address("n3"), 0) for partition in partitions
    )
    cluster.happen(
        "n1", partition_events.MigrationsPlanned(planned, len(planned), len(planned), f"{cluster.address('n3')} joined")
    )


def migrating() -> FakeCluster:
    """n1 leads: p0 is copied, p1 is being committed, p2 waits, and n2 wants to leave."""
    cluster = formed(THREE)
    plan(cluster, 0, 1, 2)
    cluster.begin("n1", "m0", 0, "n2", "n3")
    cluster.begin("n1", "m1", 1, "n2", "n3")
    cluster.happen("n1", partition_events.MigrationCommitting("m1", 1))
    cluster.happen("n1", partition_events.DrainStarted(cluster.address("n2")))
    return cluster


def leading(picture: Picture, label: str = "n1") -> MigrationsLed:
    return picture.members[label].leading


def test_what_begins_leaves_the_queue_and_what_is_decided_becomes_history() -> None:
    cluster = migrating()
    picture = fold(cluster)
    led = leading(picture)
    assert [migration.partition for migration in led.queue()] == [2] and led.waiting == 1
    assert {migration.begun.partition: migration.phase for migration in led.running.values()} == {
        0: "copying",
        1: "committing",
    }
    assert list(led.draining) == [cluster.address("n2")] and (led.moves, led.lower_bound) == (3, 3)
    assert progress_text(Judge(picture).masters) == "2 migrating, 1 planned"
    cluster.happen("n1", partition_events.MigrationDecided("m1", 1, True, 2, ""))
    cluster.happen("n1", partition_events.MigrationDecided("m0", 0, False, 3, "n3 left"))
    fold(cluster, picture)
    assert not led.running and (led.done, led.failed) == (1, 1)
    (failed,) = picture.history.failed
    assert (failed.begun.partition, failed.reason, failed.leader, failed.took_us) == (0, "n3 left", "n1", 500_000)
    assert [migration.begun.partition for migration in picture.history.done] == [1]


def test_a_new_plan_takes_the_place_of_the_old_one_and_cancelling_empties_the_queue() -> None:
    cluster = migrating()
    cluster.happen("n1", partition_events.MigrationsCancelled(1, "n4 joined"))
    picture = fold(cluster)
    led = leading(picture)
    assert (led.waiting, led.cancelled, led.why) == (0, 1, "n4 joined") and len(led.running) == 2
    plan(cluster, 2, 5)
    fold(cluster, picture)
    assert [migration.partition for migration in led.queue()] == [2, 5] and led.cancelled == 0


def test_places_that_are_only_cleared_do_not_wait_for_ever() -> None:
    cluster = formed(THREE)
    n2, n3 = cluster.address("n2"), cluster.address("n3")
    steps = (
        PlannedMigration(0, "CLEAR", n2, None, 1),
        PlannedMigration(0, "MOVE", n2, n3, 0),
        PlannedMigration(1, "CLEAR", n2, None, 1),
    )
    cluster.happen("n1", partition_events.MigrationsPlanned(steps, 1, 1, "one left"))
    cluster.begin("n1", "m0", 0, "n2", "n3")
    led = leading(fold(cluster))
    assert led.waiting == 0 and not led.planned


def follows_another(cluster: FakeCluster) -> None:
    cluster.happen("n1", events.MasterChanged(cluster.address("n2"), "its claim was accepted"))


def is_led_by_another(cluster: FakeCluster) -> None:
    cluster.install("n1", 9, ["n2", "n1", "n3"])


def merges(cluster: FakeCluster) -> None:
    cluster.happen("n1", events.MemberMerging(cluster.address("n3"), "next"))


def is_killed(cluster: FakeCluster) -> None:
    cluster.happen("dev", ProcessKilled("n1"))


def stops(cluster: FakeCluster) -> None:
    cluster.happen("n1", events.MemberStopped("asked to"))


def begins_anew(cluster: FakeCluster) -> None:
    cluster.start("n1", life=2)


@pytest.mark.parametrize("ends", [follows_another, is_led_by_another, merges, is_killed, stops, begins_anew])
def test_whoever_leads_no_more_has_no_queue(ends: Callable[[FakeCluster], None]) -> None:
    cluster = migrating()
    ends(cluster)
    picture = fold(cluster)
    assert not leading(picture).busy and progress_text(Judge(picture).masters) == ""
    assert all(row.state == "done" for row in migration_board(Judge(picture), picture.at).rows)


def test_a_frozen_master_keeps_its_queue_for_when_it_runs_on() -> None:
    cluster = migrating()
    cluster.happen("dev", ProcessPaused("n1"))
    picture = fold(cluster)
    assert leading(picture).busy and progress_text(Judge(picture).masters) == ""


def test_who_left_the_list_waits_no_more_to_leave() -> None:
    cluster = migrating()
    cluster.install("n1", 4, ["n1", "n3"])
    assert not leading(fold(cluster)).draining


def test_the_next_master_tells_how_it_ended() -> None:
    cluster = migrating()
    cluster.happen("dev", ProcessKilled("n1"))
    cluster.install("n2", 4, ["n2", "n3"])
    cluster.happen("n2", partition_events.TableRecoveryStarted((cluster.address("n3"),)))
    picture = fold(cluster)
    assert leading(picture, "n2").recovering == Recovery((cluster.address("n3"),), picture.at)
    assert progress_text(Judge(picture).masters) == "searching the latest table"
    cluster.happen("n2", partition_events.TableRecovered(7, {cluster.address("n3"): 7}, ("m1",), ("m0", "unknown")))
    fold(cluster, picture)
    history = picture.history
    assert [migration.begun.migration_id for migration in history.done] == ["m1"] and history.done[0].leader == "n2"
    assert [migration.begun.migration_id for migration in history.failed] == ["m0"]
    assert leading(picture, "n2").recovering is None


def test_history_is_bounded_and_counts_everything() -> None:
    cluster = formed(THREE)
    for number in range(ENDED_KEPT + 5):
        cluster.begin("n1", f"m{number}", number, "", "n3", index=1)
        cluster.happen("n1", partition_events.MigrationDecided(f"m{number}", number, True, 2, ""))
        cluster.happen("n1", partition_events.MigrationDecided(f"m{number}", number, True, 2, "told again"))
        cluster.happen("n1", partition_events.PartitionLost(number, 6))
        cluster.happen("n1", partition_events.PartitionLost(number, 0))
    for number in range(BEGUN_KEPT + 5):
        cluster.begin("n2", f"orphan{number}", number, "", "n3", index=1)
    history = fold(cluster).history
    assert len(history.done) == len(history.lost) == ENDED_KEPT
    assert history.done_count == history.lost_count == ENDED_KEPT + 5
    assert len(history._begun) == BEGUN_KEPT


def test_backups_out_of_step_until_they_catch_up_or_are_backups_no_more() -> None:
    cluster = formed(THREE)
    cluster.change_table("n2", 3, {0: ["n1", "n2"], 1: ["n1", "n2"], 2: ["n1", "n2"]})
    for partition in range(3):
        cluster.happen("n2", BackupOutOfStep(partition, cluster.address("n1"), "a write is missing"))
    picture = fold(cluster)
    assert set(picture.members["n2"].out_of_step) == {0, 1, 2}
    cluster.happen("n2", BackupInStep(0, cluster.address("n1"), 1, 10))
    cluster.change_table("n2", 4, {1: ["n2", "n1"]})
    assert set(fold(cluster, picture).members["n2"].out_of_step) == {2}


def test_the_board_has_what_runs_first_then_the_queue_then_the_ends() -> None:
    cluster = migrating()
    cluster.begin("n1", "m5", 5, "", "n3", index=1)
    cluster.happen("n1", partition_events.MigrationDecided("m5", 5, False, 3, f"{cluster.address('n3')} has left"))
    cluster.begin("n1", "m6", 6, "", "n3", index=1)
    cluster.happen("n1", partition_events.MigrationDecided("m6", 6, True, 2, ""))
    cluster.happen("n1", partition_events.PartitionLost(7, 6))
    picture = fold(cluster)
    board = migration_board(Judge(picture), picture.at)
    assert [(row.state_text, row.partition, row.destination, row.index, row.displaced) for row in board.rows] == [
        ("▶ copying", "p0", "n3", "0", "n2"),
        ("◆ committing", "p1", "n3", "0", "n2"),
        ("○ planned", "p2", "n3", "0", "n2"),
        ("∅ lost", "p7", "", "", ""),
        ("✕ failed", "p5", "n3", "1", ""),
        ("✓ done", "p6", "n3", "1", ""),
    ]
    assert board.rows[4].sentence == "p5 COPY: n3 becomes backup 1; failed, n3 has left (100 ms, led by n1)"
    assert [head.text for head in board.heads] == [
        "n1: moves all data off n2 since 0 s, so that it may leave",
        "n1: 2 running, 1 planned, 1 done, 1 failed",
        "n1: ▱▱▱▱▱▱▱▱▱▱ 0 % of 3 migrations, 2 migrations/s over the last 10 s, about 1 s left",
        "n1: latest plan, 3 replicas to copy, 3 places to fill at least: n3 joined",
        "∅ n1 maybe lost 1 partition, 0 s ago: lost if there were entries in them",
        "✕ last failed, 0 s ago: p5, n3 has left",
    ]
    assert len({row.key for row in board.rows}) == len(board.rows)


def test_a_long_queue_is_counted_and_only_begun_to_be_shown() -> None:
    cluster = formed(THREE)
    plan(cluster, *range(50_000))
    picture = fold(cluster)
    board = migration_board(Judge(picture), picture.at)
    assert len(board.rows) == PLANNED_SHOWN and "0 running, 50000 planned" in board.heads[0].text


def test_a_board_with_nothing_on_it_says_why() -> None:
    cluster = formed(THREE)
    picture = fold(cluster)
    assert migration_board(Judge(picture), 0).heads[0].text.startswith("no partitions yet")
    cluster.change_table("n1", 3, {0: ["n1", "n2"]})
    assert migration_board(Judge(fold(cluster, picture)), 0).heads[0].text == "no master has migrated anything yet"


def test_nothing_on_the_board_steers_a_terminal() -> None:
    cluster = formed(("n\x1b[2J1", "n2", "n3"))
    cluster.begin("n\x1b[2J1", "m0", 0, "n2", "n3")
    cluster.happen("n\x1b[2J1", partition_events.MigrationDecided("m0", 0, False, 3, "\x1b]0;owned\x07"))
    cluster.happen("n\x1b[2J1", partition_events.MigrationsPlanned((), 0, 0, "\x1b]0;owned\x07"))
    picture = fold(cluster)
    board = migration_board(Judge(picture), picture.at)
    assert all(head.text.isprintable() for head in board.heads)
    for row in board.rows:
        assert all(text.isprintable() for text in (row.destination, row.displaced, row.note, row.sentence))
