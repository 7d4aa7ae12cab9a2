"""One TCP connection between two members: its bytes, its handshake, its end. Which to keep is decided elsewhere.

Who closes a connection on purpose says goodbye first, with a frame of no bytes. An end without a goodbye is a fault, and
evidence against the other side: its process died, or the network broke the connection.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId, RefusalCause, UnreachableCause
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.live.security.cluster_secret import ClusterSecret
from quarterdeck.backend.live.security.tls import is_tls_refusal, tls_reason
from quarterdeck.backend.live.transport import frames
from quarterdeck.backend.live.transport.handshake import (
    Agreement,
    HandshakeRefused,
    HandshakeRejection,
    Initiator,
    PeerRejected,
    Responder,
)
from quarterdeck.backend.live.transport.limits import Timeouts, network_of


class CausedMessage(Struct, frozen=True, tag="caused", array_like=True):
    """A message with the record of its sender that brought it about. Members know it from protocol version 4 on."""

    message: Message
    uuid: str
    seq: int


MESSAGE: msgspec.msgpack.Decoder[Message | CausedMessage] = msgspec.msgpack.Decoder(Message | CausedMessage)

WRITE_BACKLOG_BYTES = 1024 * 1024
"""A receiver that leaves this many urgent bytes unread gets no more messages until it reads again."""

BULK_AHEAD_BYTES = 256 * 1024
"""Bulk waits for its turn while more than this is on its way to the system, so that this is all that urgent frames wait for."""

BULK_BACKLOG_BYTES = 64 * 1024 * 1024
"""How much bulk waits for its turn at most: more than one frame of any size, and than what all migrations send at a time."""

UNSENT_BYTES = 128 * 1024
"""How much the system takes from us before it can send it, where that is known."""

TCP_THIN_LINEAR_TIMEOUTS, TCP_RTO_MAX_MS = 16, 44
"""From linux/tcp.h; the second is known from Linux 6.15 on."""

RESENT_WITHIN_MS = 1_000
"""TCP doubles the time between its attempts to send again. On a link that fails again and again, that would soon be silence
for longer than members wait for heartbeats."""

GOODBYE = bytes(frames.PREFIX_BYTES)

TLS_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02]")
"""The first bytes of a member that expects TLS and is called without. No frame of a handshake begins so."""


def reason_of(problem: Exception | None) -> str:
    """Why a connection ended or could not be made, in the system's words; without a problem the other side ended it."""
    if problem is None:
        return CLOSED
    if isinstance(problem, ssl.SSLError):
        return tls_reason(problem)
    if isinstance(problem, socket.gaierror):
        return f"the name of the host does not resolve: {(problem.strerror or str(problem)).lower()}"
    number = problem.errno if isinstance(problem, OSError) else None
    return os.strerror(number).lower() if number else str(problem) or CLOSED


def cause_of(problem: OSError) -> UnreachableCause:
    """Return what the failure says of the address. Members say why they refuse: who hangs up or talks rubbish is none."""
    if isinstance(problem, socket.gaierror):
        return "unresolvable"
    if isinstance(problem, ssl.SSLError):
        return "rejected" if is_tls_refusal(problem) else "no-member"
    hung_up = isinstance(problem, (ConnectionResetError, ConnectionAbortedError)) or str(problem) == CLOSED
    return "no-member" if hung_up else "no-answer"


CLOSED = "connection closed by the other side"


class ConnectionOwner(Protocol):
    """The owner of the connections of one member: its transport."""

    paused: bool
    timeouts: Timeouts
    buffer: memoryview
    joined: Callable[[], bool]
    """Whether the member is in a cluster."""

    def initiator(self, connection: PeerConnection) -> Initiator: ...
    def responder(self, connection: PeerConnection) -> Responder: ...
    def opened(self, connection: PeerConnection) -> None: ...
    def agreed(self, connection: PeerConnection) -> None: ...
    def received(self, connection: PeerConnection, message: Message, because: RecordId | None) -> None: ...
    def protocol_error(
        self, connection: PeerConnection, reason: str, cause: RefusalCause, hostile: bool = True
    ) -> None:
        """Refuse a peer that is no member, or no longer behaves as one; `hostile`: not just a mistake about the cluster."""

    def peer_rejected(self, remote: str, reason: str, cause: RefusalCause) -> None: ...
    def lost(self, connection: PeerConnection, reason: str) -> None:
        """Note that the connection is over. `reason` is its failure; empty when one side ended it on purpose."""


