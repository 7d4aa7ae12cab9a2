"""Refusing operations while too few members are in sight (Emergent Leader, Split Brain Situation; Decisions: Minimum cluster
size)."""

import pytest

from quarterdeck.backend.core.commands import CommandRefused, Operate
from quarterdeck.backend.core.membership.events import ProtectionChanged
from quarterdeck.backend.core.membership.messages import MergeClusters
from tests.core.stepped_cluster import SteppedCluster, address_of, training_settings


def cluster(needed: int, names: str = "ABC") -> SteppedCluster:
    return SteppedCluster(training_settings(minimum_cluster_size=needed)).settled(names)


def operates(world: SteppedCluster, name: str) -> bool:
    try:
        return not world.machines[name].step(world.now, Operate(name))
    except CommandRefused:
        return False


def crossings(world: SteppedCluster, name: str) -> list[tuple[int, int, bool]]:
    return [(event.size, event.needed, event.operating) for event in world.seen(name, ProtectionChanged)]


def test_exactly_enough_members_are_enough() -> None:
    assert all(operates(cluster(3), name) for name in "ABC")


def test_one_too_few_is_refused_with_the_numbers() -> None:
    world = cluster(3)
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    with pytest.raises(CommandRefused, match="not enough members: A sees 2 and needs 3"):
        world.tell("A", Operate("A"))
    assert not operates(world, "B")


def test_without_a_minimum_nothing_is_ever_refused_to_members() -> None:
    world = cluster(0)
    world.suspect("A", "BC")
    assert operates(world, "A")
    assert not crossings(world, "A")


def test_who_has_not_joined_refuses_whatever_the_minimum() -> None:
    world = SteppedCluster().starting(A="B")
    with pytest.raises(CommandRefused, match="sees 0 and needs 1"):
        world.tell("A", Operate("A"))


def test_a_suspicion_alone_refuses_nothing() -> None:
    """The window that cannot be avoided: the list counts, and it is late."""
    world = cluster(3)
    world.suspect("B", "C")
    assert operates(world, "B")


def test_both_crossings_are_told_once_each() -> None:
    world = cluster(3)
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    world.suspect("A", "B")
    world.deliver_all(dead="BC")
    assert crossings(world, "A") == [(2, 3, False)]
    world.live(3, dead="BC")
    for name in "BC":
        world.born(name, "A")
        world.start(name)
        world.live(1)
    assert crossings(world, "A") == [(2, 3, False), (3, 3, True)]
    assert operates(world, "A") and operates(world, "C")


def test_a_cluster_that_is_still_growing_refuses() -> None:
    world = SteppedCluster(training_settings(minimum_cluster_size=2))
    world.born("A")
    world.start("A")
    assert not operates(world, "A") and crossings(world, "A") == [(1, 2, False)]
    world.born("B", "A")
    world.start("B")
    world.deliver_all()
    assert operates(world, "A") and operates(world, "B")
    assert crossings(world, "A") == [(1, 2, False), (2, 2, True)]


def test_both_sides_of_a_split_know_where_they_stand() -> None:
    world = cluster(3, "ABCDE")
    world.live(1)
    world.cut_links("ABC", "DE")
    assert operates(world, "D"), "the window before the detection"
    world.live(8)
    assert [operates(world, name) for name in "ABCDE"] == [True, True, True, False, False]


def test_a_member_refuses_between_the_lives_of_a_merge() -> None:
    world = cluster(2, "AB")
    world.receive("B", "A", MergeClusters(world.token_of("A"), world.machines["B"].uuid, address_of("X")))
    assert not operates(world, "B")
