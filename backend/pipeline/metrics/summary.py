"""All tables of metrics, and percentiles of all measurements: for each run, each scenario, or all runs with the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics import availability, detection, split_brains, traffic, view_convergence
from quarterdeck.backend.pipeline.metrics.expressions import shaped
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import TableDefinition as Table
from quarterdeck.backend.pipeline.tables.columns import schema

_METRICS: tuple[Table[TableSource], ...] = (
    Table("detection", detection.DETECTION, detection.detection, "how long faults went unnoticed, and by whom"),
    Table(
        "one_view",
        view_convergence.VIEW_CONVERGENCE,
        view_convergence.view_convergence,
        "how long members took to agree on one list",
    ),
    Table(
        "splits",
        split_brains.SPLITS,
        split_brains.splits,
        "split brains, with their sides, and how long the merge took",
    ),
    Table(
        "availability",
        availability.AVAILABILITY,
        availability.availability,
        "how long partitions were without owner or short of replicas",
    ),
    Table("migration_rates", traffic.MIGRATION_RATES, traffic.migration_rates, "how fast data moved"),
    Table("plans", traffic.PLANS, traffic.plans, "plans of migrations against their lower bound"),
    Table("messages", traffic.MESSAGES, traffic.messages, "what can be known of the messages that were sent"),
)

METRICS = {table.name: table for table in _METRICS}
"""In the order of the documentation. Durations of migrations, merges and calls are in the tables of those names."""

By = Literal["run", "scenario", "settings", "all"]

ACCURACY = 10_000
"""Up to so many samples the percentiles are exact."""

TIMED_RUN = r"^\d{8}T\d{6}Z-(.+)-[0-9a-f]{4}$"
"""Runs of live clusters are named after the time, the scenario or cluster, and a random number."""

SEEDS_OF_RUN = r"(?:(?:^|-)seed-+\d+)+$"
"""Simulated runs are named after scenario and seed; those of a campaign after the seed alone, or the variant and the seed.

The seed occurs twice where the scenario was made of such a run.
"""

SWARM = "swarm"
"""The scenario of runs that name none."""

SUMMARY = schema(
    """
    by string the run, the scenario, the settings that differ among the runs whose settings are known, or all
    metric string what was measured
    kind string of what kind; empty where there is one only
    unit string us (microseconds), copies, share, per-second, bytes-per-second, messages or times
    count bigint how many samples
    missing bigint how often it should have happened and did not
    floor double the least that theory allows for any of them; null where that is not known
    least double the least sample
    mean double their mean
    p50 double half of them are no greater
    p90 double 9 of 10 are no greater
    p99 double 99 of 100 are no greater
    most double the greatest
    """
)


def summary(source: TableSource, by: By) -> DataFrame:
    """Return percentiles, ordered by group, metric and kind."""
    grouped = samples(source).join(F.broadcast(groups(source, by)), "run")
    value = F.col("value")
    percentiles = F.percentile_approx("value", F.lit([0.5, 0.9, 0.99]), ACCURACY)
    rows = (
        grouped.groupBy("by", "metric", "kind", "unit")
        .agg(
            F.count(value).alias("count"),
            F.count_if(value.isNull()).alias("missing"),
            F.min("floor").alias("floor"),
            F.min(value).alias("least"),
            F.mean(value).alias("mean"),
            percentiles.alias("percentiles"),
            F.max(value).alias("most"),
        )
        .withColumns({name: F.col("percentiles")[place] for place, name in enumerate(("p50", "p90", "p99"))})
    )
    return shaped(rows, SUMMARY).orderBy("by", "metric", "kind")


def groups(source: TableSource, by: By) -> DataFrame:
    """Return columns run and by: the group that each run belongs to."""
    runs = source.ends().select("run")
    match by:
        case "run":
            return runs.withColumn("by", F.col("run"))
        case "scenario":
            return runs.withColumn("by", scenario_of(F.col("run")))
        case "all":
            return runs.withColumn("by", F.lit("all"))
    return _settings_that_differ(source, runs)


def scenario_of(run: Column) -> Column:
    """Return the scenario of a run, as far as its name shows it."""
    timed, seeded = F.regexp_extract(run, TIMED_RUN, 1), F.regexp_replace(run, SEEDS_OF_RUN, "")
    return F.when(timed != "", timed).when(seeded == "", SWARM).otherwise(seeded)


def samples(source: TableSource) -> DataFrame:
    """Return all measurements: run, metric, kind, unit, value (null where what was expected did not happen), floor."""
    parts = (_of_membership, _of_partitions, _of_traffic)
    return reduce(DataFrame.unionByName, (sample for part in parts for sample in part(source)))


def _settings_that_differ(source: TableSource, runs: DataFrame) -> DataFrame:
    """Return the settings of each run's first incarnation, of those properties that are not the same in all runs."""
    settings = F.expr("min_by(settings, struct(started_at, uuid)) AS settings")
    first = source.table("lives").groupBy("run").agg(settings)
    each = first.select("run", F.explode("settings").alias("name", "value"))
    known = first.where("settings IS NOT NULL").agg(F.count("*").alias("runs"))
    alike = each.groupBy("name", "value").count().join(F.broadcast(known))
    others = each.join(alike.where("count < runs"), ["name", "value"], "left_semi")
    pair = F.concat_ws("=", "name", "value")
    named = others.groupBy("run").agg(F.concat_ws(", ", F.array_sort(F.collect_list(pair))).alias("by"))
    unknown = first.where("settings IS NULL").select("run", F.lit("not known").alias("unknown"))
    return (
        runs.join(named, "run", "left")
        .join(unknown, "run", "left")
        .select("run", F.coalesce("unknown", "by", F.lit("as documented or alike")).alias("by"))
    )


