"""When faults were over: links as if nothing had been there, frozen members awake."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.table_source import TableSource


def fault_ends(table_source: TableSource) -> DataFrame:
    """Columns run, at, what: `fault_ends` for a link, `resumed` for a member. What only became another fault is not over."""
    of_one = Window.partitionBy("run", F.coalesce("member", F.concat_ws(">", "source", "target"))).orderBy("from_at")
    faults = table_source.table("faults").withColumn("next_at", F.lead("from_at").over(of_one))
    over = faults.where("fault <> 'kill' and to_at is not null and to_at < coalesce(next_at, to_at + 1)")
    what = F.when(F.col("fault") == "pause", "resumed").otherwise("mended")
    return over.select("run", F.col("to_at").alias("at"), what.alias("what"))
