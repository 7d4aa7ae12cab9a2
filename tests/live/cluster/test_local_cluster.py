"""The real thing: members on real sockets, seen only through their records, as a console sees them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.address import port_of
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    DelayLink,
    Heal,
    KillMember,
    LoseOnLink,
    Partition,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, StrangerRefused
from quarterdeck.backend.core.inputs import Input, Tick
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.events import (
    ListInstalled,
    MemberRemoved,
    MemberStopped,
    ObserverPaused,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.live.cluster.addressing import HeldPorts, PortsExhausted
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster
from quarterdeck.backend.live.transport.limits import Timeouts
from tests.live.cluster.observed_cluster import BASE_PORT, QUICK, ObservedCluster


@pytest.fixture
def start() -> Iterator[Callable[..., ObservedCluster]]:
    open_clusters: list[LocalCluster] = []

    def begin(labels: Sequence[str] | int = 3, **options: Any) -> ObservedCluster:
        options = {"settings": QUICK, "base_port": BASE_PORT, "seed": 1, "timeouts": Timeouts(0.5, 0.5)} | options
        cluster = LocalCluster(labels, **options)
        open_clusters.append(cluster)
        cluster.started.result(60)
        return ObservedCluster(cluster)

    yield begin
    for cluster in open_clusters:
        cluster.close()


def test_five_members_form_one_list_in_the_order_of_their_start(start: Callable[..., ObservedCluster]) -> None:
    watched = start(5)
    watched.until(lambda: watched.agree(["n1", "n2", "n3", "n4", "n5"]))
    cluster: Cluster = watched.cluster
    assert (cluster.name, cluster.source, cluster.writable) == ("dev", "live", True)
    assert list(cluster.labels) == ["n1", "n2", "n3", "n4", "n5"]
    last = [watched.events(ListInstalled, label)[-1] for label in cluster.labels]
    assert {(event.version, event.lineage) for event in last} == {(5, last[0].lineage)}


def test_records_are_numbered_without_gaps_and_dated(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.do(CutLink(("n1",), ("n2",), one_way=True))
    watched.do(Heal())
    watched.until(lambda: len(watched.events(LinkChanged)) == 2)
    watched.cluster.close()
    watched.records += watched.cluster.drain()
    lives: dict[str, list[int]] = {}
    for record in watched.records:
        lives.setdefault(record.uuid, []).append(record.seq)
        assert record.run == watched.cluster.run
        assert abs(record.utc / 1e6 - time.time()) < 60
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in lives.values())
    assert len(lives) == 4 and watched.cluster.run in lives
    assert len(watched.events(MemberStopped)) == 3


def test_a_partition_makes_two_masters(start: Callable[..., ObservedCluster]) -> None:
    watched = start(5)
    watched.until(lambda: watched.agree(["n1", "n2", "n3", "n4", "n5"]))
    watched.do(Partition((("n1", "n2", "n3"), ("n4", "n5"))))
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]) and watched.agree(["n4", "n5"]))
    assert len(watched.events(LinkChanged)) == 12


def test_a_partition_by_reset_makes_two_masters_too(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.do(Partition((("n1", "n2"), ("n3",)), mode="reset"))
    watched.until(lambda: watched.agree(["n1", "n2"]) and watched.agree(["n3"]))


def test_a_killed_member_is_removed_and_comes_back_under_its_address(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(KillMember("n2"))
    watched.until(lambda: watched.agree(["n1", "n3"]))
    assert watched.events(ProcessKilled) == [ProcessKilled("n2")]
    watched.do(StartMember("n2"))
    watched.until(lambda: watched.agree(["n1", "n3", "n2"]))
    uuids = {record.uuid for record in watched.records if record.member == "n2"}
    assert len(uuids) == 2


def test_a_killed_master_is_succeeded_by_the_oldest(start: Callable[..., ObservedCluster]) -> None:
    watched = start(["athens", "byzantium", "cyrene"])
    watched.until(lambda: watched.agree(["athens", "byzantium", "cyrene"]))
    watched.do(KillMember("athens"))
    watched.until(lambda: watched.agree(["byzantium", "cyrene"]))


def test_a_graceful_stop_is_noticed_without_a_timeout(start: Callable[..., ObservedCluster]) -> None:
    slow = Settings.of({"hazelcast.heartbeat.interval.seconds": 5, "hazelcast.max.no.heartbeat.seconds": 600})
    watched = start(3, settings=slow)
    watched.do(StopMember("n3"))
    watched.until(lambda: watched.agree(["n1", "n2"]))
    assert len(watched.events(MemberStopped, "n3")) == 1
    with pytest.raises(CommandRefused, match="n3 is not running"):
        watched.do(StopMember("n3"))


def test_a_short_pause_is_forgiven(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(PauseMember("n3"))
    seen = len(watched.records)
    time.sleep(0.3)  # time is the subject: less than makes somebody suspected
    watched.do(ResumeMember("n3"))
    watched.until(lambda: watched.events(ProcessResumed))
    time.sleep(0.3)  # time is the subject: nobody is suspected later either
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    assert not [r for r in watched.records[seen:] if isinstance(r.event, MemberRemoved | SuspicionRaised)]
    assert watched.events(ProcessPaused) == [ProcessPaused("n3")]


def test_a_long_pause_gets_a_member_removed_and_it_learns_of_it(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
    watched.do(PauseMember("n3"))
    quiet = len([record for record in watched.records if record.member == "n3"])
    watched.until(lambda: watched.agree(["n1", "n2"]))
    assert len([record for record in watched.records if record.member == "n3"]) == quiet
    watched.do(ResumeMember("n3"))
    watched.until(lambda: watched.events(ObserverPaused, "n3"))
    watched.until(lambda: "n1" not in watched.view("n3"))


def test_strangers_are_noted_once_and_change_nothing(start: Callable[..., ObservedCluster]) -> None:
    watched = start(2)
    watched.until(lambda: watched.agree(["n1", "n2"]))
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff"):
        with socket.create_connection(("127.0.0.1", port_of(watched.cluster.addresses["n1"])), timeout=5) as stranger:
            stranger.sendall(said)
            try:
                answer = b"".join(iter(lambda: stranger.recv(4096), b""))
                assert b"the limit is 4096" in answer, answer
            except ConnectionResetError:
                pass
    watched.until(lambda: len(watched.events(StrangerRefused)) == 2)
    time.sleep(0.8)  # time is the subject: nobody is suspected for it
    watched.until(lambda: True)
    assert [event.reason for event in watched.events(StrangerRefused, "dev")] == [
        "announced a frame of 1195725856 bytes; the limit is 4096",
        "announced a frame of 4294967295 bytes; the limit is 4096",
    ]
    assert watched.agree(["n1", "n2"]) and not watched.events(SuspicionRaised)


def test_ports_in_use_are_stepped_over(start: Callable[..., ObservedCluster]) -> None:
    held = HeldPorts(1, BASE_PORT + 100, "127.0.0.1")
    held.release()
    (taken,) = held.ports
    with socket.create_server(("127.0.0.1", taken)):
        watched = start(2, base_port=taken)
        assert [port_of(address) for address in watched.cluster.addresses.values()] == [taken + 1, taken + 2]


def test_no_port_left_is_one_clear_error() -> None:
    with pytest.raises(PortsExhausted, match=r"3 members need 3 free ports on 127.0.0.1, but of 65534 to 65535 only"):
        LocalCluster(3, base_port=65_534)


def test_a_port_taken_before_a_restart_is_a_refusal(start: Callable[..., ObservedCluster]) -> None:
    watched = start(2)
    watched.do(KillMember("n2"))
    with socket.create_server(("127.0.0.1", port_of(watched.cluster.addresses["n2"]))):
        with pytest.raises(CommandRefused, match=r"n2 cannot start at 127.0.0.1:.*in use"):
            watched.do(StartMember("n2"))
    watched.do(StartMember("n2"))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (KillMember("n9"), 'unknown label "n9"; known: n1, n2'),
        (StartMember("n1"), "n1 is already running"),
        (ResumeMember("n1"), "n1 is not paused"),
        (Partition((("n1", "n2"),)), "two groups"),
        (Partition((("n1", "n2"), ("n2",))), "n2 stands in the partition twice"),
        (CutLink(("n1",), ("n1",)), "no link between these"),
        (DelayLink(("n1",), ("n2",), -1), "negative"),
        (LoseOnLink(("n1",), ("n2",), 1.5), "1.5 is not a probability"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    refusing: ObservedCluster, command: Command, reason: str
) -> None:
    with pytest.raises(CommandRefused, match=reason):
        refusing.do(command)
    assert not refusing.events(LinkChanged)


@pytest.fixture(scope="module")
def refusing() -> Iterator[ObservedCluster]:
    cluster = LocalCluster(2, settings=QUICK, base_port=BASE_PORT)
    yield ObservedCluster(cluster)
    cluster.close()


def test_paused_members_refuse_what_a_frozen_process_cannot_do(start: Callable[..., ObservedCluster]) -> None:
    watched = start(2)
    watched.do(PauseMember("n2"))
    for command in (PauseMember("n2"), StopMember("n2"), StartMember("n2")):
        with pytest.raises(CommandRefused):
            watched.do(command)
    watched.do(KillMember("n2"))


def test_a_closed_cluster_frees_its_ports_and_refuses(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    watched.cluster.close()
    watched.cluster.close()
    ports = [port_of(address) for address in watched.cluster.addresses.values()]
    held = HeldPorts(3, ports[0], "127.0.0.1")
    held.release()
    assert list(held.ports) == ports
    with pytest.raises(CommandRefused, match="closed"):
        watched.do(Heal())


def test_closing_before_all_have_started_is_quick() -> None:
    cluster = LocalCluster(20, settings=QUICK, base_port=BASE_PORT)
    cluster.close()
    assert cluster.started.done()


def test_join_lists_are_obeyed_and_checked(start: Callable[..., ObservedCluster]) -> None:
    watched = start(2, join_lists={"n2": ["n2"]})
    watched.until(lambda: watched.view("n1") == ["n1"] and watched.view("n2") == ["n2"])
    with pytest.raises(ValueError, match='unknown label "n7"; known: n1, n2'):
        LocalCluster(2, join_lists={"n1": ["n7"]})
    misspelt: dict[str, Any] = {"lites": ("n2",)}
    with pytest.raises(TypeError, match="there are no such options: lites"):
        LocalCluster(2, **misspelt)
    with pytest.raises(ValueError, match="label 2, 'a', is taken already"):
        LocalCluster(["a", "a"])


def test_everything_drained_is_in_the_journal(start: Callable[..., ObservedCluster], tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "run-1", "local") as journal:
        watched = start(3, journal=journal)
        watched.do(KillMember("n3"))
        watched.cluster.close()
        watched.records += watched.cluster.drain()
    written = list(read_journal(tmp_path))
    key = lambda record: (record.uuid, record.seq)  # noqa: E731
    assert sorted(written, key=key) == sorted(watched.records, key=key)


def test_a_member_whose_core_raises_dies_alone(
    start: Callable[..., ObservedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fragile(MemberMachine):
        def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
            if isinstance(input, Tick) and self.address == doomed and now > 1_000_000:
                raise RuntimeError("a defect")
            return super().step(now, input, because)

    doomed = ""
    monkeypatch.setattr(LocalCluster, "machine", Fragile)
    watched = start(3)
    doomed = watched.cluster.addresses["n3"]
    watched.until(lambda: watched.agree(["n1", "n2"]))
    assert watched.events(ProcessKilled) == [ProcessKilled("n3")]


def test_delay_and_loss_below_the_timeouts_disturb_nobody(start: Callable[..., ObservedCluster]) -> None:
    watched = start(3)
    everybody = ("n1", "n2", "n3")
    watched.do(DelayLink(everybody, everybody, 30_000))
    watched.do(LoseOnLink(everybody, everybody, 0.1))
    time.sleep(1)  # time is the subject: ten heartbeats
    watched.until(lambda: watched.agree(everybody))
    assert not watched.events(MemberRemoved)
