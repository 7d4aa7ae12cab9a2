"""What a rule of the audit is: a check of one table, whose findings all have one schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from backend.pipeline.schemas import FINDINGS

Source = Literal["views", "events"]
Severity = Literal["violation", "warning"]
LIFE = ("run", "uuid")


@dataclass(frozen=True)
class Rule:
    """A check of one table. `find` gives every column of `FINDINGS` but rule and severity."""

    name: str
    severity: Severity
    reads: Source
    find: Callable[[DataFrame], DataFrame]

    def findings(self, table: DataFrame) -> DataFrame:
        """What breaks the rule in `table` (schema `FINDINGS`)."""
        found = self.find(table).withColumns({"rule": F.lit(self.name), "severity": F.lit(self.severity)})
        return found.select(FINDINGS.names)


RULES: list[Rule] = []


def rule(name: str, severity: Severity, reads: Source) -> Callable[[Callable[[DataFrame], DataFrame]], Rule]:
    """Register a function as the check of the rule `name`. Several checks may share a name."""

    def register(find: Callable[[DataFrame], DataFrame]) -> Rule:
        made = Rule(name, severity, reads, find)
        RULES.append(made)
        return made

    return register


def all_findings(tables: Mapping[Source, DataFrame]) -> DataFrame:
    """What all rules find in `tables` (schema `FINDINGS`)."""
    return reduce(DataFrame.unionByName, (one.findings(tables[one.reads]) for one in RULES))


def first_of(rows: DataFrame, group: list[str], order: list[str]) -> DataFrame:
    """The first row of each group; `order` leaves no ties, so that the same journals give the same findings."""
    place = F.row_number().over(Window.partitionBy(*group).orderBy(*order))
    return rows.withColumn("place", place).where("place = 1").drop("place")


def witnesses_of(*events: str) -> Column:
    """The events that prove a finding, each written as the column of its uuid, a dot, and the column of its seq."""
    pairs = [event.split(".") for event in events]
    structs = [F.struct(F.col(uuid).alias("uuid"), F.col(seq).alias("seq")) for uuid, seq in pairs]
    return F.filter(F.array(*structs), lambda witness: witness["seq"].isNotNull()).alias("witnesses")
