"""What the rules look at: the events in the order in which they happened, and what several rules have to know of them.

An event's place in that order is its column `place`: the time on the run's clock, and where it stands in the journal. What
happened in the same microsecond stays in the order in which it was written: that is the order of causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from quarterdeck.backend.core.properties import SECOND_US

INCARNATION_KEY = ("run", "uuid")

OBLIGATION_TIMEOUT_US = 60 * SECOND_US
"""How long something may be owed while nothing disturbs the members: what it takes to be sure that somebody is gone."""

INCARNATION_START_KINDS = (
    "list-installed",
    "suspicion-raised",
    "suspicion-cleared",
    "member-started",
    "member-stopped",
    "member-merging",
)
"""The kinds of events by which an incarnation comes to be known."""

DISTURBANCES = (
    *("member-started", "member-stopped", "member-merging", "process-killed", "process-paused", "process-resumed"),
    "link-changed",
)

TABLE_CHANGED = "table-changed"
TABLE_ROW_COLUMNS = ("run", "member", "uuid", "seq", "at", "place", "witness")
"""Those of the event in a row of `Evidence.table_rows`."""

_STARTED = (
    "struct<wanted: bigint, unavoidable: boolean,"
    " witness: struct<uuid: string, seq: bigint, member: string, at: bigint, version: bigint>>"
)

FAULTS_OF_MEMBERS = ("process-killed", "process-paused", "process-resumed")


class Evidence:
    """The events of all runs, and what follows from them. `events`: the columns of a record, raw and place, each event once.

    What is made once for several rules is kept by Spark until `release`.
    """

    def __init__(
        self,
        events: DataFrame,
        *,
        obligation_timeout_us: int = OBLIGATION_TIMEOUT_US,
        bound_us: int | None = None,
        one_part: bool = False,
    ) -> None:
        """`bound_us`: how long convergence may take, by default as long as the documented settings allow. `one_part`: the
        events are few and stand together, nothing has to be moved to bring those of a run together."""
        self.events = events
        self.obligation_timeout_us = obligation_timeout_us
        self.bound_us = bound_us
        self.one_part = one_part
        self._kept: list[DataFrame] = []

    def keep(self, table: DataFrame) -> DataFrame:
        """`table`, computed once however often it is looked at. Few rows are not worth the plan that gives them."""
        if self.one_part:
            return table.localCheckpoint()
        self._kept.append(table.persist())
        return table

    def release(self) -> None:
        """Spark need not keep the tables any more."""
        for table in self._kept:
            table.unpersist()

    def of_kinds(self, *kinds: str, fields: Sequence[str] = ()) -> DataFrame:
        """The events of these kinds, with their `fields` as columns: whatever is sorted should hold no more than it must."""
        own = ("run", "member", "uuid", "seq", "at", "place", "event.kind")
        some = self.events.where(F.col("event.kind").isin(*kinds))
        return some.select(*own, *(f"event.{name}" for name in fields), witness().alias("witness"))

    @cached_property
    def views(self) -> DataFrame:
        """Installed lists, each with the one that its incarnation had `before`."""
        views = self.of_kinds("list-installed", fields=("version", "lineage", "master", "members", "author"))
        before = F.struct("version", "lineage", "master", "members", "witness")
        return views.withColumn("before", F.lag(before).over(within_incarnation()))

    @cached_property
    def table_rows(self) -> DataFrame:
        """One row for each partition in each change of a table: see `_table_rows`."""
        return self.keep(_table_rows(self))

    @cached_property
    def lives(self) -> DataFrame:
        """One row for each incarnation that is known: run, uuid, label, address, and when it began, got its address, ended and
        is paused. Places; null where that has not happened."""
        return self.keep(_lives(self))

    @cached_property
    def divided(self) -> DataFrame:
        """Run and place: since when the members are not one undivided cluster any more. Runs that never were are not there."""
        return self.keep(_divided(self))

    @cached_property
    def calm(self) -> DataFrame:
        """One row for each run: when its journal ends, when it was last disturbed, and which links are not as they should be."""
        return self.keep(_calm(self))


def witness() -> Column:
    """The event of this row as a witness."""
    return F.struct("uuid", "seq", "member", "at", F.coalesce("event.version", "event.table_version").alias("version"))


def within_incarnation(*more: str) -> WindowSpec:
    """The events of an incarnation in their order, or of a part of it."""
    return Window.partitionBy(*INCARNATION_KEY, *more).orderBy("place")


def running_window(window: WindowSpec) -> WindowSpec:
    """`window` up to the row itself."""
    return window.rowsBetween(Window.unboundedPreceding, 0)


def _table_rows(evidence: Evidence) -> DataFrame:
    """One row for each partition in each change of a table, with its version and its holders.

    Besides, those that it had `before` at the same incarnation, and the migration of it that this incarnation `started` last.
    A change of no partition has one row without any of these.
    """
    holders = F.transform(
        F.slice("line", 3, 1_000),
        lambda place: F.when(place >= 0, F.get("all_holders", place.cast("int"))["uuid"]),
    )
    changes = (
        evidence.of_kinds(TABLE_CHANGED, fields=("rows", "holders", "table_version", "author", "cause"))
        .withColumnRenamed("holders", "all_holders")
        .withColumn("latest", F.coalesce(F.lag("witness").over(within_incarnation()), "witness"))
        .select("*", F.posexplode_outer("rows").alias("line_number", "line"))
        .select(
            *(*TABLE_ROW_COLUMNS, "latest", "line_number"),
            *("table_version", "author", "cause"),
            F.get("line", 0).cast("int").alias("partition"),
            F.when(
                F.col("line").isNotNull(), F.struct(F.get("line", 1).alias("version"), holders.alias("holders"))
            ).alias("row"),
            F.lit(None).cast(_STARTED).alias("starts"),
        )
    )
    starts = evidence.of_kinds("migration-started", fields=("partition", "replicas_wanted", "unavoidable")).select(
        *("run", "member", "uuid", "seq", "at", "place"),
        F.lit(-1).alias("line_number"),
        F.col("partition").cast("int").alias("partition"),
        F.struct(F.col("replicas_wanted").alias("wanted"), "unavoidable", "witness").alias("starts"),
    )
    of_partition = Window.partitionBy(*INCARNATION_KEY, "partition").orderBy("place", "line_number")
    earlier = of_partition.rowsBetween(Window.unboundedPreceding, -1)
    both = changes.unionByName(starts, allowMissingColumns=True).withColumns(
        {
            "before": F.last("row", ignorenulls=True).over(earlier),
            "started": F.last("starts", ignorenulls=True).over(earlier),
        }
    )
    return both.where("starts is null").drop("starts")


def _lives(evidence: Evidence) -> DataFrame:
    kind = F.col("kind")
    listed = F.filter("members", lambda member: member["uuid"] == F.col("uuid"))
    in_list = F.get(listed, 0)["address"]
    own_address = F.when(kind == "member-started", F.col("address")).when(kind == "list-installed", in_list)
    known = evidence.of_kinds(*INCARNATION_START_KINDS, fields=("address", "members")).select(
        *(*INCARNATION_KEY, "member", "place", own_address.alias("address")),
        kind.isin("member-stopped", "member-merging").alias("leaves"),
        (kind != "member-started").alias("by_list"),
    )
    has_address = F.col("address").isNotNull()
    births = known.groupBy(*INCARNATION_KEY).agg(
        F.min_by("member", "place").alias("label"),
        F.min("place").alias("born"),
        F.min_by("address", F.when(has_address, F.struct("by_list", "place"))).alias("address"),
        F.min(F.when(has_address, F.col("place"))).alias("has_address"),
        F.min(F.when(F.col("leaves"), F.col("place"))).alias("left"),
    )
    # What is done to a label is done to its latest incarnation.
    nobody = F.lit(None).cast("string")
    faults = evidence.of_kinds(*FAULTS_OF_MEMBERS, fields=("target",))
    done = faults.select("run", F.col("target").alias("label"), "place", "kind")
    both = births.select("run", "label", F.col("born").alias("place"), nobody.alias("kind"), "uuid").unionByName(
        done.withColumn("uuid", nobody)
    )
    latest = running_window(Window.partitionBy("run", "label").orderBy("place"))
    hit = (
        both.withColumn("uuid", F.last("uuid", ignorenulls=True).over(latest))
        .where("kind is not null and uuid is not null")
        .groupBy(*INCARNATION_KEY)
        .agg(
            F.min(F.when(F.col("kind") == "process-killed", F.col("place"))).alias("killed"),
            F.coalesce(
                F.max_by(F.col("kind") == "process-paused", F.when(F.col("kind") != "process-killed", F.col("place"))),
                F.lit(False),
            ).alias("paused"),
        )
    )
    lives = births.join(hit, [*INCARNATION_KEY], "left").withColumns(
        {"ended": F.least("left", "killed"), "paused": F.coalesce("paused", F.lit(False))}
    )
    return lives.select(*INCARNATION_KEY, "label", "address", "has_address", "born", "ended", "paused")


def _divided(evidence: Evidence) -> DataFrame:
    views = evidence.views
    # A lineage that begins with the first list of an incarnation is a cluster of its own; the run's first one is the first.
    came = views.where("before is null or before.lineage <> lineage")
    first = came.groupBy("run", "lineage").agg(
        F.min("place").alias("place"), F.min_by(F.col("before").isNull(), "place").alias("anew")
    )
    earlier = F.row_number().over(Window.partitionBy("run").orderBy("place"))
    second = first.where("anew").withColumn("number", earlier).where("number > 1").select("run", "place")

    # Whoever is left off a list and lives on is another cluster.
    gone = F.array_except(uuids(F.col("before.members")), uuids(F.col("members")))
    left_off = views.where("before is not null").select("run", "place", F.explode(gone).alias("uuid"))
    alive = evidence.lives.select(*INCARNATION_KEY, "born", "ended")
    left = (
        left_off.join(alive, [*INCARNATION_KEY])
        .where("born < place and (ended is null or ended > place)")
        .select("run", "place")
    )

    merging = evidence.of_kinds("member-merging").select("run", "place")
    every = second.unionByName(left).unionByName(merging)
    return every.groupBy("run").agg(F.min("place").alias("divided"))


def disturbed_us() -> Column:
    """Of a run's events: when they tell of a disturbance last. It is not known to have been calm before the first of them."""
    return F.coalesce(F.max(F.when(F.col("event.kind").isin(*DISTURBANCES), F.col("at"))), F.min("at"))


