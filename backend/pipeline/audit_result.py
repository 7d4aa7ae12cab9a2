"""The result of an audit: its findings, its counts, and what it could not judge. Imports no Spark."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.observations.observation import Observation
from quarterdeck.backend.hazelcast.logs.observations.partitions import MigrationRound
from quarterdeck.backend.hazelcast.logs.observations.separation import VerdictCount
from quarterdeck.backend.pipeline.rules import Finding


class QuarantinedLine(Struct, frozen=True):
    """A line that is no record, or contradicts one."""

    file: str
    line: str
    reason: str
    number: int = 0
    """Its number in the file, from 1; 0 where that is not known."""


class NotJudged(Struct, frozen=True):
    """Rules that could not be judged, and why."""

    rules: tuple[str, ...]
    why: str


class AuditResult(Struct, frozen=True):
    """The result of an audit of all its input."""

    findings: tuple[Finding, ...]
    """Violations first, then by run and time."""
    counts: dict[str, int]
    """How many files, lines, records, runs, lives (incarnations), duplicates, quarantined lines, views and suspicions there are.

    `contradicting` quarantined lines are records, but not the first of their identity. `findings` is there if not all are listed.
    """
    problems: tuple[QuarantinedLine, ...]
    """The first of the quarantined lines."""
    rules: tuple[str, ...] = ()
    """The rules that were judged."""
    not_judged: tuple[NotJudged, ...] = ()
    incomplete: dict[str, str] = {}
    """By run, what its journal lacks; a finding that needs the whole journal is only a warning there."""
    observations: tuple[Observation, ...] = ()
    """Remarkable things in members' logs that break no rule."""
    migration_rounds: tuple[MigrationRound, ...] = ()
    """How many migrations masters planned and completed, according to their logs."""
    merge_verdicts: tuple[VerdictCount, ...] = ()
    """What masters logged about merging with each other, and how often."""
