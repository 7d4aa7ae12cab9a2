"""The virtual-time driver: members, network and clock of a simulated run.

Everything that is random comes from generators named by their purpose and seeded from the run's seed; everything that waits
stands in one queue ordered by virtual time and then by the order of entry. So one seed is one run, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import msgspec

from quarterdeck.backend.commands.check import Condition, check, with_addresses
from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.address import Address, parse_address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.effects import Deliveries, Effect, Incarnations, carry_out
from quarterdeck.backend.core.events import (
    FORM,
    Event,
    MembersExpected,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
)
from quarterdeck.backend.core.inputs import START, TICK, Call, Input, PeersHeardSince, PeerUnreachable, Receive
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.failure_detection.failure_detector import late_after_us
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.scenarios.format.clocks import Clock, Latency
from quarterdeck.backend.simulation.virtual_time.elision import can_elide
from quarterdeck.backend.simulation.virtual_time.fingerprint import NUMBERS_PER_UPDATE, Fingerprint
from quarterdeck.backend.simulation.virtual_time.member_configurations import member_configurations
from quarterdeck.backend.simulation.virtual_time.network import SimulatedNetwork
from quarterdeck.backend.simulation.virtual_time.node import MOST_NODES, Arrival, SimulatedNode

PLAIN_LATENCY = Latency()

TICK_MARK = 1 << 63
"""Marks a tick among the numbers of the fingerprint, above the member and the time."""


class World:
    """A simulated cluster. `now_us` is virtual time; nothing happens until `run_until` is called.

    `labels` are all members that may ever run; none is started. `on_record` gets every record as it happens, `on_answer` the
    number of every call that has ended, and its answer. Members without a clock in `clocks` share the run's time, and all
    records bear it. Who has settings, an address or a cluster name of its own keeps them in each incarnation. Raises
    `BadAddress` and `BadJoinList`.
    """

    machine_kind: type[MemberMachine] = MemberMachine
    """The class of the processes that start: `CheckedMachine`, where faults and not speed are sought."""

    def __init__(
        self,
        labels: Sequence[str],
        *,
        seed: int,
        settings: Settings,
        settings_of: Mapping[str, Settings] | None = None,
        addresses: Mapping[str, str] | None = None,
        cluster_names: Mapping[str, str] | None = None,
        join_lists: Mapping[str, Sequence[str]] | None = None,
        lite: Collection[str] = (),
        zones: Mapping[str, str] | None = None,
        name: str = "dev",
        run: str | None = None,
        on_record: Callable[[Record], None] | None = None,
        on_answer: Callable[[int, Answer], None] | None = None,
        latency: Latency = PLAIN_LATENCY,
        clocks: Mapping[str, Clock] | None = None,
        elide_heartbeats: bool = False,
    ) -> None:
        if len(labels) > MOST_NODES:
            raise ValueError(f"{len(labels)} members are too many; at most {MOST_NODES} can be simulated")
        self.name = name
        self.seed = seed
        self.run = run if run is not None else f"seed-{seed}"
        self.events = 0
        self._on_record = on_record
        self._on_answer = on_answer
        self._calls = 0
        self._own_records = 0
        self._fingerprint = Fingerprint()
        self._settings = settings
        self._late_after_us = late_after_us(settings)
        self._settled_at = 0
        self.utc_origin_us = 0
        """The UTC instant at which the run's time is 0."""
        elide = elide_heartbeats and can_elide(settings, latency) and not (clocks or settings_of)
        stranger = MemberConfiguration(self.run, "", Address(""), (), settings)
        self.network = SimulatedNetwork(
            seed, latency, self._fingerprint, stranger, members=len(labels), elide_heartbeats=elide
        )
        self.network.has_several_names = bool(cluster_names)
        self.nodes: dict[str, SimulatedNode] = {}
        configurations = member_configurations(
            self.run,
            labels,
            settings,
            settings_of=settings_of or {},
            addresses=addresses or {},
            cluster_names=cluster_names or {},
            join_lists=join_lists or {},
            lite=lite,
            zones=zones or {},
        )
        for place, configuration in enumerate(configurations):
            node = SimulatedNode(place, configuration, (clocks or {}).get(configuration.label))
            node.process = _Process(self, node)
            self.nodes[node.label] = self.network.nodes[node.address] = node
        for node in self.nodes.values():
            self.network.make_room(node.member_configuration.join_list)

    @property
    def now_us(self) -> int:
        return self.network.now_us

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.nodes)

    def machine(self, label: str) -> MemberMachine | None:
        return self.nodes[label].machine

    def is_lite(self, label: str) -> bool:
        """Return whether the member holds no data; one that is down will be as configured."""
        node = self.nodes[label]
        return node.machine.inspect().lite if node.machine is not None else node.member_configuration.lite

    def fingerprint(self) -> str:
        return self._fingerprint.hexdigest()

    def set_latency(self, latency: Latency) -> None:
        self.network.set_latency(latency)

    # What an operator does

    def execute(self, command: do.Command) -> None:
        """Do `command` now. Raises `CommandRefused`, and then nothing was changed."""
        check(command, self.labels, self._condition_of)
        self.network.end_calm()
        HANDLERS.get(type(command), World._ask_member)(self, command)

    def call(self, label: str, operation: Operation, *, watched: bool = False) -> int:
        """Ask `label` for an operation on a map; the number under which `on_answer` reports how it ended.

        It is not known how the calls of a process end that is killed before. Events are recorded only of the `watched`.
        Raises `CommandRefused`.
        """
        check(do.CallMap(label, operation), self.labels, self._condition_of)
        self.network.end_calm()
        return self._call(label, operation, watched=watched)

    def _call(self, label: str, operation: Operation, *, watched: bool) -> int:
        self._calls += 1
        number = self._calls
        self._step(label, Call(number, operation, watched))
        return number

    def _kill(self, command: do.KillMember) -> None:
        node = self.nodes[command.member]
        self._end_process(node)
        self._record_own(ProcessKilled(node.label))
        # Close what a dead process had open, as its system does; members that are still reached by that learn of it.
        for other in self.nodes.values():
            condition = self.network.links.of(node.label, other.label)
            if other.machine is not None and not (condition and condition.blocked):
                self.network.report_unreachable(other, node, "connection lost")

    def _condition_of(self, label: str) -> Condition:
        node = self.nodes[label]
        if node.machine is None:
            return "paused" if node.silent else "down"
        return "paused" if node.paused else "running"

    def _running(self, label: str) -> tuple[SimulatedNode, MemberMachine]:
        node = self.nodes[label]
        assert node.machine is not None, f"{label} was checked to be running"
        return node, node.machine

    def _step(self, label: str, input: Input) -> None:
        node, machine = self._running(label)
        self._carry_out(node, machine.step(node.local_us(self.now_us), input))

    def _ask_member(self, command: Any) -> None:
        addresses = {label: node.address for label, node in self.nodes.items()}
        command = with_addresses(command, addresses, self._settings.join_port_try_count)
        if isinstance(command, do.SetJoinList):
            self.network.make_room(map(Address, command.addresses))
        elif isinstance(command, do.SetProperties):
            self.network.stop_eliding()  # that is proven for heartbeats of one pace only
        self._step(command.member, command)

    def _set_kill_point(self, command: do.KillAt) -> None:
        self.nodes[command.member].kill_point = command

    def _pause(self, command: do.PauseMember) -> None:
        self.nodes[command.member].set_paused(True)
        self._record_own(ProcessPaused(command.member))

    def _start(self, command: do.StartMember) -> None:
        node = self.nodes[command.member]
        if self.network.nodes[node.address] is not node:
            raise do.CommandRefused(f"{node.address} is that of {self.network.nodes[node.address].label} by now")
        node.starts += 1
        self.network.running += 1
        draws = random.Random(f"{self.seed}/life/{node.label}/{node.starts}")
        node.machine = self.machine_kind(node.member_configuration, draws)
        self._carry_out(node, node.machine.step(node.local_us(self.now_us), START))

    def _resume(self, command: do.ResumeMember) -> None:
        label = command.member
        if self.nodes[label].silent:
            raise do.CommandRefused(
                f"what {label} knew was not reported, so it stays silent in this copy; kill it and start it anew"
            )
        node, machine = self._running(label)
        node.set_paused(False)
        self._record_own(ProcessResumed(label))
        # An event loop that wakes from a freeze may run its timers before it reads its sockets: the harsher order.
        now_us = node.local_us(self.now_us)
        if machine.timers.earliest <= now_us:
            self._carry_out(node, machine.step(now_us, TICK))
        waiting, node.inbox = node.inbox, []
        for sender, content in waiting:
            self._deliver(node, sender, content)
        self.network.plan_wake(node)

    # Time

    def run_until(self, at_us: int, most_events: int = NEVER) -> None:
        """Let everything happen that is due until `at_us`, which then is now; or stop when `events` exceeds `most_events`."""
        network, queue = self.network, self.network.queue
        while (today := queue.open_day(at_us)) is not None and self._go_through(today, at_us, most_events):
            queue.close_day()
        if self.events <= most_events:
            network.now_us, network.now_order = max(network.now_us, at_us), NEVER

    def _go_through(self, today: Iterable[Arrival], until_us: int, most_events: int) -> bool:
        """Carry out the due events of a day of the queue: the loop of every run. Return whether the day is done."""
        network, add, events = self.network, self._fingerprint.add, self.events
        for at, order, node, content, sender, repeated in today:
            if at > until_us or events > most_events:
                network.queue.leave_day(at, order)
                self.events = events
                return False
            events += 1
            machine = node.machine
            if content.__class__ is not Receive:
                network.now_us, network.now_order = at, order
                if content is None:
                    self._wake(node, at)
                else:
                    add(at | node.code)
                    self._deliver(node, sender, content)
                continue
            add(at | node.code)
            if machine is None or node.needs_slow_path:
                network.now_us, network.now_order = at, order
                self._deliver(node, sender, content)
            elif repeated is not None and repeated.unmoved is node.unmoved:
                repeated.detector.last_heard_us = at  # type: ignore[union-attr]
            else:
                network.now_us, network.now_order = at, order
                effects = machine.step(at, content)
                if content.message.__class__ is not Heartbeat or effects:
                    node.unmoved = object()
                    carry_out(effects, node.process)
                elif repeated is not None:
                    repeated.note(node, machine, at, content)
                if machine.timers.earliest < node.wake_at:
                    network.plan_wake(node)
        self.events = events
        if events - self._settled_at > NUMBERS_PER_UPDATE:
            self._settled_at = events
            self._fingerprint.settle()
        return True

    def _wake(self, node: SimulatedNode, at: int) -> None:
        if at != node.wake_at:
            return
        node.wake_at = NEVER
        machine = node.machine
        if machine is None or node.paused:
            return
        now_us = at if node.clock is None else node.clock.local_us(at)
        if machine.timers.earliest <= now_us:
            self._fingerprint.add(at | node.code | TICK_MARK)
            elision = self.network.elision
            if elision is not None and elision.is_calm and machine.inspect().all_heard_until_us <= at:
                self._vouch_for_elided(machine, at)
            effects = machine.step(now_us, TICK)
            if len(effects) != 1 or effects[0] is not machine.inspect().context.heartbeat_round:
                node.unmoved = object()
            carry_out(effects, node.process)
        self.network.plan_wake(node)

    # What members do

    def _deliver(self, node: SimulatedNode, sender: SimulatedNode, content: Receive | PeerUnreachable) -> None:
        """Deliver on the slow path: to no running member, to a paused one or one with its own clock, or news of a failure."""
        self.network.end_calm()
        machine = node.machine
        if machine is None:
            if not isinstance(content, PeerUnreachable) and not node.silent:
                self.network.report_unreachable(sender, node, "connection refused")
        elif node.paused:
            node.inbox.append((sender, content))
        else:
            self._carry_out(node, machine.step(node.local_us(self.now_us), content))

    def _carry_out(self, node: SimulatedNode, effects: Sequence[Effect]) -> None:
        node.unmoved = object()
        carry_out(effects, node.process)
        self.network.plan_wake(node)

    def _end_process(self, node: SimulatedNode) -> None:
        self.network.running -= node.machine is not None
        node.end_process()

    def _vouch_for_elided(self, machine: MemberMachine, at: int) -> None:
        """Let a member know that it heard of all, though their heartbeats were left out; end the calm if that is not certain."""
        elision = self.network.elision
        assert elision is not None
        late_us = self._late_after_us
        heard_us = elision.heard_since_us(at, late_us)
        if heard_us + late_us > at:
            machine.step(at, PeersHeardSince(heard_us))
        else:
            self.network.end_calm()

    def _record_links(self, changes: Iterable[LinkChanged]) -> None:
        for change in changes:
            self._record_own(change)

    def _record_own(self, event: Event) -> None:
        self._own_records += 1
        now_us, utc_us = self.now_us, self.utc_origin_us + self.now_us
        self._record(Record(self.run, self.name, self.run, self._own_records, now_us, utc_us, event, form=FORM))

    def _record(self, record: Record) -> None:
        self.network.end_calm()
        self._fingerprint.add_record(record)
        if self._on_record is not None:
            self._on_record(record)


