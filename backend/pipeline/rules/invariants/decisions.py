"""One decision (P8): a migration is committed for everybody or for nobody."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import INCARNATION_KEY, Evidence
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, first_of, rule
from quarterdeck.backend.simulation.invariants.migrations import OneDecision

KINDS = ("migration-decided", "migration-finished", "table-recovered")
OWN = ("member", "uuid", "seq", "at")


@rule(OneDecision.name, kinds=KINDS)
def migrations_decided_twice(evidence: Evidence) -> DataFrame:
    """Only migrations of which both is told are looked at decision by decision."""
    told = _decisions(evidence)
    both = (
        told.groupBy("run", "migration")
        .agg(F.bool_or("committed").alias("some"), F.bool_and("committed").alias("all"))
        .where("some and not all")
    )
    disputed = (
        told.join(both.select("run", "migration"), ["run", "migration"], "left_semi")
        .join(evidence.lives.select(*INCARNATION_KEY, "ended"), [*INCARNATION_KEY], "left")
        .join(evidence.divided, ["run"], "left")
    )
    # After the members were divided each half decides for itself.
    entry = F.struct(
        *("place", "order", "committed", "finished", *OWN, "witness", "ended"),
        F.coalesce(F.col("place") >= F.col("divided"), F.lit(False)).alias("divided"),
    )
    each = disputed.groupBy("run", "migration").agg(F.sort_array(F.collect_list(entry)).alias("entries"))
    broken = each.select("run", "migration", F.explode(_against_the_known("entries")).alias("found"))
    rows = broken.select(
        *("run", "migration", "found.known"),
        *(F.col(f"found.entry.{name}") for name in (*OWN, "order", "committed", "witness")),
    )
    one = first_of(rows, ["run", "uuid", "seq"], ["order"])
    sentence = F.format_string(
        "migration %s is %s at %s and %s at %s",
        *("migration", _word(F.col("known.committed")), "known.member", _word(F.col("committed")), "member"),
    )
    return findings(one, finding_column(OneDecision.name, sentence, F.col("known.witness"), F.col("witness")))


def _decisions(evidence: Evidence) -> DataFrame:
    """One row for each time that a member tells how a migration ended, in the `order` of one event's several."""

    def entries(ids: Column, committed: bool) -> Column:
        return F.transform(ids, lambda one: F.struct(one.alias("migration"), F.lit(committed).alias("committed")))

    single = F.array(F.struct(F.col("migration_id").alias("migration"), "committed"))
    several = F.concat(entries(F.col("committed_ids"), True), entries(F.col("rolled_back_ids"), False))
    ends = F.when(F.col("kind") == "table-recovered", several).otherwise(single)
    return (
        evidence.of_kinds(*KINDS, fields=("migration_id", "committed", "committed_ids", "rolled_back_ids"))
        .withColumn("finished", F.col("kind") == "migration-finished")
        .select("run", *OWN, "place", "finished", "witness", F.posexplode(ends).alias("order", "end"))
        .select("run", *OWN, "place", "finished", "witness", "order", "end.migration", "end.committed")
    )


def _against_the_known(entries: str) -> Column:
    """The entries that contradict the decision that stands, each with that.

    What a participant did that is gone does not stand any more: the entry takes its place.
    """

    def take(now: Column, one: Column) -> Column:
        known = now["known"]
        gone = known["finished"] & F.coalesce(known["ended"] < one["place"], F.lit(False))
        fine = (known["committed"] == one["committed"]) | one["divided"]
        contradiction = F.struct(one.alias("entry"), known.alias("known"))
        more = F.concat(now["broken"], F.array(contradiction))
        return F.struct(
            F.when(~fine & gone, one).otherwise(known).alias("known"),
            F.when(fine | gone, now["broken"]).otherwise(more).alias("broken"),
        )

    first = F.get(entries, 0)
    nothing = F.slice(F.array(F.struct(first.alias("entry"), first.alias("known"))), 1, 0)
    start = F.struct(first.alias("known"), nothing.alias("broken"))
    return F.aggregate(entries, start, take, lambda end: end["broken"])


def _word(committed: Column) -> Column:
    return F.when(committed, "committed").otherwise("rolled back")
