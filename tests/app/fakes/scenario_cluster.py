"""A fake cluster whose records were made by the simulator from a scenario file."""

from __future__ import annotations

from tests.app.fakes.fake_cluster import FakeCluster
from tests.picture.played_scenarios import event_index_of, records_of


class ScenarioCluster(FakeCluster):
    """Hands out all records of a scenario at once; what `happen` adds comes after them."""

    def __init__(self, name: str) -> None:
        records = records_of(name)
        super().__init__(tuple(dict.fromkeys(record.member for record in records if record.uuid != record.run)))
        self.event_index = event_index_of(name)
        self._pending = list(records)
        self._at = records[-1].at
