"""What an audit says: its findings, what it counted, and what it could not judge. Imports no Spark."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.observations.observation import Observation
from quarterdeck.backend.hazelcast.logs.observations.partitions import MigrationRound
from quarterdeck.backend.hazelcast.logs.observations.separation import VerdictCount
from quarterdeck.backend.pipeline.rules.finding import Finding


class QuarantinedLine(Struct, frozen=True):
    """A line that is no record, or contradicts one."""

    file: str
    line: str
    reason: str
    number: int = 0
    """Which line of the file it is, from 1; 0 where that is not known."""


class NotJudged(Struct, frozen=True):
    """Rules about which nothing can be said, and why."""

    rules: tuple[str, ...]
    why: str


class AuditResult(Struct, frozen=True):
    """What an audit says of everything that it was given."""

    findings: tuple[Finding, ...]
    """Violations first, then by run and time."""
    counts: dict[str, int]
    """How many files, lines, records, runs, lives, duplicates, quarantined lines (of these contradicting: records, but not the
    first of their identity), views and suspicions there are; and findings, where there are more than are listed."""
    problems: tuple[QuarantinedLine, ...]
    """The first of the quarantined lines."""
    rules: tuple[str, ...] = ()
    """Those that were judged."""
    not_judged: tuple[NotJudged, ...] = ()
    incomplete: dict[str, str] = {}
    """By run, what its journal lacks; a finding that needs the whole journal is only a warning there."""
    observations: tuple[Observation, ...] = ()
    """What is to be known of members' logs although no rule is broken."""
    migration_rounds: tuple[MigrationRound, ...] = ()
    """How many migrations masters planned and completed, as their logs say."""
    merge_verdicts: tuple[VerdictCount, ...] = ()
    """What masters said in their logs about merging with each other, and how often."""
