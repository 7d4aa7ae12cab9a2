"""All rules of the audit: which invariants there are, and what is found of each in the events of many runs."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from functools import reduce

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backend.pipeline.rules import agreement, convergence, decisions, numbering, tables, view_order, views
from backend.pipeline.rules.checked_on_executors import checked
from backend.pipeline.rules.evidence import Evidence
from backend.pipeline.rules.finding import Finding, members_of, versions_of
from backend.pipeline.rules.registry import Rule
from backend.pipeline.rules.writes import CALLS, lost_writes
from backend.simulation.invariants import Watch
from backend.simulation.invariants.writes import NoLostWrite

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

STATEMENTS: dict[str, str] = {
    **{checker.name: checker.statement() for checker in Watch().checkers},
    convergence.CONVERGENCE: convergence.STATEMENT,
}
"""Every invariant by its name, in words."""

NAMES = tuple(STATEMENTS)

RELATIONAL = frozenset(name for one in RULES for name in one.names) | {NoLostWrite.name}
"""Those that are transformations of tables, which scale within one run. The others are the checkers, one task for each run."""

SELF_EVIDENT = frozenset(
    ("numbering", "view integrity", "version", "unique content", "one master", "view order", "age order", "one author")
)
"""Their witnesses prove them, whatever else is missing. Everything else needs the whole journal."""


class UnknownRule(ValueError):
    """A name that no rule has. The message names it and gives a hint."""


def wanted_rules(names: Collection[str]) -> frozenset[str]:
    """The rules of these names; all, when none is named. Raises `UnknownRule`."""
    for name in names:
        if name not in STATEMENTS:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(NAMES)}"
            raise UnknownRule(f"no rule {name!r}; {hint}")
    return frozenset(names or NAMES)


def judged_without_the_rest(name: str) -> bool:
    """Whether a finding of the rule stands although a part of the journal is missing."""
    return name in SELF_EVIDENT


def doubted(finding: Finding, lacks: str) -> Finding:
    """The finding in a run whose journal `lacks` something: a warning, unless it stands without that."""
    if not lacks or finding.severity == "warning" or judged_without_the_rest(finding.rule):
        return finding
    return msgspec.structs.replace(finding, severity="warning", doubt=lacks)


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
    findings = [_completed(decoder.decode(row.json)) for row in rows if row.what == "finding"]
    return findings, {row.run: row.json for row in rows if row.what == "lacks"}


def _as_told(findings: DataFrame) -> DataFrame:
    return findings.select(F.lit("finding").alias("what"), "run", F.to_json(F.struct(*findings.columns)).alias("json"))


def _completed(finding: Finding) -> Finding:
    """What follows from the witnesses is not asked of each rule."""
    return msgspec.structs.replace(
        finding, members=members_of(finding.witnesses), versions=versions_of(finding.witnesses)
    )


