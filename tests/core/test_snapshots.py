"""Snapshots of members: equal after a round trip in every state that a run comes through, and refused when they are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_type_hints
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.state import MemberConfiguration
from quarterdeck.backend.core.partitions.state import PartitionContext
from quarterdeck.backend.core.properties import MILLISECOND_US, Settings
from quarterdeck.backend.core.snapshots import FORM, KEPT, BadSnapshot, canonical, freeze, thaw
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.core.member_state import state_of
from tests.picture.simulated_picture import SimulatedPicture
from tests.thoroughness import long_after

LOOK_US = 700 * MILLISECOND_US


def states(world: World) -> Iterable[MemberState]:
    return [state_of(node.machine) for node in world.nodes.values() if node.machine is not None]


def assert_equal_after_a_round_trip(state: MemberState) -> None:
    frozen = freeze(state)
    again = thaw(frozen, state.context)
    assert again == state
    assert canonical(again) == canonical(state), "also the order of dictionaries, which decides what is done first"


LEADING = ("admission", "state_change", "merge")
"""The tasks of a master."""


class LookingDriver(SimulatedDriver):
    """Looks at the state of every member several times a second."""

    looks = 0
    undertakings: frozenset[str] = frozenset()

    def advance(self, by_us: int) -> None:
        until_us = self.now_us() + by_us
        while self.now_us() < until_us:
            super().advance(min(LOOK_US, until_us - self.now_us()))
            for state in states(self.world):
                self.looks += 1
                self.undertakings |= {name for name in KEPT if getattr(state, name)}
                self.undertakings |= {type(state.doing).__name__}
                self.undertakings |= {name for name in LEADING if getattr(state, name)}
                assert_equal_after_a_round_trip(state)


def looked_at(seed: int) -> LookingDriver:
    """The driver of a swarm run that has looked at every state, each equal after a round trip."""
    scenario = draw_scenario(seed, (3, 5)).scenario
    run_state = RunState()
    driver = LookingDriver(scenario, seed, run_state)
    Interpreter(scenario, driver, run_state, seed=seed).play()
    assert driver.looks >= 5  # the shortest run that is drawn, of seed 13, is looked at six times
    return driver


@pytest.mark.parametrize("seed", long_after(0, range(6, 60)))
def test_every_state_of_a_swarm_run_is_equal_after_a_round_trip(seed: int) -> None:
    looked_at(seed)


def test_a_few_runs_come_through_most_that_a_member_may_do_and_back() -> None:
    seen: frozenset[str] = frozenset()
    for seed in range(4):
        seen |= looked_at(seed).undertakings
    assert {"JoinSearch", "Following", "Claim", "Leading", *LEADING, "suspicions", "left"} <= seen


def test_a_member_goes_on_as_if_nothing_had_been() -> None:
    one, other = SimulatedPicture(4), SimulatedPicture(4)
    one.arrange()
    other.arrange()
    for node in other.world.nodes.values():
        assert node.machine is not None
        node.machine = MemberMachine.restored(node.machine.snapshot(), node.member_configuration)
    for cluster in (one, other):
        cluster.pass_seconds(20)
    assert one.world.fingerprint() == other.world.fingerprint()


@pytest.fixture(scope="module")
def frozen() -> bytes:
    cluster = SimulatedPicture(3)
    cluster.arrange()
    return freeze(next(iter(states(cluster.world))))


CONTEXT = PartitionContext(MemberConfiguration("run", "A", "127.0.0.1:5701", (), Settings()))  # type: ignore[arg-type]


@given(st.data())
def test_what_was_tampered_with_is_refused_or_is_a_state(frozen: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(frozen) - 1))
    tampered = frozen[:place] + data.draw(st.binary(max_size=8)) + frozen[place + data.draw(st.integers(0, 8)) :]
    try:
        state = thaw(tampered, CONTEXT)
    except BadSnapshot as problem:
        assert "cannot be read" in str(problem)
    else:
        assert isinstance(state, MemberState)


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04\x95", b"\x91" * 100_000, msgspec.msgpack.encode({"uuid": 3}), b"[]", b"\xff" * 20]
)
def test_what_is_no_snapshot_is_refused(content: bytes) -> None:
    with pytest.raises(BadSnapshot):
        thaw(content, CONTEXT)


@pytest.mark.parametrize("form", [1, FORM - 1, FORM + 1])
def test_a_snapshot_of_another_form_is_refused_in_one_sentence(frozen: bytes, form: int) -> None:
    _, kept = msgspec.msgpack.decode(frozen, type=tuple[int, msgspec.Raw])
    other = bytes(kept) if form == 1 else msgspec.msgpack.encode((form, kept))
    with pytest.raises(BadSnapshot, match=f"it has form {form}, and this version reads form {FORM}$"):
        thaw(other, CONTEXT)


def test_the_form_of_snapshots_is_raised_when_the_declared_state_changes() -> None:
    """Raise `FORM` in `snapshots`, then write the new number of the declared fields here."""
    known: dict[str, tuple[str, ...]] = {}

    def note(kind: Any) -> None:
        for part in get_args(kind):
            note(part)
        if not isinstance(kind, type) or kind.__module__.startswith("msgspec") or kind.__qualname__ in known:
            return
        fields = getattr(kind, "__struct_fields__", getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ())))
        if fields:
            known[kind.__qualname__] = tuple(fields)
            hints = get_type_hints(kind)
            for name in fields:
                if name != "context":
                    note(hints[name])

    note(MemberState)
    assert (FORM, crc32(repr(sorted(known.items())).encode())) == (2, 3401608698)
