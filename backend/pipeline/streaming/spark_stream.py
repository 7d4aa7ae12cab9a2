"""A stream of Spark's that audits many runs as they grow: blocks of lines in, changes of findings and quarantined lines out.

Each run is judged in one place, by `FollowedRun`. Spark keeps the blocks of a run as its state, packed, and what was found; the
judge itself is only in the memory of a worker, and is made again of the blocks where another worker goes on. So a checkpoint
contains no code, and outlives versions of this program. Of a run that has been quiet for long only a mark is kept.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import count
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.errors import AnalysisException, StreamingQueryException
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

from quarterdeck.backend.journal.files import NOT_DECODABLE, NoJournal
from quarterdeck.backend.pipeline.data_sources import BLOCKS, JOURNAL_FORMAT, JournalSource
from quarterdeck.backend.pipeline.growth import GrowingJournals
from quarterdeck.backend.pipeline.judging.lines import CONTRADICTS, NO_RUN, run_of_line
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.schemas import columns_of
from quarterdeck.backend.pipeline.spark.arrow import batches_of, conf_set
from quarterdeck.backend.pipeline.spark.engine import Engine, engine_session
from quarterdeck.backend.pipeline.spark.session import SHUFFLE_PARTITIONS, stream_partitions
from quarterdeck.backend.pipeline.streaming.followed_run import (
    QUIET_MS,
    SETTLE_MS,
    Block,
    Blocks,
    FollowedRun,
    changes_between,
)
from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsChange
from quarterdeck.backend.pipeline.streaming.stream import StreamDied
from quarterdeck.backend.pipeline.tables.batches import QUARANTINE

TRIGGER_MS = 500
FORGET_HOURS = 24.0
"""A run is forgotten when nothing has come of it for so long."""

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
OUTPUT = StructType([StructField("changed", CHANGES), StructField("quarantined", QUARANTINE)])
"""Each row has one of the two."""

FORGOTTEN = "{} lines came after nothing had for so long that the run was forgotten: audit the journal for them"
KAFKA = "kafka://"
STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

_followed: OrderedDict[tuple[str, str], FollowedRun] = OrderedDict()
"""In a worker: the judges of runs, by query and run, in the order of use."""


class StreamEnds(Exception):
    """Raised in a stream to end it between two batches."""


class _Head(Struct, array_like=True):
    """What is known of a run, beside its blocks."""

    kept: int = 0
    """How many entries of blocks there are."""
    judged_us: int = -1
    came_ms: int = 0
    timer_ms: int = 0
    found: tuple[Finding, ...] = ()
    is_forgotten: bool = False
    """Whether its blocks are gone, because it was quiet for long."""


class RunFollower(StatefulProcessor):
    """Judges the runs whose blocks come, each when it has settled."""

    def __init__(self, settle_ms: int, forget_ms: int) -> None:
        """With a settling time of 0, everything is judged as soon as it comes. `forget_ms`: how long a run may be quiet."""
        self._settle_ms, self._forget_ms = settle_ms, forget_ms
        self._query = uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
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
        head = self._read_head()
        if head.is_forgotten:
            yield from (_quarantined(key[0], b.file, "", FORGOTTEN.format(b.lines.count(b"\n"))) for b in blocks)
            return
        encoded = msgspec.msgpack.encode(Blocks(now_ms, tuple(blocks)))
        self._blocks.updateValue((head.kept,), (len(encoded), pa.compress(encoded, "zstd", asbytes=True)))
        known, head.kept, head.came_ms = head.kept, head.kept + 1, now_ms
        yield from self._judge(key[0], head, now_ms, known)

    def handleExpiredTimer(  # noqa: N802 - the names are Spark's
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        """Judge what has settled since, and forget a run that has been quiet for long."""
        head, now_ms = self._read_head(), timerValues.getCurrentProcessingTimeInMs()
        if now_ms - head.came_ms < self._forget_ms:
            yield from self._judge(key[0], head, now_ms, head.kept)
        else:
            yield from self._judge(key[0], head, inf, head.kept)
            self._blocks.clear()
            _followed.pop((self._query, key[0]), None)
            self._head.update((msgspec.msgpack.encode(_Head(came_ms=head.came_ms, is_forgotten=True)),))

    def _read_head(self) -> _Head:
        stored = self._head.get()
        return _Head() if stored is None else msgspec.msgpack.decode(stored[0], type=_Head)

    def _judge(self, run: str, head: _Head, now_ms: float, known: int) -> Iterator[Row]:
        """Judge what has settled; problems in the first `known` entries of blocks were reported."""
        at_once = self._settle_ms == 0
        followed = self._follow(run, head)
        found = followed.judge(
            head.judged_us,
            inf if at_once else now_ms - self._settle_ms,
            is_quiet=at_once or now_ms - head.came_ms >= QUIET_MS,
            known=known,
        )
        if found is not None:
            for holds, changed in zip((True, False), changes_between(head.found, found), strict=True):
                for finding in changed:
                    yield Row(changed=Row(holds=holds, **msgspec.to_builtins(finding)), quarantined=None)
            head.found = tuple(found)
        yield from (_quarantined(run, line.file, line.line, line.reason) for line in followed.problems)
        head.judged_us = followed.judged_us
        if now_ms != inf:
            self._set_timer(followed, head, int(now_ms))
            self._head.update((msgspec.msgpack.encode(head),))

    def _set_timer(self, followed: FollowedRun, head: _Head, now_ms: int) -> None:
        """Let Spark come back when something has settled, or when the run is to be forgotten: each run has one timer."""
        wanted_ms = head.came_ms + self._forget_ms
        if followed.waits:
            wanted_ms = now_ms + (self._settle_ms if followed.waits_to_settle else QUIET_MS)
        if now_ms < head.timer_ms <= wanted_ms:
            return
        if head.timer_ms > now_ms:
            self._handle.deleteTimer(head.timer_ms)
        head.timer_ms = max(wanted_ms, now_ms + 1)
        self._handle.registerTimer(head.timer_ms)

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


def _quarantined(run: str, file: str, raw: str, reason: str) -> Row:
    return Row(
        changed=None, quarantined=Row(run=run, file=file, raw=raw, reason=reason, contradicts=CONTRADICTS in reason)
    )


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
    place = F.concat_ws("-", "topic", "partition").alias("file")
    return records.select(place, "offset", "value").mapInArrow(blocks_of_lines, BLOCKS)


def blocks_of_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put the lines of a run that come together in one block: what is done for each row costs more than to judge a line."""
    for batch in batches:
        blocks: dict[tuple[str, str], tuple[int, list[bytes]]] = {}
        for file, offset, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                run = run_of_line(value or b"").run or NO_RUN
            except NOT_DECODABLE:
                run = NO_RUN
            blocks.setdefault((run, file), (offset, []))[1].append((value or b"") + b"\n")
        rows = ((run, file, start, b"".join(lines)) for (run, file), (start, lines) in blocks.items())
        yield from batches_of(rows, BLOCKS)


