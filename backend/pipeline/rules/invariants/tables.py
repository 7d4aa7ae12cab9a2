"""The partition table: it only grows, has one content and one author, and no migration takes wanted replicas away (seed 004)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import (
    INCARNATION_KEY,
    TABLE_CHANGED,
    TABLE_ROW_COLUMNS,
    Evidence,
    running_window,
    within_incarnation,
)
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, first_of, rule
from quarterdeck.backend.simulation.invariants.table_invariants import (
    Replicas,
    TableAuthor,
    TableContent,
    TableMonotone,
)


@rule(TableMonotone.name, kinds=(TABLE_CHANGED,))
def versions_that_do_not_add_up(evidence: Evidence) -> DataFrame:
    """P1: for each change, the first partition that does not grow, or else a sum that is not the table's version."""
    version, before = F.col("row.version"), F.col("before.version")
    back = F.when(version <= before, F.struct("line_number", "partition", before.alias("before"), version.alias("now")))
    changes = (
        evidence.table_rows.groupBy(*TABLE_ROW_COLUMNS, "latest", "table_version")
        .agg(F.min(back).alias("back"), F.sum(version - F.coalesce(before, F.lit(0))).alias("grown"))
        .withColumn("total", F.coalesce(F.sum("grown").over(running_window(within_incarnation())), F.lit(0)))
    )
    shrunk = F.format_string(
        "%s went from version %d of partition %d to %d", "member", "back.before", "back.partition", "back.now"
    )
    sums = F.format_string("%s has table version %d, its partitions add up to %d", "member", "table_version", "total")
    # An event that is its own predecessor is the first of its incarnation, and stands twice as the checker's witness.
    witnesses = (F.col("latest"), F.col("witness"))
    wrong = F.coalesce(
        F.when(F.col("back").isNotNull(), shrunk), F.when(F.col("total") != F.col("table_version"), sums)
    )
    return findings(changes, F.when(wrong.isNotNull(), finding_column(TableMonotone.name, wrong, *witnesses)))


@rule(Replicas.name, kinds=(TABLE_CHANGED,))
def replicas_taken_away(evidence: Evidence) -> DataFrame:
    """P6: what a master's own migrations did to a partition."""
    has, had = _replicas("row"), _replicas("before")
    started = F.col("started")
    unwanted = started.isNull() | ((has < started["wanted"]) & ~started["unavoidable"])
    fewer = evidence.table_rows.where("author = uuid and cause = 'migration' and before is not null")
    fewer = first_of(fewer.where((has < had) & unwanted), ["run", "uuid", "seq"], ["line_number"])
    sentence = F.format_string("a migration left partition %d %d of %d replicas", "partition", has, had)
    return findings(fewer, finding_column(Replicas.name, sentence, started["witness"], F.col("witness")))


@rule(TableContent.name, kinds=(TABLE_CHANGED,))
def versions_of_two_contents(evidence: Evidence) -> DataFrame:
    """P2: only versions that have several contents are looked at row by row, of which a sound journal has few."""
    rows = evidence.table_rows.where("row is not null").join(evidence.divided, ["run"], "left")
    whose = F.when(F.col("place") > F.col("divided"), F.col("author")).otherwise("")
    key = ("run", "whose", "partition", "version")
    rows = rows.withColumns({"whose": whose, "version": F.col("row.version"), "holders": F.col("row.holders")})
    differ = rows.groupBy(*key).agg(F.min("holders").alias("low"), F.max("holders").alias("high")).where("low <> high")
    disputed = rows.join(differ.select(*key), [*key], "left_semi")
    ended = evidence.lives.select(*INCARNATION_KEY, "ended")
    entry = F.struct("place", "line_number", "holders", "ended", "member", "uuid", "seq", "at", "witness")
    each = (
        disputed.join(ended, [*INCARNATION_KEY], "left")
        .groupBy(*key)
        .agg(F.sort_array(F.collect_list(entry)).alias("entries"))
    )
    broken = each.select("run", "partition", "version", F.explode(_against_the_first("entries")).alias("found"))
    told = broken.select(
        *("run", "partition", "version", "found.known", "found.witness"),
        *(
            F.col(f"found.entry.{name}").alias(name)
            for name in ("line_number", "holders", "member", "uuid", "seq", "at")
        ),
        F.col("found.entry.witness").alias("own"),
    )
    one = first_of(told, ["run", "uuid", "seq"], ["line_number"])
    sentence = F.format_string(
        "version %d of partition %d is %s at %s and %s at %s",
        *("version", "partition", "known_names", "witness.member", "names", "member"),
    )
    named = _named(_named(one, evidence, "known", "known_names"), evidence, "holders", "names")
    return findings(named, finding_column(TableContent.name, sentence, F.col("witness"), F.col("own")))


