"""Follows one member: its history over HTTP, then its events over a WebSocket. Connects again whenever it is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from random import Random
from typing import NamedTuple, NoReturn, Protocol

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from quarterdeck.backend.clusters.cluster import Contact
from quarterdeck.backend.clusters.remote.access import address_in, connection_failure_text, no_process_listens
from quarterdeck.backend.clusters.remote.member_client import MemberClient, RequestRefused, decoded
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.witnessed.events import ConnectionState
from quarterdeck.backend.member_api.answers import ROOT, Gap, Hello, Records, StreamMessage
from quarterdeck.backend.member_api.beliefs import ThisMember

PAGE_RECORDS = 2_000
REFUSED_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)

MESSAGE: msgspec.json.Decoder[StreamMessage] = msgspec.json.Decoder(StreamMessage)

LARGEST_MESSAGE_BYTES = 64 * 1024 * 1024


class StreamTimings(NamedTuple):
    """How patient a stream is, in seconds."""

    dial: float = 5.0
    quiet: float = 2.0
    """A member that says nothing for so long is asked whether it is alive."""
    sign_of_life: float = 3.0
    first_retry: float = 0.25
    longest_retry: float = 5.0
    after_refusal: float = 30.0
    """The pause after a refusal: the member may count more requests as attempts to get in."""


class StreamBackoff:
    """Pauses between tries: each about twice the one before, up to a limit, and never quite the same for two watchers."""

    def __init__(self, first: float, longest: float, randomness: Random) -> None:
        self._first, self._longest, self._randomness = first, longest, randomness
        self._tries = 0

    def next(self) -> float:
        """How long to wait now, in seconds: from half of the pause to all of it."""
        whole: float = min(self._first * 2.0 ** min(self._tries, 30), self._longest)
        self._tries += 1
        return whole * self._randomness.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Make the next pause short again, for a try has succeeded."""
        self._tries = 0


class StreamObserver(Protocol):
    """Receives the messages of a stream, in the stream's event loop."""

    def identified(self, stream: MemberStream, facts: ThisMember) -> bool:
        """Note who the member is. Return whether to go on following it."""

    def history_begins(self, stream: MemberStream) -> None:
        """Note that the records that follow are those of the past."""

    def records_received(self, stream: MemberStream, records: Sequence[Record]) -> None:
        """Take records of the member, some of which may have been received before. None shows that it is alive."""

    def incomplete(self, stream: MemberStream, what: str) -> None:
        """Note that some of the member's records are lost for good."""

    def connected(self, stream: MemberStream) -> None:
        """Note that the history is complete; the records that follow happen now."""

    def lost(self, stream: MemberStream, state: ConnectionState, why: str, is_gone: bool = False) -> None:
        """Note that the member is not reached; `is_gone`: no process listens there. The stream tries again by itself."""


