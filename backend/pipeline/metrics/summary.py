"""All tables of metrics, and percentiles of all measurements: for each run, each scenario, or all runs with the same settings."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Literal, NamedTuple

from quarterdeck.backend.pipeline.metrics.data_metrics import availability, messages, migration_rates, plans
from quarterdeck.backend.pipeline.metrics.membership_metrics import detection, one_view, splits
from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row

METRICS = {table.name: table for table in (detection, one_view, splits, availability, migration_rates, plans, messages)}
"""In the order of the documentation. Durations of migrations, merges and calls are in the tables of those names."""

By = Literal["run", "scenario", "settings", "all"]

TIMED_RUN = r"^\d{8}T\d{6}Z-(.+)-[0-9a-f]{4}$"
"""Runs of live clusters are named after the time, the scenario or cluster, and a random number."""

SEEDS_OF_RUN = r"(?:(?:^|-)seed-+\d+)+$"
"""Simulated runs are named after scenario and seed; those of a campaign after the seed alone, or the variant and the seed.

The seed occurs twice where the scenario was made of such a run.
"""

SWARM = "swarm"
"""The scenario of runs that name none."""

SUMMARY = schema(
    """
    by string the run, the scenario, the settings that differ among the runs whose settings are known, or all
    metric string what was measured
    kind string of what kind; empty where there is one only
    unit string us (microseconds), copies, share, per-second, bytes-per-second, messages or times
    count bigint how many samples
    missing bigint how often it should have happened and did not
    floor double the least that theory allows for any of them; null where that is not known
    least double the least sample
    mean double their mean
    p50 double half of them are no greater
    p90 double 9 of 10 are no greater; null with fewer than 10 samples
    p99 double 99 of 100 are no greater; null with fewer than 100 samples
    most double the greatest
    """
)


PERCENTILES = {"p50": 50, "p90": 90, "p99": 99}
FEWEST = {"p50": 1, "p90": 10, "p99": 100}
"""So many samples are needed: 99 of 100 say nothing where there are two."""


class Measurement(NamedTuple):
    """What is measured, of what kind, and in which unit."""

    metric: str
    kind: str
    unit: str


class Samples:
    """The samples of one measurement: values, how many are missing, and the least that theory allows for any of them."""

    def __init__(self) -> None:
        self.values = array("d")
        self.missing = 0
        self.floor: float | None = None

    def add(self, value: float | None, floor: float | None = None) -> None:
        """Add a sample; None: what was expected did not happen."""
        if value is None:
            self.missing += 1
        else:
            self.values.append(value)
        if floor is not None:
            self.floor = float(floor) if self.floor is None else min(self.floor, float(floor))

    def extend(self, others: Samples) -> None:
        self.values.extend(others.values)
        self.missing += others.missing
        if others.floor is not None:
            self.floor = others.floor if self.floor is None else min(self.floor, others.floor)

    def summary(self) -> Row:
        """Return their percentiles, each a value that occurred."""
        values = sorted(self.values)
        row: Row = {"count": len(values), "missing": self.missing, "floor": self.floor}
        if not values:
            return row | dict.fromkeys(("least", "mean", "p50", "p90", "p99", "most"))
        places = {name: -(-len(values) * percent // 100) - 1 for name, percent in PERCENTILES.items()}
        return row | {
            **{"least": values[0], "mean": fmean(values), "most": values[-1]},
            **{name: values[place] if len(values) >= FEWEST[name] else None for name, place in places.items()},
        }


class RunSamples(NamedTuple):
    """The samples of a run, and the settings of its first incarnation, where they are known."""

    samples: Mapping[Measurement, Samples]
    settings: Mapping[str, str] | None
    has_incarnations: bool


def summary(runs: Mapping[str, RunSamples], by: By) -> list[Row]:
    """Return percentiles, ordered by group, metric and kind."""
    names = groups(runs, by)
    grouped: dict[tuple[str, Measurement], Samples] = defaultdict(Samples)
    for run, of_run in runs.items():
        for measurement, samples in of_run.samples.items():
            grouped[names[run], measurement].extend(samples)
    return [
        {"by": name, **measurement._asdict(), **samples.summary()}
        for (name, measurement), samples in sorted(grouped.items(), key=lambda group: group[0])
    ]


def groups(runs: Mapping[str, RunSamples], by: By) -> dict[str, str]:
    """Return the group that each run belongs to."""
    match by:
        case "run":
            return {run: run for run in runs}
        case "scenario":
            return {run: scenario_of(run) for run in runs}
        case "all":
            return dict.fromkeys(runs, "all")
    return _settings_that_differ(runs)


def scenario_of(run: str) -> str:
    """Return the scenario of a run, as far as its name shows it."""
    timed = re.search(TIMED_RUN, run)
    return timed[1] if timed else re.sub(SEEDS_OF_RUN, "", run) or SWARM


def _settings_that_differ(runs: Mapping[str, RunSamples]) -> dict[str, str]:
    """Return the settings of each run's first incarnation, of those properties that are not the same in all runs."""
    known = {run: of_run.settings for run, of_run in runs.items() if of_run.settings is not None}
    alike = Counter(pair for settings in known.values() for pair in settings.items())
    named = {
        run: ", ".join(sorted(f"{name}={value}" for name, value in settings.items() if alike[name, value] < len(known)))
        for run, settings in known.items()
    }
    return {
        run: "not known"
        if of_run.settings is None and of_run.has_incarnations
        else named.get(run) or "as documented or alike"
        for run, of_run in runs.items()
    }


