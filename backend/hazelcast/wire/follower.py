"""Follows one member: a state machine that is handed bytes and the time, and says what to send and what it heard.

It has one connection at a time, to one address, and is never redirected. Each input returns what follows from it, in order:
what the connection has to do (`Dial`, `Send`, `HangUp`) and what came to light (an `Observation`). Whoever drives it calls
`tick` at `deadline_us` at the latest. It has no clock and no randomness of its own, so a test drives it without a socket.

A connection has a number. What is told of an earlier connection than the present one is ignored, so a driver need not order its
callbacks.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.observations import ConnectionState, Observation
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.settings import WatchSettings


class Connection(Struct, frozen=True):
    """One connection, made or to be made: where to, and the how-manyth to there."""

    endpoint: Address
    number: int


class Dial(Struct, frozen=True):
    """Make this connection. Answered by `opened` or `closed`."""

    connection: Connection


class Send(Struct, frozen=True):
    """Send these bytes. What cannot be sent is no matter: the connection will be told as closed."""

    connection: Connection
    data: bytes


class HangUp(Struct, frozen=True):
    """Close this connection, or give up making it. No answer is awaited."""

    connection: Connection


Output = Dial | Send | HangUp | Observation


class Follower:
    """Everything that is known of the connection to one member."""

    address: Address
    """How the member names itself; the address that was dialled until it has said so."""
    endpoint: Address
    """Where it is dialled."""
    state: ConnectionState | None
    """How it stands with the member; `None` before the first attempt has ended."""
    reason: str
    since_us: int
    deadline_us: int
    """When `tick` has to be called, at the latest."""
    member_uuid: str | None
    """The incarnation that is connected."""

    def __init__(
        self,
        address: Address,
        endpoint: Address,
        settings: WatchSettings,
        client_uuid: str,
        random: Random,
        now_us: int,
    ) -> None:
        raise NotImplementedError

    def tick(self, now_us: int) -> list[Output]:
        """The time has come: to dial, to ask, to notice a silence."""
        raise NotImplementedError

    def opened(self, now_us: int, connection: Connection) -> list[Output]:
        """The connection is there, TLS included. The member will be told who we are."""
        raise NotImplementedError

    def received(self, now_us: int, connection: Connection, data: bytes) -> list[Output]:
        """Bytes have come, cut anywhere. Those that are no message of a member cost it the connection."""
        raise NotImplementedError

    def closed(self, now_us: int, connection: Connection, reason: str, *, refused: bool = False) -> list[Output]:
        """The connection has ended or was never made. `refused`: somebody is there and turned us away, say in TLS's handshake."""
        raise NotImplementedError

    def listen_to_migrations(self, now_us: int, wanted: bool) -> list[Output]:
        """Whether this member's migrations and losses of partitions are wanted. It holds for later connections too."""
        raise NotImplementedError

    def ask(self, now_us: int, request: Question | Command, ticket: int) -> list[Output]:
        """Ask on somebody's behalf, at once. `Answered` with that ticket follows, whatever happens."""
        raise NotImplementedError
