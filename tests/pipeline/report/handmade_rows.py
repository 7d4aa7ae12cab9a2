"""Rows as Spark would hand them over, of any size, and with names that mean harm."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.report.builder import build_report
from quarterdeck.backend.pipeline.report.rows import ReportLimits, ReportRows, Row, Shown
from quarterdeck.backend.pipeline.rules import Finding, Witness


def rows_of(run: str = "one", *, name: str = "athens", of: int = 1, views: int = 3) -> ReportRows:
    """One run in which there is one of everything, all of it called `name`; `of` is how many there were."""

    def shown(*rows: Row, total: int = of) -> Shown:
        return Shown([*rows], total)

    def side(lineage: str) -> Row:
        return Row(lineage=lineage, master=name, members=[name])

    lists = [
        Row(
            uuid="u1", start_us=at * SECOND_US, end_us=0, version=at + 1, lineage=f"{name}/1", master=name, members=[name],
            size=1, installs=1 + (of > 1),
        )
        for at in range(views)
    ]  # fmt: skip
    incarnation = Row(uuid="u1", address=name, start_us=0, end_us=9 * SECOND_US, end="merged")
    migration = Row(
        migration_id=name, partition=3, type="MOVE", source=name, destination=name, start_us=1, copied_us=2, end_us=3,
        outcome="rolled-back", bytes=5, rejections=1, reason=name,
    )  # fmt: skip
    claim = Row(
        member=name, start_us=1, end_us=2, outcome="abandoned", version=3, new_version=None, accepted=1, refused=0,
        retried=0, left_out=[name], reason=name,
    )  # fmt: skip
    merge = Row(member=name, target=name, from_lineage=f"{name}/1", to_lineage=name, start_us=1, end_us=None)
    metric = Row(
        metric=name, kind=name, unit="us", count=9, missing=1, floor=5.0, least=10.0, mean=20.0, p50=15.0, p90=20.0,
        p99=30.0, most=40.0,
        bins=[Row(from_us=10, to_us=22, times=4), Row(from_us=22, to_us=46, times=0), Row(from_us=46, to_us=100, times=5)],
    )  # fmt: skip
    fault = Row(
        fault="kill", from_at=5, member=name, source=None, target=None, to_at=None, blocked=None, delay=None, loss=None,
        duplicate=None, dropped_kinds=None, worse_kinds=None,
    )  # fmt: skip
    link = Row(fault, fault="link", member=None, source=name, target=name, delay=2_000, loss=0.5, dropped_kinds=[name])
    split = Row(number=0, start_us=1, end_us=3, lasted_us=2, healed_us=2, sides=[side(f"{name}/1"), side(name)])
    return ReportRows(
        [Row(run=run, start_us=0, end_us=10 * SECOND_US, events=100, members=of)],
        {
            run: {
                "lanes": shown(Row(member=name, lives=shown(incarnation), views=shown(*lists, total=max(of, views)))),
                "suspicions": shown(Row(observer=name, suspect=name, times=2, suspected_us=3 * SECOND_US, open=1)),
                "migrations": shown(migration),
                "outcomes": shown(Row(type="MOVE", outcome="rolled-back", times=1)),
                "claims": shown(claim),
                "merges": shown(merge),
                "faults": shown(fault, link),
                "kinds": shown(Row(kind=name, times=4)),
                "splits": shown(split),
                "metrics": shown(metric),
            }
        },
    )


def finding(run: str = "one", name: str = "athens", severity: str = "violation") -> Finding:
    witness = Witness("u1", 7, name, 2 * SECOND_US, 3)
    return Finding(
        name, severity, run, name, "u1", 7, 2 * SECOND_US, name, (witness,), (name,), (3,), name,
        f"quarterdeck console --replay {name} --at 2",
    )  # fmt: skip


def report_of(rows: ReportRows, *findings: Finding, limits: ReportLimits | None = None, **counts: int) -> Row:
    source = AuditInput("journal", (Path("/a/journal"),), ())
    return build_report(rows, AuditResult(findings, counts, ()), source, limits or ReportLimits())
