"""What a member wants done: the whole output of the core, besides the deadline at which it wants its next tick.

`carry_out` is how every driver does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import KillAt
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.operations import Answer

Deliveries = tuple[tuple[Address, Message], ...]


class Transmit(Struct, frozen=True, gc=False):
    """Send each message to its address, in this order; no promise that any arrives."""

    deliveries: Deliveries
    because: RecordId | None = None
    """The record that brought the messages about. It goes with them, so that what they bring about can name it."""


class Happened(Struct, frozen=True, gc=False):
    """An event, enveloped and numbered: to be written down."""

    record: Record


Incarnations = tuple[tuple[Address, str], ...]
"""Members by address and uuid."""


class Disconnect(Struct, frozen=True, gc=False):
    """Close the connections with these incarnations, or all when None, once everything before this effect is sent.

    Another message to one of them opens a new one.
    """

    incarnations: Incarnations | None = None


class Halt(Struct, frozen=True, gc=False):
    """This incarnation is over: close the process after everything before this effect is done."""

    reason: str
    failed: bool


class OperationAnswered(Struct, frozen=True, gc=False):
    """The operation that was begun as `call` has ended so."""

    call: int
    answer: Answer


Effect = Transmit | Happened | Disconnect | Halt | OperationAnswered


class MemberProcess(Protocol):
    """What a driver provides for the member that it runs: all that an effect can ask for."""

    @property
    def kill_point(self) -> KillAt | None:
        """Where this member is to be killed, if an operator asked for that."""

    def transmit(self, deliveries: Deliveries, because: RecordId | None) -> None:
        """Send these messages, in this order, each with the record that brought it about."""

    def record(self, record: Record) -> None:
        """Write `record` down."""

    def answer(self, call: int, answer: Answer) -> None:
        """Give the answer to the client that waits for this call."""

    def disconnect(self, incarnations: Incarnations | None) -> None:
        """Close the connections with these incarnations, or all when None, once everything before is sent."""

    def halt(self, reason: str, *, failed: bool) -> None:
        """End as a process that exits by itself, once everything before is done."""

    def reach_kill_point(self) -> None:
        """End as a process that is killed."""


def carry_out(effects: Sequence[Effect], process: MemberProcess) -> None:
    """Do what `effects` ask for, in their order. Nothing that follows a halt, or the event of a kill point, is done.

    A kill point with `after` lets the other effects of the same step be done first.
    """
    reached = False
    for effect in effects:
        if effect.__class__ is Transmit:
            process.transmit(effect.deliveries, effect.because)
        elif isinstance(effect, Happened):
            process.record(effect.record)
            kill_point = process.kill_point
            if kill_point is not None and effect.record.event.__struct_config__.tag == kill_point.event:
                reached = True
                if not kill_point.after:
                    break
        elif isinstance(effect, OperationAnswered):
            process.answer(effect.call, effect.answer)
        elif isinstance(effect, Disconnect):
            process.disconnect(effect.incarnations)
        elif isinstance(effect, Halt):
            process.halt(effect.reason, failed=effect.failed)
            return
    if reached:
        process.reach_kill_point()
