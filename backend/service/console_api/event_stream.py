"""``/quarterdeck/v1/events``: what a member records, over a WebSocket as it happens.

Frames are JSON texts (docs/reference/http-api.md). Clients only listen: one that sends anything is disconnected. The server
pings; a client that does not answer, or does not read what it was sent, is disconnected after a while and may resume.

Records are encoded once, in batches that all clients share, and nothing is queued for a client. The member's record buffer is the
only store, with a ring of the latest encoded batches before it. A client is a place in these: one that keeps up is sent batches
from the ring, one that has fallen behind gets batches of its own from the buffer, and one that has fallen out of the buffer
learns what is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import WebSocketRoute
from starlette.status import WS_1008_POLICY_VIOLATION
from starlette.websockets import WebSocket, WebSocketDisconnect

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.member_api.answers import Gap, Hello
from quarterdeck.backend.service.http.access import access_of, require
from quarterdeck.backend.service.http.face import BEGINNING, Face, utc_now_us
from quarterdeck.backend.service.http.responses import Denied, failure

POLL_SECONDS = 0.05
"""How often the member's records are read while there are clients."""
REVOKED_SECONDS = 1.0
"""How often the credentials of an open stream are checked; their files are read every 2 s at most."""
CLOSE_SECONDS = 1.0
"""How long a client may take to accept the frame that says why its stream ends."""
MOST_RECORDS = 500
MOST_BYTES = 256 * 1024
"""The size of a batch, unless a single record is longer."""
BATCHES_KEPT = 16
"""Batches in the ring: most of a second, and 4 MB at most of usual records."""
RECORDS_PER_FETCH = 2_000
"""Records that a client which is behind is given from the buffer at a time."""


class Span(Struct, frozen=True):
    """The records of one incarnation in a batch, without a gap."""

    uuid: str
    first: int
    last: int


class Batch(Struct, frozen=True):
    """One message to clients, and which records it holds."""

    text: str
    spans: tuple[Span, ...]
    end: tuple[str, int]
    """Uuid and number of its last record."""


class StreamPosition:
    """How far one client has received the stream."""

    __slots__ = ("backlog", "batch", "complete", "known", "last")

    def __init__(self, last: tuple[str, int]) -> None:
        self.last = last
        self.known: dict[str, int] = {last[0]: last[1]} if last[0] else {}
        """The last number that it received of each incarnation."""
        self.backlog: Iterator[Batch] = iter(())
        """What it was given from the buffer and has not received; encoded as it goes."""
        self.batch = BEHIND
        """The number of the batch of the ring that comes after that; `BEHIND` if the buffer has more first."""
        self.complete = True
        """Whether nothing was lost when it last read from the buffer: then it knows what came before, of every incarnation."""


BEHIND = -1


