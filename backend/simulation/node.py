"""The places of a simulated world where members live, and what is on its way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.effects import Deliveries
from quarterdeck.backend.core.member import Birth, MemberMachine
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.simulation.clocks import Clock

if TYPE_CHECKING:
    from quarterdeck.backend.simulation.elision import Aims

CLOCK_BITS = 52
"""A number of the fingerprint holds virtual microseconds (142 years of them), above them the member."""

MOST_NODES = 1 << 11


class Refusal:
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
            "aims",
            "birth",
            "clock",
            "code",
            "deliveries",
            "dies_at",
            "inbox",
            "index",
            "label",
            "lives",
            "machine",
            "paused",
            "uncommon",
        ),
        "wake_at",
    )

    def __init__(self, index: int, birth: Birth, clock: Clock | None = None) -> None:
        self.index = index
        self.code = index << CLOCK_BITS
        self.birth = birth
        self.label = birth.label
        self.address = birth.address
        self.clock = clock
        self.uncommon = clock is not None
        """Whether a delivery needs more than to be handed over: the member is paused or has its own time."""
        self.machine: MemberMachine | None = None
        self.lives = 0
        self.deliveries: Deliveries = ()
        """The last round of heartbeats it sent, and what was made of it."""
        self.aims: Aims | None = None
        self.dies_at: KillAt | None = None
        """Where in a protocol the present life is killed, or the next one if none runs."""
        self.paused = False
        self.inbox: list[tuple[Node, Message | Refusal]] = []
        self.wake_at = NEVER

    def set_paused(self, paused: bool) -> None:
        self.paused = paused
        self.uncommon = paused or self.clock is not None

    def local_us(self, now_us: int) -> int:
        """What the member's own clock shows."""
        return now_us if self.clock is None else self.clock.local_us(now_us)


Arrival = tuple[int, int, Node, Message | Refusal]
"""When something arrives, its place among all that arrives then, where, and what it is."""

Flight = list[Arrival]
"""What one member sent at one instant, the last to arrive first. It stands in the queue as one entry, so that a broadcast that
nothing interrupts costs the queue nothing for each of its messages."""
