"""How fast migrations go, and how long they will take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.boards.migration_board import left_text, migration_board, plan_text, rate_text
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.events import PlannedMigration
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.migrations import WINDOW_S, MigrationRate, MigrationRates
from tests.app.fakes.fake_cluster import FakeCluster, fold, formed

THREE = ("n1", "n2", "n3")


def planned(cluster: FakeCluster, count: int) -> None:
    moves = tuple(
        PlannedMigration(number, "MOVE", cluster.address("n2"), cluster.address("n3"), 0) for number in range(count)
    )
    cluster.happen("n1", partition_events.MigrationsPlanned(moves, count, count, "n3 joined"))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.integers(0, 1_000)), max_size=60))
def test_the_pace_counts_the_last_seconds_only(counted: list[tuple[int, int, int]]) -> None:
    rates = MigrationRates()
    for second, migrations, size in sorted(counted):
        rates.count(second * SECOND_US + 7, migrations=migrations, size=size)
    now = max((second for second, _, _ in counted), default=0)
    within = [sample for sample in counted if now - WINDOW_S < sample[0] <= now]
    if not within:
        assert rates.at(now * SECOND_US) == MigrationRate(0.0, 0.0)
        return
    length = now - min(second for second, _, _ in within) + 1
    rate = rates.at(now * SECOND_US)
    assert rate == MigrationRate(
        sum(sample[1] for sample in within) / length, sum(sample[2] for sample in within) / length
    )
    assert rates.at((now + WINDOW_S) * SECOND_US) == MigrationRate(0.0, 0.0)
    assert len(rates._seconds) <= WINDOW_S + 1


def test_a_fork_goes_its_own_way() -> None:
    rates = MigrationRates()
    rates.count(0, migrations=1)
    twin = rates.fork()
    twin.count(1, migrations=1)
    assert rates.at(1).migrations == 1 and twin.at(1).migrations == 2


def test_progress_pace_and_the_time_that_is_left() -> None:
    cluster = formed(THREE)
    planned(cluster, 20)
    picture = fold(cluster)
    leading = picture.members["n1"].leading
    assert plan_text(leading, picture, picture.at) == (
        "▱▱▱▱▱▱▱▱▱▱ 0 % of 20 migrations, just begun, so there is no telling how long it will take"
    )
    for number in range(5):
        cluster.begin("n1", f"m{number}", number, "n2", "n3")
        cluster.happen("n2", partition_events.MigrationCopied(f"m{number}", number, 2, 3_000_000, 4_000), after_us=0)
        cluster.happen("n1", partition_events.MigrationDecided(f"m{number}", number, True, 2, ""), after_us=SECOND_US)
    cluster.begin("n1", "m5", 5, "n2", "n3")
    cluster.happen("n2", partition_events.MigrationCopied("m5", 5, 2, 3_000_000, 4_000), after_us=0)
    fold(cluster, picture)
    leading = picture.members["n1"].leading
    rate = picture.history.rates.at(picture.at)
    assert plan_text(leading, picture, picture.at) == (
        f"▰▰▱▱▱▱▱▱▱▱ 25 % of 20 migrations, {rate_text(picture, picture.at)}, {left_text(leading, picture, picture.at)}"
    )
    assert (
        rate_text(picture, picture.at)
        == f"{rate.migrations:.3g} migrations/s, {rate.bytes / 1e6:.3g} MB/s over the last 10 s"
    )
    assert (
        left_text(leading, picture, picture.at)
        == f"about {round(15 / rate.migrations * SECOND_US) // SECOND_US} s left"
    )
    later = picture.at + 60 * SECOND_US
    assert (
        left_text(leading, picture, later) == "nothing has ended for 10 s, so there is no telling how long it will take"
    )
    board = migration_board(Judge(picture), picture.at)
    assert board.row("m5").note == "data from n2, 3 MB copied in 4 ms"
    assert board.row("m0").note.endswith("led by n1, 3 MB copied in 4 ms")
    assert board.rows[0].key == "m5" and not picture.copy().history.copied.keys() - {"m5"}


def test_with_nothing_to_do_nothing_is_said() -> None:
    cluster = formed(THREE)
    picture = fold(cluster)
    assert (
        plan_text(picture.members["n1"].leading, picture, 0)
        == left_text(picture.members["n1"].leading, picture, 0)
        == rate_text(picture, 0)
        == ""
    )


def test_what_was_copied_for_migrations_that_never_end_is_forgotten() -> None:
    cluster = formed(THREE)
    for number in range(1_010):
        cluster.begin("n2", f"m{number}", number, "", "n3", index=1)
        cluster.happen("n1", partition_events.MigrationCopied(f"m{number}", number, 1, 1, 1))
    assert len(fold(cluster).history.copied) == 1_000
