"""A heartbeat that the simulation only notes has the same consequences as a step with it."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import CutLink
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.messages import WhoIsMaster
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed
from quarterdeck.backend.simulation.virtual_time.node import RepeatedHeartbeat, SimulatedNode
from tests.picture.simulated_picture import SimulatedPicture
from tests.thoroughness import long_after


@pytest.mark.parametrize("seed", long_after(3, [2, 9, 14, *range(23, 60)]))
def test_a_run_in_which_every_heartbeat_is_a_step_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = []
    note = RepeatedHeartbeat.note

    def counted(self: RepeatedHeartbeat, node: SimulatedNode, *received: object) -> None:
        note(self, node, *received)  # type: ignore[arg-type]
        noted.append(self.unmoved is node.unmoved)

    monkeypatch.setattr(RepeatedHeartbeat, "note", counted)
    quick = run_seed(seed)
    monkeypatch.setattr(RepeatedHeartbeat, "note", lambda *_: None)
    assert run_seed(seed).fingerprint == quick.fingerprint
    assert any(noted), "the run has heartbeats that are only noted"


MOST_COMPARED = 300


@pytest.mark.parametrize("seed", long_after(1, range(1, 20)))
def test_every_heartbeat_that_may_be_noted_would_only_be_noted_by_a_step(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step a copy of the member with a heartbeat that may be noted: it does nothing but note its time."""
    compared = 0

    def compare(_: RepeatedHeartbeat, node: SimulatedNode, machine: MemberMachine, at: int, received: Receive) -> None:
        nonlocal compared
        state = machine.inspect()
        peer = state.peers.get(received.sender)
        if compared < MOST_COMPARED and peer is not None and peer.detector.last_heard_us == at:
            copy = MemberMachine.restored(machine.snapshot(), state.member_configuration)
            assert not copy.step(at + 1, received)
            copy.inspect().peers[received.sender].detector.last_heard_us = at
            assert copy.canonical() == machine.canonical()
            compared += 1

    monkeypatch.setattr(RepeatedHeartbeat, "note", compare)
    run_seed(seed)
    assert compared > 100


def test_another_message_moves_its_receiver() -> None:
    """What a repeated heartbeat did is not taken for what it will do after another message."""
    world = SimulatedPicture(3).world
    world.run_until(world.now_us + 20 * SECOND_US)
    receiver, sender = (world.nodes[label] for label in world.labels[:2])
    assert receiver.machine is not None and sender.machine is not None
    before, quiet_us = receiver.unmoved, receiver.machine.next_deadline - world.now_us
    assert quiet_us > 100 * MILLISECOND_US
    world.network.transmit(sender, ((receiver.address, WhoIsMaster(sender.machine.uuid)),), None)
    world.run_until(world.now_us + 100 * MILLISECOND_US)
    assert receiver.unmoved is not before


def test_a_tick_that_does_more_than_send_a_round_moves_its_member() -> None:
    world = SimulatedPicture(3).world
    world.run_until(world.now_us + 20 * SECOND_US)
    receiver, sender = (world.nodes[label] for label in world.labels[:2])
    assert receiver.machine is not None
    world.execute(CutLink((sender.label,), (receiver.label,)))
    peer = receiver.machine.inspect().peers[sender.address]
    before = receiver.unmoved
    while not peer.late:
        before = receiver.unmoved
        world.run_until(receiver.machine.next_deadline)
    assert receiver.unmoved is not before
