"""What is predicted of a fault, against what a simulated run then shows."""

from __future__ import annotations

from itertools import combinations, permutations
from random import Random

import pytest

from quarterdeck.backend.core.commands.commands import Command, CutLink, Heal, KillMember, Partition, PauseMember
from quarterdeck.backend.core.events import MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.picture.what_if.fault_outcome import ClusterMembers, outcome
from quarterdeck.backend.picture.what_if.fault_presets import preset
from quarterdeck.backend.picture.what_if.fault_preview import Preview, preview, preview_facts
from quarterdeck.backend.picture.what_if.reachability import Reachability
from quarterdeck.backend.picture.what_if.timing import Timing, timing_of
from tests.picture.simulated_picture import SimulatedPicture
from tests.thoroughness import long_after

SETTLED_SECONDS = 60


def predicted(found: Preview) -> dict[frozenset[str], str]:
    return {frozenset(side.members): side.members[0] for side in found.sides}


def pairs(groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]) -> set[tuple[str, str]]:
    return {(one, other) for observers, lost in groups for one in observers for other in lost}


def test_all_graphs_of_four_members_come_out_as_predicted() -> None:
    labels = ("A", "B", "C", "D")
    links = list(combinations(labels, 2))
    for count in range(len(links) + 1):
        for cut in combinations(links, count):
            cluster = SimulatedPicture(4)
            commands = [CutLink((one,), (other,)) for one, other in cut]
            found = preview(cluster.picture, commands, Timing())
            cluster.do(*commands)
            cluster.pass_seconds(SETTLED_SECONDS)
            assert not found.undecided and cluster.lists() == predicted(found), cut


@pytest.mark.parametrize("size", long_after(1, [5, 6, 7]))
@pytest.mark.parametrize("one_way", [False, True])
def test_cuts_by_chance_come_out_as_predicted_where_that_is_certain(size: int, one_way: bool) -> None:
    chance = Random(f"{size} {one_way}")
    certain = 0
    for _ in range(25):
        cluster = SimulatedPicture(size)
        links = list((permutations if one_way else combinations)(cluster.labels, 2))
        share = chance.choice((0.1, 0.2, 0.35, 0.5))
        commands = [CutLink((one,), (other,), one_way) for one, other in links if chance.random() < share]
        found = preview(cluster.picture, commands, Timing())
        cluster.do(*commands)
        cluster.pass_seconds(SETTLED_SECONDS)
        if not found.undecided:
            certain += 1
            assert cluster.lists() == predicted(found), commands
    assert certain >= 15


