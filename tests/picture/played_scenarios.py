"""The records of a scenario file, played in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.event_index import EventIndex
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

SCENARIOS = Path(__file__).parent.parent / "scenarios"


class MemoryJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)


@cache
def records_of(name: str, seed: int = 1) -> tuple[Record, ...]:
    """Every record of the scenario called `name`."""
    recorder = MemoryJournal()
    simulate(load_scenario(SCENARIOS / f"{name}.yaml"), seed=seed, journal=recorder)
    return tuple(recorder.records)


def event_index_of(name: str, seed: int = 1) -> EventIndex:
    """A trail of the scenario's records, with the names that its members have in the end."""
    return index_of(records_of(name, seed))


def index_of(records: Sequence[Record]) -> EventIndex:
    """A trail of these records, with the names that their members have in the end."""
    picture = Picture()
    for record in records:
        picture.apply(record)
    return EventIndex(records, picture.label_of)