def start_stream(
    blocks: DataFrame,
    out: str,
    checkpoint: str,
    *,
    once: bool = False,
    settle_ms: int = SETTLE_MS,
    trigger_ms: int = TRIGGER_MS,
    forget_hours: float = FORGET_HOURS,
    on_batch: Callable[[FindingsChange, int], None] = lambda change, quarantined: None,
    ending: threading.Event | None = None,
) -> StreamingQuery:
    """Write the changes of findings to a table at `out`, each once, also when the stream is killed and started again.

    Lines that are no records go to the table beside it that `quarantine_of` names. Each batch with changes has a folder of its
    own, which a repetition of the batch replaces. `once`: what there is now is judged at once, and the stream ends. `settle_ms`:
    how long a record waits for older ones. `on_batch` is called in this process when a batch is written, with what it changed
    and how many lines it quarantined. When `ending` is set the stream ends with the next batch, of which nothing is done.
    """
    begun = count()

    def write(batch: DataFrame, number: int) -> None:
        # Once two batches: the first one may be left from the last time, the second one was planned since. Spark would go on for
        # ever with empty ones, in which timers may expire.
        if (ending is not None and ending.is_set()) or (once and next(begun) == 2):
            raise StreamEnds
        batch.persist()
        try:
            rows = batch.collect()
            for name, place in (("changed", out), ("quarantined", quarantine_of(out))):
                if any(row[name] is not None for row in rows):
                    part = batch.where(F.col(name).isNotNull()).select(f"{name}.*").coalesce(1)
                    part.write.mode("overwrite").parquet(f"{place}/batch={number}")
            changes = [row.changed for row in rows if row.changed is not None]
            added, withdrawn = (
                tuple(_finding(change) for change in changes if change.holds is holds) for holds in (True, False)
            )
            on_batch(FindingsChange(added, withdrawn), len(rows) - len(changes))
        finally:
            batch.unpersist()

    follower = RunFollower(0 if once else settle_ms, round(forget_hours * 3_600_000))
    output = blocks.groupBy("run").transformWithState(follower, OUTPUT, "Append", "ProcessingTime")
    writer = output.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    spark = blocks.sparkSession
    with conf_set(spark, {**STATE_STORE, SHUFFLE_PARTITIONS: str(stream_partitions(spark))}):
        return writer.start()


