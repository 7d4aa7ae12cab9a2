"""The audit's rules, which are the invariants, its findings: places where a rule is broken, and its result. Imports no Spark."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker, RunIncarnations, Violation
from quarterdeck.backend.invariants.convergence import Convergence
from quarterdeck.backend.invariants.invariant_checker import BEGINS_LATE, Numbering
from quarterdeck.backend.invariants.partition_tables import PartitionTables
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.partitions import MigrationRound
from quarterdeck.backend.judgement.observations.story import VerdictCount

_CONVERGENCE = Convergence(PartitionTables(RunIncarnations()))

STATEMENTS: dict[str, str] = {
    invariant.name: invariant.statement() for invariant in (*InvariantChecker().invariants, _CONVERGENCE)
}
"""Every invariant by its name, in words."""

NAMES = tuple(STATEMENTS)


class UnknownRule(ValueError):
    """A name that no rule has. The message names it and gives a hint."""


def wanted_rules(names: Collection[str]) -> frozenset[str]:
    """Return the rules of these names, or all of them if none is named. Raises `UnknownRule`."""
    for name in names:
        if name not in STATEMENTS:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(NAMES)}"
            raise UnknownRule(f"no rule {name!r}; {hint}")
    return frozenset(names or NAMES)


def holds_for_incomplete_journals(name: str) -> bool:
    """Return whether a finding of the rule holds although a part of the journal is missing."""
    return name in PROVEN_BY_WITNESSES


def holds_without_beginning(finding: Finding) -> bool:
    """Return whether a finding holds although the beginning of the run was removed."""
    return holds_for_incomplete_journals(finding.rule) and BEGINS_LATE not in finding.detail


class Witness(Struct, frozen=True):
    """An event that proves a finding."""

    uuid: str
    seq: int
    member: str = ""
    at: int = 0
    """Microseconds on the run's clock."""
    version: int | None = None
    """The version of the list or table that the event names; None where it names none."""


class Finding(Struct, frozen=True):
    """A place where a rule is broken, at the event that shows it.

    `severity`: violation, or warning where the journal lacks something.
    """

    rule: str
    severity: str
    run: str
    member: str
    uuid: str
    seq: int
    at: int
    """Microseconds on the run's clock."""
    detail: str
    """What happened, in a sentence."""
    witnesses: tuple[Witness, ...] = ()
    members: tuple[str, ...] = ()
    """Labels of the members whose events prove it."""
    versions: tuple[int, ...] = ()
    """Of the lists and tables that these events name."""
    doubt: str = ""
    """What the journal lacks, which makes this a warning; empty where nothing is in doubt."""
    link: str = ""
    """The command that shows the moment in the console."""


def finding_of(violation: Violation, at: Record | None = None, severity: str = "violation") -> Finding:
    """Return a checker's violation as a finding at the record that shows it: by default the last witness."""
    at = at or max(violation.witnesses, key=lambda record: record.at)
    witnesses = tuple(
        Witness(record.uuid, record.seq, record.member, record.at, _version_of(record))
        for record in violation.witnesses
    )
    return Finding(
        violation.invariant, severity, at.run, at.member, at.uuid, at.seq, at.at, violation.text, witnesses,
        tuple(dict.fromkeys(witness.member for witness in witnesses)),
        tuple(sorted({witness.version for witness in witnesses if witness.version is not None})),
    )  # fmt: skip


def _version_of(record: Record) -> int | None:
    version = getattr(record.event, "version", None)
    return version if isinstance(version, int) else getattr(record.event, "table_version", None)


def severity_of(violation: Violation) -> str:
    """Return warning for missing records, which are a gap in the journal and no fault of the cluster, else violation."""
    first, last = violation.witnesses[0], violation.witnesses[-1]
    is_gap = violation.invariant == Numbering.name and (first is last or last.seq > first.seq)
    return "warning" if is_gap else "violation"


def linked(finding: Finding, path: Path | None) -> Finding:
    """Add the command that shows the finding in the console, from the journal at `path`, if there is one."""
    return msgspec.structs.replace(finding, link="" if path is None else replay_command(path, finding.at))


def replay_command(path: Path, at_us: int | None = None) -> str:
    """Return the command that replays the journal at `path` in the console, from the beginning or from a moment."""
    moment = () if at_us is None else ("--at", f"{at_us / SECOND_US:.6f}".rstrip("0").rstrip("."))
    return shlex.join(("quarterdeck", "console", "--replay", str(path), *moment))


def by_weight(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: violations first, then by run and time; equal findings always get the same order."""
    return sorted(
        findings,
        key=lambda found: (
            found.severity, found.run, found.at, found.rule, found.uuid, found.seq, found.detail,
        ),
    )  # fmt: skip


def downgraded(finding: Finding, lacks: str) -> Finding:
    """Return the finding as a warning if the run's journal `lacks` something that the finding needs."""
    if not lacks or finding.severity == "warning" or holds_for_incomplete_journals(finding.rule):
        return finding
    return msgspec.structs.replace(finding, severity="warning", doubt=lacks)


# The result of an audit


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
    """How many files, lines, records, runs, incarnations, duplicates, quarantined lines, views and suspicions there are.

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
    accounts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By run, what a colleague would say first of its logs."""
    reading: tuple[str, ...] = ()
    """What was concluded of logs as they were read, such as the order of the numbers in their dates."""
