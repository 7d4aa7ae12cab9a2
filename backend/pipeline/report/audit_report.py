"""The report of an audit that has just been made, from the lines that it judged, on the same Spark.

Spark reduces the events to the few rows that a report is made of: the index of all runs, then what is shown of a few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.audit_lines import InputLines
from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.metrics.registry import METRICS
from quarterdeck.backend.pipeline.metrics.summary import samples, summary
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.report.builder import build_report
from quarterdeck.backend.pipeline.report.limits import BINS_PER_DECADE, ReportLimits
from quarterdeck.backend.pipeline.report.model import Claim, Merge, Metric, Migration, Report, Suspicion
from quarterdeck.backend.pipeline.report.rows import FaultRow, ReportRows, RunRow
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.columns import CLUSTER_EVENT_KINDS, of_kind

ROUNDING = 1e-9
"""1000 microseconds shall begin a bin, whatever the logarithm makes of them."""


def report_on(lines: InputLines, result: AuditResult, limits: ReportLimits | None = None) -> Report:
    """The report on `lines`, of which `result` is the audit."""
    limits = limits or ReportLimits()
    first = dict.fromkeys([one.run for one in result.findings] + [one.run for one in result.observations])
    rows = collect(lines.events, list(first), limits, is_measured=lines.source.kind == "journal")
    return build_report(rows, result, lines.source, limits)


def collect(events: DataFrame, first: Sequence[str], limits: ReportLimits, *, is_measured: bool = True) -> ReportRows:
    """The rows for a report on `events` (columns of a record, each event once), with metrics if it `is_measured`.

    `first`: runs that come first, in their order.

    What Spark hands over is bounded by `limits` alone.
    """
    runs = _index(events, first[: limits.index], limits)
    shown = {run.run: run for run in runs[: limits.sections]}
    if not shown:
        return ReportRows(runs)
    # Without its plan, which is long: everything below is planned on top of it.
    kept = events.where(F.col("run").isin(list(shown))).select(*RECORD.names).localCheckpoint()
    table_source = TableSource(kept)
    parts = _parts(table_source, shown, limits)
    if is_measured:
        parts |= _measured(table_source, limits)
    return ReportRows(runs, **{name: _handed_over(name, part) for name, part in parts.items()})


def _index(events: DataFrame, first: Sequence[str], limits: ReportLimits) -> list[RunRow]:
    member = F.when(~of_kind(*CLUSTER_EVENT_KINDS), F.col("member"))
    place = F.array_position(F.array(*map(F.lit, first)).cast("array<string>"), F.col("run"))
    rows = (
        events.groupBy("run")
        .agg(
            F.min("at").alias("start_us"),
            F.max("at").alias("end_us"),
            F.count("*").alias("events"),
            F.count_distinct(member).alias("members"),
        )
        .orderBy(F.nullif(place, F.lit(0)).asc_nulls_last(), *_natural_order("run"))
        .limit(limits.index)
        .collect()
    )
    return [RunRow(**row.asDict()) for row in rows]


def _natural_order(name: str) -> tuple[Column, ...]:
    """An order in which seed-9 comes before seed-10."""
    return F.regexp_replace(name, r"\d+", "0"), F.length(name), F.col(name)


def _handed_over(name: str, part: DataFrame) -> list[Any]:
    """The rows of one part, which becomes the field `name` of `ReportRows`; they travel as JSON, checked when they arrive."""
    kind = next(one.type for one in msgspec.structs.fields(ReportRows) if one.name == name)
    lines = [line for (line,) in part.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"})).collect()]
    rows: list[Any] = msgspec.json.decode(f"[{','.join(lines)}]", type=kind)
    return rows


def _parts(table_source: TableSource, runs: Mapping[str, RunRow], limits: ReportLimits) -> dict[str, DataFrame]:
    table, events = table_source.table, table_source.events
    starts = _of_run({name: run.start_us for name, run in runs.items()})
    ends = _of_run({name: run.end_us for name, run in runs.items()})
    lives = _lanes(table("lives"), limits)
    shown = lives.select("run", "uuid")
    migrations = table("migrations").withColumn("type", F.coalesce("type", F.lit("unknown")))
    splits = table_source.memoized("splits", lambda: METRICS["splits"].make(table_source))
    return {
        "lives": lives.select("run", "of", "member", "lanes", _life()),
        "views": _thinned(table("views").join(shown, ["run", "uuid"], "left_semi"), limits),
        "suspicions": _pairs(_with_durations(table("suspicions"), table("lives"), table("views"), ends), limits),
        "migrations": _first(migrations, _slowest_first(), limits.migrations, _migration(starts)),
        "outcomes": _counted(migrations, "type", "outcome"),
        "claims": _first(table("claims"), ["started_at", "uuid", "claim"], limits.rows, _claim(starts)),
        "merges": _first(table("merges"), ["left_at", "uuid"], limits.rows, _merge()),
        "faults": _first(
            table("faults"), ["from_at", "fault", "member", "source", "target"], limits.faults, _as_they_are(FaultRow)
        ),
        "kinds": _counted(events.select("run", F.col("event.kind").alias("kind")), "kind"),
        "splits": _first(splits, ["from_at"], limits.rows, _split()),
    }


def _measured(table_source: TableSource, limits: ReportLimits) -> dict[str, DataFrame]:
    measured = summary(table_source, "run").withColumnRenamed("by", "run")
    return {
        "metrics": _first(measured, ["metric", "kind"], limits.metrics, _as_they_are(Metric, bins=F.array())),
        "bins": _bins(samples(table_source)),
    }


def _of_run(values: Mapping[str, int]) -> Column:
    """The value that belongs to the run of a row."""
    return F.create_map(*(F.lit(part) for pair in values.items() for part in pair))[F.col("run")]


def _as_they_are(part: type, **others: Column) -> Column:
    """A part whose fields have the names of columns, but for `others`."""
    return _part(**{name: F.col(name) for name in get_type_hints(part)} | others)


def _part(**columns: Column) -> Column:
    """The part of a row, by the names that its fields have in the model."""
    return F.struct(*(column.alias(name) for name, column in columns.items())).alias("part")


def _text(name: str) -> Column:
    return F.coalesce(name, F.lit(""))


def _counted(rows: DataFrame, *fields: str) -> DataFrame:
    """How many rows of each run are alike in these fields."""
    part = _part(**{name: F.col(name) for name in (*fields, "times")})
    return rows.groupBy("run", *fields).agg(_times()).select("run", part)


def _times() -> Column:
    return F.count("*").alias("times")


def _first(rows: DataFrame, order: Sequence[str | Column], most: int, part: Column) -> DataFrame:
    """The first rows of each run, each as a `part`, with `of`: how many there are."""
    of_run = Window.partitionBy("run")
    ranked = rows.withColumns({"_place": F.row_number().over(of_run.orderBy(*order)), "of": F.count("*").over(of_run)})
    return ranked.where(F.col("_place") <= most).select("run", "of", part)


def _slowest_first() -> list[Column]:
    open_first = F.when(F.col("outcome") == "open", 0).otherwise(1)
    took = F.coalesce("decided_at", "finished_at") - F.col("started_at")
    return [open_first, took.desc_nulls_last(), F.col("migration_id")]


def _lanes(lives: DataFrame, limits: ReportLimits) -> DataFrame:
    """The incarnations of the members that came first."""
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
    return counted.where((F.col("lane") <= limits.lanes) & (F.col("_place") <= limits.lives))


def _thinned(views: DataFrame, limits: ReportLimits) -> DataFrame:
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
    at, own = F.col("last.at"), ("version", "lineage", "master")
    part = _part(
        uuid=F.col("uuid"),
        start_us=at,
        end_us=at,  # not known yet
        **{name: F.col(f"last.{name}") for name in own},
        members=addresses,
        size=F.size("last.members"),
        installs=F.col("installs"),
    )
    return spans.select("run", "of", "member", part)


def _with_durations(suspicions: DataFrame, lives: DataFrame, views: DataFrame, ends: Column) -> DataFrame:
    """What was never cleared lasted until the suspect was off the list, or the suspecting incarnation or the journal ended."""
    ended = lives.select("run", "uuid", "ended_at")
    suspect = F.struct(F.col("suspect").alias("address"), F.col("suspect_uuid").alias("uuid"))
    listed = F.transform("members", lambda one: F.struct(one["address"].alias("address"), one["uuid"].alias("uuid")))
    lists = views.select("run", "uuid", F.col("at").alias("listed_at"), listed.alias("listed"))
    off_list = (F.col("listed_at") >= F.col("raised_at")) & ~F.array_contains("listed", suspect)
    removed = (
        suspicions.join(lists, ["run", "uuid"])
        .where(off_list)
        .groupBy("run", "uuid", "raised_seq")
        .agg(F.min("listed_at").alias("removed_at"))
    )
    until = F.coalesce(F.least("cleared_at", "removed_at"), "ended_at", ends)
    return (
        suspicions.join(ended, ["run", "uuid"], "left")
        .join(removed, ["run", "uuid", "raised_seq"], "left")
        .withColumn("suspected_us", F.greatest(until - F.col("raised_at"), F.lit(0)))
        .withColumn("is_open", F.col("cleared_at").isNull() & F.col("removed_at").isNull())
    )


def _pairs(suspicions: DataFrame, limits: ReportLimits) -> DataFrame:
    pairs = suspicions.groupBy("run", F.col("member").alias("observer"), "suspect").agg(
        _times(), F.sum("suspected_us").alias("suspected_us"), F.count_if("is_open").alias("open")
    )
    order = [F.col("times").desc(), F.col("observer"), F.col("suspect")]
    return _first(pairs, order, limits.suspicions, _as_they_are(Suspicion))


def _bins(measured: DataFrame) -> DataFrame:
    """Histograms of whatever is measured in microseconds; what took less than one counts as one."""
    place = F.floor(F.log10(F.greatest("value", F.lit(1.0))) * BINS_PER_DECADE + ROUNDING)
    taken = measured.where("unit = 'us' and value is not null")
    return _counted(taken.withColumn("bin", place), "metric", "kind", "bin")


# Columns of tables as fields of the model


def _life() -> Column:
    return _part(
        uuid=F.col("uuid"),
        address=_text("address"),
        start_us=F.col("started_at"),
        end_us=F.col("ended_at"),
        end=_text("end"),
    )


def _migration(run_starts: Column) -> Column:
    return _as_they_are(
        Migration,
        source=_text("source"),
        destination=_text("destination"),
        start_us=F.coalesce("started_at", run_starts),
        copied_us=F.col("copied_at"),
        end_us=F.coalesce("decided_at", "finished_at"),
        reason=_text("reason"),
    )


def _claim(run_starts: Column) -> Column:
    return _as_they_are(
        Claim,
        start_us=F.coalesce("started_at", run_starts),
        end_us=F.col("ended_at"),
        left_out=F.coalesce("left_out", F.array().cast("array<string>")),
        reason=_text("reason"),
    )


def _merge() -> Column:
    texts = {name: _text(name) for name in ("target", "from_lineage", "to_lineage")}
    return _as_they_are(Merge, **texts, start_us=F.col("left_at"), end_us=F.col("joined_at"))


def _split() -> Column:
    return _part(
        number=F.lit(0),  # given when they are in order
        start_us=F.col("from_at"),
        end_us=F.col("to_at"),
        lasted_us=F.col("lasted_us"),
        healed_us=F.col("healed_at"),
        sides=F.col("sides"),
    )
