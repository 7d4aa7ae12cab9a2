"""The check of a member's whole state: a sound one has no fault, and each contradiction is found."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import StartMember, StopMember
from quarterdeck.backend.core.data.partition_store import PartitionStore
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.data.state_checks import faults
from quarterdeck.backend.core.membership.undertakings import Admission, Following, Idle, Leading, StateChange
from quarterdeck.backend.core.operations import Put
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.simulation.checked_machine import CheckedMachine, UnsoundState
from quarterdeck.backend.simulation.virtual_time.world import World

STRANGER = Address("h:1")
SETTINGS = Settings.of({"hazelcast.partition.count": 6}, preset="training")


def world() -> World:
    """Three members with data; a leads."""
    made = World("abc", seed=1, settings=SETTINGS)
    made.machine_kind = CheckedMachine
    for label in "abc":
        made.execute(StartMember(label))
        made.run_until(made.now_us + 3_000_000)
    for number in range(20):
        made.call("a", Put("m", f"k{number}", b"v"))
    made.run_until(made.now_us + 10_000_000)
    return made


def state(there: World) -> MemberState:
    machine = there.machine("a")
    assert machine is not None
    return machine.inspect()


def leading(there: MemberState) -> Leading:
    assert isinstance(there.doing, Leading)
    return there.doing


def owned(there: MemberState) -> int:
    return min(there.data.owner_states)


def backed_up(there: MemberState) -> int:
    return min(there.data.stores.keys() - there.data.owner_states.keys())


def stale_of_owned(there: MemberState) -> None:
    there.data.stale[owned(there)] = None


def log_without_time(there: MemberState) -> None:
    there.data.owner_states[owned(there)].written_us = deque([1])


BREAKS: dict[str, Callable[[MemberState], object]] = {
    "left over": lambda there: there.disconnect(),
    "without a list": lambda there: setattr(there, "members", None),
    "are not the others": lambda there: there.peers.popitem(),
    "suspects an incarnation": lambda there: there.suspicions.update(u=None),  # type: ignore[arg-type]
    "wants to be woken": lambda there: setattr(there, "doing", Idle()),
    "its master is": lambda there: setattr(there, "doing", Following()),
    "reported disconnections": lambda there: there.disconnections.by_reporter.update({STRANGER: ()}),
    "an admission waits": lambda there: setattr(leading(there), "admission", Admission({}, 1, {STRANGER}, 1)),
    "a change of the cluster's state waits": lambda there: setattr(
        leading(there), "state_change", StateChange("t", there.standing, {STRANGER}, 1)
    ),
    "what only a master keeps": lambda there: setattr(there.partitions, "master_role", None),
    "have not learned": lambda there: there.partitions.changed_rows.add(1),
    "its rows at": lambda there: setattr(there.table, "version", 0),
    "it has stores of": lambda there: there.data.stores.update({7: PartitionStore()}),
    "it serves": lambda there: there.data.owner_states.popitem(),
    "looks after backups": lambda there: there.data.unsafe.update({backed_up(there): 1}),
    "it waits for a copy": stale_of_owned,
    "its times differ": log_without_time,
}


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    machine = world().machine("a")
    assert machine is not None
    return machine.snapshot()


@pytest.mark.parametrize("fault", BREAKS)
def test_each_contradiction_is_found(fault: str, snapshot: bytes) -> None:
    there = World("abc", seed=1, settings=SETTINGS).nodes["a"].member_configuration
    sound = CheckedMachine.restored(snapshot, there).inspect()
    assert not faults(sound)
    BREAKS[fault](sound)
    assert any(fault in found for found in faults(sound)), faults(sound)


def test_a_simulated_member_ends_with_its_state() -> None:
    there = world()
    state(there).data.stores[7] = PartitionStore()
    with pytest.raises(UnsoundState, match="it has stores of"):
        there.execute(StopMember("a"))


def test_a_claimant_that_has_stopped_still_has_itself_for_its_master() -> None:
    machine = world().machine("b")
    assert machine is not None
    stopped = machine.inspect()
    stopped.timers.clear_all()
    stopped.master, stopped.doing = stopped.address, Idle()
    assert not faults(stopped)
