"""Snapshots of members that run elsewhere, over HTTP: who tells what they know, to whom, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import CommandRefused, CutLink, Heal, PauseMember, ResumeMember
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.live.cluster.local_clusters import ProcessCluster
from quarterdeck.backend.simulation.virtual_time.forked_world import forked_world
from tests.ports import take_ports
from tests.waiting import wait_until

PORT = take_ports(60)
WAIT_SECONDS = 20


@pytest.fixture(scope="module")
def members() -> Iterator[ProcessCluster]:
    cluster = ProcessCluster(3, settings=Settings.of(preset="training"), base_port=PORT)
    cluster.started.result(WAIT_SECONDS)
    yield cluster
    cluster.close()


def remote(*, write: bool) -> RemoteCluster:
    cluster = RemoteCluster([f"http://127.0.0.1:{PORT}"], write=write)
    cluster.started.result(WAIT_SECONDS)
    wait_until(lambda: [status.contact for status in cluster.connection_status().values()] == ["connected"] * 3)
    return cluster


def views(snapshot: ClusterSnapshot, seconds: float) -> dict[str, int]:
    world = forked_world(snapshot, seed=1, run="copy")
    world.run_until(world.now_us + round(seconds * SECOND_US))
    found = {label: world.machine(label) for label in world.labels}
    return {label: len(machine.inspect().view or ()) for label, machine in found.items() if machine is not None}


def test_members_elsewhere_tell_what_they_know(members: ProcessCluster) -> None:
    cluster = remote(write=True)
    try:
        snapshot = cluster.snapshot().result(WAIT_SECONDS)
        assert {member.configuration.label for member in snapshot.members} == {"n1", "n2", "n3"} and not snapshot.untold
        assert abs(snapshot.at_us - cluster.now_us()) < 2 * SECOND_US
        assert views(snapshot, 0) == views(snapshot, 30) == {"n1": 3, "n2": 3, "n3": 3}
        members.execute(CutLink(("n1",), ("n2",), one_way=True)).result(WAIT_SECONDS)
        links = {(link.source, link.target) for link in cluster.snapshot().result(WAIT_SECONDS).links}
        assert links == {("n1", "n2")}
    finally:
        members.execute(Heal()).result(WAIT_SECONDS)  # before anybody is missed
        cluster.close()


def test_who_may_change_nothing_is_told_nothing(members: ProcessCluster) -> None:
    cluster = remote(write=False)
    try:
        with pytest.raises(CommandRefused, match="read-only"):
            cluster.snapshot().result(WAIT_SECONDS)
    finally:
        cluster.close()


def test_what_is_told_is_no_pickle_and_names_its_version(members: ProcessCluster) -> None:
    told = httpx.get(f"http://127.0.0.1:{PORT}/quarterdeck/v1/snapshot", trust_env=False).json()
    assert told.keys() == {"label", "uuid", "version", "content"}


def test_a_member_that_does_not_answer_is_untold(members: ProcessCluster) -> None:
    cluster = remote(write=True)
    try:
        members.execute(PauseMember("n3")).result(WAIT_SECONDS)
        snapshot = cluster.snapshot().result(WAIT_SECONDS)
        assert [member.configuration.label for member in snapshot.untold] == ["n3"]
        assert any(why in snapshot.untold[0].why for why in ("no answer", "not reached"))
        assert views(snapshot, 20)["n1"] < 3
    finally:
        members.execute(ResumeMember("n3")).result(WAIT_SECONDS)
        cluster.close()


def test_where_nobody_is_reached_there_is_no_snapshot(members: ProcessCluster) -> None:
    cluster = RemoteCluster([f"http://127.0.0.1:{PORT + 50}"], write=True)
    try:
        with pytest.raises(CommandRefused, match="not reached"):
            cluster.snapshot().result(WAIT_SECONDS)
    finally:
        cluster.close()
