"""Logs of the product on Spark: files of any size, in splits over the executors, become the tables that our journals make.

Three steps. One task parses each split (`split_parser`), and Spark keeps what matters, on disk where memory is short. The
driver puts the summaries of the splits together (`log_set`), a few numbers for each. Then Spark sorts the messages by run and
time, and the records and the story of each run are made as its messages stream by: no step holds more than a message and what the
members of one run believe. A run is not divided, for what becomes of a member may stand in the logs of others alone.

The files have to be readable under the same path for every executor. Those at addresses Spark reads, each whole in one task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import structs
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

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
from quarterdeck.backend.pipeline.judging.spark_judge import contents
from quarterdeck.backend.pipeline.schemas import RECORD, columns_of
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task
from quarterdeck.backend.pipeline.spark.tuning import FEW_FILES_A_BATCH, conf_set

SOURCE_NAME = "quarterdeck-product-logs"
_BATCH = 512


def _columns_of(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


PARSED = _columns_of(file=StringType(), split=IntegerType(), what=StringType(), json=StringType())
"""What the tasks give: each an `EventMessage`, a `QuarantinedMessage` or a `SplitSummary`, as JSON, and the name of its class."""

QUARANTINE = _columns_of(file=StringType(), line=LongType(), raw=StringType(), reason=StringType())
COVERAGE = _columns_of(file=StringType(), what=StringType(), messages=LongType(), lines=LongType())
TOLD = _columns_of(what=StringType(), json=StringType())
"""What is told of runs: each a `Record`, or at the end of a run its `LogStory`, as JSON, and the name of its class."""

_PLACED = columns_of(MemberMessage)
_ORDER = ("run", "at_us", "file_us", "file", "offset")


@dataclass(frozen=True)
class ProductLogs:
    """Logs as tables. They stay cheap to read until `release` is called, which drops what Spark keeps of them."""

    records: DataFrame
    """Schema `RECORD`, as from our journals."""
    lines: DataFrame
    """The same records as lines of a journal: one column, raw."""
    quarantine: DataFrame
    """Schema `QUARANTINE`: lines and messages that made no record because nobody knows what they mean."""
    coverage: DataFrame
    """Schema `COVERAGE`: how many messages and lines there are of each kind. The lines of a file are all its lines."""
    told: DataFrame
    """Schema `TOLD`: the records of each run and its story, every run in one task."""
    _parsed: DataFrame

    def release(self) -> None:
        """Spark need not keep the parsed messages any more."""
        self._parsed.unpersist()


def read_product_logs(
    spark: SparkSession,
    files: Sequence[Path | str],
    options: LogOptions | None = None,
    split_bytes: int = SPLIT_BYTES,
    *,
    are_addresses: bool = False,
) -> ProductLogs:
    """The logs `files`, read once and at once. `are_addresses`: only Spark reads them.

    Raises `OSError` for what cannot be read, and `ValueError` for an option that is wrong.
    """
    options = options or LogOptions()
    LogSet([], options)  # a wrong option is an error here, not in a task
    spark.dataSource.register(ProductLogSource)
    work = _Work([str(file) for file in files], options, split_bytes)
    if are_addresses:
        found = contents(spark, work.files).select("path", "modificationTime", "content")
        parsed = found.mapInArrow(_parse_contents(work), PARSED)
    else:
        source = spark.read.format(SOURCE_NAME).option("work", msgspec.json.encode(work).decode())
        parsed = source.load()
    parsed = parsed.persist(StorageLevel.MEMORY_AND_DISK)
    with conf_set(spark, FEW_FILES_A_BATCH):
        rows = parsed.where(_is_a(SplitSummary)).select("json").collect()
    summaries = [msgspec.json.decode(row.json, type=SplitSummary) for row in rows]
    log_set = LogSet(summaries, options)
    placed = parsed.where(_is_a(EventMessage)).mapInArrow(_place_messages(log_set), _PLACED)
    members = placed.where(F.col("member").isNotNull())
    of_runs = members.repartition(_shuffles(spark), "run").sortWithinPartitions(*_ORDER)
    told = of_runs.mapInArrow(_tell_runs(log_set), TOLD)
    lines = told.where(_is_a(Record)).select(F.col("json").alias("raw"))
    records = lines.select(F.from_json("raw", RECORD).alias("record")).select("record.*")
    quarantined = parsed.where(_is_a(QuarantinedMessage)).mapInArrow(_quarantined(log_set), QUARANTINE)
    nobody = placed.where(F.col("member").isNull()).select(
        "file", "line", F.col("text").alias("raw"), F.lit(AMBIGUOUS_MEMBER).alias("reason")
    )
    counts = [
        (file, what, messages, numbers)
        for file, by_kind in sorted(total_counts(summaries).items())
        for what, (messages, numbers) in sorted(by_kind.items())
    ]
    coverage = spark.createDataFrame(counts, COVERAGE)
    return ProductLogs(records, lines, quarantined.unionByName(nobody), coverage, told, parsed)


def _is_a(kind: type) -> Column:
    """Whether a row of schema `PARSED` or `TOLD` is of this class."""
    return F.col("what") == kind.__name__


def _shuffles(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or "2")


class _SplitPartition(InputPartition):
    def __init__(self, split: FileSplit) -> None:
        self.split = split


class ProductLogSource(DataSource):
    """The splits of log files as a data source: one task reads one split."""

    def __init__(self, options: dict[str, str]) -> None:
        exit_with_task()  # planning, too, is done by workers of Spark's
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return SOURCE_NAME

    def schema(self) -> StructType:
        """The columns of the format."""
        return PARSED

    def reader(self, schema: StructType) -> DataSourceReader:
        """What plans the splits and reads them."""
        return _LogTableReader(dict(self.options))


class _Work(msgspec.Struct):
    files: list[str]
    options: LogOptions
    split_bytes: int


class _LogTableReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._work = msgspec.json.decode(options["work"], type=_Work)

    def partitions(self) -> Sequence[InputPartition]:
        return [_SplitPartition(split) for split in plan_splits(map(Path, self._work.files), self._work.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _SplitPartition)
        split = partition.split
        rows = (
            (split.file, split.index, type(found).__name__, _json(found))
            for found in parse_split(split, self._work.options)
        )
        yield from _batches(rows, PARSED)


def _parse_contents(work: _Work) -> Any:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TemporaryDirectory(prefix="quarterdeck-log-") as folder:
            files = _columns(batches, "path", "modificationTime", "content")
            yield from _batches((row for file in files for row in _parse_content(work, Path(folder), *file)), PARSED)

    return parse


def _parse_content(
    work: _Work, folder: Path, address: str, changed: datetime, content: bytes
) -> Iterator[tuple[str, int, str, str]]:
    """What stands in a log at an address, of which there is a copy in `folder` meanwhile."""
    copy = folder / PurePosixPath(address).name
    copy.write_bytes(content)
    os.utime(copy, (changed.timestamp(), changed.timestamp()))
    for split in plan_splits([copy], work.split_bytes):
        for found in parse_split(split, work.options):
            if isinstance(found, SplitSummary):
                found = structs.replace(found, file=address)
            yield address, split.index, type(found).__name__, _json(found)
    copy.unlink()


def _json(found: EventMessage | QuarantinedMessage | SplitSummary | Record | LogStory) -> str:
    return msgspec.json.encode(found).decode()


def _place_messages(log_set: LogSet) -> Any:
    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(EventMessage)

        def rows() -> Iterator[tuple[Any, ...]]:
            for file, index, encoded in _columns(batches, "file", "split", "json"):
                message = decoder.decode(encoded)
                placed = log_set.place(file, index, message)
                line = log_set.line_number(file, index, message.number)
                if placed is None:
                    said = (message.logger, message.text, message.thread)
                    yield None, None, None, None, None, file, message.offset, *said, line
                else:
                    yield msgspec.structs.astuple(placed)

        yield from _batches(rows(), _PLACED)

    return place


def _tell_runs(log_set: LogSet) -> Any:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        placed = (MemberMessage(*row) for row in _columns(batches, *_PLACED.names))
        told = records_and_stories(interpret_messages(placed, log_set), log_set)
        yield from _batches(((type(one).__name__, _json(one)) for one in told), TOLD)

    return tell


def _quarantined(log_set: LogSet) -> Any:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(QuarantinedMessage)

        def rows() -> Iterator[tuple[Any, ...]]:
            for file, index, encoded in _columns(batches, "file", "split", "json"):
                message = decoder.decode(encoded)
                yield file, log_set.line_number(file, index, message.number), message.text, message.reason

        yield from _batches(rows(), QUARANTINE)

    return keep


def _columns(batches: Iterator[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _batches(rows: Iterator[tuple[Any, ...]], schema: StructType) -> Iterator[pa.RecordBatch]:
    """`rows` in small Arrow batches, so that a task never holds many."""
    exit_with_task()
    kinds = {"string": pa.string(), "bigint": pa.int64(), "int": pa.int32()}
    fields = pa.schema([(field.name, kinds[field.dataType.simpleString()]) for field in schema.fields])
    for _, some in groupby(enumerate(rows), key=lambda numbered: numbered[0] // _BATCH):
        columns = zip(*(row for _, row in some), strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind.type) for column, kind in zip(columns, fields, strict=True)], schema=fields
        )
