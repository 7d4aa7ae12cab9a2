"""What a member wants done: the whole output of the core, besides the deadline at which it wants its next tick."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.calls.operations import Answer
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.messages import Message

Deliveries = tuple[tuple[Address, Message], ...]


class Transmit(Struct, frozen=True, gc=False):
    """Send each message to its address, in this order; no promise that any arrives."""

    deliveries: Deliveries


class Happened(Struct, frozen=True, gc=False):
    """An event, enveloped and numbered: to be written down."""

    record: Record


class Reconnect(Struct, frozen=True, gc=False):
    """Close every connection once everything before this effect is sent: the member goes on under another uuid."""


class Halt(Struct, frozen=True, gc=False):
    """This incarnation is over: close the process after everything before this effect is done."""

    reason: str
    failed: bool


class Answered(Struct, frozen=True, gc=False):
    """The operation that was begun as `call` has ended so."""

    call: int
    answer: Answer


Effect = Transmit | Happened | Reconnect | Halt | Answered
