"""A heartbeat that a member only notes, without a step, has the same consequences as one that it steps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.failure_detection.failure_detector import DeadlineDetector
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of


@pytest.mark.parametrize("seed", [2, 9, 14, 23])
def test_a_run_in_which_every_heartbeat_is_a_step_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[bool] = []
    hear = MemberMachine.hear

    def counted(machine: MemberMachine, *heartbeat: object) -> DeadlineDetector | None:
        detector = hear(machine, *heartbeat)  # type: ignore[arg-type]
        noted.append(detector is not None)
        return detector

    monkeypatch.setattr(MemberMachine, "hear", counted)
    quick = run_seed(seed)
    monkeypatch.setattr(MemberMachine, "hear", lambda *_: None)
    assert run_seed(seed).fingerprint == quick.fingerprint
    assert {True, False} <= set(noted), "the run has heartbeats of both kinds"


def test_only_a_heartbeat_between_the_present_incarnations_of_members_with_one_list_is_noted() -> None:
    world = SteppedCluster().with_lists(A=(2, "AB"), B=(2, "AB"))
    master, slave = world.machines["A"], address_of("B")
    beat = Heartbeat(world.machines["B"].uuid, master.uuid, master.address, 2)
    assert master.hear(world.now, slave, beat)
    assert not master.hear(world.now, address_of("C"), beat)
    for other in ({"uuid": "earlier"}, {"to_uuid": "earlier"}, {"version": 1}, {"suspects": (master.address,)}):
        assert not master.hear(world.now, slave, replace(beat, **other)), other
    state_of(master).peers[slave].behind_since_us = 1
    assert not master.hear(world.now, slave, beat)
