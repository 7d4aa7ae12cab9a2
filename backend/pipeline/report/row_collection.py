"""From events to the few rows that a report is made of, on Spark: the index of all runs, then what is shown of a few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.registry import METRICS
from quarterdeck.backend.pipeline.metrics.summary import samples, summary
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.report.limits import BINS_PER_DECADE, Limits
from quarterdeck.backend.pipeline.report.rows import Rows, RunRow
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.columns import of_kind

FAULT_EVENT_KINDS = ("process-killed", "process-paused", "process-resumed", "link-changed")
"""What is recorded under the name of the cluster, not of a member."""

ROUNDING = 1e-9
"""1000 microseconds shall begin a bin, whatever the logarithm makes of them."""


def collect(events: DataFrame, with_findings: Sequence[str], limits: Limits) -> Rows:
    """The rows for a report on `events` (columns of a record, each event once). `with_findings`: runs that come first,
    in their order.

    What Spark hands over is bounded by `limits` alone.
    """
    runs = _index(events, with_findings[: limits.index], limits)
    shown = {run.run: run for run in runs[: limits.sections]}
    if not shown:
        return Rows(runs)
    # Without its plan, which is long: everything below is planned on top of it.
    kept = events.where(F.col("run").isin(list(shown))).select(*RECORD.names).localCheckpoint()
    parts = _parts(TableSource(kept), shown, limits)
    return Rows(runs, **{name: _handed_over(name, part) for name, part in parts.items()})


def _index(events: DataFrame, first: Sequence[str], limits: Limits) -> list[RunRow]:
    member = F.when(~of_kind(*FAULT_EVENT_KINDS), F.col("member"))
    place = F.array_position(F.array(*map(F.lit, first)).cast("array<string>"), F.col("run"))
    rows = (
        events.groupBy("run")
        .agg(
            F.min("at").alias("start_us"),
            F.max("at").alias("end_us"),
            F.count("*").alias("events"),
            F.count_distinct(member).alias("members"),
        )
        .orderBy(F.nullif(place, F.lit(0)).asc_nulls_last(), *_as_people_count("run"))
        .limit(limits.index)
        .collect()
    )
    return [RunRow(**row.asDict()) for row in rows]


def _as_people_count(name: str) -> tuple[Column, ...]:
    """An order in which seed-9 comes before seed-10."""
    return F.regexp_replace(name, r"\d+", "0"), F.length(name), F.col(name)


def _handed_over(name: str, part: DataFrame) -> list[Any]:
    """The rows of one part, which becomes the field `name` of `Rows`; they travel as JSON, checked when they arrive."""
    kind = next(one.type for one in msgspec.structs.fields(Rows) if one.name == name)
    lines = [line for (line,) in part.select(F.to_json(F.struct("*"))).collect()]
    rows: list[Any] = msgspec.json.decode(f"[{','.join(lines)}]", type=kind)
    return rows


def _parts(table_source: TableSource, runs: Mapping[str, RunRow], limits: Limits) -> dict[str, DataFrame]:
    table, events = table_source.table, table_source.events
    ends = F.create_map(*(F.lit(part) for run in runs.values() for part in (run.run, run.end_us)))[F.col("run")]
    suspicions = _with_durations(table("suspicions"), table("lives"), ends)
    lives = _lanes(table("lives"), limits)
    migrations = table("migrations")
    types = F.coalesce("type", F.lit("unknown")).alias("type")
    in_time = [F.col(name) for name in ("from_at", "fault", "member", "source", "target")]
    splits = table_source.kept("splits", lambda: METRICS["splits"].make(table_source))
    measured = summary(table_source, "run").withColumnRenamed("by", "run")
    return {
        "lives": lives,
        "views": _thinned(table("views").join(lives.select("run", "uuid"), ["run", "uuid"], "left_semi"), limits),
        "suspicions": _pairs(suspicions, limits),
        "migrations": _first(migrations, _slowest_first(), limits.migrations),
        "outcomes": migrations.groupBy("run", types, "outcome").agg(_times()),
        "claims": _first(table("claims"), [F.col("started_at"), F.col("uuid"), F.col("claim")], limits.rows),
        "merges": _first(table("merges"), [F.col("left_at"), F.col("uuid")], limits.rows),
        "faults": _first(table("faults"), in_time, limits.faults),
        "kinds": events.groupBy("run", F.col("event.kind").alias("kind")).agg(_times()),
        "splits": _first(splits, [F.col("from_at")], limits.rows),
        "metrics": _first(measured, [F.col("metric"), F.col("kind")], limits.metrics),
        "bins": _bins(samples(table_source)),
    }


def _times() -> Column:
    return F.count("*").alias("times")


def _first(rows: DataFrame, order: list[Column], most: int) -> DataFrame:
    """The first rows of each run, with `of`: how many there are."""
    of_run = Window.partitionBy("run")
    ranked = rows.withColumns({"_place": F.row_number().over(of_run.orderBy(*order)), "of": F.count("*").over(of_run)})
    return ranked.where(F.col("_place") <= most).drop("_place")


def _slowest_first() -> list[Column]:
    open_first = F.when(F.col("outcome") == "open", 0).otherwise(1)
    took = F.coalesce("decided_at", "finished_at") - F.col("started_at")
    return [open_first, took.desc_nulls_last(), F.col("migration_id")]


def _lanes(lives: DataFrame, limits: Limits) -> DataFrame:
    """The lives of the members that came first."""
    of_member, of_run = Window.partitionBy("run", "member"), Window.partitionBy("run")
    in_lane = lives.withColumns(
        {
            "_came": F.min("started_at").over(of_member),
            "_place": F.row_number().over(of_member.orderBy("started_at", "uuid")),
            "of": F.count("*").over(of_member),
        }
    )
    lanes = in_lane.withColumn("lane", F.dense_rank().over(of_run.orderBy("_came", "member")))
    counted = lanes.withColumn("lanes", F.max("lane").over(of_run))
    shown = counted.where((F.col("lane") <= limits.lanes) & (F.col("_place") <= limits.lives))
    return shown.select(
        *("run", "member", "uuid", "started_at", "lane", "lanes", "of", "address", "ended_at", "end")
    )  # fmt: skip


def _thinned(views: DataFrame, limits: Limits) -> DataFrame:
    """Each list of a lane that has few; else the last one in each of `limits.marks` equal spans of the run's time."""
    of_lane, of_run = Window.partitionBy("run", "member"), Window.partitionBy("run")
    measured = views.withColumns(
        {
            "_start": F.min("at").over(of_run),
            "_span": F.max("at").over(of_run) - F.min("at").over(of_run) + 1,
            "of": F.count("*").over(of_lane),
            "_place": F.row_number().over(of_lane.orderBy("at", "seq")),
        }
    )
    in_time = F.floor((F.col("at") - F.col("_start")) / F.col("_span") * limits.marks)
    binned = measured.withColumn("_bin", F.when(F.col("of") > limits.marks, in_time).otherwise(F.col("_place")))
    fields = ("version", "lineage", "master", "members")
    last = F.max_by(F.struct("at", *fields), "seq").alias("last")
    spans = binned.groupBy("run", "member", "uuid", "_bin").agg(
        last, F.count("*").alias("installs"), F.max("of").alias("of")
    )
    addresses = F.transform(F.slice("last.members", 1, limits.names), lambda member: member["address"])
    return spans.select(
        *("run", "member", "uuid", "last.at", "last.version", "last.lineage", "last.master", "installs", "of"),
        addresses.alias("addresses"),
        F.size("last.members").alias("size"),
    )  # fmt: skip