@rule(TableAuthor.name, kinds=(TABLE_CHANGED,))
def tables_of_strangers(evidence: Evidence) -> DataFrame:
    """P3: the master of an incarnation is that of its list, or one that it has promised to follow since."""
    kind = F.col("kind")
    followed = F.when(kind != TABLE_CHANGED, F.struct("master", "witness"))
    changes = (
        evidence.of_kinds(TABLE_CHANGED, "list-installed", "master-changed", fields=("master", "author"))
        .withColumn("followed", F.last(followed, ignorenulls=True).over(running_window(within_incarnation())))
        .where(kind == TABLE_CHANGED)
    )
    author = evidence.lives.select(
        "run", F.col("uuid").alias("author"), F.col("label").alias("author_label"), "address", "has_address", "born"
    )
    known = changes.join(author, ["run", "author"], "left")
    master = F.col("followed.master")
    from_master = (F.col("has_address") < F.col("place")) & F.col("address").eqNullSafe(master)
    stranger = F.coalesce(F.when(F.col("born") < F.col("place"), F.col("author_label")), F.col("author"))
    sentence = F.format_string(
        "%s follows %s and takes a table from %s", "member", F.coalesce(master, F.lit("None")), stranger
    )
    broken = ~F.coalesce(from_master, F.lit(False))
    witnesses = (F.coalesce("followed.witness", "witness"), F.col("witness"))
    return findings(known, F.when(broken, finding_column(TableAuthor.name, sentence, *witnesses)))


def _replicas(row: str) -> Column:
    return F.size(F.array_compact(f"{row}.holders"))


def _against_the_first(entries: str) -> Column:
    """The entries that contradict what stands already, each with that and with an incarnation that has it still.

    What only ended incarnations have does not stand any more: the entry takes its place.
    """

    def take(now: Column, one: Column) -> Column:
        alive = F.filter(now["having"], lambda other: other["ended"].isNull() | (other["ended"] > one["place"]))
        agrees, replaces = now["known"] == one["holders"], F.size(alive) == 0
        contradiction = F.struct(
            one.alias("entry"), now["known"].alias("known"), F.get(alive, 0)["witness"].alias("witness")
        )
        return F.struct(
            F.when(~agrees & replaces, one["holders"]).otherwise(now["known"]).alias("known"),
            F.when(agrees, F.concat(now["having"], _has(one)))
            .when(replaces, _has(one))
            .otherwise(now["having"])
            .alias("having"),
            F.when(agrees | replaces, now["broken"])
            .otherwise(F.concat(now["broken"], F.array(contradiction)))
            .alias("broken"),
        )

    first = F.get(entries, 0)
    example = F.struct(first.alias("entry"), first["holders"].alias("known"), first["witness"].alias("witness"))
    start = F.struct(
        first["holders"].alias("known"),
        _none_of(_has(first)).alias("having"),
        _none_of(F.array(example)).alias("broken"),
    )
    return F.aggregate(entries, start, take, lambda end: end["broken"])


def _has(entry: Column) -> Column:
    return F.array(F.struct(entry["ended"].alias("ended"), entry["witness"].alias("witness")))


def _none_of(array: Column) -> Column:
    """An empty array of the same type."""
    return F.slice(array, 1, 0)


def _named(rows: DataFrame, evidence: Evidence, holders: str, names: str) -> DataFrame:
    """`rows` with the labels of the holders, in their order, as the text column `names`."""
    labels = evidence.lives.groupBy("run").agg(
        F.map_from_entries(F.collect_list(F.struct("uuid", "label"))).alias("labels")
    )
    label = F.transform(
        F.col(holders),
        lambda uuid: F.when(uuid.isNull(), "-").otherwise(F.coalesce(F.element_at("labels", uuid), uuid)),
    )
    return rows.join(labels, ["run"], "left").withColumn(names, F.array_join(label, ", ")).drop("labels")
