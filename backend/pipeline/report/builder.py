"""Builds a report from rows and findings: labels for addresses, letters for lineages, and counts of what is left out. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from quarterdeck.backend.hazelcast.logs.observations.story import headline
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import AuditResult, QuarantinedLine
from quarterdeck.backend.pipeline.report.rows import ReportLimits, ReportRows, Row, Shown, Verdict
from quarterdeck.backend.pipeline.rules import Finding, replay_command

FORMAT = 1
"""Version of the JSON; grows when a field is removed or changes its meaning."""

VIOLATION = "violation"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def build_report(rows: ReportRows, result: AuditResult, source: AuditInput, limits: ReportLimits) -> Row:
    """Return the report on `source`, of which `result` is the audit, no larger than `limits` allow."""
    by_run: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        by_run[finding.run].append(finding)
    verdicts = {row.run: _verdict(by_run[row.run], row.run in result.incomplete, source) for row in rows.runs}
    sections = {row.run: number for number, row in enumerate(rows.runs[: limits.sections], start=1)}
    runs = []
    for row in rows.runs[: limits.sections]:
        directory = source.run_directories.get(row.run)
        findings = by_run[row.run]
        problems = [_problem(finding, limits) for finding in findings[: limits.findings]]
        runs.append(
            Row(
                number=sections[row.run],
                run=row.run,
                verdict=verdicts[row.run],
                start_us=row.start_us,
                end_us=row.end_us,
                events=row.events,
                command="" if directory is None else replay_command(directory),
                incomplete=result.incomplete.get(row.run, ""),
                rules=_rules(findings),
                **_cut("problems", problems, len(findings)),
                **_RunSection(row, rows.parts.get(row.run, {}), result, limits).fields(),
            )
        )
    bad_lines = [
        QuarantinedLine(_short(line.file, limits), _short(line.line, limits), line.reason)
        for line in result.problems[: limits.problems]
    ]
    violations = _violations(result.findings)
    index = [
        Row(
            run=row.run,
            verdict=verdicts[row.run],
            section=sections.get(row.run),
            members=row.members,
            events=row.events,
            span_us=row.end_us - row.start_us,
            violations=_violations(by_run[row.run]),
            warnings=len(by_run[row.run]) - _violations(by_run[row.run]),
            observations=sum(observation.run == row.run for observation in result.observations),
        )
        for row in rows.runs
    ]
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
        **_cut("index", index, max(result.counts.get("runs", 0), len(index))),
        runs=runs,
        **_cut("bad_lines", bad_lines, max(result.counts.get("quarantined", 0), len(result.problems))),
        format=FORMAT,
    )


def _cut(name: str, shown: Sequence[Any], total: int) -> dict[str, Any]:
    return {name: shown, f"{name}_cut": Row(shown=len(shown), total=total)}


def _problem(finding: Finding, limits: ReportLimits) -> Row:
    witnesses = [
        Row(member=witness.member, uuid=witness.uuid, seq=witness.seq, at_us=witness.at, version=witness.version)
        for witness in finding.witnesses[: limits.witnesses]
    ]
    return Row(
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
        **_cut("witnesses", witnesses, len(finding.witnesses)),
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


class _RunSection:
    """The rows of one run, in order, with labels for addresses and letters for lineages."""

    def __init__(self, run: Row, parts: Mapping[str, Shown], result: AuditResult, limits: ReportLimits) -> None:
        self._run, self._parts, self._result, self._limits = run, parts, result, limits
        self._lanes = self._rows("lanes")
        views = [view for lane in self._lanes for view in lane.views.rows]
        self._views = sorted(views, key=lambda view: (view.start_us, view.version, view.uuid))
        self._labels: dict[str, str] = {
            life.address: lane.member for lane in self._lanes for life in lane.lives.rows if life.address
        }
        lineages = dict.fromkeys(view.lineage for view in self._views)
        self._letters = {name: _letter(place) for place, name in enumerate(lineages)}

    def fields(self) -> dict[str, Any]:
        """Return the fields of the run's section, in the order of the JSON."""
        sizes = self._sizes()
        return {
            **self._section("lanes", [self._lane(lane) for lane in self._lanes]),
            "lineages": self._lineages(),
            **self._section("splits", self._splits()),
            **self._section("faults", self._faults()),
            **self._section("suspicions", self._sorted("suspicions", "observer", "suspect", label=("suspect",))),
            **self._section(
                "migrations", self._sorted("migrations", "start_us", "migration_id", label=("source", "destination"))
            ),
            "outcomes": self._sorted("outcomes", "type", "outcome"),
            **self._section(
                "claims",
                [
                    Row(claim, left_out=self._names(claim.left_out))
                    for claim in self._sorted("claims", "start_us", "member")
                ],
            ),
            **self._section(
                "merges",
                [
                    Row(
                        merge,
                        from_lineage=self._letters.get(merge.from_lineage, merge.from_lineage),
                        to_lineage=self._letters.get(merge.to_lineage, merge.to_lineage),
                    )
                    for merge in self._sorted("merges", "start_us", "member", label=("target",))
                ],
            ),
            **self._section("metrics", self._sorted("metrics", "metric", "kind")),
            **self._of_logs("observations", self._result.observations, self._limits.findings),
            **_cut("sizes", sizes[: self._limits.marks], len(sizes)),
            **self._of_logs("verdicts", self._result.merge_verdicts, self._limits.rows),
            **self._of_logs("rounds", self._result.migration_rounds, self._limits.rows),
            "kinds": sorted(self._rows("kinds"), key=lambda row: (-row.times, row.kind)),
        }

    def _rows(self, name: str) -> list[Row]:
        return self._parts[name].rows if name in self._parts else []

    def _sorted(self, name: str, *order: str, label: Sequence[str] = ()) -> list[Row]:
        rows = sorted(self._rows(name), key=lambda row: [row[field] for field in order])
        return [Row(row, **{field: self._label(row[field]) for field in label}) for row in rows]

    def _section(self, name: str, shown: Sequence[Row]) -> dict[str, Any]:
        return _cut(name, shown, self._parts[name].total if name in self._parts else 0)

    def _label(self, address: str) -> str:
        """Return the member's label where the journal has it, else the address."""
        return self._labels.get(address, address)

    def _names(self, addresses: Sequence[str]) -> list[str]:
        return list(map(self._label, addresses[: self._limits.names]))

    def _lineages(self) -> list[Row]:
        lineages = []
        for name, letter in self._letters.items():
            views = [view for view in self._views if view.lineage == name]
            versions = [view.version for view in views]
            lineages.append(
                Row(
                    letter=letter,
                    name=name,
                    master=self._label(views[0].master),
                    first_version=min(versions),
                    last_version=max(versions),
                    start_us=views[0].start_us,
                )
            )
        return lineages[: self._limits.rows]

    def _lane(self, lane: Row) -> Row:
        return Row(
            member=lane.member,
            **_cut("lives", lane.lives.rows, lane.lives.total),
            views=[view for life in lane.lives.rows for view in self._view_spans(life, lane.views.rows)],
            installs=lane.views.total,
        )

    def _view_spans(self, incarnation: Row, of_member: Sequence[Row]) -> list[Row]:
        """Return the incarnation's views: each ends as the next one begins, the last as the incarnation ends."""
        views = [view for view in of_member if view.uuid == incarnation.uuid]
        ended_us = self._run.end_us if incarnation.end_us is None else incarnation.end_us
        ends = [*(view.start_us for view in views[1:]), ended_us]
        return [
            Row(
                view,
                end_us=max(end_us, view.start_us),
                lineage=self._letters[view.lineage],
                master=self._label(view.master),
                members=self._names(view.members),
            )
            for view, end_us in zip(views, ends, strict=False)
        ]

    def _sizes(self) -> list[Row]:
        """Return the size of each list, from when a member first installed it."""
        first: dict[tuple[str, int], Row] = {}
        for view in self._views:
            letter = self._letters[view.lineage]
            step = Row(at_us=view.start_us, lineage=letter, version=view.version, size=view.size)
            first.setdefault((letter, view.version), step)
        return list(first.values())

    def _splits(self) -> list[Row]:
        most = self._limits.names
        return [
            Row(
                split,
                number=number,
                sides=[
                    Row(side, lineage=self._letters.get(side.lineage, side.lineage), members=side.members[:most])
                    for side in split.sides[:most]
                ],
            )
            for number, split in enumerate(self._sorted("splits", "start_us"), start=1)
        ]

    def _faults(self) -> list[Row]:
        faults = [
            Row(
                fault=fault.fault,
                start_us=fault.from_at,
                end_us=fault.to_at,
                what=_fault_text(fault),
                member=fault.member or "",
            )
            for fault in self._rows("faults")
        ]
        return sorted(faults, key=lambda fault: (fault.start_us, fault.fault, fault.what))

    def _of_logs(self, name: str, items: Iterable[Any], most: int) -> dict[str, Any]:
        """Return what the audit read in the run's logs beyond events."""
        of_run = [item for item in items if item.run == self._run.run]
        return _cut(name, [self._log_row(item) for item in of_run[:most]], len(of_run))

    def _log_row(self, item: Any) -> Row:
        row = Row(structs.asdict(item))
        for name in ("run", "evidence_lines", "start_utc", "end_utc"):
            row.pop(name, None)
        if "evidence" in row:
            row["members"] = item.members[: self._limits.names]
            row["detail"] = item.detail[: self._limits.letters]
            row["evidence"] = [_place(line.file, line.line) for line in item.evidence[: self._limits.witnesses]]
        else:
            row["place"] = _place(row.pop("file"), row.pop("line"))
        return row


def _place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def _letter(place: int) -> str:
    """Return A … Z, A2 … Z2 and so on."""
    round_number, letter = divmod(place, len(LETTERS))
    return LETTERS[letter] + (str(round_number + 1) if round_number else "")


def _fault_text(fault: Row) -> str:
    if fault.fault != "link":
        return f"{fault.fault} of {fault.member}"
    effects = [
        fault.blocked or "",
        f"{fault.delay / 1000:g} ms delay" if fault.delay else "",
        f"{fault.loss:.0%} loss" if fault.loss else "",
        f"{fault.duplicate:.0%} duplicates" if fault.duplicate else "",
        f"drops {', '.join(fault.dropped_kinds)}" if fault.dropped_kinds else "",
        f"worse for {', '.join(kind or 'all' for kind in fault.worse_kinds)}" if fault.worse_kinds else "",
    ]
    return f"{fault.source} to {fault.target}: {', '.join(filter(None, effects))}"
