"""Who believed what, and when: the lists of incarnations as spans of time, which most other metrics begin with."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.spans import subtract
from quarterdeck.backend.pipeline.metrics.table_source import TableSource


def running(table_source: TableSource) -> DataFrame:
    """Spans in which incarnations ran, frozen ones included: run, uuid, member, address, settings, joined_at, from_at, to_at.

    `ends` is null for an incarnation that goes on to the end of the journal.
    """

    def make() -> DataFrame:
        return (
            table_source.table("lives")
            .join(table_source.ends(), "run")
            .select(
                *("run", "uuid", "member", "address", "settings", "joined_at", "end"),
                F.col("started_at").alias("from_at"),
                F.coalesce("ended_at", "run_ended_at").alias("to_at"),
            )
        )

    return table_source.memoized("running", make)


def frozen(table_source: TableSource) -> DataFrame:
    """Spans in which incarnations stood still: run, uuid, from_at, to_at."""
    return table_source.memoized("frozen", lambda: _frozen(table_source))


def _frozen(table_source: TableSource) -> DataFrame:
    pauses = table_source.table("faults").where("fault = 'pause'").select("run", "member", "from_at", "to_at")
    lives = running(table_source).select(
        "run", "member", "uuid", F.col("from_at").alias("began"), F.col("to_at").alias("ended")
    )
    of_lives = pauses.join(lives, ["run", "member"]).where("from_at >= began and from_at < ended")
    return of_lives.select("run", "uuid", "from_at", F.coalesce(F.least("to_at", "ended"), "ended").alias("to_at"))


def view_spans(table_source: TableSource) -> DataFrame:
    """Spans in which an incarnation held one list.

    Columns run, uuid, member, lineage, version, size, listed (uuids), master, leads (whether it is itself the master),
    from_at, to_at.
    """
    return table_source.memoized("view spans", lambda: _view_spans(table_source))


def _view_spans(table_source: TableSource) -> DataFrame:
    in_order = Window.partitionBy("run", "uuid").orderBy("seq")
    lives = running(table_source).select("run", "uuid", "address", F.col("to_at").alias("life_to"))
    held = table_source.table("views").withColumn("next_at", F.lead("at").over(in_order)).join(lives, ["run", "uuid"])
    return held.select(
        *("run", "uuid", "member", "lineage", "version", "master"),
        F.size("members").alias("size"),
        F.transform("members", lambda member: member["uuid"]).alias("listed"),
        (F.col("master") == F.col("address")).alias("leads"),
        F.col("at").alias("from_at"),
        F.coalesce("next_at", "life_to").alias("to_at"),
    )


def masters(table_source: TableSource) -> DataFrame:
    """Spans in which an incarnation led a cluster and did not stand still: run, uuid, member, lineage, from_at, to_at."""

    def make() -> DataFrame:
        leading = view_spans(table_source).where("leads and from_at < to_at")
        return subtract(leading, frozen(table_source), ["run", "uuid"], ["run", "uuid", "member", "lineage"])

    return table_source.memoized("masters", make)


def fault_ends(table_source: TableSource) -> DataFrame:
    """When faults were over: columns run, at and what, which is `mended` for a link and `resumed` for a member.

    What only became another fault is not over.
    """
    of_one = Window.partitionBy("run", F.coalesce("member", F.concat_ws(">", "source", "target"))).orderBy("from_at")
    faults = table_source.table("faults").withColumn("next_at", F.lead("from_at").over(of_one))
    over = faults.where("fault <> 'kill' and to_at is not null and to_at < coalesce(next_at, to_at + 1)")
    what = F.when(F.col("fault") == "pause", "resumed").otherwise("mended")
    return over.select("run", F.col("to_at").alias("at"), what.alias("what"))
