"""Tables of a run of any size, and with names that mean harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.metrics.summary import METRICS
from quarterdeck.backend.pipeline.report.audit_report import build_report
from quarterdeck.backend.pipeline.report.run_section import ReportLimits, Row, run_section
from quarterdeck.backend.pipeline.rules import AuditResult, Finding, Witness
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.run_events import RunEvents


class HandmadeRows(NamedTuple):
    index: list[Row]
    tables: dict[str, RunTables]


def rows_of(run: str = "one", *, name: str = "athens", of: int = 1, views: int = 3) -> HandmadeRows:
    """One run in which there is one of everything, all of it called `name`; or `of` of everything."""
    names = [name if place == 0 else f"{name} {place}" for place in range(of)]
    common = {"uuid": "u1", "member": name, "run": run}
    listed = [{"uuid": "u1", "address": name}]
    migration = {
        "partition": 3, "type": "MOVE", "source": name, "destination": name, "started_at": 1, "copied_at": 2,
        "decided_at": 3, "finished_at": 3, "outcome": "rolled-back", "bytes": 5, "rejections": 1, "reason": name,
        "copy_us": None,
    }  # fmt: skip
    claim = common | {
        "claim": 1, "started_at": 1, "ended_at": 2, "outcome": name, "version": 3, "new_version": None, "accepted": 1,
        "refused": 0, "retried": 0, "left_out": [name], "reason": name,
    }  # fmt: skip
    merge = common | {"target": name, "from_lineage": f"{name}/1", "to_lineage": name, "left_at": 1, "joined_at": None}
    kill = dict.fromkeys(column for column in TABLES["faults"].schema.names)
    kill |= {"fault": "kill", "from_at": 5, "member": name}
    link = kill | {"fault": "link", "member": None, "source": name, "target": name, "delay": 2_000, "loss": 0.5}
    link |= {"dropped_kinds": [name]}
    sides = [{"lineage": lineage, "master": name, "members": [name]} for lineage in (f"{name}/1", name)]
    split = {"from_at": 1, "to_at": 3, "lasted_us": 2, "healed_at": 2, "merge_us": 1, "sides": sides}
    made: dict[str, list[dict[str, Any]]] = {
        "incarnations": [
            common | {
                "uuid": f"u{place + 1}", "member": member, "address": name, "started_at": 0, "joined_at": 0,
                "ended_at": 9 * SECOND_US, "end": "merged", "settings": None, "merged_from": None,
            }
            for place, member in enumerate(names)
        ],
        "views": [
            common | {
                "seq": at, "at": at * SECOND_US, "version": at + 1, "lineage": f"{name}/1", "master": name,
                "members": listed,
            }
            for at in range(views)
        ],
        "suspicions": [
            common | {
                "member": member, "suspect": name, "suspect_uuid": "u1", "raised_at": 0, "cleared_at": 3 * SECOND_US,
            }
            for member in names
        ],
        "migrations": [{"migration_id": name} | migration for name in names],
        "claims": [claim] * of,
        "merges": [merge] * of,
        "faults": [kill, link] * of,
        "splits": [split] * of,
    }  # fmt: skip
    events = {"at": [0, 10 * SECOND_US], "event": [{"kind": name}] * 2}
    tables = RunTables(run, RunEvents(pa.table(events)))
    tables._made = {table: [] for table in (*TABLES, *METRICS)} | made
    return HandmadeRows([Row(run=run, start_us=0, end_us=10 * SECOND_US, events=100, members=of)], {run: tables})


def finding(run: str = "one", name: str = "athens", severity: str = "violation") -> Finding:
    witness = Witness("u1", 7, name, 2 * SECOND_US, 3)
    return Finding(
        name, severity, run, name, "u1", 7, 2 * SECOND_US, name, (witness,), (name,), (3,), name,
        f"quarterdeck console --replay {name} --at 2",
    )  # fmt: skip


def report_of(rows: HandmadeRows, *findings: Finding, limits: ReportLimits | None = None, **counts: int) -> Row:
    source = AuditInput("journal", (Path("/a/journal"),), ())
    return built(rows, AuditResult(findings, counts, ()), source, limits or ReportLimits())


def built(rows: HandmadeRows, result: AuditResult, source: AuditInput, limits: ReportLimits) -> Row:
    is_measured = source.kind == "journal"
    sections = {run: run_section(tables, limits, is_measured=is_measured) for run, tables in rows.tables.items()}
    return build_report(rows.index, sections, result, source, limits)
