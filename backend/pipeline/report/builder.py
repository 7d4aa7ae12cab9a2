"""From rows and findings to the model of a report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from quarterdeck.backend.hazelcast.logs.observations.story import headline
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import AuditResult, QuarantinedLine
from quarterdeck.backend.pipeline.report.limits import ReportLimits
from quarterdeck.backend.pipeline.report.log_sections import LogSections
from quarterdeck.backend.pipeline.report.model import (
    Cut,
    Event,
    IndexLine,
    Problem,
    Report,
    RuleCount,
    Run,
    Verdict,
)
from quarterdeck.backend.pipeline.report.rows import ReportRows, RunRow
from quarterdeck.backend.pipeline.report.run_sections import RunSections
from quarterdeck.backend.pipeline.rules.finding import Finding, replay_command

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.engine_input import EngineInput

VIOLATION = "violation"


def build_report(
    rows: ReportRows, result: AuditResult, source: AuditInput | EngineInput, limits: ReportLimits
) -> Report:
    """The report on `source`, of which `result` is the audit; its size is bounded by `limits`."""
    by_run: dict[str, list[Finding]] = {}
    for finding in result.findings:
        by_run.setdefault(finding.run, []).append(finding)
    shown = rows.runs[: limits.sections]
    runs = [
        _run(number, row, rows, by_run.get(row.run, []), result, source, limits)
        for number, row in enumerate(shown, start=1)
    ]
    numbers = {run.run: run.number for run in runs}
    index = tuple(_index_line(row, by_run.get(row.run, []), numbers.get(row.run), result, source) for row in rows.runs)
    bad = tuple(
        QuarantinedLine(_short(one.file, limits), _short(one.line, limits), one.reason)
        for one in result.problems[: limits.problems]
    )
    violations = _violations(result.findings)
    return Report(
        verdict=_verdict(result.findings, bool(result.incomplete), source),
        source=source.kind,
        headline=headline(result.observations),
        observations=len(result.observations),
        sources=tuple(map(str, source.paths)),
        counts=dict(result.counts),
        violations=violations,
        warnings=len(result.findings) - violations,
        rules=_rules(result.findings),
        judged=result.rules,
        not_judged=result.not_judged,
        index=index,
        index_cut=Cut(len(index), max(result.counts.get("runs", 0), len(index))),
        runs=tuple(runs),
        bad_lines=bad,
        bad_lines_cut=Cut(len(bad), max(result.counts.get("quarantined", 0), len(result.problems))),
    )


def _run(
    number: int,
    row: RunRow,
    rows: ReportRows,
    findings: Sequence[Finding],
    result: AuditResult,
    source: AuditInput | EngineInput,
    limits: ReportLimits,
) -> Run:
    problems = tuple(_problem(one, limits) for one in findings[: limits.findings])
    parts = RunSections(row, rows, limits)
    told = LogSections(row.run, result, limits)
    directory = source.run_directories.get(row.run)
    return Run(
        number=number,
        run=row.run,
        verdict=_verdict(findings, row.run in result.incomplete, source),
        start_us=row.start_us,
        end_us=row.end_us,
        events=row.events,
        command="" if directory is None else replay_command(directory),
        incomplete=result.incomplete.get(row.run, ""),
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
        observations=told.observations,
        observations_cut=told.observations_cut,
        sizes=parts.sizes[: limits.marks],
        sizes_cut=Cut(min(len(parts.sizes), limits.marks), len(parts.sizes)),
        verdicts=told.verdicts,
        verdicts_cut=told.verdicts_cut,
        rounds=told.rounds,
        rounds_cut=told.rounds_cut,
        kinds=parts.kinds,
    )


def _problem(finding: Finding, limits: ReportLimits) -> Problem:
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


def _index_line(
    row: RunRow, findings: Sequence[Finding], section: int | None, result: AuditResult, source: AuditInput | EngineInput
) -> IndexLine:
    violations = _violations(findings)
    return IndexLine(
        row.run,
        _verdict(findings, row.run in result.incomplete, source),
        section,
        row.members,
        row.events,
        row.end_us - row.start_us,
        violations,
        len(findings) - violations,
        sum(one.run == row.run for one in result.observations),
    )


def _rules(findings: Iterable[Finding]) -> tuple[RuleCount, ...]:
    counts = Counter((one.rule, one.severity == VIOLATION) for one in findings)
    return tuple(
        RuleCount(rule, counts[rule, True], counts[rule, False]) for rule in sorted({key[0] for key in counts})
    )


def _verdict(findings: Sequence[Finding], incomplete: bool, source: AuditInput | EngineInput) -> Verdict:
    """Of what is not there, as of much in members' logs, nobody can say that it is sound."""
    if not findings and source.kind == "logs":
        return "uncontradicted"
    if not findings:
        return "doubtful" if incomplete else "sound"
    return "violated" if _violations(findings) else "doubtful"


def _violations(findings: Iterable[Finding]) -> int:
    return sum(one.severity == VIOLATION for one in findings)


def _short(text: str, limits: ReportLimits) -> str:
    return text if len(text) <= limits.letters else text[: limits.letters] + "…"
