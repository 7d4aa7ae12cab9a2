"""The network of a simulated world: the sent messages, and the times of their arrivals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from quarterdeck.backend.commands.links import LinkConditions, conditions_for, delay_us
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId, UnreachableCause
from quarterdeck.backend.core.commands import CommandRefused, ReplayMessages
from quarterdeck.backend.core.effects import Deliveries
from quarterdeck.backend.core.inputs import PeerUnreachable, Receive
from quarterdeck.backend.core.link_condition import KindCondition, LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.scenarios.format.clocks import Latency
from quarterdeck.backend.simulation.virtual_time.calendar_queue import CalendarQueue
from quarterdeck.backend.simulation.virtual_time.elision import Elision, HeartbeatRound
from quarterdeck.backend.simulation.virtual_time.fingerprint import Fingerprint
from quarterdeck.backend.simulation.virtual_time.node import MOST_NODES, Arrival, BroadcastSchedule, SimulatedNode


class SimulatedNetwork:
    """Everything that waits in a simulated run: messages, and the wake-ups of members.

    `now_us` and `now_order` are the present position in `queue`; the world that takes from the queue sets them.
    """

    def __init__(
        self,
        seed: int,
        latency: Latency,
        fingerprint: Fingerprint,
        stranger: MemberConfiguration,
        *,
        members: int,
        elide_heartbeats: bool,
    ) -> None:
        """`stranger` is what places have, besides their address, at which no member ever starts; `members` can start at most."""
        self.now_us = 0
        self.now_order = NEVER
        self.queue = CalendarQueue(members)
        self.nodes: dict[Address, SimulatedNode] = {}
        """All addresses to which anything can be sent."""
        self.running = 0
        """How many members run."""
        self.messages = 0
        """Sent so far, whether they arrived or not; heartbeats that are left out are counted as well."""
        self.links = LinkConditions()
        self.has_several_names = False
        """Whether members of different clusters may meet: their handshakes fail."""
        self.elision = Elision(latency, self.queue) if elide_heartbeats else None
        self._stranger = stranger
        self._order = 0
        self._fingerprint = fingerprint
        self._latency_model = latency
        self._latency = random.Random(f"{seed}/latency").random
        self._heartbeat_latency = random.Random(f"{seed}/latency of heartbeats").random
        self._loss = random.Random(f"{seed}/loss").random
        self._duplication = random.Random(f"{seed}/duplication").random
        self._delay = random.Random(f"{seed}/delay").random
        self._held: list[tuple[SimulatedNode, Address, Receive]] = []
        """The messages that wait to be replayed, in the order of their sending: sender, receiver, message."""

    def make_room(self, addresses: Iterable[Address]) -> None:
        """Give addresses without a member a place where no member listens. Raises `CommandRefused` when there are too many."""
        strangers = [address for address in dict.fromkeys(addresses) if address not in self.nodes]
        if len(self.nodes) + len(strangers) > MOST_NODES:
            raise CommandRefused(f"more than {MOST_NODES} addresses cannot be simulated")
        for address in strangers:
            stranger = replace(self._stranger, label=address, address=address)
            self.nodes[address] = SimulatedNode(len(self.nodes), stranger)

    def move(self, node: SimulatedNode, address: Address) -> None:
        """Let a member that starts at `node` do so at another address. Where it was none listens until one comes."""
        there = self.nodes.get(address)
        if there is not None and there.machine is not None:
            raise CommandRefused(f"{address} is that of {there.label}, which runs")
        self.make_room([address])
        left, node.address = node.address, address
        node.member_configuration = replace(node.member_configuration, address=address)
        self.nodes[address] = node
        if self.nodes[left] is node:
            del self.nodes[left]
            self.make_room([left])

    def set_latency(self, latency: Latency) -> None:
        self.stop_eliding()
        self._latency_model = latency
        for node in self.nodes.values():
            node.deliveries = ()

    def stop_eliding(self) -> None:
        self.end_calm()
        self.elision = None

    def end_calm(self) -> None:
        """Break the calm: heartbeats are left out no more, and those left out are made good."""
        if self.elision is not None:
            self.elision.end_calm((self.now_us, self.now_order))

    def transmit(self, sender: SimulatedNode, deliveries: Deliveries, because: RecordId | None) -> None:
        """Send these messages. Each draws its own latency, but a round of heartbeats draws only once."""
        model = self._latency_model
        arrivals: list[Arrival]
        self.messages += len(deliveries)
        if self.links.conditions or self.has_several_names or model.model != "uniform":
            arrivals = [arrival for delivery in deliveries for arrival in self._on_link(sender, *delivery, because)]
        elif deliveries[0][1].__class__ is Heartbeat:
            self._broadcast(sender, deliveries)
            return
        else:
            latency, order, nodes, address = self._latency, self._order, self.nodes, sender.address
            least_us, spread_us = self.now_us + model.least_us, model.most_us - model.least_us
            arrivals = [
                (
                    least_us + int(latency() * spread_us),
                    order := order + 1,
                    nodes[receiver],
                    Receive(address, message, because),
                    sender,
                    None,
                )
                for receiver, message in deliveries
            ]
            self._order = order
        if arrivals:
            self._fingerprint.add(sender.index)
            if len(arrivals) == 1:
                self.queue.put(arrivals[0])
            else:
                arrivals.sort()
                self.queue.put_all(arrivals)

    def _broadcast(self, sender: SimulatedNode, deliveries: Deliveries) -> None:
        """Send a round of heartbeats, or leave it out. Its schedule is made once for all rounds that repeat it."""
        schedule = sender.schedule
        if schedule is None or sender.deliveries is not deliveries:
            schedule = BroadcastSchedule(sender, deliveries, self._latency_model, self.nodes)
            sender.deliveries, sender.schedule = deliveries, schedule
        draw, first_order = self._heartbeat_latency(), self._order + 1
        self._order += len(schedule)
        if self.elision is not None:
            this = HeartbeatRound(self.now_us, draw, first_order, schedule)
            if self.elision.elides(sender, this, self.running):
                return
        self._fingerprint.add(sender.index)
        self.queue.put_all(schedule.arrivals(self.now_us, draw, first_order))

    def _on_link(
        self, sender: SimulatedNode, address: Address, message: Message, because: RecordId | None
    ) -> Iterator[Arrival]:
        """When and where a message arrives under the condition of its link: not at all, once or twice."""
        target = self.nodes[address]
        condition = self.links.of(sender.label, target.label)
        if target.machine is not None and target.cluster_name != sender.cluster_name:
            if condition is None or not condition.blocked:
                reason = f"belongs to the cluster {target.cluster_name!r}, not {sender.cluster_name!r}"
                self.report_unreachable(sender, target, reason, "other-cluster")
            return
        first_us = self._latency_model.sample_us(self._latency())
        received = Receive(sender.address, message, because)
        if condition is None:
            yield self._arrival(first_us, target, received, sender)
            return
        if condition.blocked == "reset":
            self.report_unreachable(sender, target, "connection reset")
        if condition.blocked:
            return
        kind = str(message.__struct_config__.tag)
        found = conditions_for(condition, kind)
        if any(part.loss and self._loss() < part.loss for part in found) or kind in condition.dropped_kinds:
            return
        if any(part.held for part in found):
            self._held.append((sender, address, received))
            return
        yield self._arrival(first_us + self._delay_us(found), target, received, sender)
        if any(part.duplicate and self._duplication() < part.duplicate for part in found):
            second_us = self._latency_model.sample_us(self._latency())
            yield self._arrival(second_us + self._delay_us(found), target, received, sender)

    def _delay_us(self, conditions: Sequence[KindCondition]) -> int:
        return sum(delay_us(condition, self._delay) for condition in conditions)

    def replay(self, command: ReplayMessages) -> tuple[LinkChanged, ...]:
        """Let the held messages arrive soon, in the order of their sending, whichever member listens by then."""
        kept = []
        at_us = self.now_us + self._latency_model.least_us
        for sender, address, received in self._held:
            if sender.label in command.sources and self.nodes[address].label in command.targets:
                self._order += 1
                self.queue.put((at_us, self._order, self.nodes[address], received, sender, None))
            else:
                kept.append((sender, address, received))
        self._held = kept
        return self.links.apply(command)

    def in_flight(self) -> Iterator[tuple[int, SimulatedNode, Receive]]:
        """Return arrival time, place and content of each message on its way; `NEVER` for messages held for a replay."""
        for at_us, _, target, waiting, *_ in self.queue:
            if isinstance(waiting, Receive):
                yield at_us, target, waiting
        for _, address, received in self._held:
            yield NEVER, self.nodes[address], received

    def put_in_flight(self, due_us: int, address: Address, received: Receive) -> None:
        """Let a message arrive that was sent before this network existed."""
        sender = self.nodes[received.sender]
        if due_us == NEVER:
            self._held.append((sender, address, received))
            return
        self._order += 1
        self.queue.put((max(due_us, self.now_us), self._order, self.nodes[address], received, sender, None))

    def _arrival(self, delay_us: int, target: SimulatedNode, received: Receive, sender: SimulatedNode) -> Arrival:
        self._order += 1
        return self.now_us + delay_us, self._order, target, received, sender, None

    def report_unreachable(
        self, receiver: SimulatedNode, target: SimulatedNode, reason: str, cause: UnreachableCause = "no-answer"
    ) -> None:
        """Let `receiver` hear soon that `target` could not be reached, or that the connection to it is lost."""
        at = self.now_us + self._latency_model.least_us
        self._order += 1
        self.queue.put((at, self._order, receiver, PeerUnreachable(target.address, reason, cause), receiver, None))

    def plan_wake(self, node: SimulatedNode) -> None:
        """Have the member at `node` woken at its next deadline, unless that is planned already."""
        if node.machine is None:
            return
        earliest = node.machine.timers.earliest
        if node.clock is not None:
            # A slow clock shows one time for more than one moment, some of which may be over.
            earliest = max(self.now_us, node.clock.time_us(earliest))
        if earliest < node.wake_at:
            node.wake_at = earliest
            self._order += 1
            self.queue.put((earliest, self._order, node, None, node, None))