class _Process:
    """Carries out the effects of the member at `node`: a `backend.core.effects.MemberProcess`."""

    __slots__ = ("_node", "_world", "transmit")

    transmit: Callable[[Deliveries, RecordId | None], None]
    """Straight to the network: every round of heartbeats goes this way."""

    def __init__(self, world: World, node: SimulatedNode) -> None:
        self._world = world
        self._node = node
        self.transmit = partial(world.network.transmit, node)

    @property
    def kill_point(self) -> do.KillAt | None:
        return self._node.kill_point

    def record(self, record: Record) -> None:
        """At the run's time instead of the member's own."""
        if self._node.clock is not None:
            now_us = self._world.now_us
            record = msgspec.structs.replace(record, at=now_us, utc=self._world.utc_origin_us + now_us)
        self._world._record(record)

    def answer(self, call: int, answer: Answer) -> None:
        if self._world._on_answer is not None:
            self._world._on_answer(call, answer)

    def disconnect(self, incarnations: Incarnations | None) -> None:
        """Do nothing: a simulated world has no connections."""

    def halt(self, reason: str, *, failed: bool) -> None:
        self._world._end_process(self._node)

    def reach_kill_point(self) -> None:
        self._world._kill(do.KillMember(self._node.label))


HANDLERS: dict[type[do.Command], Callable[[World, Any], object]] = {
    do.StartMember: World._start,
    do.KillMember: World._kill,
    do.KillAt: World._set_kill_point,
    do.PauseMember: World._pause,
    do.ResumeMember: World._resume,
    do.CallMap: lambda world, command: world._call(command.member, command.operation, watched=True),
    do.ExpectMembers: lambda world, command: world._record_own(MembersExpected(command.size)),
    do.MoveMember: lambda world, command: world.network.move(
        world.nodes[command.member], parse_address(command.address)
    ),
    do.ReplayMessages: lambda world, command: world._record_links(world.network.replay(command)),
    **dict.fromkeys(
        (*get_args(do.LinkCommand), do.HoldMessages),
        lambda world, command: world._record_links(world.network.links.apply(command)),
    ),
}
"""Who carries out each command. The others are for members themselves."""
