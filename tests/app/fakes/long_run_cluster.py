"""A fake cluster in the middle of everything: what a long simulated run recorded, and where it stood when that ended."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationCommitting
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.app.fakes.fake_cluster import FakeCluster
from tests.picture.played_scenarios import MemoryJournal

STORY = Path(__file__).parent / "long_story.yaml"

SIX = ("athens", "byzantium", "cyrene", "delphi", "euphesus", "fez")
"""athens is dead, byzantium and delphi lead, euphesus is frozen, fez is held back."""


class LongRunCluster(FakeCluster):
    """Hands out the whole story at once. Its clock stands where the story ends, so that ages are always the same."""

    def __init__(self, *, writable: bool = True) -> None:
        super().__init__(SIX, name="dev", writable=writable)
        self._pending = list(_story())
        self._at = self._pending[-1].at

    def address(self, label: str) -> Address:
        return Address(f"127.0.0.1:{5701 + self.labels.index(label)}")


@cache
def _story() -> tuple[Record, ...]:
    recorder = MemoryJournal()
    outcome = simulate(load_scenario(STORY), seed=1, journal=recorder, run="story")
    assert outcome.passed, [step for step in outcome.expectations if not step.met]
    # It ends in the middle of a migration. Suspicions are gone again by then, so the last word is put in by hand.
    committing = max(place for place, one in enumerate(recorder.records) if isinstance(one.event, MigrationCommitting))
    records = recorder.records[: committing + 1]
    lives = {record.member: (record.uuid, record.seq) for record in records}
    addresses = {
        record.member: record.event.address for record in records if isinstance(record.event, events.MemberStarted)
    }
    uuid, seq = lives["cyrene"]
    suspicion = events.SuspicionRaised(addresses["byzantium"], lives["byzantium"][0], "no heartbeat for 4.1 s")
    last = records[-1]
    return (*records, Record(last.run, "cyrene", uuid, seq + 1, last.at, last.utc, suspicion))
