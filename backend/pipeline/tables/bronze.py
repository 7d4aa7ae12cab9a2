"""Decodes lines of text into typed tables. Lines that are no records go into quarantine, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType

from quarterdeck.backend.pipeline.judging.lines import CONTRADICTS, TORN, why_no_record
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task
from quarterdeck.backend.pipeline.spark.hadoop_path import literal

NO_RUN = "(none)"
"""The run of lines that belong to none: no directory can have an empty name."""

_CORRUPT = "_corrupt"
_READ_AS = StructType([*RECORD.fields, StructField(_CORRUPT, StringType())])


class Bronze(NamedTuple):
    """All lines, separated. `events` has the columns of a record, each (run, uuid, seq) once."""

    events: DataFrame
    quarantine: DataFrame
    """Columns file, raw, reason."""


def read_lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Read `files` as columns raw, file, record and reason; reason is null where the line is a record.

    The raw line is kept: it contains fields that this version does not know, and whatever is broken.
    """
    paths = [literal(file) for file in files]
    # Without the look-up for partitions: the directory's run=… repeats a column that each line has.
    text = spark.read.option("recursiveFileLookup", "true").option("lineSep", "\n").text(paths)
    return parse_lines(text.select(F.col("value").alias("raw"), F.col("_metadata.file_path").alias("file")))


def parse_lines(lines: DataFrame) -> DataFrame:
    """Add to `lines`, which have a column raw, the columns record and reason as in `read_lines`."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    record = F.col("record")
    # Spark's columns have 64 bits for a number, which may be greater in a record.
    unread = F.when(record.isNull() | record[_CORRUPT].isNotNull(), TORN)
    why = arrow_udf(_why_no_record, StringType())  # type: ignore[call-overload] # whose third argument Spark warns of
    reason = F.coalesce(why("raw"), unread)
    return lines.withColumn("record", F.from_json("raw", _READ_AS, options)).withColumn("reason", reason)


def with_run_name(lines: DataFrame) -> DataFrame:
    """Name the run `NO_RUN` in records, as of `parse_lines`, where it is empty."""
    run = F.when(F.col("record.run") == "", NO_RUN).otherwise(F.col("record.run"))
    return lines.withColumn("record", F.col("record").withField("run", run))


def ranked(lines: DataFrame) -> DataFrame:
    """Add the place of each line among those of one identity, and the first of these to compare with."""
    same = Window.partitionBy("reason", "record.run", "record.uuid", "record.seq").orderBy("record.at", "raw", "file")
    is_record = F.col("reason").isNull()
    return lines.withColumn("place", F.when(is_record, F.row_number().over(same))).withColumn(
        "first_raw", F.when(is_record, F.first("raw").over(same))
    )


def bronze(ranked_lines: DataFrame) -> Bronze:
    """Separate records from other lines. A line that repeats a record is dropped; one that contradicts it is quarantined."""
    events = ranked_lines.where("place = 1").select([F.col(f"record.{name}").alias(name) for name in RECORD.names])
    return Bronze(events, quarantined_lines(ranked_lines).select("file", "raw", "reason"))


def quarantined_lines(ranked_lines: DataFrame) -> DataFrame:
    """Return the lines that go into quarantine, all with a reason."""
    identity = F.concat_ws(" ", F.lit("uuid"), "record.uuid", F.lit("seq"), "record.seq")
    reason = F.coalesce("reason", F.concat(F.lit(f"{CONTRADICTS}, "), identity))
    quarantined = ranked_lines.where(is_quarantined()).withColumn("contradicts", F.col("reason").isNull())
    return quarantined.withColumn("reason", reason)


def is_quarantined() -> Column:
    """Return whether a ranked line goes into quarantine."""
    contradicts = (F.col("place") > 1) & (F.col("raw") != F.col("first_raw"))
    return F.col("reason").isNotNull() | F.coalesce(contradicts, F.lit(False))


def _why_no_record(raws: pa.Array) -> pa.Array:
    exit_with_task()
    return pa.array(map(why_no_record, raws.cast(pa.binary()).to_pylist()), pa.string())  # bytes: they need not be text
