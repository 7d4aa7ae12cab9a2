"""A member goes on from a snapshot as if nothing had happened, and equal states are known as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from quarterdeck.backend.core.commands.commands import CutLink, StartMember
from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.core.state.member_state import MemberState
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.core.member_state import state_of

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
    assert restored.canonical(0) == machine.canonical(0)
    now_us = world.now_us
    for _ in range(50):
        now_us = max(now_us, machine.next_deadline)
        assert restored.step(now_us, TICK) == machine.step(now_us, TICK)
        assert restored.canonical(0) == machine.canonical(0)


def test_what_is_done_to_a_restored_member_does_not_touch_its_snapshot(world: World) -> None:
    machine = world.machine("a")
    assert machine is not None
    snapshot, configuration = machine.snapshot(), world.nodes["a"].member_configuration
    first = MemberMachine.restored(snapshot, configuration)
    before = first.canonical(0)
    first.step(first.next_deadline, TICK)
    assert first.canonical(0) != before
    assert MemberMachine.restored(snapshot, configuration).canonical(0) == before


def test_members_in_different_states_differ(world: World) -> None:
    machines = [world.machine(label) for label in LABELS]
    assert len({machine.canonical(0) for machine in machines if machine is not None}) == len(LABELS)


def test_a_state_is_equal_after_a_round_trip(world: World) -> None:
    for label in LABELS:
        machine = world.machine(label)
        assert machine is not None
        restored = MemberMachine.restored(machine.snapshot(), world.nodes[label].member_configuration)
        assert state_of(restored) == state_of(machine) and state_of(restored) is not state_of(machine)


def test_times_are_relative_to_now() -> None:
    texts = []
    for begun_us in (0, 7 * SECOND_US):
        world = World(("a",), seed=1, settings=Settings.of(preset="training"))
        world.run_until(SECOND_US + begun_us)
        world.execute(StartMember("a"))
        world.run_until(world.now_us + 12 * SECOND_US)
        machine = world.machine("a")
        assert machine is not None and machine.joined
        texts.append(machine.canonical(world.now_us))
    assert texts[0] == texts[1]


def test_all_of_a_state_is_declared_and_no_part_of_it_can_be_called() -> None:
    """What a form can be derived from: types that are data, down to the last field."""
    seen: set[object] = set()

    def look(declared: Any, place: str) -> None:
        kind, inner = get_origin(declared) or declared, get_args(declared)
        if declared in seen or isinstance(declared, str | int):
            return
        seen.add(declared)
        assert kind not in (Any, object, Callable), place
        for one in inner:
            look(one, place)
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Struct) or hasattr(kind, "_fields")):
            for name, hint in get_type_hints(kind, include_extras=True).items():
                if name != "context":
                    look(hint, f"{place}.{name}")

    look(MemberState, "state")
    assert len(seen) > 100
