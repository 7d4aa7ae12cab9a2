"""A heartbeat that the simulation only notes has the same consequences as a step with it."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed
from quarterdeck.backend.simulation.virtual_time.node import RepeatedHeartbeat, SimulatedNode
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
