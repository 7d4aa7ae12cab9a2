"""Data on live members, inside this process and in processes of their own: calls, stops, deaths in the middle of migrations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    CommandRefused,
    CutLink,
    KillAt,
    KillMember,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import MemberStopped
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster, ProcessCluster
from quarterdeck.backend.live.transport.limits import Timeouts
from tests.live.cluster.observed_cluster import BASE_PORT, ObservedCluster
from tests.live.cluster.partition_tables import PartitionTables
from tests.thoroughness import long_after

CALM: dict[str, Any] = {
    "hazelcast.heartbeat.interval.seconds": 0.5,
    "hazelcast.max.no.heartbeat.seconds": 20,
    "hazelcast.partition.count": 31,
}
"""Nobody is suspected for silence within the time of a test, only for what befalls a connection."""


class Holding(ObservedCluster):
    """A cluster that holds data."""

    def __init__(self, cluster: LiveCluster) -> None:
        super().__init__(cluster)
        self.tables = PartitionTables()
        self._folded = 0

    def ask(self, member: str, operation: Operation, *, watched: bool = False) -> Answer:
        return self.cluster.call(member, operation, watched=watched).result(60)

    def fill(self, member: str, entries: int, value: bytes) -> None:
        for first in range(0, entries, 1000):
            batch = tuple((f"k{number}", value) for number in range(first, min(first + 1000, entries)))
            assert not self.ask(member, PutAll("m", batch)).problem

    def until_safe(self, labels: Sequence[str], replicas: int = 2) -> None:
        def safe() -> bool:
            self.tables.take(self.records[self._folded :])
            self._folded = len(self.records)
            return self.tables.are_safe(labels, replicas)

        self.until(safe)

    def assert_whole(self, members: Sequence[str], entries: int, value: bytes) -> None:
        """Every entry is there, through whomever it is asked for."""
        for member in members:
            assert self.ask(member, Size("m")).size == entries
        assert self.ask(members[0], Keys("m")).keys == tuple(sorted(f"k{number}" for number in range(entries)))
        sample = range(0, entries, max(1, entries // 500))
        answers = [self.cluster.call(members[-1], Get("m", f"k{number}")) for number in sample]
        assert [answer.result(60).value for answer in answers] == [value] * len(answers)


Start = Callable[..., Holding]


@pytest.fixture(params=long_after(1, [LocalCluster, ProcessCluster]))
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    open_clusters: list[LiveCluster] = []

    def begin(labels: Sequence[str] | int = 3, properties: dict[str, Any] | None = None, **options: Any) -> Holding:
        settings = Settings.of(CALM | (properties or {}), preset="training")
        given = {"settings": settings, "base_port": BASE_PORT, "seed": 1, "timeouts": Timeouts(1, 1)} | options
        cluster = request.param(labels, **given)
        open_clusters.append(cluster)
        cluster.started.result(60)
        return Holding(cluster)

    yield begin
    for cluster in open_clusters:
        cluster.close()


def test_what_one_member_is_given_another_one_has(start: Start) -> None:
    holding = start(3)
    assert holding.ask("n1", Put("m", "key", b"one")) == Answer()
    assert holding.ask("n2", Put("m", "key", b"two")).value == b"one"
    assert holding.ask("n3", Get("m", "key")).value == b"two"
    assert holding.ask("n1", Remove("m", "key")).value == b"two"
    assert holding.ask("n2", Size("m")).size == 0


def test_a_watched_call_and_a_commanded_one_are_recorded_and_others_are_not(start: Start) -> None:
    holding = start(2)
    assert not holding.ask("n1", Put("m", "silent", b"")).problem
    assert not holding.ask("n1", Put("m", "watched", b"x"), watched=True).problem
    holding.do(CallMap("n2", Get("m", "watched")))
    holding.until(lambda: len(holding.events(CallFinished)) == 2)
    assert [event.key for event in holding.events(CallStarted)] == ["watched", "watched"]
    assert holding.events(CallFinished, "n2")[0].value == "x"


def test_nobody_there_to_be_asked_is_a_refusal(start: Start) -> None:
    holding = start(2)
    holding.do(KillMember("n2"))
    for member, why in (("n2", "n2 is not running"), ("n7", 'unknown label "n7"')):
        with pytest.raises(CommandRefused, match=why):
            holding.ask(member, Size("m"))
        with pytest.raises(CommandRefused, match=why):
            holding.do(CallMap(member, Size("m")))
    holding.cluster.close()
    with pytest.raises(CommandRefused, match="closed"):
        holding.ask("n1", Size("m"))


def test_a_call_whose_member_dies_says_so(start: Start) -> None:
    holding = start(2)
    holding.do(ArrangePartitions("n1"))
    holding.until_safe(["n1", "n2"])
    holding.do(CutLink(("n1",), ("n2",)))
    waiting = [holding.cluster.call("n1", Put("m", f"k{number}", b"v")) for number in range(5)]
    time.sleep(0.3)  # time is the subject: the answers do not come
    assert not any(call.done() for call in waiting), "the backup is out of reach, so nothing is safe yet"
    holding.do(KillMember("n1"))
    assert [call.result(60) for call in waiting] == [Answer(problem="n1 has ended")] * 5


def test_who_stops_gives_its_data_away_first_and_nobody_waits_for_it(start: Start) -> None:
    holding = start(3, {"quarterdeck.backup.count": 0})
    holding.fill("n1", 500, b"v" * 100)
    stopping = [holding.cluster.execute(StopMember("n3"))]
    assert not holding.ask("n1", Put("m", "k0", b"v" * 100)).problem
    stopping.append(holding.cluster.execute(StopMember("n2")))
    for stop in stopping:
        stop.result(60)
    holding.until(lambda: len(holding.events(MemberStopped)) == 2)
    assert not holding.events(ProcessKilled)
    holding.assert_whole(["n1"], 500, b"v" * 100)


def test_a_member_killed_while_it_gives_its_data_away_has_not_stopped(start: Start) -> None:
    holding = start(2)
    holding.fill("n1", 100, b"v")
    holding.do(CutLink(("n1",), ("n2",)))
    stopping = holding.cluster.execute(StopMember("n2"))
    holding.do(KillMember("n2"))
    with pytest.raises(CommandRefused, match=r"n2 (was killed before it had left|has ended)"):
        stopping.result(60)


def test_who_is_asked_twice_to_stop_does_not_wait(start: Start) -> None:
    holding = start(2)
    holding.fill("n1", 100, b"v")
    holding.do(CutLink(("n1",), ("n2",)))
    stopping = holding.cluster.execute(StopMember("n2"))
    holding.do(StopMember("n2"))
    stopping.result(60)
    holding.until(lambda: holding.events(MemberStopped, "n2"))


def test_closing_gives_nothing_away_and_still_says_goodbye(start: Start) -> None:
    holding = start(4)
    holding.fill("n1", 2000, b"v" * 1000)
    holding.cluster.close()
    holding.records += holding.cluster.drain()
    assert len(holding.events(MemberStopped)) == 4
    assert not holding.events(ProcessKilled)
    assert "drain-finished" not in {record.event.__struct_config__.tag for record in holding.records}


@pytest.mark.parametrize("after", [False, True])
def test_a_named_point_of_a_migration_is_deadly_once(start: Start, after: bool) -> None:
    holding = start(3, late=["n3"])
    holding.fill("n1", 500, b"v")
    holding.do(KillAt("n3", "migration-accepted", after))
    holding.do(StartMember("n3"))
    holding.until(lambda: holding.events(ProcessKilled) == [ProcessKilled("n3")])
    tags = [record.event.__struct_config__.tag for record in holding.records if record.member == "n3"]
    assert tags.count("migration-accepted") == 1 and tags[-1] == "migration-accepted"
    holding.do(StartMember("n3"))
    holding.until_safe(["n1", "n2", "n3"])
    holding.assert_whole(["n3"], 500, b"v")


ENTRIES = 20_000


def test_no_entry_is_lost_when_members_and_masters_die_in_the_middle_of_migrations(start: Start) -> None:
    holding = start(6, {"hazelcast.partition.count": 271}, late=["n6"])
    value = b"v" * 100
    holding.fill("n1", ENTRIES, value)
    holding.until_safe(["n1", "n2", "n3", "n4", "n5"])
    holding.do(KillAt("n3", "migration-copied"))
    holding.do(StartMember("n6"))
    holding.until(lambda: holding.events(ProcessKilled) == [ProcessKilled("n3")])
    holding.until_safe(["n1", "n2", "n4", "n5", "n6"])
    holding.do(KillAt("n1", "migration-committing"))
    holding.do(StartMember("n3"))
    holding.until(lambda: holding.events(ProcessKilled) == [ProcessKilled("n3"), ProcessKilled("n1")])
    holding.until_safe(["n2", "n3", "n4", "n5", "n6"])
    holding.assert_whole(["n2", "n6"], ENTRIES, value)
