"""The section of one run in a report: rows as the JSON has them, with labels for addresses and letters for lineages."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

import pyarrow.compute as pc

from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.metrics.summary import METRICS, Samples, samples_of
from quarterdeck.backend.pipeline.tables.run_events import nones_first

Verdict = Literal["violated", "doubtful", "uncontradicted", "sound"]
"""`doubtful`: warnings only, because something is missing from the journal. `uncontradicted`: nothing in members' logs breaks
a rule, but logs show too little to judge most rules."""

BINS_PER_DECADE = 3
"""Bins of a histogram of durations for each factor of ten."""


class Row(dict[str, Any]):
    """A JSON object of the report whose fields drawings and templates read as attributes.

    docs/spark/report.md explains every field. Times are microseconds on the run's clock.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class ReportLimits:
    """The limits on a report's size, however many events there are. The report counts what it leaves out."""

    index: int = 200
    """Runs in the index."""
    sections: int = 8
    """Runs with a section of their own: those with findings first."""
    lanes: int = 24
    """Members in a timeline, in the order in which they started."""
    incarnations: int = 32
    """Incarnations of one member."""
    marks: int = 80
    """Lists in one lane. A lane with more shows the last list in each of so many equal spans of time."""
    suspicions: int = 300
    """Pairs of members in a suspicion matrix."""
    migrations: int = 120
    """Migrations in the chart: the open ones, then those that took longest."""
    faults: int = 120
    rows: int = 60
    """Rows of a table of claims, of merges and of splits."""
    metrics: int = 60
    """Rows of a run's table of metrics."""
    findings: int = 100
    """Findings of one run."""
    witnesses: int = 6
    """Events named with one finding."""
    names: int = 8
    """Members named in one place."""
    problems: int = 50
    """Quarantined lines."""
    letters: int = 2_000
    """Characters of one text."""


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROUNDING = 1e-9
"""Keeps 1000 microseconds at the beginning of a bin, whatever the logarithm makes of them."""


def cut(name: str, rows: Iterable[Any], most: int | None = None, *order: str) -> dict[str, Any]:
    """Return the first rows under this name, in the order of these fields if they are named, and how many there are."""
    every = list(rows)
    shown = every[:most]
    if order:
        shown.sort(key=lambda row: [row[field] for field in order])
    return {name: shown, f"{name}_cut": Row(shown=len(shown), total=len(every))}


def run_section(tables: RunTables, limits: ReportLimits, *, is_measured: bool) -> Row:
    """Return what a report shows of the run's events, no more than `limits` allow."""
    run = _RunSection(tables, limits)
    kinds = pc.value_counts(tables.events.column("kind")).to_pylist()
    by_kind = sorted((-count["counts"], count["values"]) for count in kinds)
    return Row(
        lanes=list(run.lanes()),
        lanes_cut=Row(shown=run.lanes_shown, total=run.lanes_total),
        lineages=run.lineages(),
        **cut("splits", run.splits(), limits.rows),
        **cut("faults", run.faults(), limits.faults, "start_us", "fault", "what"),
        **cut("suspicions", run.suspicions(), limits.suspicions, "observer", "suspect"),
        **cut("migrations", run.migrations(), limits.migrations, "start_us", "migration_id"),
        outcomes=run.outcomes(),
        **cut("claims", run.claims(), limits.rows, "start_us", "member"),
        **cut("merges", run.merges(), limits.rows, "start_us", "member"),
        **cut("metrics", _metrics(tables) if is_measured else (), limits.metrics),
        **cut("sizes", run.sizes(), limits.marks),
        kinds=[Row(kind=kind, times=-times) for times, kind in by_kind],
    )


