"""What is predicted of commands, against what the running simulated cluster then does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random

import pytest

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    Partition,
    PauseMember,
)
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.what_if.blast_radius import preset
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction, prediction_facts
from quarterdeck.backend.simulation.prediction.future import Superseded, predictions
from quarterdeck.backend.simulation.virtual_time.forked_world import snapshot_of
from tests.picture.simulated_picture import SimulatedPicture
from tests.thoroughness import long_after

SITUATIONS = 200
SETTLED_SECONDS = 60
CHANCE_LOST = 5


def predicted(cluster: SimulatedPicture, *commands: Command) -> FaultPrediction:
    *_, last = predictions(snapshot_of(cluster.world), commands)
    return last


def what_happened(cluster: SimulatedPicture, found: FaultPrediction, *commands: Command) -> dict[str, set[str]]:
    """The lists by their masters after the commands, and enough time: what is predicted is not the moment."""
    cluster.do(*commands)
    cluster.pass_seconds(max(SETTLED_SECONDS, found.followed_us / SECOND_US))
    return {
        label: {cluster.picture.label_of(member.address) for member in cluster.picture.members[label].members}
        for label in cluster.picture.masters()
    }


def lists(found: FaultPrediction) -> dict[str, set[str]]:
    return {master: set(members) for master, members in found.lists.items()}


def lost_since(cluster: SimulatedPicture, begun: int) -> dict[str, int]:
    """How many partitions each master found to be lost since the records were so many."""
    lost: dict[str, set[int]] = {}
    for record in cluster.records[begun:]:
        if isinstance(record.event, PartitionLost) and record.event.lost_backups >= ALL_LOST:
            lost.setdefault(record.member, set()).add(record.event.partition)
    return {member: len(partitions) for member, partitions in lost.items()}


def test_all_graphs_of_four_members_come_out_as_predicted() -> None:
    labels = ("A", "B", "C", "D")
    links = list(combinations(labels, 2))
    for count in range(len(links) + 1):
        for cut in combinations(links, count):
            cluster = SimulatedPicture(4)
            commands = [CutLink((one,), (other,)) for one, other in cut]
            found = predicted(cluster, *commands)
            assert found.settled
            if found.agreeing == found.orders:
                assert what_happened(cluster, found, *commands) == lists(found), cut


@pytest.mark.parametrize("situation", long_after(5, range(SITUATIONS)))
def test_a_random_situation_comes_out_as_predicted(situation: int) -> None:
    chance = Random(f"situation {situation}")
    size = chance.randint(3, 8)
    cluster = SimulatedPicture(size, seed=situation, lite=[chr(ord("A") + size - 1)] if chance.random() < 0.2 else ())
    if chance.random() < 0.7:
        cluster.arrange()
    for _ in range(chance.randint(0, 2)):
        cluster.do(*fault(chance, cluster))
        cluster.pass_seconds(chance.uniform(0, 15))
    commands = fault(chance, cluster)
    found = predicted(cluster, *commands)
    begun = len(cluster.records)
    outcome = what_happened(cluster, found, *commands)
    if found.agreeing < found.orders or not found.settled:
        return  # and it says so
    assert outcome == lists(found)
    lost = lost_since(cluster, begun)
    for side in found.clusters:
        # Where members go one after the other, the order of messages decides how many backups are made in between.
        assert abs(side.lost - lost.get(side.members[0], 0)) <= CHANCE_LOST


def fault(chance: Random, cluster: SimulatedPicture) -> Sequence[Command]:
    """Something that an operator may try next."""
    running = [label for label, belief in cluster.picture.members.items() if belief.running]
    kind = chance.choice(("halves", "isolate", "bridge", "ring", "cut", "one-way", "kill", "pause", "heal"))
    if kind == "heal" or len(running) < 4:
        return [Heal()]
    if kind == "kill":
        return [KillMember(chance.choice(running))]
    if kind == "pause":
        return [PauseMember(chance.choice(running))]
    if kind in ("cut", "one-way"):
        links = list((permutations if kind == "one-way" else combinations)(running, 2))
        cuts = [CutLink((one,), (other,), kind == "one-way") for one, other in links if chance.random() < 0.25]
        return cuts or [CutLink((running[0],), (running[-1],))]
    member = chance.choice(running) if kind in ("isolate", "bridge") else ""
    return preset(kind, running, member=member).commands  # type: ignore[arg-type]


def test_healing_is_predicted_too() -> None:
    cluster = SimulatedPicture(5)
    cluster.do(Partition((("A", "B"), ("C", "D", "E"))))
    cluster.pass_seconds(20)
    found = predicted(cluster, Heal())
    assert len(found.lists) == 1 and found.lists["C"][:3] == ("C", "D", "E")
    assert [(step.kind, step.others) for step in found.steps] == [("merges", ("C",))]
    assert what_happened(cluster, found, Heal()) == lists(found) == {"C": set("ABCDE")}


def test_what_stands_still_or_is_gone_makes_no_cluster() -> None:
    cluster = SimulatedPicture(4)
    cluster.do(PauseMember("B"), KillMember("D"))
    found = predicted(cluster, Partition((("A",), ("B", "C"))))
    assert found.lists == {"A": ("A",), "C": ("C",)}


def test_without_settling_slaves_that_lose_one_another_both_stay_and_stay_suspicious() -> None:
    off = {"hazelcast.partial.member.disconnection.resolution.heartbeat.count": 0}
    cluster = SimulatedPicture(4, properties=off)
    found = predicted(cluster, CutLink(("B",), ("C", "D")))
    assert found.lists == {"A": ("A", "B", "C", "D")}
    assert dict(found.suspicions) == {"B": ("C", "D"), "C": ("B",), "D": ("B",)}
    assert "B still suspects C, D at the end" in text_of(found)


def test_the_words_of_a_prediction() -> None:
    cluster = SimulatedPicture(4, properties={"quarterdeck.minimum.cluster.size": 3})
    cluster.arrange()
    text = text_of(predicted(cluster, Partition((("A", "B"), ("C", "D")))))
    assert "2 clusters: A stays master with B: ✕ loses" in text and "C is master then with D: ✕ loses" in text
    assert "A removes C, D: no heartbeat" in text and "C claims the mastership, suspecting A, B" in text
    assert "✕ refuses operations, not enough members: A sees 2 and needs 3" in text
    assert "in a copy" in text and "the same in 3 of 3 orders" in text and "assumed: nothing else happens" in text
    calm = text_of(predicted(SimulatedPicture(3)))
    assert "no list changes" in calm and "1 cluster: A stays master with B, C: no partitions yet" in calm


def test_the_first_answer_comes_early_and_a_superseded_one_ends_at_once() -> None:
    cluster = SimulatedPicture(5)
    snapshot, command = snapshot_of(cluster.world), Partition((("A", "B"), ("C", "D", "E")))
    several = list(predictions(snapshot, [command]))
    assert len(several) > 3 and several[0].followed_us < several[-1].followed_us
    assert not several[0].settled and several[-1].settled
    asked = iter([True, True, False])
    with pytest.raises(Superseded):
        list(predictions(snapshot, [command], is_wanted=lambda: next(asked)))


def test_what_the_cluster_refuses_is_refused() -> None:
    with pytest.raises(CommandRefused):
        predicted(SimulatedPicture(2), KillMember("Z"))


def test_predicting_changes_nothing() -> None:
    cluster = SimulatedPicture(3)
    snapshot: ClusterSnapshot = snapshot_of(cluster.world)
    before = cluster.world.fingerprint()
    predicted(cluster, KillMember("A"))
    assert cluster.world.fingerprint() == before and snapshot_of(cluster.world) == snapshot


def text_of(found: FaultPrediction) -> str:
    lines: list[str] = []
    for fact in prediction_facts(found):
        lines.append(f"{fact.heading}: {fact.text}" if fact.heading else fact.text)
    return "\n".join(lines)
