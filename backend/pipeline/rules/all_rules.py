"""All rules of the audit: which invariants there are, and what is found of each in the events of many runs."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backend.pipeline.rules import agreement, convergence, decisions, numbering, tables, view_order, views
from backend.pipeline.rules.checked_on_executors import checked
from backend.pipeline.rules.evidence import Evidence
from backend.pipeline.rules.finding import Finding, members_of, versions_of
from backend.pipeline.rules.names import doubted
from backend.pipeline.rules.registry import Rule
from backend.pipeline.rules.writes import CALLS, lost_writes
from backend.simulation.invariants.writes import NoLostWrite

__all__ = ["RELATIONAL", "RULES", "doubted", "find"]

RULES: tuple[Rule, ...] = (
    numbering.missing_events,
    views.lists,
    view_order.opposite_orders,
    agreement.lists_that_never_came,
    tables.versions_that_do_not_add_up,
    tables.versions_of_two_contents,
    tables.tables_of_strangers,
    tables.replicas_taken_away,
    decisions.migrations_decided_twice,
    convergence.runs_that_never_agree,
)

RELATIONAL = frozenset(name for one in RULES for name in one.names) | {NoLostWrite.name}
"""Those that are transformations of tables, which scale within one run. The others are the checkers, one task for each run."""


def find(evidence: Evidence, names: Collection[str], kinds: Collection[str]) -> tuple[list[Finding], dict[str, str]]:
    """What breaks the rules `names`, and by run what its journal lacks. `kinds`: the kinds of events that there are.

    Everything is found in one action, and the result is held in memory.
    """
    parts = [
        _as_told(one.find(evidence).where(F.col("rule").isin(*names)))
        for one in RULES
        if not set(one.names).isdisjoint(names) and one.can_find(kinds)
    ]
    told = checked(evidence, frozenset(names) - (RELATIONAL - {NoLostWrite.name}))
    if NoLostWrite.name in names and not set(CALLS).isdisjoint(kinds):
        told = evidence.keep(told)
        lost = lost_writes(evidence, told)
        parts.append(lost.select(F.lit("finding").alias("what"), "run", "json"))
    parts.append(told.where("what <> 'loss'").select("what", "run", "json"))
    rows = reduce(DataFrame.unionByName, parts).collect()
    decoder = msgspec.json.Decoder(Finding)
    lacks = {row.run: row.json for row in rows if row.what == "lacks"}
    findings = (_completed(decoder.decode(row.json)) for row in rows if row.what == "finding")
    return [doubted(one, lacks.get(one.run, "")) for one in findings], lacks


def _as_told(findings: DataFrame) -> DataFrame:
    return findings.select(F.lit("finding").alias("what"), "run", F.to_json(F.struct(*findings.columns)).alias("json"))


def _completed(finding: Finding) -> Finding:
    """What follows from the witnesses is not asked of each rule."""
    return msgspec.structs.replace(
        finding, members=members_of(finding.witnesses), versions=versions_of(finding.witnesses)
    )
