"""Split brains: the spans in which more than one member led a cluster, and how long the sides took to become one again."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.metrics.view_spans import fault_ends, masters, view_spans
from quarterdeck.backend.pipeline.tables.columns import NUMBER, RUN, TEXT, TEXTS, schema, shaped

SIDE = schema(
    ("master", TEXT, "label of its master"),
    ("lineage", TEXT, "lineage of its lists"),
    ("members", TEXTS, "labels of those who followed it longest, the master included"),
)

SPLITS = schema(
    RUN,
    ("from_at", NUMBER, "when there were two masters; microseconds on the run's clock"),
    ("to_at", NUMBER, "when there was only one again; null while it lasted"),
    ("lasted_us", NUMBER, "how long, up to the end of the journal where it lasted"),
    (
        "healed_at",
        NUMBER,
        "when the last link was mended or frozen member resumed before it ended; null where none was",
    ),
    ("merge_us", NUMBER, "from then, or from the beginning, to the end"),
    ("sides", ArrayType(StructType(SIDE.fields)), "the sides, in the order in which they began"),
)


def splits(table_source: TableSource) -> DataFrame:
    """One row for each split brain (schema `SPLITS`). A frozen master leads nobody."""
    windows = table_source.memoized("windows of splits", lambda: _windows(table_source))
    key = (F.col("run"), F.col("from_at").alias("window_from"), F.col("to_at").alias("window_to"))
    sides = _sides(table_source, windows.select(*key))
    healed = (
        windows.select(*key)
        .join(fault_ends(table_source).withColumnRenamed("at", "mended_at"), "run")
        .where("mended_at > window_from and mended_at <= window_to")
        .groupBy("run", F.col("window_from").alias("from_at"))
        .agg(F.max("mended_at").alias("healed_at"))
    )
    whole = windows.join(sides, ["run", "from_at"], "left").join(healed, ["run", "from_at"], "left")
    to_at = F.when(F.col("ended"), F.col("to_at"))
    return shaped(
        whole.withColumns(
            {
                "lasted_us": F.col("to_at") - F.col("from_at"),
                "merge_us": to_at - F.coalesce("healed_at", "from_at"),
                "to_at": to_at,
            }
        ),
        SPLITS,
    )


def _windows(table_source: TableSource) -> DataFrame:
    """Spans with more than one master: run, from_at, to_at, and whether they ended before the journal did."""
    counted = concurrent_sums(masters(table_source).withColumn("masters", F.lit(1)), ["run"], "masters")
    several = merge_adjacent(counted, ["run"], F.expr("masters > 1"))
    ended = F.col("to_at") < F.col("run_ended_at")
    return several.join(table_source.ends(), "run").select("run", "from_at", "to_at", ended.alias("ended"))


def _sides(table_source: TableSource, windows: DataFrame) -> DataFrame:
    """The sides of each window: whoever led in it, and those who followed that one longer than any other."""
    in_window = "from_at < window_to and to_at > window_from"
    leaders = (
        windows.join(masters(table_source), "run")
        .where(in_window)
        .groupBy("run", "window_from", "lineage")
        .agg(F.min_by("member", "from_at").alias("master"), F.min("from_at").alias("led_from"))
    )
    followed = (
        windows.join(view_spans(table_source).where("from_at < to_at"), "run")
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
