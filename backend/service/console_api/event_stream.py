"""``/quarterdeck/v1/events``: what a member records, over a WebSocket as it happens.

Frames are JSON texts (docs/reference/http-api.md). Clients only listen: one that sends anything is disconnected. The server
pings; a client that does not answer, or does not read what it was sent, is disconnected after a while and may resume.

Nothing is queued for a client. The member's record buffer is the only store, and a client is a place in it: what comes after
that is put into one message, which all clients at the same place share. One that has fallen out of the buffer learns what is
lost.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from http import HTTPStatus
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import WebSocketRoute
from starlette.status import WS_1008_POLICY_VIOLATION
from starlette.websockets import WebSocket, WebSocketDisconnect

from quarterdeck.backend.member_api.answers import Gap, Hello
from quarterdeck.backend.service.http.access import access_of, require
from quarterdeck.backend.service.http.face import Face, utc_now_us
from quarterdeck.backend.service.http.responses import Denied, failure
from quarterdeck.backend.service.record_buffer import BEGINNING, StoredRecord

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
"""Messages that clients at the same place share: 4 MB at most of usual records."""


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
    complete: bool
    """Whether nothing is lost before it: then its clients know what came before, of every incarnation."""
    forgets_incarnation: bool
    """Whether the rest of the incarnation after whose records it comes is lost."""


class StreamPosition:
    """How far one client has received the stream."""

    __slots__ = ("known", "last")

    def __init__(self, last: tuple[str, int]) -> None:
        self.last = last
        self.known: dict[str, int] = {last[0]: last[1]} if last[0] else {}
        """The last number that it received of each incarnation."""


class EventFeed:
    """The feed of one member. It looks for new records only while it has clients."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._batches: OrderedDict[tuple[str, int], Batch] = OrderedDict()
        """By the place after which each comes."""
        self._seen = BEGINNING
        self._changed = asyncio.Event()
        self._polling: asyncio.Task[None] | None = None
        self.clients = 0

    def subscribe(self, after: tuple[str, int]) -> StreamPosition:
        """Add a client that knows everything up to `after`; `BEGINNING` stands for nothing."""
        self.clients += 1
        if self._polling is None:
            self._seen = self._face.records.latest_position()
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        return StreamPosition(after)

    def unsubscribe(self) -> None:
        self.clients -= 1
        if not self.clients and self._polling is not None:
            self._polling.cancel()
            self._polling = None
            self._batches.clear()

    async def messages(self, position: StreamPosition) -> list[str]:
        """Return what to send next to the client at `position`; wait until there is something."""
        while (batch := self._batch_after(position.last)) is None:
            await self._changed.wait()
        if batch.forgets_incarnation:
            uuid, seq = position.last
            position.last = BEGINNING
            return [_text_of(Gap(uuid, seq + 1, None))]
        return [*_gaps_before(position, batch), batch.text]

    def _batch_after(self, place: tuple[str, int]) -> Batch | None:
        batch = self._batches.get(place)
        if batch is None and place != self._face.records.latest_position():
            complete, records = self._face.records.after(*place)
            if not records:
                return None
            held = fitting(records[:MOST_RECORDS], MOST_BYTES)
            text = (b'{"type":"records","records":[%s]}' % b",".join(stored.text for stored in held)).decode()
            forgets = not complete and bool(place[0]) and all(stored.uuid != place[0] for stored in records)
            batch = Batch(text, _spans(held), (held[-1].uuid, held[-1].seq), complete, forgets)
            self._batches[place] = batch
            if len(self._batches) > BATCHES_KEPT:
                self._batches.popitem(last=False)
        return batch

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            latest = self._face.records.latest_position()
            if latest != self._seen:
                self._seen = latest
                self._changed.set()
                self._changed = asyncio.Event()


def _spans(records: Iterable[StoredRecord]) -> tuple[Span, ...]:
    found: list[Span] = []
    open_at: dict[str, int] = {}
    for stored in records:
        at = open_at.get(stored.uuid)
        if at is not None and found[at].last + 1 == stored.seq:
            found[at] = Span(stored.uuid, found[at].first, stored.seq)
        else:
            open_at[stored.uuid] = len(found)
            found.append(Span(stored.uuid, stored.seq, stored.seq))
    return tuple(found)


def _gaps_before(position: StreamPosition, batch: Batch) -> list[str]:
    """Return what is lost between what the client knows and `batch`; the client knows `batch` from now on."""
    messages = []
    for span in batch.spans:
        known = position.known.get(span.uuid, span.first - 1 if batch.complete else 0)
        if span.first > known + 1:
            messages.append(_text_of(Gap(span.uuid, known + 1, span.first - 1)))
        position.known[span.uuid] = span.last
    position.last = batch.end
    return messages


def _text_of(message: Struct) -> str:
    return msgspec.json.encode(message).decode()


def fitting(records: Sequence[StoredRecord], most_bytes: int) -> Sequence[StoredRecord]:
    """Return the first records: at least one, and then as many as fit into `most_bytes`."""
    sizes = accumulate(len(stored.text) for stored in records)
    return records[: max(1, sum(size <= most_bytes for size in sizes))]


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
                problem = f"{MOST_CLIENTS} streams are open already"
                raise Denied(HTTPStatus.TOO_MANY_REQUESTS, problem, "close one, or ask again")
        except HTTPException as refusal:
            await websocket.send_denial_response(failure(refusal))
            return
        stream_position = feed.subscribe(after)
        try:
            await websocket.accept()
            hello = Hello(face.label, face.member.uuid, face.run, utc_now_us() - face.now_us())
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
        hint = "write UUID:SEQ of the last record that you have, or leave it out"
        raise Denied(HTTPStatus.BAD_REQUEST, "after: is not a position in the stream", hint)
    return uuid, min(int(seq), HIGHEST_SEQ)


async def _send_events(websocket: WebSocket, feed: EventFeed, stream_position: StreamPosition) -> None:
    while True:
        for message in await feed.messages(stream_position):
            await websocket.send_text(message)


async def _until_disconnected(websocket: WebSocket) -> None:
    message = await websocket.receive()
    if message["type"] != "websocket.disconnect":
        await websocket.close(WS_1008_POLICY_VIOLATION, "this stream only sends")


async def _until_revoked(face: Face, websocket: WebSocket) -> None:
    access = access_of(face, websocket)
    while True:
        await asyncio.sleep(REVOKED_SECONDS)
        if not access.still_known(websocket, "CONSOLE"):
            break
    with suppress(TimeoutError):  # a client that reads nothing learns nothing
        async with asyncio.timeout(CLOSE_SECONDS):
            await websocket.close(WS_1008_POLICY_VIOLATION, "the user of this stream is no longer accepted")


async def _until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
