"""The virtual-time driver: members, network and clock of a simulated run (design section 2).

Everything that is random comes from generators named by their purpose and seeded from the run's seed; everything that waits
stands in one queue ordered by virtual time and then by the order of entry. So one seed is one run, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush

import msgspec

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.command_check import Condition, check
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CommandRefused,
    KillAt,
    KillMember,
    Operate,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    SetProperties,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.data.calls.operations import Answer, Operation
from quarterdeck.backend.core.data.map_service import entries_of, held_partitions
from quarterdeck.backend.core.effects import Answered, Deliveries, Effect, Halt, Happened, Transmit
from quarterdeck.backend.core.events import Event, ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.join_list import BadJoinList, resolve_join_list
from quarterdeck.backend.core.links import LinkConditions
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.failure_detection.failure_detector import late_after_us
from quarterdeck.backend.core.messages import Heartbeat, Message
from quarterdeck.backend.core.properties import BadProperty, PropertyValue, Settings
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.simulation.virtual_time.clocks import Clock
from quarterdeck.backend.simulation.virtual_time.elision import BroadcastSchedule, Elision, HeartbeatRound, can_elide
from quarterdeck.backend.simulation.virtual_time.fingerprint import NUMBERS_PER_UPDATE, Fingerprint
from quarterdeck.backend.simulation.virtual_time.latency import Latency
from quarterdeck.backend.simulation.virtual_time.node import MOST_NODES, Arrival, DeliveryBatch, DeliveryFailure, Node

PLAIN_LATENCY = Latency()

FIRST_PORT = 5701
TICK = 1 << 63
"""Marks a tick among the numbers of the fingerprint, above the member and the time."""


class World:
    """A simulated cluster. `now_us` is virtual time; nothing happens until `run_until` is called.

    `labels` are all members that may ever run; none is started. `on_record` gets every record as it happens, `on_answer` the
    number of every call that has ended, and its answer. Members without a clock in `clocks` share the run's time, and all
    records bear it.
    """

    def __init__(
        self,
        labels: Sequence[str],
        *,
        seed: int,
        settings: Settings,
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
        self.now_us = 0
        self.events = 0
        self.messages = 0
        """Sent so far, whether they arrived or not; heartbeats that are left out are counted as well."""
        self.links = LinkConditions()
        self._on_record = on_record
        self._on_answer = on_answer
        self._calls = 0
        self._own_records = 0
        self._fingerprint = Fingerprint()
        self._settings = settings
        self._latency_model = latency
        self._latency = random.Random(f"{seed}/latency").random
        self._heartbeat_latency = random.Random(f"{seed}/latency of heartbeats").random
        self._loss = random.Random(f"{seed}/loss").random
        self._duplication = random.Random(f"{seed}/duplication").random
        self._order = 0
        self._settled_at = 0
        self._queue: list[tuple[int, int, Node, Node | None, DeliveryBatch | None]] = []
        addresses = {label: make_address("127.0.0.1", FIRST_PORT + place) for place, label in enumerate(labels)}
        everybody = tuple(addresses.values())
        self.nodes: dict[str, Node] = {}
        for place, (label, address) in enumerate(addresses.items()):
            known = (join_lists or {}).get(label)
            join_list = everybody if known is None else tuple(addresses[one] for one in known)
            member_configuration = MemberConfiguration(
                self.run, label, address, join_list, settings, lite=label in lite, zone=(zones or {}).get(label, "")
            )
            self.nodes[label] = Node(place, member_configuration, (clocks or {}).get(label))
        self._at: dict[Address, Node] = {node.address: node for node in self.nodes.values()}
        self._running_nodes = 0
        self._now_order = NEVER
        self._elision: Elision | None = None
        if elide_heartbeats and can_elide(settings, latency) and not clocks:
            self._elision = Elision(latency, self._enqueue)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.nodes)

    def machine(self, label: str) -> MemberMachine | None:
        """The life that runs at `label` now, or None."""
        return self.nodes[label].machine

    def fingerprint(self) -> str:
        """The running hash of all that happened so far."""
        return self._fingerprint.hexdigest()

    def set_latency(self, latency: Latency) -> None:
        """Let what is sent from now on take its time as `latency` says."""
        self._end_calm()
        self._elision = None
        self._latency_model = latency
        for node in self.nodes.values():
            node.deliveries = ()

    def replicas(self, label: str) -> dict[int, dict[tuple[str, str], bytes]]:
        """By partition, what the life at `label` holds of it, rightly or not: values by map and key. For checks at rest."""
        state = self._running(label)[1]._state
        return {partition: entries_of(state, partition) for partition in held_partitions(state)}

    # What an operator does

    def execute(self, command: Command) -> None:
        """Do `command` now. Raises `CommandRefused`, and then nothing was changed."""
        check(command, self.labels, self._condition_of)
        self._end_calm()
        match command:
            case StartMember(label):
                self._start(self.nodes[label])
            case StopMember(label):
                self._ask(label, lambda machine, now: machine.stop(now))
            case KillMember(label):
                self._kill(self.nodes[label])
            case PauseMember(label):
                self.nodes[label].set_paused(True)
                self._record_own(ProcessPaused(label))
            case ResumeMember(label):
                self._resume(label)
            case SetJoinList(label, entries):
                addresses = self._resolved(entries)
                self._ask(label, lambda machine, now: machine.edit_join_list(now, addresses))
            case ChangeState(label, state):
                self._ask(label, lambda machine, now: machine.change_state(now, state))
            case SetProperties(label, properties):
                self._reconfigure(label, properties)
            case SearchClusters(label):
                self._ask(label, lambda machine, now: machine.search(now))
            case Operate(label):
                self._ask(label, lambda machine, now: machine.operate(now))
            case ArrangePartitions(label):
                self._ask(label, lambda machine, now: machine.arrange(now))
            case CallMap(label, operation):
                self._call(label, operation, watched=True)
            case KillAt(label):
                self.nodes[label].kill_point = command
            case _:
                for change in self.links.apply(command):
                    self._record_own(change)

    def call(self, label: str, operation: Operation, *, watched: bool = False) -> int:
        """Ask `label` for an operation on a map; the number under which `on_answer` tells how it ended.

        Nobody tells how the calls of a life end that dies before. Events are recorded only of the `watched`.
        Raises `CommandRefused`.
        """
        check(CallMap(label, operation), self.labels, self._condition_of)
        self._end_calm()
        return self._call(label, operation, watched=watched)

    def _reconfigure(self, label: str, properties: Mapping[str, PropertyValue]) -> None:
        try:
            self._ask(label, lambda machine, now: machine.reconfigure(now, properties))
        except BadProperty as problem:
            raise CommandRefused(str(problem)) from problem

    def _call(self, label: str, operation: Operation, *, watched: bool) -> int:
        self._calls += 1
        number = self._calls
        self._ask(label, lambda machine, now: machine.call(now, number, operation, watched))
        return number

    def _kill(self, node: Node) -> None:
        self._end_life(node)
        self._record_own(ProcessKilled(node.label))
        self._break_connections(node)

    def _break_connections(self, killed: Node) -> None:
        """The system closes what a dead process had open, and whoever is still reached by that knows."""
        for other in self.nodes.values():
            condition = self.links.of(killed.label, other.label)
            if other.machine is not None and not (condition and condition.blocked):
                self._send_failure(other, killed, "connection lost")

    def _condition_of(self, label: str) -> Condition:
        node = self.nodes[label]
        if node.machine is None:
            return "down"
        return "paused" if node.paused else "running"

    def _running(self, label: str) -> tuple[Node, MemberMachine]:
        node = self.nodes[label]
        assert node.machine is not None, f"{label} was checked to be running"
        return node, node.machine

    def _ask(self, label: str, handle: Callable[[MemberMachine, int], Sequence[Effect]]) -> None:
        node, machine = self._running(label)
        self._apply_effects(node, handle(machine, node.local_us(self.now_us)))

    def _resolved(self, entries: Sequence[str]) -> tuple[Address, ...]:
        """A join list as addresses. Strangers on it get a place where nobody will ever listen."""
        own = {label: node.address for label, node in self.nodes.items()}
        try:
            addresses = resolve_join_list(entries, own, port_try_count=self._settings.join_port_try_count)
        except BadJoinList as problem:
            raise CommandRefused(str(problem)) from problem
        strangers = [address for address in addresses if address not in self._at]
        if len(self._at) + len(strangers) > MOST_NODES:
            raise CommandRefused(f"more than {MOST_NODES} addresses cannot be simulated")
        for address in strangers:
            member_configuration = MemberConfiguration(self.run, address, address, (), self._settings)
            self._at[address] = Node(len(self._at), member_configuration)
        return addresses

    def _start(self, node: Node) -> None:
        node.lives += 1
        self._running_nodes += 1
        node.machine = MemberMachine(
            node.member_configuration, random.Random(f"{self.seed}/life/{node.label}/{node.lives}")
        )
        self._apply_effects(node, node.machine.start(node.local_us(self.now_us)))

    def _resume(self, label: str) -> None:
        node, machine = self._running(label)
        node.set_paused(False)
        self._record_own(ProcessResumed(label))
        # An event loop that wakes from a freeze may run its timers before it reads its sockets: the harsher order.
        now_us = node.local_us(self.now_us)
        if machine.timers.earliest <= now_us:
            self._apply_effects(node, machine.tick(now_us))
        waiting, node.inbox = node.inbox, []
        for sender, content in waiting:
            self._deliver(node, sender, content)
        self._plan_wake(node)

    # Time

    def run_until(self, at_us: int, most_events: int = NEVER) -> None:
        """Let everything happen that is due until `at_us`, which then is now; or stop when `events` exceeds `most_events`."""
        queue = self._queue
        while queue and queue[0][0] <= at_us:
            if self.events > most_events:
                return
            at, order, node, sender, content = heappop(queue)
            if sender is None:
                self.now_us, self._now_order = at, order
                self.events += 1
                self._wake(node, at)
            else:
                self._deliver_batch(sender, content, at_us)  # type: ignore[arg-type]
        self.now_us, self._now_order = max(self.now_us, at_us), NEVER

    def _deliver_batch(self, sender: Node, batch: DeliveryBatch, until_us: int) -> None:
        """Deliver what arrives of one batch of deliveries before anything else is due; the rest goes back into the queue."""
        queue, add, sender_address = self._queue, self._fingerprint.add, sender.address
        before = len(batch)
        while True:
            at, order, node, content = batch.pop()
            add(at | node.code)
            machine = node.machine
            if machine is None or node.needs_slow_path or content.__class__ is DeliveryFailure:
                self.now_us, self._now_order = at, order
                self._deliver(node, sender, content)
            else:
                effects = machine.receive(at, sender_address, content)  # type: ignore[arg-type]
                if effects:
                    self.now_us, self._now_order = at, order
                    self._apply_effects(node, effects)
                elif machine.timers.earliest < node.wake_at:
                    self._plan_wake(node)
            if not batch:
                break
            following = batch[-1]
            if following[0] > until_us or (queue and queue[0] < following):  # type: ignore[operator]
                heappush(queue, (following[0], following[1], node, sender, batch))
                break
        self.events += before - len(batch)
        if self.events - self._settled_at > NUMBERS_PER_UPDATE:
            self._settled_at = self.events
            self._fingerprint.settle()

    def _wake(self, node: Node, at: int) -> None:
        if at != node.wake_at:
            return
        node.wake_at = NEVER
        machine = node.machine
        if machine is None or node.paused:
            return
        now_us = at if node.clock is None else node.clock.local_us(at)
        if machine.timers.earliest <= now_us:
            self._fingerprint.add(at | node.code | TICK)
            if self._elision is not None and self._elision.is_calm and machine.all_heard_until_us <= at:
                self._answer_for_elided(machine, at)
            self._apply_effects(node, machine.tick(now_us))
        else:
            self._plan_wake(node)

    def _plan_wake(self, node: Node) -> None:
        if node.machine is None:
            return
        earliest = node.machine.timers.earliest
        if node.clock is not None:
            earliest = node.clock.time_us(earliest)
        if earliest < node.wake_at:
            node.wake_at = earliest
            self._order += 1
            heappush(self._queue, (earliest, self._order, node, None, None))

    # What members do

    def _deliver(self, node: Node, sender: Node, content: Message | DeliveryFailure) -> None:
        """The uncommon deliveries: to nobody, to the frozen, to those with a time of their own, and of refusals."""
        self._end_calm()
        machine = node.machine
        if machine is None:
            if not isinstance(content, DeliveryFailure):
                self._send_failure(sender, node, "connection refused")
            return
        if node.paused:
            node.inbox.append((sender, content))
        elif isinstance(content, DeliveryFailure):
            self._apply_effects(node, machine.unreachable(node.local_us(self.now_us), content.address, content.reason))
        else:
            self._apply_effects(node, machine.receive(node.local_us(self.now_us), sender.address, content))

    def _apply_effects(self, node: Node, effects: Sequence[Effect]) -> None:
        dies = False
        for effect in effects:
            if effect.__class__ is Transmit:
                self._transmit(node, effect)
            elif isinstance(effect, Happened):
                self._record_of(node, effect.record)
                if node.kill_point is not None and node.kill_point.event == effect.record.event.__struct_config__.tag:
                    if not node.kill_point.after:
                        self._kill(node)
                        return  # what it was about to do besides is never done
                    dies = True
            elif isinstance(effect, Halt):
                self._end_life(node)
            elif isinstance(effect, Answered):
                if self._on_answer is not None:
                    self._on_answer(effect.call, effect.answer)
            # All others are about connections, and there are none here.
        if dies and node.machine is not None:
            self._kill(node)
        self._plan_wake(node)

    def _transmit(self, node: Node, effect: Transmit) -> None:
        """Send a batch of deliveries: a draw of latency for each message or for a round of heartbeats, then in order of
        arrival, the last first."""
        model = self._latency_model
        batch: DeliveryBatch
        self.messages += len(effect.deliveries)
        if self.links.conditions or model.model != "uniform":
            batch = [arrival for delivery in effect.deliveries for arrival in self._on_link(node, *delivery)]
        elif effect.deliveries[0][1].__class__ is Heartbeat:
            schedule = node.schedule
            if schedule is None or node.deliveries is not effect.deliveries:
                schedule = self._schedule_broadcast(node, effect.deliveries)
            draw, first_order = self._heartbeat_latency(), self._order + 1
            self._order += len(schedule)
            if self._elision is not None:
                this = HeartbeatRound(self.now_us, draw, first_order, schedule)
                if self._elision.elides(node, this, self._running_nodes):
                    return
            self._fingerprint.add(node.index)
            self._enqueue(node, schedule.batch(self.now_us, draw, first_order))
            return
        else:
            latency, order, nodes = self._latency, self._order, self._at
            least_us, spread_us = self.now_us + model.least_us, model.most_us - model.least_us
            batch = [
                (least_us + int(latency() * spread_us), order := order + 1, nodes[address], message)
                for address, message in effect.deliveries
            ]
            self._order = order
        if batch:
            self._fingerprint.add(node.index)
            batch.sort(reverse=True)
            self._enqueue(node, batch)

    def _schedule_broadcast(self, node: Node, deliveries: Deliveries) -> BroadcastSchedule:
        """Make the aims of a round, once for all that repeat it."""
        schedule = BroadcastSchedule(deliveries, self._latency_model, self._at)
        node.deliveries, node.schedule = deliveries, schedule
        return schedule

    def _enqueue(self, sender: Node, batch: DeliveryBatch) -> None:
        """Let a batch of deliveries, or what is left of it, wait for its next arrival."""
        heappush(self._queue, (batch[-1][0], batch[-1][1], sender, sender, batch))

    def _on_link(self, node: Node, address: Address, message: Message) -> Iterator[Arrival]:
        """When and where a message arrives under the condition of its link: not at all, once or twice."""
        target = self._at[address]
        condition = self.links.of(node.label, target.label)
        first_us = self._latency_model.sample_us(self._latency())
        if condition is None:
            yield self._arrival(first_us, target, message)
            return
        if condition.blocked == "reset":
            self._send_failure(node, target, "connection reset")
        if condition.blocked or (condition.loss and self._loss() < condition.loss):
            return
        if condition.dropped_kinds and message.__struct_config__.tag in condition.dropped_kinds:
            return
        yield self._arrival(first_us + condition.delay, target, message)
        if condition.duplicate and self._duplication() < condition.duplicate:
            second_us = self._latency_model.sample_us(self._latency())
            yield self._arrival(second_us + condition.delay, target, message)

    def _arrival(self, delay_us: int, target: Node, message: Message) -> Arrival:
        self._order += 1
        return self.now_us + delay_us, self._order, target, message

    def _send_failure(self, receiver: Node, target: Node, reason: str) -> None:
        at = self.now_us + self._latency_model.least_us
        self._order += 1
        batch: DeliveryBatch = [(at, self._order, receiver, DeliveryFailure(target.address, reason))]
        heappush(self._queue, (at, self._order, receiver, target, batch))

    def _end_life(self, node: Node) -> None:
        self._running_nodes -= 1
        node.machine = None
        node.kill_point = None
        node.set_paused(False)
        node.inbox.clear()
        node.wake_at = NEVER

    def _record_own(self, event: Event) -> None:
        self._own_records += 1
        self._record(Record(self.run, self.name, self.run, self._own_records, self.now_us, self.now_us, event))

    def _record_of(self, node: Node, record: Record) -> None:
        """Take in what a member recorded, at the run's time instead of the member's own."""
        if node.clock is not None:
            record = msgspec.structs.replace(record, at=self.now_us, utc=self.now_us)
        self._record(record)

    def _end_calm(self) -> None:
        if self._elision is not None:
            self._elision.end_calm((self.now_us, self._now_order))

    def _answer_for_elided(self, machine: MemberMachine, at: int) -> None:
        """Answer for the heartbeats that are left out; when that is no longer possible they are left out no more."""
        assert self._elision is not None
        late_us = late_after_us(self._settings)
        heard_us = self._elision.heard_since_us(at, late_us)
        if heard_us + late_us > at:
            machine.assume_peers_heard_since(heard_us)
        else:
            self._end_calm()

    def _record(self, record: Record) -> None:
        self._end_calm()
        self._fingerprint.add_record(record)
        if self._on_record is not None:
            self._on_record(record)
