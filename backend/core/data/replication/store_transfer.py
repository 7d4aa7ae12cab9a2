"""A partition's store as a series of chunks, and back: for migrations and for backups that are out of step.

The chunks are made as they are asked for, so no call does more than about one chunk of work however much there is. The store must
not be written meanwhile: its owner prevents that.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.data.partition_store import PartitionStore, Session, Stamp, StoredEntry
from quarterdeck.backend.core.partitions.migration.migration import StoreCursor

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
    entries: list[tuple[str, StoredEntry]]


Chunk = StoreHead | SessionChunk | EntryChunk

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Chunk)


def next_chunk(store: PartitionStore, cursor: StoreCursor, chunk_bytes: int) -> bytes | None:
    """Return the next chunk of about `chunk_bytes`, the head first; None when all is sent."""
    if cursor.sessions is None:
        cursor.sessions, cursor.maps = list(reversed(store.sessions.items())), list(reversed(store.maps))
        return _encode(StoreHead(store.stamp, store.digest, store.entries, len(cursor.sessions)))
    if cursor.sessions:
        return _encode(SessionChunk(_pop_sessions(cursor.sessions, chunk_bytes)))
    if not cursor.keys:
        if not cursor.maps:
            return None
        cursor.map = cursor.maps.pop()
        cursor.keys = list(reversed(store.maps[cursor.map]))
    return _encode(EntryChunk(cursor.map, _pop_entries(store.maps[cursor.map], cursor.keys, chunk_bytes)))


def _pop_sessions(sessions: list[tuple[str, Session]], chunk_bytes: int) -> list[tuple[str, Session]]:
    taken: list[tuple[str, Session]] = []
    size = 0
    while sessions and size < chunk_bytes:
        taken.append(sessions.pop())
        size += len(_encode(taken[-1]))
    return taken


def _pop_entries(entries: dict[str, StoredEntry], keys: list[str], chunk_bytes: int) -> list[tuple[str, StoredEntry]]:
    taken: list[tuple[str, StoredEntry]] = []
    size = 0
    while keys and size < chunk_bytes:
        key = keys.pop()
        entry = entries[key]
        taken.append((key, entry))
        size += len(key) + len(entry.value) + ENTRY_OVERHEAD_BYTES
    return taken


@dataclass(slots=True)
class Staging:
    """A store that is being copied, beside the present one. `store` stays None if that one is equal."""

    store: PartitionStore | None = None
    complete: bool = False
    head: StoreHead | None = None

    def receive(self, chunk: bytes, present: PartitionStore | None) -> bool:
        """Add the next chunk. Return whether nothing more is needed.

        Raises:
            msgspec.DecodeError: It is no chunk.
            ValueError: The content is not what the head has announced.
        """
        content = _decoder.decode(chunk)
        if isinstance(content, StoreHead):
            self._begin_store(content, present)
        elif self.store is None:
            if not self.complete:
                raise ValueError("the head of the store is missing")
        elif isinstance(content, SessionChunk):
            for caller, session in content.sessions:
                self.store.remember(caller, session)
        else:
            for key, entry in content.entries:
                self.store.put(content.map, key, entry)
        self._check_complete()
        return self.complete

    def _begin_store(self, head: StoreHead, present: PartitionStore | None) -> None:
        self.head = head
        if present is not None and present.stamp == head.stamp and present.digest == head.digest:
            self.store, self.complete = None, True
            return
        self.store, self.complete = PartitionStore(), False
        self.store.stamp = head.stamp

    def _check_complete(self) -> None:
        head, store = self.head, self.store
        if head is None or store is None or self.complete:
            return
        if store.entries == head.entries and len(store.sessions) == head.sessions:
            if store.digest != head.digest:
                raise ValueError("what came has another digest than what was promised")
            self.complete = True
