"""Rows as Spark would hand them over, of any size, and with names that mean harm."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.report.builder import build_report
from quarterdeck.backend.pipeline.report.limits import ReportLimits
from quarterdeck.backend.pipeline.report.model import (
    Claim,
    KindCount,
    Life,
    Merge,
    Metric,
    Migration,
    Outcome,
    Report,
    Side,
    Split,
    Suspicion,
    View,
)
from quarterdeck.backend.pipeline.report.rows import BinRow, FaultRow, ReportRow, ReportRows, RunRow
from quarterdeck.backend.pipeline.rules.finding import Finding, Witness


def rows_of(run: str = "one", *, name: str = "athens", of: int = 1, views: int = 3) -> ReportRows:
    """One run in which there is one of everything, all of it called `name`; `of` is how many there were."""
    lists = [
        ReportRow(
            run=run,
            of=max(of, views),
            member=name,
            part=View("u1", at * SECOND_US, 0, at + 1, f"{name}/1", name, (name,), 1, 1 + (of > 1)),
        )
        for at in range(views)
    ]
    life = Life("u1", name, 0, 9 * SECOND_US, "merged")
    migration = Migration(name, 3, "MOVE", name, name, 1, 2, 3, "rolled-back", 5, 1, name)
    claim = Claim(name, 1, 2, "abandoned", 3, None, 1, 0, 0, (name,), name)
    metric = Metric(name, name, "us", 9, 1, 5.0, 10.0, 20.0, 15.0, 20.0, 30.0, 40.0, ())
    link = FaultRow("link", 5, source=name, target=name, delay=2_000, loss=0.5, dropped_kinds=[name])
    split = Split(0, 1, 3, 2, 2, (Side(f"{name}/1", name, (name,)), Side(name, name, (name,))))
    return ReportRows(
        runs=[RunRow(run, 0, 10 * SECOND_US, 100, of)],
        lives=[ReportRow(run=run, of=of, member=name, lanes=of, part=life)],
        views=lists,
        suspicions=[ReportRow(run=run, of=of, part=Suspicion(name, name, 2, 3 * SECOND_US, 1))],
        migrations=[ReportRow(run=run, of=of, part=migration)],
        outcomes=[ReportRow(run=run, part=Outcome("MOVE", "rolled-back", 1))],
        claims=[ReportRow(run=run, of=of, part=claim)],
        merges=[ReportRow(run=run, of=of, part=Merge(name, name, f"{name}/1", name, 1, None))],
        faults=[ReportRow(run=run, of=of, part=part) for part in (FaultRow("kill", 5, member=name), link)],
        kinds=[ReportRow(run=run, part=KindCount(name, 4))],
        splits=[ReportRow(run=run, of=of, part=split)],
        metrics=[ReportRow(run=run, of=of, part=metric)],
        bins=[ReportRow(run=run, part=BinRow(name, name, place, times)) for place, times in ((3, 4), (5, 5))],
    )


def finding(run: str = "one", name: str = "athens", severity: str = "violation") -> Finding:
    witness = Witness("u1", 7, name, 2 * SECOND_US, 3)
    return Finding(
        name, severity, run, name, "u1", 7, 2 * SECOND_US, name, (witness,), (name,), (3,), name,
        f"quarterdeck console --replay {name} --at 2",
    )  # fmt: skip


def report_of(rows: ReportRows, *findings: Finding, limits: ReportLimits | None = None, **counts: int) -> Report:
    source = AuditInput("journal", (Path("/a/journal"),), ())
    return build_report(rows, AuditResult(findings, counts, ()), source, limits or ReportLimits())
