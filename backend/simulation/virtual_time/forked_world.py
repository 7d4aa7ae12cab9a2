"""A simulated world that goes on from what a cluster was at one moment; and the snapshot of a world, to go on from.

Of randomness nothing is taken over: a copy draws from generators of its own seed. So one snapshot, one seed and the same commands
are the same run, and another seed shows another order of the same messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from quarterdeck.backend.commands.links import set_condition
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot, InFlight, MemberSnapshot
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.scenarios.format.clocks import Clock
from quarterdeck.backend.simulation.virtual_time.network import SimulatedNetwork
from quarterdeck.backend.simulation.virtual_time.node import SimulatedNode
from quarterdeck.backend.simulation.virtual_time.world import World


def forked_world(
    snapshot: ClusterSnapshot,
    *,
    seed: int,
    run: str,
    on_record: Callable[[Record], None] | None = None,
    on_answer: Callable[[int, Answer], None] | None = None,
) -> World:
    """Make a world that begins as `snapshot` says, at the moment of it. Its records are of the run `run`.

    A member without a state is silent in it: messages to it vanish, and nothing comes from it, until it is killed. A member
    whose clock showed another time than that of the cluster keeps the difference.
    """
    configurations = [msgspec.structs.replace(member, run=run) for member in snapshot.configurations]
    world = World(
        [member.label for member in configurations],
        seed=seed,
        settings=configurations[0].settings,
        addresses={member.label: member.address for member in configurations},
        cluster_names={member.label: member.cluster_name for member in configurations},
        name=snapshot.name,
        run=run,
        on_record=on_record,
        on_answer=on_answer,
    )
    network = world.network
    network.now_us, world.utc_origin_us = snapshot.at_us, snapshot.utc_us - snapshot.at_us
    network.has_several_names = len({member.cluster_name for member in configurations}) > 1
    for configuration in configurations:
        world.nodes[configuration.label].member_configuration = configuration
    network.nodes = _Places(network)
    for condition in snapshot.links:
        set_condition(network.links.conditions, condition)
    for silent_member in snapshot.untold:
        world.nodes[silent_member.configuration.label].silent = True
    for member in snapshot.members:
        _resume(world, member, snapshot.at_us)
    for message in snapshot.in_flight:
        received = Receive(message.sender, message.message, message.because)
        network.put_in_flight(message.due_us, message.receiver, received)
    return world


def _resume(world: World, member: MemberSnapshot, at_us: int) -> None:
    node = world.nodes[member.configuration.label]
    if member.clock_us != at_us:
        node.clock = Clock(ahead_us=member.clock_us - at_us)
    node.starts = member.lives
    draws = random.Random(f"{world.seed}/fork/{node.label}/{member.lives}")
    node.machine = MemberMachine.restored(member.state, node.member_configuration, draws)
    node.set_paused(member.paused)
    world.network.running += 1
    world.network.plan_wake(node)


class _Places(dict[Address, SimulatedNode]):
    """All addresses to which messages are sent. Members know some addresses without a member: no process listens there."""

    def __init__(self, network: SimulatedNetwork) -> None:
        super().__init__(network.nodes)
        self._network = network

    def __missing__(self, address: Address) -> SimulatedNode:
        self._network.make_room([address])
        return self[address]


def snapshot_of(world: World) -> ClusterSnapshot:
    """Return the present state of `world`, to go on from. Clocks that run fast or slow go at the right pace in the copy."""
    network = world.network
    network.end_calm()
    members, down = [], []
    for node in world.nodes.values():
        if node.machine is None:
            down.append(node.member_configuration)
        else:
            state, clock_us = node.machine.snapshot(), node.local_us(world.now_us)
            members.append(MemberSnapshot(node.member_configuration, state, clock_us, node.paused, node.starts))
    waiting = list(network.in_flight())
    for node in world.nodes.values():
        waiting += [(world.now_us, node, content) for _, content in node.inbox if isinstance(content, Receive)]
    in_flight = [InFlight(one.sender, to.address, one.message, due_us, one.because) for due_us, to, one in waiting]
    return ClusterSnapshot(
        world.name,
        world.now_us,
        world.utc_origin_us + world.now_us,
        tuple(members),
        down=tuple(down),
        links=tuple(network.links.conditions[link] for link in sorted(network.links.conditions)),
        in_flight=tuple(in_flight),
    )
