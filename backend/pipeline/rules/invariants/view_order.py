"""View order (M1): two views installed in one order by one incarnation are never installed in the other order by another.

Only incarnations that went from one lineage to another can contradict each other, and only those who went opposite ways are
compared view by view: in a sound journal nobody is.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import INCARNATION_KEY, Evidence
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, first_of, rule
from quarterdeck.backend.simulation.invariants.list_views import ViewOrder


@rule(ViewOrder.name, kinds=("list-installed",))
def opposite_orders(evidence: Evidence) -> DataFrame:
    """M1: two lists that are installed in one order somewhere and in the other order elsewhere."""
    installs = _travelled(evidence.views)
    opposite = _opposite_ways(installs)
    view = ("lineage", "version")
    # Where each view stands in an incarnation's journey: at its first installation.
    journeys = installs.groupBy(*INCARNATION_KEY, *view).agg(
        F.min("place").alias("first"), F.min_by("witness", "place").alias("own")
    )

    own_later = installs.join(opposite, [*INCARNATION_KEY, "lineage"])
    own_earlier = journeys.withColumnsRenamed(
        {"lineage": "earlier_lineage", "version": "earlier_version", "first": "earlier_first", "own": "earlier_witness"}
    )
    other_first = journeys.select(
        *("run", F.col("uuid").alias("other"), *view),
        *(F.col("first").alias("other_first"), F.col("own").alias("other_witness")),
    )
    other_second = own_earlier.select(
        *("run", F.col("uuid").alias("other"), "earlier_lineage", "earlier_version"),
        *(F.col("earlier_first").alias("second_first"), F.col("earlier_witness").alias("second_witness")),
    )
    both = (
        own_later.join(own_earlier, [*INCARNATION_KEY])
        .where("earlier_first < place and met <= place")
        .where("earlier_lineage <> lineage or earlier_version <> version")
        .join(other_first, ["run", "other", *view])
        .join(other_second, ["run", "other", "earlier_lineage", "earlier_version"])
        .where("other_first < second_first and second_first < place")
    )
    one = first_of(both, ["run", "uuid", "seq"], ["earlier_first", "other_first", "other"])
    sentence = F.format_string(
        "%s installed v%d of %s before v%d of %s, %s the other way round",
        *("member", "earlier_version", "earlier_lineage", "version", "lineage", F.col("other_witness.member")),
    )
    witnesses = (F.col(name) for name in ("earlier_witness", "witness", "other_witness", "second_witness"))
    return findings(one, finding_column(ViewOrder.name, sentence, *witnesses))


def _travelled(views: DataFrame) -> DataFrame:
    """The lists of incarnations that had more than one lineage."""
    lists = views.select("run", "member", "uuid", "seq", "at", "place", "lineage", "version", "witness")
    travellers = lists.groupBy(*INCARNATION_KEY).agg(F.min("lineage").alias("low"), F.max("lineage").alias("high"))
    return lists.join(travellers.where("low <> high").select(*INCARNATION_KEY), [*INCARNATION_KEY], "left_semi")


def _opposite_ways(installs: DataFrame) -> DataFrame:
    """Run, uuid, lineage, other and met: the incarnation came to the lineage from one to which `other` went from it; `met` is
    since when both have been so."""
    entered = installs.groupBy(*INCARNATION_KEY, "lineage").agg(F.min("place").alias("entered"))
    came_from = entered.withColumnsRenamed({"lineage": "from"})
    crossings = (
        installs.join(came_from, [*INCARNATION_KEY])
        .where("from <> lineage and entered < place")
        .groupBy(*INCARNATION_KEY, "from", "lineage")
        .agg(F.min("place").alias("since"))
    )
    back = crossings.select(
        *("run", F.col("uuid").alias("other")),
        *(F.col("from").alias("lineage"), F.col("lineage").alias("from"), F.col("since").alias("back_since")),
    )
    ways = crossings.join(back, ["run", "from", "lineage"]).where("uuid <> other")
    return ways.groupBy(*INCARNATION_KEY, "lineage", "other").agg(F.min(F.greatest("since", "back_since")).alias("met"))
