"""The stream that Spark carries: the findings of the audit, each once, over new files, kills and restarts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.tws_tester import TwsTester

import quarterdeck
from quarterdeck.backend.journal.files import NoJournal, run_directory
from quarterdeck.backend.pipeline.data_sources import BadOption, JournalStreamReader
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.spark import session
from quarterdeck.backend.pipeline.streaming import spark_stream
from quarterdeck.backend.pipeline.streaming.followed_run import SETTLE_MS
from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsChange
from quarterdeck.backend.pipeline.streaming.spark_stream import (
    STATE_STORE,
    RunFollower,
    blocks_at,
    findings_at,
    quarantine_of,
    start_stream,
    topic_blocks,
    wait_for,
)
from tests.pipeline.journal_builder import line
from tests.pipeline.rules.planted import PLANTED
from tests.pipeline.streaming.faulty_runs import faulty_run
from tests.pipeline.streaming.test_stream import REPOSITORY, of_the_whole, planted_runs, write_together
from tests.waiting import wait_until

PROGRAM = (sys.executable, "-c", "from quarterdeck.cli.main import run\nrun()", "pipeline", "stream")

FORGET_MS = 60_000
LIMIT_SECONDS = 180.0
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


def through(blocks: DataFrame, root: Path) -> FindingsChange:
    """Judge what there is now, at once. Return what that changed."""
    changes: list[FindingsChange] = []
    query = start_stream(
        blocks, str(root / "out"), str(root / "state"), once=True, on_batch=lambda change, _: changes.append(change)
    )
    wait_for(query, threading.Event(), threading.Event())
    return (
        FindingsChange(*(sum(sides, ()) for sides in zip(*changes, strict=True))) if changes else FindingsChange((), ())
    )


def in_table(spark: SparkSession, out: Path) -> list[bytes]:
    rows = (row.asDict(recursive=True) for row in findings_at(spark, str(out)).collect())
    return sorted(msgspec.json.encode(msgspec.convert(row, Finding)) for row in rows)


def test_a_record_is_judged_when_it_has_settled_and_once() -> None:
    """As Spark calls the judge, without Spark; in the middle another worker goes on."""
    name = next(name for name, planted in PLANTED.items() if planted.records[-1].at > 0)
    records = PLANTED[name].records
    run = records[0].run
    halves = [b"".join(map(line, some)) for some in (records[: len(records) // 2], records[len(records) // 2 :])]
    tester = TwsTester(RunFollower(SETTLE_MS, FORGET_MS), timeMode="ProcessingTime")
    tester.setProcessingTime(1_000)
    found = tester.test(run, [Row(run=run, file="/j/run=r/n-000001.jsonl", start=0, lines=halves[0])])
    assert found == []  # nothing has settled
    tester.setProcessingTime(1_400)
    spark_stream._followed.clear()
    found += tester.test(run, [Row(run=run, file="/j/run=r/n-000001.jsonl", start=len(halves[0]), lines=halves[1])])
    for now_ms in range(1_500, 5_000, 100):
        found += tester.setProcessingTime(now_ms)
    at_once = TwsTester(RunFollower(0, FORGET_MS), timeMode="ProcessingTime")
    lines = Row(run=run, file="/j/run=r/n-000001.jsonl", start=0, lines=b"".join(halves))
    assert found and all(row.changed.holds for row in found)
    assert sorted(found) == sorted(at_once.test(run, [lines]))


def test_a_run_that_is_quiet_for_long_is_forgotten_and_what_comes_then_is_quarantined() -> None:
    records = PLANTED[next(iter(PLANTED))].records
    run = records[0].run
    block = Row(run=run, file="/j/run=r/n-000001.jsonl", start=0, lines=b"".join(map(line, records)))
    tester = TwsTester(RunFollower(SETTLE_MS, FORGET_MS), timeMode="ProcessingTime")
    tester.setProcessingTime(1_000)
    tester.test(run, [block])
    assert tester.setProcessingTime(1_000 + SETTLE_MS)
    assert tester.setProcessingTime(1_000 + FORGET_MS) == []
    assert tester.peekMapState("blocks", run) == {}
    (late,) = tester.test(run, [block])
    assert late.quarantined.reason.startswith(f"{len(records)} lines came after nothing had for so long")
    assert late.changed is None and tester.setProcessingTime(10 * FORGET_MS) == []


@pytest.mark.long
def test_a_stream_has_the_findings_of_the_audit_each_once(stateful: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    names = list(PLANTED)
    planted_runs(journal, names[:10])
    write_together(journal, "troubled-1", faulty_run("troubled-1", 1)[:100])
    first = through(blocks_at(stateful, str(journal)), tmp_path)
    assert first.added and len(set(first.added)) == len(first.added)
    planted_runs(journal, names[10:])
    write_together(journal, "troubled-1", faulty_run("troubled-1", 1)[100:])
    through(blocks_at(stateful, str(journal)), tmp_path)  # other workers, which have to judge anew
    assert in_table(stateful, tmp_path / "out") == of_the_whole(journal)
    for _ in range(2):
        assert through(blocks_at(stateful, str(journal)), tmp_path) == ((), ()), "it ends where nothing has come"


@pytest.mark.long
def test_a_stream_that_is_stopped_in_a_batch_has_not_failed(stateful: SparkSession, tmp_path: Path) -> None:
    """Java then gets the text of a long exception from Python, in which Spark looks for the interruption."""
    planted_runs(tmp_path / "journal", list(PLANTED)[:2])
    begun = threading.Event()

    def on_batch(change: FindingsChange, _: int) -> None:
        begun.set()
        stateful.range(0, 10**12, 1, 2).selectExpr("sum(id % 7)").collect()

    blocks = blocks_at(stateful, str(tmp_path / "journal"))
    query = start_stream(blocks, str(tmp_path / "out"), str(tmp_path / "state"), settle_ms=0, on_batch=on_batch)
    try:
        assert begun.wait(LIMIT_SECONDS)
    finally:
        query.stop()
    assert query.exception() is None
    again = through(blocks, tmp_path)
    assert again.added, "the batch is repeated"
    assert in_table(stateful, tmp_path / "out") == of_the_whole(tmp_path / "journal")


@pytest.mark.long
def test_lines_that_are_no_records_are_quarantined_once(stateful: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    write_together(journal, "troubled-1", faulty_run("troubled-1", 1))
    (run_directory(journal, "troubled-1") / "damaged-000001.jsonl").write_bytes(b"no json\n{}\n")
    rows = [(b"no json", "journal", 0, 0), (b'{"run":"r"}', "journal", 0, 1)]
    schema = "value binary, topic string, partition int, offset long"
    stateful.createDataFrame(rows, schema).write.parquet(str(tmp_path / "topic"))
    for _ in range(2):
        through(blocks_at(stateful, str(journal)), tmp_path)
        topic = topic_blocks(stateful.readStream.schema(schema).parquet(str(tmp_path / "topic")))
        through(topic, tmp_path / "of_topic")
    lines = {
        place: [(row.run, row.raw) for row in stateful.read.parquet(quarantine_of(str(tmp_path / place))).collect()]
        for place in ("out", "of_topic/out")
    }
    assert sorted(lines["out"]) == [("troubled-1", "no json"), ("troubled-1", "{}")]
    assert sorted(lines["of_topic/out"]) == [(NO_RUN, "no json"), ("r", '{"run":"r"}')]


def test_values_of_a_topic_that_name_no_run_are_blocks_of_none() -> None:
    deep = b'{"depth":' + 100_000 * b"["
    values = [b'{"run":"a"}', deep, b"\xff", None, b'{"run":"a"}', b'{"run":""}']
    batch = pa.RecordBatch.from_pydict({"file": ["t-0"] * 6, "offset": list(range(7, 13)), "value": values})
    (blocks,) = spark_stream.blocks_of_lines(iter([batch]))
    assert [(row["run"], row["start"], row["lines"].count(b"\n")) for row in blocks.to_pylist()] == [
        ("a", 7, 2),
        (NO_RUN, 8, 4),
    ]


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
        return [msgspec.structs.replace(msgspec.json.decode(line, type=Finding), link="") for line in found]

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


@pytest.mark.parametrize(
    ("master", "named", "partitions"),
    [
        ("local[16,4]", None, 16),
        ("local[16,4]", "2", 2),
        ("spark://head:7077", None, 16),
        ("spark://head:7077", "2", 2),
    ],
)
def test_a_stream_has_a_partition_for_each_core(
    monkeypatch: pytest.MonkeyPatch, master: str, named: str | None, partitions: int
) -> None:
    """Executors of a cluster come up one after the other; the number of a user is kept."""
    up = iter((2, 12, 16, 16))
    monkeypatch.setattr(session, "parallelism", lambda _: next(up))
    conf = {} if named is None else {session.SHUFFLE_PARTITIONS: named}
    context = SimpleNamespace(master=master, getConf=lambda: conf, defaultParallelism=16)
    assert session.stream_partitions(cast(SparkSession, SimpleNamespace(sparkContext=context))) == partitions


def test_what_a_stream_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="rows: words is neither records nor blocks"):
        JournalStreamReader({"path": str(tmp_path), "rows": "words"})
    with pytest.raises(NoJournal, match="no such directory"):
        JournalStreamReader({"path": str(tmp_path / "nowhere")})
