"""Follows one member: a state machine that receives bytes and the time, and returns what to send and what it learnt.

It has one connection at a time, to one address, and is never redirected. Each input returns what follows from it, in order:
what the connection has to do (`Dial`, `Send`, `HangUp`) and what was observed (an `Observation`). Its driver calls `tick` at
`deadline_us` at the latest. It has no clock and no randomness of its own, so a test drives it without a socket.

A connection has a number. Inputs of an earlier connection are ignored, so a driver need not order its callbacks.
"""

from __future__ import annotations

import re
from random import Random

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import ConnectionState
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.codec import frames
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.request_codec import encode_request
from quarterdeck.backend.hazelcast.wire.messages import Authenticated, ErrorAnswer, Message
from quarterdeck.backend.hazelcast.wire.requests import Authenticate, Command, Question
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Ending, WatchSettings
from quarterdeck.backend.hazelcast.wire.session import ClientSession

AUTHENTICATION = 1
"""The correlation of the first request."""
NEVER_US = 2**62
"""The deadline when nothing is expected."""
STOOD_STILL_US = SECOND_US
"""So much too late this program itself stood still, as after Ctrl-Z."""
CLOSED_UNHEARD = 3
"""A peer that closes so many connections in a row before it answers is not dying: it expects something else, say TLS."""


class FollowedConnection(Struct, frozen=True):
    """One connection, made or to be made: to which address, and its number among those to there."""

    endpoint: Address
    number: int


class Dial(Struct, frozen=True):
    """Make this connection. Answered by `opened` or `closed`."""

    connection: FollowedConnection


class Send(Struct, frozen=True):
    """Send these bytes. If that fails, `closed` will follow."""

    connection: FollowedConnection
    data: bytes


class HangUp(Struct, frozen=True):
    """Close this connection, or stop making it. No answer is expected."""

    connection: FollowedConnection


Output = Dial | Send | HangUp | messages.Observation


class WaitingToDial(Struct, frozen=True):
    """There is no connection; the next one is dialled at `until_us`."""

    until_us: int


class Dialling(Struct, frozen=True):
    """A connection is being made."""

    since_us: int


class Introducing(Struct, frozen=True):
    """The authentication is sent, and its answer awaited."""

    since_us: int


Phase = WaitingToDial | Dialling | Introducing | ClientSession


