"""No message of a peer ends a member, whatever it says and whenever it comes. When the peer is silent, the cluster is whole."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import StartMember
from tests.simulation.hostile_peer import AttackedCluster
from tests.thoroughness import examples, long_after

MOMENTS = 60


@pytest.mark.parametrize("hostile", ["x", "d", "a"], ids=["a stranger", "a slave", "the master"])
@pytest.mark.parametrize("seed", long_after(1, range(1, 40)))
def test_no_message_ends_a_member_and_the_cluster_is_whole_when_the_peer_is_silent(hostile: str, seed: int) -> None:
    cluster = AttackedCluster(seed, hostile)
    play(cluster, examples(MOMENTS * 4))
    cluster.silence_the_peer()
    assert not cluster.complaints()


def play(cluster: AttackedCluster, moments: int, messages: int = 20) -> None:
    """Attack a cluster from its founding on, at `moments` moments of a restless time."""
    draws = cluster.draws
    cluster.world.execute(StartMember("a"))
    for number in range(moments):
        if number < len("abcd"):
            cluster.start_all("abcd"[number])
        elif draws.random() < 0.2:
            cluster.disturb()
        cluster.advance(draws.choice((0.001, 0.02, 0.1, 0.5, 2)))
        cluster.attack(messages, draws.choice(cluster.others))
