"""What a member keeps does not grow with all that it has lived through: thousands of members come and go (design, section 2).

Every collection in a member's state is counted, wherever it is, so that one that somebody adds is counted as well.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

import msgspec
import pytest

from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CutLink,
    Heal,
    KillMember,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.core.member_state import state_of

STAYING = ("n1", "n2", "n3")
PARTITIONS = 7
RETENTION_S = 10
BOUND = 30
"""No collection has more elements, and neither have all together that stand at one place of the state. There are 3 members that
stay and at most one that comes and goes, 7 partitions, and some 5 left within the time for which one is remembered."""


def collections_of(state: MemberState) -> Counter[str]:
    """By place in the state, how many elements the collections there have."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()

    def look(value: Any, place: str) -> None:
        if isinstance(value, str | bytes | int | float | type(None)) or id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, Mapping):
            sizes[place] += len(value)
            for item in value.values():
                look(item, f"{place}[]")
        elif isinstance(value, Sequence | Set | deque):
            sizes[place] += len(value)
            for item in value:
                look(item, f"{place}[]")
        else:
            for name in names_of(value):
                look(getattr(value, name), f"{place}.{name}")

    for name in names_of(state):
        if name not in ("context", "settings"):
            look(getattr(state, name), name)
    return sizes


def names_of(value: Any) -> list[str]:
    """The names of what an object is made of."""
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [name for name in slots or list(getattr(value, "__dict__", ())) if hasattr(value, name)]


def churned(lives: int, addresses: int, **changes: str) -> World:
    """Members come, stay for a moment and go, in all the ways in which a member can; then peace."""
    guests = tuple(f"g{number}" for number in range(addresses))
    settings = Settings.of(
        {
            "hazelcast.tcp.join.previously.joined.member.address.retention.seconds": str(RETENTION_S),
            "hazelcast.partition.count": str(PARTITIONS),
        },
        preset="training",
    )
    everybody = (*STAYING, *guests)
    world = World(everybody, seed=1, settings=settings, join_lists=dict.fromkeys(everybody, STAYING))
    for label in STAYING:
        world.execute(StartMember(label))
        pass_seconds(world, 1)
    world.execute(ArrangePartitions("n1"))
    if changes:
        for label in STAYING:
            world.execute(SetProperties(label, changes))
    random = Random(1)
    for life in range(lives):
        guest = guests[life % addresses]
        world.execute(StartMember(guest))
        pass_seconds(world, 2)
        match random.randrange(10):
            case 0:  # it cannot reach one of the others, is removed, and leads a cluster of its own
                world.execute(CutLink((guest,), ("n2",)))
                pass_seconds(world, 12)
                world.execute(KillMember(guest))
                world.execute(Heal())
            case 1 | 2 | 3:
                world.execute(StopMember(guest))
                pass_seconds(world, 2)
            case _:
                world.execute(KillMember(guest))
                pass_seconds(world, 1)
        if world.machine(guest) is not None:
            world.execute(KillMember(guest))
    pass_seconds(world, 30)
    return world


def pass_seconds(world: World, seconds: float) -> None:
    world.run_until(world.now_us + int(seconds * SECOND_US))


def assert_small(world: World) -> None:
    for label in STAYING:
        machine = world.machine(label)
        assert machine is not None
        assert [member.address for member in state_of(machine).members.members] == [  # type: ignore[union-attr]
            world.nodes[label].address for label in STAYING
        ]
        grown = {place: size for place, size in collections_of(state_of(machine)).items() if size > BOUND}
        assert not grown, label


@pytest.mark.parametrize(
    ("lives", "addresses"),
    [(200, 200), (100, 3), pytest.param(10_000, 2000, marks=pytest.mark.long)],
)
def test_no_collection_grows_with_the_lives_that_a_cluster_has_seen(lives: int, addresses: int) -> None:
    assert_small(churned(lives, addresses))


def test_nor_when_the_members_are_told_to_remember_nobody() -> None:
    changes = {"hazelcast.tcp.join.previously.joined.member.address.retention.seconds": "0"}
    world = churned(150, 150, **changes)
    assert_small(world)
    for label in STAYING:
        machine = world.machine(label)
        assert machine is not None
        assert len(machine.inspect().remembered) <= len(STAYING)
