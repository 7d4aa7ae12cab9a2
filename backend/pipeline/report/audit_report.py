"""Builds the report of an audit: an index of the runs, and a section of each of the first ones."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from quarterdeck.backend.judgement.observations.story import headline
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.report.run_section import ReportLimits, Row, Verdict, cut, run_section
from quarterdeck.backend.pipeline.rules import AuditResult, Finding, QuarantinedLine, replay_command
from quarterdeck.backend.pipeline.run_reader import RunReader
from quarterdeck.backend.pipeline.tables.run_events import RunLines

FORMAT = 1
"""Version of the JSON; grows when a field is removed or changes its meaning."""

VIOLATION = "violation"


def report_on(reader: RunReader, result: AuditResult, limits: ReportLimits | None = None) -> Row:
    """Return the report on the runs of which `result` is the audit. Raises OSError for what cannot be read."""
    limits = limits or ReportLimits()
    named = [*(finding.run for finding in result.findings), *(seen.run for seen in result.observations)]
    first = {run: place for place, run in enumerate(dict.fromkeys(named))}
    every = reader.each(_index_row).values()
    index = sorted(every, key=lambda row: (first.get(row.run, len(first)), *_natural(row.run)))[: limits.index]
    shown = [row.run for row in index[: limits.sections]]
    section = partial(_section_of_run, limits, is_measured=reader.source.kind == "journal")
    return build_report(index, reader.each(section, shown) if shown else {}, result, reader.source, limits)


def _natural(run: str) -> tuple[str, int, str]:
    """Return what runs are sorted by: seed-9 comes before seed-10."""
    return re.sub(r"\d+", "0", run), len(run), run


def _index_row(run: str, lines: RunLines) -> Row:
    times = [line.at for line in lines.first_of(run).values()]
    members = len(lines.members[run])
    return Row(run=run, start_us=min(times), end_us=max(times), events=len(times), members=members)


def _section_of_run(limits: ReportLimits, run: str, lines: RunLines, *, is_measured: bool) -> Row:
    return run_section(RunTables.of_lines(run, lines), limits, is_measured=is_measured)


def build_report(
    index: Sequence[Row], sections: dict[str, Row], result: AuditResult, source: AuditInput, limits: ReportLimits
) -> Row:
    """Return the report on `source`, of which `result` is the audit: `index` has a row of each run, `sections` those of some."""
    by_run: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        by_run[finding.run].append(finding)
    verdicts = {row.run: _verdict(by_run[row.run], row.run in result.incomplete, source) for row in index}
    runs = [
        Row(
            number=number,
            run=row.run,
            verdict=verdicts[row.run],
            start_us=row.start_us,
            end_us=row.end_us,
            events=row.events,
            command="" if (directory := source.run_directories.get(row.run)) is None else replay_command(directory),
            incomplete=result.incomplete.get(row.run, ""),
            rules=_rules(by_run[row.run]),
            **cut("problems", (_problem(finding, limits) for finding in by_run[row.run]), limits.findings),
            **sections[row.run],
            **_of_logs(row.run, "observations", result.observations, limits.findings, limits),
            **_of_logs(row.run, "verdicts", result.merge_verdicts, limits.rows, limits),
            **_of_logs(row.run, "rounds", result.migration_rounds, limits.rows, limits),
        )
        for number, row in enumerate(index, start=1)
        if row.run in sections
    ]
    numbers = {run.run: run.number for run in runs}
    bad_lines = [
        QuarantinedLine(_short(line.file, limits), _short(line.line, limits), line.reason)
        for line in result.problems[: limits.problems]
    ]
    lines = [
        Row(
            run=row.run,
            verdict=verdicts[row.run],
            section=numbers.get(row.run),
            members=row.members,
            events=row.events,
            span_us=row.end_us - row.start_us,
            violations=_violations(by_run[row.run]),
            warnings=len(by_run[row.run]) - _violations(by_run[row.run]),
            observations=sum(observation.run == row.run for observation in result.observations),
        )
        for row in index
    ]
    violations = _violations(result.findings)
    quarantined = max(result.counts.get("quarantined", 0), len(result.problems))
    return Row(
        verdict=_verdict(result.findings, bool(result.incomplete), source),
        source=source.kind,
        headline=headline(result.observations),
        observations=len(result.observations),
        sources=list(map(str, source.paths)),
        counts=dict(result.counts),
        violations=violations,
        warnings=len(result.findings) - violations,
        rules=_rules(result.findings),
        judged=result.rules,
        not_judged=result.not_judged,
        index=lines,
        index_cut=Row(shown=len(lines), total=max(result.counts.get("runs", 0), len(lines))),
        runs=runs,
        bad_lines=bad_lines,
        bad_lines_cut=Row(shown=len(bad_lines), total=quarantined),
        format=FORMAT,
    )


def _problem(finding: Finding, limits: ReportLimits) -> Row:
    witnesses = (
        Row(member=witness.member, uuid=witness.uuid, seq=witness.seq, at_us=witness.at, version=witness.version)
        for witness in finding.witnesses
    )
    return Row(
        **{name: getattr(finding, name) for name in ("rule", "severity", "member", "uuid", "seq")},
        at_us=finding.at,
        detail=_short(finding.detail, limits),
        doubt=_short(finding.doubt, limits),
        members=finding.members[: limits.names],
        versions=finding.versions[: limits.names],
        **cut("witnesses", witnesses, limits.witnesses),
        command=finding.link,
    )


def _rules(findings: Iterable[Finding]) -> list[Row]:
    counts = Counter((finding.rule, finding.severity == VIOLATION) for finding in findings)
    rules = sorted({rule for rule, _ in counts})
    return [Row(rule=rule, violations=counts[rule, True], warnings=counts[rule, False]) for rule in rules]


def _verdict(findings: Sequence[Finding], incomplete: bool, source: AuditInput) -> Verdict:
    if not findings and source.kind == "logs":  # much is not in logs, so nothing proves that it is sound
        return "uncontradicted"
    if not findings:
        return "doubtful" if incomplete else "sound"
    return "violated" if _violations(findings) else "doubtful"


def _violations(findings: Iterable[Finding]) -> int:
    return sum(finding.severity == VIOLATION for finding in findings)


def _short(text: str, limits: ReportLimits) -> str:
    return text if len(text) <= limits.letters else text[: limits.letters] + "…"


def _of_logs(run: str, name: str, items: Iterable[Any], most: int, limits: ReportLimits) -> dict[str, Any]:
    return cut(name, (_log_row(item, limits) for item in items if item.run == run), most)


def _log_row(item: Any, limits: ReportLimits) -> Row:
    row = Row(structs.asdict(item))
    for name in ("run", "evidence_lines", "start_utc", "end_utc"):
        row.pop(name, None)
    if "evidence" in row:
        row["members"] = item.members[: limits.names]
        row["detail"] = item.detail[: limits.letters]
        row["evidence"] = [_place(line.file, line.line) for line in item.evidence[: limits.witnesses]]
    else:
        row["place"] = _place(row.pop("file"), row.pop("line"))
    return row


def _place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"
