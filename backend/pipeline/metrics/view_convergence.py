"""How long it takes until all members that run hold one list of just themselves, after something has happened to them."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, subtract
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.metrics.view_spans import fault_ends, frozen, running, view_spans
from quarterdeck.backend.pipeline.tables.columns import BOOLEAN, NUMBER, RUN, TEXT, TEXTS, schema, shaped

BURST_US = 5_000
"""What happens within so short a time is one disturbance: the links of a cut, for instance."""

VIEW_CONVERGENCE = schema(
    RUN,
    ("at", NUMBER, "when the last of it happened; microseconds on the run's clock"),
    ("what", TEXTS, "what happened: started, stopped, killed, lost, paused, resumed, mended"),
    ("agreed_at", NUMBER, "when all running members held one list of just themselves; null if something came before"),
    ("took_us", NUMBER, "how long that took"),
    ("overtaken", BOOLEAN, "whether the next disturbance came first; where not, the journal ended"),
    ("lineage", TEXT, "lineage of the list that they agreed on"),
    ("version", NUMBER, "its version"),
)


def view_convergence(table_source: TableSource) -> DataFrame:
    """One row for each disturbance (schema `VIEW_CONVERGENCE`). Links that break are none, but end the wait after the
    one before.
    """
    following = Window.partitionBy("run").orderBy("at")
    bursts = (
        table_source.memoized("bursts", lambda: _bursts(table_source))
        .withColumn("next_at", F.lead("first_at").over(following))
        .where("size(what) > 0")
    )
    agreed = table_source.memoized("agreements", lambda: agreements(table_source)).withColumnsRenamed(
        {"from_at": "begins", "to_at": "ends"}
    )
    in_time = (F.col("ends") > F.col("at")) & (F.col("next_at").isNull() | (F.col("begins") < F.col("next_at")))
    earliest = F.min(F.struct(F.greatest("begins", "at").alias("at"), "lineage", "version"))
    met = bursts.join(agreed, "run").where(in_time).groupBy("run", "at").agg(earliest.alias("met"))
    rows = bursts.join(met, ["run", "at"], "left").withColumns(
        {
            "agreed_at": F.col("met.at"),
            "took_us": F.col("met.at") - F.col("at"),
            "overtaken": F.col("met").isNull() & F.col("next_at").isNotNull(),
            "lineage": F.col("met.lineage"),
            "version": F.col("met.version"),
        }
    )
    return shaped(rows, VIEW_CONVERGENCE)


def agreements(table_source: TableSource) -> DataFrame:
    """Spans in which all that run and do not stand still hold one list of just themselves: run, lineage, version, from_at, to_at.

    Whoever holds a list is on it, so a list that is held by as many as are on it, and as run, is held by all that run.
    """
    still = frozen(table_source)
    view = ["run", "lineage", "version", "size"]
    held, ran = (spans.where("from_at < to_at") for spans in (view_spans(table_source), running(table_source)))
    holding = table_source.memoized("holding", lambda: subtract(held, still, ["run", "uuid"], [*view, "uuid"]))
    awake = table_source.memoized("awake", lambda: subtract(ran, still, ["run", "uuid"], ["run", "uuid"]))
    complete = concurrent_sums(holding.withColumn("holders", F.lit(1)), view, "holders").where("holders = size")
    alive = concurrent_sums(awake.withColumn("alive", F.lit(1)), ["run"], "alive").select(
        "run", F.col("alive").alias("size"), F.col("from_at").alias("alive_from"), F.col("to_at").alias("alive_to")
    )
    both = complete.join(alive, ["run", "size"]).where("from_at < alive_to and alive_from < to_at")
    return both.select(
        *("run", "lineage", "version"),
        F.greatest("from_at", "alive_from").alias("from_at"),
        F.least("to_at", "alive_to").alias("to_at"),
    )


def _bursts(table_source: TableSource) -> DataFrame:
    """Disturbances that come at once: run, first_at, at (the last of them), what (empty where links broke only)."""
    lives, faults = table_source.table("lives"), table_source.table("faults")
    ended = F.when(F.col("end") == "replaced", "lost").otherwise(F.col("end"))

    def told(table: DataFrame, at: str, what: Column) -> DataFrame:
        return table.select("run", F.col(at).alias("at"), what.alias("what"))

    parts = [
        told(lives.where("coalesce(merged_from, '') = ''"), "started_at", F.lit("started")),
        told(lives.where("end in ('stopped', 'killed', 'replaced')"), "ended_at", ended),
        told(faults.where("fault = 'pause'"), "from_at", F.lit("paused")),
        fault_ends(table_source),
        told(faults.where("fault = 'link'"), "from_at", F.lit(None).cast("string")),
    ]
    in_order = Window.partitionBy("run").orderBy("at")
    first = F.coalesce(F.col("at") - F.lag("at").over(in_order) > BURST_US, F.lit(True))
    numbered = reduce(DataFrame.unionByName, parts).distinct().withColumn("first", first.cast("int"))
    so_far = in_order.rangeBetween(Window.unboundedPreceding, 0)
    return (
        numbered.withColumn("burst", F.sum("first").over(so_far))
        .groupBy("run", "burst")
        .agg(
            F.min("at").alias("first_at"),
            F.max("at").alias("at"),
            F.array_sort(F.collect_set("what")).alias("what"),
        )
    )
