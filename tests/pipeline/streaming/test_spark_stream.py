"""The stream that Spark carries: the findings of the audit, each once, over new files, kills and restarts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.tws_tester import TwsTester

import quarterdeck
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.data_sources import BadOption, JournalStreamReader
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.streaming import spark_stream
from quarterdeck.backend.pipeline.streaming.spark_stream import (
    SETTLE_MS,
    STATE_STORE,
    RunFollower,
    blocks_at,
    findings_at,
    start_stream,
    topic_blocks,
)
from quarterdeck.backend.pipeline.streaming.stream_files import FindingsChange
from tests.pipeline.journal_builder import line
from tests.pipeline.rules.planted import PLANTED
from tests.pipeline.streaming.faulty_runs import faulty_run
from tests.pipeline.streaming.test_stream import REPOSITORY, of_the_whole, planted_runs, write_together
from tests.waiting import wait_until

PROGRAM = (sys.executable, "-c", "from quarterdeck.cli.main import run\nrun()", "pipeline", "stream")

LIMIT_SECONDS = 60.0
"""A session of Spark starts slowly on a busy machine."""


@pytest.fixture
def stateful(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with a state store for streams, and the formats of this package."""
    quarterdeck.spark.register(spark)
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    yield spark
    for name in STATE_STORE:
        spark.conf.unset(name)


def through(blocks: DataFrame, root: Path) -> list[FindingsChange]:
    """Judge what there is now, at once."""
    changes: list[FindingsChange] = []
    ended = threading.Event()

    def on_batch(change: FindingsChange) -> None:
        changes.append(change)
        if len(changes) == 2:
            ended.set()

    query = start_stream(blocks, str(root / "out"), str(root / "state"), settle_ms=0, trigger_ms=0, on_batch=on_batch)
    try:
        wait_until(lambda: ended.is_set() or not query.isActive, limit_seconds=LIMIT_SECONDS)
        assert query.isActive, query.exception()
    finally:
        query.stop()
    return changes[:2]


def in_table(spark: SparkSession, out: Path) -> list[bytes]:
    rows = (row.asDict(recursive=True) for row in findings_at(spark, str(out)).collect())
    return sorted(msgspec.json.encode(msgspec.convert(row, Finding)) for row in rows)