def _with_durations(suspicions: DataFrame, lives: DataFrame, ends: Column) -> DataFrame:
    """What was never cleared lasted until the suspecting life or the journal ended."""
    ended = lives.select("run", "uuid", "ended_at")
    until = F.coalesce("cleared_at", "ended_at", ends)
    return suspicions.join(ended, ["run", "uuid"], "left").withColumn(
        "suspected_us", F.greatest(until - F.col("raised_at"), F.lit(0))
    )


def _pairs(suspicions: DataFrame, limits: Limits) -> DataFrame:
    pairs = suspicions.groupBy("run", "member", "suspect").agg(
        _times(), F.sum("suspected_us").alias("suspected_us"), F.count_if(F.col("cleared_at").isNull()).alias("open")
    )
    return _first(pairs, [F.col("times").desc(), F.col("member"), F.col("suspect")], limits.suspicions)


def _bins(measured: DataFrame) -> DataFrame:
    """Histograms of whatever is measured in microseconds; what took less than one counts as one."""
    place = F.floor(F.log10(F.greatest("value", F.lit(1.0))) * BINS_PER_DECADE + ROUNDING)
    taken = measured.where("unit = 'us' and value is not null")
    return taken.groupBy("run", "metric", "kind", place.alias("bin")).agg(_times())
