"""Who believed what, and when: the lists of lives as spans of time, which most other metrics begin with."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.material import Material
from quarterdeck.backend.pipeline.metrics.spans import without


def running(material: Material) -> DataFrame:
    """Spans in which lives ran, frozen ones included: run, uuid, member, address, settings, joined_at, from_at, to_at.

    `ends` is null for a life that goes on to the end of the journal.
    """

    def make() -> DataFrame:
        return (
            material.table("lives")
            .join(material.ends(), "run")
            .select(
                *("run", "uuid", "member", "address", "settings", "joined_at", "end"),
                F.col("started_at").alias("from_at"),
                F.coalesce("ended_at", "run_ended_at").alias("to_at"),
            )
        )

    return material.kept("running", make)


def frozen(material: Material) -> DataFrame:
    """Spans in which lives stood still: run, uuid, from_at, to_at."""
    return material.kept("frozen", lambda: _frozen(material))


def _frozen(material: Material) -> DataFrame:
    pauses = material.table("faults").where("fault = 'pause'").select("run", "member", "from_at", "to_at")
    lives = running(material).select(
        "run", "member", "uuid", F.col("from_at").alias("began"), F.col("to_at").alias("ended")
    )
    of_lives = pauses.join(lives, ["run", "member"]).where("from_at >= began and from_at < ended")
    return of_lives.select("run", "uuid", "from_at", F.coalesce(F.least("to_at", "ended"), "ended").alias("to_at"))


def beliefs(material: Material) -> DataFrame:
    """Spans in which a life held one list.

    Columns run, uuid, member, lineage, version, size, listed (uuids), master, leads (whether it is itself the master),
    from_at, to_at.
    """
    return material.kept("beliefs", lambda: _beliefs(material))


def _beliefs(material: Material) -> DataFrame:
    in_order = Window.partitionBy("run", "uuid").orderBy("seq")
    lives = running(material).select("run", "uuid", "address", F.col("to_at").alias("life_to"))
    held = material.table("views").withColumn("next_at", F.lead("at").over(in_order)).join(lives, ["run", "uuid"])
    return held.select(
        *("run", "uuid", "member", "lineage", "version", "master"),
        F.size("members").alias("size"),
        F.transform("members", lambda member: member["uuid"]).alias("listed"),
        (F.col("master") == F.col("address")).alias("leads"),
        F.col("at").alias("from_at"),
        F.coalesce("next_at", "life_to").alias("to_at"),
    )


def masters(material: Material) -> DataFrame:
    """Spans in which a life led a cluster and did not stand still: run, uuid, member, lineage, from_at, to_at."""

    def make() -> DataFrame:
        leading = beliefs(material).where("leads and from_at < to_at")
        return without(leading, frozen(material), ["run", "uuid"], ["run", "uuid", "member", "lineage"])

    return material.kept("masters", make)