def test_a_record_is_judged_when_it_has_settled_and_once() -> None:
    """As Spark calls the judge, without Spark; in the middle another worker goes on."""
    name = next(name for name, planted in PLANTED.items() if planted.records[-1].at > 0)
    records = PLANTED[name].records
    run = records[0].run
    halves = [b"".join(map(line, some)) for some in (records[: len(records) // 2], records[len(records) // 2 :])]
    tester = TwsTester(RunFollower(SETTLE_MS), timeMode="ProcessingTime")
    tester.setProcessingTime(1_000)
    found = tester.test(run, [Row(run=run, file="/j/run=r/n-000001.jsonl", start=0, lines=halves[0])])
    assert found == []  # nothing has settled
    tester.setProcessingTime(1_400)
    spark_stream._followed.clear()
    found += tester.test(run, [Row(run=run, file="/j/run=r/n-000001.jsonl", start=len(halves[0]), lines=halves[1])])
    for now_ms in range(1_500, 5_000, 100):
        found += tester.setProcessingTime(now_ms)
    at_once = TwsTester(RunFollower(0), timeMode="ProcessingTime")
    lines = Row(run=run, file="/j/run=r/n-000001.jsonl", start=0, lines=b"".join(halves))
    assert found and all(row.holds for row in found)
    assert sorted(found) == sorted(at_once.test(run, [lines]))


@pytest.mark.long
def test_a_stream_has_the_findings_of_the_audit_each_once(stateful: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    names = list(PLANTED)
    planted_runs(journal, names[:10])
    write_together(journal, "troubled-1", faulty_run("troubled-1", 1)[:100])
    first = through(blocks_at(stateful, str(journal)), tmp_path)
    assert first[0].added and not first[1].added
    planted_runs(journal, names[10:])
    write_together(journal, "troubled-1", faulty_run("troubled-1", 1)[100:])
    through(blocks_at(stateful, str(journal)), tmp_path)  # other workers, which have to judge anew
    assert in_table(stateful, tmp_path / "out") == of_the_whole(journal)
    assert [(change.added, change.withdrawn) for change in through(blocks_at(stateful, str(journal)), tmp_path)] == [
        ((), ()), ((), ()),
    ]  # fmt: skip


@pytest.mark.long
def test_lines_of_a_topic_are_judged_alike(stateful: SparkSession, tmp_path: Path) -> None:
    """Rows as Spark's source for Kafka has them, from files: the members' lines are spread over two partitions."""
    records = faulty_run("troubled-2", 2)
    write_together(tmp_path / "journal", "troubled-2", records)
    rows = [
        (line(record).rstrip(b"\n"), "journal", ord(record.member[-1]) % 2, place)
        for place, record in enumerate(records)
    ]
    schema = "value binary, topic string, partition int, offset long"
    stateful.createDataFrame([*rows, (b"no json", "journal", 0, len(rows))], schema).write.parquet(
        str(tmp_path / "topic")
    )
    through(topic_blocks(stateful.readStream.schema(schema).parquet(str(tmp_path / "topic"))), tmp_path)

    def unlinked(found: list[bytes]) -> list[Finding]:
        return [msgspec.structs.replace(msgspec.json.decode(one, type=Finding), link="") for one in found]

    assert unlinked(in_table(stateful, tmp_path / "out")) == unlinked(of_the_whole(tmp_path / "journal"))


@pytest.mark.long
@pytest.mark.timeout(900)  # Java starts three times
def test_a_driver_that_is_killed_leaves_nothing_out_and_nothing_twice(tmp_path: Path) -> None:
    names = list(PLANTED)
    planted_runs(tmp_path, names[:15])
    command = [*PROGRAM, str(tmp_path), "--master", "local[2]"]
    state = tmp_path / "_stream" / "spark"
    for begun in ("offsets/0", "commits/1"):  # killed in the first batch, and between batches
        kill_when_there_is(state / begun, command, tmp_path / "said")
        planted_runs(tmp_path, [names.pop()])
    last = subprocess.run([*command, "--once"], cwd=REPOSITORY, capture_output=True, check=False)
    assert last.returncode == 1, last.stderr.decode()
    assert of_the_whole(tmp_path) == table_without_spark(tmp_path / "_stream" / "findings")


def kill_when_there_is(file: Path, command: list[str], said: Path) -> None:
    with said.open("wb") as output:
        driver = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_until(lambda: file.exists() or driver.poll() is not None, limit_seconds=LIMIT_SECONDS)
        finally:
            driver.kill()
            driver.wait()
    assert file.exists(), said.read_text()


def table_without_spark(out: Path) -> list[bytes]:
    """What any reader of Parquet sees: each finding stands there once."""
    import pyarrow.dataset

    rows = pyarrow.dataset.dataset(out, format="parquet", exclude_invalid_files=True).to_table().to_pylist()
    assert all(row.pop("holds") for row in rows)
    return sorted(msgspec.json.encode(msgspec.convert(row, Finding)) for row in rows)


@pytest.mark.long
def test_records_are_streamed_as_they_are_read(stateful: SparkSession, tmp_path: Path) -> None:
    planted_runs(tmp_path / "journal", list(PLANTED)[:3])
    journal = str(tmp_path / "journal")
    query = (
        stateful.readStream.format("quarterdeck").load(journal).writeStream.format("memory").queryName("streamed")
        .option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(60)
    order = [F.col("run"), F.col("uuid"), F.col("seq")]
    read = stateful.read.format("quarterdeck").load(journal).sort(*order).collect()
    assert stateful.table("streamed").sort(*order).collect() == read


def test_what_a_stream_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="rows: words is neither records nor blocks"):
        JournalStreamReader({"path": str(tmp_path), "rows": "words"})
    with pytest.raises(NoJournal, match="no such directory"):
        JournalStreamReader({"path": str(tmp_path / "nowhere")})
