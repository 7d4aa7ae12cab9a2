"""The built-in demos: every one reads without errors and comes true in simulation."""

from __future__ import annotations

import pytest

from backend.core.events import Record
from backend.core.partitions.events import DrainFinished, MigrationDecided, MigrationStarted
from backend.simulation.run import simulate
from backend.training.demos import UnknownDemo, demo_names, load_demo


def test_the_demos_are_there() -> None:
    assert {"first-cluster", "migration", "split"} <= set(demo_names())


@pytest.mark.parametrize("name", demo_names())
@pytest.mark.parametrize("seed", range(5))
def test_a_demo_comes_true_under_any_seed(name: str, seed: int) -> None:
    outcome = simulate(load_demo(name), seed)
    assert [step for step in outcome.expectations if not step.met] == []
    assert outcome.passed


def test_the_halves_of_the_split_stay_apart() -> None:
    members = simulate(load_demo("split"), 1).members
    assert members["athens"].members == ("athens", "byzantium", "cyrene")
    assert members["euphesus"].members == ("delphi", "euphesus")
    assert members["euphesus"].master == "delphi"


def test_the_migration_demo_shows_every_step_that_it_tells_of() -> None:
    records = Records()
    outcome = simulate(load_demo("migration"), 1, records)
    events = [record.event for record in records.taken]
    started = [event for event in events if isinstance(event, MigrationStarted)]
    assert {"MOVE", "COPY"} <= {event.type for event in started}
    assert min(event.available for event in started if event.type == "MOVE") == 2, "a move left one replica alone"
    assert {event.committed for event in events if isinstance(event, MigrationDecided)} == {True, False}
    assert [event.reason for event in events if isinstance(event, DrainFinished)] == [""]
    assert set(outcome.members) == {"athens", "cyrene"}
    assert outcome.table.version > 0


class Records:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.taken: list[Record] = []

    def append(self, record: Record) -> None:
        self.taken.append(record)


def test_an_unknown_demo_gets_a_suggestion() -> None:
    with pytest.raises(UnknownDemo, match="there is no demo 'splitt'; did you mean split"):
        load_demo("splitt")
