"""What holds for members inside this process and for members in processes of their own alike."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.backend.core.address import port_of
from quarterdeck.backend.core.commands import (
    ChangeState,
    CommandRefused,
    CutLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    KillMember,
    Operate,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, StrangerRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    JoinListChanged,
    ListInstalled,
    MemberMerging,
    MemberStarted,
    MemberStopped,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.journal.writer import JournalFailed, JournalWriter
from quarterdeck.backend.live.cluster.addressing import HeldPorts
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster, ProcessCluster
from quarterdeck.backend.live.transport.limits import Timeouts
from tests.live.cluster.observed_cluster import BASE_PORT, QUICK, ObservedCluster
from tests.thoroughness import long_after

PATIENT = Settings.of({"hazelcast.heartbeat.interval.seconds": 0.2, "hazelcast.max.no.heartbeat.seconds": 60})
"""Nobody is suspected for silence within the time of a test."""

MERGING = Settings.of(
    {
        "hazelcast.heartbeat.interval.seconds": 0.1,
        "hazelcast.max.no.heartbeat.seconds": 1,
        "hazelcast.merge.first.run.delay.seconds": 0.5,
        "hazelcast.merge.next.run.delay.seconds": 0.5,
        "hazelcast.mastership.claim.timeout.seconds": 2,
    },
    preset="training",
)

Start = Callable[..., ObservedCluster]


@pytest.fixture(params=long_after(1, [LocalCluster, ProcessCluster]))
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    open_clusters: list[LiveCluster] = []

    def begin(labels: Sequence[str] | int = 3, **options: Any) -> ObservedCluster:
        options = {"settings": QUICK, "base_port": BASE_PORT, "seed": 1, "timeouts": Timeouts(1, 1)} | options
        cluster = request.param(labels, **options)
        open_clusters.append(cluster)
        cluster.started.result(60)
        return ObservedCluster(cluster)

    yield begin
    for cluster in open_clusters:
        cluster.close()


def test_members_form_one_list_and_say_goodbye_at_the_end(start: Start, tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "run-1", "test") as journal:
        watched = start(3, journal=journal)
        watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
        watched.cluster.close()
        watched.records += watched.cluster.drain()
    assert watched.cluster.run == "run-1"
    assert len(watched.events(MemberStopped)) == 3 and not watched.events(ProcessKilled)
    assert {member.event.address for member in watched.records if isinstance(member.event, MemberStarted)} == set(
        watched.cluster.addresses.values()
    )
    key = lambda record: (record.uuid, record.seq)  # noqa: E731
    assert sorted(read_journal(tmp_path), key=key) == sorted(watched.records, key=key)


def test_records_are_numbered_without_gaps_on_one_clock(start: Start) -> None:
    watched = start(3)
    watched.do(KillMember("n2"))
    watched.do(StartMember("n2"))
    watched.until(lambda: len(watched.events(ListInstalled, "n2")) > 1)
    watched.cluster.close()
    watched.records += watched.cluster.drain()
    lives: dict[str, list[Any]] = {}
    for record in watched.records:
        lives.setdefault(record.uuid, []).append(record)
    assert len(lives) == 5
    for records in lives.values():
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert [record.at for record in records] == sorted(record.at for record in records)
        assert all(0 <= record.at <= watched.cluster.now_us() for record in records)
        assert all(abs(record.utc / 1e6 - time.time()) < 60 for record in records)


def test_a_crash_is_known_long_before_heartbeats_are_missed(start: Start) -> None:
    watched = start(3, settings=PATIENT)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(KillMember("n1"))
    watched.until(lambda: watched.agree(["n2", "n3"]))
    reasons = {event.reason for event in watched.events(SuspicionRaised)}
    assert any("no connection (connection refused)" in reason for reason in reasons), reasons
    watched.do(StartMember("n1"))
    watched.until(lambda: watched.agree(["n2", "n3", "n1"]))


def test_a_blackhole_is_only_silence(start: Start) -> None:
    watched = start(2, settings=PATIENT)
    watched.until(lambda: watched.agree(["n1", "n2"]))
    watched.do(CutLink(("n1",), ("n2",)))
    time.sleep(1.5)  # time is the subject: silence goes on, and is no reason yet
    watched.do(Heal())
    watched.until(lambda: len(watched.events(LinkChanged)) == 4)
    assert not watched.events(SuspicionRaised)
    watched.do(CutLink(("n1",), ("n2",)))
    watched.do(KillMember("n2"))
    time.sleep(1.5)  # time is the subject: silence goes on, and is no reason yet
    watched.until(lambda: watched.events(ProcessKilled))
    assert not watched.events(SuspicionRaised)


def test_a_goodbye_accuses_nobody(start: Start) -> None:
    watched = start(3, settings=PATIENT)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(StopMember("n3"))
    watched.until(lambda: watched.agree(["n1", "n2"]))
    watched.until(lambda: watched.events(MemberStopped, "n3"))
    time.sleep(0.3)  # time is the subject: nobody is accused later either
    watched.until(lambda: True)
    assert {event.reason for event in watched.events(SuspicionRaised)} <= {"it said goodbye"}
    assert not watched.events(ProcessKilled)
    with pytest.raises(CommandRefused, match="n3 is not running"):
        watched.do(StopMember("n3"))


def test_a_frozen_member_is_forgiven_or_not(start: Start) -> None:
    watched = start(3)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(PauseMember("n3"))
    time.sleep(0.2)  # time is the subject: less than makes somebody suspected
    watched.do(ResumeMember("n3"))
    watched.until(lambda: watched.events(ProcessPaused))
    time.sleep(0.3)  # time is the subject: nobody is suspected later either
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(PauseMember("n3"))
    with pytest.raises(CommandRefused, match="n3 is paused"):
        watched.do(Operate("n3"))
    watched.until(lambda: watched.agree(["n1", "n2"]))
    watched.do(KillMember("n3"))
    watched.until(lambda: watched.events(ProcessKilled) == [ProcessKilled("n3")])


def test_everything_doubled_disturbs_nobody(start: Start) -> None:
    watched = start(["a", "b", "c"], late=["c"])
    watched.until(lambda: watched.agree(["a", "b"]))
    watched.do(DuplicateOnLink(("a", "b", "c"), ("a", "b", "c"), 1.0))
    watched.do(StartMember("c"))
    watched.until(lambda: watched.agree(["a", "b", "c"]))
    assert not watched.events(SuspicionRaised) and not watched.events(StrangerRefused)


def test_kinds_of_messages_are_dropped_and_come_back(start: Start) -> None:
    watched = start(2)
    watched.until(lambda: watched.agree(["n1", "n2"]))
    with pytest.raises(CommandRefused, match="no kind of message 'heartbeets'"):
        watched.do(DropMessages(("n2",), ("n1",), ("heartbeets",)))
    watched.do(DropMessages(("n2",), ("n1",), ("heartbeat",)))
    watched.until(lambda: watched.view("n1") == ["n1"])
    assert watched.events(LinkChanged) == [LinkChanged("n2", "n1", dropped_kinds=("heartbeat",))]


def test_join_lists_are_edited_by_label_and_reach_everybody(start: Start) -> None:
    watched = start(2)
    watched.until(lambda: watched.agree(["n1", "n2"]))
    with pytest.raises(CommandRefused, match="entry 1 of the join list"):
        watched.do(SetJoinList("n2", ("n7:x",)))
    watched.do(SetJoinList("n2", ("n1", "127.0.0.1:999")))
    watched.until(lambda: watched.events(JoinListChanged, "n1") and watched.events(JoinListChanged, "n2"))
    wanted = (watched.cluster.addresses["n1"], "127.0.0.1:999")
    assert {event.addresses for event in watched.events(JoinListChanged)} == {wanted}


def test_the_state_is_changed_and_operations_are_refused_with_the_reason(start: Start) -> None:
    watched = start(2, settings=Settings.of({"quarterdeck.minimum.cluster.size": 2}, preset="training"))
    watched.until(lambda: watched.agree(["n1", "n2"]))
    watched.do(Operate("n2"))
    watched.do(ChangeState("n2", "FROZEN"))
    watched.until(lambda: [event.state for event in watched.events(ClusterStateChanged, "n2")] == ["FROZEN"])
    with pytest.raises(CommandRefused, match="n2 is no master"):
        watched.do(SearchClusters("n2"))
    watched.do(SearchClusters("n1"))
    watched.do(StopMember("n1"))
    watched.until(lambda: watched.view("n2") == ["n2"])
    with pytest.raises(CommandRefused, match="2"):
        watched.do(Operate("n2"))


def test_two_clusters_merge_and_go_on_under_new_uuids(start: Start) -> None:
    watched = start(["a", "b", "c"], settings=MERGING)
    watched.until(lambda: watched.agree(["a", "b", "c"]))
    watched.do(CutLink(("a", "b"), ("c",)))
    watched.until(lambda: watched.agree(["a", "b"]) and watched.agree(["c"]))
    watched.do(Heal())
    watched.until(lambda: watched.agree(["a", "b", "c"]))
    (merging,) = watched.events(MemberMerging)
    assert [event.merged_from for event in watched.events(MemberStarted, "c")][-1] != ""
    assert watched.records[-1].run == watched.cluster.run
    assert merging.next_uuid in {record.uuid for record in watched.records if record.member == "c"}
    assert not watched.events(StrangerRefused)


def test_a_port_taken_meanwhile_is_a_refusal(start: Start) -> None:
    watched = start(2, late=["n2"])
    with socket.create_server(("127.0.0.1", port_of(watched.cluster.addresses["n2"]))):
        with pytest.raises(CommandRefused, match=r"n2 cannot start at 127.0.0.1:.*in use"):
            watched.do(StartMember("n2"))
    watched.do(StartMember("n2"))
    watched.until(lambda: watched.agree(["n1", "n2"]))


def test_a_journal_that_failed_is_told_at_the_end(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = JournalWriter(tmp_path, "run-1", "test")
    watched = start(1, journal=journal)
    watched.until(lambda: watched.agree(["n1"]))

    def no_room() -> None:
        raise JournalFailed("No space left on device")

    monkeypatch.setattr(journal, "flush", no_room)
    with pytest.raises(JournalFailed, match="No space left"):
        watched.cluster.close()
    watched.cluster.close()
    journal.close()


def test_clusters_opened_at_the_same_instant_get_different_ports(start: Start) -> None:
    first, second = start(3, late=["n1", "n2", "n3"]), start(3, late=["n1", "n2", "n3"])
    assert not set(first.cluster.addresses.values()) & set(second.cluster.addresses.values())
    first.cluster.close()
    held = HeldPorts(3, BASE_PORT, "127.0.0.1")
    held.release()
    assert held.ports == tuple(map(port_of, first.cluster.addresses.values()))
