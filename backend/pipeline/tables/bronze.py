"""From lines of text to typed tables; what is not a record is kept aside, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from quarterdeck.backend.pipeline.judging.lines import TORN, required
from quarterdeck.backend.pipeline.judging.set_aside import CONTRADICTS
from quarterdeck.backend.pipeline.schemas import EVENT, RECORD
from quarterdeck.backend.pipeline.spark.hadoop_path import literal

NO_RUN = "(none)"
"""The run of what belongs to none: no directory can have an empty name."""

_CORRUPT = "_corrupt"
_READ_AS = StructType([*RECORD.fields, StructField(_CORRUPT, StringType())])


class Bronze(NamedTuple):
    """All lines, told apart. `events` has the columns of a record, each (run, uuid, seq) once."""

    events: DataFrame
    quarantine: DataFrame
    """Columns file, raw, reason."""


def read_lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The lines of `files` as columns raw, file, record and reason; reason is null where the line is a record.

    The raw line is kept: fields that this version does not know are in it, and so is whatever is broken.
    """
    paths = [literal(file) for file in files]
    # Without the look-up for partitions: the directory's run=… repeats a column that each line has.
    text = spark.read.option("recursiveFileLookup", "true").option("lineSep", "\n").text(paths)
    return parse_lines(text.select(F.col("value").alias("raw"), F.col("_metadata.file_path").alias("file")))


def parse_lines(lines: DataFrame) -> DataFrame:
    """`lines`, with a column raw, and besides record and reason as `read_lines` gives them."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return lines.withColumn("record", F.from_json("raw", _READ_AS, options)).withColumn("reason", _why_no_record())


def with_run_name(lines: DataFrame) -> DataFrame:
    """Lines as `parse_lines` gives them, whose records all name a run: where it is empty, `NO_RUN`."""
    run = F.when(F.col("record.run") == "", NO_RUN).otherwise(F.col("record.run"))
    return lines.withColumn("record", F.col("record").withField("run", run))


def ranked(lines: DataFrame) -> DataFrame:
    """`lines` with the place of each among those of one identity, and the first of these to compare with."""
    same = Window.partitionBy("reason", "record.run", "record.uuid", "record.seq").orderBy("record.at", "raw", "file")
    is_record = F.col("reason").isNull()
    return lines.withColumn("place", F.when(is_record, F.row_number().over(same))).withColumn(
        "first_raw", F.when(is_record, F.first("raw").over(same))
    )


def bronze(ranked_lines: DataFrame) -> Bronze:
    """Tell records from the rest. A line that repeats a record is dropped; one that contradicts it is quarantined."""
    events = ranked_lines.where("place = 1").select([F.col(f"record.{name}").alias(name) for name in RECORD.names])
    return Bronze(events, quarantined_lines(ranked_lines).select("file", "raw", "reason"))


def quarantined_lines(ranked_lines: DataFrame) -> DataFrame:
    """The lines that go into quarantine, all with a reason."""
    identity = F.concat_ws(" ", F.lit("uuid"), "record.uuid", F.lit("seq"), "record.seq")
    reason = F.coalesce("reason", F.concat(F.lit(f"{CONTRADICTS}, "), identity))
    return ranked_lines.where(is_quarantined()).withColumn("reason", reason)


def is_quarantined() -> Column:
    """Whether a ranked line goes into quarantine."""
    contradicts = (F.col("place") > 1) & (F.col("raw") != F.col("first_raw"))
    return F.col("reason").isNotNull() | F.coalesce(contradicts, F.lit(False))


def _why_no_record() -> Column:
    """A sentence on what keeps the parsed line from being a record; null when nothing does. `judging.lines` says the same."""
    envelope, required_of_kind = required()
    record, kind = F.col("record"), F.col("record.event.kind")
    # As text: each part of an expression that is put together here costs a call into Java, of which this would take thousands.
    required_of = ", ".join(f"'{name}', {_texts(fields)}" for name, fields in required_of_kind.items())
    wanted = F.expr(f"map({required_of})")[kind]
    lacking_envelope = _absent("record", envelope)
    lacking_fields = F.array_intersect(wanted, _absent("record.event", EVENT.names))
    return (
        F.when(record.isNull() | record[_CORRUPT].isNotNull(), F.lit(TORN))
        .when(F.size(lacking_envelope) > 0, F.concat(F.lit("lacks "), F.array_join(lacking_envelope, ", ")))
        .when(kind.isNull(), F.lit("lacks the kind of its event"))
        .when(wanted.isNull(), F.concat(F.lit("unknown kind of event "), kind))
        .when(F.size(lacking_fields) > 0, F.concat(kind, F.lit(" lacks "), F.array_join(lacking_fields, ", ")))
    )


def _absent(parent: str, names: Sequence[str]) -> Column:
    """The names among `names` whose columns in `parent` are null."""
    absent = ", ".join(f"if({parent}.`{name}` is null, '{name}', null)" for name in names)
    return F.expr(f"array_compact(array({absent}))")


def _texts(names: Sequence[str]) -> str:
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"array({quoted})" if names else "cast(array() as array<string>)"
