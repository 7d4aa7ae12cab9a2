"""From rows and findings to the model of a report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from quarterdeck.backend.pipeline.report.limits import Limits
from quarterdeck.backend.pipeline.report.model import (
    BadLine,
    Cut,
    Event,
    IndexLine,
    NotJudged,
    Problem,
    Report,
    RuleCount,
    Run,
    Verdict,
)
from quarterdeck.backend.pipeline.report.rows import Rows, RunRow
from quarterdeck.backend.pipeline.report.run_sections import RunSections
from quarterdeck.backend.pipeline.rules.finding import Finding

VIOLATION = "violation"


class ReportedLine(Protocol):
    """A quarantined line of an audit."""

    @property
    def file(self) -> object: ...
    @property
    def line(self) -> str: ...
    @property
    def reason(self) -> str: ...


class ReportedUnjudged(Protocol):
    """What an audit did not judge."""

    @property
    def rules(self) -> tuple[str, ...]: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True)
class AuditSummary:
    """What the audit itself has to say."""

    sources: Sequence[str]
    counts: Mapping[str, int]
    findings: Sequence[Finding]
    bad_lines: Sequence[ReportedLine] = ()
    judged: Sequence[str] = ()
    not_judged: Sequence[ReportedUnjudged] = ()
    incomplete: Mapping[str, str] | None = None
    """By run."""
    commands: Mapping[str, str] | None = None
    """By run: what opens it in the console."""


def build_report(rows: Rows, audited: AuditSummary, limits: Limits) -> Report:
    """The report; its size is bounded by `limits`."""
    by_run: dict[str, list[Finding]] = {}
    for finding in audited.findings:
        by_run.setdefault(finding.run, []).append(finding)
    shown = rows.runs[: limits.sections]
    runs = [
        _run(number, row, rows, by_run.get(row.run, []), audited, limits) for number, row in enumerate(shown, start=1)
    ]
    numbers = {run.run: run.number for run in runs}
    incomplete = audited.incomplete or {}
    index = tuple(
        _index_line(row, by_run.get(row.run, []), numbers.get(row.run), row.run in incomplete) for row in rows.runs
    )
    bad = tuple(
        BadLine(_short(str(one.file), limits), _short(one.line, limits), one.reason)
        for one in audited.bad_lines[: limits.problems]
    )
    return Report(
        verdict=_verdict(audited.findings, bool(audited.incomplete)),
        sources=tuple(audited.sources),
        counts=dict(audited.counts),
        violations=_of_severity(audited.findings, VIOLATION),
        warnings=len(audited.findings) - _of_severity(audited.findings, VIOLATION),
        rules=_rules(audited.findings),
        judged=tuple(audited.judged),
        not_judged=tuple(NotJudged(tuple(one.rules), one.why) for one in audited.not_judged),
        index=index,
        index_cut=Cut(len(index), max(audited.counts.get("runs", 0), len(index))),
        runs=tuple(runs),
        bad_lines=bad,
        bad_lines_cut=Cut(len(bad), max(audited.counts.get("quarantined", 0), len(audited.bad_lines))),
    )


def _run(
    number: int, row: RunRow, rows: Rows, findings: Sequence[Finding], audited: AuditSummary, limits: Limits
) -> Run:
    problems = tuple(_problem(one, limits) for one in findings[: limits.findings])
    parts = RunSections(row, rows, limits)
    return Run(
        number=number,
        run=row.run,
        verdict=_verdict(findings, row.run in (audited.incomplete or {})),
        start_us=row.start_us,
        end_us=row.end_us,
        events=row.events,
        command=(audited.commands or {}).get(row.run, ""),
        incomplete=(audited.incomplete or {}).get(row.run, ""),
        rules=_rules(findings),
        problems=problems,
        problems_cut=Cut(len(problems), len(findings)),
        lanes=parts.lanes,
        lanes_cut=parts.lanes_cut,
        lineages=parts.lineages,
        splits=parts.splits,
        splits_cut=parts.cut(rows.splits),
        faults=parts.faults,
        faults_cut=parts.cut(rows.faults),
        suspicions=parts.suspicions,
        suspicions_cut=parts.cut(rows.suspicions),
        migrations=parts.migrations,
        migrations_cut=parts.cut(rows.migrations),
        outcomes=parts.outcomes,
        claims=parts.claims,
        claims_cut=parts.cut(rows.claims),
        merges=parts.merges,
        merges_cut=parts.cut(rows.merges),
        metrics=parts.metrics,
        metrics_cut=parts.cut(rows.metrics),
        kinds=parts.kinds,
    )


def _problem(finding: Finding, limits: Limits) -> Problem:
    witnesses = tuple(
        Event(one.member, one.uuid, one.seq, one.at, one.version) for one in finding.witnesses[: limits.witnesses]
    )
    return Problem(
        rule=finding.rule,
        severity=finding.severity,
        member=finding.member,
        uuid=finding.uuid,
        seq=finding.seq,
        at_us=finding.at,
        detail=_short(finding.detail, limits),
        doubt=_short(finding.doubt, limits),
        members=finding.members[: limits.names],
        versions=finding.versions[: limits.names],
        witnesses=witnesses,
        witnesses_cut=Cut(len(witnesses), len(finding.witnesses)),
        command=finding.link,
    )


def _index_line(row: RunRow, findings: Sequence[Finding], section: int | None, incomplete: bool) -> IndexLine:
    violations = _of_severity(findings, VIOLATION)
    return IndexLine(
        row.run,
        _verdict(findings, incomplete),
        section,
        row.members,
        row.events,
        row.end_us - row.start_us,
        violations,
        len(findings) - violations,
    )


def _rules(findings: Iterable[Finding]) -> tuple[RuleCount, ...]:
    counts = Counter((one.rule, one.severity == VIOLATION) for one in findings)
    return tuple(
        RuleCount(rule, counts[rule, True], counts[rule, False]) for rule in sorted({key[0] for key in counts})
    )


def _verdict(findings: Sequence[Finding], incomplete: bool) -> Verdict:
    """Of what is not there nobody can say that it is sound."""
    if not findings:
        return "doubtful" if incomplete else "sound"
    return "violated" if _of_severity(findings, VIOLATION) else "doubtful"


def _of_severity(findings: Iterable[Finding], severity: str) -> int:
    return sum(one.severity == severity for one in findings)


def _short(text: str, limits: Limits) -> str:
    return text if len(text) <= limits.letters else text[: limits.letters] + "…"
