"""Logs of the product on Spark: files of any size, in splits over the executors, to the tables that our journals make.

Three steps. Each split is heard by one task (`hearing`), and what matters is kept by Spark, on disk where memory is short. The
driver puts the summaries of the splits together, a few numbers for each. Then the messages go to their members, sorted by Spark,
and each member's story is told as its messages stream by (`story`): no step holds more than a message and a member's beliefs.

The files have to be readable under the same path for every executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from quarterdeck.backend.hazelcast.logs.lines.file_splits import Split, plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import AMBIGUOUS_MEMBER, LogSet, MemberMessage, total_counts
from quarterdeck.backend.hazelcast.logs.reader import SPLIT_BYTES, records_of
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    QuarantinedMessage,
    SplitSummary,
    parse_split,
)
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task

SOURCE_NAME = "quarterdeck-product-logs"
_BATCH = 512

FOUND = StructType(
    [
        StructField("file", StringType()),
        StructField("split", IntegerType()),
        StructField("what", StringType()),
        StructField("told", StringType()),
    ]
)
"""What the tasks give: a `EventMessage`, `QuarantinedMessage` or `SplitSummary`, as JSON, under its name."""

QUARANTINE = StructType(
    [
        StructField("file", StringType()),
        StructField("line", LongType()),
        StructField("raw", StringType()),
        StructField("reason", StringType()),
    ]
)

COVERAGE = StructType(
    [
        StructField("file", StringType()),
        StructField("what", StringType()),
        StructField("messages", LongType()),
        StructField("lines", LongType()),
    ]
)

_PLACED = StructType(
    [
        StructField("run", StringType()),
        StructField("member", StringType()),
        StructField("at_us", LongType()),
        StructField("utc", LongType()),
        StructField("file_us", LongType()),
        StructField("file", StringType()),
        StructField("offset", LongType()),
        StructField("logger", StringType()),
        StructField("text", StringType()),
        StructField("number", LongType()),
    ]
)
_ORDER = ("run", "member", "at_us", "file_us", "file", "offset")


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
    _kept: DataFrame

    def release(self) -> None:
        self._kept.unpersist()


def read_product_logs(
    spark: SparkSession, files: Sequence[Path], options: LogOptions | None = None, split_bytes: int = SPLIT_BYTES
) -> ProductLogs:
    """The logs `files`, read once and at once.

    Raises `OSError` for what cannot be read, and `ValueError` for an option that is wrong.
    """
    options = options or LogOptions()
    LogSet([], options)  # a wrong option is an error here, not in a task
    spark.dataSource.register(ProductLogSource)
    work = _Work([str(file) for file in files], options, split_bytes)
    source = spark.read.format(SOURCE_NAME).option("work", msgspec.json.encode(work).decode())
    kept = source.load().persist(StorageLevel.MEMORY_AND_DISK)
    told = kept.where(F.col("what") == "SplitSummary").select("told").collect()
    summaries = [msgspec.json.decode(row.told, type=SplitSummary) for row in told]
    whole = LogSet(summaries, options)
    heard = kept.where(F.col("what") == "EventMessage")
    placed = heard.mapInArrow(_placing(whole), _PLACED)
    members = placed.where(F.col("member").isNotNull()).drop("number")
    in_order = members.repartition(_shuffles(spark), "run", "member").sortWithinPartitions(*_ORDER)
    lines = in_order.mapInArrow(_telling(whole), StructType([StructField("raw", StringType())]))
    records = lines.select(F.from_json("raw", RECORD).alias("record")).select("record.*")
    aside = kept.where(F.col("what") == "QuarantinedMessage").mapInArrow(_keeping(whole), QUARANTINE)
    nobody = placed.where(F.col("member").isNull()).select(
        "file", F.col("number").alias("line"), F.col("text").alias("raw"), F.lit(AMBIGUOUS_MEMBER).alias("reason")
    )
    counts = [
        (file, what, messages, numbers)
        for file, by_kind in sorted(total_counts(summaries).items())
        for what, (messages, numbers) in sorted(by_kind.items())
    ]
    coverage = spark.createDataFrame(counts, COVERAGE)
    return ProductLogs(records, lines, aside.unionByName(nobody), coverage, kept)


def _shuffles(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or "2")


class _SplitPartition(InputPartition):
    def __init__(self, split: Split) -> None:
        self.split = split


class ProductLogSource(DataSource):
    """The splits of log files as a data source: one task reads one split."""

    def __init__(self, options: dict[str, str]) -> None:
        exit_with_task()  # planning, too, is done by workers of Spark's
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> StructType:
        return FOUND

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(dict(self.options))


class _Work(msgspec.Struct):
    files: list[str]
    options: LogOptions
    split_bytes: int


class _Reader(DataSourceReader):
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
        yield from _batches(rows, FOUND)


def _json(found: EventMessage | QuarantinedMessage | SplitSummary) -> str:
    return msgspec.json.encode(found).decode()


def _placing(whole: LogSet) -> Any:
    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(EventMessage)

        def rows() -> Iterator[tuple[Any, ...]]:
            for file, index, told in _columns(batches, "file", "split", "told"):
                heard = decoder.decode(told)
                placed = whole.place(file, index, heard)
                line = whole.line_number(file, index, heard.number)
                if placed is None:
                    yield None, None, None, None, None, file, heard.offset, heard.logger, heard.text, line
                else:
                    yield (*msgspec.structs.astuple(placed), line)

        yield from _batches(rows(), _PLACED)

    return place


def _telling(whole: LogSet) -> Any:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [field.name for field in _PLACED.fields if field.name != "number"]
        placed = (MemberMessage(*row) for row in _columns(batches, *names))
        rows = ((msgspec.json.encode(record).decode(),) for record in records_of(placed, whole))
        yield from _batches(rows, StructType([StructField("raw", StringType())]))

    return tell


def _keeping(whole: LogSet) -> Any:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = msgspec.json.Decoder(QuarantinedMessage)

        def rows() -> Iterator[tuple[Any, ...]]:
            for file, index, told in _columns(batches, "file", "split", "told"):
                kept = decoder.decode(told)
                yield file, whole.line_number(file, index, kept.number), kept.text, kept.reason

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
