"""Reduces the runs that an audit judged to the few rows of its report.

First come the rows of the index, one for each run, then the parts of the few runs that have a section.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import pyarrow.compute as pc

from quarterdeck.backend.pipeline.audit_result import AuditResult
from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.metrics.summary import METRICS, Measurement, Samples, samples_of
from quarterdeck.backend.pipeline.report.builder import build_report
from quarterdeck.backend.pipeline.report.rows import BINS_PER_DECADE, ReportLimits, ReportRows, Row
from quarterdeck.backend.pipeline.run_reader import RunReader
from quarterdeck.backend.pipeline.tables.run_lines import RunLines

ROUNDING = 1e-9
"""Keeps 1000 microseconds at the beginning of a bin, whatever the logarithm makes of them."""


def report_on(reader: RunReader, result: AuditResult, limits: ReportLimits | None = None) -> Row:
    """Return the report on the runs of which `result` is the audit. Raises OSError for what cannot be read."""
    limits = limits or ReportLimits()
    named = [*(finding.run for finding in result.findings), *(seen.run for seen in result.observations)]
    first = {run: place for place, run in enumerate(dict.fromkeys(named))}
    index = reader.each(_index_row)
    runs = sorted(index.values(), key=lambda row: (first.get(row.run, len(first)), *_natural(row.run)))[: limits.index]
    is_measured = reader.source.kind == "journal"
    shown = [row.run for row in runs[: limits.sections]]
    parts: dict[str, list[Row]] = defaultdict(list)
    if shown:
        made = reader.each(partial(_run_parts, limits, is_measured=is_measured), shown)
        for run in shown:
            for name, rows in made[run].items():
                parts[name] += rows
    return build_report(ReportRows(runs, dict(parts)), result, reader.source, limits)


def _natural(run: str) -> tuple[str, int, str]:
    """Return what runs are sorted by: seed-9 comes before seed-10."""
    return re.sub(r"\d+", "0", run), len(run), run


def _index_row(run: str, lines: RunLines) -> Row:
    times = [line.at for line in lines.first_of(run).values()]
    members = len(lines.members[run])
    return Row(run=run, start_us=min(times), end_us=max(times), events=len(times), members=members)


def _run_parts(limits: ReportLimits, run: str, lines: RunLines, *, is_measured: bool) -> dict[str, list[Row]]:
    """Return the rows of a run by section; each has `run`, `part`, and `of` where there may be more."""
    tables = RunTables.of_lines(run, lines)
    parts = {name: list(make(tables, limits)) for name, make in SECTIONS.items()}
    if is_measured:
        samples = samples_of(tables).samples
        parts["metrics"] = _cut(_metrics(samples), limits.metrics)
        parts["bins"] = list(_bins(samples))
    return {name: [Row(run=run, **row) for row in rows] for name, rows in parts.items()}


def _cut(rows: Iterable[dict[str, Any]], most: int) -> list[Row]:
    """Return the first rows as parts, with `of`: how many there are."""
    parts = [Row(row) for row in rows]
    return [Row(of=len(parts), part=part) for part in parts[:most]]


def _counted(values: Iterable[tuple[Any, ...]], *fields: str) -> Iterator[Row]:
    """Yield how often values occur, as parts with these fields."""
    for value, times in Counter(values).items():
        yield Row(part=Row(zip(fields, value, strict=True), times=times))


def _lives(tables: RunTables, limits: ReportLimits) -> Iterator[Row]:
    """Yield the incarnations of the members that started first."""
    of_member = defaultdict(list)
    for row in sorted(tables.table("lives"), key=itemgetter("started_at", "uuid")):
        of_member[row["member"]].append(row)
    lanes = sorted(of_member.items(), key=lambda lane: (lane[1][0]["started_at"], lane[0]))
    for member, rows in lanes[: limits.lanes]:
        for row in rows[: limits.incarnations]:
            part = Row(
                uuid=row["uuid"],
                address=row["address"] or "",
                start_us=row["started_at"],
                end_us=row["ended_at"],
                end=row["end"] or "",
            )
            yield Row(of=len(rows), member=member, lanes=len(lanes), part=part)


def _views(tables: RunTables, limits: ReportLimits) -> Iterator[Row]:
    """Yield each list of a short lane; of a longer one, the last list in each of `limits.marks` equal spans of the run."""
    shown = {row.part.uuid for row in _lives(tables, limits)}
    of_lane = defaultdict(list)
    for row in sorted(tables.table("views"), key=itemgetter("at", "seq")):
        if row["uuid"] in shown:
            of_lane[row["member"]].append(row)
    times = [row["at"] for rows in of_lane.values() for row in rows]
    for member, rows in of_lane.items():
        bins = defaultdict(list)
        for place, row in enumerate(rows):
            in_time = (row["at"] - min(times)) * limits.marks // (max(times) - min(times) + 1)
            bins[row["uuid"], in_time if len(rows) > limits.marks else place].append(row)
        for (uuid, _), of_bin in bins.items():
            last = max(of_bin, key=itemgetter("seq"))
            part = Row(
                uuid=uuid,
                start_us=last["at"],
                end_us=last["at"],
                **{name: last[name] for name in ("version", "lineage", "master")},
                members=[listed["address"] for listed in last["members"][: limits.names]],
                size=len(last["members"]),
                installs=len(of_bin),
            )
            yield Row(of=len(rows), member=member, part=part)


def _suspicions(tables: RunTables, limits: ReportLimits) -> list[Row]:
    """Return pairs of members with how long one suspected the other.

    A suspicion that was never cleared ends when the observer's list lacks the suspect, or with the observer's incarnation or the
    run.
    """
    lists = defaultdict(list)
    for row in tables.table("views"):
        lists[row["uuid"]].append((row["at"], {(listed["address"], listed["uuid"]) for listed in row["members"]}))
    pairs: dict[tuple[str, str], Row] = {}
    for row in tables.table("suspicions"):
        one = row["suspect"], row["suspect_uuid"]
        removed_at = min(
            (at for at, of in lists[row["uuid"]] if at >= row["raised_at"] and one not in of), default=None
        )
        ends = [at for at in (row["cleared_at"], removed_at) if at is not None]
        until_at = min(ends) if ends else tables.running[row["uuid"]].to_at
        pair = pairs.setdefault(
            (row["member"], row["suspect"]),
            Row(observer=row["member"], suspect=row["suspect"], times=0, suspected_us=0, open=0),
        )
        pair["times"] += 1
        pair["suspected_us"] += max(until_at - row["raised_at"], 0)
        pair["open"] += not ends
    in_order = sorted(pairs.values(), key=lambda pair: (-pair["times"], pair["observer"], pair["suspect"]))
    return _cut(in_order, limits.suspicions)


def _migrations(tables: RunTables, limits: ReportLimits) -> list[Row]:
    """Return the open migrations, then those that took longest."""

    def ended_at(row: dict[str, Any]) -> Any:
        return row["finished_at"] if row["decided_at"] is None else row["decided_at"]

    def slowest_first(row: dict[str, Any]) -> tuple[bool, float, str]:
        end, begun = ended_at(row), row["started_at"]
        took = math.inf if end is None or begun is None else begun - end
        return row["outcome"] != "open", took, row["migration_id"]

    shown = (
        {
            **{name: row[name] for name in ("migration_id", "partition")},
            "type": row["type"] or "unknown",
            **{name: row[name] or "" for name in ("source", "destination", "reason")},
            "start_us": tables.span[0] if row["started_at"] is None else row["started_at"],
            **{"copied_us": row["copied_at"], "end_us": ended_at(row)},
            **{name: row[name] for name in ("outcome", "bytes", "rejections")},
        }
        for row in sorted(tables.table("migrations"), key=slowest_first)
    )
    return _cut(shown, limits.migrations)


def _claims(tables: RunTables, limits: ReportLimits) -> list[Row]:
    counts = ("outcome", "version", "new_version", "accepted", "refused", "retried")
    shown = (
        {
            "member": row["member"],
            **{"start_us": row["started_at"], "end_us": row["ended_at"]},
            **{name: row[name] for name in counts},
            **{"left_out": row["left_out"] or [], "reason": row["reason"] or ""},
        }
        for row in sorted(tables.table("claims"), key=itemgetter("started_at", "uuid", "claim"))
    )
    return _cut(shown, limits.rows)


def _merges(tables: RunTables, limits: ReportLimits) -> list[Row]:
    shown = (
        {
            "member": row["member"],
            **{name: row[name] or "" for name in ("target", "from_lineage", "to_lineage")},
            **{"start_us": row["left_at"], "end_us": row["joined_at"]},
        }
        for row in sorted(tables.table("merges"), key=itemgetter("left_at", "uuid"))
    )
    return _cut(shown, limits.rows)


FAULT = (
    *("from_at", "fault", "member", "source", "target", "to_at", "blocked", "delay", "loss", "duplicate"),
    *("dropped_kinds", "worse_kinds"),
)


def _faults(tables: RunTables, limits: ReportLimits) -> list[Row]:
    def order(row: dict[str, Any]) -> list[Any]:
        return [(row[name] is not None, row[name]) for name in FAULT[:5]]

    return _cut(
        ({name: row[name] for name in FAULT} for row in sorted(tables.table("faults"), key=order)), limits.faults
    )


def _splits(tables: RunTables, limits: ReportLimits) -> list[Row]:
    shown = (
        {
            **{"number": 0, "start_us": row["from_at"], "end_us": row["to_at"], "lasted_us": row["lasted_us"]},
            **{"healed_us": row["healed_at"], "sides": [Row(side) for side in row["sides"]]},
        }
        for row in sorted(METRICS["splits"].rows(tables), key=itemgetter("from_at"))
    )
    return _cut(shown, limits.rows)


def _kinds(tables: RunTables, limits: ReportLimits) -> Iterator[Row]:
    for count in pc.value_counts(tables.events.column("kind")).to_pylist():
        yield Row(part=Row(kind=count["values"], times=count["counts"]))


def _outcomes(tables: RunTables, limits: ReportLimits) -> Iterator[Row]:
    outcomes = ((row["type"] or "unknown", row["outcome"]) for row in tables.table("migrations"))
    return _counted(outcomes, "type", "outcome")


SECTIONS: dict[str, Callable[[RunTables, ReportLimits], Iterable[Row]]] = {
    "lives": _lives,
    "views": _views,
    "suspicions": _suspicions,
    "migrations": _migrations,
    "outcomes": _outcomes,
    "claims": _claims,
    "merges": _merges,
    "faults": _faults,
    "kinds": _kinds,
    "splits": _splits,
}


def _metrics(samples: Mapping[Measurement, Samples]) -> Iterator[Row]:
    for measurement, of_one in sorted(samples.items(), key=itemgetter(0)):
        yield Row(**measurement._asdict(), **of_one.summary())


def _bins(samples: Mapping[Measurement, Samples]) -> Iterator[Row]:
    """Count samples in microseconds by bin; durations below one microsecond count as one."""
    bins = (
        (metric, kind, math.floor(math.log10(max(value, 1.0)) * BINS_PER_DECADE + ROUNDING))
        for (metric, kind, unit), of_one in samples.items()
        for value in (of_one.values if unit == "us" else ())
    )
    return _counted(bins, "metric", "kind", "bin")
