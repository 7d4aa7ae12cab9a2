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
from quarterdeck.backend.pipeline.report.rows import BINS_PER_DECADE, ReportLimits, ReportRows, Row, Shown
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
    parts = reader.each(partial(_run_parts, limits, is_measured=is_measured), shown) if shown else {}
    return build_report(ReportRows(runs, parts), result, reader.source, limits)


def _natural(run: str) -> tuple[str, int, str]:
    """Return what runs are sorted by: seed-9 comes before seed-10."""
    return re.sub(r"\d+", "0", run), len(run), run


def _index_row(run: str, lines: RunLines) -> Row:
    times = [line.at for line in lines.first_of(run).values()]
    members = len(lines.members[run])
    return Row(run=run, start_us=min(times), end_us=max(times), events=len(times), members=members)


def _run_parts(limits: ReportLimits, run: str, lines: RunLines, *, is_measured: bool) -> dict[str, Shown]:
    """Return what is shown of a run by section."""
    tables = RunTables.of_lines(run, lines)
    parts = {name: make(tables, limits) for name, make in SECTIONS.items()}
    if is_measured:
        parts["metrics"] = _shown(_metrics(samples_of(tables).samples), limits.metrics)
    return parts


def _shown(rows: Iterable[dict[str, Any]], most: int | None = None) -> Shown:
    """Return the first rows, and how many there are."""
    every = [Row(row) for row in rows]
    return Shown(every[:most], len(every))


def _lanes(tables: RunTables, limits: ReportLimits) -> Shown:
    """Return the incarnations and the lists of the members that started first."""
    of_member = defaultdict(list)
    for row in sorted(tables.table("lives"), key=itemgetter("started_at", "uuid")):
        of_member[row["member"]].append(row)
    views = defaultdict(list)
    for row in sorted(tables.table("views"), key=itemgetter("at", "seq")):
        views[row["member"]].append(row)
    lanes = sorted(of_member.items(), key=lambda lane: (lane[1][0]["started_at"], lane[0]))
    shown = {member: rows[: limits.incarnations] for member, rows in lanes[: limits.lanes]}
    uuids = {row["uuid"] for rows in shown.values() for row in rows}
    seen = {member: [row for row in views[member] if row["uuid"] in uuids] for member in shown}
    times = [row["at"] for rows in seen.values() for row in rows]
    rows = [
        Row(
            member=member,
            lives=Shown([_life(row) for row in rows], len(of_member[member])),
            views=Shown(_views(seen[member], times, limits), len(seen[member])),
        )
        for member, rows in shown.items()
    ]
    return Shown(rows, len(lanes))


def _life(row: dict[str, Any]) -> Row:
    begun = {"uuid": row["uuid"], "address": row["address"] or "", "start_us": row["started_at"]}
    return Row(begun, end_us=row["ended_at"], end=row["end"] or "")


def _views(rows: list[dict[str, Any]], times: list[int], limits: ReportLimits) -> list[Row]:
    """Return each list of a short lane; of a longer one, the last list in each of `limits.marks` equal spans of the run."""
    bins = defaultdict(list)
    for place, row in enumerate(rows):
        in_time = (row["at"] - min(times)) * limits.marks // (max(times) - min(times) + 1)
        bins[row["uuid"], in_time if len(rows) > limits.marks else place].append(row)
    return [
        Row(
            **{name: last[name] for name in ("uuid", "version", "lineage", "master")},
            start_us=last["at"],
            end_us=last["at"],
            members=[listed["address"] for listed in last["members"][: limits.names]],
            size=len(last["members"]),
            installs=len(of_bin),
        )
        for of_bin in bins.values()
        for last in (max(of_bin, key=itemgetter("seq")),)
    ]


def _suspicions(tables: RunTables, limits: ReportLimits) -> Shown:
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
    return _shown(in_order, limits.suspicions)


def _migrations(tables: RunTables, limits: ReportLimits) -> Shown:
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
    return _shown(shown, limits.migrations)


def _claims(tables: RunTables, limits: ReportLimits) -> Shown:
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
    return _shown(shown, limits.rows)


def _merges(tables: RunTables, limits: ReportLimits) -> Shown:
    shown = (
        {
            "member": row["member"],
            **{name: row[name] or "" for name in ("target", "from_lineage", "to_lineage")},
            **{"start_us": row["left_at"], "end_us": row["joined_at"]},
        }
        for row in sorted(tables.table("merges"), key=itemgetter("left_at", "uuid"))
    )
    return _shown(shown, limits.rows)


FAULT = (
    *("from_at", "fault", "member", "source", "target", "to_at", "blocked", "delay", "loss", "duplicate"),
    *("dropped_kinds", "worse_kinds"),
)


def _faults(tables: RunTables, limits: ReportLimits) -> Shown:
    def order(row: dict[str, Any]) -> list[Any]:
        return [(row[name] is not None, row[name]) for name in FAULT[:5]]

    return _shown(
        ({name: row[name] for name in FAULT} for row in sorted(tables.table("faults"), key=order)), limits.faults
    )


def _splits(tables: RunTables, limits: ReportLimits) -> Shown:
    shown = (
        {
            **{"number": 0, "start_us": row["from_at"], "end_us": row["to_at"], "lasted_us": row["lasted_us"]},
            **{"healed_us": row["healed_at"], "sides": [Row(side) for side in row["sides"]]},
        }
        for row in sorted(METRICS["splits"].rows(tables), key=itemgetter("from_at"))
    )
    return _shown(shown, limits.rows)


def _kinds(tables: RunTables, limits: ReportLimits) -> Shown:
    counts = pc.value_counts(tables.events.column("kind")).to_pylist()
    return _shown({"kind": count["values"], "times": count["counts"]} for count in counts)


def _outcomes(tables: RunTables, limits: ReportLimits) -> Shown:
    outcomes = Counter((row["type"] or "unknown", row["outcome"]) for row in tables.table("migrations"))
    return _shown({"type": kind, "outcome": outcome, "times": times} for (kind, outcome), times in outcomes.items())


SECTIONS: dict[str, Callable[[RunTables, ReportLimits], Shown]] = {
    "lanes": _lanes,
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
        yield Row(**measurement._asdict(), **of_one.summary(), bins=_bins(measurement, of_one))


def _bins(measurement: Measurement, samples: Samples) -> list[Row]:
    """Count durations by bin, from the first to the last one that is not empty; those below one microsecond count as one."""
    durations = samples.values if measurement.unit == "us" else ()
    times = Counter(math.floor(math.log10(max(value, 1.0)) * BINS_PER_DECADE + ROUNDING) for value in durations)
    return [
        Row(from_us=_bin_start_us(place), to_us=_bin_start_us(place + 1), times=times[place])
        for place in (range(min(times), max(times) + 1) if times else ())
    ]


def _bin_start_us(place: int) -> int:
    return round(10 ** (place / BINS_PER_DECADE))
