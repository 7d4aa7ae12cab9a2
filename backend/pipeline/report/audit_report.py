"""Reduces the events that an audit judged to the few rows of its report, on the same Spark.

First come the rows of the index, one for each run, then the parts of the few runs that have a section.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.audit_lines import InputLines
from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.metrics.expressions import of_kind
from quarterdeck.backend.pipeline.metrics.summary import metric_table, samples, summary
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.report.builder import build_report
from quarterdeck.backend.pipeline.report.rows import BINS_PER_DECADE, ReportLimits, ReportRows, Row
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.columns import CLUSTER_EVENT_KINDS

ROUNDING = 1e-9
"""Keeps 1000 microseconds at the beginning of a bin, whatever the logarithm makes of them."""

FIELDS: dict[str, Sequence[str]] = {
    "lives": (
        "uuid", "coalesce(address, '') AS address", "started_at AS start_us", "ended_at AS end_us",
        "coalesce(end, '') AS end",
    ),
    "views": (
        "uuid", "last.at AS start_us", "last.at AS end_us", "last.version AS version", "last.lineage AS lineage",
        "last.master AS master", "last.members.address AS members", "last.size AS size", "installs",
    ),
    "suspicions": ("observer", "suspect", "times", "suspected_us", "open"),
    "migrations": (
        "migration_id", "partition", "type", "coalesce(source, '') AS source",
        "coalesce(destination, '') AS destination", "coalesce(started_at, run_began_at) AS start_us",
        "copied_at AS copied_us", "coalesce(decided_at, finished_at) AS end_us", "outcome", "bytes", "rejections",
        "coalesce(reason, '') AS reason",
    ),
    "claims": (
        "member", "coalesce(started_at, run_began_at) AS start_us", "ended_at AS end_us", "outcome", "version",
        "new_version", "accepted", "refused", "retried", "coalesce(left_out, array()) AS left_out",
        "coalesce(reason, '') AS reason",
    ),
    "merges": (
        "member", "coalesce(target, '') AS target", "coalesce(from_lineage, '') AS from_lineage",
        "coalesce(to_lineage, '') AS to_lineage", "left_at AS start_us", "joined_at AS end_us",
    ),
    "faults": (
        "fault", "from_at", "member", "source", "target", "to_at", "blocked", "delay", "loss", "duplicate",
        "dropped_kinds", "worse_kinds",
    ),
    "splits": (
        "0 AS number", "from_at AS start_us", "to_at AS end_us", "lasted_us", "healed_at AS healed_us",
        "transform(sides, side -> named_struct('lineage', side.lineage, 'master', side.master,"
        " 'members', side.members)) AS sides",
    ),
    "metrics": (
        "metric", "kind", "unit", "count", "missing", "floor", "least", "mean", "p50", "p90", "p99", "most",
    ),
}  # fmt: skip
"""By section, the fields that it shows, as Spark computes them from the columns of the tables."""


def report_on(lines: InputLines, result: AuditResult, limits: ReportLimits | None = None) -> Row:
    """Return the report on `lines`, of which `result` is the audit."""
    limits = limits or ReportLimits()
    first = dict.fromkeys(
        [finding.run for finding in result.findings] + [observation.run for observation in result.observations]
    )
    rows = _collect(lines.events, list(first), limits, is_measured=lines.source.kind == "journal")
    return build_report(rows, result, lines.source, limits)


def _collect(events: DataFrame, first: Sequence[str], limits: ReportLimits, *, is_measured: bool) -> ReportRows:
    """Collect the rows for a report on `events`: columns of a record, each event once. Runs in `first` come first."""
    runs = _index(events, first[: limits.index], limits)
    shown = [run.run for run in runs[: limits.sections]]
    if not shown:
        return ReportRows(runs, {})
    # The checkpoint drops the long plan of the events, on which all parts would be planned.
    source = TableSource(events.where(F.col("run").isin(shown)).select(*RECORD.names).localCheckpoint())
    parts = _parts(source, limits)
    if is_measured:
        measured = summary(source, "run").withColumnRenamed("by", "run")
        parts["metrics"] = _first("metrics", measured, ["metric", "kind"], limits.metrics)
        parts["bins"] = _bins(samples(source))
    return ReportRows(runs, {name: _rows(part) for name, part in parts.items()})


def _index(events: DataFrame, first: Sequence[str], limits: ReportLimits) -> list[Row]:
    member = F.when(~of_kind(*CLUSTER_EVENT_KINDS), F.col("member"))
    place = F.array_position(F.array(*map(F.lit, first)).cast("array<string>"), F.col("run"))
    natural = (F.regexp_replace("run", r"\d+", "0"), F.length("run"), F.col("run"))  # seed-9 comes before seed-10
    rows = (
        events.groupBy("run")
        .agg(
            F.min("at").alias("start_us"),
            F.max("at").alias("end_us"),
            F.count("*").alias("events"),
            F.count_distinct(member).alias("members"),
        )
        .orderBy(F.nullif(place, F.lit(0)).asc_nulls_last(), *natural)
        .limit(limits.index)
        .collect()
    )
    return [Row(row.asDict()) for row in rows]


def _rows(part: DataFrame) -> list[Row]:
    lines = part.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"})).collect()
    return [json.loads(line, object_hook=Row) for (line,) in lines]


def _parts(source: TableSource, limits: ReportLimits) -> dict[str, DataFrame]:
    table, ends = source.table, source.ends()
    incarnations = _lanes(table("lives"), limits)
    shown = incarnations.select("run", "uuid")
    migrations = table("migrations").withColumn("type", F.coalesce("type", F.lit("unknown")))
    open_first = F.when(F.col("outcome") == "open", 0).otherwise(1)
    duration = F.expr("coalesce(decided_at, finished_at) - started_at")
    slowest_first = [open_first, duration.desc_nulls_last(), F.col("migration_id")]
    fault_order = ["from_at", "fault", "member", "source", "target"]
    return {
        "lives": incarnations.select("run", "of", "member", "lanes", _part("lives")),
        "views": _thinned(table("views").join(shown, ["run", "uuid"], "left_semi"), limits),
        "suspicions": _pairs(_with_durations(source), limits),
        "migrations": _first("migrations", migrations.join(ends, "run"), slowest_first, limits.migrations),
        "outcomes": _counted(migrations, "type", "outcome"),
        "claims": _first("claims", table("claims").join(ends, "run"), ["started_at", "uuid", "claim"], limits.rows),
        "merges": _first("merges", table("merges"), ["left_at", "uuid"], limits.rows),
        "faults": _first("faults", table("faults"), fault_order, limits.faults),
        "kinds": _counted(source.events.select("run", F.col("event.kind").alias("kind")), "kind"),
        "splits": _first("splits", metric_table(source, "splits"), ["from_at"], limits.rows),
    }


def _part(name: str) -> Column:
    return F.struct(*map(F.expr, FIELDS[name])).alias("part")


def _counted(rows: DataFrame, *fields: str) -> DataFrame:
    """Count the rows of each run that are alike in these fields."""
    counted = rows.groupBy("run", *fields).agg(F.count("*").alias("times"))
    return counted.select("run", F.struct(*fields, "times").alias("part"))


def _first(name: str, rows: DataFrame, order: Sequence[str | Column], most: int) -> DataFrame:
    """Return the first rows of each run as parts of section `name`, with `of`: how many there are."""
    of_run = Window.partitionBy("run")
    ranked = rows.withColumns({"_place": F.row_number().over(of_run.orderBy(*order)), "of": F.count("*").over(of_run)})
    return ranked.where(F.col("_place") <= most).select("run", "of", _part(name))


def _lanes(incarnations: DataFrame, limits: ReportLimits) -> DataFrame:
    """Return the incarnations of the members that started first."""
    of_member, of_run = Window.partitionBy("run", "member"), Window.partitionBy("run")
    in_lane = incarnations.withColumns(
        {
            "_came": F.min("started_at").over(of_member),
            "_place": F.row_number().over(of_member.orderBy("started_at", "uuid")),
            "of": F.count("*").over(of_member),
        }
    )
    lanes = in_lane.withColumn("lane", F.dense_rank().over(of_run.orderBy("_came", "member")))
    counted = lanes.withColumn("lanes", F.max("lane").over(of_run))
    return counted.where((F.col("lane") <= limits.lanes) & (F.col("_place") <= limits.incarnations))


def _thinned(views: DataFrame, limits: ReportLimits) -> DataFrame:
    """Return each list of a short lane; of a longer one, the last list in each of `limits.marks` equal spans of the run."""
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
    members = F.slice("members", 1, limits.names).alias("members"), F.size("members").alias("size")
    last = F.max_by(F.struct("at", "version", "lineage", "master", *members), "seq").alias("last")
    spans = binned.groupBy("run", "member", "uuid", "_bin").agg(
        last, F.count("*").alias("installs"), F.max("of").alias("of")
    )
    return spans.select("run", "of", "member", _part("views"))


def _with_durations(source: TableSource) -> DataFrame:
    """Add how long each suspicion lasted.

    One that was never cleared ends when the observer's list lacks the suspect, or with the observer's incarnation or the run.
    """
    suspicions, views = source.table("suspicions"), source.table("views")
    suspect = F.struct(F.col("suspect").alias("address"), F.col("suspect_uuid").alias("uuid"))
    listed = F.expr("transform(members, member -> named_struct('address', member.address, 'uuid', member.uuid))")
    lists = views.select("run", "uuid", F.col("at").alias("listed_at"), listed.alias("listed"))
    off_list = (F.col("listed_at") >= F.col("raised_at")) & ~F.array_contains("listed", suspect)
    removed = (
        suspicions.join(lists, ["run", "uuid"])
        .where(off_list)
        .groupBy("run", "uuid", "raised_seq")
        .agg(F.min("listed_at").alias("removed_at"))
    )
    until = "coalesce(least(cleared_at, removed_at), ended_at, run_ended_at)"
    return (
        suspicions.join(source.ends(), "run")
        .join(source.table("lives").select("run", "uuid", "ended_at"), ["run", "uuid"], "left")
        .join(removed, ["run", "uuid", "raised_seq"], "left")
        .withColumn("suspected_us", F.expr(f"greatest({until} - raised_at, 0)"))
        .withColumn("is_open", F.expr("cleared_at IS NULL AND removed_at IS NULL"))
    )


def _pairs(suspicions: DataFrame, limits: ReportLimits) -> DataFrame:
    pairs = suspicions.groupBy("run", F.col("member").alias("observer"), "suspect").agg(
        F.count("*").alias("times"), F.sum("suspected_us").alias("suspected_us"), F.count_if("is_open").alias("open")
    )
    return _first("suspicions", pairs, [F.col("times").desc(), "observer", "suspect"], limits.suspicions)


def _bins(measured: DataFrame) -> DataFrame:
    """Count samples in microseconds by bin; durations below one microsecond count as one."""
    place = F.floor(F.log10(F.greatest("value", F.lit(1.0))) * BINS_PER_DECADE + ROUNDING)
    durations = measured.where("unit = 'us' and value is not null")
    return _counted(durations.withColumn("bin", place), "metric", "kind", "bin")
