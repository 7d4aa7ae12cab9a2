"""The sockets of a watch: what `Followers` wants dialled, sent and closed, done with asyncio."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from random import Random

from quarterdeck.backend.core.address import Address, host_of, port_of
from quarterdeck.backend.hazelcast.wire.follower import (
    Dial,
    Ending,
    FollowedConnection,
    HangUp,
    MemberFollower,
    Output,
    Send,
)
from quarterdeck.backend.hazelcast.wire.followers import Followers
from quarterdeck.backend.hazelcast.wire.messages import Answer
from quarterdeck.backend.hazelcast.wire.observations import Observation, RequestAnswered
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.settings import SECOND_US, WatchSettings
from quarterdeck.backend.hazelcast.wire.tls import client_context


class NoAnswer(Exception):
    """The connection ended before the answer came, or there was none. A shutdown is answered so."""


class _Link(asyncio.Protocol):
    """One connection of asyncio's. It tells the watch what happens to it."""

    def __init__(self, watch: MemberWatch, connection: FollowedConnection) -> None:
        self._watch = watch
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._watch.link_opened(self._connection, transport)

    def data_received(self, data: bytes) -> None:
        self._watch.link_received(self._connection, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._watch.link_closed(self._connection, *_ending_of(error))


class MemberWatch:
    """Watches real members until `run` is cancelled.

    `hear` is called in the event loop for every observation, in order. `clock_us` is the run's clock, which all their times
    are of. Raises `BadTlsFiles` when the files of the settings are of no use.
    """

    def __init__(
        self, settings: WatchSettings, hear: Callable[[Observation], None], clock_us: Callable[[], int], random: Random
    ) -> None:
        self._settings = settings
        self._hear = hear
        self._clock_us = clock_us
        self._tls = None if settings.tls is None else client_context(settings.tls)
        self._followers = Followers(settings, random, clock_us())
        self._transports: dict[FollowedConnection, asyncio.Transport] = {}
        self._dialling: dict[FollowedConnection, asyncio.Task[None]] = {}
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._tickets = count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._broken: asyncio.Future[None] | None = None

    @property
    def followed(self) -> Mapping[Address, MemberFollower]:
        """Who is followed, and how it stands with each: `Follower.state`, `reason`, `since_us`."""
        return self._followers.by_address

    async def run(self) -> None:
        """Watch until cancelled; then close all connections. It ends by itself for no fault of a member."""
        self._broken = asyncio.get_running_loop().create_future()
        try:
            self._tick()
            await self._broken
        finally:
            self._end()

    async def ask(self, address: Address, request: Question | Command, seconds: float = 10.0) -> Answer:
        """Ask one member, and wait for its answer. An `ErrorAnswer` is returned, not raised.

        Raises `NoAnswer` when the connection ends first or there is none, `TimeoutError` after `seconds`.
        """
        if self._broken is None or self._broken.done():
            raise NoAnswer("the watch does not run")
        ticket = next(self._tickets)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        try:
            self._carry_out(self._followers.ask(self._clock_us(), address, request, ticket))
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            del self._answers[ticket]

    def link_opened(self, connection: FollowedConnection, transport: asyncio.Transport) -> None:
        """A connection has been made. One that is not wanted any more is closed."""
        if connection not in self._dialling:
            transport.abort()
            return
        self._transports[connection] = transport
        self._carry_out(self._followers.opened(self._clock_us(), connection))

    def link_received(self, connection: FollowedConnection, data: bytes) -> None:
        """Bytes have come."""
        if connection in self._transports:
            self._carry_out(self._followers.received(self._clock_us(), connection, data))

    def link_closed(self, connection: FollowedConnection, reason: str, ending: Ending) -> None:
        """A connection has ended, or could not be made."""
        if self._transports.pop(connection, None) is not None or connection in self._dialling:
            self._carry_out(self._followers.closed(self._clock_us(), connection, reason, ending))

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self._followers.tick(self._clock_us()))

    def _carry_out(self, outputs: Iterable[Output]) -> None:
        """Do what is to be done with connections, and tell what came to light. A fault in `hear` ends the watch."""
        if self._broken is None or self._broken.done():
            return
        try:
            for output in outputs:
                match output:
                    case Dial(connection):
                        self._dialling[connection] = asyncio.create_task(self._dial(connection))
                    case Send(connection, data):
                        if connection in self._transports:
                            self._transports[connection].write(data)
                    case HangUp(connection):
                        self._hang_up(connection)
                    case _:
                        self._tell(output)
        except Exception as error:
            self._broken.set_exception(error)
            raise
        self._set_timer()

    def _tell(self, observation: Observation) -> None:
        if isinstance(observation, RequestAnswered):
            waiting = self._answers.get(observation.ticket)
            if waiting is not None and not waiting.done():
                if observation.answer is None:
                    waiting.set_exception(NoAnswer(f"{observation.address} has not answered"))
                else:
                    waiting.set_result(observation.answer)
        self._hear(observation)

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        seconds = max(self._followers.deadline_us - self._clock_us(), 0) / SECOND_US
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return  # then it looks again
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._tick)

    async def _dial(self, connection: FollowedConnection) -> None:
        host, port = host_of(connection.endpoint), port_of(connection.endpoint)
        tls = self._settings.tls
        name = None if tls is None else tls.host_name or host
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: _Link(self, connection), host, port, ssl=self._tls, server_hostname=name
            )
        except (ConnectionAbortedError, ConnectionResetError) as error:
            if self._tls is None:
                self.link_closed(connection, *_ending_of(error))
            else:
                self.link_closed(connection, "the connection ended in the handshake; does it speak TLS?", "turned away")
        except OSError as error:
            self.link_closed(connection, *_ending_of(error))
        finally:
            self._dialling.pop(connection, None)

    def _hang_up(self, connection: FollowedConnection) -> None:
        dialling = self._dialling.pop(connection, None)
        if dialling is not None:
            dialling.cancel()
        transport = self._transports.pop(connection, None)
        if transport is not None:
            transport.abort()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self._dialling, *self._transports]:
            self._hang_up(connection)
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(NoAnswer("the watch has ended"))


def _ending_of(error: Exception | None) -> tuple[str, Ending]:
    """What an end means, and the words for it."""
    match error:
        case None:
            return "it has closed the connection", "closed"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not accepted: {error.verify_message}", "turned away"
        case ssl.SSLError():
            return f"TLS does not come about: {error.reason or error}", "turned away"
        case socket.gaierror():
            return "there is no host of that name", "closed"
        case ConnectionRefusedError():
            return "nobody listens there", "closed"
        case ConnectionError():
            return "the connection was reset", "closed"
        case _:
            return f"it cannot be reached: {error}", "unreachable"
