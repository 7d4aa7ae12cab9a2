"""Random journals: simulated runs with something changed that no cluster would do, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ClaimAnswered, ClaimFinished, ListInstalled, MemberRemoved
from quarterdeck.backend.core.partitions.events import (
    CompletedEvicted,
    MigrationAccepted,
    MigrationDecided,
    MigrationFinished,
    MigrationStarted,
    TableChanged,
)
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = (
    *("figure-5", "crash-in-claim", "issue-17490", "crash-in-merge", "cut-racks", "cluster-states", "killed-process"),
    *("p-move", "p-copy", "p-master-dies-after-commit", "p-merge-latest-update", "p-eviction", "p-lost-partition"),
    *("p-latest-table", "p-issue-5444-master", "p-destination-dies-after"),
)
SEEDS_EACH = 4
MOST_CHANGES = 4


class _Recorder:
    """Keeps the records of a run."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)

    def flush(self) -> None:
        pass


@cache
def simulated(name: str, seed: int) -> tuple[Record, ...]:
    """The records of a scenario under a seed."""
    recorder = _Recorder()
    simulate(load_scenario(SCENARIOS / f"{name}.yaml"), seed, recorder, run="run")  # type: ignore[arg-type]
    return tuple(recorder.records)


def broken(seed: int) -> list[Record]:
    """A simulated run with up to a few changes; some are left as they were. Numbered anew, so that nothing is missing."""
    rng = Random(seed)
    records = list(simulated(rng.choice(NAMES), rng.randrange(SEEDS_EACH)))
    for _ in range(rng.randrange(MOST_CHANGES + 1)):
        rng.choice(CHANGES)(rng, records)
    return numbered(records, f"run-{seed}")


def numbered(records: list[Record], run: str) -> list[Record]:
    numbers: dict[str, int] = {}
    ordered = []
    for record in sorted(records, key=lambda one: one.at):
        seq = numbers[record.uuid] = numbers.get(record.uuid, 0) + 1
        ordered.append(replace(record, run=run, seq=seq))
    return ordered


# The changes


def drop(rng: Random, records: list[Record]) -> None:
    del records[rng.randrange(len(records))]


def repeat_later(rng: Random, records: list[Record]) -> None:
    """Something happens once more, at a later time."""
    place = rng.randrange(len(records))
    later = rng.randrange(place, len(records))
    records.insert(later + 1, replace(records[place], at=records[later].at, utc=records[later].utc))


def swap(rng: Random, records: list[Record]) -> None:
    """Two things change places in time."""
    one, other = (rng.randrange(len(records)) for _ in range(2))
    events = records[one].event, records[other].event
    records[one], records[other] = replace(records[one], event=events[1]), replace(records[other], event=events[0])


def end_late(rng: Random, records: list[Record]) -> None:
    """Long after everything else something is told once more."""
    last = records[-1]
    at = last.at + rng.choice((30, 90, 20_000)) * 1_000_000
    records.append(replace(records[rng.randrange(len(records))], at=at, utc=at))


def kill(rng: Random, records: list[Record]) -> None:
    place = rng.randrange(len(records))
    victim, here = rng.choice(records).member, records[place]
    records.insert(place, Record(here.run, "cluster", here.run, 1, here.at, here.utc, ProcessKilled(victim)))


def alter(rng: Random, records: list[Record]) -> None:
    """One thing of the kinds that rules look at is otherwise."""
    kinds = rng.sample(list(ALTERED), len(ALTERED))
    for kind in kinds:
        places = [place for place, record in enumerate(records) if isinstance(record.event, kind)]
        if places:
            place = rng.choice(places)
            records[place] = replace(records[place], event=ALTERED[kind](rng, records[place].event))
            return


def _list(rng: Random, event: ListInstalled) -> ListInstalled:
    members = list(event.members)
    match rng.randrange(6):
        case 0:
            rng.shuffle(members)
        case 1 if members:
            del members[rng.randrange(len(members))]
        case 2:
            return replace(event, version=max(1, event.version + rng.choice((-2, -1, 1))))
        case 3 if members:
            return replace(event, master=rng.choice(members).address)
        case 4 if members:
            return replace(event, author=rng.choice(members).address)
        case _:
            return replace(event, lineage=f"{event.lineage}x")
    return replace(event, members=tuple(members))


def _table(rng: Random, event: TableChanged) -> TableChanged:
    rows = [list(row) for row in event.rows]
    if not rows:
        return replace(event, table_version=event.table_version + 1)
    row = rng.choice(rows)
    match rng.randrange(4):
        case 0:
            row[1] = max(0, row[1] + rng.choice((-1, 1)))
        case 1:
            row[2:] = rng.sample(row[2:], len(row) - 2)
        case 2:
            row[rng.randrange(2, len(row))] = -1
        case _:
            return replace(event, author=rng.choice([*(holder.uuid for holder in event.holders), "nobody"]))
    return replace(event, rows=tuple(map(tuple, rows)))


def _value(rng: Random, event: CallFinished) -> CallFinished:
    if rng.random() < 0.5:
        return replace(event, found=not event.found)
    return replace(event, value=rng.choice(("", "other", event.value)))


ALTERED: dict[type, Callable[[Random, Any], object]] = {
    ListInstalled: _list,
    TableChanged: _table,
    CallFinished: _value,
    MigrationDecided: lambda rng, event: replace(event, committed=not event.committed),
    MigrationFinished: lambda rng, event: replace(event, committed=not event.committed),
    MigrationStarted: lambda rng, event: replace(event, replicas_wanted=event.replicas_wanted + 1, unavoidable=False),
    MigrationAccepted: lambda rng, event: replace(event, migration_id="another"),
    CompletedEvicted: lambda rng, event: replace(event, migration_ids=()),
    ClaimAnswered: lambda rng, event: replace(event, answer=rng.choice(("accepted", "retry", "refused"))),
    ClaimFinished: lambda rng, event: replace(event, version=event.version - 1),
    MemberRemoved: lambda rng, event: replace(event, removed_uuid="somebody"),
}  # type: ignore[dict-item]

CHANGES = (drop, repeat_later, swap, end_late, kill, alter, alter, alter, alter)
