"""Convergence (design section 7): when nothing disturbs the members any more they become one cluster, and its data safe and even.

Judged at the end of a run that has been calm for longer than the bound, as a swarm run judges it (`simulation.convergence`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.pipeline.rules.evidence import INCARNATION_KEY, INCARNATION_START_KINDS, Evidence, uuids
from quarterdeck.backend.pipeline.rules.names import CONVERGENCE
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, rule
from quarterdeck.backend.simulation.swarm_testing.convergence import convergence_bound_us, table_bound_us

OWN = ("member", "uuid", "seq", "at")


def _least_bound_us(evidence: Evidence) -> int:
    """No run has to become one cluster sooner than this."""
    if evidence.bound_us is not None:
        return evidence.bound_us
    settings = Settings.of()
    return convergence_bound_us(settings, 0) + table_bound_us(settings)


@rule(CONVERGENCE, kinds=("list-installed",), least_calm_us=_least_bound_us)
def runs_that_never_agree(evidence: Evidence) -> DataFrame:
    """One finding for a run: the first thing that is not as it should be."""
    present = _present(evidence)
    runs = present.groupBy("run").agg(
        F.count("*").alias("alive"),
        F.array_sort(F.collect_set("uuid")).alias("uuids"),
        F.count_if(F.col("view").isNull()).alias("outside"),
        F.count_distinct("view.lineage", "view.version", "view.master").alias("lists"),
        F.count_distinct(F.coalesce(F.concat_ws(" ", "table.version", "table.digest"), F.lit(""))).alias("tables"),
        F.max_by("label", F.when(F.col("view").isNull(), F.col("label"))).alias("outsider"),
        F.max_by(F.struct("label", "suspects"), F.when(F.size("suspects") > 0, F.col("label"))).alias("suspicious"),
        F.max_by(F.struct("view.*", "label", "uuid"), "view.place").alias("latest"),
        F.max_by(F.struct("known.*", "uuid"), "known.place").alias("known"),
        F.bool_or("paused").alias("paused"),
    )
    calm = evidence.calm.withColumn("calm_us", F.col("ends_us") - F.col("disturbed_us"))
    patient = (
        runs.join(calm, ["run"])
        .where(~F.col("paused") & (F.size("links") == 0))
        .where(F.col("calm_us") > _bound_us(evidence, F.col("alive")))
        .join(_rows_at_the_end(evidence), ["run"], "left")
    )
    latest = F.col("latest")
    running = F.size(F.array_except("uuids", uuids(latest["members"])))
    gone = F.size(F.array_except(uuids(latest["members"]), "uuids"))
    wrong = F.coalesce(
        F.when(F.col("outside") > 0, F.format_string("%s belongs to no cluster", "outsider")),
        F.when(F.col("lists") > 1, F.format_string("%d different lists among %d members", "lists", "alive")),
        F.when(running > 0, F.format_string("%d members run that are not on the list of %s", running, latest["label"])),
        F.when(gone > 0, F.format_string("%d members on the list of %s do not run", gone, latest["label"])),
        F.when(
            F.col("suspicious").isNotNull(),
            F.format_string("%s suspects %s", "suspicious.label", F.array_join("suspicious.suspects", ", ")),
        ),
        F.when(F.col("tables") > 1, F.format_string("%d different tables among %d members", "tables", "alive")),
        F.col("unsafe"),
        F.col("uneven"),
    )
    sentence = F.format_string(
        "%s, after %.1f s in which nothing was done to the cluster", wrong, F.col("calm_us") / 1e6
    )
    # Where nobody has a list, what is known of a member at all shows it.
    shown = [F.coalesce(latest[name], F.col("known")[name]).alias(name) for name in (*OWN, "witness")]
    at_latest = patient.select("run", *shown, F.when(wrong.isNotNull(), sentence).alias("sentence"))
    broken = F.when(F.col("sentence").isNotNull(), finding_column(CONVERGENCE, F.col("sentence"), F.col("witness")))
    return findings(at_latest, broken)


def _bound_us(evidence: Evidence, members: Column) -> Column:
    """As long as the documented settings allow, which no other ones exceed by much; or what was asked for."""
    least = F.lit(_least_bound_us(evidence))
    if evidence.bound_us is not None:
        return least
    settings = Settings.of()
    each = (convergence_bound_us(settings, 1_000) - convergence_bound_us(settings, 0)) // 1_000
    return least + members * each


def _present(evidence: Evidence) -> DataFrame:
    """One row for each incarnation that goes on at the end: its list, its table, and whom it suspects."""
    fields = ("member", "seq", "at", "place", "version", "lineage", "master", "members", "witness")
    views = evidence.views.groupBy(*INCARNATION_KEY).agg(F.max_by(F.struct(*fields), "place").alias("view"))
    last = F.struct(F.col("table_version").alias("version"), "digest")
    changes = evidence.of_kinds("table-changed", fields=("table_version", "digest"))
    tables = changes.groupBy(*INCARNATION_KEY).agg(F.max_by(last, "place").alias("table"))
    suspects = (
        evidence.of_kinds("suspicion-raised", "suspicion-cleared", fields=("suspect", "suspect_uuid"))
        .groupBy(*INCARNATION_KEY, "suspect_uuid")
        .agg(F.max_by("kind", "place").alias("kind"), F.max_by("suspect", "place").alias("suspect"))
        .where("kind = 'suspicion-raised'")
        .groupBy(*INCARNATION_KEY)
        .agg(F.sort_array(F.collect_list(F.struct("suspect", "suspect_uuid"))).alias("raised"))
    )
    known = (
        evidence.of_kinds(*INCARNATION_START_KINDS)
        .groupBy(*INCARNATION_KEY)
        .agg(F.max_by(F.struct("member", "seq", "at", "place", "witness"), "place").alias("known"))
    )
    alive = (
        evidence.lives.where("ended is null")
        .select(*INCARNATION_KEY, "label", "paused")
        .join(known, [*INCARNATION_KEY])
    )
    every = (
        alive.join(views, [*INCARNATION_KEY], "left")
        .join(tables, [*INCARNATION_KEY], "left")
        .join(suspects, [*INCARNATION_KEY], "left")
    )
    # A suspicion ends with the membership of the suspect.
    listed = uuids(F.col("view.members"))
    standing = F.filter("raised", lambda one: F.array_contains(listed, one["suspect_uuid"]))
    return every.withColumn(
        "suspects", F.coalesce(F.transform(standing, lambda one: one["suspect"]), F.array().cast("array<string>"))
    )


def _rows_at_the_end(evidence: Evidence) -> DataFrame:
    """For each run with a table: what keeps the master's rows from being safe, and from being even; null where nothing does."""
    master = evidence.lives.where("ended is null").select(*INCARNATION_KEY, "address")
    views = evidence.views.groupBy(*INCARNATION_KEY).agg(F.max_by(F.struct("master", "members"), "place").alias("view"))
    settings = evidence.of_kinds("member-started", fields=("settings",)).select(*INCARNATION_KEY, "settings")
    leading = (
        master.join(views, [*INCARNATION_KEY])
        .where("address = view.master")
        .join(settings, [*INCARNATION_KEY], "left")
        .withColumn("data", F.filter("view.members", lambda member: ~member["lite"]))
        .withColumn("kind", F.try_element_at("settings", F.lit("quarterdeck.partition.group.type")))
        .select(*INCARNATION_KEY, "data", "kind", _groups().alias("groups"))
    )
    rows = (
        evidence.table_rows.where("row is not null")
        .groupBy(*INCARNATION_KEY, "partition")
        .agg(F.max_by("row.holders", "place").alias("holders"))
        .join(leading, [*INCARNATION_KEY])
        .withColumn("data", uuids(F.col("data")))
        .withColumn("width", F.least(F.size("holders"), "groups"))
    )
    few = F.size(F.array_compact("holders")) < F.col("width")
    dead = F.size(F.array_except(F.array_compact("holders"), "data")) > 0
    unsafe = F.when(few | dead, F.col("partition"))
    safe = rows.groupBy("run").agg(
        F.when(
            F.min(unsafe).isNotNull(),
            F.format_string(
                "the data is not safe: partition %d does not have all its replicas on members", F.min(unsafe)
            ),
        ).alias("unsafe")
    )
    # Shares of members in groups are not compared: groups may differ in size.
    shares = (
        rows.where("kind is null")
        .select("run", "partition", "data", "width", F.posexplode("holders").alias("index", "holder"))
        .where("index < width and holder is not null")
        .groupBy("run", "index", "holder")
        .agg(F.count("*").alias("share"), F.first("data").alias("data"), F.max("width").alias("width"))
        .groupBy("run", "index")
        .agg(
            F.max("share").alias("most"),
            F.when(F.count("*") < F.size(F.first("data")), 0).otherwise(F.min("share")).alias("least"),
            (F.size(F.first("data")) - F.max("width")).alias("spare"),
        )
    )
    # With hardly more members than replicas, what would make it even may cost a copy for a while, and is not done.
    allowed = F.when(F.col("spare") < 3, 2).otherwise(1)
    over = F.when((F.col("spare") > 0) & (F.col("most") - F.col("least") > allowed), F.col("index"))
    even = shares.groupBy("run").agg(
        F.when(
            F.min(over).isNotNull(),
            F.format_string("the shares of members at replica index %d are not even", F.min(over)),
        ).alias("uneven")
    )
    return safe.join(even, ["run"], "left")


def _groups() -> Column:
    """How many groups the members in `data` form, none of which has two replicas of a partition. Where the groups are `kind`
    custom nobody is expected to hold anything: who belongs to which is not judged here.
    """
    zone = F.transform("data", lambda member: F.when(member["zone"] == "", member["address"]).otherwise(member["zone"]))
    host = F.transform("data", lambda member: F.regexp_replace(member["address"], ":[0-9]*$", ""))
    # One group alone is halved.
    several = [F.greatest(F.size(F.array_distinct(one)), F.least(F.size("data"), F.lit(2))) for one in (zone, host)]
    kind = F.col("kind")
    return (
        F.when(kind == "zone-aware", several[0])
        .when(kind == "host-aware", several[1])
        .when(kind == "custom", F.lit(0))
        .otherwise(F.size("data"))
    )
