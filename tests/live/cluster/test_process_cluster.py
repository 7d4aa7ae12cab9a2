"""Members as processes: what the operating system does to them, and that none of them is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.backend.core.address import Address, host_of, port_of
from quarterdeck.backend.core.commands import CommandRefused, KillMember, Operate, PauseMember, StartMember
from quarterdeck.backend.core.events import ProcessKilled, StrangerRefused
from quarterdeck.backend.core.membership.events import ObserverPaused
from quarterdeck.backend.live.cluster import local_clusters, pipe_messages
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster, ProcessHost
from tests.live.cluster.observed_cluster import BASE_PORT, QUICK, ObservedCluster
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]

OWNER = """
import sys, time
from quarterdeck.backend.core.commands import PauseMember
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster
cluster = ProcessCluster(3, base_port=int(sys.argv[1]))
cluster.started.result(60)
cluster.execute(PauseMember("n2")).result(60)
print(*cluster.addresses.values(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def watched() -> Iterator[ObservedCluster]:
    cluster = ProcessCluster(3, settings=QUICK, base_port=BASE_PORT, seed=1)
    try:
        cluster.started.result(60)
        watched = ObservedCluster(cluster)
        watched.until(lambda: watched.agree(["n1", "n2", "n3"]))
        yield watched
    finally:
        cluster.close()


def pid_of(cluster: LiveCluster, label: str) -> int:
    host = cluster._hosts[label]
    assert isinstance(host, ProcessHost) and host._process is not None
    return host._process.pid


def is_there(pid: int) -> bool:
    """Whether that child of this process is there, be it dead and not yet seen to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_bound(address: Address) -> bool:
    """Whether some process listens there, be it frozen."""
    with socket.socket() as knocking:
        return knocking.connect_ex((host_of(address), port_of(address))) == 0


def test_every_member_is_a_process_and_none_is_left(watched: ObservedCluster) -> None:
    pids = {label: pid_of(watched.cluster, label) for label in ("n1", "n2", "n3")}
    assert len({os.getpid(), *pids.values()}) == 4
    watched.do(KillMember("n3"))
    assert not is_there(pids["n3"])
    watched.do(PauseMember("n2"))
    watched.cluster.close()
    watched.records += watched.cluster.drain()
    assert watched.events(ProcessKilled) == [ProcessKilled("n3"), ProcessKilled("n2")]
    assert not any(map(is_there, pids.values()))
    assert not any(map(is_bound, watched.cluster.addresses.values()))


def test_somebody_elses_kill_is_recorded_and_the_member_may_be_started_again(watched: ObservedCluster) -> None:
    os.kill(pid_of(watched.cluster, "n1"), signal.SIGKILL)
    watched.until(lambda: watched.events(ProcessKilled) == [ProcessKilled("n1")])
    watched.until(lambda: watched.agree(["n2", "n3"]))
    watched.do(StartMember("n1"))
    watched.until(lambda: watched.agree(["n2", "n3", "n1"]))


def test_a_pause_is_one_of_the_system_and_it_can_end_it(watched: ObservedCluster) -> None:
    watched.do(PauseMember("n2"))
    watched.until(lambda: watched.agree(["n1", "n3"]))
    assert not watched.events(ObserverPaused, "n2")
    os.kill(pid_of(watched.cluster, "n2"), signal.SIGCONT)
    watched.until(lambda: watched.events(ObserverPaused, "n2"))


def test_a_process_that_does_not_answer_holds_nobody_up(
    watched: ObservedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_clusters, "ANSWER_TIMEOUT_SECONDS", 0.3)
    os.kill(pid_of(watched.cluster, "n2"), signal.SIGSTOP)
    with pytest.raises(CommandRefused, match=r"n2 did not answer within 0.3 s; kill it"):
        watched.do(Operate("n2"))
    monkeypatch.setattr(
        local_clusters, "ANSWER_TIMEOUT_SECONDS", 5.0
    )  # so long that those that run answer on any machine
    watched.do(Operate("n1"))
    watched.cluster.close()
    watched.records += watched.cluster.drain()
    assert watched.events(ProcessKilled) == [ProcessKilled("n2")]


def test_a_process_that_cannot_begin_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    cluster = ProcessCluster(1, base_port=BASE_PORT)
    try:
        with pytest.raises(OSError, match="n1 cannot"):
            cluster.started.result(60)
    finally:
        cluster.close()


def test_members_end_with_the_process_that_started_them_frozen_ones_too() -> None:
    command = [sys.executable, "-c", OWNER, str(BASE_PORT + 50)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        assert owner.stdout is not None
        try:
            addresses = [Address(word) for word in owner.stdout.readline().split()]
            assert len(addresses) == 3 and all(map(is_bound, addresses))
        finally:
            owner.kill()
    wait_until(lambda: not any(map(is_bound, addresses)), "members outlive their cluster")


def test_a_cluster_that_is_closed_while_it_starts_leaves_no_process() -> None:
    cluster: LiveCluster = ProcessCluster(20, settings=QUICK, base_port=BASE_PORT)
    cluster.close()
    assert cluster.started.done()
    assert not any(map(is_bound, cluster.addresses.values()))


def test_a_stranger_at_a_process_is_noted_as_the_clusters_and_not_as_the_members(watched: ObservedCluster) -> None:
    with socket.create_connection(("127.0.0.1", port_of(watched.cluster.addresses["n1"])), timeout=5) as stranger:
        stranger.sendall(b"\xff\xff\xff\xff")
        watched.until(lambda: watched.events(StrangerRefused))
    (refused,) = watched.events(StrangerRefused, "dev")
    assert refused.reason == "announced a frame of 4294967295 bytes; the limit is 4096"


def test_a_report_that_is_too_long_ends_its_process_and_leaves_no_caller_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipe_messages, "MAX_LINE_BYTES", 200)
    monkeypatch.setattr(local_clusters, "ANSWER_TIMEOUT_SECONDS", 60.0)  # a busy machine takes its time to begin
    cluster = ProcessCluster(1, settings=QUICK, base_port=BASE_PORT, seed=1)
    try:
        with pytest.raises(OSError, match="cannot be read"):
            cluster.started.result(60)
    finally:
        cluster.close()


@pytest.mark.parametrize("member", ["flood", "frozen"])
def test_a_process_that_writes_on_after_a_report_too_long_is_killed_and_seen_to_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, member: str
) -> None:
    program = tmp_path / "member"
    then = "cat /dev/zero" if member == "flood" else "sleep 60"
    program.write_text(f"#!/bin/sh\nhead -c 2000000 /dev/zero\nexec {then}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(pipe_messages, "MAX_LINE_BYTES", 200)
    cluster = ProcessCluster(1, base_port=BASE_PORT)
    try:
        with pytest.raises(OSError, match="cannot be read"):
            cluster.started.result(60)
    finally:
        cluster.close()
