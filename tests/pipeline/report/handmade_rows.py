"""Rows as Spark would hand them over, of any size, and with names that mean harm."""

from __future__ import annotations

from quarterdeck.backend.pipeline.report.builder import AuditSummary, build_report
from quarterdeck.backend.pipeline.report.limits import Limits
from quarterdeck.backend.pipeline.report.model import Report
from quarterdeck.backend.pipeline.report.rows import (
    BinRow,
    ClaimRow,
    FaultRow,
    KindRow,
    LifeRow,
    MergeRow,
    MetricRow,
    MigrationRow,
    OutcomeRow,
    Rows,
    RunRow,
    SideRow,
    SplitRow,
    SuspicionRow,
    ViewRow,
)
from quarterdeck.backend.pipeline.rules.finding import Finding, Witness

SECOND_US = 1_000_000


def rows_of(run: str = "one", *, name: str = "athens", of: int = 1, views: int = 3) -> Rows:
    """One run in which there is one of everything, all of it called `name`; `of` is how many there were."""
    lists = [
        ViewRow(run, name, "u1", at * SECOND_US, at + 1, f"{name}/1", name, [name], 1, 1 + (of > 1), max(of, views))
        for at in range(views)
    ]
    metric = MetricRow(run, name, name, "us", 9, 1, of, 5.0, 10.0, 20.0, 15.0, 20.0, 30.0, 40.0)
    return Rows(
        runs=[RunRow(run, 0, 10 * SECOND_US, 100, of)],
        lives=[LifeRow(run, name, "u1", 0, 1, of, of, name, 9 * SECOND_US, "merged")],
        views=lists,
        suspicions=[SuspicionRow(run, name, name, 2, 3 * SECOND_US, 1, of)],
        migrations=[MigrationRow(run, name, "rolled-back", 1, of, 3, "MOVE", name, name, 1, 2, 3, 4, 5, name)],
        outcomes=[OutcomeRow(run, "MOVE", "rolled-back", 1)],
        claims=[ClaimRow(run, name, "abandoned", 1, 0, 0, of, 1, 2, 3, None, None, [name], name)],
        merges=[MergeRow(run, name, 1, of, name, f"{name}/1", name, None)],
        faults=[
            FaultRow(run, "kill", 5, of, member=name),
            FaultRow(run, "link", 5, of, source=name, target=name, delay=2_000, loss=0.5, dropped_kinds=[name]),
        ],
        kinds=[KindRow(run, name, 4)],
        splits=[SplitRow(run, 1, 2, [SideRow(name, f"{name}/1", [name]), SideRow(name, name, [name])], of, 3, 2, 1)],
        metrics=[metric],
        bins=[BinRow(run, name, name, 3, 4), BinRow(run, name, name, 5, 5)],
    )


def finding(run: str = "one", name: str = "athens", severity: str = "violation") -> Finding:
    witness = Witness("u1", 7, name, 2 * SECOND_US, 3)
    return Finding(
        name, severity, run, name, "u1", 7, 2 * SECOND_US, name, (witness,), (name,), (3,), name,
        f"quarterdeck console --replay {name} --at 2",
    )  # fmt: skip


def report_of(rows: Rows, *findings: Finding, limits: Limits | None = None, **counts: int) -> Report:
    return build_report(rows, AuditSummary(["/a/journal"], counts, findings), limits or Limits())