class MemberStream:
    """Follows the member at `url`, and holds how it is reached; `follow` ends only when the observer does not want the member.

    Times are UTC by this machine's clock, in microseconds.
    """

    def __init__(
        self,
        url: str,
        client: MemberClient,
        observer: StreamObserver,
        randomness: Random,
        timings: StreamTimings,
        now_us: int,
        *,
        records: bool = True,
    ) -> None:
        """Without `records` it only sees whether the member is there."""
        self.url = url
        self.contact: Contact = "connecting"
        self.since_us, self.heard_us = now_us, 0
        self.why, self.refused, self.is_gone = "", False, False
        """Why it is not connected; whether it turned us away, or its process is gone."""
        self.incomplete = self.label = ""
        """The missing part of its history; its label, once it has said its name."""
        self.facts: ThisMember | None = None
        self.clock_ahead_us = 0
        self._records = records
        self._client, self._observer, self._timings = client, observer, timings
        self._backoff = StreamBackoff(timings.first_retry, timings.longest_retry, randomness)
        self._process: tuple[str, datetime | None] = ("", None)
        """The run and the beginning of the process whose records were heard last."""
        self._last: tuple[str, int] | None = None
        """The record heard last: after it the stream goes on."""

    @property
    def address(self) -> Address:
        return self.facts.address if self.facts is not None else address_in(self.url)

    async def follow(self) -> None:
        """Connect, and connect again whenever the member is lost."""
        while True:
            pause = 0.0
            try:
                if not await self._once():
                    return
            except RequestRefused as refusal:
                self._observer.lost(self, "refused", error_text(refusal))
                pause = self._timings.after_refusal if refusal.status in REFUSED_STATUSES else 0.0
            except (CommandRefused, WebSocketException, OSError) as problem:  # TimeoutError is an OSError
                state: ConnectionState = "silent" if isinstance(problem, TimeoutError) else "gone"
                self._observer.lost(self, state, error_text(problem), no_process_listens(problem))
            await asyncio.sleep(pause or self._backoff.next())

    async def _once(self) -> bool:
        """One connection from beginning to end, which is always an error; False when it is not wanted."""
        asked_us = time.time_ns() // 1_000
        facts = await self._client.facts(self.url)
        self.clock_ahead_us = facts.utc_us - (asked_us + time.time_ns() // 1_000) // 2
        if not self._observer.identified(self, facts):
            return False
        process = (facts.run, facts.started_utc)
        if process != self._process:  # it knows nothing of what the one before has reported
            self._process, self._last = process, None
        if not self._records:
            await self._stay_in_touch()
        self._observer.history_begins(self)
        await self._catch_up()
        async with self._events() as socket:
            self._connected()
            while True:
                await self._take(await self._next(socket))

    def _connected(self) -> None:
        self._observer.connected(self)
        self._backoff.reset()

    async def _stay_in_touch(self) -> NoReturn:
        self._connected()
        while True:
            await asyncio.sleep(self._timings.quiet)
            await self._client.facts(self.url)
            self._observer.records_received(self, ())

    async def _catch_up(self) -> None:
        begun_anew = self._last is None
        while True:
            answer = await self._client.records(self.url, self._last, PAGE_RECORDS)
            if not answer.complete:
                missing = "its beginning" if begun_anew else "what happened while it was not heard"
                self._observer.incomplete(self, missing)
            if not answer.records:
                return
            begun_anew = False
            self._deliver(answer.records)

    def _deliver(self, records: Sequence[Record]) -> None:
        if records:
            self._last = (records[-1].uuid, records[-1].seq)
            self._observer.records_received(self, records)

    @asynccontextmanager
    async def _events(self) -> AsyncIterator[ClientConnection]:
        after = f"?after={self._last[0]}:{self._last[1]}" if self._last else ""
        async with connect(
            f"ws{self.url.removeprefix('http')}{ROOT}/events{after}",
            additional_headers=self._client.headers,
            ssl=self._client.tls if self.url.startswith("https://") else None,
            open_timeout=self._timings.dial,
            close_timeout=1,
            ping_interval=None,  # `_next` asks when it is quiet, and so knows when the member was heard last
            max_size=LARGEST_MESSAGE_BYTES,
            proxy=None,
        ) as socket:
            yield socket

    async def _next(self, socket: ClientConnection) -> str | bytes:
        """Return the next message. Raises `TimeoutError` when the member is silent, also when it is asked."""
        while True:
            try:
                async with asyncio.timeout(self._timings.quiet):
                    return await socket.recv()
            except TimeoutError:
                async with asyncio.timeout(self._timings.sign_of_life):
                    await (await socket.ping())
                self._observer.records_received(self, ())

    async def _take(self, message: str | bytes) -> None:
        match decoded(MESSAGE, message, self.url):
            case Records(records):
                self._deliver(records)
            case Gap():
                await self._catch_up()
            case Hello():
                self._observer.records_received(self, ())


def error_text(problem: Exception) -> str:
    """Return the problem, in one line."""
    if isinstance(problem, TimeoutError) and not str(problem):
        return "it gives no sign of life"
    if isinstance(problem, ConnectionClosed):
        return "the connection broke"
    if isinstance(problem, OSError):
        return connection_failure_text(problem)
    return " ".join(str(problem).split()) or type(problem).__name__