FAULTS = {
    "halves of 6": (6, "halves", ""),
    "halves of 5": (5, "halves", ""),
    "the master isolated": (5, "isolate", "A"),
    "the youngest isolated": (5, "isolate", ""),
    "a bridge": (5, "bridge", "C"),
    "the master as a bridge": (5, "bridge", "A"),
    "the youngest as a bridge": (7, "bridge", ""),
    "a ring of 4": (4, "ring", ""),
    "a ring of 5": (5, "ring", ""),
    "a ring of 6": (6, "ring", ""),
    "racks of 6": (6, "racks", ""),
    "racks of 7": (7, "racks", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_presets_come_out_as_predicted(name: str) -> None:
    size, kind, member = FAULTS[name]
    cluster = SimulatedPicture(size)
    cluster.arrange()
    commands = preset(kind, cluster.labels, member=member).commands  # type: ignore[arg-type]
    found = preview(cluster.picture, commands, Timing())
    begun = len(cluster.records)
    cluster.do(*commands)
    cluster.pass_seconds(SETTLED_SECONDS)
    assert_suspicions(cluster, found, begun)
    if found.undecided:
        return
    assert cluster.lists() == predicted(found)
    if kind == "ring":  # where clusters lose members one after the other, backups made in between save some
        return
    lost: dict[str, set[int]] = {}
    for record in cluster.records[begun:]:
        if isinstance(record.event, PartitionLost) and record.event.lost_backups >= ALL_LOST:
            lost.setdefault(record.member, set()).add(record.event.partition)
    told = {side.members[0]: side.lacking for side in found.sides if side.lacking}
    assert {master: len(partitions) for master, partitions in lost.items()} == told


def assert_suspicions(cluster: SimulatedPicture, found: Preview, begun: int) -> None:
    """Whoever falls silent was predicted; whoever was to suspect another either does, or was parted from it by a list before."""
    heard = pairs(found.suspicions) | pairs(found.in_turn)
    label_of = cluster.picture.label_of
    silent = set()
    for record in cluster.records[begun:]:
        match record.event:
            case SuspicionRaised(suspect, cause="no-heartbeat"):
                silent.add((record.member, label_of(suspect)))
            case MemberRemoved(address, cause="no-heartbeat"):
                silent.add((record.member, label_of(address)))
            case _:
                pass
    by_parting = {(other, one) for one, other in heard}  # a parted member hears nothing from those who dropped it
    assert silent <= heard | by_parting
    for one, other in pairs(found.suspicions) - silent:
        assert all({one, other} - members for members in cluster.lists())


def test_what_stands_still_or_is_gone_makes_no_cluster() -> None:
    cluster = SimulatedPicture(4)
    cluster.do(PauseMember("B"), KillMember("D"))
    commands = [Partition((("A",), ("B", "C", "D")))]
    found = preview(cluster.picture, commands, Timing())
    assert predicted(found) == {frozenset("A"): "A", frozenset("C"): "C"}
    cluster.do(*commands)
    cluster.pass_seconds(SETTLED_SECONDS)
    assert cluster.lists() == predicted(found)


def test_without_settling_slaves_that_lose_one_another_both_stay() -> None:
    off = {"hazelcast.partial.member.disconnection.resolution.heartbeat.count": 0}
    cluster = SimulatedPicture(4, properties=off)
    commands = [CutLink(("B",), ("C", "D"))]
    found = preview(cluster.picture, commands, Timing(settles=False))
    cluster.do(*commands)
    cluster.pass_seconds(SETTLED_SECONDS)
    assert cluster.lists() == predicted(found) == {frozenset("ABCD"): "A"}
    assert "do not settle" in text_of(found, Timing(settles=False))


def test_healing_is_predicted_too() -> None:
    cluster = SimulatedPicture(5)
    cluster.do(Partition((("A", "B"), ("C", "D", "E"))))
    cluster.pass_seconds(20)
    assert len(cluster.lists()) == 2
    found = preview(cluster.picture, [Heal()], Timing())
    cluster.do(Heal())
    cluster.pass_seconds(SETTLED_SECONDS)
    assert cluster.lists() == predicted(found) == {frozenset("ABCDE"): "C"}


def test_lite_members_weigh_nothing_in_the_decision() -> None:
    cluster = SimulatedPicture(5, lite=["D", "E"])
    commands = [CutLink(("B", "C"), ("D", "E"))]
    found = preview(cluster.picture, commands, Timing())
    cluster.do(*commands)
    cluster.pass_seconds(SETTLED_SECONDS)
    assert cluster.lists() == predicted(found)
    assert frozenset("ABC") in predicted(found)


def test_the_words_of_a_preview() -> None:
    cluster = SimulatedPicture(4)
    cluster.arrange()
    command: Command = Partition((("A", "B"), ("C", "D")))
    told = text_of(preview(cluster.picture, [command], Timing()), Timing())
    assert "A, B stop hearing C, D" in told and "C, D stop hearing A, B" in told
    assert "at the heartbeat timeout" in told
    assert "A stays master with B" in told and "C claims mastership with D" in told
    assert "✕ now holds nothing of" in told
    cluster.do(command)
    cluster.pass_seconds(10)
    cluster.do(Heal())
    cluster.pass_seconds(20)
    timing = timing_of(cluster.records)
    assert timing.timeout_us is not None and timing.timeout_seen
    assert "s of silence, as it was seen here" in text_of(preview(cluster.picture, [command], timing), timing)
    reset = preview(cluster.picture, [Partition((("A",), ("B",)), "reset")], timing)
    assert "connections break" in text_of(reset, timing)


def test_nothing_is_predicted_to_happen_where_nothing_changes() -> None:
    cluster = SimulatedPicture(3)
    told = text_of(preview(cluster.picture, [], Timing()), Timing())
    assert "nobody: everybody still hears" in told and "1 cluster" in told


def test_one_thousand_members_are_foretold_in_little_work() -> None:
    reachability = Reachability([f"m{place}" for place in range(1_000)])
    reachability.do(Partition((reachability.labels[:500], reachability.labels[500:])))
    result = outcome(reachability, [ClusterMembers(tuple(range(1_000)))], 0, range(1_000), settles=True)
    assert [len(cluster) for cluster in result.clusters] == [500, 500]


def text_of(found: Preview, timing: Timing) -> str:
    return "\n".join(f"{fact.heading}: {fact.text}" for fact in preview_facts(found, timing))