class _RunSection:
    """The tables of a run, and what is shown of members: those that started first, with their incarnations and lists."""

    def __init__(self, tables: RunTables, limits: ReportLimits) -> None:
        self._tables, self._limits = tables, limits
        of_member = defaultdict(list)
        for row in sorted(tables.table("incarnations"), key=itemgetter("started_at", "uuid")):
            of_member[row["member"]].append(row)
        in_order = sorted(of_member.items(), key=lambda lane: (lane[1][0]["started_at"], lane[0]))
        self._incarnations = dict(in_order[: limits.lanes])
        self.lanes_shown, self.lanes_total = len(self._incarnations), len(in_order)
        shown = {row["uuid"] for rows in self._incarnations.values() for row in rows[: limits.incarnations]}
        self._lists: dict[str, list[dict[str, Any]]] = {member: [] for member in self._incarnations}
        for row in sorted(tables.table("views"), key=itemgetter("at", "seq")):
            if row["uuid"] in shown and row["member"] in self._lists:
                self._lists[row["member"]].append(row)
        times = [row["at"] for rows in self._lists.values() for row in rows]
        self._thinned = {member: self._thin(rows, times) for member, rows in self._lists.items()}
        every = (view for views in self._thinned.values() for view in views)
        self._views = sorted(every, key=lambda view: (view.start_us, view.version, view.uuid))
        self._labels: dict[str, str] = {
            row["address"]: row["member"]
            for rows in self._incarnations.values()
            for row in rows[: limits.incarnations]
            if row["address"]
        }
        lineages = dict.fromkeys(view.lineage for view in self._views)
        self._letters = {name: _letter(place) for place, name in enumerate(lineages)}

    def _thin(self, rows: list[dict[str, Any]], times: list[int]) -> list[Row]:
        """Return each list of a short lane; of a longer one, the last list in each of `limits.marks` equal spans of the run."""
        marks = self._limits.marks
        bins = defaultdict(list)
        for place, row in enumerate(rows):
            in_time = (row["at"] - min(times)) * marks // (max(times) - min(times) + 1)
            bins[row["uuid"], in_time if len(rows) > marks else place].append(row)
        return [
            Row(
                **{name: last[name] for name in ("uuid", "version", "lineage", "master")},
                start_us=last["at"],
                members=[listed["address"] for listed in last["members"]],
                size=len(last["members"]),
                installs=len(of_bin),
            )
            for of_bin in bins.values()
            for last in (max(of_bin, key=itemgetter("seq")),)
        ]

    def _label(self, address: str | None) -> str:
        """Return the member's label where the journal has it, else the address."""
        return self._labels.get(address or "", address or "")

    def _names(self, addresses: Sequence[str]) -> list[str]:
        return list(map(self._label, addresses[: self._limits.names]))

    def lanes(self) -> Iterator[Row]:
        for member, rows in self._incarnations.items():
            shown = rows[: self._limits.incarnations]
            lives = [
                Row(
                    uuid=row["uuid"],
                    address=row["address"] or "",
                    start_us=row["started_at"],
                    end_us=row["ended_at"],
                    end=row["end"] or "",
                )
                for row in shown
            ]
            yield Row(
                member=member,
                lives=lives,
                lives_cut=Row(shown=len(lives), total=len(rows)),
                views=[view for life in lives for view in self._view_spans(life, self._thinned[member])],
                installs=len(self._lists[member]),
            )

    def _view_spans(self, incarnation: Row, of_member: Sequence[Row]) -> list[Row]:
        """Return the incarnation's views: each ends as the next one begins, the last as the incarnation ends."""
        views = [view for view in of_member if view.uuid == incarnation.uuid]
        ended_us = self._tables.span[1] if incarnation.end_us is None else incarnation.end_us
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

    def lineages(self) -> list[Row]:
        lineages = []
        for name, letter in list(self._letters.items())[: self._limits.rows]:
            views = [view for view in self._views if view.lineage == name]
            versions = [view.version for view in views]
            spanned = {"first_version": min(versions), "last_version": max(versions), "start_us": views[0].start_us}
            lineages.append(Row(letter=letter, name=name, master=self._label(views[0].master), **spanned))
        return lineages

    def sizes(self) -> list[Row]:
        """Return the size of each list, from when a member first installed it."""
        first: dict[tuple[str, int], Row] = {}
        for view in self._views:
            letter = self._letters[view.lineage]
            step = Row(at_us=view.start_us, lineage=letter, version=view.version, size=view.size)
            first.setdefault((letter, view.version), step)
        return list(first.values())

    def splits(self) -> Iterator[Row]:
        most = self._limits.names
        rows = sorted(METRICS["splits"].rows(self._tables), key=itemgetter("from_at"))
        for number, row in enumerate(rows, start=1):
            sides = [
                Row(side, lineage=self._letters.get(side["lineage"], side["lineage"]), members=side["members"][:most])
                for side in row["sides"][:most]
            ]
            times = {"start_us": row["from_at"], "end_us": row["to_at"], "lasted_us": row["lasted_us"]}
            yield Row(number=number, **times, healed_us=row["healed_at"], sides=sides)

    def faults(self) -> Iterator[Row]:
        order = ("from_at", "fault", "member", "source", "target")
        for row in sorted(self._tables.table("faults"), key=lambda row: nones_first(row, order)):
            times = {"start_us": row["from_at"], "end_us": row["to_at"]}
            yield Row(fault=row["fault"], **times, what=_fault_text(Row(row)), member=row["member"] or "")

    def suspicions(self) -> list[Row]:
        """Return pairs of members with how long one suspected the other, the most frequent first.

        A suspicion that was never cleared ends when the observer's list lacks the suspect, or with the observer's incarnation or
        the run.
        """
        lists = defaultdict(list)
        for row in self._tables.table("views"):
            lists[row["uuid"]].append((row["at"], {(listed["address"], listed["uuid"]) for listed in row["members"]}))
        pairs: dict[tuple[str, str], Row] = {}
        for row in self._tables.table("suspicions"):
            one = row["suspect"], row["suspect_uuid"]
            removed_at = min(
                (at for at, of in lists[row["uuid"]] if at >= row["raised_at"] and one not in of), default=None
            )
            ends = [at for at in (row["cleared_at"], removed_at) if at is not None]
            until_at = min(ends) if ends else self._tables.running[row["uuid"]].to_at
            who = {"observer": row["member"], "suspect": self._label(row["suspect"])}
            pair = pairs.setdefault((row["member"], row["suspect"]), Row(who, times=0, suspected_us=0, open=0))
            pair["times"] += 1
            pair["suspected_us"] += max(until_at - row["raised_at"], 0)
            pair["open"] += not ends
        return sorted(pairs.values(), key=lambda pair: (-pair["times"], pair["observer"], pair["suspect"]))

    def migrations(self) -> list[Row]:
        """Return the open migrations, then those that took longest."""

        def slowest_first(row: Row) -> tuple[bool, float, str]:
            end, begun = row["end_us"], row["started_at"]
            took = math.inf if end is None or begun is None else begun - end
            return row["outcome"] != "open", took, row["migration_id"]

        ended = (
            Row(row, end_us=row["finished_at"] if row["decided_at"] is None else row["decided_at"])
            for row in self._tables.table("migrations")
        )
        return [
            Row(
                migration_id=row["migration_id"],
                partition=row["partition"],
                type=row["type"] or "unknown",
                **{name: self._label(row[name]) for name in ("source", "destination")},
                reason=row["reason"] or "",
                start_us=self._tables.span[0] if row["started_at"] is None else row["started_at"],
                copied_us=row["copied_at"],
                **{name: row[name] for name in ("end_us", "outcome", "bytes", "rejections")},
            )
            for row in sorted(ended, key=slowest_first)
        ]

    def outcomes(self) -> list[Row]:
        """Return how many migrations of each type ended in which way."""
        counts = Counter((row["type"] or "unknown", row["outcome"]) for row in self._tables.table("migrations"))
        return [Row(type=kind, outcome=outcome, times=times) for (kind, outcome), times in sorted(counts.items())]

    def claims(self) -> Iterator[Row]:
        for row in sorted(self._tables.table("claims"), key=itemgetter("started_at", "uuid", "claim")):
            counts = ("outcome", "version", "new_version", "accepted", "refused", "retried")
            yield Row(
                {"member": row["member"], "start_us": row["started_at"], "end_us": row["ended_at"]},
                **{name: row[name] for name in counts},
                left_out=self._names(row["left_out"] or []),
                reason=row["reason"] or "",
            )

    def merges(self) -> Iterator[Row]:
        for row in sorted(self._tables.table("merges"), key=itemgetter("left_at", "uuid")):
            lineages = (row[name] or "" for name in ("from_lineage", "to_lineage"))
            left, joined = (self._letters.get(lineage, lineage) for lineage in lineages)
            names = {"target": self._label(row["target"]), "from_lineage": left, "to_lineage": joined}
            yield Row(member=row["member"], **names, start_us=row["left_at"], end_us=row["joined_at"])


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


def _metrics(tables: RunTables) -> Iterator[Row]:
    for measurement, samples in sorted(samples_of(tables).samples.items(), key=itemgetter(0)):
        bins = _bins(samples) if measurement.unit == "us" else []
        yield Row(**measurement._asdict(), **samples.summary(), bins=bins)


def _bins(samples: Samples) -> list[Row]:
    """Count durations by bin, from the first to the last one that is not empty; those below one microsecond count as one."""
    times = Counter(math.floor(math.log10(max(value, 1.0)) * BINS_PER_DECADE + ROUNDING) for value in samples.values)
    return [
        Row(from_us=_bin_start_us(place), to_us=_bin_start_us(place + 1), times=times[place])
        for place in (range(min(times), max(times) + 1) if times else ())
    ]


def _bin_start_us(place: int) -> int:
    return round(10 ** (place / BINS_PER_DECADE))