class PeerConnection(asyncio.BufferedProtocol):
    """`dialled` is the address we dialled, None when the other side did. `peer` is None until both have agreed."""

    def __init__(
        self,
        owner: ConnectionOwner,
        dialled: Address | None = None,
        hello_by: float = 0.0,
        secret: ClusterSecret | None = None,
    ) -> None:
        """`hello_by` is until when, in loop time, the one who has dialled us may take to introduce itself."""
        self.dialled = dialled
        self.secret = secret
        """By which we introduce ourselves, and later the one that both have proven."""
        self.peer: Address | None = None
        self.peer_uuid = ""
        self.version = 0
        """The protocol version of this connection, once both have agreed."""
        self.write_paused = False
        self.closed = False
        self.outcome: asyncio.Future[ConnectionError | None] | None = (
            asyncio.get_running_loop().create_future() if dialled else None
        )
        """Of the handshake: why it failed, as a result, since a dial that is given up waits for it no more."""
        self.settled: Callable[[], None] | None = None
        """To be called when the handshake is done, or the connection has ended: it gives the slot back."""
        self._owner = owner
        self._handshake: Initiator | Responder | None = None
        self._bulk: deque[bytes] = deque()
        self._bulk_bytes = 0
        self._bulk_ahead_bytes = 0
        """The last frame of bulk that was written."""
        self._parser = frames.FrameParser(frames.MAX_HANDSHAKE_BYTES)
        self._transport: asyncio.Transport | None = None
        self._hello_by = hello_by
        self._timer: asyncio.TimerHandle | None = None
        """For the hello until both have agreed, and then for the rest of a frame."""
        self._remote = ""
        self._fault = ""

    @property
    def remote(self) -> str:
        """Where the other end is, as text for people."""
        return self._remote or self.dialled or "an unknown address"

    @property
    def host(self) -> str:
        """The origin that the other end cannot change at will: its host, as the system knows it, or the network of its host."""
        return network_of(self._remote.rpartition(":")[0])

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The certificate of the other side, as `ssl.SSLSocket.getpeercert` gives it."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None

    @property
    def bulk_backlog(self) -> tuple[int, int]:
        """How many frames of bulk wait for the other side to read, and how many bytes."""
        return len(self._bulk), self._bulk_bytes

    # What the owner does with it

    def send(self, frame: bytes) -> None:
        """Write one frame, ahead of the bulk that waits; dropped when the other side has long ceased to read."""
        transport = self._transport
        if transport is None or self.closed or transport.is_closing():
            return
        if not self.write_paused or transport.get_write_buffer_size() <= WRITE_BACKLOG_BYTES + self._bulk_ahead_bytes:
            transport.write(frame)

    def send_bulk(self, frame: bytes) -> None:
        """Write one frame after all bulk before it, as soon as the other side has read enough; dropped when too much waits."""
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        if not self.write_paused and not self._bulk:
            self._write_bulk(self._transport, frame)
        elif self._bulk_bytes + len(frame) <= BULK_BACKLOG_BYTES:
            self._bulk.append(frame)
            self._bulk_bytes += len(frame)

    def _write_bulk(self, transport: asyncio.Transport, frame: bytes) -> None:
        """Hand the bytes to asyncio, which may choke the connection; urgent ones have their own room behind it."""
        self._bulk_ahead_bytes = len(frame)
        transport.write(frame)

    def abort(self) -> None:
        """End it at once; unwritten bytes are lost."""
        self._end()
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it after everything written so far is under way, saying goodbye."""
        if self._transport is not None and not self.closed:
            while self._bulk:
                self._transport.write(self._bulk.popleft())
            if self.peer is not None:
                self._transport.write(GOODBYE)
        self._hang_up()

    def refuse(self, answer: HandshakeRejection) -> None:
        """End it, and say why to a peer that is not identified yet."""
        self.send(frames.frame_of(structs.replace(answer, joined=self._owner.joined())))
        self.close()

    def reset(self, reason: str) -> None:
        """End it at once as something that has happened to it: its owner learns that it was lost, and why."""
        self._fault = reason
        self.abort()

    def pause(self) -> None:
        """Read no more; arriving bytes wait in the kernel, as for a frozen process."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            if self.dialled and self.peer is None and self._handshake is None:
                self._say_hello()
            if self._timer is not None and self.peer is None:  # what waits in the kernel is read before it can be late
                self._cancel_timer()
                self._await_hello_anew()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=BULK_AHEAD_BYTES)
        _set_socket_options(transport)
        name = transport.get_extra_info("peername")
        self._remote = f"{name[0]}:{name[1]}" if name else ""
        if self.closed:
            transport.abort()
            return
        self._owner.opened(self)
        if self.dialled is None:
            self._handshake = self._owner.responder(self)
            self._timer = asyncio.get_running_loop().call_at(self._hello_by, self._hello_is_late)
        if self._owner.paused:
            transport.pause_reading()
        elif self.dialled is not None:
            self._say_hello()

    def get_buffer(self, sizehint: int) -> memoryview:
        """One buffer serves all connections of a member, for it is read out before anything else is received."""
        return self._owner.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.take(self._owner.buffer[:nbytes])

    def take(self, data: memoryview) -> None:
        """Take the words of the other side."""
        try:
            for payload in self._parser.feed(data):
                if self.closed:
                    return
                if self.peer is None:
                    self._shake_hands(payload)
                elif payload:
                    content = frames.content_of(MESSAGE, payload)
                    if isinstance(content, CausedMessage):
                        self._owner.received(self, content.message, RecordId(content.uuid, content.seq))
                    else:
                        self._owner.received(self, content, None)
                else:
                    self._hang_up()
        except frames.BadFrame as problem:
            if self.dialled is not None and self.peer is None and TLS_ALERT.match(data):
                self._conclude(HandshakeRefused("it speaks TLS, which is not switched on at this member"))
                self.abort()
            else:
                self._protocol_error(str(problem))
        else:
            if self._parser.pending_bytes and self._timer is None and self.peer is not None:
                self._await_frame(self._parser.completed)

    def eof_received(self) -> None:
        if self._parser.pending_bytes and self.peer is None and not self.closed:
            self._protocol_error("hung up in the middle of a frame")

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        while self._bulk and not self.write_paused and not self.closed and self._transport is not None:
            frame = self._bulk.popleft()
            self._bulk_bytes -= len(frame)
            self._write_bulk(self._transport, frame)

    def connection_lost(self, problem: Exception | None) -> None:
        reason = self._fault or ("" if self.closed else reason_of(problem))
        self._end()
        self._settle()
        if isinstance(problem, ssl.SSLError):
            self._conclude(HandshakeRefused(reason_of(problem), cause=cause_of(problem)))
        self._conclude(ConnectionResetError("it closed the connection during the handshake without a word"))
        self._transport = None
        self._owner.lost(self, reason)

    # The handshake

    def _say_hello(self) -> None:
        handshake = self._handshake = self._owner.initiator(self)
        self.send(frames.frame_of(handshake.hello))

    def _await_hello_anew(self) -> None:
        seconds = self._owner.timeouts.hello_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._hello_is_late)

    def _hello_is_late(self) -> None:
        if self._owner.paused:
            self._await_hello_anew()
        else:
            self._protocol_error(f"said no hello within {self._owner.timeouts.hello_seconds:g} s", "too-slow")

    def _shake_hands(self, payload: memoryview) -> None:
        handshake = self._handshake
        assert handshake is not None
        try:
            reply = handshake.take(payload)
        except HandshakeRefused as refusal:
            self._conclude(refusal)
            self.abort()
        except PeerRejected as peer_rejected:
            answer = peer_rejected.answer
            if not answer.crossed:
                self._owner.protocol_error(self, answer.reason, peer_rejected.cause, peer_rejected.hostile)
            self.refuse(answer)
        else:
            if reply is not None:
                self.send(frames.frame_of(reply))
            if handshake.agreement is not None:
                self._agree(handshake.agreement)

    def _agree(self, agreement: Agreement) -> None:
        self.peer, self.peer_uuid, self.secret = agreement.address, agreement.uuid, agreement.secret
        self.version = agreement.version
        self._handshake = None
        self._parser.limit = frames.MAX_FRAME_BYTES
        self._cancel_timer()
        self._settle()
        self._conclude(None)
        self._owner.agreed(self)

    def _settle(self) -> None:
        if self.settled is not None:
            self.settled()
            self.settled = None

    def _await_frame(self, completed: int) -> None:
        """Begin to wait for the rest of the frame after `completed` others; frames that come at once need no timer."""
        seconds = self._owner.timeouts.frame_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._frame_is_late, completed)

    def _frame_is_late(self, completed: int) -> None:
        self._timer = None
        if not self._parser.pending_bytes or self.closed:
            return
        if self._parser.completed != completed or self._owner.paused:
            self._await_frame(self._parser.completed)
        else:
            self._protocol_error(f"did not finish a frame within {self._owner.timeouts.frame_seconds:g} s", "too-slow")

    def _protocol_error(self, reason: str, cause: RefusalCause = "no-member") -> None:
        self._conclude(HandshakeRefused(f"no member answers there: it {reason}", cause="no-member"))
        if self.dialled is not None and self.peer is None:
            self.abort()
            return
        self._owner.protocol_error(self, reason, cause)
        if self.peer is None:
            self.refuse(HandshakeRejection(reason))
        else:
            self.reset(f"the other side {reason}")

    def _conclude(self, problem: ConnectionError | None) -> None:
        if self.outcome is not None and not self.outcome.done():
            self.outcome.set_result(problem)

    def _hang_up(self) -> None:
        """Close the connection, and abort it if the other side does not read the rest: asyncio would wait for ever."""
        self._end()
        if self._transport is not None:
            self._transport.close()
            seconds = self._owner.timeouts.close_seconds
            self._timer = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def _end(self) -> None:
        self.closed = True
        self._handshake = None
        self._bulk.clear()
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _set_socket_options(transport: asyncio.Transport) -> None:
    """Have the system take only little ahead, which nothing urgent can overtake, and send soon again what was lost."""
    own = transport.get_extra_info("socket")
    if own is None or sys.platform != "linux":
        return
    for option, value in (
        (socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES),
        (TCP_THIN_LINEAR_TIMEOUTS, 1),
        (TCP_RTO_MAX_MS, RESENT_WITHIN_MS),
    ):
        with suppress(OSError):  # an older kernel does not know it
            own.setsockopt(socket.IPPROTO_TCP, option, value)
