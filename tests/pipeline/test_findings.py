"""Findings and tables as DataFrames, and how Spark plans the questions that are asked first."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual

import quarterdeck
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.pipeline.data_sources import JournalReader
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run, one with a violation, and half of a third one in a file beside the folders of runs."""
    root = write(tmp_path_factory.mktemp("journal"), clean_story("one"), clean_story("broken"), clean_story("halves"))
    (broken,) = (root / "run=broken").glob("*.jsonl")
    records = list(clean_story("broken").records)
    place = next(place for place, record in enumerate(records) if isinstance(record.event, ListInstalled))
    broken.write_bytes(b"".join(map(line, [*records[:place], *records[place + 1 :]])))
    (whole,) = (root / "run=halves").glob("*.jsonl")
    halves = list(map(line, clean_story("halves").records))
    whole.write_bytes(b"".join(halves[:7]))
    (root / "loose-000001.jsonl").write_bytes(b"".join(halves[7:]))
    return root


def as_findings(table: DataFrame) -> list[Finding]:
    return sorted(
        (msgspec.convert(row.asDict(recursive=True), Finding) for row in table.collect()), key=msgspec.json.encode
    )


def test_findings_are_those_of_the_audit(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    expected = sorted(quarterdeck.audit(journal).findings, key=msgspec.json.encode)
    assert [finding.run for finding in expected if finding.rule == "numbering"] == ["broken"]
    assert as_findings(quarterdeck.spark.findings(journal, spark)) == expected
    update_store([journal], tmp_path / "store")
    stored = [msgspec.structs.replace(finding, link="") for finding in expected]
    assert as_findings(quarterdeck.spark.findings(tmp_path / "store", spark)) == stored
    assert quarterdeck.spark.findings([journal], spark, rules=["view integrity"]).count() == 0
    with pytest.raises(ValueError, match="no rule 'views'"):
        quarterdeck.spark.findings(journal, spark, rules=["views"])


def test_tables_are_dataframes_by_name(spark: SparkSession, journal: Path) -> None:
    tables = quarterdeck.spark.tables(journal, spark)
    assert list(tables) == ["events", *TABLES]
    assert {row.run for row in tables["views"].select("run").distinct().collect()} == {"one", "broken", "halves"}


def plan(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    table.explain(mode="formatted")
    return capsys.readouterr().out


def test_plans_show_pruned_columns_and_pushed_filters(
    spark: SparkSession, journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    update_store([journal], tmp_path / "store")
    tables = quarterdeck.spark.tables(tmp_path / "store", spark)
    views = plan(tables["views"].where("run = 'one'").select("member", "version"), capsys)
    assert "EqualTo(run,one)" in views and "lineage" not in views.partition("ReadSchema")[2]
    started = tables["events"].where("event.kind = 'list-installed' AND utc >= '2026-01-01'").select("event.version")
    events = plan(started, capsys)
    assert "EqualTo(event.kind,list-installed)" in events and "GreaterThanOrEqual(utc," in events
    assert "ReadSchema: struct<utc:timestamp,event:struct<kind:string,version:bigint>>" in events
    read = spark.read.format("quarterdeck").load(str(journal))
    chosen = read.where(F.col("run").isin("one", "other") & (F.col("date") >= F.lit("2026-01-01").cast("date")))
    pushed = plan(chosen.where("event.kind = 'list-installed'"), capsys)
    for column in ("run", "event.kind", "date"):
        assert re.search(rf"PushedFilters:.*\b{re.escape(column)}\b", pushed), pushed


def read(journal: Path, *filters: Filter) -> tuple[int, set[str]]:
    """Return how many rows a task makes with these filters, and the runs of theirs."""
    reader = JournalReader({"path": str(journal)})
    assert not list(reader.pushFilters(list(filters)))  # nothing is left to Spark
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return len(rows), {row["run"] for row in rows}


def test_folders_of_other_runs_are_not_listed(journal: Path) -> None:
    run = EqualTo(("run",), "halves")
    assert read(journal, run) == (len(clean_story("halves").records), {"halves"})
    listed = [file for part in _partitions(journal, run) for file in part]
    assert sorted(file.parent.name for file in listed) == [journal.name, "run=halves"]
    assert read(journal, In(("run",), ("one", "halves")), run)[1] == {"halves"}
    assert read(journal, EqualTo(("run",), "no such")) == (0, set())


def _partitions(journal: Path, *filters: Filter) -> list[list[Path]]:
    reader = JournalReader({"path": str(journal)})
    list(reader.pushFilters(list(filters)))
    return [part.value for part in reader.partitions()]


def test_lines_of_other_days_are_not_decoded(journal: Path) -> None:
    first = clean_story("one").records[0]
    day = datetime.fromtimestamp(first.utc / 1e6, UTC).date()
    every = read(journal)
    assert read(journal, EqualTo(("date",), day)) == every
    assert read(journal, LessThanOrEqual(("date",), day), GreaterThan(("date",), day - timedelta(days=1))) == every
    assert read(journal, GreaterThan(("date",), day)) == (0, set())
    assert read(journal, EqualTo(("date",), day - timedelta(days=1))) == (0, set())