class EventFeed:
    """The feed of one member. It reads the member's records only while it has clients."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._ring: deque[Batch] = deque(maxlen=BATCHES_KEPT)
        self._next = 0
        """The number of the batch that comes next; they are counted from the beginning."""
        self._end = BEGINNING
        self._new_batch = asyncio.Event()
        self._polling: asyncio.Task[None] | None = None
        self.clients = 0

    def subscribe(self, after: tuple[str, int]) -> StreamPosition:
        """Add a client that knows everything up to `after`; `BEGINNING` stands for nothing."""
        self.clients += 1
        if self._polling is None:
            self._end = self._face.latest_position()
            self._ring.clear()
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        return StreamPosition(after)

    def unsubscribe(self) -> None:
        """Remove a client."""
        self.clients -= 1
        if not self.clients and self._polling is not None:
            self._polling.cancel()
            self._polling = None

    async def messages(self, position: StreamPosition) -> list[str]:
        """Return what to send next to the client at `position`; wait until there is something."""
        while True:
            batch = next(position.backlog, None)
            if batch is not None:
                return [*_gaps_before(position, batch), batch.text]
            if position.batch == BEHIND or position.batch < self._next - len(self._ring):
                lost = self._fetch(position)
                if lost:
                    return lost
            elif position.batch < self._next:
                batch = self._ring[position.batch - self._next]
                position.batch += 1
                return [*_gaps_before(position, batch), batch.text]
            else:
                await self._new_batch.wait()

    def _fetch(self, position: StreamPosition) -> list[str]:
        """Give a client records from the buffer. Return what to send at once: that the rest of an incarnation is lost."""
        self._add_new_records()
        position.complete, records = self._face.records_after(*position.last)
        fetched = records[:RECORDS_PER_FETCH]
        position.backlog = batches(fetched)
        position.batch = self._next if len(records) == len(fetched) else BEHIND
        if position.complete or not position.last[0] or any(record.uuid == position.last[0] for record in fetched):
            return []
        lost = Gap(position.last[0], position.last[1] + 1, None)
        position.last = BEGINNING
        return [_text_of(lost)]

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            self._add_new_records()

    def _add_new_records(self) -> None:
        """Put what the member has recorded since into the ring, and wake waiting clients."""
        complete, records = self._face.records_after(*self._end)
        if not records:
            return
        if not complete:  # clients that were up to date are behind now, and read what the buffer has
            self._ring.clear()
            self._next += 1
        for batch in batches(records):
            self._ring.append(batch)
            self._next += 1
            self._end = batch.end
        self._new_batch.set()
        self._new_batch = asyncio.Event()


def batches(records: Sequence[Record]) -> Iterator[Batch]:
    """Put records into messages of a bounded length."""
    position = 0
    while position < len(records):
        lines = encoded(records[position : position + MOST_RECORDS], MOST_BYTES)
        held = records[position : position + len(lines)]
        position += len(lines)
        text = (b'{"type":"records","records":[%s]}' % b",".join(lines)).decode()
        yield Batch(text, _spans(held), (held[-1].uuid, held[-1].seq))


def _spans(records: Iterable[Record]) -> tuple[Span, ...]:
    found: list[Span] = []
    open_at: dict[str, int] = {}
    for record in records:
        at = open_at.get(record.uuid)
        if at is not None and found[at].last + 1 == record.seq:
            found[at] = Span(record.uuid, found[at].first, record.seq)
        else:
            open_at[record.uuid] = len(found)
            found.append(Span(record.uuid, record.seq, record.seq))
    return tuple(found)


def _gaps_before(position: StreamPosition, batch: Batch) -> list[str]:
    """Return what is lost between what the client knows and `batch`; the client knows `batch` from now on."""
    messages = []
    for span in batch.spans:
        known = position.known.get(span.uuid, span.first - 1 if position.complete else 0)
        if span.first > known + 1:
            messages.append(_text_of(Gap(span.uuid, known + 1, span.first - 1)))
        position.known[span.uuid] = span.last
    position.last = batch.end
    return messages


def _text_of(message: Struct) -> str:
    return _encode(message).decode()


_encode = msgspec.json.Encoder().encode


def encoded(records: Iterable[Record], most_bytes: int) -> list[bytes]:
    """Encode the first records, one JSON object each: at least one, and then as many as fit into `most_bytes`."""
    lines: list[bytes] = []
    room = most_bytes
    for record in records:
        line = _encode(record)
        room -= len(line)
        if lines and room < 0:
            break
        lines.append(line)
    return lines


MOST_CLIENTS = 100
"""Streams at a time; further clients are asked to come again."""
LONGEST_UUID = 100
HIGHEST_SEQ = 2**62


def event_stream(face: Face) -> WebSocketRoute:
    """Return the route of the stream, to be mounted under ``/quarterdeck/v1``."""
    feed = EventFeed(face)

    async def serve(websocket: WebSocket) -> None:
        try:
            require(face, websocket, "read", "CONSOLE")
            after = parse_position(websocket.query_params.get("after", ""))
            if feed.clients >= MOST_CLIENTS:
                raise Denied(
                    HTTPStatus.TOO_MANY_REQUESTS, f"{MOST_CLIENTS} streams are open already", "close one, or ask again"
                )
        except HTTPException as problem:
            await websocket.send_denial_response(failure(problem))
            return
        stream_position = feed.subscribe(after)
        try:
            await websocket.accept()
            hello = Hello(face.label, face.uuid, face.run, utc_now_us() - face.now_us())
            await websocket.send_text(msgspec.json.encode(hello).decode())
            await _until_first_ends(
                _send_events(websocket, feed, stream_position),
                _until_disconnected(websocket),
                _until_revoked(face, websocket),
            )
        except WebSocketDisconnect:
            pass
        finally:
            feed.unsubscribe()

    return WebSocketRoute("/events", serve)


def parse_position(text: str) -> tuple[str, int]:
    """Parse ``UUID:SEQ``, or the beginning for nothing. Raises `Denied`."""
    if not text:
        return "", 0
    uuid, colon, seq = text.rpartition(":")
    if not (colon and uuid and len(uuid) <= LONGEST_UUID and seq.isascii() and seq.isdigit() and len(seq) < 20):
        raise Denied(
            HTTPStatus.BAD_REQUEST,
            "after: is not a position in the stream",
            "write UUID:SEQ of the last record that you have, or leave it out",
        )
    return uuid, min(int(seq), HIGHEST_SEQ)


async def _send_events(websocket: WebSocket, feed: EventFeed, stream_position: StreamPosition) -> None:
    while True:
        for message in await feed.messages(stream_position):
            await websocket.send_text(message)


async def _until_disconnected(websocket: WebSocket) -> None:
    """Return when the client has disconnected, or has sent something."""
    message = await websocket.receive()
    if message["type"] != "websocket.disconnect":
        await websocket.close(WS_1008_POLICY_VIOLATION, "this stream only sends")


async def _until_revoked(face: Face, websocket: WebSocket) -> None:
    """Return when the credentials that opened the stream are no longer accepted."""
    access = access_of(face, websocket)
    while True:
        await asyncio.sleep(REVOKED_SECONDS)
        if not access.still_known(websocket, "CONSOLE"):
            break
    with suppress(TimeoutError):  # a client that reads nothing learns nothing
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(WS_1008_POLICY_VIOLATION, "the user of this stream is no longer accepted")


async def _until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Return when one of these has ended, and end the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
