"""The virtual-time driver: members, network and clock of a simulated run (design section 2).

Everything that is random comes from generators named by their purpose and seeded from the run's seed; everything that waits
stands in one queue ordered by virtual time and then by the order of entry. So one seed is one run, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import repeat

from backend.core.address import Address, make_address
from backend.core.command_check import Condition, check
from backend.core.commands import (
    Command,
    KillMember,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from backend.core.effects import Effect, Halt, Transmit
from backend.core.events import Event, ProcessKilled, ProcessPaused, ProcessResumed, Record
from backend.core.links import LinkConditions
from backend.core.member import Birth, MemberMachine
from backend.core.messages import Message
from backend.core.properties import Settings
from backend.core.timers import NEVER
from backend.simulation.fingerprint import BATCH, Fingerprint

LATENCY_LEAST_US = 200
LATENCY_SPREAD_US = 800
"""A message takes at least the first and at most the sum of both; each draws its own, so messages overtake one another."""

FIRST_PORT = 5701
CLOCK_BITS = 52
"""A number of the fingerprint holds virtual microseconds (142 years of them), above them the member, above that a tick."""

MOST_MEMBERS = 1 << 11
TICK = 1 << 63


class Refusal:
    """What comes back instead of an answer when nobody listens at an address, or the link resets."""

    __slots__ = ("address", "reason")

    def __init__(self, address: Address, reason: str) -> None:
        self.address = address
        self.reason = reason


class Node:
    """A place where lives of one member run, one after another. `machine` is None while none does."""

    __slots__ = ("address", "birth", "code", "inbox", "index", "label", "lives", "machine", "paused", "wake_at")

    def __init__(self, index: int, birth: Birth) -> None:
        self.index = index
        self.code = index << CLOCK_BITS
        self.birth = birth
        self.label = birth.label
        self.address = birth.address
        self.machine: MemberMachine | None = None
        self.lives = 0
        self.paused = False
        self.inbox: list[tuple[Node, Message | Refusal]] = []
        self.wake_at = NEVER


Arrival = tuple[int, int, Node, Message | Refusal]
"""When something arrives, its place among all that arrives then, where, and what it is."""

Flight = list[Arrival]
"""What one member sent at one instant, the last to arrive first. It stands in the queue as one entry, so that a broadcast that
nothing interrupts costs the queue nothing for each of its messages."""


class World:
    """A simulated cluster. `now_us` is virtual time; nothing happens until `run_until` is called.

    `labels` are all members that may ever run; none is started. `on_record` gets every record as it happens.
    """

    def __init__(
        self,
        labels: Sequence[str],
        *,
        seed: int,
        settings: Settings,
        join_lists: Mapping[str, Sequence[str]] | None = None,
        name: str = "dev",
        run: str | None = None,
        on_record: Callable[[Record], None] | None = None,
    ) -> None:
        if len(labels) > MOST_MEMBERS:
            raise ValueError(f"{len(labels)} members are too many; at most {MOST_MEMBERS} can be simulated")
        self.name = name
        self.seed = seed
        self.run = run if run is not None else f"seed-{seed}"
        self.now_us = 0
        self.events = 0
        self.links = LinkConditions()
        self._on_record = on_record
        self._own_records = 0
        self._fingerprint = Fingerprint()
        self._latency = random.Random(f"{seed}/latency").random
        self._loss = random.Random(f"{seed}/loss").random
        self._order = 0
        self._settled_at = 0
        self._queue: list[tuple[int, int, Node, Node | None, Flight | None]] = []
        addresses = {label: make_address("127.0.0.1", FIRST_PORT + place) for place, label in enumerate(labels)}
        everybody = tuple(addresses.values())
        self.nodes: dict[str, Node] = {}
        for place, (label, address) in enumerate(addresses.items()):
            known = (join_lists or {}).get(label)
            join_list = everybody if known is None else tuple(addresses[one] for one in known)
            self.nodes[label] = Node(place, Birth(self.run, label, address, join_list, settings))
        self._at: dict[Address, Node] = {node.address: node for node in self.nodes.values()}

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.nodes)

    def machine(self, label: str) -> MemberMachine | None:
        """The life that runs at `label` now, or None."""
        return self.nodes[label].machine

    def fingerprint(self) -> str:
        """The running hash of all that happened so far."""
        return self._fingerprint.hexdigest()

    def next_at(self) -> int | None:
        """When the next thing happens, in virtual microseconds; None when nothing ever will."""
        return self._queue[0][0] if self._queue else None

    # What an operator does

    def execute(self, command: Command) -> None:
        """Do `command` now. Raises `CommandRefused`, and then nothing was changed."""
        check(command, self.labels, self._condition_of)
        match command:
            case StartMember(label):
                self._start(self.nodes[label])
            case StopMember(label):
                node, machine = self._running(label)
                self._carry_out(node, machine.stop(self.now_us))
            case KillMember(label):
                self._end_life(self.nodes[label])
                self._note(ProcessKilled(label))
            case PauseMember(label):
                self.nodes[label].paused = True
                self._note(ProcessPaused(label))
            case ResumeMember(label):
                self._resume(label)
            case _:
                for change in self.links.apply(command):
                    self._note(change)

    def _condition_of(self, label: str) -> Condition:
        node = self.nodes[label]
        if node.machine is None:
            return "down"
        return "paused" if node.paused else "running"

    def _running(self, label: str) -> tuple[Node, MemberMachine]:
        node = self.nodes[label]
        assert node.machine is not None, f"{label} was checked to be running"
        return node, node.machine

    def _start(self, node: Node) -> None:
        node.lives += 1
        node.machine = MemberMachine(node.birth, random.Random(f"{self.seed}/life/{node.label}/{node.lives}"))
        self._carry_out(node, node.machine.start(self.now_us))

    def _resume(self, label: str) -> None:
        node, machine = self._running(label)
        node.paused = False
        self._note(ProcessResumed(label))
        # An event loop that wakes from a freeze may run its timers before it reads its sockets: the harsher order.
        if machine.timers.earliest <= self.now_us:
            self._carry_out(node, machine.tick(self.now_us))
        waiting, node.inbox = node.inbox, []
        for sender, content in waiting:
            self._deliver(node, sender, content)
        self._plan_wake(node)

    # Time

    def run_until(self, at_us: int) -> None:
        """Let everything happen that is due until `at_us`, which then is now."""
        queue = self._queue
        while queue and queue[0][0] <= at_us:
            at, _, node, sender, content = heappop(queue)
            if sender is None:
                self.now_us = at
                self.events += 1
                self._wake(node, at)
            else:
                self._run_flight(sender, content, at_us)  # type: ignore[arg-type]
        self.now_us = max(self.now_us, at_us)

    def _run_flight(self, sender: Node, flight: Flight, until_us: int) -> None:
        """Deliver what arrives of one flight before anything else is due; the rest goes back into the queue."""
        queue, add, sender_address = self._queue, self._fingerprint.add, sender.address
        before = len(flight)
        while True:
            at, _, node, content = flight.pop()
            add(at | node.code)
            machine = node.machine
            if machine is None or node.paused or content.__class__ is Refusal:
                self.now_us = at
                self._deliver(node, sender, content)
            else:
                effects = machine.receive(at, sender_address, content)  # type: ignore[arg-type]
                if effects:
                    self.now_us = at
                    self._carry_out(node, effects)
                elif machine.timers.earliest < node.wake_at:
                    self._plan_wake(node)
            if not flight:
                break
            following = flight[-1]
            if following[0] > until_us or (queue and queue[0] < following):  # type: ignore[operator]
                heappush(queue, (following[0], following[1], node, sender, flight))
                break
        self.events += before - len(flight)
        if self.events - self._settled_at > BATCH:
            self._settled_at = self.events
            self._fingerprint.settle()

    def _wake(self, node: Node, at: int) -> None:
        if at != node.wake_at:
            return
        node.wake_at = NEVER
        machine = node.machine
        if machine is None or node.paused:
            return
        if machine.timers.earliest <= at:
            self._fingerprint.add(at | node.code | TICK)
            self._carry_out(node, machine.tick(at))
        else:
            self._plan_wake(node)

    def _plan_wake(self, node: Node) -> None:
        if node.machine is None:
            return
        earliest = node.machine.timers.earliest
        if earliest < node.wake_at:
            node.wake_at = earliest
            self._order += 1
            heappush(self._queue, (earliest, self._order, node, None, None))

    # What members do

    def _deliver(self, node: Node, sender: Node, content: Message | Refusal) -> None:
        """The uncommon deliveries: to nobody, to the frozen, and of refusals."""
        machine = node.machine
        if machine is None:
            if not isinstance(content, Refusal):
                self._refuse(sender, node, "connection refused")
            return
        if node.paused:
            node.inbox.append((sender, content))
        elif isinstance(content, Refusal):
            self._carry_out(node, machine.unreachable(self.now_us, content.address, content.reason))
        else:
            self._carry_out(node, machine.receive(self.now_us, sender.address, content))

    def _carry_out(self, node: Node, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if effect.__class__ is Transmit:
                self._transmit(node, effect)
            elif isinstance(effect, Halt):
                self._end_life(node)
            else:
                self._record(effect.record)  # type: ignore[union-attr]
        self._plan_wake(node)

    def _transmit(self, node: Node, effect: Transmit) -> None:
        """Send a flight: one draw of latency for each message, then in order of arrival, the last first."""
        if self.links.conditions:
            flight = [one for one in map(self._on_link, repeat(node), effect.deliveries) if one is not None]
        else:
            latency, order, nodes = self._latency, self._order, self._at
            least = self.now_us + LATENCY_LEAST_US
            flight = [
                (least + int(latency() * LATENCY_SPREAD_US), order := order + 1, nodes[address], message)
                for address, message in effect.deliveries
            ]
            self._order = order
        if flight:
            self._fingerprint.add(node.index)
            flight.sort(reverse=True)
            heappush(self._queue, (flight[-1][0], flight[-1][1], node, node, flight))

    def _on_link(self, node: Node, delivery: tuple[Address, Message]) -> Arrival | None:
        """When and where a message arrives under the condition of its link, if it does."""
        address, message = delivery
        target = self._at[address]
        delay_us = LATENCY_LEAST_US + int(self._latency() * LATENCY_SPREAD_US)
        condition = self.links.of(node.label, target.label)
        if condition is not None:
            if condition.blocked == "reset":
                self._refuse(node, target, "connection reset")
            if condition.blocked or (condition.loss and self._loss() < condition.loss):
                return None
            delay_us += condition.delay
        self._order += 1
        return self.now_us + delay_us, self._order, target, message

    def _refuse(self, asker: Node, target: Node, reason: str) -> None:
        at = self.now_us + LATENCY_LEAST_US
        self._order += 1
        flight: Flight = [(at, self._order, asker, Refusal(target.address, reason))]
        heappush(self._queue, (at, self._order, asker, target, flight))

    def _end_life(self, node: Node) -> None:
        node.machine = None
        node.paused = False
        node.inbox.clear()
        node.wake_at = NEVER

    def _note(self, event: Event) -> None:
        self._own_records += 1
        self._record(Record(self.run, self.name, self.run, self._own_records, self.now_us, self.now_us, event))

    def _record(self, record: Record) -> None:
        self._fingerprint.add_record(record)
        if self._on_record is not None:
            self._on_record(record)
