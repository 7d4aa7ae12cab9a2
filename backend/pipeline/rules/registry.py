"""What a rule of the audit is: a transformation of events into findings, under the name and the sentence of an invariant.

Every invariant has its statement once, on the simulator's checker of that name. Here stands how to see it in tables of any size;
the verdict is the checker's, and so are the sentences about what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quarterdeck.backend.pipeline.rules.evidence import Evidence
from quarterdeck.backend.pipeline.rules.finding import Finding
from quarterdeck.backend.pipeline.schemas import columns_of

Severity = Literal["violation", "warning"]

FINDINGS = columns_of(Finding)
"""The columns of a finding."""

FINDING_SCHEMA = StructType(FINDINGS.fields[: FINDINGS.names.index("witnesses") + 1])
"""What rules give. The rest of a finding follows from this."""


@dataclass(frozen=True)
class Rule:
    """Finds what breaks the invariants `names` (schema `FINDING_SCHEMA`), in events of these `kinds`, after so long a calm."""

    names: tuple[str, ...]
    kinds: frozenset[str]
    find: Callable[[Evidence], DataFrame]
    least_calm_us: Callable[[Evidence], int] | None = None

    def can_find(self, evidence: Evidence, kinds: Collection[str], calm_us: int) -> bool:
        """Whether there can be anything to find where only events of these kinds are, and no run ends with a longer calm."""
        if self.least_calm_us is not None and calm_us <= self.least_calm_us(evidence):
            return False
        return not self.kinds or not self.kinds.isdisjoint(kinds)


def rule(
    *names: str, kinds: tuple[str, ...] = (), least_calm_us: Callable[[Evidence], int] | None = None
) -> Callable[[Callable[[Evidence], DataFrame]], Rule]:
    """Makes a rule of a function that finds what breaks these invariants.

    Nothing is to be found without one of the `kinds`, nor in a run that is not calm for longer than `least_calm_us`.
    """

    def make(find: Callable[[Evidence], DataFrame]) -> Rule:
        return Rule(names, frozenset(kinds), find, least_calm_us)

    return make


def finding_column(name: str, detail: Column, *witnesses: Column, severity: Column | None = None) -> Column:
    """A finding as a column: of a row whose columns are those of the event that shows it. Absent witnesses are left out."""
    return F.struct(
        F.lit(name).alias("rule"),
        (F.lit("violation") if severity is None else severity).alias("severity"),
        detail.alias("detail"),
        F.array_compact(F.array(*witnesses)).alias("witnesses"),
    )


def first_broken(*checks: tuple[Column, Column]) -> Column:
    """The finding of the first condition that holds; null when none does."""
    column = F.when(*checks[0])
    for condition, finding in checks[1:]:
        column = column.when(condition, finding)
    return column


def findings(rows: DataFrame, *columns: Column) -> DataFrame:
    """The rows' findings (schema `FINDING_SCHEMA`): each of `columns` is one, or null."""
    several = rows.select("run", "member", "uuid", "seq", "at", F.array_compact(F.array(*columns)).alias("findings"))
    each = several.where(F.size("findings") > 0).withColumn("finding", F.explode("findings"))
    return each.select(
        "finding.rule", "finding.severity", "run", "member", "uuid", "seq", "at", "finding.detail", "finding.witnesses"
    )


def first_of(rows: DataFrame, group: list[str], order: list[str]) -> DataFrame:
    """The first row of each group; `order` leaves no ties, so that the same journals give the same findings."""
    place = F.row_number().over(Window.partitionBy(*group).orderBy(*order))
    return rows.withColumn("place", place).where("place = 1").drop("place")
