"""Migrations of members elsewhere: told as they begin, copy and end, so that who watches sees them run."""

from __future__ import annotations

import pytest

from quarterdeck.backend.boards.migration_lanes import LaneRow, MigrationLanes
from quarterdeck.backend.clusters.remote.member_stream import StreamTimings
from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster
from quarterdeck.backend.core.commands import ArrangePartitions, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Put
from quarterdeck.backend.core.partitions.events import (
    MigrationCommitting,
    MigrationCopied,
    MigrationDecided,
    MigrationStarted,
)
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster
from quarterdeck.backend.picture.fold.picture import Picture
from tests.clusters.remote.fake_members import FakeMember, form, serving
from tests.ports import take_ports
from tests.waiting import wait_until

PORT = take_ports(20)
WAIT_SECONDS = 20
PACE = StreamTimings(dial=5, quiet=0.2, sign_of_life=5, first_retry=0.02, longest_retry=0.1)


class Watcher:
    """Folds what a remote cluster tells, as the console does."""

    def __init__(self, cluster: RemoteCluster) -> None:
        self.cluster = cluster
        self.picture, self.lanes = Picture(), MigrationLanes()
        self.records: list[Record] = []

    def look(self) -> None:
        fresh = self.cluster.drain()
        self.records += fresh
        self.lanes.take(fresh)
        for record in fresh:
            self.picture.apply(record)

    def phases(self) -> list[str]:
        """Of the migrations that run now."""
        self.look()
        return [
            migration.phase for belief in self.picture.members.values() for migration in belief.leading.running.values()
        ]

    def lane(self, label: str) -> LaneRow:
        """What a member gave and took when the latest migration ended."""
        self.look()
        ends = (record.at for record in reversed(self.records) if isinstance(record.event, MigrationDecided))
        return self.lanes.rows(self.picture, next(ends, 0))(label)

    def done(self) -> int:
        self.look()
        return self.picture.history.done_count


def test_a_migration_is_seen_while_it_runs_and_counts_in_the_lanes_with_its_bytes() -> None:
    athens, byzantium, cyrene = cities = FakeMember("athens"), FakeMember("byzantium"), FakeMember("cyrene")
    form(*cities)
    with serving(*cities):
        cluster = RemoteCluster([athens.url], timings=PACE)
        try:
            watcher = Watcher(cluster)
            wait_until(lambda: watcher.look() or len(watcher.picture.masters()) == 1)
            athens.happen(
                MigrationStarted(
                    "m1", 7, "MOVE", 1, byzantium.address, 0, -1, cyrene.address, -1, 0, byzantium.address, 2, 2, False
                )
            )
            wait_until(lambda: watcher.phases() == ["copying"])
            byzantium.happen(MigrationCopied("m1", 7, 3, 6_000_000, 250_000))
            wait_until(lambda: watcher.look() or "m1" in watcher.picture.history.copied)
            assert watcher.phases() == ["copying"] and watcher.done() == 0
            athens.happen(MigrationCommitting("m1", 7))
            wait_until(lambda: watcher.phases() == ["committing"])
            athens.happen(MigrationDecided("m1", 7, True, 2, ""))
            wait_until(lambda: watcher.done() == 1)
            assert watcher.phases() == []
            idle, giver, taker = (watcher.lane(city.label) for city in cities)
            assert not idle.busy
            assert (giver.given.count, giver.taken.count) == (taker.taken.count, taker.given.count) == (1, 0)
            assert giver.given.copied == taker.taken.copied == "1 MB"
        finally:
            cluster.close()


@pytest.mark.long
def test_real_members_tell_begin_copy_and_end_of_every_migration() -> None:
    members = ProcessCluster(3, settings=Settings.of(preset="training"), base_port=PORT, late=("n3",))
    try:
        members.started.result(WAIT_SECONDS)
        cluster = RemoteCluster([f"http://127.0.0.1:{PORT}"])
        try:
            cluster.started.result(WAIT_SECONDS)
            watcher = Watcher(cluster)
            members.execute(ArrangePartitions("n1")).result(WAIT_SECONDS)
            for number in range(30):
                members.call("n1", Put("capitals", f"country-{number}", b"athens" * 1_000)).result(WAIT_SECONDS)
            members.execute(StartMember("n3")).result(WAIT_SECONDS)
            wait_until(lambda: (row := watcher.lane("n3")).taken.count and row.taken.copied)
            told = [type(record.event) for record in watcher.records]
            assert told.index(MigrationStarted) < told.index(MigrationCopied) < told.index(MigrationDecided)
        finally:
            cluster.close()
    finally:
        members.close()
