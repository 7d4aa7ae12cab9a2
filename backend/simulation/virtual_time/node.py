"""The places of a simulated world where members live, and what is on its way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.effects import Deliveries
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.simulation.virtual_time.clocks import Clock

if TYPE_CHECKING:
    from quarterdeck.backend.simulation.virtual_time.elision import BroadcastSchedule

CLOCK_BITS = 52
"""A number of the fingerprint holds virtual microseconds (142 years of them), above them the member."""

MOST_NODES = 1 << 11


class DeliveryFailure:
    """What comes back instead of an answer when nobody listens at an address, or the link resets."""

    __slots__ = ("address", "reason")

    def __init__(self, address: Address, reason: str) -> None:
        self.address = address
        self.reason = reason


class Node:
    """A place where lives of one member run, one after another. `machine` is None while none does.

    `clock` is None where the member's clock shows the run's time. `wake_at` is in the run's time.
    """

    __slots__ = (
        *(
            "address",
            "schedule",
            "member_configuration",
            "clock",
            "code",
            "deliveries",
            "kill_point",
            "inbox",
            "index",
            "label",
            "lives",
            "machine",
            "paused",
            "needs_slow_path",
        ),
        "wake_at",
    )

    def __init__(self, index: int, member_configuration: MemberConfiguration, clock: Clock | None = None) -> None:
        self.index = index
        self.code = index << CLOCK_BITS
        self.member_configuration = member_configuration
        self.label = member_configuration.label
        self.address = member_configuration.address
        self.clock = clock
        self.needs_slow_path = clock is not None
        """Whether a delivery needs more than to be handed over: the member is paused or has its own time."""
        self.machine: MemberMachine | None = None
        self.lives = 0
        self.deliveries: Deliveries = ()
        """The last round of heartbeats it sent, and what was made of it."""
        self.schedule: BroadcastSchedule | None = None
        self.kill_point: KillAt | None = None
        """Where in a protocol the present life is killed, or the next one if none runs."""
        self.paused = False
        self.inbox: list[tuple[Node, Message | DeliveryFailure]] = []
        self.wake_at = NEVER

    def set_paused(self, paused: bool) -> None:
        self.paused = paused
        self.needs_slow_path = paused or self.clock is not None

    def local_us(self, now_us: int) -> int:
        """What the member's own clock shows."""
        return now_us if self.clock is None else self.clock.local_us(now_us)


Arrival = tuple[int, int, Node, Message | DeliveryFailure]
"""When something arrives, its place among all that arrives then, where, and what it is."""

DeliveryBatch = list[Arrival]
"""What one member sent at one instant, the last to arrive first. It stands in the queue as one entry, so that a broadcast that
nothing interrupts costs the queue nothing for each of its messages."""
