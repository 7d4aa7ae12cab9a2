"""How long it takes, after something has happened to members, until all that run hold one list of just themselves."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.expressions import shaped
from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, subtract
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import schema

BURST_US = 5_000
"""Events within so short a time are one disturbance: the links of a cut, for instance."""

VIEW_CONVERGENCE = schema(
    """
    run
    at bigint when the last of it happened; microseconds on the run's clock
    what array<string> what happened: started, stopped, killed, lost, paused, resumed, mended
    agreed_at bigint when all running members held one list of just themselves; null if something came before
    took_us bigint how long that took
    overtaken boolean whether the next disturbance came first; where not, the journal ended
    lineage string lineage of the list that they agreed on
    version bigint its version
    """
)


def view_convergence(source: TableSource) -> DataFrame:
    """Make one row for each disturbance. Links that break are none, but end the wait after the one before."""
    following = F.lead("first_at").over(Window.partitionBy("run").orderBy("at"))
    bursts = source.memoized("bursts", lambda: _bursts(source))
    bursts = bursts.withColumn("next_at", following).where("size(what) > 0")
    agreed = source.memoized("agreements", lambda: _agreements(source))
    agreed = agreed.withColumnsRenamed({"from_at": "begins", "to_at": "ends"})
    earliest = "min(struct(greatest(begins, at) AS at, lineage, version)) AS met"
    met = (
        bursts.join(agreed, "run")
        .where("ends > at AND (next_at IS NULL OR begins < next_at)")
        .groupBy("run", "at")
        .agg(F.expr(earliest))
    )
    rows = bursts.join(met, ["run", "at"], "left").selectExpr(
        *("run", "at", "what", "met.at AS agreed_at", "met.at - at AS took_us"),
        "met IS NULL AND next_at IS NOT NULL AS overtaken",
        *("met.lineage AS lineage", "met.version AS version"),
    )
    return shaped(rows, VIEW_CONVERGENCE)


def _agreements(source: TableSource) -> DataFrame:
    """Return spans in which all members that run and are not paused hold one list of just themselves.

    Columns run, lineage, version, from_at, to_at. A member that holds a list is on it; so if as many hold a list as are on it,
    and as run, then all that run hold it.
    """
    still, view = source.frozen(), ["run", "lineage", "version", "size"]
    held, ran = (spans.where("from_at < to_at") for spans in (source.view_spans(), source.running()))
    holding = source.memoized("holding", lambda: subtract(held, still, ["run", "uuid"], [*view, "uuid"]))
    awake = source.memoized("awake", lambda: subtract(ran, still, ["run", "uuid"], ["run", "uuid"]))
    complete = concurrent_sums(holding.withColumn("holders", F.lit(1)), view, "holders").where("holders = size")
    alive = concurrent_sums(awake.withColumn("alive", F.lit(1)), ["run"], "alive").selectExpr(
        "run", "alive AS size", "from_at AS alive_from", "to_at AS alive_to"
    )
    both = complete.join(alive, ["run", "size"]).where("from_at < alive_to AND alive_from < to_at")
    spans = ("greatest(from_at, alive_from) AS from_at", "least(to_at, alive_to) AS to_at")
    return both.selectExpr("run", "lineage", "version", *spans)


def _bursts(source: TableSource) -> DataFrame:
    """Return disturbances close together: run, first_at, at (the last of them), what (empty where only links broke)."""
    incarnations, faults = source.table("lives"), source.table("faults")
    parts = [
        incarnations.where("coalesce(merged_from, '') = ''").selectExpr("run", "started_at AS at", "'started' AS what"),
        incarnations.where("end IN ('stopped', 'killed', 'replaced')").selectExpr(
            "run", "ended_at AS at", "if(end = 'replaced', 'lost', end) AS what"
        ),
        faults.where("fault = 'pause'").selectExpr("run", "from_at AS at", "'paused' AS what"),
        source.fault_ends(),
        faults.where("fault = 'link'").selectExpr("run", "from_at AS at", "cast(NULL AS string) AS what"),
    ]
    in_order = Window.partitionBy("run").orderBy("at")
    first = F.coalesce(F.col("at") - F.lag("at").over(in_order) > BURST_US, F.lit(True))
    numbered = reduce(DataFrame.unionByName, parts).distinct().withColumn("first", first.cast("int"))
    so_far = in_order.rangeBetween(Window.unboundedPreceding, 0)
    return (
        numbered.withColumn("burst", F.sum("first").over(so_far))
        .groupBy("run", "burst")
        .agg(F.min("at").alias("first_at"), F.max("at").alias("at"), F.array_sort(F.collect_set("what")).alias("what"))
    )
