"""Reads Hazelcast's member logs on Spark, in splits over the executors, into the same tables as our journals.

There are three steps. One task parses each split (`split_parser`), and Spark keeps what matters, on disk where memory
is short. The driver combines the summaries of the splits (`log_set`), a few numbers for each. Then Spark sorts the
messages by run and time, and the records and the story of each run are made as its messages stream by: no step holds
more than a message and what the members of one run believe. A run is not divided, because what happens to a member may
be only in the logs of others.

All executors must be able to read the files under the same path. Spark itself reads those at addresses, each whole in one task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import structs
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.interpretation import interpret_messages
from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import AMBIGUOUS_MEMBER, LogSet, MemberMessage, total_counts
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory, records_and_stories
from quarterdeck.backend.hazelcast.logs.reader import SPLIT_BYTES
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    QuarantinedMessage,
    SplitSummary,
    parse_split,
)
from quarterdeck.backend.pipeline.judging.spark_tasks import RESULTS, contents, result_batches, results_of
from quarterdeck.backend.pipeline.judging.tasks import ResultT
from quarterdeck.backend.pipeline.schemas import RECORD, columns_of
from quarterdeck.backend.pipeline.spark.arrow import MapInArrow, batches_of, rows_of
from quarterdeck.backend.pipeline.spark.tuning import FEW_FILES_A_BATCH, conf_set

_TEXT, _NUMBER = StringType(), LongType()

PARSED = StructType().add("file", _TEXT).add("split", IntegerType()).add("what", _TEXT).add("json", _TEXT)
"""Each row is an `EventMessage`, a `QuarantinedMessage` or a `SplitSummary`, as JSON, with the name of its class."""

QUARANTINE = StructType().add("file", _TEXT).add("line", _NUMBER).add("raw", _TEXT).add("reason", _TEXT)
COVERAGE = StructType().add("file", _TEXT).add("what", _TEXT).add("messages", _NUMBER).add("lines", _NUMBER)
STORIES = StructType().add("what", _TEXT).add("json", _TEXT)
"""Each row is a `Record`, or at the end of a run its `LogStory`, as JSON, with the name of its class."""

_PLACED = columns_of(MemberMessage)
_ORDER = ("run", "at_us", "file_us", "file", "offset")


@dataclass(frozen=True)
class ProductLogs:
    """Logs as tables. They stay cheap to read until `release` is called, which drops what Spark keeps of them."""

    records: DataFrame
    """Schema `RECORD`, as from our journals."""
    quarantine: DataFrame
    """Schema `QUARANTINE`: lines and messages that made no record because their meaning is unknown."""
    coverage: DataFrame
    """Schema `COVERAGE`: how many messages and lines there are of each kind. The lines of a file are all its lines."""
    stories: DataFrame
    """Schema `STORIES`: the records of each run and its story, every run in one task."""
    _parsed: DataFrame

    def release(self) -> None:
        """Let Spark drop the parsed messages."""
        self._parsed.unpersist()


def read_product_logs(
    spark: SparkSession,
    files: Sequence[Path | str],
    options: LogOptions | None = None,
    split_bytes: int = SPLIT_BYTES,
    *,
    are_far: bool = False,
) -> ProductLogs:
    """Read the logs `files` once and at once. `are_far`: they are addresses, which Spark reads.

    Raises OSError for what cannot be read, and ValueError for a wrong option.
    """
    options = options or LogOptions()
    LogSet([], options)  # a wrong option is an error here, not in a task
    if are_far:
        found = contents(spark, list(map(str, files))).select("path", "modificationTime", "content")
        parsed = found.mapInArrow(_parse_contents(options, split_bytes), PARSED)
    else:
        splits = list(plan_splits(map(Path, files), split_bytes))
        tasks = spark.range(0, len(splits), 1, max(1, len(splits)))
        parsed = tasks.mapInArrow(_parse_splits(splits, options), PARSED)
    parsed = parsed.persist(StorageLevel.MEMORY_AND_DISK)
    with conf_set(spark, FEW_FILES_A_BATCH):
        rows = parsed.where(_is_a(SplitSummary)).select("json").collect()
    summaries = [msgspec.json.decode(row.json, type=SplitSummary) for row in rows]
    log_set = LogSet(summaries, options)
    placed = parsed.where(_is_a(EventMessage)).mapInArrow(_place_messages(log_set), _PLACED)
    members = placed.where(F.col("member").isNotNull())
    shuffles = int(spark.conf.get("spark.sql.shuffle.partitions") or "2")
    of_runs = members.repartition(shuffles, "run").sortWithinPartitions(*_ORDER)
    stories = of_runs.mapInArrow(_make_stories(log_set), STORIES)
    records = stories.where(_is_a(Record)).select(F.from_json("json", RECORD).alias("record")).select("record.*")
    quarantined = parsed.where(_is_a(QuarantinedMessage)).mapInArrow(_quarantined(log_set), QUARANTINE)
    ambiguous = placed.where(F.col("member").isNull()).select(
        "file", "line", F.col("text").alias("raw"), F.lit(AMBIGUOUS_MEMBER).alias("reason")
    )
    counts = [
        (file, what, messages, numbers)
        for file, by_kind in sorted(total_counts(summaries).items())
        for what, (messages, numbers) in sorted(by_kind.items())
    ]
    coverage = spark.createDataFrame(counts, COVERAGE)
    return ProductLogs(records, quarantined.unionByName(ambiguous), coverage, stories, parsed)


def work_on_stories(stories: DataFrame, work: Callable[[list[bytes]], ResultT]) -> Iterator[ResultT]:
    """Do `work` in tasks with the records of each run in `stories`, as lines of a journal; yield the results."""

    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return result_batches(enumerate(map(work, _lines_of_runs(batches))))

    return (result for _, result in results_of(stories.mapInArrow(carry_out, RESULTS).collect()))


def _lines_of_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    for what, encoded in rows_of(batches, "what", "json"):
        if what == Record.__name__:
            lines.append(encoded.encode())
        else:  # the end of a run
            yield lines
            lines = []


def _is_a(kind: type) -> Column:
    return F.col("what") == kind.__name__


Found = EventMessage | QuarantinedMessage | SplitSummary


def _parse_splits(splits: Sequence[FileSplit], options: LogOptions) -> MapInArrow:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = (splits[place] for (place,) in rows_of(batches, "id"))
        rows = (_parsed(split.file, split, found) for split in own for found in parse_split(split, options))
        return batches_of(rows, PARSED)

    return parse


def _parse_contents(options: LogOptions, split_bytes: int) -> MapInArrow:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TemporaryDirectory(prefix="quarterdeck-log-") as folder:
            files = rows_of(batches, "path", "modificationTime", "content")
            rows = (row for file in files for row in _parse_content(options, split_bytes, Path(folder), *file))
            yield from batches_of(rows, PARSED)

    return parse


def _parse_content(
    options: LogOptions, split_bytes: int, folder: Path, address: str, changed: datetime, content: bytes
) -> Iterator[tuple[str, int, str, str]]:
    """Parse a log at an address by way of a copy in `folder`."""
    copy = folder / PurePosixPath(address).name
    copy.write_bytes(content)
    os.utime(copy, (changed.timestamp(), changed.timestamp()))
    for split in plan_splits([copy], split_bytes):
        for found in parse_split(split, options):
            yield _parsed(
                address, split, structs.replace(found, file=address) if isinstance(found, SplitSummary) else found
            )
    copy.unlink()


def _parsed(file: str, split: FileSplit, found: Found) -> tuple[str, int, str, str]:
    return file, split.index, type(found).__name__, _json(found)


def _json(found: Found | Record | LogStory) -> str:
    return msgspec.json.encode(found).decode()


def _place_messages(log_set: LogSet) -> MapInArrow:
    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(EventMessage)

        def rows() -> Iterator[tuple[Any, ...]]:
            for file, index, encoded in rows_of(batches, "file", "split", "json"):
                message = decoder.decode(encoded)
                placed = log_set.place(file, index, message)
                if placed is None:
                    line = log_set.line_number(file, index, message.number)
                    content = (message.logger, message.text, message.thread)
                    yield None, None, None, None, None, file, message.offset, *content, line
                else:
                    yield structs.astuple(placed)

        return batches_of(rows(), _PLACED)

    return place


def _make_stories(log_set: LogSet) -> MapInArrow:
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        placed = (MemberMessage(*row) for row in rows_of(batches, *_PLACED.names))
        parts = records_and_stories(interpret_messages(placed, log_set), log_set)
        return batches_of(((type(part).__name__, _json(part)) for part in parts), STORIES)

    return make


def _quarantined(log_set: LogSet) -> MapInArrow:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(QuarantinedMessage)
        messages = (
            (file, index, decoder.decode(encoded)) for file, index, encoded in rows_of(batches, "file", "split", "json")
        )
        rows = (
            (file, log_set.line_number(file, index, message.number), message.text, message.reason)
            for file, index, message in messages
        )
        return batches_of(rows, QUARANTINE)

    return keep
