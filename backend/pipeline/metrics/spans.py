"""Spans of time and how many of them there are at once. Every span goes from `from_at` to `to_at`, which it excludes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def concurrent_sums(spans: DataFrame, keys: Sequence[str], *weights: str) -> DataFrame:
    """Sum `weights` over the spans that overlap, by `keys`: one row for each stretch in which nothing changes.

    Stretches without spans are left out only at both ends. Spans without length do not count.
    """

    def change(at: str, sign: int) -> DataFrame:
        return spans.select(*keys, F.col(at).alias("from_at"), *((sign * F.col(name)).alias(name) for name in weights))

    changes = (
        change("from_at", 1)
        .unionByName(change("to_at", -1))
        .groupBy(*keys, "from_at")
        .agg(*(F.sum(name).alias(name) for name in weights))
    )
    in_order = Window.partitionBy(*keys).orderBy("from_at")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    sums = {name: F.sum(name).over(so_far) for name in weights}
    return changes.withColumns({**sums, "to_at": F.lead("from_at").over(in_order)}).where("to_at is not null")


def merge_adjacent(stretches: DataFrame, keys: Sequence[str], wanted: Column) -> DataFrame:
    """Return the longest spans, by `keys`, throughout which `wanted` holds, of stretches that follow each other."""
    in_order = Window.partitionBy(*keys).orderBy("from_at")
    breaks = F.when(F.lag("to_at").over(in_order) == F.col("from_at"), 0).otherwise(1)
    held = stretches.where(wanted).withColumn("break", breaks)
    numbered = held.withColumn("island", F.sum("break").over(in_order))
    return (
        numbered.groupBy(*keys, "island")
        .agg(F.min("from_at").alias("from_at"), F.max("to_at").alias("to_at"))
        .drop("island")
    )


def subtract(spans: DataFrame, holes: DataFrame, on: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Return what is left of `spans` where no hole of the same `on` covers them.

    `keys` identify a span among those of its time.
    """
    cut = F.struct(
        *(F.col(name).alias(f"_{name}") for name in on), F.col("from_at").alias("_from"), F.col("to_at").alias("_to")
    )
    gaps = holes.select(cut.alias("_hole"))
    same = reduce(Column.__and__, (F.col(name) == F.col(f"_hole._{name}") for name in on))
    overlap = (F.col("from_at") < F.col("_hole._to")) & (F.col("_hole._from") < F.col("to_at"))
    clipped = spans.join(gaps, same & overlap).select(
        *keys,
        F.greatest("from_at", "_hole._from").alias("from_at"),
        F.least("to_at", "_hole._to").alias("to_at"),
        F.lit(0).alias("_there"),
        F.lit(1).alias("_covered"),
    )
    whole = spans.select(*keys, "from_at", "to_at", F.lit(1).alias("_there"), F.lit(0).alias("_covered"))
    counted = concurrent_sums(whole.unionByName(clipped), keys, "_there", "_covered")
    return merge_adjacent(counted, keys, F.expr("_there > 0 and _covered = 0"))