def quarantine_of(out: str) -> str:
    """Return where lines that are no records are kept beside the findings at `out`."""
    return f"{out.rstrip('/')}_quarantine"


def findings_at(spark: SparkSession, out: str) -> DataFrame:
    """Return the findings that hold by now, from the table of a stream."""
    changes = spark.read.schema(CHANGES).parquet(out)
    times = F.sum(F.when(F.col("holds"), 1).otherwise(-1))
    return changes.groupBy(FIELDS).agg(times.alias("times")).where("times > 0").select(FIELDS)


def _finding(row: Row) -> Finding:
    fields = row.asDict(recursive=True)
    return msgspec.convert({name: fields[name] for name in FIELDS}, Finding)


class SparkStreamed(NamedTuple):
    """The result of a stream on Spark: the violations and the lines in its tables."""

    violations: int
    quarantined: int


def stream_on_spark(
    place: str,
    out: str,
    checkpoint: str,
    *,
    engine: Engine,
    stop: threading.Event,
    once: bool,
    trigger_ms: int,
    forget_hours: float,
    on_change: Callable[[FindingsChange], None],
    on_message: Callable[[str], None],
) -> SparkStreamed:
    """Audit the journals at `place` on Spark until `stop` is set, or with `once` all that there is now.

    Raises `NoJournal`, `StreamDied` and what `engine_session` raises.
    """

    def on_batch(change: FindingsChange, quarantined: int) -> None:
        if change.added or change.withdrawn:
            on_change(change)
        if quarantined:
            on_message(f"{quarantined} lines that are no records: {quarantine_of(out)}")

    ending = threading.Event()
    with engine_session(engine, "pipeline stream") as spark:
        # Spark's workers talk, and Java passes it on: also a traceback where one was idle for a minute. What matters is raised.
        java: Any = spark.sparkContext._jvm.java  # type: ignore[union-attr]
        java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
        query = start_stream(
            blocks_at(spark, place),
            out,
            checkpoint,
            once=once,
            trigger_ms=trigger_ms,
            forget_hours=forget_hours,
            on_batch=on_batch,
            ending=ending,
        )
        spark.sparkContext.setLogLevel("OFF")
        wait_for(query, stop, ending)
        violations = _count(lambda: findings_at(spark, out).where("severity = 'violation'"))
        return SparkStreamed(violations, _count(lambda: spark.read.schema(QUARANTINE).parquet(quarantine_of(out))))


def wait_for(query: StreamingQuery, stop: threading.Event, ending: threading.Event) -> None:
    """Wait until a stream ends, and have it end between two batches when `stop` is set. Raises `StreamDied`.

    A batch that is broken off would be repeated by the next stream, and its findings printed again.
    """
    try:
        while not query.awaitTermination(POLL_SECONDS):
            if stop.is_set():
                ending.set()
    except StreamingQueryException as died:
        if StreamEnds.__name__ not in str(died):
            raise StreamDied(f"the stream ended: {_reason(str(died))}") from died
    finally:
        query.stop()


def _count(table: Callable[[], DataFrame]) -> int:
    """Return how many rows a table has; 0 where nothing was ever written."""
    try:
        return table().count()
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_NOT_FOUND":
            raise
        return 0


def _reason(text: str) -> str:
    """Return why a stream ended: what was raised last, or the first line."""
    raised = re.findall(r"^\w*(?:Error|Exception|NoJournal): .+", text, re.MULTILINE)
    return raised[-1] if raised else text.strip().partition("\n")[0]
