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
from quarterdeck.backend.simulation.latency import Latency
from quarterdeck.backend.simulation.node import Arrival, Flight, Node

GOLDEN = 0.6180339887498949
"""Steps of the golden ratio spread a round's messages evenly over the possible latencies, wherever the first one lies."""


Moment = tuple[int, int]
"""A time, and the place in the queue among all that happens then."""


def can_leave_out(settings: Settings, latency: Latency) -> bool:
    """Whether leaving out is provably without consequence: everybody hears everybody, and only the last time counts."""
    return (
        settings.heartbeat_topology == "all"
        and settings.failure_detector == "deadline"
        and latency.model == "uniform"
        and latency.most_us < settings.heartbeat_interval_us
    )


class Aims:
    """What is the same in all rounds of the same deliveries: how far each message's latency lies beyond that of the first.

    In descending order, so that a flight is made of two pieces of `messages` without sorting anything.
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

    def flight(self, sent_us: int, draw: float, first_order: int) -> Flight:
        """When and where each message of a round arrives, the last first; `draw` spreads it over the possible latencies."""
        spread_us = max(1, self.latency.most_us - self.latency.least_us)
        draw_us = int(draw * spread_us)
        after_us = sent_us + self.latency.least_us + draw_us
        wrapped = bisect_right(self.keys, draw_us - spread_us)
        flight = [
            (after_us + beyond_us, first_order + place, node, message)
            for beyond_us, place, node, message in self.messages[wrapped:]
        ]
        after_us -= spread_us
        flight += [
            (after_us + beyond_us, first_order + place, node, message)
            for beyond_us, place, node, message in self.messages[:wrapped]
        ]
        return flight  # type: ignore[return-value]


class Round:
    """One round of heartbeats that may be left out; what its flight is made of."""

    __slots__ = ("aims", "draw", "first_order", "left_out", "sent_us")

    def __init__(self, sent_us: int, draw: float, first_order: int, aims: Aims) -> None:
        self.sent_us = sent_us
        self.draw = draw
        self.first_order = first_order
        self.aims = aims
        self.left_out = False


class Beat:
    """What is known of one member's rounds since the calm was last broken."""

    __slots__ = ("before", "calm", "last")

    def __init__(self) -> None:
        self.last: Round | None = None
        self.before: Round | None = None
        """The round before `last`; in calm times all of it has arrived."""
        self.calm = False
        """Whether a whole round has been heard by all without changing anything."""


class Elision:
    """Decides which rounds are left out. It is told of all rounds, in order, and puts back what was left out too early."""

    def __init__(self, latency: Latency, put_back: Callable[[Node, Flight], None]) -> None:
        self.left_out = 0
        """Deliveries left out so far."""
        self.is_calm = False
        self._latency = latency
        self._put_back = put_back
        self._beats: dict[Node, Beat] = {}
        self._calm_beats = 0
        self._floor_us = 0

    def leaves_out(self, node: Node, this: Round, running: int) -> bool:
        """Whether the round need not be delivered, while `running` members run."""
        beat = self._beats.setdefault(node, Beat())
        beat.before, beat.last = beat.last, this
        if not beat.calm and beat.before is not None and beat.before.aims is this.aims:
            if this.sent_us > beat.before.sent_us + self._latency.most_us:
                beat.calm = len(this.aims) == running - 1
                self._calm_beats += beat.calm
        if not self.is_calm and self._calm_beats == running:
            self.is_calm = True
            self._refresh_floor()
        if self.is_calm:
            this.left_out = True
            self.left_out += len(this.aims)
        return self.is_calm

    def heard_since_us(self, now_us: int, patience_us: int) -> int:
        """A time at or after which everybody has heard of everybody; looked up anew when it is older than `patience_us`."""
        if self._floor_us + patience_us <= now_us:
            self._refresh_floor()
        return self._floor_us

    def end_calm(self, moment: Moment) -> None:
        """Something happens at `moment`. Let everybody know what was left out, and put back what has not arrived yet."""
        if self.is_calm:
            for node, beat in self._beats.items():
                for this in (beat.before, beat.last):
                    if this is not None:
                        self._make_up(node, this, moment)
        self.is_calm = False
        self._beats.clear()
        self._calm_beats = 0

    def _refresh_floor(self) -> None:
        self._floor_us = min(beat.before.sent_us for beat in self._beats.values() if beat.before is not None)

    def _make_up(self, node: Node, this: Round, moment: Moment) -> None:
        late: list[Arrival] = []
        for arrival in this.aims.flight(this.sent_us, this.draw, this.first_order):
            at, order, receiver, _ = arrival
            if (at, order) > moment:
                late.append(arrival)
            elif receiver.machine is not None:
                receiver.machine.heard_of(node.address, at)
        if late and this.left_out:
            self.left_out -= len(late)
            self._put_back(node, late)