def metric_table(source: TableSource, name: str) -> DataFrame:
    """Return the table of one metric, made once."""
    return source.memoized(name, lambda: METRICS[name].make(source))


def _sample(
    table: DataFrame,
    metric: str,
    value: Column,
    *,
    unit: str = "us",
    kind: Column | None = None,
    floor: Column | None = None,
) -> DataFrame:
    return table.select(
        "run",
        F.lit(metric).alias("metric"),
        (F.lit("") if kind is None else F.coalesce(kind, F.lit("none"))).alias("kind"),
        F.lit(unit).alias("unit"),
        value.cast("double").alias("value"),
        (F.lit(None) if floor is None else floor).cast("double").alias("floor"),
    )


def _of_membership(source: TableSource) -> Iterator[DataFrame]:
    noticed = metric_table(source, "detection")
    by_what = F.concat_ws(" ", "fault", F.coalesce("how", F.lit("unnoticed")))
    # A member that learned it from the master before it noticed by itself has missed nothing.
    own = noticed.where("noticed_us is not null or removed_us is null")
    yield _sample(own, "noticed", F.col("noticed_us"), kind=by_what, floor=F.col("least_us"))
    over = noticed.where("noticed_us is not null and least_us is not null")
    yield _sample(over, "noticed later than the floor", F.col("noticed_us") - F.col("least_us"), kind=by_what)
    removed = noticed.where("removed_us is not null")
    yield _sample(removed, "removed", F.col("removed_us"), kind=by_what, floor=F.col("least_us"))
    yield _sample(metric_table(source, "one_view"), "one view", F.col("took_us"), kind=F.concat_ws(" ", "what"))
    yield _sample(metric_table(source, "splits"), "split brain", F.col("lasted_us"))
    yield _sample(metric_table(source, "splits"), "healed to one master", F.col("merge_us"))
    yield _sample(source.table("merges"), "merge of a member", F.expr("joined_at - left_at"))
    yield _sample(source.table("claims"), "claim", F.expr("ended_at - started_at"), kind=F.col("outcome"))


def _of_partitions(source: TableSource) -> Iterator[DataFrame]:
    held = metric_table(source, "availability")
    for what in ("without_owner", "fewer_replicas"):
        name = what.replace("_", " ")
        yield _sample(held, name, F.col(f"{what}_us"))
        yield _sample(held, f"{name}, share of the time", F.col(f"{what}_us") / F.col("observed_us"), unit="share")
        yield _sample(held, f"{name}, times", F.col(f"{what}_times"), unit="times")
    moved = source.table("migrations")
    kind = F.concat_ws(" ", "type", "outcome")
    yield _sample(moved, "migration", F.expr("decided_at - started_at"), kind=kind)
    yield _sample(moved.where("copy_us is not null"), "copy of a migration", F.col("copy_us"), kind=kind)
    rates = metric_table(source, "migration_rates").where("committed_per_second is not null")
    yield _sample(rates, "migrations committed", F.col("committed_per_second"), unit="per-second")
    yield _sample(rates, "bytes moved", F.col("bytes_per_second"), unit="bytes-per-second")
    yield _sample(metric_table(source, "plans"), "copies planned", F.col("moves"), unit="copies")
    yield _sample(metric_table(source, "plans"), "copies over the lower bound", F.col("over"), unit="copies")


def _of_traffic(source: TableSource) -> Iterator[DataFrame]:
    sent = metric_table(source, "messages")
    kind = F.concat_ws(" ", "known", "kind")
    yield _sample(sent, "messages", F.col("messages"), unit="messages", kind=kind)
    yield _sample(sent, "messages of a member", F.col("per_member_second"), unit="per-second", kind=kind)
    writes, reads = source.table("writes"), source.table("reads")
    yield _sample(writes, "write", F.col("took"), kind=F.concat_ws(" ", "operation", "outcome"))
    yield _sample(reads, "read", F.col("took"), kind=F.col("outcome"))
    rejected = writes.groupBy("run").agg(F.count_if(F.expr("outcome = 'untouched'")).alias("rejected"))
    yield _sample(rejected, "writes rejected", F.col("rejected"), unit="times")
