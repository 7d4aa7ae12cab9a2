"""What Spark hands over to the report: few rows, of these kinds. Times are microseconds on the run's clock. Imports no Spark.

`of`, where a row has it: how many such rows there were before they were cut down to what a report shows.
"""

from __future__ import annotations

from msgspec import Struct, field


class RunRow(Struct, frozen=True):
    """One run, in the index."""

    run: str
    start_us: int
    end_us: int
    events: int
    members: int


class LifeRow(Struct, frozen=True):
    run: str
    member: str
    uuid: str
    started_at: int
    lane: int
    """The how-manieth member of its run this is, from 1."""
    lanes: int
    """How many members the run has."""
    of: int
    """How many lives this member has."""
    address: str | None = None
    ended_at: int | None = None
    end: str | None = None


class ViewRow(Struct, frozen=True):
    """A list that a member installed: the last of `installs` within a span of time."""

    run: str
    member: str
    uuid: str
    at: int
    version: int
    lineage: str
    master: str
    addresses: list[str]
    """Of the members on it, the first ones."""
    size: int
    installs: int
    of: int
    """How many lists this member installed in all."""


class SuspicionRow(Struct, frozen=True):
    """All suspicions of one member against one address."""

    run: str
    member: str
    suspect: str
    times: int
    suspected_us: int
    open: int
    of: int


class MigrationRow(Struct, frozen=True):
    run: str
    migration_id: str
    outcome: str
    rejections: int
    of: int
    partition: int | None = None
    type: str | None = None
    source: str | None = None
    destination: str | None = None
    started_at: int | None = None
    copied_at: int | None = None
    decided_at: int | None = None
    finished_at: int | None = None
    bytes: int | None = None
    reason: str | None = None


class OutcomeRow(Struct, frozen=True):
    """How many migrations of one type ended in one way."""

    run: str
    type: str
    outcome: str
    times: int


class ClaimRow(Struct, frozen=True):
    run: str
    member: str
    outcome: str
    accepted: int
    refused: int
    retried: int
    of: int
    started_at: int | None = None
    ended_at: int | None = None
    version: int | None = None
    new_version: int | None = None
    lineage: str | None = None
    left_out: list[str] = field(default_factory=list)
    reason: str | None = None


class MergeRow(Struct, frozen=True):
    run: str
    member: str
    left_at: int
    of: int
    target: str | None = None
    from_lineage: str | None = None
    to_lineage: str | None = None
    joined_at: int | None = None


class FaultRow(Struct, frozen=True):
    run: str
    fault: str
    from_at: int
    of: int
    member: str | None = None
    source: str | None = None
    target: str | None = None
    to_at: int | None = None
    blocked: str | None = None
    delay: int | None = None
    loss: float | None = None
    duplicate: float | None = None
    dropped_kinds: list[str] = field(default_factory=list)


class KindRow(Struct, frozen=True):
    """How often a kind of event happened."""

    run: str
    kind: str
    times: int


class SideRow(Struct, frozen=True):
    master: str
    lineage: str
    members: list[str]


class SplitRow(Struct, frozen=True):
    run: str
    from_at: int
    lasted_us: int
    sides: list[SideRow]
    of: int
    to_at: int | None = None
    healed_at: int | None = None
    merge_us: int | None = None


class MetricRow(Struct, frozen=True):
    """The samples of one metric in one run; columns as in the metrics' summary."""

    run: str
    metric: str
    kind: str
    unit: str
    count: int
    missing: int
    of: int
    floor: float | None = None
    least: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    most: float | None = None


class BinRow(Struct, frozen=True):
    """How many samples of a metric lie between 10 ** (bin / 3) microseconds and the beginning of the next bin."""

    run: str
    metric: str
    kind: str
    bin: int
    times: int


class Rows(Struct, frozen=True):
    """Everything for one report."""

    runs: list[RunRow]
    """The index: those with findings first."""
    lives: list[LifeRow] = field(default_factory=list)
    views: list[ViewRow] = field(default_factory=list)
    suspicions: list[SuspicionRow] = field(default_factory=list)
    migrations: list[MigrationRow] = field(default_factory=list)
    outcomes: list[OutcomeRow] = field(default_factory=list)
    claims: list[ClaimRow] = field(default_factory=list)
    merges: list[MergeRow] = field(default_factory=list)
    faults: list[FaultRow] = field(default_factory=list)
    kinds: list[KindRow] = field(default_factory=list)
    splits: list[SplitRow] = field(default_factory=list)
    metrics: list[MetricRow] = field(default_factory=list)
    bins: list[BinRow] = field(default_factory=list)
