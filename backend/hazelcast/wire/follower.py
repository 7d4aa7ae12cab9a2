"""Follows one member: a state machine that is handed bytes and the time, and says what to send and what it heard.

It has one connection at a time, to one address, and is never redirected. Each input returns what follows from it, in order:
what the connection has to do (`Dial`, `Send`, `HangUp`) and what came to light (an `Observation`). Whoever drives it calls
`tick` at `deadline_us` at the latest. It has no clock and no randomness of its own, so a test drives it without a socket.

A connection has a number. What is told of an earlier connection than the present one is ignored, so a driver need not order its
callbacks.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.backoff import DialBackoff
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import (
    PREAMBLE,
    BadBytes,
    FrameLimits,
    Frames,
    MessageReader,
    size_of,
)
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request
from quarterdeck.backend.hazelcast.wire.messages import Authenticated, ErrorAnswer, Message
from quarterdeck.backend.hazelcast.wire.observations import (
    ConnectionState,
    ConnectionTold,
    Heard,
    Observation,
    Renamed,
    RequestAnswered,
)
from quarterdeck.backend.hazelcast.wire.requests import Authenticate, Command, Question
from quarterdeck.backend.hazelcast.wire.session import ClientSession
from quarterdeck.backend.hazelcast.wire.settings import WatchSettings

AUTHENTICATION = 1
"""The correlation of the first request."""

NEVER_US = 2**62
"""When nothing is waited for."""

CLOSED_UNHEARD = 3
"""A peer that closes so many connections in a row before it answers does not die: it wants something else, say TLS."""

Ending = Literal["closed", "turned away", "unreachable"]
"""How a connection ended, or why it was not made: closed or refused by the host; turned away by who is there, say in the
handshake of TLS; or nothing is known of the host."""


class FollowedConnection(Struct, frozen=True):
    """One connection, made or to be made: where to, and the how-manyth to there."""

    endpoint: Address
    number: int


class Dial(Struct, frozen=True):
    """Make this connection. Answered by `opened` or `closed`."""

    connection: FollowedConnection


class Send(Struct, frozen=True):
    """Send these bytes. What cannot be sent is no matter: the connection will be told as closed."""

    connection: FollowedConnection
    data: bytes


class HangUp(Struct, frozen=True):
    """Close this connection, or give up making it. No answer is awaited."""

    connection: FollowedConnection


Output = Dial | Send | HangUp | Observation


class WaitingToDial(Struct, frozen=True):
    """There is no connection; the next one is dialled at `until_us`."""

    until_us: int


class Dialling(Struct, frozen=True):
    """A connection is being made."""

    since_us: int


class Introducing(Struct, frozen=True):
    """We have said who we are, and wait for the answer."""

    since_us: int


Phase = WaitingToDial | Dialling | Introducing | ClientSession


class MemberFollower:
    """Everything that is known of the connection to one member."""

    address: Address
    """How the member names itself; the address that was dialled until it has said so."""
    endpoint: Address
    """Where it is dialled."""
    state: ConnectionState | None
    """How it stands with the member; `None` before the first attempt has ended."""
    reason: str
    since_us: int
    member_uuid: str | None
    """The incarnation that is connected, or was last."""

    def __init__(
        self,
        address: Address,
        endpoint: Address,
        settings: WatchSettings,
        client_uuid: str,
        random: Random,
        now_us: int,
        *,
        pinned: bool,
    ) -> None:
        self.address = address
        self.endpoint = endpoint
        self.pinned = pinned
        """Whether only the member of that name will do. Who is dialled at an address that a person gave may be any."""
        self.state = None
        self.reason = ""
        self.since_us = now_us
        self.member_uuid = None
        self._settings = settings
        self._pace = settings.pace
        self._client_uuid = client_uuid
        self._backoff = DialBackoff(settings.pace, random)
        self._number = 0
        self._reader = MessageReader()
        self._phase: Phase = WaitingToDial(now_us)
        self._heard_us = now_us
        self._closed_unheard = 0
        self._migrations_wanted = False
        self._outputs: list[Output] = []
        self.deadline_us = now_us
        """When `tick` has to be called, at the latest."""

    @property
    def connection(self) -> FollowedConnection:
        """The present connection, or the last one."""
        return FollowedConnection(self.endpoint, self._number)

    def tick(self, now_us: int) -> list[Output]:
        """The time has come: to dial, to ask, to notice a silence."""
        match self._phase:
            case WaitingToDial(until_us):
                if now_us >= until_us:
                    self._dial(now_us)
            case Dialling(since_us):
                if now_us - since_us >= self._pace.dial_us:
                    self._tell(now_us, "silent", "no answer to the attempt to connect", since_us)
                    self._hang_up(now_us, self._backoff.next_us())
            case Introducing(since_us):
                self._notice_silence(now_us, since_us, since_us + self._first_answer_us())
            case ClientSession():
                self._go_on(now_us, self._phase)
        return self._done(now_us)

    def opened(self, now_us: int, connection: FollowedConnection) -> list[Output]:
        """The connection is there, TLS included. The member will be told who we are."""
        if connection == self.connection and isinstance(self._phase, Dialling):
            self._phase = Introducing(now_us)
            self._reader = MessageReader()
            settings = self._settings
            who = Authenticate(
                settings.cluster_name,
                settings.credentials,
                self._client_uuid,
                settings.client_name,
                settings.client_version,
            )
            self._outputs.append(Send(connection, PREAMBLE + encode_request(who, AUTHENTICATION)))
        return self._done(now_us)

    def received(self, now_us: int, connection: FollowedConnection, data: bytes) -> list[Output]:
        """Bytes have come, cut anywhere. Those that are no message of a member cost it the connection."""
        if connection == self.connection and isinstance(self._phase, Introducing | ClientSession):
            try:
                for frames in self._reader.feed(data):
                    self._take(now_us, frames)
                    if isinstance(self._phase, WaitingToDial):
                        break  # it was turned away, or turned us away: the rest is no matter
            except BadBytes as error:
                self._turned_away(now_us, f"it does not speak the client protocol of Hazelcast: {error}")
        return self._done(now_us)

    def closed(
        self, now_us: int, connection: FollowedConnection, reason: str, ending: Ending = "closed"
    ) -> list[Output]:
        """The connection has ended or was never made."""
        if connection != self.connection or isinstance(self._phase, WaitingToDial):
            return []
        self._closed_unheard = self._closed_unheard + 1 if isinstance(self._phase, Introducing) else 0
        since_us = self._phase.since_us if isinstance(self._phase, Dialling) else now_us
        self._give_up_answers(now_us)
        if ending == "turned away":
            self._tell(now_us, "refused", reason, now_us)
            self._wait(now_us, self._backoff.refused_us())
        elif ending == "unreachable":
            self._tell(now_us, "silent", reason, since_us)
            self._wait(now_us, self._backoff.next_us())
        elif self._closed_unheard >= CLOSED_UNHEARD:
            self._tell(
                now_us, "refused", f"it closes the connection before it answers; does it want TLS? ({reason})", now_us
            )
            self._wait(now_us, self._backoff.refused_us())
        else:
            self._tell(now_us, "gone", reason, now_us)
            self._wait(now_us, self._backoff.next_us())
        return self._done(now_us)

    def listen_to_migrations(self, now_us: int, wanted: bool) -> list[Output]:
        """Whether this member's migrations and losses of partitions are wanted. It holds for later connections too."""
        self._migrations_wanted = wanted
        if isinstance(self._phase, ClientSession):
            self._send(self._phase.listen_to_migrations(now_us, wanted))
        return self._done(now_us)

    def ask(self, now_us: int, request: Question | Command, ticket: int) -> list[Output]:
        """Ask on somebody's behalf, at once. `RequestAnswered` with that ticket follows, whatever happens."""
        if isinstance(self._phase, ClientSession) and not self._phase.questions.full:
            self._send(self._phase.request(now_us, request, ticket))
        else:
            self._outputs.append(RequestAnswered(now_us, self.address, ticket, None))
        return self._done(now_us)

    def give_up(self, now_us: int) -> list[Output]:
        """Follow no longer: another follower has this member. Nothing is dialled any more."""
        self._give_up_answers(now_us)
        if not isinstance(self._phase, WaitingToDial):
            self._outputs.append(HangUp(self.connection))
        self._phase = WaitingToDial(NEVER_US)
        return self._done(now_us)

    def _done(self, now_us: int) -> list[Output]:
        """What has come of an input, after the next deadline has been set."""
        match self._phase:
            case WaitingToDial(until_us):
                self.deadline_us = until_us
            case Dialling(since_us):
                self.deadline_us = since_us + self._pace.dial_us
            case Introducing(since_us):
                silent_us, redial_us = since_us + self._first_answer_us(), since_us + self._pace.redial_after_us
                self.deadline_us = redial_us if self.state == "silent" else min(silent_us, redial_us)
            case ClientSession():
                self.deadline_us = self._session_deadline_us(now_us, self._phase)
        outputs, self._outputs = self._outputs, []
        return outputs

    def _session_deadline_us(self, now_us: int, session: ClientSession) -> int:
        silent_us = session.questions.silent_at_us(self._heard_us)
        if self.state == "silent":
            silent_us = self._heard_us + self._pace.redial_after_us
        asking_us = max(session.questions.deadline_us(now_us), now_us + 1)
        return asking_us if silent_us is None else min(asking_us, silent_us)

    def _first_answer_us(self) -> int:
        return self._pace.first_answer_us if self.member_uuid is None else self._pace.silent_after_us

    def _dial(self, now_us: int) -> None:
        self._number += 1
        self._phase = Dialling(now_us)
        self._outputs.append(Dial(self.connection))

    def _go_on(self, now_us: int, session: ClientSession) -> None:
        """Ask what is due, give up what is late, and notice when nothing comes."""
        for asked in session.questions.expired(now_us):
            if asked.ticket is not None:
                self._outputs.append(RequestAnswered(now_us, self.address, asked.ticket, None))
        self._send(session.due(now_us))
        silent_us = session.questions.silent_at_us(self._heard_us)
        if silent_us is not None:
            self._notice_silence(now_us, self._heard_us, silent_us)

    def _notice_silence(self, now_us: int, since_us: int, silent_us: int) -> None:
        """Tell a silence when it is one, and dial anew when it lasts: a path that was cut does not say that it is whole again."""
        if now_us >= silent_us:
            half = " but the beginning of a message" if self._reader.unfinished else ""
            self._tell(now_us, "silent", f"nothing has come{half}", since_us)
        if now_us - since_us >= self._pace.redial_after_us:
            self._hang_up(now_us, self._backoff.next_us())

    def _take(self, now_us: int, frames: Frames) -> None:
        """One whole message of the member's."""
        correlation, message = decode_message(frames, self._settings.metrics)
        if isinstance(self._phase, ClientSession):
            self._heard_us = now_us
            if self.state == "silent":
                self._tell(now_us, "connected", "", now_us)
            observed, data = self._phase.take(now_us, correlation, message, size_of(frames))
            self._outputs += observed
            self._send(data)
        elif correlation == AUTHENTICATION:
            self._take_introduction(now_us, message)

    def _take_introduction(self, now_us: int, message: Message) -> None:
        """What the member says to who we are."""
        self._closed_unheard = 0
        match message:
            case ErrorAnswer() if message.not_ready:
                self._tell(now_us, "merging", message.message, now_us)
                self._hang_up(now_us, self._backoff.merging_us())
            case ErrorAnswer():
                self._turned_away(now_us, message.message or message.class_name)
            case Authenticated(status="authenticated", member_uuid=str()):
                self._accepted(now_us, message)
            case Authenticated(status="authenticated"):
                self._turned_away(now_us, "it does not say which member it is")
            case Authenticated(status="credentials failed"):
                name = self._settings.cluster_name
                self._turned_away(now_us, f"its cluster is not named {name!r}, or user and password do not fit")
            case Authenticated():
                self._turned_away(now_us, f"it turns this client away: {message.status}")
            case _:
                self._turned_away(now_us, "it answers something else than who may come in")

    def _accepted(self, now_us: int, message: Authenticated) -> None:
        told = message.address or self.address
        if told != self.address and self.pinned:
            self._turned_away(
                now_us,
                f"{told} answers at {self.endpoint}, where {self.address} should be; an address map can tell them apart",
            )
            return
        if told != self.address:
            self.address = told
            self._outputs.append(Renamed(now_us, self.endpoint, told))
        assert message.member_uuid is not None
        self.member_uuid = message.member_uuid
        self._reader.limits = FrameLimits()
        self._backoff.reset()
        self._heard_us = now_us
        session = ClientSession(self.address, message.member_uuid, self._pace, now_us)
        self._phase = session
        self._tell(now_us, "connected", "", now_us)
        self._outputs.append(Heard(now_us, self.address, message.member_uuid, message))
        self._send(session.begin(now_us, migrations=self._migrations_wanted))

    def _send(self, data: bytes) -> None:
        if data:
            self._outputs.append(Send(self.connection, data))

    def _tell(self, now_us: int, state: ConnectionState, reason: str, since_us: int) -> None:
        """Say how it stands, when it has changed. Another reason to be turned away is a change too."""
        changed = state != self.state or (state == "refused" and reason != self.reason)
        if changed:
            self.state, self.since_us = state, since_us
            self._outputs.append(ConnectionTold(now_us, self.address, state, reason, since_us))
        self.reason = reason

    def _turned_away(self, now_us: int, reason: str) -> None:
        self._tell(now_us, "refused", reason, now_us)
        self._hang_up(now_us, self._backoff.refused_us())

    def _hang_up(self, now_us: int, wait_us: int) -> None:
        self._give_up_answers(now_us)
        self._outputs.append(HangUp(self.connection))
        self._wait(now_us, wait_us)

    def _wait(self, now_us: int, wait_us: int) -> None:
        self._phase = WaitingToDial(now_us + wait_us)
        self._reader = MessageReader()

    def _give_up_answers(self, now_us: int) -> None:
        """Whoever waits for an answer over this connection waits no longer."""
        if isinstance(self._phase, ClientSession):
            tickets = [asked.ticket for asked in self._phase.questions.owed() if asked.ticket is not None]
            self._outputs += (RequestAnswered(now_us, self.address, ticket, None) for ticket in tickets)
