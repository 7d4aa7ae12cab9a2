"""Snapshots of live clusters, in one process and as processes, and what a copy then does."""

from __future__ import annotations

import time

import pytest

from quarterdeck.backend.core.commands import DelayLink, KillMember, PauseMember
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster, ProcessCluster
from quarterdeck.backend.simulation.virtual_time.forked_world import forked_world
from tests.ports import take_ports

PORT = take_ports(20)
WAIT_SECONDS = 20


def views(cluster: LiveCluster, seconds: float = 0.0) -> dict[str, int]:
    """How long the list of each member is in a copy, after so many seconds."""
    world = forked_world(cluster.snapshot().result(WAIT_SECONDS), seed=1, run="copy")
    world.run_until(world.now_us + round(seconds * SECOND_US))
    machines = {label: world.machine(label) for label in world.labels}
    return {label: len(machine.inspect().view or ()) for label, machine in machines.items() if machine is not None}


@pytest.mark.parametrize("kind", [LocalCluster, ProcessCluster])
def test_members_tell_what_they_know(kind: type[LiveCluster]) -> None:
    cluster = kind(3, settings=Settings.of(preset="training"), base_port=PORT, late=["n3"])
    try:
        cluster.started.result(WAIT_SECONDS)
        snapshot = cluster.snapshot().result(WAIT_SECONDS)
        assert [member.configuration.label for member in snapshot.members] == ["n1", "n2"]
        assert [member.label for member in snapshot.down] == ["n3"] and not snapshot.untold
        assert abs(snapshot.at_us - cluster.now_us()) < 5 * SECOND_US
        assert views(cluster) == views(cluster, 30) == {"n1": 2, "n2": 2}
        cluster.execute(DelayLink(("n1",), ("n2",), 900_000)).result(WAIT_SECONDS)
        cluster.execute(PauseMember("n2")).result(WAIT_SECONDS)
        snapshot = cluster.snapshot().result(WAIT_SECONDS)
        assert {link.source for link in snapshot.links} == {"n1", "n2"}
        if kind is LocalCluster:
            assert [member.paused for member in snapshot.members] == [False, True]
        else:
            assert [(member.configuration.label, member.why) for member in snapshot.untold] == [("n2", "it is paused")]
        assert views(cluster, 10)["n1"] == 1
        cluster.execute(KillMember("n2")).result(WAIT_SECONDS)
        assert [member.label for member in cluster.snapshot().result(WAIT_SECONDS).down] == ["n2", "n3"]
    finally:
        cluster.close()


def test_messages_on_a_slow_link_are_on_their_way_in_the_copy() -> None:
    cluster = LocalCluster(2, settings=Settings.of(preset="training"), base_port=PORT)
    try:
        cluster.started.result(WAIT_SECONDS)
        cluster.execute(DelayLink(("n1",), ("n2",), 3 * SECOND_US)).result(WAIT_SECONDS)
        for _ in range(100):
            snapshot = cluster.snapshot().result(WAIT_SECONDS)
            if snapshot.in_flight:
                break
            cluster.drain()
            time.sleep(0.05)
        assert snapshot.in_flight and all(message.due_us > snapshot.at_us for message in snapshot.in_flight)
    finally:
        cluster.close()
