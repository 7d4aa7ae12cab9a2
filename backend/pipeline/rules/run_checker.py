"""Checks one run, record by record: what breaks the invariants, and what its journal lacks. Imports no Spark."""

from __future__ import annotations

from collections.abc import Collection

from quarterdeck.backend.core.events import ListInstalled, Record
from quarterdeck.backend.pipeline.rules.finding import Finding, finding_of, severity_of
from quarterdeck.backend.simulation.invariants import InvariantChecker


class RunChecker:
    """The simulator's checkers over the records of one run, in their order. `names`: only these invariants."""

    def __init__(self, names: Collection[str] | None = None) -> None:
        self.invariants = InvariantChecker(names)
        self.completeness = JournalCompleteness()

    def observe(self, record: Record) -> list[Finding]:
        """What the next record shows. Its number is to be given to `completeness` besides."""
        if isinstance(record.event, ListInstalled):
            self.completeness.listed(record.event)
        before = len(self.invariants.violations)
        self.invariants.observe(record)
        return [finding_of(one, record, severity_of(one)) for one in self.invariants.violations[before:]]

    def owed(self, ends_us: int, timeout_us: int) -> list[Finding]:
        """What is still owed where the run ends, and was owed for longer than `timeout_us`."""
        concluded = self.invariants.conclude(ends_us, timeout_us).violations
        return [finding_of(one, one.witnesses[0]) for one in concluded[len(self.invariants.violations) :]]


class JournalCompleteness:
    """Whether the records of all incarnations are there, each from its first on."""

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._gap = ""
        self._members: dict[str, str] = {}
        self._lists: set[tuple[str, int]] = set()

    def number(self, uuid: str, member: str, seq: int) -> None:
        """The next record of an incarnation has this number."""
        before = self._latest.get(uuid, 0)
        self._latest[uuid] = seq
        if seq > before + 1 and not self._gap:
            self._gap = f"events of {member} before its event {seq} are missing"

    def listed(self, event: ListInstalled) -> None:
        """A list names incarnations of which there must be records."""
        if (event.lineage, event.version) not in self._lists:
            self._lists.add((event.lineage, event.version))
            self._members.update((member.uuid, member.address) for member in event.members)

    def unreadable(self, member: str, seq: int, problem: str) -> None:
        """The record is there and cannot be understood."""
        self._gap = self._gap or f"event {seq} of {member} is not as this version knows it: {problem}"

    def missing_part(self) -> str:
        """What is missing, in words; empty when nothing is."""
        silent = sorted(address for uuid, address in self._members.items() if uuid not in self._latest)
        return self._gap or (f"nothing is there of {', '.join(silent[:3])}, on a list" if silent else "")
