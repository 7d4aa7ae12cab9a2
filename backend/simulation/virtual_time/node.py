"""The places of a simulated world where members run, and rounds of heartbeats that repeat themselves."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.effects import Deliveries, MemberProcess
from quarterdeck.backend.core.inputs import PeerUnreachable, Receive
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.failure_detection.failure_detector import DeadlineDetector
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.scenarios.format.clocks import Clock, Latency

CLOCK_BITS = 52
"""A number of the fingerprint holds virtual microseconds (142 years of them), above them the member."""

MOST_NODES = 1 << 11

GOLDEN = 0.6180339887498949
"""Steps of the golden ratio spread a round's messages evenly over the possible latencies, wherever the first one lies."""


class SimulatedNode:
    """A place where incarnations of one member run, one after another. `machine` is None while none does.

    `clock` is None where the member's clock shows the run's time. `wake_at` is in the run's time.
    """

    __slots__ = (
        "address", "clock", "cluster_name", "code", "deliveries", "inbox", "index", "kill_point", "label", "machine",
        "member_configuration", "needs_slow_path", "paused", "process", "schedule", "silent", "starts", "unmoved",
        "wake_at",
    )  # fmt: skip

    process: MemberProcess
    """The object that carries out the effects of the member that runs here; None where no member ever runs."""

    def __init__(self, index: int, member_configuration: MemberConfiguration, clock: Clock | None = None) -> None:
        self.index = index
        self.code = index << CLOCK_BITS
        self.member_configuration = member_configuration
        self.label = member_configuration.label
        self.address = member_configuration.address
        self.cluster_name = member_configuration.cluster_name
        self.clock = clock
        self.needs_slow_path = clock is not None
        """Whether an arrival cannot simply be handed over: the member is paused, or has a clock of its own."""
        self.machine: MemberMachine | None = None
        self.starts = 0
        """How many processes were started here so far."""
        self.deliveries: Deliveries = ()
        """The last round of heartbeats that the member sent. `schedule` is made of it."""
        self.schedule: BroadcastSchedule | None = None
        self.kill_point: KillAt | None = None
        """Where in a protocol the present process is killed, or the next one if none runs."""
        self.silent = False
        """A process runs here of which nothing is known: it takes everything in, and nothing ever comes from it."""
        self.paused = False
        self.inbox: list[tuple[SimulatedNode, Receive | PeerUnreachable]] = []
        """The messages that have arrived while the member is paused, with their senders."""
        self.wake_at = NEVER
        self.unmoved = object()
        """The same object as long as the member has only noted heartbeats and sent the same round of its own."""

    def set_paused(self, paused: bool) -> None:
        self.paused = paused
        self.needs_slow_path = paused or self.clock is not None

    def local_us(self, now_us: int) -> int:
        return now_us if self.clock is None else self.clock.local_us(now_us)

    def end_process(self) -> None:
        self.machine = None
        self.silent = False
        self.kill_point = None
        self.set_paused(False)
        self.inbox.clear()
        self.wake_at = NEVER


Waiting = Receive | PeerUnreachable | None
"""An input of a node: a message, the news that it could not reach another node, or None for a wake-up."""


class RepeatedHeartbeat(Struct, gc=False):
    """The last effect of a heartbeat that is sent anew in each round, if that was to note its time in `detector`.

    The same heartbeat does just that again as long as its receiver is `unmoved`. So the simulation need not step the member.
    """

    unmoved: object = None
    detector: DeadlineDetector | None = None

    def note(self, node: SimulatedNode, machine: MemberMachine, at_us: int, received: Receive) -> None:
        """Keep the detector in which `machine` has noted the heartbeat `received`, in a step without effects."""
        peer = machine.inspect().peers.get(received.sender)
        if peer is not None and type(peer.detector) is DeadlineDetector and peer.detector.last_heard_us == at_us:
            self.unmoved, self.detector = node.unmoved, peer.detector


Arrival = tuple[int, int, SimulatedNode, Waiting, SimulatedNode, RepeatedHeartbeat | None]
"""An event's time, its place among all events of that time, its node, its content, its sender, and its former effect."""


class BroadcastSchedule:
    """What is the same in all rounds of the same deliveries: how far each message's latency lies beyond that of the first.

    In order, so that a round is made of two pieces of `messages` without sorting anything.
    """

    __slots__ = ("latency", "messages", "sender")

    def __init__(
        self, sender: SimulatedNode, deliveries: Deliveries, latency: Latency, nodes: dict[Address, SimulatedNode]
    ) -> None:
        spread_us = max(1, latency.most_us - latency.least_us)
        step_us = int(GOLDEN * spread_us)
        self.sender = sender
        self.latency = latency
        messages = []
        for place, (address, message) in enumerate(deliveries):
            received = Receive(sender.address, message)
            messages.append((place * step_us % spread_us, place, nodes[address], received, RepeatedHeartbeat()))
        self.messages = sorted(messages, key=itemgetter(0, 1))

    def __len__(self) -> int:
        return len(self.messages)

    def arrivals(self, sent_us: int, draw: float, first_order: int) -> list[Arrival]:
        """When and where each message of a round arrives, in order; `draw` spreads it over the possible latencies."""
        spread_us = max(1, self.latency.most_us - self.latency.least_us)
        draw_us = int(draw * spread_us)
        after_us, sender = sent_us + self.latency.least_us + draw_us, self.sender
        place = bisect_left(self.messages, spread_us - draw_us, key=itemgetter(0))
        arrivals: list[Arrival] = []
        for messages, from_us in ((self.messages[place:], after_us - spread_us), (self.messages[:place], after_us)):
            arrivals += [
                (from_us + beyond_us, first_order + number, node, message, sender, repeated)
                for beyond_us, number, node, message, repeated in messages
            ]
        return arrivals
