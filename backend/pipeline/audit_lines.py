"""What an audit reads: journals or members' logs as lines with their records, whichever it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import QuarantinedLine
from quarterdeck.backend.pipeline.logs.log_tables import ProductLogs, read_product_logs
from quarterdeck.backend.pipeline.rules.evidence import DISTURBANCES
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze

MAX_QUARANTINED = 1_000

THROUGHPUT_CONF = {"spark.driver.memory": "4g"}
"""Of a session of our own: several sorts at a time need room, however much is on disk."""


@dataclass
class InputLines:
    """The lines of an input, ranked (see `bronze.ranked`) and kept by Spark until `release`."""

    source: AuditInput
    lines: DataFrame
    quarantine: DataFrame
    counts: dict[str, int] = field(default_factory=dict)
    """Those that the lines do not tell."""
    logs: ProductLogs | None = None

    @property
    def is_small(self) -> bool:
        """Whether one task reads it all."""
        return is_small(self.source.size_bytes)

    def events(self) -> DataFrame:
        """The columns of a record, raw and place, each event once."""
        file = F.substring_index("file", "/", -1)
        place = F.struct(F.col("record.at").alias("at"), file.alias("file"), "number")
        fields = [F.col(f"record.{name}").alias(name) for name in RECORD.names]
        return self.lines.where("place = 1").select(*fields, "raw", place.alias("place"))

    def problems(self) -> list[QuarantinedLine]:
        """The first lines that are no records."""
        rows = self.quarantine.orderBy("file", "raw").limit(MAX_QUARANTINED).collect()
        # Spark names the files of journals by their URIs, logs are named by our own reader.
        plain = (row.file if self.logs is not None else unquote(urlsplit(row.file).path) for row in rows)
        names = self.source.names
        return [
            QuarantinedLine(str(names.get(place, place)), row.raw, row.reason)
            for place, row in zip(map(Path, plain), rows, strict=True)
        ]

    def release(self) -> None:
        """Spark need not keep the lines any more."""
        self.lines.unpersist()
        if self.logs is not None:
            self.logs.release()


@contextmanager
def reading(spark: SparkSession, source: AuditInput) -> Iterator[InputLines]:
    """The lines of `source`, which Spark keeps and is tuned for as long as the block lasts.

    Raises `OSError` for what cannot be read.
    """
    with tuned(spark, source.size_bytes):
        lines = _read_logs(spark, source) if source.kind == "logs" else _read_journals(spark, source)
        try:
            yield lines
        finally:
            lines.release()


def _read_journals(spark: SparkSession, source: AuditInput) -> InputLines:
    lines = _numbered(bronze.read_lines(spark, [str(file) for file in source.read]), source.size_bytes)
    ranked = persisted(bronze.ranked(lines), source.size_bytes)
    return InputLines(source, ranked, bronze.bronze(ranked).quarantine)


def _read_logs(spark: SparkSession, source: AuditInput) -> InputLines:
    logs = read_product_logs(spark, source.read)
    totals = logs.coverage.agg(F.count_distinct("file").alias("files"), F.sum("lines").alias("lines")).collect()[0]
    nothing = F.lit(None).cast("string")
    lines = logs.lines.select(
        "raw", F.lit("").alias("file"), F.from_json("raw", RECORD).alias("record"), nothing.alias("reason")
    )
    ranked = persisted(bronze.ranked(_numbered(lines, source.size_bytes)), source.size_bytes)
    counts = {"files": totals.files, "lines": totals.lines or 0, "quarantined": logs.quarantine.count()}
    return InputLines(source, ranked, logs.quarantine, counts, logs)


class Contents(NamedTuple):
    """How much there is in journals, the kinds of events, and the longest calm with which a run ends, in microseconds."""

    counts: dict[str, int]
    kinds: Collection[str]
    calm_us: int


def counted(lines: DataFrame) -> Contents:
    """What is in these lines, in one action."""
    is_record = F.col("place") == 1
    repeats = (F.col("place") > 1) & (F.col("raw") == F.col("first_raw"))
    contradicts = (F.col("place") > 1) & (F.col("raw") != F.col("first_raw"))
    kind = F.when(is_record, F.col("record.event.kind"))
    at = F.when(is_record, F.col("record.at"))
    names = ("lines", "records", "duplicates", "contradicting", "views", "suspicions")
    lives = lines.groupBy("record.run", "record.uuid").agg(
        F.count("*").alias("lines"),
        F.count_if(is_record).alias("records"),
        F.count_if(repeats).alias("duplicates"),
        F.count_if(contradicts).alias("contradicting"),
        F.count_if(kind == "list-installed").alias("views"),
        F.count_if(kind == "suspicion-raised").alias("suspicions"),
        F.collect_set(kind).alias("kinds"),
        F.min(at).alias("begins_us"),
        F.max(at).alias("ends_us"),
        F.max(F.when(kind.isin(*DISTURBANCES), at)).alias("disturbed_us"),
    )
    sums = [F.sum(name).alias(name) for name in names]
    kinds = F.array_distinct(F.flatten(F.collect_set("kinds"))).alias("kinds")
    # As `Evidence.calm` has it.
    calm_us = F.max("ends_us") - F.coalesce(F.max("disturbed_us"), F.min("begins_us"))
    runs = lives.groupBy("run").agg(
        F.count_if(F.col("records") > 0).alias("lives"), *sums, kinds, calm_us.alias("calm_us")
    )
    row = runs.agg(
        F.count_if(F.col("records") > 0).alias("runs"),
        F.sum("lives").alias("lives"),
        *sums,
        kinds,
        F.max("calm_us").alias("calm_us"),
    ).collect()[0]
    told = row.asDict()
    counts = {name: told[name] or 0 for name in ("lines", "records", "runs", "lives", "duplicates")}
    counts["quarantined"] = counts["lines"] - counts["records"] - counts["duplicates"]
    counts |= {name: told[name] or 0 for name in ("contradicting", "views", "suspicions")}
    return Contents(counts, set(told["kinds"]), told["calm_us"] or 0)


def _numbered(lines: DataFrame, size_bytes: int) -> DataFrame:
    """With a number that grows within each file; all in one part where there is little."""
    numbered = lines.withColumn("number", F.monotonically_increasing_id())
    return numbered.coalesce(1) if is_small(size_bytes) else numbered
