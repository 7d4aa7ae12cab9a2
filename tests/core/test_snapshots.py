"""A member goes on from a snapshot as if nothing had happened, and equal states are known as such."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands.commands import CutLink, StartMember
from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import World

LABELS = ("a", "b", "c")


@pytest.fixture(params=["calm", "cut"])
def world(request: pytest.FixtureRequest) -> World:
    world = World(LABELS, seed=1, settings=Settings.of(preset="training"))
    for label in LABELS:
        world.execute(StartMember(label))
        world.run_until(world.now_us + 2 * SECOND_US)
    if request.param == "cut":
        world.execute(CutLink(("b",), ("c",)))
        world.run_until(world.now_us + 5 * SECOND_US)
    return world


@pytest.mark.parametrize("label", LABELS)
def test_a_restored_member_does_what_the_other_one_does(world: World, label: str) -> None:
    machine = world.machine(label)
    assert machine is not None
    restored = MemberMachine.restored(machine.snapshot(), world.nodes[label].member_configuration)
    assert restored.canonical() == machine.canonical()
    now_us = world.now_us
    for _ in range(50):
        now_us = max(now_us, machine.next_deadline)
        assert restored.step(now_us, TICK) == machine.step(now_us, TICK)
        assert restored.canonical() == machine.canonical()


def test_what_is_done_to_a_restored_member_does_not_touch_its_snapshot(world: World) -> None:
    machine = world.machine("a")
    assert machine is not None
    snapshot, configuration = machine.snapshot(), world.nodes["a"].member_configuration
    first = MemberMachine.restored(snapshot, configuration)
    before = first.canonical()
    first.step(first.next_deadline, TICK)
    assert first.canonical() != before
    assert MemberMachine.restored(snapshot, configuration).canonical() == before


def test_members_in_different_states_differ(world: World) -> None:
    machines = [world.machine(label) for label in LABELS]
    assert len({machine.canonical() for machine in machines if machine is not None}) == len(LABELS)
