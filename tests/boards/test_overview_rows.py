"""What the panes of the overview are made of: suspicions, tables, lanes and bars; what is unknown is neither none nor well."""

from __future__ import annotations

from quarterdeck.backend.boards.migration_lanes import SLOT_US, SLOTS, MigrationLanes, queue_figure
from quarterdeck.backend.boards.overview_rows import SECONDS, Activity, TableRow, TableRows, table_figure
from quarterdeck.backend.boards.suspicion_board import MOST_ROWS, suspicion_figure, suspicion_rows
from quarterdeck.backend.core.data.events import BackupOutOfStep, DataMeasured
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.partitions.events import (
    MigrationCopied,
    MigrationDecided,
    MigrationsPlanned,
    PlannedMigration,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import MemberWitnessed, OwnersTold, ReplicaMigrated
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.health.copy_counts import STRIP_LENGTH
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import LEVELS, bars
from tests.app.fakes.fake_cluster import fold, formed

THREE = ("n1", "n2", "n3")
WHOLE = {partition: (THREE[partition % 3], THREE[(partition + 1) % 3]) for partition in range(271)}


def row_of(picture: Picture, label: str) -> TableRow:
    return TableRows().row(Judge(picture), label)


# Bars


def test_a_bar_above_nothing_never_looks_like_nothing() -> None:
    assert bars([0, 1, 1_000], 1_000) == LEVELS[0] + LEVELS[1] + LEVELS[-1]
    assert bars([0, 0], 0) == LEVELS[0] * 2


# Suspicions


def test_suspicions_in_force_are_rows_of_the_older_member_first() -> None:
    cluster = formed(THREE)
    cluster.suspect("n2", "n3", "no heartbeat for 4 s")
    cluster.suspect("n3", "n2")
    cluster.suspect("n1", "n3", f"{cluster.address('n2')} said so")
    picture = fold(cluster)
    suspicions = ListAgreement(picture).suspicions
    found = suspicion_rows(suspicions, THREE)
    rows = [found.row(picture, key, cluster.now_us() + 3 * SECOND_US) for key in found.entries]
    assert [row.pair for row in rows] == ["n1 → n3", "n2 → n3", "n3 → n2"]
    assert [row.glyph for row in rows] == ["?", "⇄", "⇄"]
    assert rows[0].reason == "n2 said so" and rows[0].age == "3 s"
    assert suspicion_figure(suspicions) == ("3, of 2 members", "warning")


def test_of_very_many_suspicions_the_rest_is_counted() -> None:
    labels = tuple(f"m{number}" for number in range(30))
    cluster = formed(labels)
    for label in labels:
        for other in labels:
            if label != other:
                cluster.suspect(label, other)
    found = ListAgreement(fold(cluster)).suspicions
    assert (len(suspicion_rows(found, labels).entries), found.raised) == (MOST_ROWS, 30 * 29)


def test_suspicions_that_nobody_tells_are_not_none() -> None:
    cluster = formed(THREE)
    assert suspicion_figure(ListAgreement(fold(cluster)).suspicions) == ("none", "faint")
    cluster = formed(THREE)
    cluster.happen("n2", MemberWitnessed(("client-protocol",), ("owners",)))
    found = ListAgreement(fold(cluster)).suspicions
    assert suspicion_figure(found) == ("not reported", "faint")
    assert suspicion_rows(found, THREE).nothing == "suspicions are not reported: give logs with --logs"


# Tables


def test_a_whole_table_is_safe_and_one_that_lost_copies_says_how_many() -> None:
    cluster = formed(THREE)
    for label in THREE:
        cluster.change_table(label, 271, WHOLE)
    picture = fold(cluster)
    row = row_of(picture, "n1")
    assert (row.strip, row.state, row.tone) == ("▇" * STRIP_LENGTH, "✓ safe", "good")
    assert table_figure(picture, THREE, picture.at) == ("all equal", "plain")
    cluster.happen("dev", ProcessKilled("n3"))
    for record in cluster.drain():
        picture.apply(record)
    row = row_of(picture, "n1")
    assert row.state == "! 180 with one copy" and row.strip == "▂" * STRIP_LENGTH
    assert row_of(picture, "n3").state == "killed"
    cluster.happen("dev", ProcessKilled("n2"))
    for record in cluster.drain():
        picture.apply(record)
    row = row_of(picture, "n1")
    assert (row.state, row.tone) == ("∅ 90 without a copy", "bad") and "∅" in row.strip


def test_tables_that_differ_and_members_without_one() -> None:
    cluster = formed(THREE)
    cluster.change_table("n1", 271, WHOLE, "arranged")
    cluster.change_table("n2", 270, {**WHOLE, 0: ("n2", "n1")})
    picture = fold(cluster)
    assert row_of(picture, "n2").state == "≠ not its master's" and row_of(picture, "n2").differs
    assert row_of(picture, "n3").state == "≠ none"
    assert table_figure(picture, THREE, picture.at) == ("≠ 2 tables and none", "warning")


def test_a_backup_out_of_step_is_not_safe() -> None:
    cluster = formed(THREE)
    for label in THREE:
        cluster.change_table(label, 271, WHOLE)
    cluster.happen("n2", BackupOutOfStep(0, cluster.address("n1"), "a write is missing"))
    assert row_of(fold(cluster), "n2").state == "a backup out of step"


def test_backups_that_nobody_tells_are_not_safe() -> None:
    cluster = formed(THREE)
    cluster.happen("n1", MemberWitnessed(("client-protocol",), ("owners",)))
    holders = tuple(cluster.holder(label) for label in THREE)
    cluster.happen("n1", OwnersTold(holders, tuple(number % 3 for number in range(271)), "d" * 16, None))
    cluster.happen("n2", MemberWitnessed(("logs",), ()))
    picture = fold(cluster)
    assert row_of(picture, "n1").state == "backups not reported"
    assert row_of(picture, "n2").state == "not reported"


# Lanes


def test_lanes_show_who_gave_and_who_took() -> None:
    cluster = formed(THREE)
    for number in range(4):
        cluster.begin("n1", f"m{number}", number, "n1", "n2")
        cluster.happen("n1", MigrationCopied(f"m{number}", number, 1, 6_000_000, 10), after_us=1_000)
        cluster.happen("n1", MigrationDecided(f"m{number}", number, number != 3, 2, ""), after_us=1_000)
    records = cluster.drain()
    picture = Picture()
    for record in records:
        picture.apply(record)
    lanes = MigrationLanes()
    lanes.take(records)
    rows = lanes.rows(picture, cluster.now_us())
    assert (rows("n1").given.count, rows("n1").taken.count) == (3, 0), "what was rolled back has moved nothing"
    assert (rows("n2").given.lane, rows("n2").taken.count) == ("", 3)
    assert rows("n2").taken.rate == "0.5" and rows("n2").taken.copied == "4 MB"
    assert len(rows("n1").given.lane) == SLOTS and not rows("n3").busy
    later = lanes.rows(picture, cluster.now_us() + SLOTS * SLOT_US)
    assert not any(later(label).busy for label in THREE)
    lanes.restart(())
    assert not any(lanes.rows(picture, cluster.now_us())(label).busy for label in THREE)


def test_lanes_of_real_members_are_made_of_the_ends_that_they_tell() -> None:
    cluster = formed(THREE)
    at = {label: cluster.address(label) for label in THREE}
    cluster.happen("n1", MemberWitnessed(("client-protocol",), ("owners", "migration-ends")))
    cluster.happen("n1", ReplicaMigrated(1, 0, at["n1"], at["n3"], True, 5_000, 2, 1))
    cluster.happen("n1", ReplicaMigrated(2, 0, at["n1"], at["n3"], False, 5_000, 2, 2))
    records = cluster.drain()
    lanes = MigrationLanes()
    lanes.take(records)
    rows = lanes.rows(folded_of(records), cluster.now_us())
    assert (rows("n1").given.count, rows("n3").taken.count) == (1, 1)
    rows = lanes.rows(folded_of(records), cluster.now_us() + 10 * SECOND_US)
    assert (rows("n1").given.lane, rows("n3").taken.lane, rows("n2").given.lane) == ("1 before", "1 before", "")


def folded_of(records: object) -> Picture:
    picture = Picture()
    for record in records:  # type: ignore[attr-defined]
        picture.apply(record)
    return picture


def test_the_queue_in_a_few_words() -> None:
    cluster = formed(THREE)
    assert queue_figure(Judge(fold(cluster), now_us=cluster.now_us())) == ("none", "faint")
    cluster = formed(THREE)
    planned = tuple(
        PlannedMigration(number, "MOVE", cluster.address("n1"), cluster.address("n2"), 0) for number in range(8)
    )
    cluster.happen("n1", MigrationsPlanned(planned, 8, 8, "n2 joined"))
    cluster.begin("n1", "m0", 0, "n1", "n2")
    cluster.happen("n1", MigrationDecided("m0", 0, True, 2, ""))
    cluster.begin("n1", "m1", 1, "n1", "n2")
    text, tone = queue_figure(Judge(fold(cluster), now_us=cluster.now_us()))
    assert text == "1 of 8, about 14 s left, 1 running, 0.5/s" and tone == "strong"


def test_a_queue_that_nobody_tells_is_not_empty() -> None:
    cluster = formed(THREE)
    for label in THREE:
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("migration-ends",)))
    assert queue_figure(Judge(fold(cluster), now_us=cluster.now_us())) == ("queue not reported, 0 done", "faint")