def samples_of(tables: RunTables) -> RunSamples:
    """Return all measurements of a run."""
    samples: dict[Measurement, Samples] = defaultdict(Samples)
    for part in (_of_membership, _of_partitions, _of_traffic):
        for measurement, value, floor in part(tables):
            samples[measurement].add(value, floor)
    first = min(tables.running.values(), key=lambda one: (one.from_at, one.uuid), default=None)
    return RunSamples(dict(samples), None if first is None else first.settings, first is not None)


_Sample = tuple[Measurement, float | None, float | None]


def _sampled(
    rows: Iterable[Row], metric: str, value: str, kind: str = "", unit: str = "us", floor: str = ""
) -> Iterator[_Sample]:
    """Yield a sample of each row: its field `value`, with the fields `kind` as its kind."""
    for row in rows:
        named = " ".join(text for text in (row[name] for name in kind.split()) if text is not None)
        yield Measurement(metric, named, unit), row[value], row[floor] if floor else None


def _of_membership(tables: RunTables) -> Iterator[_Sample]:
    noticed = [row | {"how": row["how"] or "unnoticed"} for row in _rows(tables, "detection")]
    # A member that learned it from the master before it noticed by itself has missed nothing.
    own = [row for row in noticed if row["noticed_us"] is not None or row["removed_us"] is None]
    yield from _sampled(own, "noticed", "noticed_us", "fault how", floor="least_us")
    over = [
        row | {"over": row["noticed_us"] - row["least_us"]}
        for row in noticed
        if row["noticed_us"] is not None and row["least_us"] is not None
    ]
    yield from _sampled(over, "noticed later than the floor", "over", "fault how")
    removed = [row for row in noticed if row["removed_us"] is not None]
    yield from _sampled(removed, "removed", "removed_us", "fault how", floor="least_us")
    one_view = [row | {"what": " ".join(row["what"])} for row in _rows(tables, "one_view")]
    yield from _sampled(one_view, "one view", "took_us", "what")
    yield from _sampled(_rows(tables, "splits"), "split brain", "lasted_us")
    yield from _sampled(_rows(tables, "splits"), "healed to one master", "merge_us")
    yield from _sampled(_took(tables.table("merges"), "left_at", "joined_at"), "merge of a member", "took")
    yield from _sampled(_took(tables.table("claims"), "started_at", "ended_at"), "claim", "took", "outcome")


def _rows(tables: RunTables, name: str) -> list[Row]:
    return METRICS[name].rows(tables)


def _took(rows: Iterable[Row], begun: str, ended: str) -> Iterator[Row]:
    """Yield the rows with the time from one of their moments to another, where both are known."""
    for row in rows:
        is_known = row[begun] is not None and row[ended] is not None
        yield row | {"took": row[ended] - row[begun] if is_known else None}


def _of_partitions(tables: RunTables) -> Iterator[_Sample]:
    held = _rows(tables, "availability")
    for what in ("without_owner", "fewer_replicas"):
        name = what.replace("_", " ")
        yield from _sampled(held, name, f"{what}_us")
        shares = [{"share": row[f"{what}_us"] / row["observed_us"] if row["observed_us"] else None} for row in held]
        yield from _sampled(shares, f"{name}, share of the time", "share", unit="share")
        yield from _sampled(held, f"{name}, times", f"{what}_times", unit="times")
    moved = tables.table("migrations")
    yield from _sampled(_took(moved, "started_at", "decided_at"), "migration", "took", "type outcome")
    copied = [row for row in moved if row["copy_us"] is not None]
    yield from _sampled(copied, "copy of a migration", "copy_us", "type outcome")
    rates = [row for row in _rows(tables, "migration_rates") if row["committed_per_second"] is not None]
    yield from _sampled(rates, "migrations committed", "committed_per_second", unit="per-second")
    yield from _sampled(rates, "bytes moved", "bytes_per_second", unit="bytes-per-second")
    yield from _sampled(_rows(tables, "plans"), "copies planned", "moves", unit="copies")
    yield from _sampled(_rows(tables, "plans"), "copies over the lower bound", "over", unit="copies")


def _of_traffic(tables: RunTables) -> Iterator[_Sample]:
    sent = _rows(tables, "messages")
    yield from _sampled(sent, "messages", "messages", "known kind", unit="messages")
    yield from _sampled(sent, "messages of a member", "per_member_second", "known kind", unit="per-second")
    writes, reads = tables.table("writes"), tables.table("reads")
    yield from _sampled(writes, "write", "took", "operation outcome")
    yield from _sampled(reads, "read", "took", "outcome")
    if writes:
        rejected = sum(row["outcome"] == "untouched" for row in writes)
        yield Measurement("writes rejected", "", "times"), rejected, None
