"""What the simulator's own invariant checker finds in records, in the words of the audit."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.pipeline.judging.run_judge import OBLIGATION_TIMEOUT_US
from quarterdeck.backend.pipeline.rules import Finding, finding_of

Told = tuple[str, str, int, int, str]
"""Rule, life, number and time of the event that shows it, and the sentence."""


def in_order(records: Iterable[Record]) -> list[Record]:
    """Each record once, as a journal gives them back."""
    once: dict[tuple[str, int], Record] = {}
    for record in records:
        once.setdefault((record.uuid, record.seq), record)
    return sorted(once.values(), key=lambda record: record.at)


def watched(records: list[Record]) -> list[Finding]:
    """What is found record by record, and what is owed at the end; both at the record that shows it."""
    invariant_checker = InvariantChecker()
    findings = []
    for record in records:
        before = len(invariant_checker.violations)
        invariant_checker.observe(record)
        findings += [finding_of(violation, record) for violation in invariant_checker.violations[before:]]
    if records:
        owed = invariant_checker.conclude(records[-1].at, OBLIGATION_TIMEOUT_US).violations[
            len(invariant_checker.violations) :
        ]
        findings += [finding_of(violation, violation.witnesses[0]) for violation in owed]
    return findings


def told(findings: Iterable[Finding]) -> list[Told]:
    """What both must say alike."""
    return sorted((finding.rule, finding.uuid, finding.seq, finding.at, finding.detail) for finding in findings)
