"""The records of a scenario file, played in the simulator."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.event_trail import Trail
from quarterdeck.backend.picture.picture import Picture
from quarterdeck.backend.simulation.run import simulate
from quarterdeck.backend.simulation.scenario_file import load_scenario

SCENARIOS = Path(__file__).parent.parent / "scenarios"


class Recorder:
    """A journal in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)


@cache
def records_of(name: str, seed: int = 1) -> tuple[Record, ...]:
    """Every record of the scenario called `name`."""
    recorder = Recorder()
    simulate(load_scenario(SCENARIOS / f"{name}.yaml"), seed=seed, journal=recorder)
    return tuple(recorder.records)


def trail_of(name: str, seed: int = 1) -> Trail:
    """A trail of the scenario's records, with the names that its members have in the end."""
    records = records_of(name, seed)
    picture = Picture()
    for record in records:
        picture.apply(record)
    return Trail(records, picture.label_of)
