"""Leaving out heartbeats that say nothing new, without changing the outcome of a run.

In a calm cluster nearly everything that happens is a heartbeat that only says once more what the one before it said. A round of
heartbeats may be left out when the very same round was delivered in full to all and changed nothing, and nothing at all
has been decided anywhere since: then all that a delivery would do is to move the time at which its sender was last heard of.
That time is worked out when it is asked for, which is when the calm ends.

The calm begins when every running member has had such a round since the last record, command or refusal, and each round reaches
all others. It ends with the next record, command or refusal: then each receiver learns when it last heard of each
sender, and what is still on its way is put back into the queue, under the times and places in the queue that it would have had.
The network draws a round's latencies once for it, whether it is left out or not, so both kinds of runs draw the same.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.inputs import HeartbeatsElided
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.scenarios.format.clocks import Latency
from quarterdeck.backend.simulation.virtual_time.calendar_queue import CalendarQueue
from quarterdeck.backend.simulation.virtual_time.node import Arrival, BroadcastSchedule, SimulatedNode

QueuePosition = tuple[int, int]
"""A time, and the place in the queue among all that happens then."""


def can_elide(settings: Settings, latency: Latency) -> bool:
    """Whether leaving out is provably without consequence: all hear all, and only the last time counts."""
    return (
        settings.heartbeat_topology == "all"
        and settings.failure_detector == "deadline"
        and latency.model == "uniform"
        and latency.most_us < settings.heartbeat_interval_us
    )


@dataclass(slots=True, eq=False)
class HeartbeatRound:
    """One round of heartbeats that may be left out; the facts from which its arrivals are made."""

    sent_us: int
    draw: float
    first_order: int
    schedule: BroadcastSchedule
    elided: bool = False


@dataclass(slots=True, eq=False)
class HeartbeatHistory:
    """The known rounds of one member since the calm was last broken."""

    last: HeartbeatRound | None = None
    before: HeartbeatRound | None = None
    """The round before `last`; in calm times all of it has arrived."""
    calm: bool = False
    """Whether a whole round has been heard by all without changing anything."""


class Elision:
    """Decides which rounds are left out. It sees all rounds, in order, and puts back rounds that were left out too early."""

    def __init__(self, latency: Latency, queue: CalendarQueue) -> None:
        self.elided = 0
        """Deliveries left out so far."""
        self.is_calm = False
        self._latency = latency
        self._queue = queue
        self._histories: dict[SimulatedNode, HeartbeatHistory] = {}
        self._calm_members = 0
        self._floor_us = 0

    def elides(self, node: SimulatedNode, this: HeartbeatRound, running: int) -> bool:
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
        """Return a time since which all members have heard of one another, looked up anew when it is older than `timeout_us`."""
        if self._floor_us + timeout_us <= now_us:
            self._refresh_floor()
        return self._floor_us

    def end_calm(self, position: QueuePosition) -> None:
        """Break the calm at `position`: show members the rounds left out, and put back heartbeats that have not arrived."""
        if self.is_calm:
            heard: defaultdict[SimulatedNode, dict[Address, int]] = defaultdict(dict)
            for node, history in self._histories.items():
                for this in (history.before, history.last):
                    if this is not None:
                        self._restore(node, this, position, heard)
            for receiver, heard_us in heard.items():
                if receiver.machine is not None:
                    receiver.machine.step(position[0], HeartbeatsElided(heard_us))
        self.is_calm = False
        self._histories.clear()
        self._calm_members = 0

    def _refresh_floor(self) -> None:
        rounds = (history.before for history in self._histories.values())
        self._floor_us = min(earlier.sent_us for earlier in rounds if earlier is not None)

    def _restore(
        self,
        node: SimulatedNode,
        this: HeartbeatRound,
        position: QueuePosition,
        heard: dict[SimulatedNode, dict[Address, int]],
    ) -> None:
        """Sort a round into the arrivals until `position`, which go into `heard` by their receivers, and the rest."""
        late: list[Arrival] = []
        for arrival in this.schedule.arrivals(this.sent_us, this.draw, this.first_order):
            at, order, receiver, *_ = arrival
            if (at, order) > position:
                late.append(arrival)
            elif heard[receiver].get(node.address, 0) < at:
                heard[receiver][node.address] = at
        if late and this.elided:
            self.elided -= len(late)
            self._queue.put_all(late)