class MemberFollower:
    """The connection to one member, and all that is known of it."""

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
        """How the member names itself; until then the dialled address."""
        self.endpoint = endpoint
        self.pinned = pinned
        """Whether only the member of that name is accepted. At an address that a person gave, any member may answer."""
        self.state: ConnectionState | None = None
        """The state of the connection; `None` before the first attempt has ended."""
        self.reason = ""
        self.since_us = now_us
        self.unreached_since_us = now_us  # if it is not connected
        self.member_uuid: str | None = None
        """The incarnation that is connected, or was last."""
        self._settings = settings
        self._pace = settings.pace
        self._client_uuid = client_uuid
        self._random = random
        self._backoff_us = settings.pace.first_wait_us
        self._refused_wait_us = settings.pace.refused_wait_us
        self._number = 0
        self._reader = frames.MessageReader()
        self._phase: Phase = WaitingToDial(now_us)
        self._heard_us = now_us
        self._closed_unheard = 0
        self._closed: tuple[int, str] | None = None
        """When and how the session ended, until the next attempt to connect shows what that means."""
        self._listed_uuid = ""
        """The incarnation that a list has here, as far as one was reported."""
        self._migrations_wanted = False
        self._outputs: list[Output] = []
        self.deadline_us = now_us
        """When `tick` has to be called, at the latest."""

    @property
    def connection(self) -> FollowedConnection:
        """The present connection, or the last one."""
        return FollowedConnection(self.endpoint, self._number)

    def tick(self, now_us: int) -> list[Output]:
        """React to the time: dial, ask, or notice a silence."""
        # What came while we heard nothing is not read yet.
        if not isinstance(self._phase, WaitingToDial) and now_us - self.deadline_us >= STOOD_STILL_US:
            self._heard_us = now_us
            if isinstance(self._phase, Dialling | Introducing):
                self._phase = type(self._phase)(now_us)
            return self._done(now_us)
        if self._closed is not None and now_us >= self._closed[0] + self._pace.first_wait_us:
            self._report_closed(now_us)
        match self._phase:
            case WaitingToDial(until_us):
                if now_us >= until_us:
                    self._number += 1
                    self._phase = Dialling(now_us)
                    self._outputs.append(Dial(self.connection))
            case Dialling(since_us):
                if now_us - since_us >= self._pace.dial_us:
                    self._report(now_us, "silent", "no answer to the attempt to connect", since_us)
                    self._hang_up(now_us, self._next_backoff_us())
            case Introducing(since_us):
                self._notice_silence(now_us, since_us, since_us + self._first_answer_us())
            case ClientSession():
                self._go_on(now_us, self._phase)
        return self._done(now_us)

    def opened(self, now_us: int, connection: FollowedConnection) -> list[Output]:
        """Authenticate: the connection stands, TLS included."""
        if connection == self.connection and isinstance(self._phase, Dialling):
            self._phase = Introducing(now_us)
            self._reader = frames.MessageReader()
            settings = self._settings
            introduction = Authenticate(
                settings.cluster_name,
                settings.credentials,
                self._client_uuid,
                settings.client_name,
                settings.client_version,
            )
            self._outputs.append(Send(connection, frames.PREAMBLE + encode_request(introduction, AUTHENTICATION)))
        return self._done(now_us)

    def received(self, now_us: int, connection: FollowedConnection, data: bytes) -> list[Output]:
        """Receive bytes, cut anywhere. Bytes that are no message of a member end the connection."""
        if connection == self.connection and isinstance(self._phase, Introducing | ClientSession):
            is_first = isinstance(self._phase, Introducing) and not self._reader.unfinished
            if is_first and (shown := stranger(data)):
                self._refused(now_us, f"it does not speak the client protocol of Hazelcast: {shown}")
                return self._done(now_us)
            try:
                for whole in self._reader.feed(data):
                    self._receive(now_us, whole)
                    if isinstance(self._phase, WaitingToDial):
                        break  # either side refused the other: the rest does not matter
            except frames.BadBytes as error:
                self._refused(now_us, f"it does not speak the client protocol of Hazelcast: {error}")
        return self._done(now_us)

    def closed(
        self, now_us: int, connection: FollowedConnection, reason: str, ending: Ending = "closed"
    ) -> list[Output]:
        """React to the end of the connection, or to a failed attempt."""
        if connection != self.connection or isinstance(self._phase, WaitingToDial):
            return []
        ended = self._phase
        self._closed_unheard = self._closed_unheard + 1 if isinstance(ended, Introducing) else 0
        since_us = ended.since_us if isinstance(ended, Dialling) and ending == "unreachable" else now_us
        self._give_up_answers(now_us)
        if ending == "closed" and isinstance(ended, ClientSession):
            self._closed = (now_us, reason)
            self._phase = WaitingToDial(now_us)
        elif ending == "refused" or self._closed_unheard >= CLOSED_UNHEARD:
            if ending != "refused":
                reason = f"it closes the connection before it answers; does it want TLS? ({reason})"
            self._report(now_us, "refused", reason, now_us)
            self._wait(now_us, self._next_refused_wait_us())
        else:
            self._report(now_us, "gone" if ending == "absent" else "silent", reason, since_us)
            self._wait(now_us, self._next_backoff_us())
        return self._done(now_us)

    def listed(self, now_us: int, uuid: str) -> list[Output]:
        """Dial at once if this incarnation, which another member has on its list, may be one that is not met yet."""
        is_new = uuid not in (self.member_uuid, self._listed_uuid)
        if is_new and self.state not in (None, "connected") and isinstance(self._phase, WaitingToDial):
            self._phase = WaitingToDial(now_us)
        self._listed_uuid = uuid
        return self._done(now_us)

    def listen_to_migrations(self, now_us: int, wanted: bool) -> list[Output]:
        """Set whether this member's migrations and lost partitions are wanted, now and on later connections."""
        self._migrations_wanted = wanted
        if isinstance(self._phase, ClientSession):
            self._send(self._phase.listen_to_migrations(now_us, wanted))
        return self._done(now_us)

    def ask(self, now_us: int, request: Question | Command, ticket: int) -> list[Output]:
        """Send a request at once. `RequestAnswered` with that ticket always follows."""
        if isinstance(self._phase, ClientSession) and not self._phase.questions.full:
            self._send(self._phase.request(now_us, request, ticket))
        else:
            self._outputs.append(messages.RequestAnswered(now_us, self.address, ticket, None))
        return self._done(now_us)

    def give_up(self, now_us: int) -> list[Output]:
        """Stop following: another follower has this member. Nothing is dialled any more."""
        self._give_up_answers(now_us)
        if not isinstance(self._phase, WaitingToDial):
            self._outputs.append(HangUp(self.connection))
        self._phase = WaitingToDial(NEVER_US)
        return self._done(now_us)

    def _done(self, now_us: int) -> list[Output]:
        """Set the next deadline. Return the outputs of an input."""
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
        if self._closed is not None:
            self.deadline_us = min(self.deadline_us, self._closed[0] + self._pace.first_wait_us)
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

    def _go_on(self, now_us: int, session: ClientSession) -> None:
        """Ask what is due, give up late answers, and notice silence."""
        for asked in session.questions.expired(now_us):
            if asked.ticket is not None:
                self._outputs.append(messages.RequestAnswered(now_us, self.address, asked.ticket, None))
        self._send(session.due(now_us))
        if (silent_us := session.questions.silent_at_us(self._heard_us)) is not None:
            self._notice_silence(now_us, self._heard_us, silent_us)

    def _notice_silence(self, now_us: int, since_us: int, silent_us: int) -> None:
        """Report a silence, and dial again when it lasts: a path that was cut does not show when it is whole again."""
        if now_us >= silent_us:
            half = " but the beginning of a message" if self._reader.unfinished else ""
            unheard = isinstance(self._phase, Introducing) and not half
            self._report(now_us, "silent", SILENT if unheard else f"nothing has come{half}", since_us)
        if now_us - since_us >= self._pace.redial_after_us:
            self._hang_up(now_us, self._next_backoff_us())

    def _receive(self, now_us: int, whole: frames.Frames) -> None:
        correlation, message = decode_message(whole, self._settings.metrics)
        message = self._settings.route.named(message)
        if isinstance(self._phase, ClientSession):
            self._heard_us = now_us
            if self.state == "silent":
                self._report(now_us, "connected", "", now_us)
            observed, data = self._phase.receive(now_us, correlation, message, frames.size_of(whole))
            self._outputs += observed
            self._send(data)
        elif correlation == AUTHENTICATION:
            self._receive_introduction(now_us, message)

    def _receive_introduction(self, now_us: int, message: Message) -> None:
        self._closed_unheard = 0
        match message:
            case ErrorAnswer() if message.not_ready:
                self._report(now_us, "merging", message.message, now_us)
                self._hang_up(now_us, self._pace.merging_wait_us)
            case ErrorAnswer():
                self._refused(now_us, message.message or message.class_name)
            case Authenticated(status="authenticated", member_uuid=str()):
                self._accepted(now_us, message)
            case Authenticated(status="authenticated"):
                self._refused(now_us, "it does not say which member it is")
            case Authenticated(status="credentials failed"):
                name = self._settings.cluster_name
                self._refused_wait_us = self._pace.foreign_wait_us
                self._refused(now_us, f"its cluster is not named {name!r}, or user and password do not fit")
            case Authenticated():
                self._refused(now_us, f"it refuses this client: {message.status}")
            case _:
                self._refused(now_us, "its answer to the authentication is none")

    def _accepted(self, now_us: int, message: Authenticated) -> None:
        named = message.address or self.address
        if named != self.address and self.pinned:
            found = f"{named} answers at {self.endpoint}, where {self.address} should be"
            self._refused(now_us, f"{found}; an address map can separate them")
            return
        if named != self.address:
            self.address = named
            self._outputs.append(messages.Renamed(now_us, self.endpoint, named))
        assert message.member_uuid is not None
        self.member_uuid = message.member_uuid
        self._reader.limits = frames.FrameLimits()
        self._backoff_us = self._pace.first_wait_us
        self._refused_wait_us = self._pace.refused_wait_us
        self._heard_us = now_us
        session = ClientSession(self.address, message.member_uuid, self._pace, now_us)
        self._phase = session
        if self._closed is not None:
            self._report_closed(now_us)
        self._report(now_us, "connected", "", now_us)
        self._outputs.append(messages.Heard(now_us, self.address, message.member_uuid, message))
        self._send(session.begin(now_us, migrations=self._migrations_wanted))

    def _send(self, data: bytes) -> None:
        if data:
            self._outputs.append(Send(self.connection, data))

    def _report(self, now_us: int, state: ConnectionState, reason: str, since_us: int) -> None:
        """Report a state that has changed. Another reason to be refused is a change too."""
        changed = state != self.state or (state == "refused" and reason != self.reason)
        if changed:
            if state == "connected" or self.state == "connected":
                self.unreached_since_us = now_us
            self.state, self.since_us = state, since_us
            self._outputs.append(messages.ConnectionReport(now_us, self.address, state, reason, since_us))
        self.reason = reason
        self._closed = None

    def _report_closed(self, now_us: int) -> None:
        """Report that nothing comes over the connection that the member closed; why it did is not known."""
        assert self._closed is not None
        closed_us, reason = self._closed
        self._report(now_us, "silent", reason, closed_us)

    def _refused(self, now_us: int, reason: str) -> None:
        self._report(now_us, "refused", reason, now_us)
        self._hang_up(now_us, self._next_refused_wait_us())

    def _hang_up(self, now_us: int, wait_us: int) -> None:
        self._give_up_answers(now_us)
        self._outputs.append(HangUp(self.connection))
        self._wait(now_us, wait_us)

    def _next_refused_wait_us(self) -> int:
        """Return how long to wait after a refusal: each leaves a line in the log of the peer."""
        wait_us = self._refused_wait_us
        self._refused_wait_us = min(2 * wait_us, self._pace.foreign_wait_us)
        return wait_us

    def _next_backoff_us(self) -> int:
        wait_us = self._backoff_us
        self._backoff_us = min(2 * wait_us, self._pace.longest_wait_us)
        return wait_us

    def _wait(self, now_us: int, wait_us: int) -> None:
        shortened_us = int(wait_us * (1 - self._random.random() / 2))  # so that many followers do not dial together
        self._phase = WaitingToDial(now_us + shortened_us)
        self._reader = frames.MessageReader()

    def _give_up_answers(self, now_us: int) -> None:
        """Answer None to all requests that wait for an answer over this connection."""
        if isinstance(self._phase, ClientSession):
            tickets = [asked.ticket for asked in self._phase.questions.owed() if asked.ticket is not None]
            self._outputs += (messages.RequestAnswered(now_us, self.address, ticket, None) for ticket in tickets)


MOST_QUOTED = 40

SILENT = "it accepts the connection and says nothing: a member that stands still, or a listener that is no member"

TLS = "it answers in TLS: give --tls"
FIRST_WORDS: tuple[tuple[bytes, str], ...] = (
    (b"HTTP/", "it answers in HTTP: a web server, or a port for REST alone"),
    (b"SSH-", "it answers as an SSH server"),
    (b"\x15\x03\x01", TLS),
    (b"\x15\x03\x03", TLS),
    (b"HZC", "it answers as a member does to members: a port that is not for clients"),
)
PRINTABLE = re.compile(rb"[\x20-\x7e]{4,}")


def stranger(first: bytes) -> str:
    """Return what the first bytes of an answer show of the peer; empty where they may be those of a member.

    A listener that waits for more, as most web servers do, looks like a member that stands still: both accept and say nothing.
    """
    for beginning, meaning in FIRST_WORDS:
        if first.startswith(beginning):
            return meaning
    said = PRINTABLE.match(first)
    # The length of a frame that began with four letters would be more than any first answer has.
    return f'it answers "{said[0][:MOST_QUOTED].decode()}", which no member does' if said is not None else ""
