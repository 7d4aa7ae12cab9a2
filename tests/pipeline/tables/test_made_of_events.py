"""The tables against what the runs themselves say, moment by moment."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from docs.generators.reference_pipeline import PAGE, page
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import (
    ClaimFinished,
    ClaimStarted,
    ListInstalled,
    MemberMerging,
    SuspicionCleared,
    SuspicionRaised,
)
from quarterdeck.backend.core.partitions.events import MigrationDecided, MigrationStarted, TableChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.store import read_table
from tests.pipeline.tables.golden_runs import HAND, events, golden_records, golden_store, plain


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, list[dict[str, object]]]:
    store = golden_store(spark)
    return {name: plain(read_table(spark, store, name).collect()) for name in (*TABLES, "events", "quarantine")}


def of(rows: list[dict[str, object]], run: str, **wanted: object) -> list[dict[str, object]]:
    return [row for row in rows if row["run"] == run and all(row[name] == value for name, value in wanted.items())]


def test_events_hold_every_record_once(rows: dict[str, list[dict[str, object]]]) -> None:
    told = {(record.run, record.uuid, record.seq) for run in golden_records().values() for record in run}
    assert sorted((row["run"], row["uuid"], row["seq"]) for row in rows["events"]) == sorted(told)
    assert not rows["quarantine"]


def test_a_label_that_is_killed_and_started_again(rows: dict[str, list[dict[str, object]]]) -> None:
    lives = sorted(of(rows["incarnations"], "twice-seed-1", member="b"), key=lambda row: row["started_at"])
    killed = [record.at for record in events("twice-seed-1", ProcessKilled)]
    assert killed == [5 * SECOND_US + 30_000, 15 * SECOND_US + 30_000]
    assert [(row["started_at"], row["ended_at"], row["end"]) for row in lives] == [
        (10_000, killed[0], "killed"),
        (10 * SECOND_US + 30_000, killed[1], "killed"),
        (20 * SECOND_US + 30_000, None, None),
    ]
    assert all(row["settings"]["hazelcast.max.no.heartbeat.seconds"] == "4" for row in lives)


def test_lives_whose_story_has_holes(rows: dict[str, list[dict[str, object]]]) -> None:
    lives = {row["uuid"]: row for row in of(rows["incarnations"], HAND)}
    assert sorted(lives) == ["a1", "b1", "b2"]  # neither the cluster's own records nor a member's notes are a life
    beginningless = lives["a1"]
    assert (beginningless["address"], beginningless["lite"]) == ("10.0.0.1:5701", False)
    assert (beginningless["merged_from"], beginningless["settings"]) == (None, None)
    assert (beginningless["started_at"], beginningless["joined_at"], beginningless["end"]) == (1_000, 1_100, None)
    assert [(lives[uuid]["ended_at"], lives[uuid]["end"]) for uuid in ("b1", "b2")] == [
        (1_000, "replaced"),
        (4_000, "killed"),
    ]


def test_views_and_suspicions(rows: dict[str, list[dict[str, object]]]) -> None:
    for run in golden_records():
        assert sorted((row["uuid"], row["seq"], row["version"]) for row in of(rows["views"], run)) == sorted(
            (record.uuid, record.seq, record.event.version) for record in events(run, ListInstalled)
        )
        raised = [(event.uuid, event.event.suspect_uuid, event.at) for event in events(run, SuspicionRaised)]
        found = of(rows["suspicions"], run)
        assert sorted((row["uuid"], row["suspect_uuid"], row["raised_at"]) for row in found) == sorted(raised)
        cleared = [(event.uuid, event.event.suspect_uuid, event.at) for event in events(run, SuspicionCleared)]
        ended = [row for row in found if row["cleared_at"] is not None]
        assert sorted((row["uuid"], row["suspect_uuid"], row["cleared_at"]) for row in ended) == sorted(cleared)


def test_claims(rows: dict[str, list[dict[str, object]]]) -> None:
    run = "halves-seed-1"
    assert sorted((row["started_at"], row["ended_at"], row["lineage"]) for row in of(rows["claims"], run)) == [
        (start.at, end.at, end.event.lineage)
        for start, end in zip(events(run, ClaimStarted), events(run, ClaimFinished), strict=True)
    ]
    by_hand = sorted(of(rows["claims"], HAND), key=lambda row: row["claim"])
    told = [
        (row["started_at"], row["ended_at"], row["outcome"], row["accepted"], row["refused"], row["new_version"])
        for row in by_hand
    ]
    # An answer before any beginning belongs to no claim that can be told.
    assert told == [(1_200, 1_400, "finished", 0, 1, 6), (1_500, None, "open", 0, 0, None)]


def test_merges(rows: dict[str, list[dict[str, object]]]) -> None:
    run = "halves-seed-1"
    left = {record.uuid: record for record in events(run, MemberMerging)}
    assert len(left) == 2
    for row in of(rows["merges"], run):
        record = left.pop(row["uuid"])
        first = events(run, ListInstalled)
        joined = next(record for record in first if record.uuid == row["next_uuid"])
        before = [record for record in first if record.uuid == row["uuid"]][-1]
        assert (row["left_at"], row["next_uuid"]) == (record.at, record.event.next_uuid)
        assert (row["joined_at"], row["to_lineage"], row["to_version"]) == (
            joined.at, joined.event.lineage, joined.event.version,
        )  # fmt: skip
        assert (row["from_lineage"], row["from_version"]) == (before.event.lineage, before.event.version)
    assert not left


def test_tables_and_migrations(rows: dict[str, list[dict[str, object]]]) -> None:
    run = "data-seed-1"
    assert sorted((row["uuid"], row["seq"], row["version"]) for row in of(rows["table_versions"], run)) == sorted(
        (record.uuid, record.seq, record.event.table_version) for record in events(run, TableChanged)
    )
    started = {event.event.migration_id: event for event in events(run, MigrationStarted)}
    decided = {event.event.migration_id: event for event in events(run, MigrationDecided)}
    found = {row["migration_id"]: row for row in of(rows["migrations"], run)}
    assert sorted(found) == sorted(started) and started
    for name, row in found.items():
        assert (row["started_at"], row["decided_at"]) == (started[name].at, decided[name].at)
        assert (row["outcome"] == "committed") == decided[name].event.committed
        assert row["started_at"] < row["copied_at"] <= row["committing_at"] <= row["decided_at"] <= row["finished_at"]


def test_a_migration_that_another_master_decides(rows: dict[str, list[dict[str, object]]]) -> None:
    decided, torso = sorted(of(rows["migrations"], HAND), key=lambda row: row["migration_id"])
    assert (decided["master"], decided["decided_by"], decided["decided_at"]) == ("a", "b", 2_600)
    assert (decided["outcome"], decided["reason"]) == ("rolled-back", "the master has changed")
    assert (torso["started_at"], torso["master"], torso["outcome"]) == (None, None, "open")
    assert (torso["partition"], torso["copied_at"], torso["chunks"], torso["copy_us"]) == (4, 2_800, 3, 50)


def test_calls(rows: dict[str, list[dict[str, object]]]) -> None:
    for run in ("data-seed-1", "refused-seed-1"):
        asked = {(event.uuid, event.event.call): event for event in events(run, CallStarted)}
        answered = {(event.uuid, event.event.call): event for event in events(run, CallFinished)}
        found = {(row["uuid"], row["call"]): row for row in [*of(rows["writes"], run), *of(rows["reads"], run)]}
        assert sorted(found) == sorted(asked)
        for call, row in found.items():
            end = answered.get(call)
            assert row["started_at"] == asked[call].at
            assert (row["finished_at"], row["took"]) == ((end.at, end.event.took) if end else (None, None))
    outcomes = sorted(row["outcome"] for row in of(rows["writes"], "refused-seed-1"))
    assert outcomes == ["acknowledged", "untouched"]


def test_faults(rows: dict[str, list[dict[str, object]]]) -> None:
    told = [(row["fault"], row["member"], row["from_at"], row["to_at"]) for row in of(rows["faults"], "freeze-seed-1")]
    assert told == [("pause", "c", 10 * SECOND_US + 30_000, 20 * SECOND_US + 30_000)]
    links = of(rows["faults"], "halves-seed-1")
    assert len(links) == 12  # three times two, both ways
    assert {(row["from_at"], row["to_at"], row["blocked"]) for row in links} == {
        (5 * SECOND_US + 50_000, 15 * SECOND_US + 50_000, "blackhole")
    }
    by_hand = sorted(of(rows["faults"], HAND), key=lambda row: row["from_at"])
    assert [(row["fault"], row["member"] or f"{row['source']}>{row['target']}", row["from_at"], row["to_at"])
            for row in by_hand] == [
        ("pause", "b", 3_000, 4_000),
        ("kill", "b", 4_000, None),
        ("link", "a>b", 5_000, 6_000),
        ("link", "a>b", 6_000, 7_000),
        ("link", "b>a", 8_000, None),
    ]  # fmt: skip


def test_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.generators.reference_pipeline"
    assert PAGE.parent == Path("docs/reference").resolve()
