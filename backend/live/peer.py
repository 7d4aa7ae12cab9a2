"""All that a member's transport keeps of one other address."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.live.connection import Connection
from quarterdeck.backend.live.parcel import NOTHING, Parcel

QUEUE_MESSAGES = 256
"""How many messages to one address wait for its dial; the oldest give way."""


@dataclass(eq=False)
class Peer:
    """All there is to know of one other address."""

    address: Address
    connection: Connection | None = None
    attempt: asyncio.Task[None] | None = None
    """Our dial, or the wait for the other side's dial when the two have crossed."""
    dial: Connection | None = None
    """The connection that our dial is making."""
    blackhole: asyncio.TimerHandle | None = None
    """A dial that the link conditions let run into nothing."""
    queue: deque[Parcel] = field(default_factory=lambda: deque(maxlen=QUEUE_MESSAGES))
    delayed: deque[tuple[float, Parcel]] = field(default_factory=deque)
    """Parcels under a delay, in order, each with the loop time at which it is due."""
    timer: asyncio.TimerHandle | None = None
    message: Message | None = None
    """The last message sent, and its parcel."""
    parcel: Parcel = NOTHING

    @property
    def idle(self) -> bool:
        """Whether nothing is under way with it."""
        busy = self.connection or self.attempt or self.blackhole or self.queue or self.delayed or self.timer
        return not busy
