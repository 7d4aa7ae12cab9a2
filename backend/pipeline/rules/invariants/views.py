"""The invariants of installed lists, each judged by the lists alone (design section 7): one pass over them for all.

A list is named by its lineage and version.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import Evidence
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, first_broken, rule
from quarterdeck.backend.simulation.invariants.list_views import (
    OneAuthor,
    OneMaster,
    UniqueContent,
    VersionMonotone,
    ViewIntegrity,
)


@rule(
    *(one.name for one in (ViewIntegrity, VersionMonotone, UniqueContent, OneMaster, OneAuthor)),
    kinds=("list-installed",),
)
def lists(evidence: Evidence) -> DataFrame:
    """What each list is held against: the one before it, the first of its version, the first of its lineage."""
    of_version = Window.partitionBy("run", "lineage", "version").orderBy("place")
    of_lineage = Window.partitionBy("run", "lineage").orderBy("place")
    oldest = F.get("members", 0)
    master_life = F.coalesce(oldest["uuid"], F.lit(""))
    views = evidence.views.withColumns(
        {
            "oldest": oldest["address"],
            "master_life": master_life,
            "first": F.first(F.struct("master", "members", "witness")).over(of_version),
            "founder": F.first(F.struct("author", master_life.alias("master_life"), "witness")).over(of_lineage),
        }
    )
    return findings(views, _without_its_owner(), _not_newer(), _other_content(), _other_master(), _other_author())


def _without_its_owner() -> Column:
    """M3."""
    sentence = F.format_string("%s installed v%d, which does not contain it", "member", "version")
    listed = F.exists("members", lambda member: member["uuid"] == F.col("uuid"))
    return F.when(~listed, finding_column(ViewIntegrity.name, sentence, F.col("witness")))


def _not_newer() -> Column:
    """M1'."""
    before = F.col("before")
    sentence = F.format_string(
        "%s installed v%d of %s after v%d of %s", "member", "version", "lineage", before["version"], before["lineage"]
    )
    broken = F.col("version") <= before["version"]
    return F.when(broken, finding_column(VersionMonotone.name, sentence, before["witness"], F.col("witness")))


def _other_content() -> Column:
    """M4."""
    first = F.col("first")
    sentence = F.format_string(
        "v%d of %s has one content at %s and another at %s",
        *("version", "lineage", first["witness"]["member"], "member"),
    )
    broken = F.col("members") != first["members"]
    return F.when(broken, finding_column(UniqueContent.name, sentence, first["witness"], F.col("witness")))


def _other_master() -> Column:
    first, own = F.col("first"), F.col("witness")
    another = F.format_string(
        "with v%d of %s, %s follows %s and %s %s",
        *("version", "lineage", first["witness"]["member"], first["master"], "member", "master"),
    )
    younger = F.format_string(
        "%s follows %s with v%d, whose oldest member is %s", "member", first["master"], "version", "oldest"
    )
    return first_broken(
        (F.col("master") != first["master"], finding_column(OneMaster.name, another, first["witness"], own)),
        (F.col("oldest") != first["master"], finding_column(OneMaster.name, younger, own)),
    )


def _other_author() -> Column:
    """M5, M8."""
    founder, own = F.col("founder"), F.col("witness")
    another = F.format_string("%s was changed by %s and by %s", "lineage", founder["author"], "author")
    reborn = F.format_string(
        "%s was changed by two lives of %s: %s and %s",
        "lineage",
        founder["author"],
        founder["master_life"],
        "master_life",
    )
    strange = F.format_string(
        "%s installed v%d from %s, while its master is %s", "member", "version", "author", "master"
    )
    return first_broken(
        (F.col("author") != founder["author"], finding_column(OneAuthor.name, another, founder["witness"], own)),
        (
            F.col("master_life") != founder["master_life"],
            finding_column(OneAuthor.name, reborn, founder["witness"], own),
        ),
        (F.col("author") != F.col("master"), finding_column(OneAuthor.name, strange, own)),
    )