def _calm(evidence: Evidence) -> DataFrame:
    runs = evidence.events.groupBy("run").agg(F.max("at").alias("ends_us"), disturbed_us().alias("disturbed_us"))
    fields = ("source", "target", "blocked", "delay", "loss", "duplicate", "dropped_kinds", "delay_up_to", "of_kinds")
    mended = (
        "blocked = '' and delay = 0 and loss = 0 and duplicate = 0 and size(dropped_kinds) = 0"
        " and coalesce(delay_up_to, 0) = 0 and coalesce(size(of_kinds), 0) <= 0"
    )
    links = (
        evidence.of_kinds("link-changed", fields=fields)
        .groupBy("run", "source", "target")
        .agg(F.max_by(F.expr(mended), "place").alias("mended"))
        .where("not mended")
        .groupBy("run")
        .agg(F.collect_list(link(F.col("source"), F.col("target"))).alias("links"))
    )
    none = F.array().cast("array<string>")
    return runs.join(links, ["run"], "left").withColumn("links", F.coalesce("links", none))


def link(source: Column, target: Column) -> Column:
    """The name of a link."""
    return F.concat_ws("\n", source, target)


def uuids(members: Column) -> Column:
    """The uuids of `members`."""
    return F.transform(members, lambda member: member["uuid"])
