"""How long partitions had no owner that could answer, or fewer replicas than they should, as the masters' tables have it.

Each side of a split counts by itself, with the table of its master. A holder counts until its incarnation ends, even when it
cannot be reached; a frozen owner answers nobody.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.metrics.view_spans import frozen, masters, running
from quarterdeck.backend.pipeline.tables.columns import INDEX, NUMBER, RUN, TEXT, of_kind, schema, setting_count, shaped

AVAILABILITY = schema(
    RUN,
    ("master_uuid", TEXT, "the incarnation of the master whose table this is"),
    ("master", TEXT, "its label"),
    ("partition", INDEX, "the partition"),
    ("observed_us", NUMBER, "how long that master led with a table; all spans are in microseconds"),
    (
        "wanted",
        INDEX,
        "replicas that the partition should have: one more than backups are set, else the most it ever had",
    ),
    ("without_owner_us", NUMBER, "how long it had no owner that lived and was not frozen"),
    ("without_owner_times", NUMBER, "how many times"),
    ("longest_without_owner_us", NUMBER, "the longest of them"),
    ("fewer_replicas_us", NUMBER, "how long fewer replicas lived than wanted, the owner included"),
    ("fewer_replicas_times", NUMBER, "how many times"),
)

_OF_ONE = ["run", "uuid", "partition"]
_FIRST_REPLICA = 2
"""Where the holders begin in a row of `table-changed`: after the partition and its version."""


def availability(table_source: TableSource) -> DataFrame:
    """One row for each partition and each master that led with a table (schema `AVAILABILITY`)."""
    rows = table_source.memoized("rows", lambda: _rows(table_source))
    counted = table_source.memoized("replicas at once", lambda: _counted(table_source, rows))
    ownerless = _summed(merge_adjacent(counted, _OF_ONE, F.expr("owners = 0")), "without_owner")
    fewer = _summed(merge_adjacent(counted, _OF_ONE, F.expr("replicas < wanted")), "fewer_replicas")
    observed = counted.groupBy(*_OF_ONE, "member", "wanted").agg(F.sum(F.expr("to_at - from_at")).alias("observed_us"))
    whole = observed.join(ownerless, _OF_ONE, "left").join(fewer, _OF_ONE, "left").fillna(0)
    return shaped(whole.withColumnsRenamed({"uuid": "master_uuid", "member": "master"}), AVAILABILITY)


def _counted(table_source: TableSource, rows: DataFrame) -> DataFrame:
    """Stretches of each row in which the same holders are there: owners, replicas, wanted, member."""
    # A row without anybody still spans its time.
    spans = rows.select(*_OF_ONE, "from_at", "to_at", F.lit(1).alias("told"), *_none("owners", "replicas"))
    counted = concurrent_sums(spans.unionByName(_there(table_source, rows)), _OF_ONE, "told", "owners", "replicas")
    return counted.where("told > 0").join(_wanted(table_source, rows), _OF_ONE)


def _rows(table_source: TableSource) -> DataFrame:
    """Rows of the masters' own tables as spans: run, uuid, member, partition, holders (uuids), from_at, to_at."""
    leading = masters(table_source).select(
        "run", "uuid", "member", F.col("from_at").alias("led_from"), F.col("to_at").alias("led_to")
    )
    ever = leading.select("run", "uuid").distinct()
    changed = (
        table_source.events.where(of_kind("table-changed"))
        .join(ever, ["run", "uuid"], "left_semi")
        .select("run", "uuid", "seq", "at", "event.holders", F.explode("event.rows").alias("row"))
    )
    row = F.col("row")
    places = F.slice(row, _FIRST_REPLICA + 1, F.size(row))
    holders = F.transform(places, lambda place: F.when(place >= 0, F.get("holders.uuid", place.cast("int"))))
    following = Window.partitionBy(*_OF_ONE).orderBy("seq")
    rows = (
        changed.withColumn("partition", row[0].cast("int"))
        .withColumn("next_at", F.lead("at").over(following))
        .select(*_OF_ONE, "at", "next_at", holders.alias("holders"))
    )
    clipped = rows.join(leading, ["run", "uuid"]).select(
        *_OF_ONE,
        "member",
        "holders",
        F.greatest("at", "led_from").alias("from_at"),
        F.coalesce(F.least("next_at", "led_to"), "led_to").alias("to_at"),
    )
    return clipped.where("from_at < to_at")


def _there(table_source: TableSource, rows: DataFrame) -> DataFrame:
    """For each holder in a row, the part of its span in which it lived; minus one owner where that one stood still."""
    holders = rows.select(*_OF_ONE, "from_at", "to_at", F.posexplode("holders").alias("index", "holder")).where(
        "holder is not null"
    )
    lives = running(table_source).select("run", F.col("uuid").alias("holder"), F.col("to_at").alias("life_to"))
    living = holders.join(lives, ["run", "holder"]).select(
        *_OF_ONE,
        "from_at",
        F.least("to_at", "life_to").alias("to_at"),
        F.lit(0).alias("told"),
        (F.col("index") == 0).cast("int").alias("owners"),
        F.lit(1).alias("replicas"),
    )
    still = frozen(table_source).select(
        "run", F.col("uuid").alias("holder"), F.col("from_at").alias("still_from"), F.col("to_at").alias("still_to")
    )
    stopped = (
        holders.where("index = 0")
        .join(still, ["run", "holder"])
        .where("from_at < still_to and still_from < to_at")
        .select(
            *_OF_ONE,
            F.greatest("from_at", "still_from").alias("from_at"),
            F.least("to_at", "still_to").alias("to_at"),
            F.lit(0).alias("told"),
            F.lit(-1).alias("owners"),
            F.lit(0).alias("replicas"),
        )
    )
    return living.where("from_at < to_at").unionByName(stopped)


def _wanted(table_source: TableSource, rows: DataFrame) -> DataFrame:
    """How many replicas each partition should have, with the master's label: as its master is set, else the most there were."""
    backups = running(table_source).select(
        "run", "uuid", setting_count("settings", "quarterdeck.backup.count").alias("backups")
    )
    most = rows.groupBy("run").agg(F.max(F.size(F.array_compact("holders"))).alias("most"))
    named = rows.groupBy(*_OF_ONE).agg(F.first("member").alias("member"))
    wanted = F.coalesce(F.col("backups") + 1, F.col("most")).cast("int").alias("wanted")
    return named.join(backups, ["run", "uuid"]).join(most, "run").select(*_OF_ONE, "member", wanted)


def _summed(spans: DataFrame, name: str) -> DataFrame:
    length = F.expr("to_at - from_at")
    return spans.groupBy(*_OF_ONE).agg(
        F.sum(length).alias(f"{name}_us"),
        F.count("*").alias(f"{name}_times"),
        F.max(length).alias(f"longest_{name}_us"),
    )


def _none(*names: str) -> tuple[Column, ...]:
    return tuple(F.lit(0).alias(name) for name in names)
