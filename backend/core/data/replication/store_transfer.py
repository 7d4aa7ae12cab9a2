"""A partition's store as a row of chunks, and back: for migrations and for backups that are out of step.

The chunks are made as they are asked for, so no call does more than about one chunk of work however much there is. The store must
not be written meanwhile: its owner sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.data.partition_store import Entry, PartitionStore, Session, Stamp

ENTRY_OVERHEAD_BYTES = 40
"""About what an entry takes in a chunk besides its key and value."""


class StoreHead(Struct, frozen=True, tag="head", array_like=True):
    """The first chunk: what the store is like, so that a receiver that has the same can say so."""

    stamp: Stamp
    digest: int
    entries: int
    sessions: int


class SessionChunk(Struct, frozen=True, tag="sessions", array_like=True):
    """What the replica knows of callers: their uuids, each with its session."""

    sessions: list[tuple[str, Session]]


class EntryChunk(Struct, frozen=True, tag="entries", array_like=True):
    """Entries of one map."""

    map: str
    entries: list[tuple[str, Entry]]


Chunk = StoreHead | SessionChunk | EntryChunk

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Chunk)


def chunks_of(store: PartitionStore, chunk_bytes: int) -> Iterator[bytes]:
    """The store in chunks of about `chunk_bytes`, the head first."""
    sessions = list(store.sessions.items())
    yield _encode(StoreHead(store.stamp, store.digest, store.entries, len(sessions)))
    yield from _session_chunks(sessions, chunk_bytes)
    for name, entries in store.maps.items():
        taken: list[tuple[str, Entry]] = []
        size = 0
        for key, entry in entries.items():
            taken.append((key, entry))
            size += len(key) + len(entry.value) + ENTRY_OVERHEAD_BYTES
            if size >= chunk_bytes:
                yield _encode(EntryChunk(name, taken))
                taken, size = [], 0
        if taken:
            yield _encode(EntryChunk(name, taken))


def _session_chunks(sessions: list[tuple[str, Session]], chunk_bytes: int) -> Iterator[bytes]:
    taken: list[tuple[str, Session]] = []
    size = 0
    for one in sessions:
        taken.append(one)
        size += len(_encode(one))
        if size >= chunk_bytes:
            yield _encode(SessionChunk(taken))
            taken, size = [], 0
    if taken:
        yield _encode(SessionChunk(taken))


class Staging:
    """A store that is being taken over, beside the one that is there. `store` stays None if that one is just as good."""

    __slots__ = ("_head", "complete", "store")

    def __init__(self) -> None:
        self.store: PartitionStore | None = None
        self.complete = False
        self._head: StoreHead | None = None

    def take(self, chunk: bytes, present: PartitionStore | None) -> bool:
        """Take the next chunk in. True when nothing more is needed.

        Raises `msgspec.DecodeError` when it is no chunk, ValueError when what came is not what the head has promised.
        """
        content = _decoder.decode(chunk)
        if isinstance(content, StoreHead):
            self._begin(content, present)
        elif self.store is None:
            if not self.complete:
                raise ValueError("the head of the store is missing")
        elif isinstance(content, SessionChunk):
            self.store.sessions.update(content.sessions)
        else:
            for key, entry in content.entries:
                self.store.put(content.map, key, entry)
        self._check_complete()
        return self.complete

    def _begin(self, head: StoreHead, present: PartitionStore | None) -> None:
        self._head = head
        if present is not None and present.stamp == head.stamp and present.digest == head.digest:
            self.store, self.complete = None, True
            return
        self.store, self.complete = PartitionStore(), False
        self.store.stamp = head.stamp

    def _check_complete(self) -> None:
        head, store = self._head, self.store
        if head is None or store is None or self.complete:
            return
        if store.entries == head.entries and len(store.sessions) == head.sessions:
            if store.digest != head.digest:
                raise ValueError("what came has another digest than what was promised")
            self.complete = True
