"""All rules of the audit: which invariants there are, and what is found of each in the events of many runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from functools import reduce

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import Evidence
from quarterdeck.backend.pipeline.rules.executor_checks import run_checkers
from quarterdeck.backend.pipeline.rules.finding import Finding, members_of, versions_of
from quarterdeck.backend.pipeline.rules.invariants import (
    agreement,
    convergence,
    decisions,
    numbering,
    tables,
    view_order,
    views,
)
from quarterdeck.backend.pipeline.rules.invariants.writes import CALLS, lost_writes
from quarterdeck.backend.pipeline.rules.names import CONVERGENCE, NAMES, downgraded
from quarterdeck.backend.pipeline.rules.registry import Rule
from quarterdeck.backend.simulation.invariants.acknowledged_writes import NoLostWrite

__all__ = ["RELATIONAL", "RULES", "downgraded", "find"]

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

CHECKED = frozenset(NAMES) - {CONVERGENCE}
"""Those that have a checker."""


def find(
    evidence: Evidence, names: Set[str], kinds: Collection[str], calm_us: int, *, by_tables: bool
) -> tuple[list[Finding], dict[str, str]]:
    """What breaks the rules `names`, and by run what its journal lacks.

    `kinds`: the kinds of events that there are. `calm_us`: no run ends with a longer calm. `by_tables`: whatever can be is
    judged by transformations of tables; else by the checkers, which is quicker where there is little, and the verdict is the
    same. The result is held in memory.
    """
    rules = [one for one in RULES if not names.isdisjoint(one.names) and one.can_find(evidence, kinds, calm_us)]
    rows = None if by_tables else _run_by_run(evidence, rules, names)
    if rows is None:
        rows = _by_tables(evidence, rules, names, kinds)
    decoder = msgspec.json.Decoder(Finding)
    lacks = {row.run: row.json for row in rows if row.what == "lacks"}
    findings = (_completed(decoder.decode(row.json)) for row in rows if row.what == "finding")
    return [downgraded(one, lacks.get(one.run, "")) for one in findings], lacks


def _run_by_run(evidence: Evidence, rules: Sequence[Rule], names: Set[str]) -> list[Row] | None:
    """What is told where each invariant that has a checker is left to it; None where the checkers did not see every event."""
    parts = [_as_told(one.find(evidence)) for one in rules if CHECKED.isdisjoint(one.names)]
    rows = _together(*parts, run_checkers(evidence, names & CHECKED))
    return None if any(row.what == "strange" for row in rows) else rows


def _by_tables(evidence: Evidence, rules: Sequence[Rule], names: Set[str], kinds: Collection[str]) -> list[Row]:
    """What is told where only that is left to the checkers which needs the whole story of a run."""
    parts = [_as_told(one.find(evidence).where(F.col("rule").isin(*names))) for one in rules]
    told = run_checkers(evidence, names - (RELATIONAL - {NoLostWrite.name}), but_for=CALLS)
    if NoLostWrite.name in names and not set(CALLS).isdisjoint(kinds):
        told = evidence.keep(told)
        lost = lost_writes(evidence, told)
        parts.append(lost.select(F.lit("finding").alias("what"), "run", "json"))
    return _together(*parts, told)


def _together(*parts: DataFrame) -> list[Row]:
    """All in one action."""
    told = (part.where("what in ('finding', 'lacks', 'strange')").select("what", "run", "json") for part in parts)
    return reduce(DataFrame.unionByName, told).collect()


def _as_told(findings: DataFrame) -> DataFrame:
    return findings.select(F.lit("finding").alias("what"), "run", F.to_json(F.struct(*findings.columns)).alias("json"))


def _completed(finding: Finding) -> Finding:
    """What follows from the witnesses is not asked of each rule."""
    return msgspec.structs.replace(
        finding, members=members_of(finding.witnesses), versions=versions_of(finding.witnesses)
    )