# Activity


def test_seconds_that_are_over_are_counted_and_what_is_not_told_is_no_zero() -> None:
    cluster = formed(THREE)
    cluster.happen(
        "n1", HeartbeatLate(cluster.address("n2"), "n2-life-1", 2 * SECOND_US, 4 * SECOND_US, False), after_us=SECOND_US
    )
    cluster.happen("n1", HeartbeatLate(cluster.address("n2"), "n2-life-1", 0, 4 * SECOND_US, True))
    records = cluster.drain()
    activity = Activity()
    activity.take(records)
    late, operations, migrations = activity.pulses(folded_of(records), cluster.now_us() + SECOND_US)
    assert (
        late.rate == "1/s" and len(late.bars) == SECONDS and late.bars.endswith(LEVELS[-1]) and late.tone == "warning"
    )
    assert operations.rate == migrations.rate == "0/s" and operations.tone == "faint"
    cluster.happen(
        "n2", DataMeasured(2 * SECOND_US, 9, 90, 0, 0, 0, (), ((0, 9, 90, 30, 10), (1, 0, 0, 0, 2), (2,)), ())
    )
    activity.take(cluster.drain())
    assert activity.pulses(folded_of(records), cluster.now_us() + 3 * SECOND_US)[1].rate == "21/s", (
        "what maps were asked"
    )
    witnessed = formed(THREE)
    for label in THREE:
        witnessed.happen(label, MemberWitnessed(("logs",), ("suspicions",)))
    assert {pulse.rate for pulse in Activity().pulses(fold(witnessed), 0)} == {"not reported"}
