"""Split brains: the spans in which more than one member led a cluster, and how long the sides took to merge again."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from quarterdeck.backend.pipeline.metrics.expressions import shaped
from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import schema

SIDE = schema(
    """
    master string label of its master
    lineage string lineage of its lists
    members array<string> labels of those who followed it longest, the master included
    """
)

SPLITS = schema(
    """
    run
    from_at bigint when there were two masters; microseconds on the run's clock
    to_at bigint when there was only one again; null while it lasted
    lasted_us bigint how long, up to the end of the journal where it lasted
    healed_at bigint when the last link was mended or frozen member resumed before it ended; null where none was
    merge_us bigint from then, or from the beginning, to the end
    sides sides the sides, in the order in which they began
    """,
    sides=ArrayType(StructType(SIDE.fields)),
)


def splits(source: TableSource) -> DataFrame:
    """Make one row for each split brain. A frozen master leads no member."""
    windows = source.memoized("windows of splits", lambda: _windows(source))
    named = windows.selectExpr("run", "from_at AS window_from", "to_at AS window_to")
    healed = (
        named.join(source.fault_ends().withColumnRenamed("at", "mended_at"), "run")
        .where("mended_at > window_from AND mended_at <= window_to")
        .groupBy("run", F.col("window_from").alias("from_at"))
        .agg(F.max("mended_at").alias("healed_at"))
    )
    whole = windows.join(_sides(source, named), ["run", "from_at"], "left").join(healed, ["run", "from_at"], "left")
    to_at = F.expr("if(ended, to_at, NULL)")
    return shaped(
        whole.withColumns(
            {
                "lasted_us": F.expr("to_at - from_at"),
                "merge_us": to_at - F.coalesce("healed_at", "from_at"),
                "to_at": to_at,
            }
        ),
        SPLITS,
    )


def _windows(source: TableSource) -> DataFrame:
    """Return spans with more than one master: run, from_at, to_at, and whether they ended before the journal did."""
    counted = concurrent_sums(source.masters().withColumn("masters", F.lit(1)), ["run"], "masters")
    several = merge_adjacent(counted, ["run"], F.expr("masters > 1"))
    return several.join(source.ends(), "run").selectExpr("run", "from_at", "to_at", "to_at < run_ended_at AS ended")


def _sides(source: TableSource, windows: DataFrame) -> DataFrame:
    """Return the sides of each window: who led in it, and those who followed that master longer than any other."""
    in_window = "from_at < window_to AND to_at > window_from"
    leaders = (
        windows.join(source.masters(), "run")
        .where(in_window)
        .groupBy("run", "window_from", "lineage")
        .agg(F.min_by("member", "from_at").alias("master"), F.min("from_at").alias("led_from"))
    )
    followed = (
        windows.join(source.view_spans().where("from_at < to_at"), "run")
        .where(in_window)
        .withColumn("for_us", F.least("to_at", "window_to") - F.greatest("from_at", "window_from"))
        .groupBy("run", "window_from", "member", "lineage")
        .agg(F.sum("for_us").alias("for_us"))
    )
    longest = Window.partitionBy("run", "window_from", "member").orderBy(F.col("for_us").desc(), "lineage")
    followers = (
        followed.withColumn("place", F.row_number().over(longest))
        .where("place = 1")
        .groupBy("run", "window_from", "lineage")
        .agg(F.array_sort(F.collect_list("member")).alias("members"))
    )
    side = F.struct("led_from", *SIDE.names)
    return (
        leaders.join(followers, ["run", "window_from", "lineage"])
        .groupBy("run", F.col("window_from").alias("from_at"))
        .agg(F.array_sort(F.collect_list(side)).alias("sides"))
        .withColumn(
            "sides", F.transform("sides", lambda one: F.struct(*(one[name].alias(name) for name in SIDE.names)))
        )
    )
