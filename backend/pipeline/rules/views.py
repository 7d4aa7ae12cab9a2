"""The invariants of member lists (design section 7): order, integrity, one content for a version.

A view is named by its lineage and version. A life is one uuid in one run, and what it did has the order of `seq`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backend.pipeline.rules.registry import LIFE, first_of, rule, witnesses_of


@rule("view order", "violation", "views")
def opposite_orders(views: DataFrame) -> DataFrame:
    """M1: no two lives install two lists of one lineage in opposite orders.

    Where versions only grow there is nothing to compare, so only the lists that a life installed after a higher version
    of the same lineage are looked at; each is reported once, with a life that did it the other way round.
    """
    earlier = Window.partitionBy(*LIFE, "lineage").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    late = views.withColumn("highest", F.max("version").over(earlier)).where("highest > version")
    late = late.select(*LIFE, "member", "lineage", "seq", "at", F.col("version").alias("low"))
    higher = views.select(*LIFE, "lineage", F.col("version").alias("high"), F.col("seq").alias("high_seq"))
    backward = late.join(higher, [*LIFE, "lineage"]).where("high_seq < seq and high > low")

    other = views.withColumnsRenamed({"uuid": "other_uuid", "member": "other_member"})
    other_low = other.select(
        "run", "lineage", "other_uuid", F.col("version").alias("low"), F.col("seq").alias("other_low_seq")
    )
    other_high = other.select(
        "run",
        "lineage",
        "other_uuid",
        "other_member",
        F.col("version").alias("high"),
        F.col("seq").alias("other_high_seq"),
    )
    both = (
        backward.join(other_low, ["run", "lineage", "low"])
        .join(other_high, ["run", "lineage", "other_uuid", "high"])
        .where("other_uuid <> uuid and other_low_seq < other_high_seq")
    )
    sentence = "%s installed version %d of list %s before version %d; %s installed them the other way round"
    return first_of(both, [*LIFE, "seq"], ["high_seq", "other_uuid", "other_low_seq", "other_high_seq"]).select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string(sentence, "member", "high", "lineage", "low", "other_member").alias("detail"),
        witnesses_of("uuid.high_seq", "uuid.seq", "other_uuid.other_low_seq", "other_uuid.other_high_seq"),
    )


@rule("view order", "violation", "views")
def two_way_successions(views: DataFrame) -> DataFrame:
    """M1 between lineages: no list directly follows another somewhere and directly precedes it elsewhere."""
    life = Window.partitionBy(*LIFE).orderBy("seq")
    view = F.struct("lineage", "version", "seq")
    steps = views.withColumn("to", view).withColumn("from", F.lag(view).over(life)).where("from.lineage <> to.lineage")
    pair = ["run", "from.lineage", "from.version", "to.lineage", "to.version"]
    steps = first_of(steps, pair, ["at", "uuid", "seq"])
    keys = ("low_lineage", "low_version", "high_lineage", "high_version")

    def directed(low: str, high: str, prefix: str) -> DataFrame:
        columns = [F.col(f"{end}.{name}") for end in (low, high) for name in ("lineage", "version")]
        return steps.where(f"{low}.lineage < {high}.lineage").select(
            "run",
            *(column.alias(key) for column, key in zip(columns, keys, strict=True)),
            *(F.col(name).alias(f"{prefix}{name}") for name in ("member", "uuid", "seq", "at")),
            F.col("from.seq").alias(f"{prefix}from_seq"),
        )

    both = directed("from", "to", "").join(directed("to", "from", "other_"), ["run", *keys])
    sentence = "%s went from version %d of list %s to version %d of list %s; %s went the other way"
    return both.select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string(
            sentence, "member", "low_version", "low_lineage", "high_version", "high_lineage", "other_member"
        ).alias("detail"),
        witnesses_of("uuid.from_seq", "uuid.seq", "other_uuid.other_from_seq", "other_uuid.other_seq"),
    )


@rule("view integrity", "violation", "views")
def views_without_their_owner(views: DataFrame) -> DataFrame:
    """M3: every list that a life installs contains it."""
    outside = views.where(~F.exists("members", lambda member: member["uuid"] == F.col("uuid")))
    sentence = "%s installed version %d of list %s without being on it"
    return outside.select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string(sentence, "member", "version", "lineage").alias("detail"),
        witnesses_of("uuid.seq"),
    )


@rule("version", "violation", "views")
def versions_that_do_not_grow(views: DataFrame) -> DataFrame:
    """Within one life and lineage the version only grows."""
    life = Window.partitionBy(*LIFE, "lineage").orderBy("seq")
    before = F.lag(F.struct("version", "seq")).over(life)
    back = views.withColumn("before", before).where("version <= before.version")
    sentence = "%s installed version %d of list %s after version %d"
    return back.withColumn("before_seq", F.col("before.seq")).select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string(sentence, "member", "version", "lineage", "before.version").alias("detail"),
        witnesses_of("uuid.before_seq", "uuid.seq"),
    )


@rule("version", "violation", "views")
def versions_with_two_contents(views: DataFrame) -> DataFrame:
    """One version of one lineage has one content for everybody: members, their order, and the master.

    Each content that differs from the first one installed is reported once.
    """
    of_one_version = Window.partitionBy("run", "lineage", "version").orderBy("at", "uuid", "seq")
    first = F.first(F.struct("master", "members", "member", "uuid", "seq")).over(of_one_version)
    other = views.withColumn("first", first).where("master <> first.master or members <> first.members")
    other = first_of(other, ["run", "lineage", "version", "master", "members"], ["at", "uuid", "seq"])
    difference = (
        F.when(F.col("master") != F.col("first.master"), "another master")
        .when(F.array_sort("members") == F.array_sort("first.members"), "the members in another order")
        .otherwise("other members")
    )
    sentence = "%s installed version %d of list %s with %s than %s"
    return other.withColumns({"first_uuid": F.col("first.uuid"), "first_seq": F.col("first.seq")}).select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string(sentence, "member", "version", "lineage", difference, "first.member").alias("detail"),
        witnesses_of("first_uuid.first_seq", "uuid.seq"),
    )
