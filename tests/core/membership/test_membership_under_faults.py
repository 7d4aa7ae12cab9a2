"""Two clusters in a network that loses, repeats, delays and reorders messages, cuts links, pauses and restarts members.

When it calms down, one cluster must be left, and no list may ever have had two contents (Cluster Service Consistency
Improvements, M1 to M3).
"""

from __future__ import annotations

from random import Random

import pytest

from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.messages import Message
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, training_settings
from tests.thoroughness import long_after

NAMES = "ABCDEFG"
STEP_SECONDS = 0.1
CHAOS_STEPS = 250
CALM_SECONDS = 60


class HostileNetwork:
    """What is on its way, and all that may happen to it; every draw comes from one seed."""

    def __init__(self, seed: int, topology: str) -> None:
        self.draws = draws = Random(seed)
        settings = training_settings(
            heartbeat_topology=topology, ring_successors=2, disconnection_heartbeats=draws.choice([0, 3])
        )
        self.world = SteppedCluster(settings)
        for name in NAMES:
            self.world.born(name, NAMES)
        border = draws.randrange(1, len(NAMES))
        self.world.settled(NAMES[:border])
        self.world.settled(NAMES[border:])
        self.loss = draws.choice([0.0, 0.05, 0.2])
        self.repeat = draws.choice([0.0, 0.1, 0.3])
        self.delay = draws.choice([0.0, 0.1, 0.4, 0.9])
        self.mischief = draws.choice([0.0, 0.03, 0.1])
        self.paused: dict[str, int] = {}
        self.lists: dict[tuple[str, int], tuple[Member, ...]] = {}
        self.judged: dict[str, int] = {}
        self.last_version: dict[str, int] = {}

    def rage(self) -> None:
        for _ in range(CHAOS_STEPS):
            awake = [name for name in NAMES if name not in self.world.halted and name not in self.paused]
            if awake:
                self.world.pass_seconds(STEP_SECONDS, *awake)
            self._deliver()
            self._judge()
            for name in [name for name, steps in self.paused.items() if steps == 0]:
                del self.paused[name]
            self.paused = {name: steps - 1 for name, steps in self.paused.items()}
            if self.draws.random() < self.mischief:
                self._do_mischief(*self.draws.sample(NAMES, 2))

    def calm_down(self) -> None:
        self.world.cut.clear()
        for name in [name for name in NAMES if name in self.world.halted]:
            self._restart(name)
        for seconds in (8, 12, CALM_SECONDS):
            self.world.live(seconds)
            self._judge()
            for name in NAMES:
                state = state_of(self.world.machines[name])
                if name not in self.world.halted and state.is_master and state.standing.state in ("FROZEN", "PASSIVE"):
                    self.world.change_state(name, "ACTIVE")
        self.world.live(8)
        self._judge()

    def _deliver(self) -> None:
        world, draws = self.world, self.draws
        waiting, world.sent = world.sent, []
        if draws.random() < 0.5:
            draws.shuffle(waiting)
        later: list[tuple[str, str, Message]] = []
        for sender, receiver, message in waiting:
            if receiver in self.paused:
                later.append((sender, receiver, message))
            elif receiver in world.halted or (sender, receiver) in world.cut or draws.random() < self.loss:
                continue
            elif draws.random() < self.delay:
                later.append((sender, receiver, message))
            else:
                world.receive(receiver, sender, message)
                if draws.random() < self.repeat:
                    later.append((sender, receiver, message))
        world.sent = world.sent + later if draws.random() < 0.5 else later + world.sent

    def _do_mischief(self, one: str, other: str) -> None:
        world, draws = self.world, self.draws
        actions = ["cut", "isolate", "heal", "restart", "pause", "edit"]
        if one not in world.halted and one not in self.paused:
            actions += ["state", "faults"]
        match draws.choice(actions):
            case "cut":
                world.cut_links(one, other, one_way=draws.random() < 0.5)
            case "isolate":
                world.cut_links(one, NAMES.replace(one, ""))
            case "heal":
                world.cut.clear()
            case "restart":
                self._restart(one)
            case "pause":
                self.paused[one] = draws.randrange(1, 200)
            case "edit" if one not in world.halted:
                world.edit_join_list(one, "".join(draws.sample(NAMES, len(NAMES))))
            case "state":
                world.change_state(one, draws.choice(["ACTIVE", "NO_MIGRATION", "FROZEN", "PASSIVE"]))
            case "faults":
                for _ in range(4):
                    world.unreachable(one, other)
                    world.machines[one].timers.clear("connection:" + world.machines[other].address)

    def _restart(self, name: str) -> None:
        self.world.halted.pop(name, None)
        self.paused.pop(name, None)
        self.world.born(name, NAMES)
        self.world.start(name)

    def _judge(self) -> None:
        """The invariants of Cluster Service Consistency Improvements on whatever was installed since the last look."""
        for name in NAMES:
            for record in self.world.records[name]:
                if record.seq <= self.judged.get(record.uuid, 0):
                    continue
                assert record.uuid not in self.judged or record.seq == self.judged[record.uuid] + 1
                self.judged[record.uuid] = record.seq
                if isinstance(record.event, ListInstalled):
                    self._judge_list(record.uuid, record.event)

    def _judge_list(self, uuid: str, installed: ListInstalled) -> None:
        identity = (installed.lineage, installed.version)
        assert self.lists.setdefault(identity, installed.members) == installed.members, "one version, one content"
        assert any(member.uuid == uuid for member in installed.members), "M3"
        assert installed.version > self.last_version.get(uuid, 0), "M1"
        self.last_version[uuid] = installed.version


def assert_settled(world: SteppedCluster) -> None:
    assert not world.halted, {name: halt.reason for name, halt in world.halted.items()}
    assert {world.list_of(name) for name in NAMES} == {world.list_of("A")}
    assert set(world.list_of("A")[1]) == set(NAMES)
    assert len({world.inspect(name).standing for name in NAMES}) == 1
    for name in NAMES:
        state = state_of(world.machines[name])
        assert not state.suspicions and state.standing.thawed is None
        under_way = (state.merge, state.state_change, state.claim, state.admission, state.probes.proof, state.search)
        assert under_way == (None,) * len(under_way), name


@pytest.mark.parametrize("seed", long_after(20, range(60)))
def test_one_cluster_is_left_when_the_network_calms_down(seed: int) -> None:
    hostile = HostileNetwork(seed, "all")
    hostile.rage()
    hostile.calm_down()
    assert_settled(hostile.world)


@pytest.mark.parametrize("seed", long_after(10, range(30)))
def test_one_cluster_is_left_in_the_ring_topology_too(seed: int) -> None:
    hostile = HostileNetwork(1_000 + seed, "ring")
    hostile.rage()
    hostile.calm_down()
    assert_settled(hostile.world)
