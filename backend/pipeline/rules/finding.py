"""What a rule found, as whoever reads it gets it. Imports no Spark."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.invariants.invariant_checker import Numbering


class Witness(Struct, frozen=True):
    """An event that proves a finding: its identity within the run, whose it is, when it was, and of which version it speaks."""

    uuid: str
    seq: int
    member: str = ""
    at: int = 0
    """Microseconds on the run's clock."""
    version: int | None = None
    """Of a list or a table; null where the event speaks of none."""


class Finding(Struct, frozen=True):
    """One place where a rule is broken, at the event that shows it. `severity`: violation, or warning where the journal lacks
    something."""

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
    """Of the lists and tables of which these events speak."""
    doubt: str = ""
    """What the journal lacks, and why this is a warning therefore; empty where nothing is in doubt."""
    link: str = ""
    """The command that shows the moment in the console."""


def witness_of(record: Record) -> Witness:
    """The record as a witness."""
    return Witness(record.uuid, record.seq, record.member, record.at, version_of(record))


def version_of(record: Record) -> int | None:
    """The version of a list or a table of which an event speaks."""
    version = getattr(record.event, "version", None)
    return version if isinstance(version, int) else getattr(record.event, "table_version", None)


def finding_of(violation: Violation, at: Record | None = None, severity: str = "violation") -> Finding:
    """What a checker found, at the record that showed it: by default the last witness to have happened."""
    at = at or max(violation.witnesses, key=lambda record: record.at)
    witnesses = tuple(map(witness_of, violation.witnesses))
    return Finding(
        violation.invariant, severity, at.run, at.member, at.uuid, at.seq, at.at, violation.text, witnesses,
        members_of(witnesses), versions_of(witnesses),
    )  # fmt: skip


def severity_of(violation: Violation) -> str:
    """Missing records make a journal incomplete, which is no fault of the cluster (as `rules.numbering` has it)."""
    first, last = violation.witnesses[0], violation.witnesses[-1]
    is_gap = violation.invariant == Numbering.name and (first is last or last.seq > first.seq)
    return "warning" if is_gap else "violation"


def linked(finding: Finding, path: Path | None) -> Finding:
    """The finding with the command that shows its moment in the console, from the journal at `path`, if there is one."""
    link = "" if path is None else replay_command(path, finding.at)
    return msgspec.structs.replace(finding, link=link)


def replay_command(path: Path, at_us: int | None = None) -> str:
    """The command that replays the journal at `path` in the console, from the beginning or at a moment."""
    moment = () if at_us is None else ("--at", f"{at_us / SECOND_US:.6f}".rstrip("0").rstrip("."))
    return shlex.join(("quarterdeck", "console", "--replay", str(path), *moment))


def members_of(witnesses: Iterable[Witness]) -> tuple[str, ...]:
    """The members whose events these are, in their order."""
    return tuple(dict.fromkeys(witness.member for witness in witnesses))


def versions_of(witnesses: Iterable[Witness]) -> tuple[int, ...]:
    """The versions of which these events speak, in ascending order."""
    return tuple(sorted({witness.version for witness in witnesses if witness.version is not None}))


def by_weight(findings: Sequence[Finding]) -> list[Finding]:
    """Violations first, then by run and time; the same findings are always in the same order."""
    return sorted(findings, key=lambda one: (one.severity, one.run, one.at, one.rule, one.uuid, one.seq, one.detail))
