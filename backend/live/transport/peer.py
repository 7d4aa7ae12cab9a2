"""The state of a member's transport about one other address, and the frames that wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.messages import DataMessage
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.messages import LiteChangeRefusal, LiteChangeRequest, PartitionMessage
from quarterdeck.backend.live.transport.connection import MESSAGE, CausedMessage, PeerConnection
from quarterdeck.backend.live.transport.frames import PREFIX_BYTES, FrameTooLarge, frame_of

_LOG = logging.getLogger(__name__)

QUEUE_MESSAGES = 256
"""How many messages to one address wait for its dial; the oldest give way."""


BULK = frozenset((*get_args(PartitionMessage), *get_args(DataMessage)))
"""Messages about tables and data. They may be long, and stay in order among themselves; all others go ahead of them."""


VERSION_OF_KIND: dict[type[Message], int] = {LiteChangeRequest: 3, LiteChangeRefusal: 3}
"""In which protocol version a kind of message came in. Members of an earlier one would close the connection at it."""

VERSION_OF_CAUSES = 4


class QueuedFrame(NamedTuple):
    """An encoded message that waits to be written; `is_bulk` names its lane of the connection."""

    frame: bytes
    is_bulk: bool
    version: int = 0
    """The protocol version that its receiver must speak."""
    because: RecordId | None = None
    """The record that caused the message; it goes around the message to members that know of causes."""

    def write_to(self, connection: PeerConnection) -> None:
        """Write the frame, unless the receiver would not know what it is. Who needs an answer to it gives up in time."""
        if self.version > connection.version:
            _LOG.info("%s is of an earlier version, and is not sent what it does not know", connection.peer)
        elif self.is_bulk:
            connection.send_bulk(self.frame_for(connection.version))
        else:
            connection.send(self.frame_for(connection.version))

    def frame_for(self, version: int) -> bytes:
        """Return the frame for members of this protocol version, without the cause where they do not know of any."""
        if self.because is None or version < VERSION_OF_CAUSES:
            return self.frame
        message = msgspec.Raw(memoryview(self.frame)[PREFIX_BYTES:])
        try:
            return frame_of(CausedMessage(message, self.because.uuid, self.because.seq))  # type: ignore[arg-type]
        except FrameTooLarge:  # by the cause alone
            return self.frame


NO_FRAME = QueuedFrame(b"", is_bulk=False)


def queued_frame_of(message: Message, because: RecordId | None = None) -> QueuedFrame:
    """Make the frame of a message.

    Raises:
        FrameTooLarge: The message is longer than allowed.
    """
    return QueuedFrame(frame_of(message), type(message) in BULK, VERSION_OF_KIND.get(type(message), 0), because)


class WireQueues(NamedTuple):
    """The numbers of waiting frames of a member's connections, and of connections that are not those of members."""

    messages_for_dials: int
    """Frames to addresses without a connection so far."""
    bulk_frames: int
    """Of tables and data, until their receivers have read enough."""
    bulk_bytes: int
    strangers: int
    """Connections that have not said yet whose they are."""
    http_connections: int


def message_of(frame: bytes) -> Message:
    """Return the message that a frame of our own holds."""
    return MESSAGE.decode(memoryview(frame)[PREFIX_BYTES:])  # type: ignore[return-value]


@dataclass(eq=False)
class TransportPeer:
    """The facts about one other address."""

    address: Address
    connection: PeerConnection | None = None
    attempt: asyncio.Task[None] | None = None
    """Our dial, or the wait for the other side's dial when the two have crossed."""
    dial: PeerConnection | None = None
    """The connection that our dial is making."""
    blackhole: asyncio.TimerHandle | None = None
    """A dial that the link conditions let run into nothing."""
    queue: deque[QueuedFrame] = field(default_factory=lambda: deque(maxlen=QUEUE_MESSAGES))
    delayed: deque[tuple[float, QueuedFrame]] = field(default_factory=deque)
    """Frames under a delay, in order, each with the loop time at which it is due."""
    timer: asyncio.TimerHandle | None = None
    message: Message | None = None
    """The last message sent, and its frame."""
    queued_frame: QueuedFrame = NO_FRAME

    def waiting(self, now_seconds: float) -> Iterator[tuple[float, Message, RecordId | None]]:
        """Yield the messages that wait to be sent to it, each with how many seconds from now."""
        for frame in self.queue:
            yield 0.0, message_of(frame.frame), frame.because
        for due_seconds, frame in self.delayed:
            yield max(0.0, due_seconds - now_seconds), message_of(frame.frame), frame.because

    @property
    def idle(self) -> bool:
        """Whether nothing is under way with it."""
        busy = self.connection or self.attempt or self.blackhole or self.queue or self.delayed or self.timer
        return not busy
