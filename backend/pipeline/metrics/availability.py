"""How long partitions had no owner that could answer, or too few replicas, according to the masters' tables.

Each side of a split counts by itself, with the table of its master. A holder counts until its incarnation ends, even when it
cannot be reached; a frozen owner answers no request.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.expressions import of_kind, setting_count, shaped
from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import schema

AVAILABILITY = schema(
    """
    run
    master_uuid string the incarnation of the master whose table this is
    master string its label
    partition int the partition
    observed_us bigint how long that master led with a table; all spans are in microseconds
    wanted int replicas that the partition should have: one more than backups are set, else the most it ever had
    without_owner_us bigint how long it had no owner that ran and was not frozen
    without_owner_times bigint how many times
    longest_without_owner_us bigint the longest of them
    fewer_replicas_us bigint how long it had fewer replicas than wanted, the owner included
    fewer_replicas_times bigint how many times
    """
)

_KEY = ["run", "uuid", "partition"]


def availability(source: TableSource) -> DataFrame:
    """Make one row for each partition and each master that led with a table."""
    rows = source.memoized("rows", lambda: _rows(source))
    counted = source.memoized("replicas at once", lambda: _counted(source, rows))
    ownerless = _summed(merge_adjacent(counted, _KEY, F.expr("owners = 0")), "without_owner")
    fewer = _summed(merge_adjacent(counted, _KEY, F.expr("replicas < wanted")), "fewer_replicas")
    observed = counted.groupBy(*_KEY, "member", "wanted").agg(F.expr("sum(to_at - from_at) AS observed_us"))
    whole = observed.join(ownerless, _KEY, "left").join(fewer, _KEY, "left").fillna(0)
    return shaped(whole.withColumnsRenamed({"uuid": "master_uuid", "member": "master"}), AVAILABILITY)


def _counted(source: TableSource, rows: DataFrame) -> DataFrame:
    """Return stretches of each row in which the same holders are there: owners, replicas, wanted, member."""
    # A row without holders still spans its time.
    spans = rows.selectExpr(*_KEY, "from_at", "to_at", "1 AS rows", "0 AS owners", "0 AS replicas")
    counted = concurrent_sums(spans.unionByName(_holding(source, rows)), _KEY, "rows", "owners", "replicas")
    return counted.where("rows > 0").join(_wanted(source, rows), _KEY)


def _rows(source: TableSource) -> DataFrame:
    """Return rows of the masters' own tables as spans: run, uuid, member, partition, holders (uuids), from_at, to_at."""
    leading = source.masters().selectExpr("run", "uuid", "member", "from_at AS led_from", "to_at AS led_to")
    following = Window.partitionBy(*_KEY).orderBy("seq")
    # A row of `table-changed` has the partition, its version, and then the places of its holders.
    holders = (
        "transform(slice(row, 3, size(row)), place -> if(place >= 0, get(holders.uuid, cast(place AS int)), NULL))"
    )
    rows = (
        source.events.where(of_kind("table-changed"))
        .join(leading.select("run", "uuid").distinct(), ["run", "uuid"], "left_semi")
        .select("run", "uuid", "seq", "at", "event.holders", F.explode("event.rows").alias("row"))
        .withColumn("partition", F.col("row")[0].cast("int"))
        .withColumn("next_at", F.lead("at").over(following))
        .selectExpr(*_KEY, "at", "next_at", f"{holders} AS holders")
    )
    clipped = rows.join(leading, ["run", "uuid"]).selectExpr(
        *(*_KEY, "member", "holders"),
        *("greatest(at, led_from) AS from_at", "coalesce(least(next_at, led_to), led_to) AS to_at"),
    )
    return clipped.where("from_at < to_at")


def _holding(source: TableSource, rows: DataFrame) -> DataFrame:
    """Return for each holder in a row the part of its span in which it ran; minus one owner where that one was frozen."""
    holders = rows.select(*_KEY, "from_at", "to_at", F.posexplode("holders").alias("index", "holder")).where(
        "holder IS NOT NULL"
    )
    ran = source.running().selectExpr("run", "uuid AS holder", "to_at AS ended_at")
    living = holders.join(ran, ["run", "holder"]).selectExpr(
        *(*_KEY, "from_at", "least(to_at, ended_at) AS to_at"),
        *("0 AS rows", "if(index = 0, 1, 0) AS owners", "1 AS replicas"),
    )
    still = source.frozen().selectExpr("run", "uuid AS holder", "from_at AS still_from", "to_at AS still_to")
    stopped = (
        holders.where("index = 0")
        .join(still, ["run", "holder"])
        .where("from_at < still_to AND still_from < to_at")
        .selectExpr(
            *(*_KEY, "greatest(from_at, still_from) AS from_at", "least(to_at, still_to) AS to_at"),
            *("0 AS rows", "-1 AS owners", "0 AS replicas"),
        )
    )
    return living.where("from_at < to_at").unionByName(stopped)


def _wanted(source: TableSource, rows: DataFrame) -> DataFrame:
    """Return how many replicas each partition should have, with the master's label: as set, else the most there were."""
    backups = source.running().select(
        "run", "uuid", setting_count("settings", "quarterdeck.backup.count").alias("backups")
    )
    most = rows.groupBy("run").agg(F.expr("max(size(array_compact(holders))) AS most"))
    named = rows.groupBy(*_KEY).agg(F.first("member").alias("member"))
    wanted = "cast(coalesce(backups + 1, most) AS int) AS wanted"
    return named.join(backups, ["run", "uuid"]).join(most, "run").selectExpr(*_KEY, "member", wanted)


def _summed(spans: DataFrame, name: str) -> DataFrame:
    return spans.groupBy(*_KEY).agg(
        F.expr(f"sum(to_at - from_at) AS {name}_us"),
        F.expr(f"count(*) AS {name}_times"),
        F.expr(f"max(to_at - from_at) AS longest_{name}_us"),
    )
