"""A stream of Spark's that audits many runs as they grow: blocks of lines in, changes of findings out.

Each run is judged in one place, by `FollowedRun`. Spark keeps the blocks of a run as its state, packed, and what was found; the
judge itself is only in the memory of a worker, and is made again of the blocks where another worker goes on. So a checkpoint
contains no code, and outlives versions of this program.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BooleanType, StructField, StructType

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.data_sources import JOURNAL_FORMAT, JournalSource
from quarterdeck.backend.pipeline.growth import GrowingJournals
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.schemas import columns_of
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.spark.tuning import conf_set
from quarterdeck.backend.pipeline.streaming.followed_run import Block, Blocks, FollowedRun, changes_between
from quarterdeck.backend.pipeline.streaming.stream import StreamDied
from quarterdeck.backend.pipeline.streaming.stream_files import FindingsChange

TRIGGER_MS = 500
SETTLE_MS = 500
"""How long a record waits at least for older ones of other writers, which may come a little later."""

QUIET_MS = 10_000
"""A run whose times do not bring it in order is judged as a whole when nothing has come for so long, if it grows slowly."""

POLL_SECONDS = 1
MOST_RUNS_IN_MEMORY = 256
"""So many judges a worker holds; those of other runs are made again when these go on."""

CHANGES = StructType(
    [
        StructField("holds", BooleanType(), metadata={"comment": "false: found before, and does not hold any more"}),
        *columns_of(Finding).fields,
    ]
)
FIELDS = columns_of(Finding).names
KAFKA = "kafka://"
STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

_followed: OrderedDict[tuple[str, str], FollowedRun] = OrderedDict()
"""In a worker: the judges of runs, by query and run, in the order of use."""


class _Head(Struct, array_like=True):
    """What is known of a run, beside its blocks."""

    kept: int = 0
    """How many entries of blocks there are."""
    judged_us: int = -1
    came_ms: int = 0
    timer_ms: int = 0
    found: tuple[Finding, ...] = ()


class RunFollower(StatefulProcessor):
    """Judges the runs whose blocks come, each when it has settled."""

    def __init__(self, settle_ms: int) -> None:
        """With a settling time of 0, everything is judged as soon as it comes."""
        self._settle_ms = settle_ms
        self._query = uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._head = handle.getValueState("head", "head binary")
        self._blocks = handle.getMapState("blocks", "number int", "size int, packed binary")

    def handleInputRows(  # noqa: N802 - the names are Spark's
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Keep the blocks, and judge what has settled."""
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        blocks = sorted((Block(row.file, row.start, bytes(row.lines)) for row in rows), key=attrgetter("file", "start"))
        encoded = msgspec.msgpack.encode(Blocks(now_ms, tuple(blocks)))
        head = self._read_head()
        self._blocks.updateValue((head.kept,), (len(encoded), pa.compress(encoded, "zstd", asbytes=True)))
        head.kept, head.came_ms = head.kept + 1, now_ms
        yield from self._judge(key[0], head, now_ms)

    def handleExpiredTimer(  # noqa: N802 - the names are Spark's
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Judge what has settled since."""
        yield from self._judge(key[0], self._read_head(), timerValues.getCurrentProcessingTimeInMs())

    def _read_head(self) -> _Head:
        stored = self._head.get()
        return _Head() if stored is None else msgspec.msgpack.decode(stored[0], type=_Head)

    def _judge(self, run: str, head: _Head, now_ms: int) -> Iterator[Row]:
        at_once = self._settle_ms == 0
        followed = self._follow(run, head)
        found = followed.judge(
            head.judged_us,
            inf if at_once else now_ms - self._settle_ms,
            is_quiet=at_once or now_ms - head.came_ms >= QUIET_MS,
        )
        if found is not None:
            for holds, changed in zip((True, False), changes_between(head.found, found), strict=True):
                for finding in changed:
                    yield Row(holds=holds, **msgspec.to_builtins(finding))
            head.found = tuple(found)
        head.judged_us = followed.judged_us
        if followed.waits and head.timer_ms <= now_ms:
            pause_ms = self._settle_ms if followed.waits_to_settle else QUIET_MS
            head.timer_ms = now_ms + pause_ms
            self._handle.registerTimer(head.timer_ms)
        self._head.update((msgspec.msgpack.encode(head),))

    def _follow(self, run: str, head: _Head) -> FollowedRun:
        """Return the judge of the run; a new one unless this worker has it, not further than the state is."""

        def kept(first: int) -> Iterator[Blocks]:
            for number in range(first, head.kept):
                entry = self._blocks.getValue((number,))
                assert entry is not None
                yield msgspec.msgpack.decode(pa.decompress(entry[1], entry[0], "zstd", asbytes=True), type=Blocks)

        followed = _followed.pop((self._query, run), None)
        if followed is None or followed.taken > head.kept:
            followed = FollowedRun(run)
        followed.kept = kept
        _followed[self._query, run] = followed
        while len(_followed) > MOST_RUNS_IN_MEMORY:
            _followed.popitem(last=False)
        return followed


def blocks_at(spark: SparkSession, place: str) -> DataFrame:
    """Stream what is added to the journals at `place`: a directory, or ``kafka://HOST:PORT,…/TOPIC``. Raises `NoJournal`."""
    if place.startswith(KAFKA):
        servers, _, topic = place.removeprefix(KAFKA).partition("/")
        if not servers or not topic:
            raise NoJournal(f"{place}: name servers and topic, as in {KAFKA}HOST:9092/TOPIC")
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
        return topic_blocks(spark.readStream.format("kafka").options(**options).load())
    GrowingJournals([Path(place)])  # raises here, and not in Spark, where there is nothing
    spark.dataSource.register(JournalSource)
    return spark.readStream.format(JOURNAL_FORMAT).option("rows", "blocks").load(place)


def topic_blocks(records: DataFrame) -> DataFrame:
    """Make blocks of rows of Spark's source ``kafka``, each of which has a line of a journal as its value."""
    line = F.col("value")
    return records.select(
        F.get_json_object(line.cast("string"), "$.run").alias("run"),
        F.concat_ws("-", "topic", "partition").alias("file"),
        F.col("offset").alias("start"),
        F.concat(line, F.lit(b"\n")).alias("lines"),
    ).where("run is not null")


def start_stream(
    blocks: DataFrame,
    out: str,
    checkpoint: str,
    *,
    settle_ms: int = SETTLE_MS,
    trigger_ms: int = TRIGGER_MS,
    on_batch: Callable[[FindingsChange], None] = lambda _: None,
) -> StreamingQuery:
    """Write the changes of findings to a table at `out`, each once, also when the stream is killed and started again.

    Each batch with changes has a folder of its own, which a repetition of the batch replaces. `settle_ms`: how long a record
    waits for older ones; 0: not at all. `on_batch` is called in this process when a batch is written.
    """

    def write(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            changes = batch.collect()
            if changes:
                batch.coalesce(1).write.mode("overwrite").parquet(f"{out}/batch={number}")
            added, withdrawn = (
                tuple(_finding(row) for row in changes if row.holds is holds) for holds in (True, False)
            )
            on_batch(FindingsChange(added, withdrawn))
        finally:
            batch.unpersist()

    changes = blocks.groupBy("run").transformWithState(RunFollower(settle_ms), CHANGES, "Append", "ProcessingTime")
    writer = changes.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    with conf_set(blocks.sparkSession, STATE_STORE):
        return writer.start()


def findings_at(spark: SparkSession, out: str) -> DataFrame:
    """Return the findings that hold by now, from the table of a stream."""
    changes = spark.read.schema(CHANGES).parquet(out)
    times = F.sum(F.when(F.col("holds"), 1).otherwise(-1))
    return changes.groupBy(FIELDS).agg(times.alias("times")).where("times > 0").select(FIELDS)


def _finding(row: Row) -> Finding:
    fields = row.asDict(recursive=True)
    return msgspec.convert({name: fields[name] for name in FIELDS}, Finding)


def stream_on_spark(
    place: str,
    out: str,
    checkpoint: str,
    *,
    master: str,
    stop: threading.Event,
    once: bool,
    trigger_ms: int,
    on_change: Callable[[FindingsChange], None],
) -> int:
    """Audit the journals at `place` on Spark until `stop` is set, or with `once` all that there is now.

    Return how many violations the table at `out` contains. Raises `NoJournal`, `StreamDied` and what `spark_session` raises.
    """
    batches = 0
    ends = threading.Event()

    def on_batch(change: FindingsChange) -> None:
        nonlocal batches
        batches += 1
        if once and batches == 2:  # the first one may be left from the last time; the second one was planned since
            ends.set()
        if change.added or change.withdrawn:
            on_change(change)

    with spark_session(master) as spark:
        pace = {"settle_ms": 0, "trigger_ms": 0} if once else {"trigger_ms": trigger_ms}
        query = start_stream(blocks_at(spark, place), out, checkpoint, **pace, on_batch=on_batch)
        try:
            while not (query.awaitTermination(POLL_SECONDS) or stop.is_set() or ends.is_set()):
                pass
        except StreamingQueryException as died:
            raise StreamDied(f"the stream ended: {_reason(str(died))}") from died
        finally:
            query.stop()
        if "://" not in out and not any(Path(out).glob("batch=*")):
            return 0
        return findings_at(spark, out).where("severity = 'violation'").count()


def _reason(text: str) -> str:
    """Return why a stream ended: what was raised last, or the first line."""
    raised = re.findall(r"^\w*(?:Error|Exception|NoJournal): .+", text, re.MULTILINE)
    return raised[-1] if raised else text.strip().partition("\n")[0]
