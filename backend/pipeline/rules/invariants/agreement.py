"""View agreement (M2): what a member installs reaches everybody on it, or they part. Judged when the records end."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import INCARNATION_KEY, Evidence, link
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, rule
from quarterdeck.backend.simulation.invariants.list_views import ViewAgreement


@rule(ViewAgreement.name, kinds=("list-installed",), least_calm_us=lambda evidence: evidence.obligation_timeout_us)
def lists_that_never_came(evidence: Evidence) -> DataFrame:
    """What is owed is a violation when it was owed for long enough while nothing troubled those who owe it."""
    views, lives = evidence.views, evidence.lives
    alive = lives.where("ended is null").select(*INCARNATION_KEY, "label", "paused")
    fields = ("member", "seq", "at", "version", "lineage", "master", "members", "witness")
    present = views.groupBy(*INCARNATION_KEY).agg(F.max_by(F.struct(*fields), "place").alias("view"))
    standing = present.join(alive, [*INCARNATION_KEY]).select(*INCARNATION_KEY, "label", "paused", "view.*")
    reached = views.groupBy(*INCARNATION_KEY, "lineage").agg(F.max_by("version", "place").alias("reached"))
    leading = (
        lives.where("address is not null")
        .groupBy("run", F.col("address").alias("master"))
        .agg(F.max_by(F.struct("label", "paused"), "has_address").alias("leader"))
    )
    others = alive.join(
        present.select(*INCARNATION_KEY, F.col("view.witness").alias("other_witness")), [*INCARNATION_KEY], "left"
    ).withColumnsRenamed({"uuid": "other", "label": "other_label", "paused": "other_paused"})
    owed = (
        standing.withColumn("other", F.explode(F.transform("members", lambda member: member["uuid"])))
        .where("other <> uuid")
        .join(others, ["run", "other"])
        .join(reached.withColumnRenamed("uuid", "other"), ["run", "other", "lineage"], "left")
        .where("coalesce(reached, 0) < version")
        .join(leading, ["run", "master"], "left")
        .join(evidence.calm, ["run"])
    )
    labels = (F.col("label"), F.col("other_label"), F.coalesce("leader.label", "label"))
    troubled = F.col("paused") | F.col("other_paused") | F.coalesce("leader.paused", F.lit(False))
    waited_us = F.col("ends_us") - F.greatest("at", "disturbed_us")
    undisturbed = ~F.arrays_overlap(F.col("links"), F.array(*_links(labels)))
    late = owed.where(~troubled & (waited_us > evidence.obligation_timeout_us) & undisturbed)
    sentence = F.format_string(
        "%s stands at v%d of %s, %s on it never came there", "label", "version", "lineage", "other_label"
    )
    return findings(late, finding_column(ViewAgreement.name, sentence, F.col("witness"), F.col("other_witness")))


def _links(labels: tuple[Column, ...]) -> list[Column]:
    return [link(one, other) for one in labels for other in labels if one is not other]
