"""From events to the few rows that a report is made of, on Spark: one job for the index, one for the runs that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from backend.pipeline.report.limits import Limits
from backend.pipeline.report.rows import Rows, RunRow
from backend.pipeline.tables.columns import of_kind
from backend.pipeline.tables.registry import TABLES

OF_THE_CLUSTER = ("process-killed", "process-paused", "process-resumed", "link-changed")
"""What is recorded under the name of the cluster, not of a member."""

PERCENTILES = (0.5, 0.9, 0.99)
PERCENTILE_ACCURACY = 10_000
BINS_PER_DECADE = 3


def collect(events: DataFrame, with_findings: Collection[str], limits: Limits) -> Rows:
    """The rows for a report on `events` (columns of a record, each event once). `with_findings`: runs that come first.

    Spark reads the events twice; what it hands over is bounded by `limits` alone.
    """
    first = sorted(with_findings)[: limits.index]
    runs = _index(events, first, limits)
    shown = [run.run for run in runs[: limits.sections]]
    if not shown:
        return Rows(runs)
    wanted = events.where(F.col("run").isin(shown)).select(
        "run", "member", "uuid", "seq", "at", "utc", "event"
    )  # fmt: skip
    kept = wanted.persist()
    try:
        parts = _parts(kept, {run.run: run for run in runs}, limits)
        return _handed_over(runs, parts)
    finally:
        kept.unpersist()


def _index(events: DataFrame, first: list[str], limits: Limits) -> list[RunRow]:
    member = F.when(~of_kind(*OF_THE_CLUSTER), F.col("member"))
    rows = (
        events.groupBy("run")
        .agg(
            F.min("at").alias("start_us"),
            F.max("at").alias("end_us"),
            F.count("*").alias("events"),
            F.count_distinct(member).alias("members"),
        )
        .orderBy(F.col("run").isin(first).desc(), "run")
        .limit(limits.index)
        .collect()
    )
    return [RunRow(**row.asDict()) for row in rows]


def _handed_over(runs: list[RunRow], parts: Mapping[str, DataFrame]) -> Rows:
    """All parts in one job: a row of each travels as JSON, under the name of its field of `Rows`."""
    every: DataFrame | None = None
    for name, part in parts.items():
        lines = part.select(F.lit(name).alias("part"), F.to_json(F.struct("*")).alias("row"))
        every = lines if every is None else every.unionByName(lines)
    assert every is not None
    gathered: dict[str, list[bytes]] = {name: [] for name in parts}
    for part_name, row in every.collect():
        gathered[part_name].append(row.encode())
    return Rows(runs, **{name: _decoded(name, lines) for name, lines in gathered.items()})


def _decoded(name: str, lines: list[bytes]) -> list[Any]:
    kind = next(one.type for one in msgspec.structs.fields(Rows) if one.name == name)
    decoder = msgspec.json.Decoder(kind)
    rows: list[Any] = decoder.decode(b"[" + b",".join(lines) + b"]")
    return rows


def _parts(events: DataFrame, runs: Mapping[str, RunRow], limits: Limits) -> dict[str, DataFrame]:
    def table(name: str) -> DataFrame:
        return TABLES[name].make(events)

    ends = F.create_map(*(F.lit(part) for run in runs.values() for part in (run.run, run.end_us)))[F.col("run")]
    every_life = table("lives")
    migrations = table("migrations")
    claims, merges = table("claims"), table("merges")
    suspicions = _with_durations(table("suspicions"), every_life, ends)
    lives = _lanes(every_life, limits)
    return {
        "lives": lives,
        "views": _thinned(table("views").join(lives.select("run", "uuid"), ["run", "uuid"], "left_semi"), limits),
        "suspicions": _pairs(suspicions, limits),
        "migrations": _first(migrations, _slowest_first(), limits.migrations),
        "outcomes": migrations.groupBy("run", F.coalesce("type", F.lit("?")).alias("type"), "outcome").agg(_times()),
        "claims": _first(claims, [F.col("started_at"), F.col("uuid"), F.col("claim")], limits.rows),
        "merges": _first(merges, [F.col("left_at"), F.col("uuid")], limits.rows),
        "faults": _first(table("faults"), [F.col(name) for name in ("from_at", "fault", "member", "source", "target")],
                         limits.faults),
        "kinds": events.groupBy("run", F.col("event.kind").alias("kind")).agg(_times()),
        "durations": _durations(
            {
                "suspicion until cleared": _took(suspicions.where("cleared_at is not null"), "raised_at", "cleared_at"),
                "claim": _took(claims, "started_at", "ended_at"),
                "merge of a member": _took(merges, "left_at", "joined_at"),
                "migration": _took(migrations, "started_at", "decided_at"),
                "copying in a migration": migrations.select("run", F.col("copy_us").alias("us")),
                "write": table("writes").where("outcome = 'acknowledged'").select("run", F.col("took").alias("us")),
                "read": table("reads").where("outcome = 'answered'").select("run", F.col("took").alias("us")),
            }
        ),
    }  # fmt: skip


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


def _took(rows: DataFrame, start: str, end: str) -> DataFrame:
    return rows.select("run", (F.col(end) - F.col(start)).alias("us"))


def _durations(by_name: Mapping[str, DataFrame]) -> DataFrame:
    """Percentiles and a histogram of each, by run. What took less than a microsecond counts as one."""
    every: DataFrame | None = None
    for what, rows in by_name.items():
        named = rows.where("us is not null").select("run", F.lit(what).alias("what"), F.greatest("us", F.lit(1)).alias("us"))
        every = named if every is None else every.unionByName(named)
    assert every is not None
    place = F.floor(F.log10("us") * BINS_PER_DECADE + 1e-9).cast("string")
    bins = every.groupBy("run", "what", place.alias("bin")).agg(F.count("*").alias("in_bin"))
    histogram = bins.groupBy("run", "what").agg(F.map_from_entries(F.collect_list(F.struct("bin", "in_bin"))).alias("bins"))
    ranks = F.percentile_approx("us", list(PERCENTILES), PERCENTILE_ACCURACY)
    measured = every.groupBy("run", "what").agg(
        _times(), F.min("us").alias("least_us"), F.max("us").alias("most_us"), ranks.alias("ranks")
    )
    named_ranks = [F.get("ranks", F.lit(place)).alias(f"p{round(rank * 100)}_us") for place, rank in enumerate(PERCENTILES)]
    columns = ("run", "what", "times", "least_us", "most_us", "bins")
    return measured.join(histogram, ["run", "what"]).select(*columns, *named_ranks)
