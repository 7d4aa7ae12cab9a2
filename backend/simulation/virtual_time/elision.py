"""Leaving out heartbeats that say nothing new, without changing the outcome of a run.

In a calm cluster nearly everything that happens is a heartbeat that only says once more what the one before it said. A round of
heartbeats may be left out when the very same round was delivered in full to everybody and changed nothing, and nothing at all
has been decided anywhere since: then all that a delivery would do is to move the time at which its sender was last heard of.
That time is worked out when somebody asks for it, which is when the calm ends.

The calm begins when every running member has had such a round since the last record, command or refusal, and each round reaches
everybody else. It ends with the next record, command or refusal: then each receiver is told when it last heard of each
sender, and what is still on its way is put back into the queue, under the times and places in the queue that it would have had.
Whoever draws a round's latencies draws once for it, whether it is left out or not, so both kinds of runs draw the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.effects import Deliveries
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.simulation.virtual_time.latency import Latency
from quarterdeck.backend.simulation.virtual_time.node import Arrival, DeliveryBatch, Node

GOLDEN = 0.6180339887498949
"""Steps of the golden ratio spread a round's messages evenly over the possible latencies, wherever the first one lies."""


QueuePosition = tuple[int, int]
"""A time, and the place in the queue among all that happens then."""


def can_elide(settings: Settings, latency: Latency) -> bool:
    """Whether leaving out is provably without consequence: everybody hears everybody, and only the last time counts."""
    return (
        settings.heartbeat_topology == "all"
        and settings.failure_detector == "deadline"
        and latency.model == "uniform"
        and latency.most_us < settings.heartbeat_interval_us
    )


class BroadcastSchedule:
    """What is the same in all rounds of the same deliveries: how far each message's latency lies beyond that of the first.

    In descending order, so that a batch of deliveries is made of two pieces of `messages` without sorting anything.
    """

    __slots__ = ("keys", "latency", "messages")

    def __init__(self, deliveries: Deliveries, latency: Latency, nodes: dict[Address, Node]) -> None:
        spread_us = max(1, latency.most_us - latency.least_us)
        step_us = int(GOLDEN * spread_us)
        self.latency = latency
        self.messages = sorted(
            (
                (place * step_us % spread_us, place, nodes[address], message)
                for place, (address, message) in enumerate(deliveries)
            ),
            key=itemgetter(0, 1),
            reverse=True,
        )
        self.keys = [-beyond_us for beyond_us, _, _, _ in self.messages]

    def __len__(self) -> int:
        return len(self.messages)

    def batch(self, sent_us: int, draw: float, first_order: int) -> DeliveryBatch:
        """When and where each message of a round arrives, the last first; `draw` spreads it over the possible latencies."""
        spread_us = max(1, self.latency.most_us - self.latency.least_us)
        draw_us = int(draw * spread_us)
        after_us = sent_us + self.latency.least_us + draw_us
        wrapped = bisect_right(self.keys, draw_us - spread_us)
        batch = [
            (after_us + beyond_us, first_order + place, node, message)
            for beyond_us, place, node, message in self.messages[wrapped:]
        ]
        after_us -= spread_us
        batch += [
            (after_us + beyond_us, first_order + place, node, message)
            for beyond_us, place, node, message in self.messages[:wrapped]
        ]
        return batch  # type: ignore[return-value]


class HeartbeatRound:
    """One round of heartbeats that may be left out; what its batch of deliveries is made of."""

    __slots__ = ("draw", "elided", "first_order", "schedule", "sent_us")

    def __init__(self, sent_us: int, draw: float, first_order: int, schedule: BroadcastSchedule) -> None:
        self.sent_us = sent_us
        self.draw = draw
        self.first_order = first_order
        self.schedule = schedule
        self.elided = False


class HeartbeatHistory:
    """What is known of one member's rounds since the calm was last broken."""

    __slots__ = ("before", "calm", "last")

    def __init__(self) -> None:
        self.last: HeartbeatRound | None = None
        self.before: HeartbeatRound | None = None
        """The round before `last`; in calm times all of it has arrived."""
        self.calm = False
        """Whether a whole round has been heard by all without changing anything."""


class Elision:
    """Decides which rounds are left out. It is told of all rounds, in order, and puts back what was left out too early."""

    def __init__(self, latency: Latency, enqueue: Callable[[Node, DeliveryBatch], None]) -> None:
        self.elided = 0
        """Deliveries left out so far."""
        self.is_calm = False
        self._latency = latency
        self._enqueue = enqueue
        self._histories: dict[Node, HeartbeatHistory] = {}
        self._calm_members = 0
        self._floor_us = 0

    def elides(self, node: Node, this: HeartbeatRound, running: int) -> bool:
        """Whether the round need not be delivered, while `running` members run."""
        history = self._histories.setdefault(node, HeartbeatHistory())
        history.before, history.last = history.last, this
        if not history.calm and history.before is not None and history.before.schedule is this.schedule:
            if this.sent_us > history.before.sent_us + self._latency.most_us:
                history.calm = len(this.schedule) == running - 1
                self._calm_members += history.calm
        if not self.is_calm and self._calm_members == running:
            self.is_calm = True
            self._refresh_floor()
        if self.is_calm:
            this.elided = True
            self.elided += len(this.schedule)
        return self.is_calm

    def heard_since_us(self, now_us: int, timeout_us: int) -> int:
        """A time at or after which everybody has heard of everybody; looked up anew when it is older than `timeout_us`."""
        if self._floor_us + timeout_us <= now_us:
            self._refresh_floor()
        return self._floor_us

    def end_calm(self, position: QueuePosition) -> None:
        """Something happens at `position`. Let everybody know what was left out, and put back what has not arrived yet."""
        if self.is_calm:
            for node, history in self._histories.items():
                for this in (history.before, history.last):
                    if this is not None:
                        self._restore(node, this, position)
        self.is_calm = False
        self._histories.clear()
        self._calm_members = 0

    def _refresh_floor(self) -> None:
        self._floor_us = min(
            history.before.sent_us for history in self._histories.values() if history.before is not None
        )

    def _restore(self, node: Node, this: HeartbeatRound, position: QueuePosition) -> None:
        late: list[Arrival] = []
        for arrival in this.schedule.batch(this.sent_us, this.draw, this.first_order):
            at, order, receiver, _ = arrival
            if (at, order) > position:
                late.append(arrival)
            elif receiver.machine is not None:
                receiver.machine.record_heartbeat(node.address, at)
        if late and this.elided:
            self.elided -= len(late)
            self._enqueue(node, late)
