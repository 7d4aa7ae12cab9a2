"""The sockets of a watch: what `Followers` wants dialled, sent and closed, done with asyncio."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from random import Random

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire import follower
from quarterdeck.backend.hazelcast.wire.followers import Followers
from quarterdeck.backend.hazelcast.wire.messages import Answer, Observation, RequestAnswered
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Ending, NotReached, TlsOptions, WatchSettings

FIRST_LOOK_UP_SECONDS = 2.0
"""So long names are looked up before the first connection is made."""


class NoAnswer(Exception):
    """The connection ended before the answer arrived, or there was none. So a shutdown ends."""


class NotConnected(NoAnswer):
    """There is no connection to ask over."""


class BadTlsFiles(ValueError):
    """Files that cannot be used for TLS. The message names the file."""


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Make the TLS context of all connections, for TLS 1.2 and later. Raises `BadTlsFiles`."""
    try:
        # An authority counts alone, without those of the system.
        context = ssl.create_default_context(cafile=options.authority)
    except (OSError, ssl.SSLError) as error:
        if options.authority is None:
            raise
        raise BadTlsFiles(f"the authority {options.authority} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.check_host_name
    if options.certificate is not None:
        try:
            context.load_cert_chain(options.certificate, options.key)
        except (OSError, ssl.SSLError) as error:
            raise BadTlsFiles(f"the certificate {options.certificate} with its key cannot be used: {error}") from error
    elif options.key is not None:
        raise BadTlsFiles(f"the key {options.key} needs a certificate beside it")
    return context


class _Link(asyncio.Protocol):
    """One connection of asyncio's, which passes its events to the watch."""

    def __init__(self, watch: MemberWatch, connection: follower.FollowedConnection) -> None:
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

    `hear` is called in the event loop for every observation, in order. Their times are of `clock_us`, the run's clock. Raises
    `BadTlsFiles` when the files of the settings cannot be used.
    """

    def __init__(
        self, settings: WatchSettings, hear: Callable[[Observation], None], clock_us: Callable[[], int], random: Random
    ) -> None:
        self._settings, self._route = settings, settings.route
        self._hear = hear
        self._clock_us = clock_us
        self._tls = None if settings.tls is None else client_context(settings.tls)
        self._followers = Followers(settings, random, clock_us())
        self._transports: dict[follower.FollowedConnection, asyncio.Transport] = {}
        self._dialling: dict[follower.FollowedConnection, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._tickets = count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._broken: asyncio.Future[None] | None = None

    @property
    def followed(self) -> Mapping[Address, follower.MemberFollower]:
        return self._followers.by_address

    def host_name_of(self, member: Address) -> str:
        """Return the name that the certificate of a member has to hold: as it was found, unless the settings name another."""
        followed = self.followed.get(member)
        return self._certified_name(self._settings.endpoint_of(member) if followed is None else followed.endpoint)

    async def run(self) -> None:
        """Watch until cancelled; then close all connections. No fault of a member ends it."""
        self._broken = asyncio.get_running_loop().create_future()
        looked_up = asyncio.Event()
        beside = [asyncio.create_task(work) for work in (self._route.run(), self._resolve_names(looked_up))]
        for task in beside:
            task.add_done_callback(self._break)
        try:
            if self._followers.names:
                with suppress(TimeoutError):
                    await asyncio.wait_for(looked_up.wait(), FIRST_LOOK_UP_SECONDS)
            self._tick()
            await self._broken
        finally:
            self._end()
            for task in (*beside, *self._ending):
                task.cancel()
            await asyncio.gather(*beside, *self._ending, return_exceptions=True)

    async def ask(self, address: Address, request: Question | Command, seconds: float = 10.0) -> Answer:
        """Ask one member, and return its answer. An `ErrorAnswer` is returned, not raised.

        Raises `NoAnswer` when the connection ends first or there is none, `TimeoutError` after `seconds`.
        """
        if self._broken is None or self._broken.done():
            raise NoAnswer("the watch does not run")
        ticket = next(self._tickets)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        try:
            self._carry_out(self._followers.ask(self._clock_us(), address, request, ticket))
            if answer.done() and answer.exception() is not None:  # at once, so the member was not asked
                raise NotConnected(f"{address} is not connected")
            async with asyncio.timeout(seconds):
                return await answer
        finally:
            del self._answers[ticket]

    def link_opened(self, connection: follower.FollowedConnection, transport: asyncio.Transport) -> None:
        """Begin to use a connection. One that is no longer wanted is closed."""
        if connection not in self._dialling:
            transport.abort()
            return
        self._transports[connection] = transport
        self._carry_out(self._followers.opened(self._clock_us(), connection))

    def link_received(self, connection: follower.FollowedConnection, data: bytes) -> None:
        if connection in self._transports:
            self._carry_out(self._followers.received(self._clock_us(), connection, data))

    def link_closed(self, connection: follower.FollowedConnection, reason: str, ending: Ending) -> None:
        """Pass on that a connection has ended, or could not be made."""
        was_open = self._transports.pop(connection, None) is not None
        if was_open and self._route.is_indirect:
            task = asyncio.create_task(self._explain_end(connection, reason, ending))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        elif was_open or connection in self._dialling:
            self._carry_out(self._followers.closed(self._clock_us(), connection, reason, ending))

    async def _explain_end(self, connection: follower.FollowedConnection, reason: str, ending: Ending) -> None:
        """Pass on the end of a connection as what stands between explains it."""
        known = await self._route.why_ended(connection.endpoint)
        self._carry_out(self._followers.closed(self._clock_us(), connection, *(known or (reason, ending))))

    async def _resolve_names(self, looked_up: asyncio.Event) -> None:
        while True:
            for name in sorted(self._followers.names):
                hosts = await self._route.hosts_of(name)
                self._carry_out(self._followers.resolved(self._clock_us(), name, hosts))
            looked_up.set()
            await self._route.pause(self._settings.pace.resolve_us / SECOND_US)

    def _break(self, ended: asyncio.Task[None]) -> None:
        """End the watch when what runs beside it has failed."""
        failure = None if ended.cancelled() else ended.exception()
        if failure is not None and self._broken is not None and not self._broken.done():
            self._broken.set_exception(failure)

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self._followers.tick(self._clock_us()))

    def _carry_out(self, outputs: Iterable[follower.Output]) -> None:
        """Carry out what is wanted of connections, and pass on observations. An exception of `hear` ends the watch."""
        if self._broken is None or self._broken.done():
            return
        try:
            for output in outputs:
                match output:
                    case follower.Dial(connection):
                        self._dialling[connection] = asyncio.create_task(self._dial(connection))
                    case follower.Send(connection, data):
                        if connection in self._transports:
                            self._transports[connection].write(data)
                    case follower.HangUp(connection):
                        self._hang_up(connection)
                    case _:
                        self._pass_on(output)
        except Exception as error:
            self._broken.set_exception(error)
            raise
        self._set_timer()

    def _pass_on(self, observation: Observation) -> None:
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

    def _certified_name(self, endpoint: Address) -> str:
        tls = self._settings.tls
        return tls.host_name if tls is not None and tls.host_name else self._followers.host_name_of(endpoint)

    async def _dial(self, connection: follower.FollowedConnection) -> None:
        name = None if self._tls is None else self._certified_name(connection.endpoint)
        try:
            host, port = await self._route.reach(connection.endpoint)
            await asyncio.get_running_loop().create_connection(
                lambda: _Link(self, connection), host, port, ssl=self._tls, server_hostname=name
            )
        except NotReached as none:
            self.link_closed(connection, none.reason, none.ending)
        except (ConnectionAbortedError, ConnectionResetError) as error:
            if self._tls is None:
                self.link_closed(connection, *_ending_of(error))
            else:
                self.link_closed(connection, "the connection ended in the handshake; does it speak TLS?", "refused")
        except OSError as error:
            if self._route.is_indirect and isinstance(error, ConnectionError):
                # The near end says nothing of the member.
                self.link_closed(connection, "what leads there has just ended", "unreachable")
            else:
                self.link_closed(connection, *_ending_of(error))
        finally:
            self._dialling.pop(connection, None)

    def _hang_up(self, connection: follower.FollowedConnection) -> None:
        if (dialling := self._dialling.pop(connection, None)) is not None:
            dialling.cancel()
        if (transport := self._transports.pop(connection, None)) is not None:
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
    """Return the words for an end, and what it means."""
    match error:
        case None:
            return "it has closed the connection", "closed"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not accepted: {error.verify_message}", "refused"
        case ssl.SSLError():
            return f"TLS does not come about: {error.reason or error}", "refused"
        case socket.gaierror(errno=socket.EAI_AGAIN):
            return "its name cannot be looked up now: DNS does not answer", "unreachable"
        case socket.gaierror():
            return "there is no host of that name", "unreachable"
        case ConnectionRefusedError():
            return "no process listens there", "absent"
        case ConnectionError():
            return "the connection was reset", "closed"
        case _:
            return f"it cannot be reached: {error}", "unreachable"
