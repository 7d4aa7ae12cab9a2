"""What a member can receive: every input of `backend.core.member.MemberMachine.step`.

What an operator wants of a member comes in the operator's own words: those commands are inputs as they are.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId, UnreachableCause
from quarterdeck.backend.core.commands import MemberOrder
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.operations import Operation


class Start(Struct, frozen=True, gc=False):
    """Begin to look for the cluster. The first input of every member."""


class Receive(Struct, frozen=True, gc=False):
    """A message came from the member at `sender`. By far the most frequent input."""

    sender: Address
    message: Message
    because: RecordId | None = None
    """The record of its sender that brought it about, where that is known."""


class PeerUnreachable(Struct, frozen=True, gc=False):
    """The transport could not reach `address`, or lost a connection to it without a goodbye."""

    address: Address
    reason: str
    cause: UnreachableCause = "no-answer"


class Tick(Struct, frozen=True, gc=False):
    """The time has come that the member asked for: do what is due."""


class Call(Struct, frozen=True, gc=False):
    """A client asks for an operation on a map. `Answered` with the same number says how it ended, maybe much later.

    A call that is `watched`, if it is for one key, is recorded as well.
    """

    number: int
    operation: Operation
    watched: bool = False


class HeartbeatsElided(Struct, frozen=True, gc=False):
    """Heartbeats that said nothing new came from these addresses at these times, and the driver did not deliver them."""

    heard_us: dict[Address, int]


class PeersHeardSince(Struct, frozen=True, gc=False):
    """Every member of the list was heard of at `since_us` or later, whatever this member received.

    Only for a driver that does not deliver all heartbeats, and for failure detectors with a deadline.
    """

    since_us: int


Input = Start | Receive | PeerUnreachable | Tick | Call | HeartbeatsElided | PeersHeardSince | MemberOrder

START = Start()
TICK = Tick()
