"""Whether the journal itself is whole: whatever else is audited relies on it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.rules.evidence import Evidence, within_incarnation, witness
from quarterdeck.backend.pipeline.rules.registry import finding_column, findings, first_broken, rule
from quarterdeck.backend.simulation.invariants.invariant_checker import Numbering


@rule(Numbering.name)
def missing_events(evidence: Evidence) -> DataFrame:
    """What is missing makes the journal incomplete, which is no fault of the cluster: a warning. What is out of order is one."""
    events = evidence.events.select(
        *("run", "member", "uuid", "seq", "at", "place"), witness().alias("witness")
    ).withColumn("before", F.lag("witness").over(within_incarnation()))
    before, own = F.col("before"), F.col("witness")
    begins = F.format_string("%s begins with record %d, not 1", "member", "seq")
    follows = F.format_string("record %d of %s follows record %d", "seq", "member", before["seq"])
    severity = F.when(before.isNull() | (F.col("seq") > before["seq"]), "warning").otherwise("violation")
    broken = first_broken(
        (before.isNull() & (F.col("seq") != 1), finding_column(Numbering.name, begins, own, severity=severity)),
        (F.col("seq") != before["seq"] + 1, finding_column(Numbering.name, follows, before, own, severity=severity)),
    )
    return findings(events, broken)
