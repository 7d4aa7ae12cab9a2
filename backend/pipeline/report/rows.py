"""What Spark hands over to the report: parts of the model, each with the run that it belongs to. Imports no Spark.

They still have addresses where the model has labels, and names of lineages where it has letters. Times are microseconds on the
run's clock.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct, field

from quarterdeck.backend.pipeline.report.model import (
    Claim,
    KindCount,
    Life,
    Merge,
    Metric,
    Migration,
    Outcome,
    Split,
    Suspicion,
    View,
)

Part = TypeVar("Part")


class RunRow(Struct, frozen=True):
    """One run, in the index."""

    run: str
    start_us: int
    end_us: int
    events: int
    members: int


class ReportRow(Struct, Generic[Part], frozen=True, kw_only=True):
    """A part of the section of a run."""

    run: str
    part: Part
    of: int = 0
    """How many such rows there were, where they were cut down to what a report shows. In a lane, how many in that lane."""
    member: str = ""
    """Whose lane it belongs to, if it belongs to one."""
    lanes: int = 0
    """How many members the run has, where the part is an incarnation."""


class FaultRow(Struct, frozen=True):
    """What was done to a member or to a link."""

    fault: str
    from_at: int
    member: str | None = None
    source: str | None = None
    target: str | None = None
    to_at: int | None = None
    blocked: str | None = None
    delay: int | None = None
    loss: float | None = None
    duplicate: float | None = None
    dropped_kinds: list[str] | None = None
    worse_kinds: list[str] | None = None


class BinRow(Struct, frozen=True):
    """How many samples of a metric lie between 10 ** (bin / 3) microseconds and the beginning of the next bin."""

    metric: str
    kind: str
    bin: int
    times: int


class ReportRows(Struct, frozen=True):
    """Everything for one report."""

    runs: list[RunRow]
    """The index: those with findings first."""
    lives: list[ReportRow[Life]] = field(default_factory=list)
    views: list[ReportRow[View]] = field(default_factory=list)
    """Of lists that a member installed within a span of time, the last one. `end_us` is not known yet."""
    suspicions: list[ReportRow[Suspicion]] = field(default_factory=list)
    migrations: list[ReportRow[Migration]] = field(default_factory=list)
    outcomes: list[ReportRow[Outcome]] = field(default_factory=list)
    claims: list[ReportRow[Claim]] = field(default_factory=list)
    merges: list[ReportRow[Merge]] = field(default_factory=list)
    faults: list[ReportRow[FaultRow]] = field(default_factory=list)
    kinds: list[ReportRow[KindCount]] = field(default_factory=list)
    splits: list[ReportRow[Split]] = field(default_factory=list)
    metrics: list[ReportRow[Metric]] = field(default_factory=list)
    bins: list[ReportRow[BinRow]] = field(default_factory=list)
