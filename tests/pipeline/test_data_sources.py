"""Journals and logs as formats of Spark's, and all tables as views, in a session that is there already."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo

import quarterdeck
from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.data_sources import JournalReader, records_of_files
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.store import update_store

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests" / "scenarios" / "killed-process.yaml"
LOGS = ROOT / "tests" / "hazelcast" / "logs" / "data" / "formation-and-crash"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    assert quarterdeck.spark.register(spark) == ()
    return spark


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("journals")
    for seed in (1, 2):
        quarterdeck.simulate(SCENARIO, seed=seed, journal=root)
    return root


def rows(table: DataFrame) -> list[Row]:
    return table.sort("run", "uuid", "seq").collect()


def test_a_journal_has_the_same_records_as_the_tables_are_made_of(session: SparkSession, journal: Path) -> None:
    read = session.read.format("quarterdeck").load(str(journal))
    files = [str(file) for file in journal.rglob("*.jsonl")]
    assert rows(read) == rows(records_of_files(session, resolve_input([f"file://{journal}"], journal)))
    assert (read.rdd.getNumPartitions(), len(files)) == (1, 2)  # small files share a task


def test_runs_and_kinds_are_chosen_before_lines_are_decoded(session: SparkSession, journal: Path) -> None:
    read = session.read.format("quarterdeck").load(str(journal))
    every = read.collect()
    run = every[0].run
    for chosen, wanted in (
        (read.where(F.col("run") == run), [row for row in every if row.run == run]),
        (read.where(F.col("event.kind").isin("list-installed", "member-started") & (F.col("run") == run)),
         [row for row in every if row.event.kind in ("list-installed", "member-started") and row.run == run]),
        (read.where(F.col("run") == "no such"), []),
    ):  # fmt: skip
        assert sorted((row.run, row.uuid, row.seq) for row in chosen.collect()) == sorted(
            (row.run, row.uuid, row.seq) for row in wanted
        )
    reader = JournalReader({"path": str(journal)})
    list(reader.pushFilters([EqualTo(("event", "kind"), "member-started")]))
    read_rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert 0 < len(read_rows) < len(every) / 10


def test_heads_are_read_by_themselves(session: SparkSession, journal: Path) -> None:
    read = session.read.format("quarterdeck")
    whole = read.load(str(journal)).select("seq", "run", F.col("event.kind").alias("kind"), "utc")
    heads = read.option("columns", "seq, run,kind,utc").load(str(journal))
    assert heads.columns == whole.columns
    assert sorted(heads.collect()) == sorted(whole.collect())
    killed = heads.where((F.col("kind") == "process-killed") & (F.col("run") != "no such")).collect()
    assert sorted(killed) == sorted(row for row in whole.collect() if row.kind == "process-killed") and killed


def test_columns_tell_what_they_hold(session: SparkSession, journal: Path) -> None:
    read = session.read.format("quarterdeck").load(str(journal))
    assert all(field.metadata["comment"] for field in read.schema.fields)


def test_logs_give_the_records_of_the_library(session: SparkSession) -> None:
    read = session.read.format("quarterdeck-logs").option("run", "mine").load(str(LOGS))
    expected = quarterdeck.read_logs(LOGS, quarterdeck.LogOptions(run="mine")).records
    found = sorted((row.run, row.member, row.uuid, row.seq, row.at, row.event.kind) for row in read.collect())
    assert found == sorted(
        (record.run, record.member, record.uuid, record.seq, record.at, record.event.__struct_config__.tag)
        for record in expected
    )


def test_several_paths_are_read_together(session: SparkSession, journal: Path) -> None:
    runs = sorted(map(str, journal.glob("run=*")))
    both = session.read.format("quarterdeck").load(runs)
    assert both.select("run").distinct().count() == len(runs) == 2


def test_lines_that_are_no_records_are_left_out_or_named(session: SparkSession, tmp_path: Path) -> None:
    quarterdeck.simulate(SCENARIO, seed=1, journal=tmp_path)
    (file,) = tmp_path.rglob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], b"no record\n", *lines[2:], b'{"torn": ']))
    reader = session.read.format("quarterdeck")
    assert reader.load(str(tmp_path)).count() == len(lines)
    with pytest.raises(PySparkException, match=r"000001\.jsonl:3: this line is not a record"):
        reader.option("mode", "failfast").load(str(tmp_path)).count()


@pytest.mark.parametrize(
    ("name", "options", "path", "message"),
    [
        ("quarterdeck", {"mood": "x"}, "JOURNAL", "quarterdeck has no option 'mood'; there are: mode"),
        ("quarterdeck", {"mode": "permissive"}, "JOURNAL", "PERMISSIVE is neither DROPMALFORMED nor FAILFAST"),
        (
            "quarterdeck",
            {"columns": "run,event"},
            "JOURNAL",
            "no 'event' that is read by itself; there are: run, member",
        ),
        ("quarterdeck-logs", {"columns": "run"}, "LOGS", "has no option 'columns'"),
        ("quarterdeck", {}, "/nowhere", "/nowhere: no such file or directory"),
        ("quarterdeck", {}, "s3a://bucket/x", "s3a://bucket/x: the format quarterdeck reads files"),
        ("quarterdeck-logs", {"zone": "Nowhere"}, str(LOGS), "Nowhere"),
        ("quarterdeck-logs", {}, "/nowhere", "/nowhere: no log of a member"),
    ],
)
def test_what_cannot_be_read_is_told(
    session: SparkSession, journal: Path, name: str, options: dict[str, str], path: str, message: str
) -> None:
    where = str(journal) if path == "JOURNAL" else path
    with pytest.raises(PySparkException, match=message):
        session.read.format(name).options(**options).load(where).count()


def test_the_tables_are_views_and_the_same_as_in_a_store(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    names = quarterdeck.spark.register(spark, journal, prefix="live_")
    assert names == tuple(f"live_{name}" for name in ("events", *TABLES))
    update_store([journal], tmp_path / "store")
    quarterdeck.spark.register(spark, tmp_path / "store", prefix="kept_")
    for name in ("views", "incarnations", "suspicions"):
        live, kept = spark.table(f"live_{name}"), spark.table(f"kept_{name}")
        assert sorted(map(str, live.collect())) == sorted(map(str, kept.select(live.columns).collect())) != []


def test_a_repeated_record_is_one_event(spark: SparkSession, journal: Path) -> None:
    quarterdeck.spark.register(spark, [journal, *journal.glob("run=*/*.jsonl")])
    once = sum(1 for _ in quarterdeck.read_journal(journal))
    assert spark.sql("SELECT count(*) AS n FROM events").collect()[0].n == once


def test_logs_are_views_too(spark: SparkSession) -> None:
    quarterdeck.spark.register(spark, LOGS, prefix="logged_", zone="UTC")
    query = "SELECT member, version FROM logged_views WHERE run = 'formation-and-crash'"
    assert len(spark.sql(query).collect()) > 0


def test_nothing_there_is_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(quarterdeck.NoJournal):
        quarterdeck.spark.register(spark, tmp_path / "nowhere")
