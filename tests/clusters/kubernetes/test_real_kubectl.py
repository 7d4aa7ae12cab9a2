"""The real `kubectl` against an API of the test's own, with unmodified members behind it in network namespaces."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
from quarterdeck.backend.clusters.kubernetes.pod_route import PodRoute
from quarterdeck.backend.clusters.kubernetes.service_url import BadService, Service
from quarterdeck.backend.core.membership.events import MemberRemoved, MemberStarted
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from tests.clusters.hazelcast.fake_cluster import Watching
from tests.clusters.kubernetes.api_server import NAMESPACE, SERVICE
from tests.clusters.kubernetes.real_pods import Pods, pod_of, why_no_pods
from tests.hazelcast.real.real_cluster import RealCluster

pytestmark = pytest.mark.long
VERSION = "5.3.8"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    if (reason := why_no_pods(VERSION)) is not None:
        pytest.skip(reason)
    with RealCluster(VERSION, tmp_path, 4, join_lists={member: [1] for member in range(1, 5)}) as members:
        yield members


def test_pods_are_followed_while_one_comes_back_at_another_address(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Pods(cluster, tmp_path)
    api = made.api
    for name in ("KUBECONFIG", "HOME"):
        monkeypatch.setenv(name, made.environment[name])
    for name in tuple(api.pods):
        api.delete(name)
    with pytest.raises(BadService, match='services "none" not found'):
        PodRoute([Service(NAMESPACE, "none")], logs=False)
    for number in range(3):
        api.run(pod_of(cluster, f"hz-{number}", number + 1))
        cluster.start(number + 1)
    service = Service(NAMESPACE, SERVICE)
    settings = WatchSettings((service.address,), route=PodRoute([service], logs=True))
    seen = Watching(HazelcastCluster(settings, run="try", randomness=Random(1)))
    names = {f"hz-{number}:5701" for number in range(3)}

    def lists() -> list[set[str]]:
        return [
            {member.address for member in seen.picture.members[name].members}
            for name in names
            if name in seen.picture.members
        ]

    def statuses() -> dict[str, str]:
        return {name: status.state for name, status in seen.cluster.connection_status().items()}

    try:
        seen.until(lambda: lists() == [names] * 3)
        assert statuses() == dict.fromkeys(names, "connected")

        started = seen.events(MemberStarted, "hz-2:5701")
        cluster.signal(3, signal.SIGKILL)
        api.delete("hz-2")
        seen.until(lambda: statuses()["hz-2:5701"] == "gone")
        assert seen.cluster.connection_status()["hz-2:5701"].why == "there is no pod hz-2 any more"
        seen.until(lambda: [event for event in seen.events(MemberRemoved, "hz-0:5701") if event.address == "hz-2:5701"])
        api.run(pod_of(cluster, "hz-2", 4))
        cluster.start(4)
        seen.until(lambda: len(seen.events(MemberStarted, "hz-2:5701")) > len(started))
        seen.until(lambda: lists() == [names] * 3)
        assert statuses() == dict.fromkeys(names, "connected")
        assert {record.member for record in seen.records} == names
        assert len({record.uuid for record in seen.records if record.member == "hz-2:5701"}) == 2

        cluster.signal(4, signal.SIGKILL)
        seen.until(lambda: statuses()["hz-2:5701"] == "gone")
        assert seen.cluster.connection_status()["hz-2:5701"].why == "no process listens there"
        assert api.used == api.rights, "the Role grants what is needed, and no more"
    finally:
        seen.cluster.close()
        api.close()
