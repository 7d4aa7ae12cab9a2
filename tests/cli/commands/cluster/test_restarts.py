"""Whether a member that was restarted is back, by the lists before and after."""

from __future__ import annotations

import pytest

from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from quarterdeck.cli.commands.cluster.restarts import _label_of, has_come_back
from quarterdeck.cli.exits import BadUsage
from tests.app.fakes.fake_cluster import FakeCluster


def at(**incarnations: int) -> dict[str, Address]:
    return {uuid: Address(f"10.0.0.{host}:5701") for uuid, host in incarnations.items()}


@pytest.mark.parametrize(
    ("now", "is_back"),
    [
        (at(a=1, b=2, c=3), False),
        (at(a=1, b=2), False),
        (at(a=1, b=2, d=3), True),
        (at(a=1, b=2, d=9), True),
        (at(a=1, b=2, c=3, d=9), False),
        (at(a=1, e=2), False),
        (at(a=1, e=2, d=3), True),
        ({}, False),
    ],
    ids=[
        "not stopped yet", "stopped", "at its address", "at another address", "the old one is still listed",
        "another one has merged", "another one has merged, and it is back", "no list",
    ],
)  # fmt: skip
def test_whether_c_is_back(now: dict[str, Address], is_back: bool) -> None:
    assert has_come_back("c", at(a=1, b=2, c=3), now) is is_back


def test_a_member_on_a_list_that_is_not_reached_is_no_unknown_member() -> None:
    """The master answers, and a member beside a frozen one is slow to."""
    cluster = FakeCluster(("n1", "n2", "n3"), source="hazelcast")
    cluster.happen("n1", MemberWitnessed(("client-protocol",), ("owners",)))
    cluster.install("n1", 3, cluster.labels)
    follower = Follower(cluster)
    follower.follow()
    label = _label_of(follower, "10.0.0.2:5701")
    assert label == "10.0.0.2:5701" and follower.judge().may_stop(label).answer == "unknown"
    with pytest.raises(
        BadUsage, match=r"10\.0\.0\.9: no such member; there are n1, 10\.0\.0\.2:5701, 10\.0\.0\.3:5701"
    ):
        _label_of(follower, "10.0.0.9")
