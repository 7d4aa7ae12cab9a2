"""The records of one member for many clients: encoded once, in batches that all clients share.

Nothing is queued for anybody. The member's record buffer is the only store; a ring of the latest encoded batches lies before it.
A client is a place in these: who keeps up is sent batches from the ring, who has fallen behind gets batches of its own out of the
buffer, and who has fallen out of the buffer is told what is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.member_api.answers import Gap
from quarterdeck.backend.service.http.face import Face

POLL_SECONDS = 0.05
"""How often the member's records are looked at while there are clients."""

MOST_RECORDS = 500
MOST_BYTES = 256 * 1024
"""What one batch holds, unless a single record is longer."""

BATCHES_KEPT = 16
"""Batches in the ring: most of a second, and 4 MB at most of usual records."""

RECORDS_PER_FETCH = 2_000
"""Records that a client which is behind is given out of the buffer at a time."""

BEGINNING = ("", 0)
"""The place of who knows nothing."""


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
    """How far one client has been told."""

    __slots__ = ("backlog", "batch", "complete", "known", "last")

    def __init__(self, last: tuple[str, int]) -> None:
        self.last = last
        self.known: dict[str, int] = {last[0]: last[1]} if last[0] else {}
        """The last number of each incarnation that it was told."""
        self.backlog: Iterator[Batch] = iter(())
        """What it was given out of the buffer and has not been told; encoded as it goes."""
        self.batch = BEHIND
        """The number of the batch of the ring that comes after that; `BEHIND` if the buffer has more first."""
        self.complete = True
        """Whether nothing was lost when it last read from the buffer: then it knows what came before, of every incarnation."""


BEHIND = -1


class EventFeed:
    """The feed of one member. Looks at its records only while it has clients."""

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
        """A client comes that knows everything up to `after`; `BEGINNING` stands for nothing."""
        self.clients += 1
        if self._polling is None:
            self._end = self._latest()
            self._ring.clear()
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        return StreamPosition(after)

    def unsubscribe(self) -> None:
        """A client goes."""
        self.clients -= 1
        if not self.clients and self._polling is not None:
            self._polling.cancel()
            self._polling = None

    async def messages(self, position: StreamPosition) -> list[str]:
        """What the client at `position` is to be sent next; waits until there is something."""
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
        """Give a client what the buffer has for it. What is to be told at once: that the rest of an incarnation is lost."""
        self._take_new_records()
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
            self._take_new_records()

    def _take_new_records(self) -> None:
        """Put what the member has recorded since into the ring, and wake those who wait for it."""
        complete, records = self._face.records_after(*self._end)
        if not records:
            return
        if not complete:  # whoever was up to date is not any more, and has to read from the buffer what is left there
            self._ring.clear()
            self._next += 1
        for batch in batches(records):
            self._ring.append(batch)
            self._next += 1
            self._end = batch.end
        self._new_batch.set()
        self._new_batch = asyncio.Event()

    def _latest(self) -> tuple[str, int]:
        _, records = self._face.records_after(*BEGINNING)
        return (records[-1].uuid, records[-1].seq) if records else BEGINNING


def batches(records: Sequence[Record]) -> Iterator[Batch]:
    """`records` in messages of a bounded length."""
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
    """What is lost between what the client knows and `batch`; it is taken to know `batch` from now on."""
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
    """The first of `records`, one JSON object each: one at least, if there is any, and then as many as fit into `most_bytes`."""
    lines: list[bytes] = []
    room = most_bytes
    for record in records:
        line = _encode(record)
        room -= len(line)
        if lines and room < 0:
            break
        lines.append(line)
    return lines
