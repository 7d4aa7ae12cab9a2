"""The connections of one member: it listens, dials, keeps one connection per pair, and applies the link conditions.

Two lanes lead to each address: bulk data waits, in order, for the receiver to read; all else goes ahead of it. The member learns,
once, when a dial fails or when the connection of a pair ends without a goodbye. A blackhole is nothing but silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from quarterdeck.backend.core.address import Address, host_of, numeric_order, port_of
from quarterdeck.backend.core.causes import RecordId, RefusalCause, UnreachableCause, one_line
from quarterdeck.backend.core.effects import Incarnations
from quarterdeck.backend.core.events import StrangerRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.live.security.tls import OPEN, Tls, WireSecurity, certificate_mismatch
from quarterdeck.backend.live.transport.connection import PeerConnection, cause_of, reason_of
from quarterdeck.backend.live.transport.handshake import (
    HandshakeHello,
    HandshakeRefused,
    HandshakeRejection,
    Initiator,
    Responder,
    hello_of,
)
from quarterdeck.backend.live.transport.limits import DEFAULT_LIMITS, DEFAULT_TIMEOUTS, Timeouts, TransportLimits
from quarterdeck.backend.live.transport.listener import TLS_SHUTDOWN_SECONDS, HttpHandover, Listener
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.live.transport.peer import NO_FRAME, QueuedFrame, TransportPeer, WireQueues, queued_frame_of

BUFFER_BYTES = 64 * 1024
"""How much is read from a socket at a time. Fixed: a fresh buffer for each read costs more than all the rest."""

RESET = "connection reset by the network"
NO_ANSWER: UnreachableCause = "no-answer"

CLOSED_LOOK_SECONDS = 0.005


class Receiver(Protocol):
    """Receives the events of the network."""

    def received(self, sender: Address, message: Message, because: RecordId | None) -> None: ...
    def unreachable(self, address: Address, reason: str, cause: UnreachableCause) -> None: ...
    def stranger_refused(self, refused: StrangerRefused) -> None: ...


class MemberTransport:
    """The network side of the member at `address`. `uuid` is asked at each handshake, as it changes with a merge."""

    def __init__(
        self,
        address: Address,
        cluster: str,
        uuid: Callable[[], str],
        network: LiveNetwork,
        receiver: Receiver,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        http: HttpHandover | None = None,
        security: WireSecurity = OPEN,
        limits: TransportLimits = DEFAULT_LIMITS,
        bind_host: str = "",
        joined: Callable[[], bool] = lambda: False,
    ) -> None:
        """`http` takes over who speaks HTTP on the member's port; without it that one is refused like others.

        `bind_host` is where to listen when that is not the host of `address`; `joined` says whether the member is in a cluster.
        Raises `BadCertificate`.
        """
        self.address = address
        self.paused = False
        self.joined = joined
        self.buffer = memoryview(bytearray(BUFFER_BYTES))
        self.timeouts = timeouts
        self._cluster = cluster
        self._uuid = uuid
        self._network = network
        self._receiver = receiver
        self._timed_out = f"timed out after {timeouts.connect_seconds:g} s"
        self._loop = asyncio.get_running_loop()
        self._bind_host = bind_host or host_of(address)
        self.keyring = ClusterKeyring(ClusterSecret(security.secret, cluster)) if security.secret else None
        self._tls = Tls(security.tls) if security.tls is not None else None
        self._listener = Listener(self, http, self._tls, limits)
        self.known = self._listener.known
        self.peers: dict[Address, TransportPeer] = {}
        self._connections: set[PeerConnection] = set()
        self._closed = False
        self._last_message: Message | None = None
        self._last_frame = NO_FRAME

    # What the member does

    async def listen(self, http_port: int | None = None) -> None:
        """Bind and accept; on `http_port`, if that is given, HTTP only. Raises OSError when the port is not free."""
        port = port_of(self.address) if http_port is None else http_port
        await self._listener.listen(self._bind_host, port, frames=http_port is None)

    def send(self, address: Address, message: Message, because: RecordId | None = None) -> None:
        """Send `message`, dialling first if need be. Raises `FrameTooLarge`; nothing else is known of its fate."""
        if self._closed:
            return
        peer = self.peers.get(address) or self._peer(address)
        queued_frame = self._queued_frame(peer, message, because)
        condition = None if self._network.plain else self._network.condition(self.address, address)
        for _ in range(1 if condition is None else self._network.copies(condition, message)):
            apart_us = self._network.delay_of_kind_us(condition, message) if condition is not None else 0
            if apart_us:  # messages of other kinds overtake it
                self._loop.call_later(apart_us / SECOND_US, self._send_later_on, address, queued_frame)
            else:
                self._send_in_turn(peer, queued_frame, condition)

    def _send_later_on(self, to: Address, queued_frame: QueuedFrame) -> None:
        if not self._closed:
            self._send_in_turn(self._peer(to), queued_frame, self._network.condition(self.address, to))

    def _send_in_turn(self, peer: TransportPeer, queued_frame: QueuedFrame, condition: LinkChanged | None) -> None:
        delay_us = self._network.delay_us(condition) if condition is not None else 0
        if peer.delayed or delay_us:
            self._send_late(peer, queued_frame, delay_us)
        else:
            self._send_now(peer, queued_frame, condition)

    def _send_now(self, peer: TransportPeer, queued_frame: QueuedFrame, condition: LinkChanged | None) -> None:
        """Write the frame, or dial first. A cut link drops it, and lets the sender notice as it would on a real network."""
        connection = peer.connection
        if connection is not None and connection.closed:
            connection = None
        if condition is not None and condition.blocked == "reset":
            self._loop.call_soon(self._unreachable, peer.address, RESET)
        elif condition is None or not condition.blocked:
            if connection is not None:
                queued_frame.write_to(connection)
                return
            peer.queue.append(queued_frame)
            if peer.attempt is None:
                self._begin_dial(peer)
        elif peer.attempt is None and peer.blackhole is None and connection is None:
            peer.blackhole = self._loop.call_later(self.timeouts.connect_seconds, self._blackhole_is_over, peer)

    def link_changed(self, condition: LinkChanged, target: Address) -> None:
        """Take a new condition of the link to `target`: break connections that it resets, release messages that a delay held."""
        if (peer := self.peers.get(target)) is None:
            return
        if condition.blocked == "reset" and peer.connection is not None:
            peer.connection.reset(RESET)
        if not (condition.delay or condition.delay_up_to):
            self._release(peer, everything=True)

    def pause(self) -> None:
        """Neither read nor answer; sockets stay open and the kernel goes on accepting, as for a frozen process."""
        self.paused = True
        self._listener.pause()
        for connection in self._connections:
            connection.pause()

    def resume(self) -> None:
        self.paused = False
        self._listener.resume()
        for connection in tuple(self._connections):
            connection.resume()

    def disconnect(self, incarnations: Incarnations | None = None, proven: ClusterSecret | None = None) -> None:
        """Close all connections, or those with these incarnations or proven by this secret, when what was sent is under way.

        The next message to a member dials anew, under the uuid of now. No member is reported as unreachable for it.
        """
        for peer in tuple(self.peers.values()):
            uuid = peer.connection.peer_uuid if peer.connection is not None else ""
            if incarnations is not None and (peer.address, uuid) not in incarnations:
                continue
            if proven is not None and (peer.connection is None or peer.connection.secret is not proven):
                continue
            if peer.connection is not None:
                peer.connection.close()
                peer.connection = None
            self._forget_attempt(peer)
            if peer.queue:
                self._begin_dial(peer)

    def close(self) -> None:
        """Stop listening, let go of all peers after what was sent so far is under way; who speaks HTTP is let be."""
        self._listener.close()
        self._shut(PeerConnection.close)

    async def until_closed(self, within_seconds: float) -> None:
        """Return when no connection is left, or the time is over."""
        limit = self._loop.time() + within_seconds
        while self._connections and self._loop.time() < limit:  # noqa: ASYNC110 - short, and once in each incarnation
            await asyncio.sleep(CLOSED_LOOK_SECONDS)

    def abort(self) -> None:
        """Stop listening and break everything off, as when a process dies."""
        self._listener.abort()
        self._shut(PeerConnection.abort)

    @property
    def connected(self) -> frozenset[Address]:
        return frozenset(peer.address for peer in self.peers.values() if peer.connection and not peer.connection.closed)

    @property
    def queues(self) -> WireQueues:
        """Return the waiting messages, and the connections of peers that are no members."""
        backlogs = [connection.bulk_backlog for connection in self._connections]
        return WireQueues(
            sum(len(peer.queue) for peer in self.peers.values()),
            sum(frames for frames, _ in backlogs),
            sum(size for _, size in backlogs),
            self._listener.slots.taken,
            self._listener.http_slots.taken,
        )

    # What connections report

    def initiator(self, connection: PeerConnection) -> Initiator:
        assert connection.dialled is not None
        return Initiator(self._hello(), connection.dialled, connection.secret, certified=self._tls is not None)

    def responder(self, connection: PeerConnection) -> Responder:
        return Responder(self._hello, self.keyring, partial(self._admission_check, connection))

    def opened(self, connection: PeerConnection) -> None:
        if self._closed:
            connection.abort()
        else:
            self._connections.add(connection)

    def agreed(self, connection: PeerConnection) -> None:
        """Take it as the pair's connection.

        A member that dials holds no connection, so a new one always replaces an old one, with one exception: a dial of the
        higher address that crossed ours may reach us just after ours was agreed, and is then about to be given up. It
        takes the place only when something is said on it.
        """
        assert connection.peer is not None
        if self.keyring is not None or (self._tls is not None and self._tls.files.mutual):
            self.known.add(connection.host)
        present = self._peer(connection.peer).connection
        crossed = (
            present is not None
            and present.dialled is not None
            and connection.dialled is None
            and present.peer_uuid == connection.peer_uuid
            and self._precedes(connection.peer)
        )
        if not crossed:
            self._attach(connection)

    def received(self, connection: PeerConnection, message: Message, because: RecordId | None) -> None:
        sender = connection.peer
        assert sender is not None
        if self._peer(sender).connection is not connection:
            self._attach(connection)
        self._receiver.received(sender, message, because)

    def protocol_error(
        self, connection: PeerConnection, reason: str, cause: RefusalCause, hostile: bool = True
    ) -> None:
        if hostile and connection.peer is None:
            self._listener.failed(connection.remote, connection.host, reason, cause)
        else:
            self.peer_rejected(connection.remote, reason, cause)

    def peer_rejected(self, remote: str, reason: str, cause: RefusalCause) -> None:
        self._receiver.stranger_refused(StrangerRefused(remote, one_line(reason), cause))

    def lost(self, connection: PeerConnection, reason: str) -> None:
        """Report the end of the pair's connection when neither side wanted it, unless a blackhole keeps us from noticing."""
        self._connections.discard(connection)
        if connection.peer is None:
            return
        peer = self.peers.get(connection.peer)
        if peer is not None and peer.connection is connection:
            peer.connection = None
            if peer.idle:  # addresses of long ago do not pile up
                del self.peers[peer.address]
            if reason and not self._network.hides_loss(peer.address, self.address):
                self._unreachable(peer.address, reason)

    # Sending

    def _peer(self, address: Address) -> TransportPeer:
        if (peer := self.peers.get(address)) is None:
            peer = self.peers[address] = TransportPeer(address)
        return peer

    def _hello(self) -> HandshakeHello:
        return hello_of(self._cluster, self.address, self._uuid())

    def _admission_check(self, connection: PeerConnection, hello: HandshakeHello) -> HandshakeRejection | None:
        """Refuse who stands elsewhere than its certificate says, and the dial that crosses ours when ours precedes."""
        if self._tls is not None and self._tls.files.mutual:
            reason = certificate_mismatch(connection.certificate, host_of(hello.address))
            if reason is not None:
                return HandshakeRejection(reason)
        peer = self.peers.get(hello.address)
        if peer is not None and peer.dial is not None and self._precedes(hello.address):
            return HandshakeRejection("our own dial is under way", crossed=True)
        return None

    def _precedes(self, other: Address) -> bool:
        return numeric_order(self.address) < numeric_order(other)

    def _queued_frame(self, peer: TransportPeer, message: Message, because: RecordId | None) -> QueuedFrame:
        """Return the frame of `message`, made once when it goes to many, as lists do, or again and again, as heartbeats do."""
        if message is not peer.message or because != peer.queued_frame.because:
            if message is not self._last_message or because != self._last_frame.because:
                self._last_frame = queued_frame_of(message, because)
                self._last_message = message
            peer.message, peer.queued_frame = message, self._last_frame
        return peer.queued_frame

    def _send_late(self, peer: TransportPeer, queued_frame: QueuedFrame, delay_us: int) -> None:
        due = self._loop.time() + delay_us / SECOND_US
        if peer.delayed:
            due = max(due, peer.delayed[-1][0])
        peer.delayed.append((due, queued_frame))
        if peer.timer is None:
            peer.timer = self._loop.call_at(due, self._release, peer)

    def _release(self, peer: TransportPeer, everything: bool = False) -> None:
        """Send the delayed frames that are due, in order; a link that was cut meanwhile swallows them."""
        if peer.timer is not None:
            peer.timer.cancel()
            peer.timer = None
        now = self._loop.time()
        while peer.delayed and (everything or peer.delayed[0][0] <= now):
            _, queued_frame = peer.delayed.popleft()
            self._send_now(peer, queued_frame, self._network.condition(self.address, peer.address))
        if peer.delayed:
            peer.timer = self._loop.call_at(peer.delayed[0][0], self._release, peer)

    # Dialling

    def _begin_dial(self, peer: TransportPeer) -> None:
        self._forget_blackhole(peer)
        peer.attempt = self._loop.create_task(self._dial(peer))

    async def _dial(self, peer: TransportPeer) -> None:
        """Connect and shake hands. Success is seen by `agreed`; here, failure is reported."""
        reason, crossed, cause = await self._attempt(peer, self.keyring.used if self.keyring is not None else None)
        if self.keyring is not None and cause in ("rejected", "rejected-by-cluster"):
            for secret in self.keyring.accepted[1:]:  # while the secret turns, the other side may know this one alone
                reason, crossed, cause = await self._attempt(peer, secret)
        if crossed and peer.attempt is asyncio.current_task():
            await asyncio.sleep(self.timeouts.connect_seconds)
            reason, cause = "it preferred its own dial, which never came", NO_ANSWER
        if reason and peer.attempt is asyncio.current_task():
            peer.attempt = None
            self._give_up(peer, reason, cause)

    async def _attempt(self, peer: TransportPeer, secret: ClusterSecret | None) -> tuple[str, bool, UnreachableCause]:
        """Dial once. Return why it failed, or "" when it did not; whether both have dialled; and the cause."""
        connection = peer.dial = PeerConnection(self, peer.address, secret=secret)
        assert connection.outcome is not None
        reason, crossed, cause = "", False, NO_ANSWER
        try:
            async with asyncio.timeout(self.timeouts.connect_seconds):
                host, port = host_of(peer.address), port_of(peer.address)
                await self._loop.create_connection(lambda: connection, host, port, **self._tls_options(host))
                if failure := await connection.outcome:
                    raise failure
        except HandshakeRefused as problem:
            reason, crossed, cause = str(problem), problem.crossed, problem.cause
        except TimeoutError:
            reason = self._timed_out
        except OSError as problem:
            reason, cause = reason_of(problem), cause_of(problem)
        finally:
            if connection.peer is None:
                connection.abort()
            if peer.dial is connection:
                peer.dial = None
        return reason, crossed, cause

    def _tls_options(self, host: str) -> dict[str, Any]:
        if self._tls is None:
            return {}
        seconds = {"ssl_handshake_timeout": self.timeouts.connect_seconds, "ssl_shutdown_timeout": TLS_SHUTDOWN_SECONDS}
        return {"ssl": self._tls.dialling, "server_hostname": host, **seconds}

    def _blackhole_is_over(self, peer: TransportPeer) -> None:
        peer.blackhole = None
        self._give_up(peer, self._timed_out)

    def _forget_blackhole(self, peer: TransportPeer) -> None:
        if peer.blackhole is not None:
            peer.blackhole.cancel()
            peer.blackhole = None

    def _give_up(self, peer: TransportPeer, reason: str, cause: UnreachableCause = NO_ANSWER) -> None:
        peer.queue.clear()
        self._unreachable(peer.address, reason, cause)

    def _unreachable(self, address: Address, reason: str, cause: UnreachableCause = NO_ANSWER) -> None:
        if not self._closed:
            self._receiver.unreachable(address, one_line(reason), cause)

    # One connection per pair

    def _attach(self, connection: PeerConnection) -> None:
        """Make `connection` the one of its pair; any other, and any dial under way, is dropped."""
        assert connection.peer is not None
        peer = self._peer(connection.peer)
        replaced, peer.connection = peer.connection, connection
        if replaced is not None and replaced is not connection:
            replaced.abort()
        self._forget_attempt(peer, but=connection)
        while peer.queue:
            peer.queue.popleft().write_to(connection)

    def _forget_attempt(self, peer: TransportPeer, but: PeerConnection | None = None) -> None:
        """Give up every dial under way; `but` is the connection that a dial has just made, if one has."""
        self._forget_blackhole(peer)
        attempt, dial = peer.attempt, peer.dial
        peer.attempt = peer.dial = None
        if attempt is not None and (but is None or dial is not but):
            attempt.cancel()
            if dial is not None:
                dial.abort()

    def _shut(self, end: Callable[[PeerConnection], None]) -> None:
        self._closed = True
        for peer in self.peers.values():
            self._forget_attempt(peer)
            if peer.timer is not None:
                peer.timer.cancel()
            peer.delayed.clear()
            peer.queue.clear()
        for connection in tuple(self._connections):
            end(connection)
